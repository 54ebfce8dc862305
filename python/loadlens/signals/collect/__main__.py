"""The monitor process: reads all sources at each tick of a monotonic grid and appends what they yield.

`python -m loadlens.signals.collect OUT`, with its spec as one line of JSON on standard input. It ends when
standard input closes, on SIGTERM, or when the lab has died in any other way; it then takes a last reading.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from loadlens.model.plain import read
from loadlens.model.readings import MonitorMetrics
from loadlens.signals.collect import make
from loadlens.signals.collect.monitor import NO_LABELS, Monitor, Row, labels, line, reading

_MOST_MISSED_ROWS = 60  # a stop of hours must not become hours of rows
_WRITE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class _Source:
    """One monitor; its settings are next to its name."""

    monitor: str


@dataclass(frozen=True, slots=True)
class _Spec:
    """Monitors to run, as `MonitorSpec.to_json` writes it."""

    interval_s: float
    sources: tuple[Any, ...]


class Sink:
    """Lines appended to the readings, those of one monitor at a time."""

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._lines: list[str] = []
        self._size = 0
        self._full = False

    def add(self, text: str) -> None:
        """Take a line; written when there is enough of them."""
        self._lines.append(text)
        self._size += len(text)
        if self._size > _WRITE_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write what waits. A full disk ends the readings, not the trial."""
        content = memoryview("".join(self._lines).encode())
        self._lines.clear()
        self._size = 0
        try:
            while content and not self._full:
                content = content[os.write(self._descriptor, content) :]
        except OSError as error:
            self._full = True
            print(f"readings end here: {error.strerror}", file=sys.stderr, flush=True)


class Loop:
    """Ticks, and what they cost."""

    def __init__(self, monitors: list[Monitor], sink: Sink, interval_s: float, lab_pid: int) -> None:
        self._monitors = monitors
        self._sink = sink
        self._interval_ns = int(interval_s * 1e9)
        self._lab_pid = lab_pid
        self._missed = 0
        self._wake, wake_write = os.pipe()
        os.set_blocking(wake_write, False)
        signal.set_wakeup_fd(wake_write)
        signal.signal(signal.SIGTERM, lambda *_: None)  # a handler, so that the pipe is written
        for number in (signal.SIGINT, signal.SIGHUP):  # meant for the lab
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT,))  # by which `perf` is ended

    def run(self, on_first: Callable[[], None]) -> None:
        """Tick until the lab ends the process."""
        due = time.monotonic_ns()
        self._tick(due, last=False)
        on_first()
        while True:
            due += self._interval_ns
            due = self._skip_missed(due)
            if self._told_to_end(due):
                break
            self._tick(due, last=False)
        self._tick(time.monotonic_ns(), last=True)

    def _skip_missed(self, due: int) -> int:
        """The next due time that is not over; a row for each one that is."""
        behind = (time.monotonic_ns() - due) // self._interval_ns
        if behind <= 0:
            return due
        self._missed += behind
        for number in range(min(behind, _MOST_MISSED_ROWS)):
            at = due + number * self._interval_ns
            self._sink.add(line("monitor", reading(MonitorMetrics.missed, NO_LABELS, None), at))
        return due + behind * self._interval_ns

    def _told_to_end(self, due: int) -> bool:
        """Wait until the time is due; true if the wait ended for another reason."""
        left = due - time.monotonic_ns()
        readable, _, _ = select.select([0, self._wake], [], [], max(0, left) / 1e9)
        return bool(readable) or os.getppid() != self._lab_pid

    def _tick(self, due: int, *, last: bool) -> None:
        now = time.monotonic_ns()
        for monitor in self._monitors:
            for row in _rows(monitor, now, last=last):
                self._sink.add(line(monitor.name, row, now))
            self._sink.flush()  # the next monitor may wait for a service until this process is killed
        for row in (
            reading(MonitorMetrics.tick_late_s, NO_LABELS, (now - due) / 1e9),
            reading(MonitorMetrics.cost_cpu_s, NO_LABELS, time.process_time()),
            reading(MonitorMetrics.missed_ticks, NO_LABELS, self._missed),
        ):
            self._sink.add(line("monitor", row, now))
        self._sink.flush()


def _rows(monitor: Monitor, now_ns: int, *, last: bool) -> Iterator[Row]:
    try:
        yield from monitor.tick(now_ns, last=last)
    except Exception as error:  # whatever one source does, the others go on; the gap is in the record
        yield reading(MonitorMetrics.missed, labels(why=f"{type(error).__name__}: {error}"[:300]), None)


def main() -> None:
    """Take the spec, say `ready` after the first reading, and tick until the lab ends the process."""
    lab_pid = os.getppid()
    spec = read(_Spec, json.loads(_first_line()))
    monitors = []
    for source in spec.sources:
        monitor = make(read(_Source, source).monitor)
        monitor.open(read(monitor.settings, source))
        monitors.append(monitor)
    gc.freeze()  # what is there now stays: the collector need not look at it again
    loop = Loop(monitors, Sink(sys.argv[1]), spec.interval_s, lab_pid)
    loop.run(lambda: print("ready", flush=True))
    for monitor in monitors:
        monitor.close()


def _first_line() -> bytes:
    """The spec. Unbuffered: nothing may be held back from the `select` that waits for the end of input."""
    received = b""
    while not received.endswith(b"\n"):
        piece = os.read(0, 1 << 16)
        if not piece:
            raise SystemExit("the spec ended before its line did")
        received += piece
    return received


if __name__ == "__main__":
    main()
