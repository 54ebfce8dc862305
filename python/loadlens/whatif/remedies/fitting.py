"""Which model of a cause reproduces a curve: fitted to its capacity, held against all of its levels.

What a cause limits is fitted to the capacity; that must agree with what was measured in another way (CPU
time, the time of a request alone, what the service says of its pools), and the levels between one user and
the last must come out as they were. Models that do so about equally well are all kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from loadlens import engine
from loadlens.model.facts import Step
from loadlens.model.finding import Estimate, Figure, NotMeasured
from loadlens.whatif.remedies.curve_facts import T_95, Known, SlowKnown, error_of
from loadlens.whatif.remedies.service_model import (
    LOAD,
    PROBE,
    Gate,
    LawKind,
    NoModel,
    Pause,
    Plant,
    Replica,
    Slow,
    model_of,
)

AGREES: Final = 0.15  # of a logarithm, beside the errors: two ways to one quantity may differ so much
MOST_MISS: Final = 0.15  # of a logarithm, root mean square over the levels, beyond the intervals
MOST_OF_ONE: Final = 0.35  # the same, of a single figure
MOST_PROBE_MISS: Final = 0.35  # a probe that is further off is not predicted
MOST_EXCUSED: Final = 0.15  # of a logarithm: so much of an interval's half excuses a miss
AS_GOOD, SLACK = 1.25, 0.01  # times the best miss, and so much more: nobody tells these apart
MOST_LEVELS: Final = 6
REQUESTS: Final = 1000  # simulated of each
SLOW_REQUESTS: Final = 100  # of these, on a slow path; for that up to so many times as many are simulated
MOST_TIMES: Final = 5
SEED: Final = 30

Cause = Literal["loop", "cores", "pool", "section", "replicas"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A model of a cause, before its times are known."""

    cause: Cause
    law: LawKind = "fixed"
    pause: Pause = "fixed"
    passes: int = 1
    policy: str = "least_connections"
    width: int = 1
    cores: float | None = None  # as many as a share allows; none: as known
    hold_s: float | None = None  # of a section, as the service says; none: not told
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
    misses: dict[str, float]  # "throughput", "response", "probe" -> root mean square of logarithms


def typical(known: Known) -> Values:
    """The measured quantities."""
    work = known.work.point if known.work is not None else 0.0
    if known.slow is None:
        return Values(known.most_per_s, known.alone.point, work)
    usual, longer = known.slow.usual.point, known.slow.longer.point
    return Values(known.most_per_s, known.alone.point, work, usual, longer)


def plant_of(candidate: Candidate, known: Known, values: Values) -> Plant:
    """Return the model of a candidate: what it limits gives just the measured capacity."""
    beside = known.beside
    rate = values.rate + (beside.per_s if beside is not None and beside.is_load else 0.0)
    cores = candidate.cores if candidate.cores is not None else known.cores
    speed = min(1.0, cores)
    plant = Plant(
        work_s=values.work,
        rest_s=0.0,
        cores=cores if known.work is not None else math.inf,
        aside_s=known.aside_s if known.work is not None and candidate.cores is None else 0.0,
        speed=speed,
        members=known.members,
        policy=candidate.policy,
        law=candidate.law,
        shape=known.shape,
        beside=beside,
    )
    match candidate.cause:
        case "loop" | "cores":
            if candidate.cause == "loop":
                plant = replace(plant, gate=Gate("loop", passes=candidate.passes, is_each=True))
                if beside is not None and not beside.is_load:
                    rate /= max(0.5, 1 - beside.per_s * beside.idle_s / 2 / plant.members)
            factor = plant.ceiling / rate
            work, aside = plant.work_s * factor, plant.aside_s * factor
            rest = max(0.0, values.alone - work / speed - aside)
            return replace(plant, work_s=work, aside_s=aside, rest_s=rest)
        case "pool":
            whole = candidate.width / rate
            gate = Gate("pool", candidate.width)
            if known.slow is None:
                return replace(plant, rest_s=max(0.0, whole - plant.work_s / speed), gate=gate)
            # The times of the usual ones are known far better than how many of a short level were slow.
            usual = max(0.0, values.usual - plant.aside_s)
            share = min(1.0, max(0.0, whole - usual) / values.longer)
            rest = max(0.0, usual - plant.work_s / speed)
            return replace(plant, rest_s=rest, gate=gate, slow=Slow(share, values.longer))
        case "replicas":
            whole = candidate.width / (values.rate * fullest(candidate.replicas))
            rest = max(0.0, whole - plant.work_s / speed)
            gate = Gate("pool", candidate.width, is_each=True)
            one = replace(plant, rest_s=rest, gate=gate, members=1, beside=None)
            return replace(one, replicas=candidate.replicas)
        case _:
            hold = candidate.width / rate
            rest = max(0.0, values.alone - plant.work_s / speed - plant.aside_s - hold)
            return replace(plant, rest_s=rest, gate=Gate("section", candidate.width, hold_s=hold))


