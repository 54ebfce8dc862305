"""A run as snapshots of its trials, while it is written or afterwards."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from loadlens import record
from loadlens.export.tally import NS, Snapshot, Tally
from loadlens.model.counters import GeneratorCounters, StreamCounters
from loadlens.record import FollowedTrial, IntervalHistogram, Reading

Row = StreamCounters | GeneratorCounters


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
    """A trial whose intervals are added up, each once."""

    def __init__(self, run: str, folder: Path) -> None:
        self.is_over = False
        self._folder = folder
        self._labels = {
            "loadlens.run": run,
            "loadlens.case": folder.parent.name,
            "loadlens.trial": folder.name,
        }
        self._live = FollowedTrial(folder)
        self._tally: Tally | None = None
        self._last = -1  # start of the last interval that was added, ns since t0
        self._rows: list[Row] = []
        self._histograms: list[IntervalHistogram] = []
        self._readings: list[tuple[float, Reading, float]] = []  # that belong to later intervals
        self._read_s = -1.0  # time of the last reading that was taken

    def more(self) -> Iterator[Snapshot]:
        """Yield snapshots of the intervals that became whole since the last call."""
        if self._live.is_sealed:
            self.is_over = True
            trial = record.open_trial(self._folder)
            if trial.result is None or trial.t0_unix_ns is None:
                return
            self._tally = self._tally or Tally(trial.plan, trial.t0_unix_ns, self._labels)
            self._readings = [
                (at_s, reading, value)
                for reading, seconds, values in record.sealed_readings(trial)
                for at_s, value in zip(seconds, values, strict=True)
                if value is not None and at_s > self._read_s
            ]
            yield from self._added(self._tally, list(trial.counters().intervals), trial.intervals())
            self._read(self._tally, math.inf)
            yield self._tally.snapshot(whole=True)
        elif self._live.started():
            if self._tally is None:
                plan = self._live.plan()
                self._tally = Tally(plan, self._live.t0_unix_ns or 0, self._labels)
            counters = self._live.load.counters()  # before the histograms, which are written first
            self._rows += counters.intervals
            self._histograms += self._live.load.intervals()
            self._readings += [
                (at_s, reading, value) for reading, at_s, value in self._live.readings() if value is not None
            ]
            newest = max((row.start_s for row in self._rows), default=0.0)  # may not be whole yet
            whole = [row for row in self._rows if row.start_s < newest]
            self._rows = [row for row in self._rows if row.start_s >= newest]
            yield from self._added(self._tally, whole, self._histograms)
            self._histograms = [each for each in self._histograms if _ns(each.start_s) > self._last]

    def _added(
        self, tally: Tally, rows: list[Row], histograms: Sequence[IntervalHistogram]
    ) -> Iterator[Snapshot]:
        intervals: dict[int, tuple[list[Row], list[IntervalHistogram]]] = {}
        for row in rows:
            intervals.setdefault(_ns(row.start_s), ([], []))[0].append(row)
        for histogram in histograms:
            if (start := _ns(histogram.start_s)) in intervals:
                intervals[start][1].append(histogram)
        for start, (of, distributions) in sorted(intervals.items()):
            if start <= self._last:
                continue
            if self._last >= 0 and math.floor(start / NS) > math.floor(self._last / NS):
                self._read(tally, start / NS)
                yield tally.snapshot()
            self._last = start
            for row in of:
                tally.add(row)
            for distribution in distributions:
                tally.add_histogram(distribution, of[0].phase)

    def _read(self, tally: Tally, until_s: float) -> None:
        """Take the readings of monitors up to a time under load."""
        for at_s, reading, value in sorted(self._readings, key=lambda each: each[0]):
            if 0 <= at_s < until_s:
                tally.add_reading(reading, value)
                self._read_s = at_s
        self._readings = [each for each in self._readings if each[0] >= until_s]


def _ns(start_s: float) -> int:
    return round(start_s * NS)
