"""Fit of models of a cause to a curve: fitted to its capacity, held against all of its levels.

The limit of a cause is fitted to the capacity; it must agree with what was measured in another way (CPU time,
the time of a request alone, the service's own report of its pools), and the model must reproduce the levels
between one user and the last. All models that do so about equally well are kept.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from loadlens.model.facts import Step
from loadlens.model.finding import Z_95, Estimate, Figure, NotMeasured
from loadlens.whatif.queueing import LOAD, Misses, NoModel, Times, Tried, as_good, simulate
from loadlens.whatif.remedies.curve_facts import Ladder, SlowShare, error_of
from loadlens.whatif.remedies.service_model import (
    PROBE,
    ExtraWait,
    LawKind,
    Limiter,
    Pause,
    Replica,
    ServiceModel,
    network_of,
)

AGREES: Final = 0.15  # of a logarithm, besides the errors: two ways to one quantity may differ by that
MOST_MISS: Final = 0.15  # of a logarithm, root mean square over the levels, beyond the intervals
MOST_OF_ONE: Final = 0.35  # the same, of a single figure
MOST_PROBE_MISS: Final = 0.35  # a probe that is further off is not predicted
MOST_EXCUSED: Final = 0.15  # of a logarithm: at most so much of an interval's half excuses a miss
MOST_LEVELS: Final = 6
REQUESTS: Final = 1000  # simulated of each
SLOW_REQUESTS: Final = 100  # of these, on a slow path; for that up to so many times as many are simulated
MOST_TIMES: Final = 5
SEED: Final = 30

Cause = Literal["loop", "cores", "pool", "section", "replicas"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A model of a cause, before its times are fitted."""

    cause: Cause
    law: LawKind = "fixed"
    pause: Pause = "fixed"
    passes: int = 1
    policy: str = "least_connections"
    width: int = 1
    cores: float | None = None  # as many as a share allows; none: those of the ladder
    hold_s: float | None = None  # of a section, as the service says; none: not reported
    replicas: tuple[Replica, ...] = ()


@dataclass(frozen=True, slots=True)
class Values:
    """The measured quantities as one model takes them."""

    rate: float  # the most requests per second
    alone: float
    work: float
    usual: float = 0.0  # of a request that does not take the slow path
    longer: float = 0.0  # of one that does


@dataclass(frozen=True, slots=True)
class Fitted:
    """Candidates that reproduce the curve, the best first, and how closely the best does."""

    candidates: tuple[Candidate, ...]
    misses: Misses


def typical(ladder: Ladder) -> Values:
    """Return the measured quantities."""
    values = Values(ladder.most_per_s, ladder.alone.point, 0.0 if ladder.work is None else ladder.work.point)
    if ladder.slow is None:
        return values
    return replace(values, usual=ladder.slow.usual.point, longer=ladder.slow.longer.point)


def service_of(candidate: Candidate, ladder: Ladder, values: Values) -> ServiceModel:
    """Return the model of a candidate: what it limits gives just the measured capacity."""
    probe = ladder.probe_load
    rate = values.rate + (probe.per_s if probe is not None and probe.is_load else 0.0)
    cores = candidate.cores if candidate.cores is not None else ladder.cores
    speed = min(1.0, cores)
    model = ServiceModel(
        work_s=values.work,
        rest_s=0.0,
        cores=cores if ladder.work is not None else math.inf,
        other_cpu_s=ladder.other_cpu_s if ladder.work is not None and candidate.cores is None else 0.0,
        speed=speed,
        members=ladder.members,
        policy=candidate.policy,
        law=candidate.law,
        shape=ladder.shape,
        probe_load=probe,
    )
    work = model.work_s / speed
    match candidate.cause:
        case "loop" | "cores":
            if candidate.cause == "loop":
                model = replace(model, limiter=Limiter("loop", passes=candidate.passes, is_each=True))
                if probe is not None and not probe.is_load:
                    rate /= max(0.5, 1 - probe.per_s * probe.idle_s / 2 / model.members)
            factor = model.ceiling / rate
            work_s, other_cpu_s = model.work_s * factor, model.other_cpu_s * factor
            rest = max(0.0, values.alone - work_s / speed - other_cpu_s)
            return replace(model, work_s=work_s, other_cpu_s=other_cpu_s, rest_s=rest)
        case "pool":
            whole = candidate.width / rate
            pool = replace(model, limiter=Limiter("pool", candidate.width))
            if ladder.slow is None:
                return replace(pool, rest_s=max(0.0, whole - work))
            # The times of the usual requests are far more precise than the slow share of a short level.
            usual = max(0.0, values.usual - model.other_cpu_s)
            share = min(1.0, max(0.0, whole - usual) / values.longer)
            return replace(pool, rest_s=max(0.0, usual - work), slow=ExtraWait(share, values.longer))
        case "replicas":
            whole = candidate.width / (values.rate * fullest(candidate.replicas))
            return replace(
                model,
                rest_s=max(0.0, whole - work),
                limiter=Limiter("pool", candidate.width, is_each=True),
                members=1,
                probe_load=None,
                replicas=candidate.replicas,
            )
        case _:
            hold = candidate.width / rate
            rest = max(0.0, values.alone - work - model.other_cpu_s - hold)
            return replace(model, rest_s=rest, limiter=Limiter("section", candidate.width, hold_s=hold))


