"""A run as snapshots of its trials, while it is written or afterwards."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from loadlens import record
from loadlens.export.tally import Snapshot, Tally
from loadlens.follow.load import EDGE_S, Intervals, Row
from loadlens.follow.nodes import NodesOverTime
from loadlens.record import FollowedTrial, IntervalHistogram, Reading


class Following:
    """Trials of a run in a folder.

    Args:
        run: The folder, which may not exist yet.
        skip: Folders of trials that were there before.
    """

    def __init__(self, run: Path, skip: frozenset[Path] = frozenset()) -> None:
        self._run = run
        self._done = set(skip)
        self._open: dict[Path, _Trial] = {}

    def more(self) -> Iterator[Snapshot]:
        """Yield what changed in each second since the last call; of a trial that was sealed, at last all."""
        for folder in record.trial_folders(self._run):
            if folder in self._done:
                continue
            trial = self._open.setdefault(folder, _Trial(record.run_id(self._run), folder))
            yield from trial.more()
            if trial.is_over:
                self._done.add(folder)
                del self._open[folder]


class _Trial:
    """A trial that is added up while it runs, and once more, as a whole, from what is kept of it.

    Of a fleet, what its machines have sent is added up first, and what the engine merged of it at the end.
    """

    def __init__(self, run: str, folder: Path) -> None:
        self.is_over = False
        self._folder = folder
        self._labels = {
            "loadlens.run": run,
            "loadlens.case": folder.parent.name,
            "loadlens.trial": folder.name,
        }
        self._live = FollowedTrial(folder)
        self._nodes: NodesOverTime | None = None  # none: one machine makes the load
        self._sum: _Sum | None = None
        self._intervals = Intervals()

    def more(self) -> Iterator[Snapshot]:
        """Yield snapshots of the seconds that became whole since the last call."""
        if self._live.is_sealed:
            self.is_over = True
            trial = record.open_trial(self._folder)
            if trial.result is None or trial.t0_unix_ns is None:
                return
            # As it was sent: the record's is the engine's own reading of the clock, microseconds off.
            start_ns = trial.t0_unix_ns if self._sum is None else self._sum.start_ns
            whole = _Sum(Tally(trial.plan, start_ns, self._labels))
            whole.readings.extend(
                sorted(
                    (at_s, reading, value)
                    for reading, seconds, values in record.sealed_readings(trial)
                    for at_s, value in zip(seconds, values, strict=True)
                    if value is not None
                )
            )
            sent_ns = 0 if self._sum is None else self._sum.sent_ns
            rows = Intervals().whole(trial.counters(), is_end=True)
            yield from (each for each in whole.add(rows, trial.intervals()) if each.time_ns > sent_ns)
            yield whole.end()
        elif self._live.started():
            if self._sum is None:
                plan = self._live.plan()
                self._sum = _Sum(Tally(plan, self._live.t0_unix_ns or 0, self._labels))
                nodes = self._live.nodes()
                self._nodes = (
                    NodesOverTime(nodes, [stream.name for stream in plan.streams]) if nodes else None
                )
            counters, histograms = (self._nodes or self._live.load).take()
            self._sum.readings.extend(
                sorted(
                    (at_s, reading, value)
                    for reading, at_s, value in self._live.readings()
                    if value is not None
                )
            )
            yield from self._sum.add(self._intervals.whole(counters), histograms)


class _Sum:
    """Intervals added up in order of time."""

    def __init__(self, tally: Tally) -> None:
        self.start_ns = tally.start_ns  # since 1970
        self.sent_ns = 0  # time of the last snapshot, likewise
        self.readings: deque[tuple[float, Reading, float]] = deque()  # that belong to later intervals
        self._tally = tally
        self._histograms: list[IntervalHistogram] = []  # likewise
        self._start_s: float | None = None  # of the last interval that was added

    def add(
        self, intervals: Iterable[Sequence[Row]], histograms: Sequence[IntervalHistogram]
    ) -> Iterator[Snapshot]:
        """Add whole intervals; yield a snapshot where one begins in a later second than that before it."""
        waiting = deque(sorted((*self._histograms, *histograms), key=lambda each: each.start_s))
        for rows in intervals:
            start_s, end_s = rows[0].start_s, rows[0].end_s
            if self._start_s is not None and math.floor(start_s) > math.floor(self._start_s):
                self._read(math.floor(start_s))
                snapshot = self._tally.snapshot()
                self.sent_ns = snapshot.time_ns
                yield snapshot
            self._start_s = start_s
            for row in rows:
                self._tally.add(row)
            while waiting and waiting[0].start_s < end_s - EDGE_S:
                self._tally.add_histogram(waiting.popleft(), rows[0].phase)
        self._histograms = list(waiting)

    def end(self) -> Snapshot:
        """Return all series after the last interval, which may begin and end at once."""
        self._read(math.inf)
        snapshot = self._tally.snapshot(whole=True)
        return replace(snapshot, time_ns=max(snapshot.time_ns, self.sent_ns + 1))

    def _read(self, until_s: float) -> None:
        """Take the readings of monitors up to a time under load."""
        while self.readings and self.readings[0][0] < until_s:
            at_s, reading, value = self.readings.popleft()
            if at_s >= 0:
                self._tally.add_reading(reading, value)
