"""bombardier: Go, fasthttp."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from benches.generators.base import Generator, ReportedTimes, Scene, asked, refuse_flow
from benches.generators.go import module_version
from benches.works import Work


def command(work: Work, scene: Scene) -> list[str]:
    refuse_flow(work)
    command = ["bombardier", "-c", str(work.connections), "-d", f"{scene.seconds}s", "-l", "-p", "r"]
    command += ["-o", "json", "-t", "10s"]
    if work.rate is not None:
        command += ["-r", f"{work.rate:g}"]
    if work.is_tls:
        command.append("-k")
    if work.kind == "post":
        command += ["-m", "POST", "-H", "Content-Type: application/json", "-f", scene.body()]
    if work.is_fresh:
        command += ["-H", "Connection: close"]  # its --disableKeepAlives is for net/http only
    return [*command, scene.url(work)]


def read(text: str, folder: Path) -> ReportedTimes:
    """From `result.latency` in microseconds; no p99.9 is printed."""
    latency = json.loads(text)["result"]["latency"]
    at = latency["percentiles"]
    return ReportedTimes(at["50"] / 1e6, at["99"] / 1e6, None, latency["max"] / 1e6)


def _why_missing() -> str | None:
    if shutil.which("bombardier") is None:
        return "not installed"
    is_it = "bombardier" in asked("bombardier", "--version")
    return None if is_it else "the program of that name here is a game"


BOMBARDIER = Generator(
    "bombardier",
    command,
    _why_missing,
    lambda: module_version("bombardier"),
    read,
    is_slow=True,
)
