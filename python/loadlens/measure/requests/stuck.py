"""Requests that got no answer while others did: open when the load ended, far longer than any answer took.

They stay open to the end of the trial, or end by our own time-out while the last answers are awaited.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from loadlens.measure.case import CaseMeasures
from loadlens.measure.requests.log_rows import seconds, stands_for, whole
from loadlens.measure.trial import TIMEOUT, StreamMeasures, TrialMeasures
from loadlens.model.facts import StuckWatch
from loadlens.model.trial import Outcome

TIMES: Final = 3.0  # as long as the longest answer of the trial
LEAST_S: Final = 1.0
IN_VAIN: Final = (Outcome.IN_FLIGHT, Outcome.TIMEOUT)
COLUMNS: Final = ("stream", "outcome", "sent_ns", "done_ns", "thinned")


def stuck(case: CaseMeasures) -> StuckWatch | None:
    """Return the requests of the load that were stuck in each trial; `None` without a log of requests."""
    load = case.reference
    if load is None:
        return None
    watched = [watch for trial in case.usable if (watch := _of_trial(trial, load)) is not None]
    if not watched:
        return None
    with_stuck = [watch for watch in watched if watch.counts[0]]
    return StuckWatch(
        counts=tuple(watch.counts[0] for watch in watched),
        age_s=min((watch.age_s for watch in with_stuck), default=0.0),
        longest_s=max(watch.longest_s for watch in watched),
        answered_since=min((watch.answered_since for watch in with_stuck), default=0),
    )


def _of_trial(trial: TrialMeasures, load: StreamMeasures) -> StuckWatch | None:
    engine = trial.source.result
    result = None if engine is None else engine.load
    if engine is None or result is None:
        return None
    longest = result.service_time_s.max or 0.0
    if not result.requests.in_flight and not result.errors.get(TIMEOUT):
        return StuckWatch((0,), 0.0, longest, 0)
    rows = trial.source.samples(COLUMNS)
    if not rows.height:
        return None
    rows = rows.filter(whole(rows, "stream") == load.plan.index)
    outcomes, sent, done = whole(rows, "outcome"), seconds(rows, "sent_ns"), seconds(rows, "done_ns")
    age, end_s = done - sent, engine.warmup_s + engine.measured_s
    was_open = np.isin(outcomes, IN_VAIN) & (sent >= 0) & (sent <= end_s) & (done >= end_s)
    is_stuck = was_open & (age >= max(LEAST_S, TIMES * longest))
    if not is_stuck.any():
        return StuckWatch((0,), 0.0, longest, 0)
    later = (outcomes == Outcome.OK) & (sent > sent[is_stuck].min())
    weights = stands_for(rows)
    count, since = (int(np.sum(weights[part])) for part in (is_stuck, later))
    return StuckWatch((count,), float(age[is_stuck].min()), longest, since)
