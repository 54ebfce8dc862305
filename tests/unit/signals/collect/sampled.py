"""Real runtimes that sample themselves, as the testbed starts them."""

from __future__ import annotations

import os
import secrets
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from loadlens.model.topology import Runtime
from loadlens.signals.collect.monitor import Monitor, Row
from loadlens.signals.collect.runtime_samples import Folder
from loadlens.testbed.runtimes import RUNTIMES, environment
from tests.unit.signals.collect.test_monitor import read


@contextmanager
def running(
    runtime: Runtime, argv: Sequence[str], folder: Path, **variables: str
) -> Iterator[subprocess.Popen[bytes]]:
    """A process that samples itself into the folder; ended at the end."""
    first = RUNTIMES[runtime].first
    if first is not None:
        subprocess.run(first(folder), check=True, timeout=60)
    present = {**os.environ, **variables}
    process = subprocess.Popen(argv, env=present | environment(runtime, folder, present))
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def fresh(folder: Path) -> Path:
    """Make a folder for one attempt, so that samples of an earlier attempt are not read."""
    made = folder / secrets.token_hex(4)
    made.mkdir()
    return made


def opened(monitor: Monitor, folder: Path) -> Monitor:
    """The monitor on one replica's folder."""
    monitor.open(monitor.settings((Folder("app", 2, str(folder)),)))
    return monitor


def rows_until(monitor: Monitor, wanted: Any, within_s: float = 20.0) -> list[Row]:
    """All rows up to the tick after which `wanted(rows)` is true."""
    rows: list[Row] = []
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        rows += read(monitor)
        if wanted(rows):
            return rows
        time.sleep(0.05)
    raise AssertionError(f"not seen within {within_s:g} s: {sorted({row.metric for row in rows})}")


def metrics(rows: Sequence[Row]) -> set[str]:
    """Names of all metrics that were yielded."""
    return {row.metric for row in rows}
