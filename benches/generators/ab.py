"""ab: C, one event loop; one body for all requests, whole milliseconds."""

from __future__ import annotations

import re
from pathlib import Path

from benches.generators.base import Generator, ReportedTimes, Scene, asked, on_path, refuse_flow, refuse_rate
from benches.works import Work


def command(work: Work, scene: Scene) -> list[str]:
    refuse_flow(work)
    refuse_rate(work)
    command = ["ab", "-q", "-c", str(work.connections), "-t", str(scene.seconds), "-n", "50000000"]
    if not work.is_fresh:
        command.append("-k")
    if work.kind == "post":
        command += ["-p", scene.body(), "-T", "application/json"]
    return [*command, scene.url(work)]


def read(text: str, folder: Path) -> ReportedTimes:
    """From `Percentage of the requests served within a certain time (ms)`; no p99.9 is printed."""

    def seconds(percent: int) -> float:
        match = re.search(rf"^\s*{percent}%\s+(\d+)", text, re.MULTILINE)
        assert match is not None, text
        return int(match[1]) / 1e3

    return ReportedTimes(seconds(50), seconds(99), None, seconds(100))


def _version() -> str:
    return asked("ab", "-V").removeprefix("This is ").partition(" <")[0]


AB = Generator("ab", command, on_path("ab"), _version, read)
