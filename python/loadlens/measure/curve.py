"""Capacity and knee of a load curve, and the processes that carry its load, as several rules need them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from loadlens.estimate import saturation as load
from loadlens.estimate.interval import Floats, Insufficient, Interval
from loadlens.estimate.over_trials import over_trials
from loadlens.measure.other_answers import first_cheaper
from loadlens.measure.thresholds import OTHERS_MATTER
from loadlens.model.facts import (
    Curve,
    EndedLevel,
    GeneratorWatch,
    ProcessWatch,
    ReceivedWatch,
    RequestClass,
    Step,
)
from loadlens.model.finding import Estimate, Figure, Undecided
from loadlens.model.quality import OwnCores

ONE_START = 0.01  # of a capacity: services differ by as much from one start to the next, and one is seen here
MOST_TAKEN = 0.5  # by the host: beyond, the capacity is unknown
WORKING_SHARE = 0.25  # of the busiest process: below, a process supervises or idles
STILL_MATTERS = 0.01  # of the time: p99 is then made by it, and throughput is lower by as much
LEAST_GROWTH = 1.25  # of throughput: below, work in proportion to it and constant work look the same
FIRST_WAIT_S = 1.0  # before a client asks for a connection again


@dataclass(frozen=True, slots=True)
class Capacity:
    """Highest throughput of a curve, and the step that shows it."""

    saturation: load.Saturation
    top: Step
    undisturbed: Step  # the highest on the plateau that other programs left alone; if none, the top
    alone_s: float | None
    alone_is_measured: bool  # at one user; else the CPU time of a request stands for it, a lower bound


def capacity_of(curve: Curve) -> Capacity | Insufficient:
    """Return whether a closed curve reached its capacity, and where its knee is."""
    if not curve.is_closed:
        return Insufficient("the load is open: nothing waits for an answer before it asks again")
    if (other := first_cheaper(curve)) is not None:
        share = f"{100 * other.share:.0f} % of the successes"
        return Insufficient(f"{share} at {other.step.load:g} users are other answers, which cost far less")
    usable = [step for step in curve.steps if step.throughput_trials and min(step.throughput_trials) > 0]
    alone, is_measured = alone_time(curve)
    steps = [load.Step(step.load, np.array(step.throughput_trials)) for step in usable]
    saturation = load.saturation(steps, alone_s=alone, think_s=curve.think_s)
    if isinstance(saturation, Insufficient):
        return saturation
    return Capacity(saturation, usable[-1], _undisturbed(curve, saturation, usable), alone, is_measured)


def _undisturbed(curve: Curve, saturation: load.Saturation, usable: Sequence[Step]) -> Step:
    most, top = OTHERS_MATTER * curve.cores_allotted, usable[-1]
    is_full = saturation.verdict != "underdriven"
    plateau = [step for step in usable if is_full and step.load >= saturation.plateau_from]
    return next((step for step in reversed(plateau) if used_by_others(curve, step) < most), top)


def others_of(step: Step) -> float | None:
    """Cores that other programs used, of all trials: one bad trial is not the level."""
    return step.other_cores if step.others_mean is None else step.others_mean


def plateau_figure(
    curve: Curve, capacity: Capacity, plateau: Sequence[Step], *, extra: Callable[[Step], float]
) -> Figure:
    """Return the capacity with its interval over all trials on the plateau: they are trials of the same.

    The interval is never narrower than a count is known (one request at each end of a trial), and 1 % is
    added in squares, as no trial says how the next start differs. Its upper end allows for what others took
    of the machine, for users who waited to ask for a connection again, and for what the last doubling of
    users still brought.

    Args:
        curve: The curve that reached its capacity.
        capacity: Its saturation.
        plateau: The levels whose trials measure the capacity.
        extra: Successes per second of a step that count towards the capacity in addition to the load's.
    """
    rates = np.array([rate + extra(step) for step in plateau for rate in step.throughput_trials])
    samples = sum((step.issued or 0) - step.failed_count for step in plateau)
    interval = over_trials(rates)
    if isinstance(interval, Insufficient):
        interval = _of_few(plateau, extra, rates)
    if isinstance(interval, Insufficient):
        return Undecided("capacity", "1/s", f"{interval.reason} on the plateau")
    low, high = (_half(interval, end, sum(rates) / max(1, samples)) for end in (interval.low, interval.high))
    return Estimate(
        "capacity",
        "1/s",
        interval.point,
        None if low is None else max(0.0, interval.point - low),
        None if high is None else (interval.point + high) * (1 + _short_of(curve, capacity, plateau)),
        rates.size,
        samples,
        f"{interval.method}, all levels on the plateau",
    )


def _half(interval: Interval, end: float | None, grain: float) -> float | None:
    """Return the distance of an end from the point, one request and the next start considered.

    A count is known to one request at each end of a trial, however well trials agree.
    """
    if end is None:
        return None
    return math.hypot(max(abs(end - interval.point), grain), ONE_START * interval.point)


def plateau_steps(curve: Curve, capacity: Capacity) -> list[Step]:
    """The levels that are trials of the capacity: those well beyond the knee, or else all on the plateau.

    Short of that the service still waits for a user now and then. The best level is the best by luck, too: a
    level within 10 % of it counts unless its trials show that it gives over 5 % less.
    """
    best, knee = max(succeeded(step) for step in curve.steps), capacity.saturation.knee
    well_beyond = math.inf if knee is None else load.BEYOND_KNEE * knee
    reached = min(capacity.saturation.plateau_from, well_beyond)
    sure = [step for step in curve.steps if succeeded(step) >= (1 - load.ON_PLATEAU) * best]
    plateau = [
        step
        for step in curve.steps
        if step.load >= reached and (step in sure or _may_be_on(sure, step, best))
    ]
    return [step for step in plateau if step.load >= well_beyond] or plateau


def _may_be_on(sure: Sequence[Step], step: Step, best: float) -> bool:
    """True for a level whose trials may give as much as those of the plateau, within 5 %."""
    if succeeded(step) < (1 - 2 * load.ON_PLATEAU) * best:
        return False
    tested = load.fall([np.array(each.throughput_trials) for each in sure], np.array(step.throughput_trials))
    return isinstance(tested, load.Fall) and not tested.is_real


def _of_few(
    plateau: Sequence[Step], extra: Callable[[Step], float], rates: Floats
) -> Interval | Insufficient:
    """Return an interval from the lowest end to the highest, for one or two trials with none between them."""
    rates_and_extra = [(step.throughput, extra(step)) for step in plateau]
    ends = [(rate.low, rate.high, more) for rate, more in rates_and_extra if isinstance(rate, Estimate)]
    if not ends or rates.size == 0:
        return Insufficient(f"{rates.size} trials without an interval")
    lows = [low + more for low, _, more in ends if low is not None]
    highs = [high + more for _, high, more in ends if high is not None]
    return Interval(
        float(rates.mean()),
        min(lows) if len(lows) == len(ends) else None,
        max(highs) if len(highs) == len(ends) else None,
        float(rates.size),
        next(rate.method for rate, _ in rates_and_extra if isinstance(rate, Estimate)),
    )


def _short_of(curve: Curve, capacity: Capacity, plateau: Sequence[Step]) -> float:
    """Return by how much the service may exceed what was measured, as a share of it.

    What others took while it was measured. What users might bring who waited to ask for a connection again:
    throughput is concave in the users, so that without a share of them it keeps what is left of 1, or more.
    And what more users might still bring: throughput that comes near its limit as N / (N + m) has before it
    just what the last doubling of N brought.
    """
    trials = [max(1, len(step.throughput_trials)) for step in plateau]
    at_once = max(1.0, capacity.saturation.knee or 1.0)
    shares = [_taken(curve, step, at_once) + _kept_back(step) for step in plateau]
    taken = sum(n * share for n, share in zip(trials, shares, strict=True)) / sum(trials)
    return taken + max(0.0, capacity.saturation.gain_per_doubling)


def _taken(curve: Curve, step: Step, at_once: float) -> float:
    """Return the share of the service's time that host, generator and other programs took.

    Of what programs used only what the service waited for and what was left of its cores, and of that only
    what delayed requests that succeeded.

    Args:
        curve: The curve.
        step: A level on its plateau.
        at_once: Requests that are at work there at once, by Little's law; no service is narrower than one.
    """
    stolen = min(MOST_TAKEN, step.steal_mean or 0.0)
    waited, ended = cores_waited(step), completed(step)
    lost = 0.0
    if waited is not None and ended > 0:
        own = 0.0 if curve.shares_cores is False else step.generator.cpu_cores or 0.0
        room = max(0.0, cores_of(curve, step) - step.server_cores)
        missed = min(waited, (step.others_mean or 0.0) + own, room)
        lost = missed * succeeded(step) / ended / max(at_once, step.server_cores)
    return stolen / (1 - stolen) + lost


def _kept_back(step: Step) -> float:
    """Return the share of the throughput that users lost who waited to ask for a connection again."""
    waited = min(MOST_TAKEN, waited_to_ask(step) or 0.0)
    return waited / (1 - waited)


def waited_to_ask(step: Step) -> float | None:
    """Share of the response time in which clients waited to ask for a connection again, at least.

    Each waits a second or more; none: it is not known who did.
    """
    watch, mean = step.connections, step.response.mean
    if watch is None or watch.resent is None or not watch.connects or not watch.answered:
        return None
    if not isinstance(mean, Estimate) or mean.point <= 0:
        return None
    opens = watch.opened / watch.answered
    return min(1.0, watch.resent / watch.connects * opens * FIRST_WAIT_S / mean.point)


def alone_time(curve: Curve) -> tuple[float | None, bool]:
    """Mean response time of a user who is alone, and whether it was measured at one user."""
    first = curve.steps[0] if curve.steps else None
    if first is not None and first.load == 1 and isinstance(first.response.mean, Estimate):
        return first.response.mean.point, True
    if isinstance(curve.work_all, Estimate):
        return curve.work_all.point, False
    return None, False


def working(step: Step) -> list[ProcessWatch]:
    """The processes that carry the load of a step: those of the service whose process computes most.

    What it calls, or what stands before it, is another service: it computes for the same requests.
    """
    busiest = max(step.processes, key=lambda process: process.cores, default=None)
    if busiest is None or busiest.cores <= 0:
        return []
    own = [process for process in step.processes if process.service == busiest.service]
    return [process for process in own if process.cores >= WORKING_SHARE * busiest.cores]


def waits_for_cores(step: Step) -> float | None:
    """Time for which the service's threads waited for a core, over the time that they ran; none: not read."""
    waited = [p.waiting.point for p in step.processes if isinstance(p.waiting, Estimate)]
    if not waited or step.server_cores <= 0:
        return None
    return sum(waited) / step.server_cores


