"""Failures of trials without figures: ended because requests failed, or begun after the service broke.

How many failed, how, and what the service said of it holds whenever the load ended. Rates and times of
successes do not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from loadlens.measure.case import CaseMeasures
from loadlens.measure.requests import failures, jams
from loadlens.measure.requests.failures import Failure
from loadlens.measure.requests.log_rows import FOREVER_S
from loadlens.measure.source import streams_of
from loadlens.measure.trial import TrialMeasures
from loadlens.model.facts import EndedLevel
from loadlens.model.finding import Estimate
from loadlens.model.trial import TrialStatus
from loadlens.signals.read import log_lines

SERVED: Final = 0.99  # of the requests: the service supports that load


def ended_levels(cases: Sequence[CaseMeasures], kept: Sequence[CaseMeasures]) -> tuple[EndedLevel, ...]:
    """Return the levels with failures in trials that give no figures, ascending by load.

    Args:
        cases: Levels of one curve with all their trials.
        kept: Those that the curve is made of, with the trials that give figures.
    """
    used = {id(trial) for case in kept for trial in case.usable}
    success = next((case.quantile(0.5) for case in reversed(kept)), None)
    success_s = success.point if isinstance(success, Estimate) else None
    levels = [_level(case, [t for t in case.trials if _is_ended(t, used)], success_s) for case in cases]
    return tuple(sorted((level for level in levels if level), key=lambda level: level.load))


def _is_ended(trial: TrialMeasures, used: set[int]) -> bool:
    result = trial.source.result
    is_whole = trial.source.status in (TrialStatus.ABORTED, TrialStatus.COMPLETE)
    return (
        id(trial) not in used
        and is_whole
        and trial.external is None
        and result is not None
        and result.load is not None
        and not trial.damage
    )


def _level(case: CaseMeasures, trials: Sequence[TrialMeasures], success_s: float | None) -> EndedLevel | None:
    parts: list[Failure] = []
    for trial in trials:
        plans = streams_of(trial.source.plan)
        read = failures.read(trial.source, plans, 0.0, FOREVER_S)
        parts += [failure for failure in read if failure.stream == plans[0].name]
    if not parts:
        return None
    first = min(trial.source.began_unix_ns for trial in trials)
    modes = (failures.mode_of(alike, success_s) for alike in failures.by_way(parts).values())
    loads = [t.source.result.load for t in trials if t.source.result and t.source.result.load]
    return EndedLevel(
        load=streams_of(trials[0].source.plan)[0].load,
        issued=sum(part.count for part in parts) + sum(load.requests.ok for load in loads),
        failures=tuple(sorted(modes, key=lambda mode: -mode.count)),
        log_signs=log_lines.signs(failures.logs_of(t.source for t in trials), _answers(trials, parts)),
        jams=jams.of_trials([trial.source for trial in trials], success_s),
        served_before=sum(_served(t) for t in case.usable if t.source.began_unix_ns < first),
    )


def _served(trial: TrialMeasures) -> int:
    """Count the successes of a trial in which hardly a request failed."""
    if trial.load is None:
        return 0
    ok, failed = float(trial.load.ok.sum()), float(np.nansum(trial.load.not_ok))
    return int(ok) if ok >= SERVED * (ok + failed) else 0


def _answers(trials: Sequence[TrialMeasures], parts: Sequence[Failure]) -> Iterator[tuple[str, int]]:
    kept = [
        answer
        for trial in trials
        if trial.source.result is not None and trial.source.result.load is not None
        for answer in trial.source.result.load.failing_answers
    ]
    counts = Counter[int]()
    for part in parts:
        counts[part.status] += part.count
    return failures.texts_of(kept, counts)
