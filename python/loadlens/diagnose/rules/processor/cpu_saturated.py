"""The service has no processor time left.

**Means.** Its processes use all cores that they may use. It completes at most cores / D requests per second,
D being the CPU time of one request; everything beyond waits for a core, and more threads or processes change
nothing. What the service calls on this machine is part of it: a program that uses half of the cores or more
is named, and of a PostgreSQL server the command that most of its processes execute.

**Needs.** Throughput has reached a plateau; or with half of the users or fewer 93 % of the cores were used
already, so that what more users still bring comes from cheaper requests. At the highest load, or the highest
on the plateau that other programs left alone, the service uses at least 85 % of the cores that it may use:
its CPU set, its quota, else the machine. Where other programs take some of these, and the service's threads
use and wait for as many as 85 % of all, those that others left count. The CPU time of one request, from all
levels together, times the plateau accounts for the cores that were there, within what 85 % leaves, or an end
of its interval does; or 93 % of them are used, threads wait for one, and throughput is not 15 % below its
highest. Where more threads work than there are cores, they wait for one, or 93 % of the cores are used: a
runtime may start no more threads than there are cores, and its requests wait within it.

**Ruled out by.** Processes that wait for storage or a lock: they use no CPU. Answers most of which are
refusals. Blocked event loops, one for each core, none of which waits for a core: then the loops are full, and
the cores with them; this is folded under them. CPU time that other machines took, a late generator, or other
programs on the same cores leave it probable.

**Thresholds.** 0.85: a queue at that utilisation takes 6.7 times its idle time and is 18 % from its limit,
and the noise of the kernel's counters (3 %) cannot carry a service from 0.7 there. The prediction may be off
by 1 / 0.85 for the same reason; from 1.3 times the plateau on the cores have room and something else is the
limit, or, if threads wait for a core, the service also computes what does not grow with requests. A quarter
of a thread waiting for each core: with one loop a core the generator makes a tenth wait, with half a loop
more it is half of one.

**Do.** Make requests cheaper, or add cores: each brings 1 / D requests per second.

**Confirm.** Halve the cores: half of the throughput, within 10 %.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from loadlens.diagnose import grading
from loadlens.diagnose.capacity import most_of
from loadlens.diagnose.driver import (
    Answer,
    Claim,
    Lacking,
    Words,
    all_seen,
    assessing_after,
    objecting,
    on_curve,
)
from loadlens.diagnose.observe import opened_connections
from loadlens.diagnose.observe.curve_signals import plateau_signal
from loadlens.diagnose.rules.processor import eventloop_blocked
from loadlens.estimate.demand import RULED_OUT, Bound, Resource, bounds
from loadlens.estimate.interval import Insufficient, Interval
from loadlens.measure import figures
from loadlens.measure.curve import (
    Capacity,
    capacity_of,
    completed,
    cores_of,
    cores_used,
    cores_waited,
    waiting_share,
)
from loadlens.measure.thresholds import OTHERS_MATTER, SATURATED, STOLEN_MATTERS
from loadlens.model.facts import Curve, Facts, Step
from loadlens.model.finding import Counter, Estimate, Evidence, Finding, Grade, Prediction
from loadlens.present import numbers
from loadlens.present.numbers import percent, with_unit

ID = "cpu.saturated"
TITLE = "the service has no processor time left"
EXPLAINS: tuple[str, ...] = ("saturation.plateau", "eventloop.blocked", "load.underdriven")

NO_CORE_LEFT = 0.93  # of the cores: more is no other limit by chance
WAITING_EACH = 0.25  # threads for each core that wait for one
MOST_REFUSED = 0.5
MOSTLY = 0.5  # of the cores in use
FALLING = 0.85  # of the highest throughput, means over trials
MOST_USED = 1 / SATURATED  # of the cores: what the noise of the kernel's counters and of a rate can make of 1


@dataclass(frozen=True, slots=True)
class UsedCores:
    """The cores that the service may use and does use at the highest undisturbed load of one curve."""

    curve: Curve
    capacity: Capacity
    step: Step
    cores: float  # that the service may use
    used: Interval  # cores
    waited: float | None  # threads that wait for a core, on average
    bound: Bound | None  # what the CPU time of a request allows; none: not known
    loops: bool  # blocked event loops were found on it
    others: float = 0.0  # of these cores that other programs took, from a service that wanted all

    @property
    def share(self) -> float:
        """Part of the cores, without those that others took, that is used."""
        return self.used.point / self.left

    @property
    def left(self) -> float:
        """Cores without those that others took."""
        return self.cores - self.others

    @property
    def is_alike(self) -> bool:
        """False if more came out than the CPU time of a request allows: other levels had costlier ones."""
        return self.bound is None or self.bound.utilisation <= MOST_USED

    @property
    def is_accounted_for(self) -> bool:
        """True if the CPU time of a request and the rate account for the cores that are used."""
        return self.is_alike and self.bound is not None and 1 / self.bound.utilisation < RULED_OUT

    @property
    def is_falling(self) -> bool:
        """True if less comes out than at another level: more work for each request is an effect, too."""
        rates = [fmean(step.throughput_trials) for step in self.curve.steps if step.throughput_trials]
        here = fmean(self.step.throughput_trials or [0.0])
        return here < FALLING * max(rates, default=0.0)

    @property
    def is_crowded(self) -> bool:
        """True if more wants to run than the cores can: loops with a core each do not wait."""
        return self.waited is not None and self.waited >= WAITING_EACH * self.cores


@dataclass(frozen=True, slots=True)
class Behind:
    """A program behind the service that uses most of the cores."""

    program: str
    cores: float
    command: str  # of a database; empty: not known
    is_database: bool


def _behind(seen: UsedCores) -> Behind | None:
    """Return what uses most of the cores, if the service calls it or it is a database; none otherwise."""
    used: dict[tuple[str, str], float] = {}
    for process in seen.step.processes:
        key = process.service, process.program
        used[key] = used.get(key, 0.0) + process.cores
    key, cores = max(used.items(), key=lambda item: item[1], default=(("", ""), 0.0))
    if cores < MOSTLY * seen.used.point:
        return None
    titles = (place for place in seen.step.places if place.seen_in == "titles" and place.kind == "pool")
    database = next((place for place in titles if (place.service, place.program) == key), None)
    if database is not None:
        return Behind(key[1], cores, database.command, True)
    is_called = any(p.is_called for p in seen.step.processes if (p.service, p.program) == key)
    return Behind(key[1], cores, "", False) if is_called else None


def observe(facts: Facts, others: Sequence[Answer]) -> Sequence[UsedCores] | Lacking:
    """Return every closed curve whose CPU was read, the longest first."""
    loops = {
        label
        for other in others
        if isinstance(other, Finding) and other.rule == eventloop_blocked.ID and other.grade >= Grade.PROBABLE
        for label in other.curves
    }
    longest = sorted(facts.curves, key=lambda curve: -len(curve.steps))
    return all_seen(_used_cores(facts, curve, curve.label in loops) for curve in longest)


def _used_cores(facts: Facts, curve: Curve, loops: bool) -> UsedCores | str:
    capacity = capacity_of(curve)
    if isinstance(capacity, Insufficient):
        return capacity.reason
    top = capacity.undisturbed
    used, cores = cores_used(top), cores_of(curve, top)
    if isinstance(used, Insufficient):
        return used.reason
    bound = None
    if isinstance(curve.work_all, Estimate) and top.completed_trials:
        there = cores
        if curve.shares_cores is not False:  # what others used is gone
            taken = (top.generator.cpu_cores or 0.0) + (top.other_cores or 0.0)
            there = max(0.01, min(cores, facts.cores - taken))
        rate = completed(top)
        plateau = Interval(rate, rate, rate, 0.0, "completions at that load")
        bound = next(iter(bounds([Resource("CPU", there, figures.known(curve.work_all))], plateau)), None)
    waited = cores_waited(top)
    others = _taken(facts, curve, top, cores, used.point + (waited or 0.0))
    return UsedCores(curve, capacity, top, cores, used, waited, bound, loops, others)


def _taken(facts: Facts, curve: Curve, step: Step, cores: float, wanted: float) -> float:
    """Return the cores that other programs took from a service that would have used all; 0: it would not."""
    if curve.shares_cores is False or not isinstance(step.host_cpu, Estimate):
        return 0.0
    is_full = step.host_cpu.point >= NO_CORE_LEFT * facts.cores
    taken = min(step.other_cores or 0.0, cores - step.server_cores)
    is_wanted = wanted >= SATURATED * cores and taken >= OTHERS_MATTER * facts.cores
    return taken if is_full and is_wanted else 0.0


def claim(facts: Facts, seen: UsedCores) -> Claim:
    """Hold the cores in use against the work of a request, waiting threads, and what else fills them."""
    curve, step, cores, used = seen.curve, seen.step, seen.cores, seen.used
    behind = _behind(seen)
    most = "" if behind is None else f", {behind.program} {behind.cores:.2f} of them"
    signals = [
        _plateau(seen),
        _used(seen, most),
        _work(seen),
        _queue(seen),
    ]
    is_full, room = seen.share >= SATURATED, f"{percent(seen.share)} of the cores are used"
    rivals = [
        _loops(seen),
        grading.rival("lock or storage", f"the service computes: {room}" if is_full else room, is_full),
        _stolen(step),
        _refusals(step),
        # A late load does not make the service compute; it only cannot be excluded that it took the cores.
        grading.left_open(grading.generator_rival(step)),
        grading.shared_cores_rival(curve, step, facts.cores),
        grading.interference_rival(step, facts.cores),
    ]

    def words(_: Grade) -> Words:
        most, waiting = most_of(curve, seen.capacity), waiting_share(curve, seen.capacity)
        at = f" at {most.words}" if isinstance(most.figure, Estimate) else ""
        fully = "The one core is" if cores == 1 else f"All {cores:g} cores are"
        statement = f"{fully} used ({used.point:.2f}){at}"
        if seen.is_accounted_for and isinstance(curve.work_all, Estimate) and curve.work_all.point > 0:
            work = with_unit(curve.work_all.point, "s")
            statement = f"{fully} used{at}: {work} of CPU per request"
        if seen.others:
            statement += f"; other programs take {seen.others:.2f}"
        elif behind is not None:
            statement += f", {percent(behind.cores / used.point)} of it in {behind.program}"
        queue = ""
        if seen.waited is not None and seen.waited >= WAITING_EACH:
            queue = f", and {seen.waited:.1f} threads wait for one"
        return Words(
            statement=statement,
            explanation=f"At {step.load:g} users the service uses {used.point:.2f} of the {cores:g} cores "
            f"that it may use{queue}; {percent(waiting)} of the response time is waiting.{_grown(seen)}",
            advice=_advice(seen, behind) + opened_connections.advice(curve),
            confirm="the same load without the other programs: throughput grows as the cores do"
            if seen.others
            else "half of the cores: half of the throughput, within 10 %",
            impact=waiting,
            predictions=_predictions(seen),
        )

    explained_by = eventloop_blocked.ID if seen.loops and not seen.is_crowded else None
    return on_curve(curve, signals, rivals, words, explained_by=explained_by)


def _used(seen: UsedCores, most: str) -> grading.Signal:
    """Require 85 % of the cores, without those of others; open where these have more than the service."""
    low, high = (None if end is None else end / seen.left for end in (seen.used.low, seen.used.high))
    taken, of = (
        (f", wants them all, and others take {seen.others:.2f}", " of the rest") if seen.others else ("", "")
    )
    text = (
        f"the service uses {seen.used.point:.2f} of {seen.cores:g} cores{taken} "
        f"({percent(seen.share)}{of}, limit {percent(SATURATED)}){most}"
    )
    chip = f"{seen.used.point:.2f} of {seen.cores:g} cores used"
    if seen.others > seen.used.point:
        return grading.stated("cpu.used", None, text=text, value=seen.share)
    share = replace(seen.used, point=seen.share, low=low, high=high)
    return grading.at_least("cpu.used", share, SATURATED, text=text, chip=chip)


def _grown(seen: UsedCores) -> str:
    """State how much more CPU time a request takes than at the level with the least; empty: hardly more."""
    lower = [step for step in seen.curve.steps if step.load < seen.step.load]
    each = [(per_request, step.load) for step in lower if (per_request := _per_request(step)) is not None]
    now, (before, load) = _per_request(seen.step), min(each, default=(math.inf, 0.0))
    if now is None or now < RULED_OUT * before:
        return ""
    return (
        f" A request takes {with_unit(now, 's')} of CPU there, {with_unit(before, 's')} at {load:g}: it "
        "grows with the load, as where threads spin for a lock, memory is collected, or a cache misses."
    )


def _per_request(step: Step) -> float | None:
    used, rate = cores_used(step), completed(step)
    return used.point / rate if isinstance(used, Interval) and rate > 0 else None


def _plateau(seen: UsedCores) -> grading.Signal:
    """Require that throughput stops growing, or that 93 % of the cores were used with half of the users."""
    usual = plateau_signal(seen.capacity.saturation)
    half = [step for step in seen.curve.steps if step.load <= seen.step.load / 2]
    used = cores_used(half[-1]) if half else Insufficient("no level with half of the users")
    if usual.evidence.passed or isinstance(used, Insufficient):
        return usual
    before = used.point / cores_of(seen.curve, half[-1])
    if min(before, seen.share) < NO_CORE_LEFT:
        return usual
    at = f"at {half[-1].load:g} users already"
    text = f"{usual.evidence.text}, and {percent(before)} of the cores were used {at}"
    return grading.stated("plateau", True, text=text, chip=f"full {at}")


def _advice(seen: UsedCores, behind: Behind | None) -> str:
    advice = "Make requests cheaper or add cores; more threads or processes bring nothing."
    if seen.is_accounted_for and isinstance(seen.curve.work_all, Estimate) and seen.curve.work_all.point > 0:
        work_s = seen.curve.work_all.point
        advice = (
            f"Make a request cheaper than {with_unit(work_s, 's')} of CPU (profile it), or add cores: each "
            f"brings {with_unit(1 / work_s, '1/s')}; more threads or processes bring nothing."
        )
    if behind is None or not behind.is_database:
        return advice
    command = f", most of all for {behind.command}" if behind.command else ""
    causes = "an index may lack (EXPLAIN ANALYZE), or a request makes many queries"
    return f"Look at what {behind.program} computes{command}: {causes}. {advice}"


def _work(seen: UsedCores) -> grading.Signal:
    """Require that the CPU time of one request accounts for the plateau."""
    work, bound = seen.curve.work_all, seen.bound
    if bound is None or not isinstance(work, Estimate) or work.point <= 0:
        return grading.stated(
            "work.cpu", None, text=f"the CPU time of one request is not known: {numbers.shown(work)}"
        )
    ratio, full = 1 / bound.utilisation, _room_taken(seen)
    if not seen.is_alike:
        text = (
            f"{numbers.shown(work)} of CPU per request allow {with_unit(bound.rate.point, '1/s')}, more came "
            "out: the requests were not the same at all levels"
        )
        text = f"{text}; {full}" if full else text
        return replace(grading.stated("work.cpu", True if full else None, text=text), is_clear=False)
    plateau = bound.utilisation * bound.rate.point
    is_reached = bound.rate.low is not None and bound.rate.low <= plateau / SATURATED
    text = (
        f"{numbers.shown(work)} of CPU per request: full at {with_unit(bound.rate.point, '1/s')}, "
        f"{with_unit(bound.utilisation * bound.rate.point, '1/s')} came out "
        f"({numbers.signed_percent(ratio - 1)}, limit {numbers.signed_percent(1 / SATURATED - 1)}"
        f"{', which the interval reaches' if is_reached and ratio > 1 / SATURATED else ''})"
    )
    # Threads that wait for a core show that cores are full, if not of what.
    is_far = ratio >= RULED_OUT and not seen.is_crowded
    passed = False if is_far else True if ratio <= 1 / SATURATED or is_reached or full else None
    if full and ratio > 1 / SATURATED and not is_reached:
        text += f"; {full}"
    chip = f"{with_unit(work.point, 's')} of CPU per request"
    evidence = Evidence("work.cpu", text, chip, work.point, work.low, work.high, None, passed)
    return grading.Signal(evidence, bound.explains is True)


def _room_taken(seen: UsedCores) -> str:
    """State that no core is left, whatever requests take; empty: there may be room, or throughput falls."""
    if not seen.is_crowded or seen.share < NO_CORE_LEFT or seen.is_falling or seen.waited is None:
        return ""
    return (
        f"but {percent(seen.share)} of the cores are used (limit {percent(NO_CORE_LEFT)}), and "
        f"{seen.waited:.1f} threads wait for one"
    )


def _queue(seen: UsedCores) -> grading.Signal:
    """Require that threads wait for a core where more work than there are cores."""
    if seen.waited is None:
        return grading.stated("runq.wait", None, text="waiting for a core was not read")
    hot = [process.hot_threads for process in seen.step.processes]
    read = [count for count in hot if count is not None]
    is_few = len(read) == len(hot) and 0 < sum(read) <= seen.cores
    text = f"{seen.waited:.1f} threads wait for a core (limit {WAITING_EACH * seen.cores:g})"
    if is_few and not seen.is_crowded:
        text += f"; no more threads work ({sum(read)}) than there are cores"
    # A runtime that starts as many threads as there are cores lets requests wait within itself.
    is_full = seen.share >= NO_CORE_LEFT
    if is_full and not (seen.is_crowded or is_few):
        text += f"; {percent(seen.share)} of the cores are used (limit {percent(NO_CORE_LEFT)})"
    passed = seen.is_crowded or is_few or is_full
    return grading.stated("runq.wait", passed, text=text, chip=f"{seen.waited:.1f} wait for a core")


def _loops(seen: UsedCores) -> Counter:
    """Weigh event loops that fill a core each: then they are the cause of full cores."""
    name = "event loops"
    if not seen.loops:
        return grading.rival(name, "no blocked event loop was found", True)
    wait = "waiting was not read" if seen.waited is None else f"{seen.waited:.1f} threads wait"
    if seen.is_crowded:
        return grading.rival(name, f"more loops than cores: {wait} for {seen.cores:g} cores", True)
    return grading.rival(name, f"the loops are full, each on its core: {wait}", None)


def _stolen(step: Step) -> Counter:
    name = "time taken by other machines"
    if step.steal is None:
        return grading.rival(name, "not read", None)
    return grading.rival(name, percent(step.steal), True if step.steal <= STOLEN_MATTERS else None)


def _refusals(step: Step) -> Counter:
    name, failed = "work on refusals", step.failed
    if not isinstance(failed, Estimate):
        return grading.rival(name, "failures were not counted", None)
    return grading.rival(name, f"{percent(failed.point)} fail", failed.point <= MOST_REFUSED)


def _predictions(seen: UsedCores) -> tuple[Prediction, ...]:
    """Predict twice the cores by arithmetic, where the CPU time is known and was the limit."""
    rate = seen.step.throughput
    if seen.others or seen.bound is None or seen.bound.explains is not True or not isinstance(rate, Estimate):
        return ()
    after = replace(
        rate,
        point=2 * rate.point,
        low=None if rate.low is None else 2 * rate.low,
        high=None if rate.high is None else 2 * rate.high,
        method="arithmetic: twice the cores over the same CPU time of one request",
    )
    return (Prediction(f"most requests/s with {2 * seen.cores:g} cores", rate, after),)


def _clearest(pairs: Sequence[tuple[UsedCores, Finding]]) -> Finding:
    """Prefer a finding of its own to one that is folded under event loops."""
    findings = [finding for _, finding in pairs]
    best = max(findings, key=lambda finding: (finding.explained_by is None, finding.grade, finding.impact))
    curves = tuple(seen.curve.label for seen, other in pairs if other.explained_by == best.explained_by)
    return replace(best, scope=", ".join(curves), curves=curves)


_silence = objecting(claim, lambda seen: seen.share)
assess_after = assessing_after(ID, TITLE, observe, claim, choose=_clearest, silence=_silence)
