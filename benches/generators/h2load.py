"""h2load: C++, libev; of times it prints the extremes, the mean and the deviation."""

from __future__ import annotations

import re
from pathlib import Path

from benches.generators.base import (
    CannotDo,
    Generator,
    ReportedTimes,
    Scene,
    asked,
    on_path,
    refuse_flow,
    refuse_rate,
)
from benches.works import Work

UNITS_S = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


def command(work: Work, scene: Scene) -> list[str]:
    refuse_flow(work)
    refuse_rate(work)
    if work.is_fresh:
        raise CannotDo("keeps its connections")
    command = ["h2load", "--h1", "-t1", "-c", str(work.connections), "-D", str(scene.seconds)]
    if work.kind == "post":
        command += ["-d", scene.body(), "-H", "Content-Type: application/json"]
    return [*command, scene.url(work)]


def read(text: str, folder: Path) -> ReportedTimes:
    """From the maximum of `time for request`."""
    match = re.search(r"time for request:\s+\S+\s+([\d.]+)(us|ms|s)\b", text)
    assert match is not None, text
    return ReportedTimes(None, None, None, float(match[1]) * UNITS_S[match[2]])


H2LOAD = Generator(
    "h2load",
    command,
    on_path("h2load"),
    lambda: asked("h2load", "--version"),
    read,
)
