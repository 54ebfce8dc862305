"""Observations of a service that is full and does not compute: CPU to spare, waits, requests at once.

A full service is observed on its plateau, where the last users brought nothing. Medians compare waits: an
occasional pause, or a slow path of few requests, moves them little.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Lacking, Nothing
from loadlens.estimate import mixtures, probes
from loadlens.estimate.distributions import binomial_at_most
from loadlens.estimate.interval import Insufficient, Interval
from loadlens.measure import figures
from loadlens.measure.curve import Capacity, capacity_of, others_without_load, requests_wait, used_by_others
from loadlens.measure.thresholds import FULL_CORES, IDLE_CPU, SATURATED, THROTTLED
from loadlens.model.facts import (
    Crowd,
    Curve,
    Facts,
    FailureMode,
    ProbeWatch,
    ProcessWatch,
    RequestClass,
    Step,
    Times,
)
from loadlens.model.finding import Counter, Estimate, Figure
from loadlens.model.shapes import SlowPath
from loadlens.present import numbers
from loadlens.present.numbers import ends, percent, with_unit
from loadlens.present.words import users

SEVERAL = 1.5  # cores of a process: up to there one full thread may hide among others
ALL_WAIT = 0.5
HELD_UP = 0.2  # of the probes
MOSTLY = 0.5
MOST_FAILED = 0.01
HARDLY = 0.5  # of a call, or of a thread at work
FAST = 0.5  # of the time of a success
REFUSALS = (429, 503)
ERROR = 400  # and above
SELDOM = 0.25  # of the time that requests are under way: they wait for something else most of the time
AS_MUCH = 0.8  # of what others use at the heaviest load: they do not work for the service
RISES = 2.0  # times the share at the lowest load: errors that were there before make no plateau
CLOSE = 0.05  # of the gaps: fewer are short where one at a time passes
CHANCE = 0.025
LITTLE = 0.05  # of the time that requests are under way
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
        return with_unit(self.rate.point, "1/s") if isinstance(self.rate, Interval) else "no more"

    @property
    def waiting_share(self) -> float:
        """Share of the response time there that is waiting."""
        mean = self.top.response.mean
        if not isinstance(mean, Estimate) or not isinstance(self.alone, Estimate) or mean.point <= 0:
            return 0.0
        return max(0.0, min(1.0, 1 - self.alone.point / mean.point))


@dataclass(frozen=True, slots=True)
class Waits:
    """Waits of a probe and of the costliest requests at one level."""

    step: Step
    probe: ProbeWatch
    costliest: RequestClass
    probe_s: float
    load_s: float
    coupling: Interval  # the first over the second


@dataclass(frozen=True, slots=True)
class NoPlateau:
    """A curve that did not reach its capacity."""

    reason: str


def saturated(curve: Curve) -> tuple[Step, Estimate] | None:
    """Return the highest level of a curve that is on its plateau, with its throughput; none: it is not."""
    capacity = capacity_of(curve)
    if not isinstance(capacity, Capacity) or capacity.saturation.verdict != "saturated":
        return None
    rate = capacity.top.throughput
    return (capacity.top, rate) if isinstance(rate, Estimate) else None


def all_wait(crowd: Crowd) -> bool:
    """Return true if hardly any thread or task at work is anywhere else than in the crowd."""
    return crowd.at_work - crowd.waiting < HARDLY


def who_waits(crowd: Crowd) -> str:
    """Return who waits at a line: `21 of 32 tasks`."""
    return f"{numbers.about(crowd.waiting)} of {numbers.about(crowd.at_work)} {crowd.plural}"


def answers_are_apart(full: Full) -> bool:
    """True if hardly any two answers of the highest load come close to each other: one at a time passes."""
    spacing = full.top.spacing
    return full.curve.is_closed and binomial_at_most(spacing.close, spacing.gaps, CLOSE) <= CHANCE


def full(curve: Curve) -> Full | NoPlateau | Insufficient:
    """Return the plateau of a curve, that it has none, or why that is not known."""
    capacity = capacity_of(curve)
    if isinstance(capacity, Insufficient):
        return capacity
    if capacity.saturation.verdict == "underdriven":
        return NoPlateau(f"no plateau on {curve.label}: {capacity.saturation.reason}")
    measured = [s for s in curve.steps if s.throughput_trials and min(s.throughput_trials) > 0]
    steps = tuple(s for s in measured if s.load >= capacity.saturation.plateau_from)
    first, rate = curve.steps[0], rate_of(steps[-1])
    mean = alone_of(curve)
    alone = figures.interval_of(mean)
    parallelism: Interval | Insufficient
    if first.load != 1:
        parallelism = Insufficient("the response time of one user alone was not measured")
    elif isinstance(rate, Interval) and isinstance(alone, Interval):
        parallelism = probes.parallelism(rate, alone)
    else:
        parallelism = rate if isinstance(rate, Insufficient) else alone
    return Full(curve, capacity, steps, mean, parallelism)


def alone_of(curve: Curve) -> Figure:
    """Return the mean response time at the lightest load.

    Of few requests of one user none or too many may take a slow path. The share of a path over all levels
    where it was seen is known better, and so is the mean.
    """
    mean, path = curve.steps[0].response.mean, constant_path(curve)
    if path is None or path.usual_s is None or not isinstance(mean, Estimate):
        return mean
    weight, shift = path.weight, path.shift
    if not isinstance(weight, Estimate) or not isinstance(shift, Estimate):
        return mean
    if weight.low is None or weight.high is None or weight.samples <= mean.samples:
        return mean
    point, low, high = (
        path.usual_s + share * shift.point for share in (weight.point, weight.low, weight.high)
    )
    method = "usual time + share x time of the slow path, over all levels where requests hardly wait"
    return replace(mean, point=point, low=low, high=high, samples=weight.samples, method=method)


def constant_path(curve: Curve) -> SlowPath | None:
    """Return the slow path of the only kind of request, if it is there without load and takes the same time.

    What only a queue makes slow is no such path.
    """
    if len(curve.steps[0].classes) != 1:
        return None
    path = next((path for path in curve.slow_paths if path.label == curve.costliest), None)
    if path is None or path.alone is None or path.lacking:
        return None
    shifts = [level.shift.point for level in (path.alone, *path.levels) if isinstance(level.shift, Estimate)]
    return None if mixtures.is_constant(shifts) is False else path


def plateaus(facts: Facts) -> tuple[Full, ...] | NoPlateau | Insufficient:
    """Return all curves with a plateau; where none has one, the first reason."""
    curves = [full(curve) for curve in sorted(facts.curves, key=lambda curve: -len(curve.steps))]
    with_plateau = tuple(curve for curve in curves if isinstance(curve, Full))
    if with_plateau:
        return with_plateau
    missed = next((curve for curve in curves if isinstance(curve, NoPlateau)), None)
    return missed or next((c for c in curves if isinstance(c, Insufficient)), Insufficient("no load curve"))


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


# --- waits ------------------------------------------------------------------------------------------------


def waits(full: Full) -> tuple[Waits, ...] | str:
    """Return the waits of probes and load at the levels of the plateau, or why they are not known."""
    first = full.curve.steps[0]
    if first.load != 1:
        return "needs a level of one user: what requests take alone"
    if not any(step.probes for step in full.steps):
        return "needs a probe: a thin stream of cheap requests next to the load"
    if all(_usable(step) is None for step in full.steps):
        return "needs a probe of another kind than the load, sent in time"
    levels = [_waits(step, first, full.curve.costliest) for step in full.steps]
    compared = tuple(level for level in levels if isinstance(level, Waits))
    return compared or next((level for level in levels if isinstance(level, str)), "no level of the plateau")


def _waits(step: Step, first: Step, label: str) -> Waits | str:
    probe = _usable(step)
    costliest, alone = (
        next((kind for kind in level.classes if kind.label == label), None) for level in (step, first)
    )
    if probe is None or probe.idle_s is None or costliest is None or alone is None:
        return "the probe or the load was not answered"
    watched, loaded, unloaded = map(_middle, (probe.response, costliest.response, alone.response))
    for median in (watched, loaded, unloaded):
        if isinstance(median, Insufficient):
            return median.reason
    assert isinstance(watched, Interval)
    assert isinstance(loaded, Interval)
    assert isinstance(unloaded, Interval)
    compared = probes.waiting(watched, probe.idle_s, loaded, unloaded.point)
    if isinstance(compared, Insufficient):
        return compared.reason
    return Waits(step, probe, costliest, max(0.0, compared.probe_s), compared.expensive_s, compared.coupling)


def held_up_alone(full: Full, label: str) -> float | None:
    """Return the share of a probe that is held up at the lightest load already; none: not known."""
    probe = next((probe for probe in full.curve.steps[0].probes if probe.label == label), None)
    return probe.delayed.point if probe is not None and isinstance(probe.delayed, Estimate) else None


def held_up_more(delayed: Figure, before: float) -> Figure:
    """Return the share of probes that are held up beyond those of the lightest load."""
    if not isinstance(delayed, Estimate):
        return delayed
    low, high = (None if end is None else max(0.0, end - before) for end in (delayed.low, delayed.high))
    return replace(delayed, point=max(0.0, delayed.point - before), low=low, high=high)


def _usable(step: Step) -> ProbeWatch | None:
    """Return the probe that waits least, unless it sends the requests of the load itself."""
    requests = {kind.request for kind in step.classes}
    usable = [
        probe
        for probe in step.probes
        if probe.request not in requests
        and not probe.is_late
        and probe.idle_s is not None
        and isinstance(probe.response.mean, Estimate)
    ]
    return min(usable, key=lambda probe: figures.point(probe.response.mean), default=None)


def _middle(times: Times) -> Interval | Insufficient:
    """Return the median, or the mean where there is none."""
    return figures.interval_of(times.p50 if isinstance(times.p50, Estimate) else times.mean)


def coupling_text(waits: Waits, limit: str) -> str:
    """`ping waits 0.1 ms at 8 users, 0.01 of what work waits (0.00-0.02; limit 0.2)`."""
    coupling = waits.coupling
    return (
        f"at {users(waits.step.load)} {waits.probe.label} waits {with_unit(waits.probe_s, 's')}, "
        f"{coupling.point:.2f} of what {waits.costliest.label} waits"
        f"{ends(coupling.low, coupling.high, limit)}"
    )


# --- the CPU ----------------------------------------------------------------------------------------------


def cpu_signal(facts: Facts, curve: Curve, step: Step) -> grading.Signal:
    """State that the service has CPU to spare, so its requests wait for something else.

    Computing and waiting for a core count alike: a thread that waits for a core would compute. Where no
    process was read, the whole machine stands for the service if it uses less than one core next to the
    generator.
    """
    for quota in step.quotas:
        if isinstance(quota.throttled, Estimate) and quota.throttled.point > THROTTLED:
            text = f"its quota stops it in {percent(quota.throttled.point)} of the periods"
            return grading.stated("cpu.room", False, text=f"{text} (limit {percent(THROTTLED)})")
    if step.processes:
        return _of_processes(facts, curve, step)
    host = step.host_cpu
    if not curve.is_here or not isinstance(host, Estimate):
        return grading.stated("cpu.room", None, text="the CPU of the service was not read: name its process")
    used = max(0.0, host.point - (step.generator.cpu_cores or 0.0))
    text = (
        f"next to the generator the machine uses {used:.2f} of {facts.cores} cores, "
        f"one busy thread alone would use {SATURATED}"
    )
    return grading.stated(
        "cpu.room", True if used < SATURATED else None, text=text, chip=f"{used:.2f} cores used in all"
    )


def _of_processes(facts: Facts, curve: Curve, step: Step) -> grading.Signal:
    unread = _unread(step)
    wanted, loop, masked = 0.0, 0.0, 0.0
    for process in step.processes:
        occupied = process.occupied.point if isinstance(process.occupied, Estimate) else process.cores
        wanted += occupied
        if process.is_one_thread:
            loop = max(loop, occupied)
        elif SATURATED <= occupied <= SEVERAL:
            masked = max(masked, occupied)
    share = wanted / curve.cores_allotted
    text = (
        f"the service computes, or waits to, for {wanted:.2f} of {curve.cores_allotted:g} cores "
        f"(limit {percent(IDLE_CPU)})"
    )
    if loop >= SATURATED:
        text = f"one thread computes {percent(min(1.0, loop))} of the time (limit {percent(SATURATED)})"
    passed = share <= IDLE_CPU and loop < SATURATED
    seldom = "" if passed or loop >= SATURATED else _seldom_waits(facts, curve, step)
    if seldom:
        passed, text, share = True, seldom, step.server_cores / curve.cores_allotted
    if passed and unread:  # what was not read is not zero
        count = f"{len(unread)} of {len(step.processes)} processes"
        rest = _used_by_the_rest(curve, step)
        if rest is None or rest >= SATURATED or (wanted + rest) / curve.cores_allotted > IDLE_CPU:
            return grading.stated("cpu.room", None, text=f"the CPU of {count} was not read")
        text += f"; {count} were not read, they and other programs use {rest:.2f} of {facts.cores}"
    if passed and masked:  # a loop with helpers, or an interpreter that lets one thread compute
        text = f"a process computes {masked:.2f} cores: one full thread would (limit {SATURATED})"
        return grading.stated("cpu.room", None, text=text)
    return grading.stated("cpu.room", passed, text=text, chip=f"CPU {percent(min(share, 1.0))} used")


def _unread(step: Step) -> list[ProcessWatch]:
    """Return processes whose CPU was not read; where others of the same program were, these show the same.

    A database begins and ends processes all the time: those of a moment have no rate.
    """
    read = {(p.service, p.program) for p in step.processes if p.program and isinstance(p.cpu, Estimate)}
    return [
        p for p in step.processes if not isinstance(p.cpu, Estimate) and (p.service, p.program) not in read
    ]


def _seldom_waits(facts: Facts, curve: Curve, step: Step) -> str:
    """State that cores are idle and requests seldom wait for one, as where many wake at once; empty: else."""
    host, waited, used = step.host_cpu, requests_wait(step), step.server_cores
    is_whole = curve.is_here and curve.cores_allotted == facts.cores  # else others' cores are the idle ones
    if not is_whole or _unread(step) or not isinstance(host, Estimate) or waited is None:
        return ""
    if max(used, host.point) > IDLE_CPU * facts.cores or waited > LITTLE:
        return ""
    return (
        f"the service computes for {used:.2f} of {facts.cores:g} cores (limit {percent(IDLE_CPU)}), and its "
        f"requests wait for one {percent(waited)} of their time (limit {percent(LITTLE)})"
    )


def _used_by_the_rest(curve: Curve, step: Step) -> float | None:
    """Return the cores that all but the generator and the processes that were read use; none: not known."""
    if not curve.is_here or not isinstance(step.host_cpu, Estimate):
        return None
    read = sum(process.cpu.point for process in step.processes if isinstance(process.cpu, Estimate))
    return max(0.0, step.host_cpu.point - (step.generator.cpu_cores or 0.0) - read)


def link_signals(step: Step) -> list[grading.Signal]:
    """Leave open a full link where answers are large: cheap requests wait for it too, and the CPU is idle."""
    if step.answer_bytes is None or step.answer_bytes < LARGE_BYTES:
        return []
    size, limit = with_unit(step.answer_bytes, "bytes"), with_unit(LARGE_BYTES, "bytes")
    text = f"answers have {size}: a full link would look the same (limit {limit})"
    return [grading.stated("answer.size", None, text=text)]


# --- rivals -----------------------------------------------------------------------------------------------


def rivals(facts: Facts, full: Full) -> list[Counter]:
    """Return what else makes throughput stop: the machine, the generator, refusals, transfer of answers."""
    return rivals_at(facts, full.curve, full.top)


def rivals_at(facts: Facts, curve: Curve, step: Step) -> list[Counter]:
    """Return the same at any level."""
    return [
        machine_rival(facts, curve, step),
        grading.generator_rival(step),
        grading.interference_rival(step, facts.cores),
        refusals_rival(curve, step),
        _transfer(step),
    ]


def machine_rival(facts: Facts, curve: Curve, step: Step) -> Counter:
    """Weigh the whole machine as the limit: ruled out if it has room, or the service has cores of its own.

    It stays open if it had room without what others use at any load and requests seldom wait for a core.
    """
    host = step.host_cpu
    if curve.shares_cores is False:
        return grading.rival("full machine", "generator and service ran on cores of their own", True)
    if not curve.is_here or not isinstance(host, Estimate):
        return grading.rival("full machine", "the machine of the service was not watched", None)
    text = f"{host.point:.2f} of {facts.cores} cores are used"
    stolen = (step.steal or 0.0) * facts.cores  # not usable here
    text += f", {stolen:.2f} are stolen" if stolen else ""
    if host.point + stolen < FULL_CORES * facts.cores:
        return grading.rival("full machine", text, True)
    others, before = used_by_others(curve, step), used_by_others(curve, curve.steps[0])
    foreign = others
    if before < AS_MUCH * others:
        foreign = max(0.0, others_without_load(curve, curve.steps[0], step) or 0.0)
    has_room = host.point + stolen - foreign < FULL_CORES * facts.cores  # without them
    wait = requests_wait(step)
    if not has_room or wait is None or wait > SELDOM:
        return grading.rival("full machine", text, False)
    text += f", {foreign:.2f} by others at any load; requests wait for a core {percent(wait)} of the time"
    return grading.rival("full machine", text, None)


def refusals_rival(curve: Curve, step: Step) -> Counter:
    """Weigh refusals: a service that refuses at once need not be full.

    Other errors count as refusals if they come fast and more often than at the lowest load.
    """
    refused = [m for m in step.failures if m.status in REFUSALS or _is_refused_otherwise(curve, step, m)]
    count = sum(mode.count for mode in refused)
    if step.issued is None:
        return grading.rival("refusals", "what became of each request is not known", None)
    if count <= MOST_FAILED * step.issued:
        return grading.rival("refusals", f"{count} of {step.issued:,} requests are refused", True)
    text = f"{percent(count / step.issued)} of the requests are refused with {refused[0].status}"
    mode = max(refused, key=lambda mode: mode.count)
    if mode.median_s is None or mode.success_median_s is None:
        return grading.rival("refusals", text, None)
    is_fast = mode.median_s < FAST * mode.success_median_s
    return grading.rival("refusals", f"{text} after {with_unit(mode.median_s, 's')}", not is_fast)


def _is_refused_otherwise(curve: Curve, step: Step, mode: FailureMode) -> bool:
    if mode.status < ERROR or mode.median_s is None or mode.success_median_s is None or not step.issued:
        return False
    first = curve.steps[0]
    before = sum(earlier.count for earlier in first.failures if earlier.status == mode.status)
    has_risen = mode.count * (first.issued or 0) >= RISES * before * step.issued
    return mode.median_s < FAST * mode.success_median_s and has_risen


def _transfer(step: Step) -> Counter:
    """Weigh the time between the first byte of an answer and its last."""
    longest = step.longest_class()
    transfer = None if longest is None else longest.transfer
    mean = None if longest is None else longest.response.mean
    if not isinstance(transfer, Estimate) or not isinstance(mean, Estimate):
        return grading.rival("slow transfer", "first and last bytes of answers were not timed", None)
    share = transfer.point / mean.point if mean.point else 0.0
    text = f"answers take {percent(share)} of the time from first byte to last"
    return grading.rival("slow transfer", text, share < MOSTLY)
