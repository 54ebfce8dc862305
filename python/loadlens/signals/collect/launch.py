"""The lab's end of the monitor process."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import Field, asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, ClassVar, Protocol, Self, runtime_checkable

from loadlens.errors import TestbedError

_READY_WITHIN_S = 20.0
_STOP_WITHIN_S = 10.0  # besides what the monitors may wait for others


class Source(Protocol):
    """Settings of one monitor: a frozen dataclass in the module of the monitor, with its name."""

    monitor: ClassVar[str]
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


@runtime_checkable
class Waiting(Protocol):
    """Settings of a monitor that waits for others when it ends."""

    @property
    def waits_s(self) -> float:
        """The longest that it may wait from the end of the load to its last reading."""
        ...


@dataclass(frozen=True, slots=True)
class MonitorSpec:
    """Monitors to run, and how often they read."""

    sources: Sequence[Source]
    interval_s: float = 1.0
    marker: str | None = None  # the run's id, so that the keeper ends the monitors with everything else

    def to_json(self) -> str:
        """One line."""
        sources = [{**asdict(source), "monitor": source.monitor} for source in self.sources]
        return json.dumps({"interval_s": self.interval_s, "sources": sources})

    @property
    def stop_within_s(self) -> float:
        """Time from the request to end until the monitors are killed; one waits after the other."""
        return _STOP_WITHIN_S + sum(s.waits_s for s in self.sources if isinstance(s, Waiting))


class MonitorProcess:
    """The running monitors."""

    def __init__(self, process: subprocess.Popen[bytes], complaints: IO[bytes], stop_within_s: float) -> None:
        self._process = process
        self._complaints = complaints
        self._stop_within_s = stop_within_s

    @property
    def pid(self) -> int:
        """Of the monitor process."""
        return self._process.pid

    def is_running(self) -> bool:
        """False if it ended before it was asked to: the readings of this trial have a hole."""
        return self._process.poll() is None

    def stop(self) -> str | None:
        """Take the last reading and end; return what went wrong, or None."""
        if self._process.stdin is not None and not self._process.stdin.closed:
            self._process.stdin.close()
        words: str | None = None
        try:
            status = self._process.wait(self._stop_within_s)
            if status != 0:
                words = f"the monitors ended with exit status {status}"
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            words = f"the monitors did not end within {self._stop_within_s:g} s and were killed"
        complaint = self._last_complaint()
        return (f"{words}: {complaint}" if words and complaint else words or complaint) or None

    def _last_complaint(self) -> str:
        """Return the last line on its standard error."""
        if self._complaints.closed:
            return ""
        self._complaints.seek(0)
        lines = self._complaints.read().decode(errors="replace").strip().splitlines()
        self._complaints.close()
        if self._process.stdout is not None:
            self._process.stdout.close()
        return lines[-1] if lines else ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def start(spec: MonitorSpec, out: Path) -> MonitorProcess:
    """Start reading; the first reading is on disk when this returns.

    Args:
        spec: What to read.
        out: The file that rows are appended to, `live/readings.jsonl` of the trial.

    Raises:
        TestbedError: The monitors did not start.
    """
    complaints = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
    package_home = str(Path(__file__).parents[3])
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([package_home, os.getenv("PYTHONPATH", "")]),
        **({} if spec.marker is None else {"LOADLENS_RUN": spec.marker}),
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "loadlens.signals.collect", str(out)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=complaints,
        env=environment,
        start_new_session=True,
    )
    monitors = MonitorProcess(process, complaints, spec.stop_within_s)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(spec.to_json().encode() + b"\n")
        process.stdin.flush()
        readable, _, _ = select.select([process.stdout], [], [], _READY_WITHIN_S)
        is_ready = bool(readable) and process.stdout.readline() == b"ready\n"
    except BrokenPipeError:
        is_ready = False
    if not is_ready:
        raise TestbedError(
            f"the monitors did not start: {monitors.stop() or 'they said nothing'}", where=str(out)
        )
    return monitors