def fullest(replicas: Sequence[Replica]) -> float:
    """Return the work that comes to the replica that is full first, over the work of one request."""
    return max(replica.share * replica.slower for replica in replicas)


def fit(ladder: Ladder, candidates: Sequence[Candidate]) -> Fitted:
    """Return the candidates that reproduce the curve.

    Raises:
        NoModel: None does, with how far the closest is off; or the capacity is not known.
    """
    ladder.must_be_reached()
    refused: list[str] = []
    tried: list[Tried[Candidate]] = []
    for place, candidate in enumerate(candidates):
        model = service_of(candidate, ladder, typical(ladder))
        why = _contradiction(candidate, ladder, model)
        compared = why or _misses(model, ladder, candidate.pause)
        if isinstance(compared, str):
            refused.append(compared)
        else:
            miss = _root_mean_square(compared.values())
            tried.append(Tried(candidate, place, miss, Misses(**compared)))
    if not tried:
        raise NoModel(refused[0] if refused else "no model of this cause")
    best = as_good(tried)
    return Fitted(tuple(each.candidate for each in best), best[0].misses)


def simulated(
    model: ServiceModel, users: int, think_s: float, *, pause: Pause = "fixed", seed: int = SEED
) -> dict[str, Times]:
    """Return figures of the load and of the probe, by stream."""
    times = 1.0
    if model.slow is not None and model.slow.share > 0:
        times = min(MOST_TIMES, max(1.0, SLOW_REQUESTS / model.slow.share / REQUESTS))
    network = network_of(model, users, think_s, pause=pause, requests=round(times * REQUESTS), seed=seed)
    return {name: stream.all for name, stream in simulate(network).items()}


def _contradiction(candidate: Candidate, ladder: Ladder, model: ServiceModel) -> str | None:
    """Return where the fitted quantity differs from another measurement of it."""
    rate, width = ladder.most_per_s, candidate.width
    measured, fitted, allowed = ladder.alone.point, width / rate, error_of(ladder.alone)
    match candidate.cause:
        case "loop" | "cores":
            if ladder.work is None:
                return "the CPU time of a request is not known"
            measured, fitted, allowed = ladder.work.point, model.work_s, error_of(ladder.work)
            what = f"{rate:.4g}/s would take {_ms(fitted)} of CPU a request, {_ms(measured)} were measured"
        case "pool" if ladder.slow is not None:
            measured, allowed = mean_with(ladder.slow).point, held_error(ladder)
            what = (
                f"{width} at once would answer {rate:.4g}/s if each took {_ms(fitted)}, "
                f"with the slow ones they take {_ms(measured)} on average"
            )
        case "pool":
            what = (
                f"{width} at once would answer {rate:.4g}/s if each took {_ms(fitted)}, "
                f"alone one takes {_ms(measured)}"
            )
        case "replicas":
            fitted = model.alone_s - model.other_cpu_s
            what = (
                f"replicas of {width} at once would answer {rate:.4g}/s if each request took "
                f"{_ms(fitted)}, alone one takes {_ms(measured)}"
            )
        case _:
            fitted = model.limiter.hold_s if model.limiter is not None else 0.0
            measured = candidate.hold_s if candidate.hold_s is not None else min(fitted, measured)
            what = f"{rate:.4g}/s would be {_ms(fitted)} under it each, {_ms(measured)} were measured"
    if measured > 0 and abs(math.log(fitted / measured)) <= AGREES + 2 * allowed:
        return None
    return what


