"""So many workers give so many times the capacity.

**Means.** Capacity grows with the number of processes that do the work, as long as each has a core and
nothing that they share is full. What one process can do, times their number, foretells what more will do.

**Needs.** Curves that differ in one factor, and in the number of working processes of the busiest service, at
least two of them saturated. The capacity
of the largest, foretold from the smaller ones (each process as much as there, at most what the cores allow
for the CPU time of a request there), is what was measured, within 10 %.

**Ruled out by.** A load that never filled the larger ones: then the ratio is a property of the load. A
generator that was late. A ratio that misses the prediction: then something is shared (a lock, a database, the
cores of the generator), and more processes will bring less than this.

**Thresholds.** 10 %: a model that misses what it has not seen by more must not be carried further; nor must
any model beyond four times the largest count that was measured. So a prediction for more is not known better
than to 10 %, beside the noise of the trials. A process with less than half of the CPU of the busiest is no
worker but a front or a supervisor.

**Do.** As many processes as the rate needs at 80 % use, by Little's law: X D / 0.8, up to the cores.

**Confirm.** A number of processes that was not measured: the capacity foretold for it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from loadlens.diagnose import grading
from loadlens.diagnose.rules.network import accept_drops
from loadlens.estimate.interval import Insufficient, Interval
from loadlens.estimate.worker_scaling import TRUSTED_ERROR, bound, validate
from loadlens.measure import figures
from loadlens.measure.curve import Capacity, capacity_of, cores_of
from loadlens.model.facts import Curve, Facts, Step
from loadlens.model.finding import (
    Absent,
    Counter,
    Estimate,
    Evidence,
    Finding,
    NotAssessed,
    Prediction,
)
from loadlens.present import numbers

ID = "scaling.workers"
TITLE = "more workers give more capacity"
EXPLAINS: tuple[str, ...] = ()

LIKE_THE_BUSIEST = 0.5  # of its CPU: a worker; less: a front, a supervisor
NEAR = 0.02  # of the bound by cores: there they are the limit
UTILISATION = 0.8


@dataclass(frozen=True, slots=True)
class Count:
    """One saturated curve and how many processes work on it."""

    curve: Curve
    capacity: Capacity
    workers: int
    rate: Interval


@dataclass(frozen=True, slots=True)
class Look:
    """Curves that differ in the number of workers: the smaller ones foretell the largest."""

    fewer: tuple[Count, ...]
    most: Count
    each: float  # requests per second of one worker, from the smaller ones
    predicted: Interval
    cores_bound: float  # requests per second at which the cores would be full; infinite: not known

    def rate_of(self, workers: int) -> float:
        """What so many workers do at most: each as much, all together what the cores allow."""
        return min(bound(workers, 1 / self.each), self.cores_bound)

    @property
    def first(self) -> Count:
        """The fewest workers."""
        return self.fewer[0]


def assess(facts: Facts) -> Finding | Absent | NotAssessed:
    """Look at every set of curves that is asked the same of different numbers of processes."""
    looks, lacks = grading.parted(_look(group) for group in _alike(facts.curves))
    if not looks:
        return NotAssessed(ID, TITLE, lacks[0] if lacks else "needs two numbers of working processes")
    findings = [f for look in looks if (f := _finding(facts, look)) is not None]
    if findings:
        return grading.strongest(findings)
    return Absent(ID, TITLE, _silence(facts, looks[0]))


def _alike(curves: Sequence[Curve]) -> list[list[Curve]]:
    """Closed curves of the same requests and pauses, which differ in one factor only."""
    found: dict[tuple[object, ...], list[Curve]] = {}
    for curve in curves:
        if curve.is_closed and curve.steps:
            asked = tuple(one.request for one in curve.steps[-1].classes)
            for others in _other_factors(curve):
                found.setdefault((asked, curve.think_s, curve.cores_allotted, others), []).append(curve)
    groups = [group for group in found.values() if len(group) > 1]
    return groups or [[curve] for curve in curves]


def _other_factors(curve: Curve) -> list[tuple[object, ...]]:
    """For each of its factors that one and all others with their levels; empty: nothing was varied."""
    levels = curve.levels
    return [(name, *(one for one in levels if one[0] != name)) for name, _ in levels] or [()]


def _workers(step: Step) -> int:
    """Processes of one service, the busiest one's: another service is no worker, however busy."""
    busiest = max(step.processes, key=lambda process: process.cores, default=None)
    if busiest is None or busiest.cores <= 0:
        return 0
    same = [process for process in step.processes if process.service == busiest.service]
    return sum(process.cores >= LIKE_THE_BUSIEST * busiest.cores for process in same)