def requests_wait(step: Step) -> float | None:
    """Share of the time that requests are under way in which they wait for a core; none: not known."""
    waited = [p.waiting.point for p in step.processes if isinstance(p.waiting, Estimate)]
    flying = step.in_flight
    if not waited or not isinstance(flying, Estimate) or flying.point <= 0:
        return None
    return sum(waited) / flying.point


def completed(step: Step) -> float:
    """Requests of the load per second, mean over trials; 0: none was counted."""
    return _mean(step.completed_trials)


def succeeded(step: Step) -> float:
    """Successes of the load per second, mean over trials; 0: none was counted."""
    return _mean(step.throughput_trials)


def _mean(values: tuple[float, ...]) -> float:
    return sum(values) / len(values) if values else 0.0


def failed_share(step: Step | EndedLevel) -> float:
    """Share of the requests of the load that did not end as expected."""
    return step.failed_count / step.issued if step.issued else 0.0


def coming_share(received: ReceivedWatch | None) -> float | None:
    """Share of a request's time between the first and the last byte of its answer; none: not recorded."""
    coming, waited = (None, None) if received is None else (received.coming, received.waited)
    if not isinstance(coming, Estimate) or not isinstance(waited, Estimate):
        return None
    whole = coming.point + waited.point
    return coming.point / whole if whole > 0 else 0.0