def mean_with(slow: SlowShare) -> Estimate:
    """Return the mean time of a request on an idle service, slow ones included."""
    more = slow.share.point * slow.longer.point
    error = more * math.hypot(error_of(slow.share), error_of(slow.longer))
    error = math.hypot(error, slow.usual.point * error_of(slow.usual))
    point = slow.usual.point + more
    spread = math.exp(Z_95 * error / point)
    method = "mean of the usual ones, and the share times the time longer"
    return replace(
        slow.usual, metric="response", point=point, low=point / spread, high=point * spread, method=method
    )


def held_error(ladder: Ladder) -> float:
    """Return the standard error of the logarithm of capacity times mean time: the requests held at once."""
    assert ladder.slow is not None
    rate = error_of(ladder.rate) if isinstance(ladder.rate, Estimate) else 0.0
    return math.hypot(rate, error_of(mean_with(ladder.slow)))


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms"


def _misses(model: ServiceModel, ladder: Ladder, pause: Pause) -> dict[str, float] | str:
    """Return how far the simulated levels are from the measured ones, by kind; or why that is too far."""
    off: dict[str, list[float]] = {"throughput": [], "response": [], "probe": []}
    excused: list[float] = []
    worst = ""
    for step in _levels(ladder):
        figures = simulated(model, round(step.load), ladder.curve.think_s, pause=pause)
        pairs: list[tuple[str, float | None, Figure]] = [
            ("throughput", figures[LOAD].rate_per_s, _rate(step)),
            ("response", figures[LOAD].mean_s, step.response.mean),
        ]
        if ladder.probe is not None and PROBE in figures:
            pairs.append(("probe", figures[PROBE].mean_s, _probe_mean(step, ladder.probe.label)))
        for kind, modelled, measured in pairs:
            if not modelled or not isinstance(measured, Estimate) or measured.point <= 0:
                continue
            miss = abs(math.log(modelled / measured.point))
            off[kind].append(min(miss, 1.0))
            if kind == "probe":
                continue
            half = min(MOST_EXCUSED, Z_95 * error_of(measured))
            excused.append(max(0.0, miss - half))
            if excused[-1] == max(excused):
                what = "throughput (1/s)" if kind == "throughput" else "mean (s)"
                worst = (
                    f"at {step.load:g} users the model has a {what} of {modelled:.3g}, "
                    f"measured were {measured.point:.3g}"
                )
    if not excused:
        return "no level can be compared"
    if _root_mean_square(excused) > MOST_MISS or max(excused) > MOST_OF_ONE:
        return worst
    return {kind: _root_mean_square(parts) for kind, parts in off.items() if parts}


def _root_mean_square(values: Collection[float]) -> float:
    return math.sqrt(sum(value * value for value in values) / len(values))


def _levels(ladder: Ladder) -> list[Step]:
    """Return at most MOST_LEVELS levels and the knee, the first and the last among them."""
    steps = list(ladder.steps)
    if len(steps) <= MOST_LEVELS:
        return steps
    last = len(steps) - 1
    places = {round(i * last / (MOST_LEVELS - 1)) for i in range(MOST_LEVELS)} | {steps.index(ladder.knee)}
    return [steps[place] for place in sorted(places)]


def _rate(step: Step) -> Figure:
    """Return throughput by Little's law, which no edge cuts, with the interval of the counted throughput."""
    rates, counted = step.throughput_trials, step.throughput
    point = sum(rates) / len(rates) if rates else 0.0
    if not isinstance(counted, Estimate):
        return Estimate("throughput", "1/s", point, None, None, step.trials, 0, "in flight over mean time")
    return replace(counted, point=point)


def _probe_mean(step: Step, label: str) -> Figure:
    probe = next((p for p in step.probes if p.label == label), None)
    return NotMeasured("probe", "no probe at this level") if probe is None else probe.response.mean


def varied(ladder: Ladder, *, of_cores: bool = False) -> Iterator[tuple[LawKind, Pause]]:
    """Yield laws of the longest part and of the users' pauses; shared cores hardly depend on the first."""
    pauses: tuple[Pause, ...] = ("fixed", "exponential") if ladder.curve.think_s > 0 else ("fixed",)
    usual: LawKind = "mixed" if ladder.shape else "fixed"
    for law in (usual,) if of_cores else (usual, "exponential"):
        for pause in pauses:
            yield law, pause
