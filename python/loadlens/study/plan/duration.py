"""Estimates the duration of a study, and says where the estimate comes from.

A load that ends by time says how long it is. One that ends by a number of requests does not: its rate comes
from earlier trials on this machine, else from what was published of the case, else it is a guess, and the
estimate says which.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from loadlens.model.study import Case, Study, seconds_of
from loadlens.model.workload import Open
from loadlens.study.plan.trial_order import order

# What a trial costs besides its load, in seconds: guesses on the side of too long, for an estimate only.
AUTO_WARMUP_S: Final = 5.0
START_S: Final = 1.5  # a service until it is ready
STOP_S: Final = 0.5
SETUP_S: Final = 1.0
RESET_S: Final = 0.5
BRACKETS_S: Final = 1.0  # monitors up, requests in flight at the end, monitors down
SEAL_S: Final = 0.5  # parquet, digests, fsync
BUILD_S: Final = 20.0  # an environment that is not in the cache
# Of a load that ends by a number and of which nothing is known.
ANSWER_S: Final = 0.02  # a request
MOST_PER_S: Final = 1000.0  # requests: more users do not make a service faster without end


@dataclass(frozen=True, slots=True)
class PastTrial:
    """Duration of an earlier trial of the study on this machine."""

    slug: str  # of its case
    experiment: str
    per_s: float  # requests of the load a second, warm-up included
    overhead_s: float  # all that was not load: services, data, brackets, sealing


@dataclass(frozen=True, slots=True)
class Duration:
    """Seconds of the whole study, builds included, and what they rest on where that is not the file alone."""

    seconds: float
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Load:
    """Seconds of one trial's load, and where they come from."""

    seconds: float
    source: str  # time, seen, published, guess


def duration(study: Study, seen: Sequence[PastTrial] = ()) -> Duration:
    """Estimate the duration of the whole study.

    Args:
        study: As planned.
        seen: Earlier complete trials of the study on this machine.
    """
    total = 0.0 if seen else BUILD_S * _builds(study)
    started: set[tuple[object, ...]] = set()
    sources: Counter[str] = Counter()
    for trial in order(study):
        case = trial.case
        load = _load(study, case, seen)
        sources[load.source] += 1
        life = (case.fresh, trial.block if case.fresh == "block" else 0, case.services)
        starts = case.fresh == "trial" or life not in started
        started.add(life)
        similar = _of_case(case, seen)
        if similar:
            total += load.seconds + statistics.median(trial.overhead_s for trial in similar)
        else:
            total += load.seconds + _overhead_s(case, starts=starts)
    return Duration(total, _notes(sources, seen))


def load_seconds(case: Case) -> float:
    """Warm-up and measured part of one trial; a guess for one that ends by a number."""
    return _warmup_s(case) + min(_ends(case, _guessed_s(case)), default=0.0)


def _builds(study: Study) -> int:
    return len({(s.name, s.build) for case in study.cases for s in case.services if s.build})


def _overhead_s(case: Case, *, starts: bool) -> float:
    services = sum(_start_seconds(s.replicas, s.setup) for s in case.services) if starts else 0.0
    return BRACKETS_S + SEAL_S + (RESET_S if case.reset else 0.0) + services


def _start_seconds(replicas: int, setup: str | None) -> float:
    return START_S + 0.2 * (replicas - 1) + STOP_S + (SETUP_S if setup else 0.0)


def _notes(sources: Counter[str], seen: Sequence[PastTrial]) -> tuple[str, ...]:
    """Describe the origin of the estimate; empty if the file determines it."""
    words = {
        "seen": "as fast as in earlier runs here",
        "published": "as fast as published",
        "guess": f"guessed at {ANSWER_S * 1e3:g} ms an answer and at most {MOST_PER_S:,.0f} requests/s",
    }
    parts = [f"{sources[name]} {text}" for name, text in words.items() if sources[name]]
    notes = []
    if parts:
        ended = sum(sources[name] for name in words)
        notes.append(f"{ended} of {sources.total()} trials end by a number of requests: {'; '.join(parts)}")
    if seen:
        median = statistics.median(trial.overhead_s for trial in seen)
        notes.append(
            f"{median:.1f} s around the load of a trial, the median of {len(seen)} earlier trials here; "
            "builds are cached"
        )
    return tuple(notes)


