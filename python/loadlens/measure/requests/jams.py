"""Standstills that end in failures: no request is answered for a while, then most that were open fail.

A service that pauses answers late; these never get their answer, and only a time-out ends their wait.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from loadlens.measure.case import CaseMeasures
from loadlens.measure.requests.log_rows import ANSWERED, seconds, whole
from loadlens.measure.trial import StreamMeasures, TrialMeasures
from loadlens.model.facts import Jam
from loadlens.model.trial import Outcome

AT_ONCE_S: Final = 0.05  # between two failures that end together
FEWEST: Final = 3
LEAST_S: Final = 1.0
TIMES: Final = 10.0  # as long as a usual success
MOST: Final = 0.5  # of the requests that were open
SERVER_ERROR: Final = 500
COLUMNS: Final = ("stream", "outcome", "status", "sent_ns", "done_ns")


def jams(case: CaseMeasures) -> tuple[Jam, ...]:
    """Return the standstills of a level's trials that ended in failures."""
    load = case.reference
    if load is None:
        return ()
    return tuple(jam for trial in case.usable if _has_errors(trial) for jam in _of_trial(trial, load))


def _has_errors(trial: TrialMeasures) -> bool:
    engine = trial.source.result
    load = None if engine is None else engine.load
    return load is not None and any(code.isdecimal() and int(code) >= SERVER_ERROR for code in load.status)


def _of_trial(trial: TrialMeasures, load: StreamMeasures) -> Iterator[Jam]:
    rows = trial.source.samples(COLUMNS)
    rows = rows.filter(whole(rows, "stream") == load.plan.index) if rows.height else rows
    if not rows.height:
        return
    outcomes, sent, done = whole(rows, "outcome"), seconds(rows, "sent_ns"), seconds(rows, "done_ns")
    is_ok = outcomes == Outcome.OK
    is_failed = np.isin(outcomes, ANSWERED) & ~is_ok & (whole(rows, "status") >= SERVER_ERROR)
    failed = np.sort(done[is_failed])
    if failed.size < FEWEST or not is_ok.any():
        return
    least_s = max(LEAST_S, TIMES * float(np.median((done - sent)[is_ok])))
    ends = np.sort(done[np.isin(outcomes, ANSWERED)])
    for together in np.split(failed, np.flatnonzero(np.diff(failed) > AT_ONCE_S) + 1):
        at = float(together[0])
        before = np.searchsorted(ends, at)
        still_s = at - max(0.0, float(ends[before - 1]) if before else 0.0)
        was_open = int(((sent < at) & (done >= at)).sum())
        if together.size >= FEWEST and still_s >= least_s and together.size >= MOST * was_open:
            yield Jam(int(together.size), still_s)
