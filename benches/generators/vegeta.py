"""vegeta: Go, net/http; attacks are reported in a second step."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

from benches.generators.base import Generator, ReportedTimes, Scene, on_path, refuse_flow
from benches.generators.go import module_version
from benches.works import Work


def command(work: Work, scene: Scene) -> list[str]:
    refuse_flow(work)
    lines = [f"{'POST' if work.kind == 'post' else 'GET'} {scene.url(work)}"]
    if work.kind == "post":
        lines += ["Content-Type: application/json", f"@{scene.body()}"]
    targets = scene.file(f"targets-{work.name}.txt", "\n".join(lines) + "\n")
    count = str(work.connections)
    command = ["vegeta", "attack", f"-duration={scene.seconds}s", f"-targets={targets}"]
    if work.rate is None:
        command += ["-rate=0", f"-workers={count}", f"-max-workers={count}"]
    else:
        command += [f"-rate={work.rate:g}"]
    if work.is_fresh:
        command.append("-keepalive=false")
    if work.is_tls:
        command.append("-insecure")
    if scene.tells_times:
        return ["sh", "-c", f"{shlex.join(command)} | vegeta report -type=json"]
    return [*command, "-output=/dev/null"]


def read(text: str, folder: Path) -> ReportedTimes:
    """From `latencies` in nanoseconds; no p99.9 is printed."""
    at = json.loads(text)["latencies"]
    return ReportedTimes(at["50th"] / 1e9, at["99th"] / 1e9, None, at["max"] / 1e9)


VEGETA = Generator(
    "vegeta",
    command,
    on_path("vegeta"),
    lambda: module_version("vegeta"),
    read,
    is_slow=True,
)