def held_together(curve: Curve, step: Step) -> OwnCores | None:
    """Use of the cores that generator and services together are held to; none: they are not."""
    own = step.quality.own_cores
    return own if own is not None and curve.shares_cores and own.cores == curve.cores_allotted else None


def used_by_others(curve: Curve, step: Step) -> float:
    """Cores that programs of others used: what no process is known for, less the soft interrupts.

    Where generator and services together are held to some cores, what is used elsewhere takes none of them.
    """
    used, own = (step.other_cores or 0.0) - (step.quality.soft_cores or 0.0), held_together(curve, step)
    if own is not None:
        used = min(used, own.busy - own.lab - step.server_cores)
    return max(0.0, used)


def others_without_load(curve: Curve, first: Step, last: Step) -> float | None:
    """Return the cores that others would use without any load, by a line through two levels of throughput.

    None where their throughputs hardly differ. A part of the service that no process is known for would use
    none; a neighbour, whatever it does, uses as much at any load.
    """
    done = completed(first)
    growth = completed(last) / done if done > 0 else 0.0
    before, now = used_by_others(curve, first), used_by_others(curve, last)
    return before - (now - before) / (growth - 1) if growth >= LEAST_GROWTH else None


def cores_of(curve: Curve, step: Step) -> float:
    """Cores that the services may use: their CPU sets, and the quotas of their control groups together."""
    quotas = [quota.cores for quota in step.quotas]
    limits = [cores for cores in quotas if cores is not None]
    is_every = {process.service for process in step.processes} <= {quota.service for quota in step.quotas}
    is_known = bool(limits) and len(limits) == len(quotas) and is_every
    return min(curve.cores_allotted, sum(limits)) if is_known else curve.cores_allotted


