"""Failures of trials without figures: ended because requests failed, or begun after the service broke.

How many failed, how, and what the service said of it holds whenever the load ended. Rates and times of
successes do not. When the last request succeeded is known as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Final

from loadlens.measure.case import CaseMeasures
from loadlens.measure.requests import failures, jams
from loadlens.measure.requests.failures import Failure
from loadlens.measure.requests.log_rows import FOREVER_S
from loadlens.measure.requests.shapes import life_of
from loadlens.measure.services import while_loaded
from loadlens.measure.source import TrialSource, streams_of
from loadlens.measure.trial import TrialMeasures
from loadlens.model.facts import EndedLevel, FailureMode, LostWatch
from loadlens.model.finding import Estimate
from loadlens.model.result import RequestCounts
from loadlens.model.trial import TrialStatus
from loadlens.signals.read import log_lines

SERVED: Final = 0.9  # of the requests that ended: the service supports that load


def ended_levels(cases: Sequence[CaseMeasures], kept: Sequence[CaseMeasures]) -> tuple[EndedLevel, ...]:
    """Return the levels with failures in trials that give no figures, ascending by load.

    Args:
        cases: Levels of one curve with all their trials.
        kept: Those that the curve is made of, with the trials that give figures.
    """
    used = {id(trial) for case in kept for trial in case.usable}
    success_s = _success_s(kept)
    levels = [_level([t for t in case.trials if _is_ended(t, used)], success_s) for case in cases]
    return tuple(sorted((level for level in levels if level), key=lambda level: level.load))


def lost(
    cases: Sequence[CaseMeasures], kept: Sequence[CaseMeasures], run: Sequence[TrialSource]
) -> LostWatch | None:
    """Return what became of requests from the trial on after which none succeeded.

    Args:
        cases: Levels of one curve with all their trials.
        kept: Those that the curve is made of, with the trials that give figures.
        run: All trials of the record, whatever they are for.

    Returns:
        None if a request succeeded later, or if no load as heavy was served, by the same processes.
    """
    trials = sorted(
        (trial for case in cases for trial in case.trials if _is_whole(trial) and _counts(trial).ended),
        key=lambda trial: trial.source.began_unix_ns,
    )
    last = life_of(trials[-1]) if trials else ""
    trials = [trial for trial in trials if life_of(trial) == last]
    since = list(takewhile(lambda trial: not _counts(trial).ok, reversed(trials)))
    before = [
        trial
        for trial in trials[: len(trials) - len(since)]
        if _counts(trial).ok >= SERVED * _counts(trial).ended
    ]
    if not since or not before:
        return None
    later = [trial for trial in run if trial.began_unix_ns > since[-1].source.began_unix_ns]
    lighter = [streams_of(trial.plan)[0].load for trial in later if _all_fail(trial, since[0].source)]
    lightest = min([*map(_load, since), *lighter])
    if max(map(_load, before)) < lightest or any(map(_has_succeeded, later)):
        return None
    parts = _failures(since)
    if not parts:
        return None
    mode = _modes(parts, _success_s(kept))[0]
    return LostWatch(
        load=lightest,
        served=sum(_succeeded(trial) for trial in run if _is_before(trial, since[-1].source)),
        failed=sum(_counts(trial).ended for trial in since),
        mode=mode,
        alike=sum(part.count for part in parts if part.status == mode.status),
        log_signs=log_lines.signs(failures.logs_of(t.source for t in since), _answers(since, parts)),
        calls=_calls_under_way(before, since),
        since_ns=since[-1].source.began_unix_ns,
    )


def _calls_under_way(before: Sequence[TrialMeasures], since: Sequence[TrialMeasures]) -> float | None:
    """Return the calls under way at a time beyond those of an idle service; none: not known of every port."""
    idle: dict[str, float] = {}
    for trial in before:
        for calls in trial.calls:
            if calls.rate > 0:
                idle[calls.to] = min(calls.before, idle.get(calls.to, calls.before))
    every = [{calls.to: calls.under_way.point for calls in trial.calls} for trial in since]
    if not idle or any(to not in each for each in every for to in idle):
        return None
    return max(sum(max(0.0, each[to] - least) for to, least in idle.items()) for each in every)


def _all_fail(trial: TrialSource, like: TrialSource) -> bool:
    """True if each user of a trial saw a failure, of the same requests to the same processes."""
    load = None if trial.result is None else trial.result.load
    if load is None or not _is_alike(trial, like):
        return False
    return load.requests.ok == 0 and load.requests.ended >= streams_of(trial.plan)[0].load


def _is_alike(trial: TrialSource, other: TrialSource) -> bool:
    load, its = streams_of(trial.plan)[0], streams_of(other.plan)[0]
    pids = [{process.pid for process in each.services} for each in (trial, other)]
    return (load.is_closed, load.steps) == (its.is_closed, its.steps) and pids[0] == pids[1]


def _is_before(trial: TrialSource, other: TrialSource) -> bool:
    return trial.began_unix_ns < other.began_unix_ns and _is_alike(trial, other)


def _succeeded(trial: TrialSource) -> int:
    load = None if trial.result is None else trial.result.load
    return 0 if load is None else load.requests.ok


def _has_succeeded(trial: TrialSource) -> bool:
    return _succeeded(trial) > 0


def _success_s(kept: Sequence[CaseMeasures]) -> float | None:
    medians = (case.quantile(0.5) for case in reversed(kept))
    return next((median.point for median in medians if isinstance(median, Estimate)), None)


def _is_ended(trial: TrialMeasures, used: set[int]) -> bool:
    return id(trial) not in used and _is_whole(trial)


def _is_whole(trial: TrialMeasures) -> bool:
    """True if what became of its requests is known, whether it ended early or not."""
    result = trial.source.result
    is_over = trial.source.status in (TrialStatus.ABORTED, TrialStatus.COMPLETE)
    return (
        is_over
        and trial.external is None
        and result is not None
        and result.load is not None
        and not trial.damage
    )


def _level(trials: Sequence[TrialMeasures], success_s: float | None) -> EndedLevel | None:
    parts = _failures(trials)
    if not parts:
        return None
    seen = while_loaded.seen_in(trials)
    return EndedLevel(
        load=_load(trials[0]),
        issued=sum(part.count for part in parts) + sum(_counts(trial).ok for trial in trials),
        failures=_modes(parts, success_s),
        log_signs=log_lines.signs(failures.logs_of(t.source for t in trials), _answers(trials, parts)),
        jams=jams.of_trials([trial.source for trial in trials], success_s),
        open_files=while_loaded.open_files(seen),
        ended_processes=while_loaded.ended_processes(seen),
    )


def _load(trial: TrialMeasures) -> float:
    return streams_of(trial.source.plan)[0].load


def _counts(trial: TrialMeasures) -> RequestCounts:
    assert trial.source.result is not None
    assert trial.source.result.load is not None
    return trial.source.result.load.requests


def _failures(trials: Sequence[TrialMeasures]) -> list[Failure]:
    """Return the failures of the load, from its begin on."""
    parts: list[Failure] = []
    for trial in trials:
        plans = streams_of(trial.source.plan)
        read = failures.read(trial.source, plans, 0.0, FOREVER_S)
        parts += [failure for failure in read if failure.stream == plans[0].name]
    return parts


def _modes(parts: Sequence[Failure], success_s: float | None) -> tuple[FailureMode, ...]:
    """Return the ways in which requests failed, the most frequent first."""
    modes = (failures.mode_of(alike, success_s) for alike in failures.by_way(parts).values())
    return tuple(sorted(modes, key=lambda mode: -mode.count))


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