def _look(curves: Sequence[Curve]) -> Look | str:
    counts: dict[int, Count] = {}
    short: list[str] = []
    several = {_workers(curve.steps[-1]) for curve in curves} - {0}
    if len(several) < 2:
        watched = any(step.processes for curve in curves for step in curve.steps)
        return (
            "needs two numbers of working processes, has one"
            if watched
            else "needs the CPU of the service's processes: watch them with pid or start"
        )
    for curve in curves:
        capacity = capacity_of(curve)
        workers = _workers(curve.steps[-1])
        if isinstance(capacity, Insufficient) or not workers:
            continue
        if capacity.saturation.verdict == "underdriven":
            short.append(f"{curve.label} never reached its capacity: {capacity.saturation.reason}")
        elif accept_drops.are_kept_waiting(curve, capacity.top):
            short.append(f"{curve.label} shows a lower bound: clients waited to ask for connections again")
        elif workers not in counts or len(curve.steps) > len(counts[workers].curve.steps):
            counts[workers] = Count(curve, capacity, workers, _rate(capacity))
    if len(counts) < 2:
        return "needs two numbers of working processes that are saturated" + (
            f"; {short[0]}" if short else ""
        )
    *fewer, most = (counts[workers] for workers in sorted(counts))
    each = sum(one.rate.point for one in fewer) / sum(one.workers for one in fewer)
    found = Look(tuple(fewer), most, each, fewer[-1].rate, _cores_bound(most, fewer[-1]))
    return replace(found, predicted=_scaled(fewer[-1].rate, found.rate_of(most.workers)))


def _rate(capacity: Capacity) -> Interval:
    """The capacity with the relative ends of the highest load's throughput."""
    point, top = capacity.saturation.capacity, figures.interval_of(capacity.top.throughput)
    if isinstance(top, Insufficient) or top.point <= 0:
        return Interval(point, None, None, 0.0, "median of the plateau")
    return _scaled(top, point)


def _scaled(interval: Interval, point: float) -> Interval:
    times = point / interval.point
    return replace(
        interval,
        point=point,
        low=None if interval.low is None else interval.low * times,
        high=None if interval.high is None else interval.high * times,
    )


def _no_surer(interval: Interval) -> Interval:
    """With what the model may miss beside the noise of the trials, errors added in squares."""
    point, low, high = interval.point, interval.low, interval.high
    return replace(
        interval,
        low=None if low is None else point * (1 - math.hypot(1 - low / point, TRUSTED_ERROR)),
        high=None if high is None else point * (1 + math.hypot(high / point - 1, TRUSTED_ERROR)),
    )


def _cores_bound(most: Count, fewer: Count) -> float:
    """By the CPU time of a request with fewer; by its own, a full machine foretells whatever it does."""
    work = fewer.curve.work_all
    cores = cores_of(most.curve, most.capacity.top)
    return cores / work.point if isinstance(work, Estimate) and work.point > 0 else math.inf


def _finding(facts: Facts, look: Look) -> Finding | None:
    signals, rivals = _signals(look), _rivals(facts, look)
    trials = min(look.most.curve.trials, *(one.curve.trials for one in look.fewer))
    cap = min(grading.cap_of(one.curve) for one in (look.most, *look.fewer))
    grade = grading.grade_of(signals, rivals, cap=cap)
    if grade is None:
        return None
    curves = tuple(one.curve.label for one in (*look.fewer, look.most))
    return Finding(
        rule=ID,
        grade=grade,
        impact=0.0,  # nothing is lost by it
        scope=", ".join(curves),
        statement=grading.statement(_statement(look)),
        explanation=_explanation(look),
        evidence=tuple(signal.evidence for signal in signals),
        counter=tuple(rivals),
        advice=_advice(look),
        confirm=_confirm(look),
        predictions=_predictions(look, trials),
        curves=curves,
    )


