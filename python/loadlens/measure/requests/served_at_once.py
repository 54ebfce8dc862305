"""Requests that were being served at the moment when another one failed, from the log of requests.

Trials that were ended because of their failures count too: how many were being served when a request failed
does not depend on when the load ended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from loadlens.errors import RecordError
from loadlens.estimate.interval import Bools, Floats, Ints
from loadlens.measure.case import CaseMeasures
from loadlens.measure.requests.log_rows import is_thinned, seconds, whole
from loadlens.measure.source import streams_of
from loadlens.measure.trial import TrialMeasures
from loadlens.model.shapes import FailedAtOnce
from loadlens.model.trial import Outcome

if TYPE_CHECKING:
    import polars as pl

COLUMNS: Final = ("stream", "step", "outcome", "status", "due_ns", "sent_ns", "done_ns", "thinned")
FIRST: Final = 20  # failures of a trial: those by which the service has filled up
NEAR: Final = 0.05  # of the number: as near is the same, as answers are on their way for some time
NO_FAILURES: Final = (Outcome.OK, Outcome.IN_FLIGHT, Outcome.WAITING, Outcome.DROPPED)


def failed_at_once(cases: Sequence[CaseMeasures]) -> tuple[FailedAtOnce, ...]:
    """Return each level with failures whose requests are known one by one, ascending by load."""
    levels = []
    for case in cases:
        rows = [part for trial in case.trials if (part := _rows(trial)) is not None]
        level = of_trials(streams_of(case.trials[0].source.plan)[0].load, rows) if rows else None
        if level is not None:
            levels.append(level)
    return tuple(sorted(levels, key=lambda level: level.load))


def _rows(trial: TrialMeasures) -> pl.DataFrame | None:
    """Return requests of a trial's load, and of probes that send the same; none: no failures, or no log."""
    import polars as pl

    result = trial.source.result
    if result is None or result.load is None or trial.external is not None or not result.load.requests.bad:
        return None
    load, *probes = streams_of(trial.source.plan)
    own = {step.request for step in load.steps}
    same = [load.index, *(p.index for p in probes if {step.request for step in p.steps} <= own)]
    try:
        rows = trial.source.samples(COLUMNS)
    except RecordError:
        return None
    rows = rows.filter(pl.col("stream").is_in(same) & (pl.col("done_ns") >= 0))
    return None if not rows.height or is_thinned(rows) else rows


def of_trials(load: float, trials: Iterable[pl.DataFrame]) -> FailedAtOnce | None:
    """Count at each failure of the most frequent kind how many successes were under way.

    Args:
        load: Users, or requests per second.
        trials: The requests of each trial, all of them.
    """
    parts = [_Trial(rows) for rows in trials]
    kinds = sum((part.kinds for part in parts), Counter[tuple[int, int]]())
    if not kinds:
        return None
    kind = max(kinds, key=lambda each: kinds[each])
    served = [part.served_at(part.middle_s[part.is_of(kind)]) for part in parts]
    at_failures = np.concatenate(served)
    number = int(np.bincount(at_failures).argmax())
    took = np.concatenate([part.took_s[part.is_of(kind)] for part in parts])
    ok = np.concatenate([part.took_s[part.is_ok] for part in parts])
    at_successes = np.concatenate([part.served_at(part.middle_s[part.is_ok]) for part in parts])
    near = NEAR * number
    return FailedAtOnce(
        load=load,
        outcome=Outcome(kind[0]).name.lower(),
        status=kind[1],
        failures=int(at_failures.size),
        successes=int(ok.size),
        failure_s=float(np.median(took)),
        success_s=float(np.median(ok)) if ok.size else None,
        served=number,
        same=float(np.mean(np.abs(at_failures - number) <= near)),
        first=tuple(float(np.median(each[:FIRST])) for each in served if each.size),
        beyond=float(np.mean(at_successes > number + near)) if ok.size else 0.0,
    )


class _Trial:
    """The requests of one trial as arrays, in order of their end."""

    def __init__(self, rows: pl.DataFrame) -> None:
        rows = rows.sort("done_ns")
        due, sent, done = (seconds(rows, name) for name in ("due_ns", "sent_ns", "done_ns"))
        begin = np.where(whole(rows, "sent_ns") < 0, due, sent)
        self.took_s: Floats = done - begin
        self.middle_s: Floats = (begin + done) / 2
        self._outcome: Ints = whole(rows, "outcome")
        self._status: Ints = whole(rows, "status")
        self.is_ok: Bools = self._outcome == int(Outcome.OK)
        self._begins, self._ends = np.sort(begin[self.is_ok]), done[self.is_ok]

    @property
    def kinds(self) -> Counter[tuple[int, int]]:
        """Failures by outcome and status."""
        failed = ~np.isin(self._outcome, [int(outcome) for outcome in NO_FAILURES])
        return Counter(zip(self._outcome[failed].tolist(), self._status[failed].tolist(), strict=True))

    def is_of(self, kind: tuple[int, int]) -> Bools:
        """Return which requests failed in that way, shape (requests,)."""
        return np.asarray((self._outcome == kind[0]) & (self._status == kind[1]), dtype=np.bool_)

    def served_at(self, moments_s: Floats) -> Ints:
        """Count the successes under way at each moment, shape (moments,)."""
        begun = np.searchsorted(self._begins, moments_s, side="right")
        return np.asarray(begun - np.searchsorted(self._ends, moments_s, side="right"), dtype=np.int64)
