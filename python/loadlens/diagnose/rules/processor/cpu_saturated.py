"""The service has no processor time left.

**Means.** Its processes use all cores that they may use. At most cores / D requests a second come out, D
being the CPU time of one request; everything beyond waits for a core, and more threads or processes change
nothing.

**Needs.** Throughput has reached a plateau. At the highest load the service uses at least 85 % of the cores
that it may use: its CPU set, its quota, else the machine. The CPU time of one request, from all levels
together, times the plateau makes up the cores that were there, within what 85 % leaves. Where more threads
work than there are cores, they wait for one.

**Ruled out by.** Processes that wait for storage or a lock: they use no CPU. Answers most of which are
refusals. Blocked event loops, one for each core, none of which waits for a core: then the loops are full, and
the cores with them; this is folded under them. CPU time that other machines took, a late generator, or other
programs on the same cores leave it probable.

**Thresholds.** 0.85: a queue at that utilisation takes 6.7 times its idle time and is 18 % from its limit,
and the noise of the kernel's counters (3 %) cannot carry a service from 0.7 there. The prediction may be off
by 1 / 0.85 for the same reason; from 1.3 times the plateau on the cores have room and something else is the
limit. A quarter of a thread waiting for each core: with one loop a core the generator makes a tenth wait,
with half a loop more it is half of one.

**Do.** Make requests cheaper, or add cores: each brings 1 / D requests a second.

**Confirm.** Half of the cores: half of the throughput, within 10 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from loadlens.diagnose import grading
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
from loadlens.model.facts import Curve, Facts, Step
from loadlens.model.finding import (
    Absent,
    Counter,
    Estimate,
    Evidence,
    Finding,
    Grade,
    NotAssessed,
    Prediction,
)
from loadlens.present import numbers

ID = "cpu.saturated"
TITLE = "the service has no processor time left"
EXPLAINS: tuple[str, ...] = ("saturation.plateau", "eventloop.blocked")

FULL = 0.85
WAITING_EACH = 0.25  # threads for each core that wait for one
STOLEN = 0.01
MOST_REFUSED = 0.5


@dataclass(frozen=True, slots=True)
class Look:
    """What one curve shows at its highest load."""

    curve: Curve
    capacity: Capacity
    step: Step
    cores: float  # that the service may use
    used: Interval  # cores
    waited: float | None  # threads that wait for a core, on average
    bound: Bound | None  # what the CPU time of a request allows; none: not known
    loops: bool  # whether blocked event loops were found on it


def assess_after(
    facts: Facts, others: Sequence[Finding | Absent | NotAssessed]
) -> Finding | Absent | NotAssessed:
    """Look at every closed curve; the clearest speaks for all."""
    loops = {label for o in others if isinstance(o, Finding) and _is_loops(o) for label in o.curves}
    by_length = sorted(facts.curves, key=lambda curve: -len(curve.steps))
    looks, lacks = grading.parted(_look(facts, curve, curve.label in loops) for curve in by_length)
    if not looks:
        return NotAssessed(ID, TITLE, lacks[0] if lacks else "no load curve")
    findings = [(look, f) for look in looks if (f := _finding(facts, look)) is not None]
    if not findings:
        return Absent(ID, TITLE, _silence(facts, max(looks, key=_share)))
    # Where it stands by itself it speaks before where it is folded under event loops.
    best = max(findings, key=lambda pair: (pair[1].explained_by is None, pair[1].grade, pair[1].impact))[1]
    curves = tuple(look.curve.label for look, f in findings if f.explained_by == best.explained_by)
    return replace(best, scope=", ".join(curves), curves=curves)


def _is_loops(other: Finding) -> bool:
    return other.rule == eventloop_blocked.ID and other.grade >= Grade.PROBABLE


def _look(facts: Facts, curve: Curve, loops: bool) -> Look | str:
    capacity = capacity_of(curve)
    if isinstance(capacity, Insufficient):
        return capacity.reason
    used = cores_used(capacity.top)
    if isinstance(used, Insufficient):
        return used.reason
    return Look(
        curve=curve,
        capacity=capacity,
        step=capacity.top,
        cores=cores_of(curve, capacity.top),
        used=used,
        waited=cores_waited(capacity.top),
        bound=_bound(facts, curve, capacity.top),
        loops=loops,
    )


def _bound(facts: Facts, curve: Curve, top: Step) -> Bound | None:
    """The rate at which the cores that were there would be full, beside all that was completed."""
    if not isinstance(curve.work_all, Estimate) or not top.completed_trials:
        return None
    resource = Resource("CPU", _there(facts, curve, top), figures.known(curve.work_all))
    rate = completed(top)
    plateau = Interval(rate, rate, rate, 0.0, "completions at the highest load")
    return next(iter(bounds([resource], plateau)), None)


def _there(facts: Facts, curve: Curve, top: Step) -> float:
    """Cores that the service could have: where it shares them, what others used is gone."""
    may = cores_of(curve, top)
    if curve.shares_cores is False:
        return may
    taken = (top.generator.cpu_cores or 0.0) + (top.other_cores or 0.0)
    return max(0.01, min(may, facts.cores - taken))


def _share(look: Look) -> float:
    return look.used.point / look.cores


def _finding(facts: Facts, look: Look) -> Finding | None:
    signals, rivals = _signals(look), _rivals(facts, look)
    grade = grading.grade_of(signals, rivals, cap=grading.cap_of(look.curve))
    if grade is None:
        return None
    return Finding(
        rule=ID,
        grade=grade,
        impact=waiting_share(look.curve, look.capacity),
        scope=look.curve.label,
        statement=grading.statement(_statement(look)),
        explanation=_explanation(look),
        evidence=tuple(signal.evidence for signal in signals),
        counter=tuple(rivals),
        advice=_advice(look),
        confirm="half of the cores: half of the throughput, within 10 %",
        predictions=_predictions(look),
        explained_by=eventloop_blocked.ID if look.loops and not _is_crowded(look) else None,
        curves=(look.curve.label,),
    )


# --- evidence --------------------------------------------------------------------------------------------


def _signals(look: Look) -> list[grading.Signal]:
    gain = look.capacity.saturation.gain_per_doubling
    cores, used = look.cores, look.used
    share = replace(
        used,
        point=used.point / cores,
        low=None if used.low is None else used.low / cores,
        high=None if used.high is None else used.high / cores,
    )
    return [
        grading.stated(
            "plateau",
            look.capacity.saturation.verdict != "underdriven",
            text=f"the last doubling of users brought {numbers.signed_percent(gain)}",
            chip=f"last doubling {numbers.signed_percent(gain)}",
        ),
        grading.at_least(
            "cpu.used",
            share,
            FULL,
            text=f"the service uses {used.point:.2f} of {cores:g} cores "
            f"({numbers.percent(share.point)}, limit {numbers.percent(FULL)})",
            chip=f"{used.point:.2f} of {cores:g} cores used",
        ),
        _work(look),
        _queue(look),
    ]


def _work(look: Look) -> grading.Signal:
    """The CPU time of one request must account for the plateau."""
    work, bound = look.curve.work, look.bound
    if bound is None or not isinstance(work, Estimate) or work.point <= 0:
        known = f"the CPU time of one request does not tell: {numbers.shown(work)}"
        return grading.stated("work.cpu", None, text=known)
    rate = bound.utilisation * bound.rate.point
    ratio = 1 / bound.utilisation
    text = (
        f"{numbers.shown(work)} of CPU a request: full at {numbers.with_unit(bound.rate.point, '1/s')}, "
        f"{numbers.with_unit(rate, '1/s')} came out ({numbers.signed_percent(ratio - 1)}, "
        f"limit {numbers.signed_percent(1 / FULL - 1)})"
    )
    passed = True if ratio <= 1 / FULL else False if ratio >= RULED_OUT else None
    chip = f"{numbers.with_unit(work.point, 's')} of CPU a request"
    evidence = Evidence("work.cpu", text, chip, work.point, work.low, work.high, None, passed)
    return grading.Signal(evidence, bound.explains is True)


def _queue(look: Look) -> grading.Signal:
    """Where more threads work than there are cores, they wait for one."""
    cores = look.cores
    hot = [process.hot_threads for process in look.step.processes]
    known = [count for count in hot if count is not None]
    waits = look.waited is not None and look.waited >= WAITING_EACH * cores
    is_few = len(known) == len(hot) and 0 < sum(known) <= cores
    if look.waited is None:
        return grading.stated("runq.wait", None, text="waiting for a core was not read")
    text = f"{look.waited:.1f} threads wait for a core (limit {WAITING_EACH * cores:g})"
    if is_few and not waits:
        text += f"; no more threads work ({sum(known)}) than there are cores"
    return grading.stated("runq.wait", waits or is_few, text=text, chip=f"{look.waited:.1f} wait for a core")


def _rivals(facts: Facts, look: Look) -> list[Counter]:
    used, step = _share(look), look.step
    full = used >= FULL
    room = f"{numbers.percent(used)} of the cores are used"
    return [
        _loops(look),
        grading.rival("lock or storage", f"the service computes: {room}" if full else room, full),
        _stolen(step),
        _refusals(step),
        _generator(step),
        grading.shared_cores_rival(look.curve, step, facts.cores),
        grading.interference_rival(step, facts.cores),
    ]


def _is_crowded(look: Look) -> bool:
    """Whether more wants to run than the cores can: loops of which each has a core of its own do not wait."""
    return look.waited is not None and look.waited >= WAITING_EACH * look.cores


def _loops(look: Look) -> Counter:
    """Loops that fill a core each are the cause, and the cores are full with them."""
    if not look.loops:
        return grading.rival("event loops", "no blocked event loop was found", True)
    wait = "waiting was not read" if look.waited is None else f"{look.waited:.1f} threads wait"
    if _is_crowded(look):
        return grading.rival("event loops", f"more loops than cores: {wait} for {look.cores:g} cores", True)
    return grading.rival("event loops", f"the loops are full, each on its core: {wait}", None)


def _stolen(step: Step) -> Counter:
    name = "time taken by other machines"
    if step.steal is None:
        return grading.rival(name, "not read", None)
    return grading.rival(name, numbers.percent(step.steal), True if step.steal <= STOLEN else None)


def _refusals(step: Step) -> Counter:
    name = "work on refusals"
    if not isinstance(step.failed, Estimate):
        return grading.rival(name, "failures were not counted", None)
    return grading.rival(
        name, f"{numbers.percent(step.failed.point)} fail", step.failed.point <= MOST_REFUSED
    )


def _generator(step: Step) -> Counter:
    found = grading.generator_rival(step)
    # A late load does not make the service compute; it only cannot be excluded that it took the cores.
    return grading.left_open(found)


# --- words -----------------------------------------------------------------------------------------------


def _cores(look: Look) -> str:
    cores = look.cores
    return "The one core is" if cores == 1 else f"All {cores:g} cores are"


def _statement(look: Look) -> str:
    rate = numbers.with_unit(look.capacity.saturation.capacity, "1/s")
    work = look.curve.work
    if not isinstance(work, Estimate) or work.point <= 0:
        return f"{_cores(look)} used ({look.used.point:.2f}) at {rate}"
    return f"{_cores(look)} used at {rate}: {numbers.with_unit(work.point, 's')} of CPU a request"


def _explanation(look: Look) -> str:
    cores, top = look.cores, look.step
    text = (
        f"At {top.load:g} users the service uses {look.used.point:.2f} of the {cores:g} cores that it may use"
    )
    if look.waited is not None and look.waited >= WAITING_EACH:
        text += f", and {look.waited:.1f} threads wait for one"
    return (
        f"{text}; {numbers.percent(waiting_share(look.curve, look.capacity))} of the response "
        f"time is waiting."
    )


def _advice(look: Look) -> str:
    work = look.curve.work_all
    if not isinstance(work, Estimate) or work.point <= 0:
        return "Make requests cheaper or add cores; more threads or processes bring nothing."
    each = numbers.with_unit(1 / work.point, "1/s")
    return (
        f"Make a request cheaper than {numbers.with_unit(work.point, 's')} of CPU (profile it), "
        f"or add cores: each brings {each}; more threads or processes bring nothing."
    )


def _predictions(look: Look) -> tuple[Prediction, ...]:
    """Twice the cores, by arithmetic: only where the CPU time is known and was the limit."""
    rate = look.step.throughput
    if look.bound is None or look.bound.explains is not True or not isinstance(rate, Estimate):
        return ()
    after = replace(
        rate,
        point=2 * rate.point,
        low=None if rate.low is None else 2 * rate.low,
        high=None if rate.high is None else 2 * rate.high,
        method="arithmetic: twice the cores over the same CPU time of one request",
    )
    return (Prediction(f"most requests/s with {2 * look.cores:g} cores", rate, after),)


def _silence(facts: Facts, look: Look) -> str:
    return grading.contradiction(look.curve.label, _signals(look), _rivals(facts, look))