def costliest_class(curve: Curve, step: Step) -> RequestClass | None:
    """Return the class of requests that is costliest alone, as it is at a level; else the longest there."""
    return next((each for each in step.classes if each.label == curve.costliest), step.longest_class())


def cores_used(step: Step) -> Interval | Insufficient:
    """Cores that all processes of the services use; errors added in squares."""
    cpus = [process.cpu for process in step.processes if isinstance(process.cpu, Estimate)]
    if not cpus:
        return Insufficient("needs the CPU of the service's processes: watch them with pid or start")
    point = sum(cpu.point for cpu in cpus)
    lows = [cpu.point - cpu.low for cpu in cpus if cpu.low is not None]
    highs = [cpu.high - cpu.point for cpu in cpus if cpu.high is not None]
    return Interval(
        point,
        max(0.0, point - math.hypot(*lows)) if len(lows) == len(cpus) else None,
        point + math.hypot(*highs) if len(highs) == len(cpus) else None,
        float(cpus[0].samples),
        "sum over processes",
    )


def cores_waited(step: Step) -> float | None:
    """Threads of the services that were ready to run and waited for a core, on average; none: not read."""
    waited = [p.waiting.point for p in step.processes if isinstance(p.waiting, Estimate)]
    return sum(waited) if waited and len(waited) == len(step.processes) else None


def waiting_share(curve: Curve, capacity: Capacity) -> float:
    """Share of a user's response time at the highest load that is waiting, by Little's law."""
    response = capacity.top.load / capacity.saturation.capacity - curve.think_s
    if response <= 0:
        return 0.0
    alone = capacity.alone_s or 0.0
    return max(0.0, min(1.0, 1 - alone / response))


def stood_still(watch: GeneratorWatch) -> bool:
    """True if the generator stood still for long enough to matter to figures."""
    return watch.stood_still is not None and watch.stood_still > STILL_MATTERS


def generator_in_time(watch: GeneratorWatch) -> bool | None:
    """True if requests were sent as they were due; none when that is not known.

    A generator that waited for a core is in time as long as its lag stays within the limit that the response
    times set. Of one that stood still a little it is not known: users who wait for responses are never late.
    """
    if watch.verdict == "kept_up":
        return True
    if watch.verdict in ("limit", "stood_still"):
        return False
    if stood_still(watch):
        return None
    if watch.lag_p99_s is None or watch.lag_limit_s is None:
        return None
    return watch.lag_p99_s <= watch.lag_limit_s
