"""More workers give more capacity.

**Means.** Capacity grows with the number of processes that do the work, as long as each has a core and no
resource that they share is full. The capacity of one process, times their number, predicts that of more.

**Needs.** Curves that differ in one factor, and in the number of working processes of the busiest service, at
least two of them saturated. The capacity of the largest, predicted from the smaller ones (each process as
much as there, at most what the cores allow for the CPU time of a request there), is what was measured, within
10 %.

**Ruled out by.** A load that never filled the larger ones: then the ratio is a property of the load. A
generator that was late. A ratio that misses the prediction: then something is shared (a lock, a database, the
cores of the generator), and more processes will bring less than this.

**Thresholds.** 10 %: a model with a larger error on a case that it has not seen must not be extrapolated; nor
may any model go beyond four times the largest count that was measured. So a prediction for more is known to
10 % at best, in addition to the noise of the trials. A process with less than half of the CPU of the busiest
is no worker but a front end or a supervisor.

**Do.** Run as many processes as the rate needs at 80 % utilisation, by Little's law: X D / 0.8, up to the
number of cores.

**Confirm.** Run a number of processes that was not measured: it reaches the predicted capacity.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from loadlens.diagnose import grading
from loadlens.diagnose.capacity import most_of
from loadlens.diagnose.driver import Claim, Lacking, Words, all_seen, assessing, strongest
from loadlens.diagnose.rules.network import accept_drops
from loadlens.estimate.interval import Insufficient, Interval
from loadlens.estimate.worker_scaling import TRUSTED_ERROR, bound, validate
from loadlens.measure import figures
from loadlens.measure.curve import Capacity, capacity_of, cores_of
from loadlens.model.facts import Curve, Facts, Step
from loadlens.model.finding import Estimate, Evidence, Grade, Prediction
from loadlens.present import numbers
from loadlens.present.numbers import percent, with_unit

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

    @property
    def stated(self) -> str:
        """The capacity as every sentence says it."""
        return most_of(self.curve, self.capacity).words


@dataclass(frozen=True, slots=True)
class Scaling:
    """Curves that differ in the number of workers: the smaller ones predict the largest."""

    fewer: tuple[Count, ...]
    most: Count
    each: float  # requests per second of one worker, from the smaller ones
    cores_bound: float  # requests per second at which the cores would be full; infinite: not known

    def rate_of(self, workers: int) -> float:
        """Return the most that so many workers do: each as much, all together what the cores allow."""
        return min(bound(workers, 1 / self.each), self.cores_bound)

    @property
    def first(self) -> Count:
        """The fewest workers."""
        return self.fewer[0]

    @property
    def predicted(self) -> Interval:
        """The capacity of the largest, from the smaller ones."""
        return self.fewer[-1].rate.scaled_to(self.rate_of(self.most.workers))


def observe(facts: Facts) -> Sequence[Scaling] | Lacking:
    """Return every set of curves with the same requests for different numbers of processes."""
    sets: dict[tuple[object, ...], list[Curve]] = {}
    for curve in facts.curves:
        if curve.is_closed and curve.steps:
            asked = tuple(kind.request for kind in curve.steps[-1].classes)
            for others in _other_factors(curve):
                sets.setdefault((asked, curve.think_s, curve.cores_allotted, others), []).append(curve)
    several = [curves for curves in sets.values() if len(curves) > 1]
    alike = several or [[curve] for curve in facts.curves]
    return all_seen(map(_scaling, alike), "needs two numbers of working processes")


def _other_factors(curve: Curve) -> list[tuple[object, ...]]:
    """Return, for each factor, its name and all others with their levels; empty if nothing was varied."""
    levels = curve.levels
    return [(name, *(level for level in levels if level[0] != name)) for name, _ in levels] or [()]


def _workers(step: Step) -> int:
    """Count the processes of the busiest service: another service is no worker, however busy."""
    busiest = max(step.processes, key=lambda process: process.cores, default=None)
    if busiest is None or busiest.cores <= 0:
        return 0
    same = [process for process in step.processes if process.service == busiest.service]
    return sum(process.cores >= LIKE_THE_BUSIEST * busiest.cores for process in same)


def _scaling(curves: Sequence[Curve]) -> Scaling | str:
    if len({_workers(curve.steps[-1]) for curve in curves} - {0}) < 2:
        if any(step.processes for curve in curves for step in curve.steps):
            return "needs two numbers of working processes, has one"
        return "needs the CPU of the service's processes: watch them with pid or start"
    counts: dict[int, Count] = {}
    short: list[str] = []
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
            counts[workers] = Count(curve, capacity, workers, _rate(curve, capacity))
    if len(counts) < 2:
        return "needs two numbers of working processes that are saturated" + (
            f"; {short[0]}" if short else ""
        )
    *fewer, most = (counts[workers] for workers in sorted(counts))
    each = sum(count.rate.point for count in fewer) / sum(count.workers for count in fewer)
    # By the CPU time of a request with fewer: by its own, a full machine predicts whatever it does.
    work, cores = fewer[-1].curve.work_all, cores_of(most.curve, most.capacity.top)
    cores_bound = cores / work.point if isinstance(work, Estimate) and work.point > 0 else math.inf
    return Scaling(tuple(fewer), most, each, cores_bound)


def _rate(curve: Curve, capacity: Capacity) -> Interval:
    """Return the capacity with the relative ends of the highest load's throughput."""
    most, top = most_of(curve, capacity).figure, figures.interval_of(capacity.top.throughput)
    point = most.point if isinstance(most, Estimate) else capacity.saturation.capacity
    if isinstance(top, Insufficient) or top.point <= 0:
        return Interval(point, None, None, 0.0, "median of the plateau")
    return top.scaled_to(point)


