"""Standstills that end in failures: no request is answered for a while, then most that were open fail.

A service that pauses answers late; these never get their answer, and only a time-out ends their wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np

from loadlens.measure.case import CaseMeasures
from loadlens.measure.requests.log_rows import ANSWERED, FOREVER_S, ended, seconds, whole
from loadlens.measure.source import TrialSource
from loadlens.model.facts import Jam
from loadlens.model.trial import Outcome

AT_ONCE_S: Final = 0.05  # between two failures that end together
FEWEST: Final = 2
LEAST_S: Final = 1.0
TIMES: Final = 10.0  # as long as a usual success
MOST: Final = 0.5  # of the requests that were open
SERVER_ERROR: Final = 500
LOAD: Final = 0  # the first stream of a trial
COLUMNS: Final = ("outcome", "status", "sent_ns", "done_ns")


def jams(case: CaseMeasures) -> tuple[Jam, ...]:
    """Return the standstills of a level's trials that ended in failures."""
    return of_trials([trial.source for trial in case.usable])


def of_trials(sources: Iterable[TrialSource], success_s: float | None = None) -> tuple[Jam, ...]:
    """Return the standstills of some trials.

    Args:
        success_s: Usual time of a success elsewhere, seconds, for a trial without any.
    """
    return tuple(jam for source in sources if _has_errors(source) for jam in _of_trial(source, success_s))


def _has_errors(source: TrialSource) -> bool:
    load = None if source.result is None else source.result.load
    return load is not None and any(code.isdecimal() and int(code) >= SERVER_ERROR for code in load.status)


def _of_trial(source: TrialSource, success_s: float | None) -> Iterator[Jam]:
    rows = ended(source, COLUMNS, 0.0, FOREVER_S, stream=LOAD)
    outcomes, sent, done = whole(rows, "outcome"), seconds(rows, "sent_ns"), seconds(rows, "done_ns")
    is_ok = outcomes == Outcome.OK
    is_failed = np.isin(outcomes, ANSWERED) & ~is_ok & (whole(rows, "status") >= SERVER_ERROR)
    by_end = np.flatnonzero(is_failed)[np.argsort(done[is_failed])]
    failed = done[by_end]
    usual_s = float(np.median((done - sent)[is_ok])) if is_ok.any() else success_s
    if failed.size < FEWEST or usual_s is None:
        return
    least_s = max(LEAST_S, TIMES * usual_s)
    ends, successes = np.sort(done[np.isin(outcomes, ANSWERED)]), done[is_ok]
    last: float | None = None
    for rows_together in np.split(by_end, np.flatnonzero(np.diff(failed) > AT_ONCE_S) + 1):
        at, count = float(done[rows_together[0]]), int(rows_together.size)
        is_open = (sent < at) & (done >= at)
        before = np.searchsorted(ends, at)
        # A standstill begins with the first request that waits in it.
        since = max(float(sent[is_open].min(initial=at)), float(ends[before - 1]) if before else 0.0)
        waited_s = float(np.median((done - sent)[rows_together]))
        is_jam = at - since >= least_s and waited_s >= least_s and count >= MOST * int(is_open.sum())
        if count < FEWEST or not is_jam:
            continue
        # Requests that fail one after the other, with no success between them, are of the same standstill.
        if last is None or ((successes > last) & (successes < at)).any():
            yield Jam(count, at - since)
        last = at
