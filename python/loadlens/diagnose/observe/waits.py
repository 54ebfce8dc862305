"""What several rules ask of a service that is full and does not compute: whether its CPU has room, who
waits, and how many requests are let through at once.

A full service is looked at on its plateau, where the last users brought nothing. Medians compare waits: a
pause now and then, or a slow path that few take, moves them little.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Lacking, Nothing
from loadlens.estimate import probes
from loadlens.estimate.interval import Insufficient, Interval
from loadlens.measure import figures
from loadlens.measure.curve import Capacity, capacity_of
from loadlens.measure.thresholds import FULL_CORES, IDLE_CPU, SATURATED, THROTTLED
from loadlens.model.facts import (
    Curve,
    Facts,
    FailureMode,
    ProbeWatch,
    RequestClass,
    Step,
    Times,
)
from loadlens.model.finding import Counter, Estimate, Figure
from loadlens.present import numbers, words

SEVERAL = 1.5  # cores of a process: up to there one full thread may hide among others
ALL_WAIT = 0.5
HELD_UP = 0.2  # of the probes
MOSTLY = 0.5
MOST_FAILED = 0.01
FAST = 0.5  # of the time of a success
REFUSALS = (429, 503)
ERROR = 400  # and above
RISES = 2.0  # times the share at the lowest load: errors that were there before make no plateau
LARGE_BYTES = 16 * 1024  # an answer takes 1.3 ms on a link of 100 Mbit/s


@dataclass(frozen=True, slots=True)
class Full:
    """A closed curve that reached its capacity."""

    curve: Curve
    capacity: Capacity
    steps: tuple[Step, ...]  # on the plateau, ascending
    alone: Figure  # mean response time of one user
    parallelism: Interval | Insufficient  # W = X R1, requests at once

    @property
    def top(self) -> Step:
        """The highest load."""
        return self.steps[-1]

    @property
    def rate(self) -> Interval | Insufficient:
        """Successes per second there."""
        return rate_of(self.top)

    @property
    def most(self) -> str:
        """The same in words; `no more`: not known."""
        return numbers.with_unit(self.rate.point, "1/s") if isinstance(self.rate, Interval) else "no more"

    @property
    def waiting_share(self) -> float:
        """Share of the response time there that is waiting."""
        mean = self.top.response.mean
        if not isinstance(mean, Estimate) or not isinstance(self.alone, Estimate) or mean.point <= 0:
            return 0.0
        return max(0.0, min(1.0, 1 - self.alone.point / mean.point))


@dataclass(frozen=True, slots=True)
class Waits:
    """How a probe and the load wait at one level."""

    step: Step
    probe: ProbeWatch
    dear: RequestClass
    probe_s: float
    load_s: float
    coupling: Interval  # the first over the second


@dataclass(frozen=True, slots=True)
class NoPlateau:
    """A curve that was looked at and did not reach its capacity."""

    reason: str


def full(curve: Curve) -> Full | NoPlateau | Insufficient:
    """Return the plateau of a curve, that it has none, or why that is not known."""
    capacity = capacity_of(curve)
    if isinstance(capacity, Insufficient):
        return capacity
    found = capacity.saturation
    if found.verdict == "underdriven":
        return NoPlateau(f"no plateau on {curve.label}: {found.reason}")
    measured = [s for s in curve.steps if s.throughput_trials and min(s.throughput_trials) > 0]
    steps = tuple(s for s in measured if s.load >= found.plateau_from)
    return Full(curve, capacity, steps, curve.steps[0].response.mean, _parallelism(curve, steps[-1]))


def plateaus(facts: Facts) -> tuple[Full, ...] | NoPlateau | Insufficient:
    """Return all curves with a plateau; where none has one, the first reason."""
    looked = [full(curve) for curve in sorted(facts.curves, key=lambda curve: -len(curve.steps))]
    known = tuple(one for one in looked if isinstance(one, Full))
    if known:
        return known
    missed = next((one for one in looked if isinstance(one, NoPlateau)), None)
    lack = next((one for one in looked if isinstance(one, Insufficient)), Insufficient("no load curve"))
    return missed or lack


def without_plateau(lack: NoPlateau | Insufficient) -> Lacking | Nothing:
    """Say why a rule about a full service has nothing to look at."""
    return Nothing(lack.reason) if isinstance(lack, NoPlateau) else Lacking(lack.reason)


def rate_of(step: Step) -> Interval | Insufficient:
    """Successes per second; a count is known to one at each end of a trial, however well trials agree."""
    rate = figures.interval_of(step.throughput)
    if isinstance(rate, Insufficient) or not step.issued:
        return rate
    answers = step.issued - step.failed_count
    grain = sum(step.throughput_trials) / answers if answers > 0 else 0.0
    low = None if rate.low is None else max(0.0, min(rate.low, rate.point - grain))
    high = None if rate.high is None else max(rate.high, rate.point + grain)
    return replace(rate, low=low, high=high)


def _parallelism(curve: Curve, top: Step) -> Interval | Insufficient:
    first = curve.steps[0]
    if first.load != 1:
        return Insufficient("the response time of one user alone was not measured")
    rate, alone = rate_of(top), figures.interval_of(first.response.mean)
    if isinstance(rate, Insufficient):
        return rate
    return alone if isinstance(alone, Insufficient) else probes.parallelism(rate, alone)


# --- who waits --------------------------------------------------------------------------------------------


def waits(found: Full) -> tuple[Waits, ...] | str:
    """Return how probes and the load wait at the levels of the plateau, or why that is not known."""
    curve = found.curve
    first = curve.steps[0]
    if first.load != 1:
        return "needs a level of one user: what requests take alone"
    if not any(step.probes for step in found.steps):
        return "needs a probe: a thin stream of cheap requests beside the load"
    if all(_usable(step) is None for step in found.steps):
        return "needs a probe of another kind than the load, sent in time"
    looked = [_waits(step, first, curve.dearest) for step in found.steps]
    known = tuple(one for one in looked if isinstance(one, Waits))
    return known or next((one for one in looked if isinstance(one, str)), "no level of the plateau")


def _waits(step: Step, first: Step, dearest: str) -> Waits | str:
    probe = _usable(step)
    dear = _class(step, dearest)
    alone = _class(first, dearest)
    if probe is None or probe.idle_s is None or dear is None or alone is None:
        return "the probe or the load was not answered"
    watched = _middle(probe.response)
    loaded, calm = _middle(dear.response), _middle(alone.response)
    if isinstance(watched, Insufficient):
        return watched.reason
    if isinstance(loaded, Insufficient):
        return loaded.reason
    if isinstance(calm, Insufficient):
        return calm.reason
    compared = probes.waiting(watched, probe.idle_s, loaded, calm.point)
    if isinstance(compared, Insufficient):
        return compared.reason
    return Waits(step, probe, dear, max(0.0, compared.probe_s), compared.expensive_s, compared.coupling)


def _class(step: Step, label: str) -> RequestClass | None:
    return next((one for one in step.classes if one.label == label), None)


def _usable(step: Step) -> ProbeWatch | None:
    """The probe that waits least; one that asks what the load asks says nothing of others."""
    asked = {one.request for one in step.classes}
    usable = [
        probe
        for probe in step.probes
        if probe.request not in asked
        and not probe.is_late
        and probe.idle_s is not None
        and isinstance(probe.response.mean, Estimate)
    ]
    return min(usable, key=lambda probe: figures.point(probe.response.mean), default=None)


def _middle(times: Times) -> Interval | Insufficient:
    """The median; the mean, where there is none."""
    found = figures.interval_of(times.p50)
    return figures.interval_of(times.mean) if isinstance(found, Insufficient) else found


def coupling_text(one: Waits, limit: str) -> str:
    """`ping waits 0.1 ms at 8 users, 0.01 of what work waits (0.00-0.02; limit 0.2)`."""
    return (
        f"at {words.users(one.step.load)} {one.probe.label} waits {numbers.with_unit(one.probe_s, 's')}, "
        f"{one.coupling.point:.2f} of what {one.dear.label} waits"
        f"{numbers.ends(one.coupling.low, one.coupling.high, limit)}"
    )


# --- the CPU ----------------------------------------------------------------------------------------------


def cpu_signal(facts: Facts, curve: Curve, step: Step) -> grading.Signal:
    """The service has CPU to spare, so its requests wait for something else.

    Computing and waiting for a core count alike: who is kept from a core would compute. Without processes the
    whole machine speaks for the service, where it uses less than one core beside the generator.
    """
    for quota in step.quotas:
        if isinstance(quota.throttled, Estimate) and quota.throttled.point > THROTTLED:
            text = f"its quota stops it in {numbers.percent(quota.throttled.point)} of the periods"
            return grading.stated("cpu.room", False, text=f"{text} (limit {numbers.percent(THROTTLED)})")
    if step.processes:
        return _of_processes(curve, step)
    host = step.host_cpu
    if not curve.is_here or not isinstance(host, Estimate):
        return grading.stated("cpu.room", None, text="the CPU of the service was not read: name its process")
    used = max(0.0, host.point - (step.generator.cpu_cores or 0.0))
    text = (
        f"beside the generator the machine uses {used:.2f} of {facts.cores} cores, "
        f"one busy thread alone would use {SATURATED}"
    )
    return grading.stated(
        "cpu.room", True if used < SATURATED else None, text=text, chip=f"{used:.2f} cores used in all"
    )


def _of_processes(curve: Curve, step: Step) -> grading.Signal:
    unread = [process for process in step.processes if not isinstance(process.cpu, Estimate)]
    wanted, loop, masked = 0.0, 0.0, 0.0
    for process in step.processes:
        occupied = process.occupied.point if isinstance(process.occupied, Estimate) else process.cores
        wanted += occupied
        if process.hot_threads is not None and process.hot_threads <= 1:
            loop = max(loop, occupied)
        elif SATURATED <= occupied <= SEVERAL:
            masked = max(masked, occupied)
    share = wanted / curve.cores_allotted
    text = (
        f"the service computes, or waits to, for {wanted:.2f} of {curve.cores_allotted:g} cores "
        f"(limit {numbers.percent(IDLE_CPU)})"
    )
    if loop >= SATURATED:
        text = (
            f"one thread computes {numbers.percent(min(1.0, loop))} of the time (limit "
            f"{numbers.percent(SATURATED)})"
        )
    passed = share <= IDLE_CPU and loop < SATURATED
    if passed and unread:  # what was not read is not zero
        text = f"the CPU of {len(unread)} of {len(step.processes)} processes was not read"
        return grading.stated("cpu.room", None, text=text)
    if passed and masked:  # a loop with helpers, or an interpreter that lets one thread compute
        text = f"a process computes {masked:.2f} cores: one full thread would (limit {SATURATED})"
        return grading.stated("cpu.room", None, text=text)
    return grading.stated("cpu.room", passed, text=text, chip=f"CPU {numbers.percent(min(share, 1.0))} used")


def link_signals(step: Step) -> list[grading.Signal]:
    """Where answers are large, a full link makes cheap requests wait as well, and leaves the service idle."""
    if step.answer_bytes is None or step.answer_bytes < LARGE_BYTES:
        return []
    size, limit = numbers.with_unit(step.answer_bytes, "bytes"), numbers.with_unit(LARGE_BYTES, "bytes")
    text = f"answers have {size}: a full link would look the same (limit {limit})"
    return [grading.stated("answer.size", None, text=text)]


# --- rivals -----------------------------------------------------------------------------------------------


def rivals(facts: Facts, found: Full) -> list[Counter]:
    """What makes throughput stop as well: the machine, the generator, refusals, the way back."""
    return rivals_at(facts, found.curve, found.top)


def rivals_at(facts: Facts, curve: Curve, step: Step) -> list[Counter]:
    """The same at any level."""
    return [
        machine_rival(facts, curve, step),
        grading.generator_rival(step),
        grading.interference_rival(step, facts.cores),
        _refusals(curve, step),
        _transfer(step),
    ]


def machine_rival(facts: Facts, curve: Curve, step: Step) -> Counter:
    """The whole machine as the limit: ruled out where it has room, or the service cores of its own."""
    host = step.host_cpu
    if curve.shares_cores is False:
        return grading.rival("full machine", "generator and service ran on cores of their own", True)
    if not curve.is_here or not isinstance(host, Estimate):
        return grading.rival("full machine", "the machine of the service was not watched", None)
    text = f"{host.point:.2f} of {facts.cores} cores are used"
    stolen = (step.steal or 0.0) * facts.cores  # nobody here could use it
    text += f", {stolen:.2f} are stolen" if stolen else ""
    return grading.rival("full machine", text, host.point + stolen < FULL_CORES * facts.cores)


def _refusals(curve: Curve, step: Step) -> Counter:
    """Who is refused at once leaves a service that is not full behind.

    Some refuse with another error: such count when they come fast and more often than at the lowest load.
    """
    refused = [m for m in step.failures if m.status in REFUSALS or _is_refused_otherwise(curve, step, m)]
    count = sum(mode.count for mode in refused)
    if step.issued is None:
        return grading.rival("refusals", "what became of each request is not known", None)
    if count <= MOST_FAILED * step.issued:
        return grading.rival("refusals", f"{count} of {step.issued:,} requests are refused", True)
    text = f"{numbers.percent(count / step.issued)} of the requests are refused with {refused[0].status}"
    mode = max(refused, key=lambda one: one.count)
    if mode.median_s is None or mode.success_median_s is None:
        return grading.rival("refusals", text, None)
    is_fast = mode.median_s < FAST * mode.success_median_s
    return grading.rival("refusals", f"{text} after {numbers.with_unit(mode.median_s, 's')}", not is_fast)


def _is_refused_otherwise(curve: Curve, step: Step, mode: FailureMode) -> bool:
    if mode.status < ERROR or mode.median_s is None or mode.success_median_s is None or not step.issued:
        return False
    first = curve.steps[0]
    before = sum(one.count for one in first.failures if one.status == mode.status)
    has_risen = mode.count * (first.issued or 0) >= RISES * before * step.issued
    return mode.median_s < FAST * mode.success_median_s and has_risen


def _transfer(step: Step) -> Counter:
    """Most of the time may go by between the first byte of an answer and its last."""
    dear = step.longest_class()
    if (
        dear is None
        or not isinstance(dear.transfer, Estimate)
        or not isinstance(dear.response.mean, Estimate)
    ):
        return grading.rival("slow transfer", "first and last bytes of answers were not timed", None)
    share = dear.transfer.point / dear.response.mean.point if dear.response.mean.point else 0.0
    text = f"answers take {numbers.percent(share)} of the time from first byte to last"
    return grading.rival("slow transfer", text, share < MOSTLY)