def fullest(replicas: Sequence[Replica]) -> float:
    """Work that comes to the replica that is full first, of that of one request."""
    return max(one.share * one.slower for one in replicas)


def fit(known: Known, candidates: Sequence[Candidate]) -> Fitted:
    """Return which candidates reproduce the curve.

    Raises:
        NoModel: None does, by how much the closest misses it; or the capacity is not known.
    """
    known.must_be_reached()
    refused: list[str] = []
    scored: list[tuple[float, int, Candidate, dict[str, float]]] = []
    for place, candidate in enumerate(candidates):
        plant = plant_of(candidate, known, typical(known))
        why = _contradiction(candidate, known, plant)
        if why is not None:
            refused.append(why)
            continue
        misses, beyond = _misses(plant, known, candidate.pause)
        if beyond is not None:
            refused.append(beyond)
            continue
        score = math.sqrt(sum(m * m for m in misses.values()) / len(misses))
        scored.append((score, place, candidate, misses))
    if not scored:
        raise NoModel(refused[0] if refused else "no model of this cause")
    best = min(scored, key=lambda one: (round(one[0], 3), one[1]))
    near = [one for one in scored if one[0] <= AS_GOOD * best[0] + SLACK and one is not best]
    near.sort(key=lambda one: one[:2])
    return Fitted((best[2], *(one[2] for one in near)), best[3])


def simulated(
    plant: Plant,
    users: int,
    think_s: float,
    *,
    pause: Pause = "fixed",
    seed: int = SEED,
) -> dict[str, dict[str, Any]]:
    """Figures of the load and of the probe, by stream."""
    times = 1.0
    if plant.slow is not None and plant.slow.share > 0:
        times = min(MOST_TIMES, max(1.0, SLOW_REQUESTS / plant.slow.share / REQUESTS))
    requests = round(times * REQUESTS)
    outcome = engine.simulate(model_of(plant, users, think_s, pause=pause, requests=requests, seed=seed))
    return {stream["name"]: stream["all"] for stream in outcome["streams"]}


def _contradiction(candidate: Candidate, known: Known, plant: Plant) -> str | None:
    """Where the fitted quantity differs from what was measured of it in another way."""
    rate = known.most_per_s
    match candidate.cause:
        case "loop" | "cores":
            if known.work is None:
                return "the CPU time of a request is not known"
            told, fitted, allowed = known.work.point, plant.work_s, error_of(known.work)
            what = f"{rate:.4g}/s would take {_ms(fitted)} of CPU a request, {_ms(told)} were measured"
        case "pool" if known.slow is not None:
            mean = mean_with(known.slow)
            told, fitted, allowed = mean.point, candidate.width / rate, held_error(known)
            what = (
                f"{candidate.width} at once would answer {rate:.4g}/s if each took {_ms(fitted)}, "
                f"with the slow ones they take {_ms(told)} on average"
            )
        case "pool":
            told, fitted, allowed = known.alone.point, candidate.width / rate, error_of(known.alone)
            what = (
                f"{candidate.width} at once would answer {rate:.4g}/s if each took {_ms(fitted)}, "
                f"alone one takes {_ms(told)}"
            )
        case "replicas":
            told, fitted, allowed = known.alone.point, plant.alone_s - plant.aside_s, error_of(known.alone)
            what = (
                f"replicas of {candidate.width} at once would answer {rate:.4g}/s if each request took "
                f"{_ms(fitted)}, alone one takes {_ms(told)}"
            )
        case _:
            fitted = plant.gate.hold_s if plant.gate is not None else 0.0
            told = candidate.hold_s if candidate.hold_s is not None else min(fitted, known.alone.point)
            allowed = error_of(known.alone)
            what = f"{rate:.4g}/s would be {_ms(fitted)} under it each, {_ms(told)} were measured"
    if told <= 0:
        return what
    return what if abs(math.log(fitted / told)) > AGREES + 2 * allowed else None