# --- the load of a trial ----------------------------------------------------------------------------------


def _load(study: Study, case: Case, seen: Sequence[PastTrial]) -> _Load:
    guess = _guessed_s(case)
    if guess is None:
        return _Load(load_seconds(case), "time")
    similar = _of_case(case, seen) or [trial for trial in seen if trial.experiment == case.experiment]
    total = _requests(case)
    answer_s = _published_s(study, case)
    if similar and total is not None and (rate := statistics.median(trial.per_s for trial in similar)) > 0:
        by_number, source = total / rate, "seen"
    elif answer_s is not None:
        by_number, source = _paced_s(case, answer_s) or guess, "published"
    else:
        by_number, source = guess, "guess"
    ends = _ends(case, by_number)
    seconds = min(ends)
    is_by_time = case.duration_ns is not None and seconds == case.duration_ns / 1e9
    return _Load(_warmup_s(case) + seconds, "time" if is_by_time else source)


def _of_case(case: Case, seen: Sequence[PastTrial]) -> list[PastTrial]:
    return [trial for trial in seen if trial.slug == case.slug]


def _warmup_s(case: Case) -> float:
    if case.warmup_ns is not None:
        return case.warmup_ns / 1e9
    return AUTO_WARMUP_S if case.duration_ns is not None else 0.0


def _ends(case: Case, by_number: float | None) -> list[float]:
    ends = [case.duration_ns / 1e9] if case.duration_ns is not None else []
    return ends if by_number is None else [*ends, by_number]


def _requests(case: Case) -> float | None:
    """Requests after which a closed load ends; none when time, or a schedule, ends it."""
    workload = case.workload
    if isinstance(workload, Open):
        return None
    ends = [] if workload.iterations is None else [workload.users * workload.iterations * case.requests]
    if workload.requests is not None:
        ends.append(float(workload.requests))
    return min(ends, default=None)


def _guessed_s(case: Case) -> float | None:
    """Estimate the length of a load that ends by iterations or requests; `None` for others."""
    if isinstance(case.workload, Open):
        return _seconds_of_open(case.workload, case.requests)
    total, paced = _requests(case), _paced_s(case, ANSWER_S)
    return None if total is None or paced is None else max(paced, total / MOST_PER_S)


def _paced_s(case: Case, answer_s: float) -> float | None:
    """Seconds of a closed load that ends by a number, if each answer takes so long; of any pool as well."""
    workload, total = case.workload, _requests(case)
    if isinstance(workload, Open) or total is None:
        return None
    steps = case.requests
    iteration_s = steps * answer_s + case.pause_s + workload.think.mean_s
    if workload.pace is not None:
        iteration_s = max(iteration_s, workload.pace.mean_s)
    by_users = total / (workload.users * steps) * iteration_s
    shared = min(workload.users, case.connection.pool or workload.users)
    return max(by_users, total * answer_s / shared)


def _published_s(study: Study, case: Case) -> float | None:
    """Return the published mean response time of this case; `None` without one."""
    names = {step.name for scenario in case.scenarios for step in scenario.steps}
    for row in study.published.rows if study.published is not None else ():
        is_mean = row["metric"] == "response_time.mean" and row.get("side") == "client"
        is_of_all = not row.get("step") or {row["step"]} == names
        if is_mean and is_of_all and case.is_of(row) and (seconds := seconds_of(row)) is not None:
            return seconds
    return None


def _seconds_of_open(workload: Open, steps: float) -> float | None:
    """Estimate the length of an open load that ends by requests or with its file."""
    file_s = None if workload.replay is None else workload.replay.last_ns / 1e9
    if workload.requests is None:
        return file_s
    by_number = workload.requests / ((workload.rate_per_s or _mean_rate(workload)) * steps)
    return by_number if file_s is None else min(by_number, file_s)


def _mean_rate(workload: Open) -> float:
    """Iterations a second over the whole shape."""
    if workload.profile is not None:
        length_s = workload.profile.length_ns / 1e9
        return workload.profile.integral(length_s) / length_s
    assert workload.replay is not None, "an open load has one of the three"
    return workload.replay.arrivals / max(workload.replay.last_ns / 1e9, 1.0)
