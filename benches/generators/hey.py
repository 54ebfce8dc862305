"""hey: Go, net/http."""

from __future__ import annotations

import re
from pathlib import Path

from benches.generators.base import Generator, ReportedTimes, Scene, on_path, refuse_flow, refuse_rate
from benches.generators.go import module_version
from benches.works import Work


def command(work: Work, scene: Scene) -> list[str]:
    refuse_flow(work)
    refuse_rate(work)  # its -q holds each worker back after an answer, which is a closed loop still
    command = ["hey", "-cpus", "1", "-c", str(work.connections), "-z", f"{scene.seconds}s"]
    if work.kind == "post":
        command += ["-m", "POST", "-T", "application/json", "-D", scene.body()]
    if work.is_tls:
        command += ["-host", "127.0.0.1"]  # it would send the port within the name of the server
    return [*command, *(["-disable-keepalive"] if work.is_fresh else []), scene.url(work)]


def read(text: str, folder: Path) -> ReportedTimes:
    """From `Latency distribution` and `Slowest`; no p99.9 is printed, absent where it has too few values."""

    def seconds(pattern: str) -> float | None:
        match = re.search(pattern + r"\s+([\d.]+) secs", text)
        return float(match[1]) if match else None

    return ReportedTimes(seconds(r"\b50%+ in"), seconds(r"\b99%+ in"), None, seconds(r"Slowest:"))


HEY = Generator(
    "hey",
    command,
    on_path("hey"),
    lambda: module_version("hey"),
    read,
    is_slow=True,
)