def mean_with(slow: SlowKnown) -> Estimate:
    """How long a request takes on average, the slow ones among them, where nobody waits."""
    more = slow.share.point * slow.longer.point
    error = more * math.hypot(error_of(slow.share), error_of(slow.longer))
    error = math.hypot(error, slow.usual.point * error_of(slow.usual))
    point = slow.usual.point + more
    spread = math.exp(T_95 * error / point)
    method = "mean of the usual ones, and the share times the time longer"
    return replace(
        slow.usual, metric="response", point=point, low=point / spread, high=point * spread, method=method
    )


def held_error(known: Known) -> float:
    """Standard error of the logarithm of capacity times mean time: how many are held at once, at most."""
    assert known.slow is not None
    rate = error_of(known.rate) if isinstance(known.rate, Estimate) else 0.0
    return math.hypot(rate, error_of(mean_with(known.slow)))


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms"


def _misses(plant: Plant, known: Known, pause: Pause) -> tuple[dict[str, float], str | None]:
    """How far the simulated levels are from the measured ones, by kind; and why that is too far."""
    found: dict[str, list[float]] = {"throughput": [], "response": [], "probe": []}
    excused: list[float] = []
    worst = ""
    for step in _levels(known):
        figures = simulated(plant, round(step.load), known.curve.think_s, pause=pause)
        pairs: list[tuple[str, float | None, Figure]] = [
            ("throughput", figures[LOAD]["rate_per_s"], _rate(step)),
            ("response", figures[LOAD]["mean_s"], step.response.mean),
        ]
        if known.probe is not None and PROBE in figures:
            pairs.append(("probe", figures[PROBE]["mean_s"], _probe_mean(step, known.probe.label)))
        for kind, modelled, measured in pairs:
            if not modelled or not isinstance(measured, Estimate) or measured.point <= 0:
                continue
            off = abs(math.log(modelled / measured.point))
            found[kind].append(min(off, 1.0))
            if kind == "probe":
                continue
            half = min(MOST_EXCUSED, T_95 * error_of(measured))
            excused.append(max(0.0, off - half))
            if excused[-1] == max(excused):
                worst = (
                    f"at {step.load:g} users the model has a {_kind_words(kind)} of {modelled:.3g}, "
                    f"measured were {measured.point:.3g}"
                )
    misses = {
        kind: math.sqrt(sum(m * m for m in parts) / len(parts)) for kind, parts in found.items() if parts
    }
    if not excused:
        return misses, "no level can be compared"
    whole = math.sqrt(sum(m * m for m in excused) / len(excused))
    return misses, worst if whole > MOST_MISS or max(excused) > MOST_OF_ONE else None


def _kind_words(kind: str) -> str:
    return "throughput (1/s)" if kind == "throughput" else "mean (s)"


def _levels(known: Known) -> list[Step]:
    """At most so many levels, the first, the knee and the last among them."""
    steps = list(known.steps)
    if len(steps) <= MOST_LEVELS:
        return steps
    last = len(steps) - 1
    places = {round(i * last / (MOST_LEVELS - 1)) for i in range(MOST_LEVELS)} | {steps.index(known.knee)}
    return [steps[place] for place in sorted(places)]


def _rate(step: Step) -> Figure:
    """Throughput by Little's law, which no edge cuts, with the interval of the counted one."""
    rates, counted = step.throughput_trials, step.throughput
    point = sum(rates) / len(rates) if rates else 0.0
    if not isinstance(counted, Estimate):
        return Estimate("throughput", "1/s", point, None, None, step.trials, 0, "in flight over mean time")
    return replace(counted, point=point)


def _probe_mean(step: Step, label: str) -> Figure:
    probe = next((p for p in step.probes if p.label == label), None)
    return NotMeasured("probe", "no probe at this level") if probe is None else probe.response.mean


def varied(known: Known, *, of_cores: bool = False) -> Iterator[tuple[LawKind, Pause]]:
    """How the longest part and the pauses of users may vary; shared cores hardly care for the first."""
    pauses: tuple[Pause, ...] = ("fixed", "exponential") if known.curve.think_s > 0 else ("fixed",)
    usual: LawKind = "mixed" if known.shape else "fixed"
    for law in (usual,) if of_cores else (usual, "exponential"):
        for pause in pauses:
            yield law, pause