def claim(facts: Facts, scaling: Scaling) -> Claim:
    """Hold the largest capacity against the prediction from fewer processes."""
    first, most, predicted = scaling.first, scaling.most, scaling.predicted
    counts, top = (*scaling.fewer, most), most.capacity.top
    rates = ", ".join(f"{count.workers}: {_shown(count.rate.point)}" for count in counts)
    signals = [
        grading.stated(
            "workers.counts",
            True,
            text=f"saturated with {len(counts)} numbers of working processes ({rates})",
            chip=f"{len(counts)} numbers of processes",
        ),
        _ratio(scaling),
        _error(scaling),
    ]
    rivals = [
        grading.generator_rival(top),
        grading.shared_cores_rival(most.curve, top, facts.cores),
        grading.interference_rival(top, facts.cores),
    ]

    def words(_: Grade) -> Words:
        cores, twice = cores_of(most.curve, top), 2 * most.workers
        explanation = (
            f"One process does {_shown(scaling.each)}; from fewer {_shown(predicted.point)} was predicted."
        )
        if predicted.point >= (1 - NEAR) * scaling.cores_bound:
            explanation += f" The {cores:g} cores are the bound there: more processes bring nothing."
        plan = f"{_shown(UTILISATION * scaling.each)} per process ({percent(UTILISATION)} of what it"
        limit = f"; {cores:g} cores do {_shown(scaling.cores_bound)} at most, however many processes."
        if math.isinf(scaling.cores_bound):
            limit = ", as long as each has a core."
        return Words(
            statement=f"{most.workers} processes do {most.rate.point / first.rate.point:.2f} times what "
            f"{first.workers} does: {most.stated}, {first.stated}",
            explanation=explanation,
            advice=f"Plan {plan} can do){limit}",
            confirm=f"{twice} processes: {_shown(scaling.rate_of(twice))} at most",
            impact=0.0,  # nothing is lost by it
            scope=", ".join(count.curve.label for count in counts),
            predictions=_predictions(scaling, min(count.curve.trials for count in counts)),
        )

    return Claim(
        where=f"{first.curve.label}, {most.curve.label}",
        signals=signals,
        rivals=rivals,
        words=words,
        curves=tuple(count.curve.label for count in counts),
        cap=min(grading.cap_of(count.curve) for count in counts),
    )


def _ratio(scaling: Scaling) -> grading.Signal:
    """State the ratio to the capacity of the fewest, errors of both added in squares."""
    few, many = scaling.first.rate, scaling.most.rate
    point = many.point / few.point
    low: float | None = None
    high: float | None = None
    if few.low is not None and few.high is not None and many.low is not None and many.high is not None:
        low = point * (1 - math.hypot(many.low / many.point - 1, few.high / few.point - 1))
        high = point * (1 + math.hypot(many.high / many.point - 1, few.low / few.point - 1))
    text = f"{scaling.most.workers} processes do {point:.2f} times what {scaling.first.workers} does"
    chip = f"{point:.2f} times the capacity"
    return grading.Signal(Evidence("capacity.ratio", text, chip, point, low, high, None, True), True)


def _error(scaling: Scaling) -> grading.Signal:
    name, most = "prediction.error", scaling.most
    model = validate(scaling.predicted, most.rate, workers=most.workers, most_measured=most.workers)
    if isinstance(model, Insufficient):
        return grading.stated(name, None, text=model.reason)
    passed = abs(model.error) <= TRUSTED_ERROR
    text = (
        f"{_shown(scaling.predicted.point)} predicted for {most.workers} from fewer, "
        f"{_shown(most.rate.point)} measured ({numbers.signed_percent(model.error)}, "
        f"limit {percent(TRUSTED_ERROR)})"
    )
    chip = f"predicted within {percent(abs(model.error))}"
    evidence = Evidence(name, text, chip, model.error, None, None, TRUSTED_ERROR, passed)
    return grading.Signal(evidence, passed and model.is_covered)


def _shown(rate: float) -> str:
    return with_unit(rate, "1/s")


def _predictions(scaling: Scaling, trials: int) -> tuple[Prediction, ...]:
    """Predict twice the processes, where the model may extrapolate."""
    most, twice = scaling.most, 2 * scaling.most.workers
    model = validate(scaling.predicted, most.rate, workers=twice, most_measured=most.workers)
    if isinstance(model, Insufficient) or not model.may_extrapolate:
        return ()
    now, then = most.rate, most.rate.scaled_to(scaling.rate_of(twice))
    point, low, high = then.point, then.low, then.high
    # The model's own error is added to the noise of the trials, in squares.
    low = None if low is None else point * (1 - math.hypot(1 - low / point, TRUSTED_ERROR))
    high = None if high is None else point * (1 + math.hypot(high / point - 1, TRUSTED_ERROR))
    method = "as much for each process as was measured, at most what the cores allow"
    return (
        Prediction(
            f"most requests/s with {twice} processes",
            Estimate("throughput", "1/s", now.point, now.low, now.high, trials, 0, now.method),
            Estimate("throughput", "1/s", point, low, high, trials, 0, method),
        ),
    )


assess = assessing(ID, TITLE, observe, claim, choose=strongest)