def _signals(look: Look) -> list[grading.Signal]:
    counted = ", ".join(f"{one.workers}: {_shown(one.rate.point)}" for one in (*look.fewer, look.most))
    told = validate(
        look.predicted, look.most.rate, workers=look.most.workers, most_measured=look.most.workers
    )
    if isinstance(told, Insufficient):
        error = grading.stated("prediction.error", None, text=told.reason)
    else:
        passed = abs(told.error) <= TRUSTED_ERROR
        text = (
            f"{_shown(look.predicted.point)} foretold of {look.most.workers} from fewer, "
            f"{_shown(look.most.rate.point)} measured ({numbers.signed_percent(told.error)}, "
            f"limit {numbers.percent(TRUSTED_ERROR)})"
        )
        chip = f"foretold within {numbers.percent(abs(told.error))}"
        evidence = Evidence("prediction.error", text, chip, told.error, None, None, TRUSTED_ERROR, passed)
        error = grading.Signal(evidence, passed and told.is_covered)
    return [
        grading.stated(
            "workers.counts",
            True,
            text=f"saturated with {len(look.fewer) + 1} numbers of working processes ({counted})",
            chip=f"{len(look.fewer) + 1} numbers of processes",
        ),
        _ratio(look),
        error,
    ]


def _ratio(look: Look) -> grading.Signal:
    """How many times the capacity of the fewest, errors of both added in squares."""
    few, many = look.first.rate, look.most.rate
    point = many.point / few.point
    low: float | None = None
    high: float | None = None
    if few.low is not None and few.high is not None and many.low is not None and many.high is not None:
        low = point * (1 - math.hypot(many.low / many.point - 1, few.high / few.point - 1))
        high = point * (1 + math.hypot(many.high / many.point - 1, few.low / few.point - 1))
    text = f"{look.most.workers} processes do {point:.2f} times what {look.first.workers} does"
    return grading.Signal(
        Evidence("capacity.ratio", text, f"{point:.2f} times the capacity", point, low, high, None, True),
        True,
    )


def _rivals(facts: Facts, look: Look) -> list[Counter]:
    top = look.most.capacity.top
    return [
        grading.generator_rival(top),
        grading.shared_cores_rival(look.most.curve, top, facts.cores),
        grading.interference_rival(top, facts.cores),
    ]


def _is_core_bound(look: Look) -> bool:
    return look.predicted.point >= (1 - NEAR) * look.cores_bound


def _shown(rate: float) -> str:
    return numbers.with_unit(rate, "1/s")


def _statement(look: Look) -> str:
    ratio = look.most.rate.point / look.first.rate.point
    return (
        f"{look.most.workers} processes do {ratio:.2f} times what {look.first.workers} does: "
        f"{_shown(look.most.rate.point)}, {_shown(look.first.rate.point)}"
    )


def _explanation(look: Look) -> str:
    text = f"One process does {_shown(look.each)}; from fewer {_shown(look.predicted.point)} was foretold."
    if _is_core_bound(look):
        cores = cores_of(look.most.curve, look.most.capacity.top)
        text += f" The {cores:g} cores are the bound there: more processes bring nothing."
    return text


def _advice(look: Look) -> str:
    plan = UTILISATION * look.each
    text = f"Plan {_shown(plan)} a process ({numbers.percent(UTILISATION)} of what it can do)"
    if math.isinf(look.cores_bound):
        return f"{text}, as long as each has a core."
    cores = cores_of(look.most.curve, look.most.capacity.top)
    return f"{text}; {cores:g} cores do {_shown(look.cores_bound)} at most, however many processes."


def _next(look: Look) -> int:
    return 2 * look.most.workers


def _confirm(look: Look) -> str:
    rate = look.rate_of(_next(look))
    return f"{_next(look)} processes: {_shown(rate)} at most"


def _predictions(look: Look, trials: int) -> tuple[Prediction, ...]:
    """Twice the processes, where the model has earned it."""
    told = validate(look.predicted, look.most.rate, workers=_next(look), most_measured=look.most.workers)
    if isinstance(told, Insufficient) or not told.may_extrapolate:
        return ()
    now = look.most.rate
    then = _no_surer(_scaled(now, look.rate_of(_next(look))))
    method = "as much for each process as was measured, at most what the cores allow"
    return (
        Prediction(
            f"most requests/s with {_next(look)} processes",
            Estimate("throughput", "1/s", now.point, now.low, now.high, trials, 0, now.method),
            Estimate("throughput", "1/s", then.point, then.low, then.high, trials, 0, method),
        ),
    )


def _silence(facts: Facts, look: Look) -> str:
    where = f"{look.first.curve.label}, {look.most.curve.label}"
    return grading.contradiction(where, _signals(look), _rivals(facts, look))
