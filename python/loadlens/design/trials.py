"""The order of trials, and how long they will take."""

from __future__ import annotations

import hashlib
from typing import Final

from loadlens.model.study import Case, PlannedTrial, Study
from loadlens.model.workload import Open

# What a trial costs besides its load, in seconds: guesses on the side of too long, for an estimate only.
AUTO_WARMUP_S: Final = 5.0
START_S: Final = 1.5  # a service until it is ready
STOP_S: Final = 0.5
SETUP_S: Final = 1.0
RESET_S: Final = 0.5
BRACKETS_S: Final = 1.0  # monitors up, requests in flight at the end, monitors down
SEAL_S: Final = 0.5  # parquet, digests, fsync
BUILD_S: Final = 20.0  # an environment that is not in the cache
ANSWER_S: Final = 0.1  # a request, where a load ends by a number


def order(study: Study) -> tuple[PlannedTrial, ...]:
    """Every trial of a study, in the order to run.

    Complete blocks: each case once a block, in random order that follows from the seed. Held-out cases
    come after all the others, in blocks too: their predictions rest on everything measured before.
    """
    planned: list[PlannedTrial] = []
    for held_out in (False, True):
        cases = [case for case in study.cases if case.held_out is held_out]
        for block in range(1, max((case.trials for case in cases), default=0) + 1):
            due = [case for case in cases if case.trials >= block]
            if study.order_by == "blocks":
                due.sort(key=lambda case: _draw(study.seed, "order", str(block), case.slug))
            for case in due:
                seed = _draw(study.seed, "trial", str(block), case.slug)
                planned.append(PlannedTrial(case, block, len(planned) + 1, seed))
    return tuple(planned)


def _draw(seed: int, *purpose: str) -> int:
    """A number below 2^53 that follows from the seed and what it is for.

    From a digest and not from a generator, so that one more case leaves the numbers of the others alone.
    """
    digest = hashlib.sha256("/".join([str(seed), *purpose]).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 11


def estimated_seconds(study: Study) -> float:
    """How long the whole study will take, builds included; a guess to plan a day by."""
    total = BUILD_S * len({(s.name, s.build) for case in study.cases for s in case.services if s.build})
    started: set[tuple[object, ...]] = set()
    for trial in order(study):
        case = trial.case
        total += load_seconds(case) + BRACKETS_S + SEAL_S + (RESET_S if case.reset else 0.0)
        life = (case.fresh, trial.block if case.fresh == "block" else 0, case.services)
        if case.fresh == "trial" or life not in started:
            started.add(life)
            total += sum(_start_seconds(service.replicas, service.setup) for service in case.services)
    return total


def _start_seconds(replicas: int, setup: str | None) -> float:
    return START_S + 0.2 * (replicas - 1) + STOP_S + (SETUP_S if setup else 0.0)


def load_seconds(case: Case) -> float:
    """Warm-up and measured part of one trial."""
    warmup_s = AUTO_WARMUP_S if case.warmup_ns is None else case.warmup_ns / 1e9
    ends = [case.duration_ns / 1e9] if case.duration_ns is not None else []
    by_number = _seconds_by_number(case)
    ends += [by_number] if by_number is not None else []
    return warmup_s + min(ends, default=0.0)


def _seconds_by_number(case: Case) -> float | None:
    """How long a load that ends by iterations or requests may take; none when it does not."""
    workload = case.workload
    weight = sum(scenario.weight for scenario in case.scenarios) or 1.0
    steps = sum(s.weight * s.requests for s in case.scenarios) / weight or 1.0
    if isinstance(workload, Open):
        return _seconds_of_open(workload, steps)
    pauses_s = sum(s.weight * s.pause_s for s in case.scenarios) / weight
    iteration_s = steps * ANSWER_S + pauses_s + workload.think.mean_s
    if workload.pace is not None:
        iteration_s = max(iteration_s, workload.pace.mean_s)
    ends = [] if workload.iterations is None else [workload.iterations * iteration_s]
    if workload.requests is not None:
        ends.append(workload.requests / (workload.users * steps) * iteration_s)
    return min(ends, default=None)


def _seconds_of_open(workload: Open, steps: float) -> float | None:
    """How long an open load that ends by requests, or with its file, may take."""
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


__all__ = ["estimated_seconds", "load_seconds", "order"]
