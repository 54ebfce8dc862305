"""Drift of a long run: memory, descriptors, threads, rate and times of `hit` while it runs.

A slope is the median of the slopes between all pairs of readings (Theil and Sen), so that one odd reading
does not make it.
"""

from __future__ import annotations

import itertools
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benches.measuring import GENERATOR_CPU, SERVER_CPU, Origin, origin
from benches.results import Limit, Results

RATE = 10_000
SECONDS = 1800
READ_EVERY_S = 10.0
SETTLES_S = 60.0  # caches and histograms that are touched for the first time
DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class Reading:
    """One look at a process from outside, and at what its server has answered."""

    at_s: float
    memory_bytes: int  # anonymous and resident: files that are mapped are not ours
    descriptors: int
    threads: int
    answered: int


def measure_all(results: Results, set_number: int, seconds: int, rate: int, program: Path) -> None:
    """Run `hit` for so long and add how it changed."""
    with origin(program, SERVER_CPU) as server:
        command = [
            sys.executable,
            "-m",
            "loadlens",
            "hit",
            f"http://127.0.0.1:{server.port}/",
            "-q",
            "-t",
            "1",
        ]
        command += ["-r", str(rate), "-d", f"{seconds}s"]
        process = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            preexec_fn=lambda: os.sched_setaffinity(0, {GENERATOR_CPU}),
        )
        try:
            readings = list(_readings(process, server))
            process.wait(timeout=60)
        finally:
            process.kill()
            process.wait()
    settled = [reading for reading in readings if reading.at_s >= SETTLES_S]
    if process.returncode or len(settled) < 3:
        raise RuntimeError(f"the soak ended with {process.returncode} after {len(readings)} readings")
    for name, value in changes(settled).items():
        results.limits.append(Limit(f"soak_{name}", set_number, value))
        print(f"soak_{name} {value:.6g}", file=sys.stderr)
    results.write()


def _readings(process: subprocess.Popen[bytes], server: Origin) -> list[Reading]:
    began, readings = time.monotonic(), []
    while process.poll() is None:
        time.sleep(READ_EVERY_S)
        about = Path(f"/proc/{process.pid}")
        try:
            status = (about / "status").read_text()
            fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
            memory = int(fields["RssAnon"].split()[0]) * 1024
            descriptors, threads = len(list((about / "fd").iterdir())), int(fields["Threads"])
        except (OSError, KeyError):
            break  # it has just ended
        answered = server.books()["answered"]
        readings.append(Reading(time.monotonic() - began, memory, descriptors, threads, answered))
    return readings


def changes(readings: Sequence[Reading]) -> dict[str, float]:
    """The slope of memory, spans of counts, and how the last third's rate departs from the first's."""
    memory = [(reading.at_s, float(reading.memory_bytes)) for reading in readings]
    pairs = itertools.pairwise(readings)
    rates = [(after.answered - before.answered) / (after.at_s - before.at_s) for before, after in pairs]
    third = max(1, len(rates) // 3)
    early, late = statistics.fmean(rates[:third]), statistics.fmean(rates[-third:])
    return {
        "hours": (readings[-1].at_s - readings[0].at_s) / 3600,
        "memory_bytes": statistics.median(value for _, value in memory),
        "memory_slope_bytes_per_day": slope(memory) * DAY_S,
        "descriptors_span": float(_span([reading.descriptors for reading in readings])),
        "threads_span": float(_span([reading.threads for reading in readings])),
        "rate_drift": late / early - 1,
    }


def slope(points: Sequence[tuple[float, float]]) -> float:
    """The median of the slopes between all pairs of points."""
    return statistics.median(
        (after[1] - before[1]) / (after[0] - before[0]) for before, after in itertools.combinations(points, 2)
    )


def _span(values: Sequence[int]) -> int:
    return max(values) - min(values)
