"""oha: Rust, tokio and hyper."""

from __future__ import annotations

import json
from pathlib import Path

from benches.generators.base import Generator, ReportedTimes, Scene, asked, on_path, refuse_flow
from benches.works import Work


def command(work: Work, scene: Scene) -> list[str]:
    return _command(work, scene, ["--latency-correction"])


def command_uncorrected(work: Work, scene: Scene) -> list[str]:
    return _command(work, scene, [])


def _command(work: Work, scene: Scene, with_rate: list[str]) -> list[str]:
    refuse_flow(work)
    command = ["oha", "-c", str(work.connections), "-z", f"{scene.seconds}s", "--no-tui"]
    command += ["--output-format", "json"]
    if work.rate is not None:
        command += ["-q", f"{work.rate:g}", *with_rate]
    if work.is_tls:
        command.append("--insecure")
    if work.kind == "post":
        command += ["-m", "POST", "-T", "application/json", "-D", scene.body()]
    return [*command, *(["--disable-keepalive"] if work.is_fresh else []), scene.url(work)]


def read(text: str, folder: Path) -> ReportedTimes:
    """From `latencyPercentiles` and `summary.slowest`."""
    report = json.loads(text)
    at = report["latencyPercentiles"]
    return ReportedTimes(at["p50"], at["p99"], at["p99.9"], report["summary"]["slowest"])


OHA = Generator("oha", command, on_path("oha"), lambda: asked("oha", "--version"), read, is_slow=True)
