"""A handler queues again behind blocking work, several times a request.

**Means.** Each time a handler lets go of the event loop (an await, a hop to a thread and back, a body read in
pieces) it comes back to the end of the line. While other requests compute on the loop, every such crossing
waits for all of them, so one expensive request waits several times as long as a cheap one.

**Needs.** A blocked event loop on one process, than which it is no surer. At the two highest levels of load
at which both wait, the expensive requests wait at least 1.15 times as long as a probe, each ratio above 1
with its interval. What counts is time beyond the same request alone.

**Ruled out by.** A load that opens connections for more than a tenth of its requests: accepting one is a
crossing too. Several processes: a probe may find the one that is free. A line elsewhere, before a pool or a
lock, in which requests stand and probes do not: what the gauges say is waited there is taken off (waiting
over throughput, Little's law). Without gauges it is not excluded, and where the probe keeps its connection
suspected at most. A delay elsewhere that is there without any load, unless one user alone was measured. A
probe that was sent late.

**Thresholds.** Who crosses once waits at most as long as a probe: (N - 1) D against (N - 1/2) D in one line,
and two thirds of it where the probe comes on a connection of its own, which a loop accepts in one turn and
reads in the next. So 1 is already more than one crossing can give, and 0.15 leaves room for the means. The
number of crossings is a lower bound: users who go in step all compute in one turn of the loop, the further
turns are short, and a probe then waits half of the long one, however many short ones there are.

**Do.** Do the blocking work in one stretch: fewer awaits around it, or none of it on the loop.

**Confirm.** One await less around the work: below saturation requests are faster by one wait of the probe.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loadlens.diagnose import grading
from loadlens.diagnose.observe.places import point
from loadlens.diagnose.rules.processor import eventloop_blocked
from loadlens.estimate.probes import Waiting
from loadlens.measure.curve import alone_time, completed, dearest, working
from loadlens.model.facts import Curve, Facts, ProbeWatch, RequestClass, Step
from loadlens.model.finding import Absent, Counter, Evidence, Finding, NotAssessed
from loadlens.present import numbers, words

ID = "loop.multipass"
TITLE = "a handler queues several times behind blocking work"
EXPLAINS: tuple[str, ...] = ()

LEAST_RATIO = 1.15
LEVELS = 2
MOST_OPENED = 0.10  # of the requests
FEWEST_PASSES = 2.0


@dataclass(frozen=True, slots=True)
class Look:
    """How both kinds of requests wait at the highest levels of one curve."""

    curve: Curve
    step: Step
    probe: ProbeWatch
    dear: RequestClass
    waits: tuple[Waiting, ...]  # of the highest levels at which both wait, the highest last


def assess_after(
    facts: Facts, others: Sequence[Finding | Absent | NotAssessed]
) -> Finding | Absent | NotAssessed:
    """Look at every curve on which a blocked event loop was found."""
    loops = next((other for other in others if other.rule == eventloop_blocked.ID), None)
    if loops is None or isinstance(loops, NotAssessed):
        why = "needs a look for blocked event loops" if loops is None else loops.reason
        return NotAssessed(ID, TITLE, why)
    if isinstance(loops, Absent):
        return Absent(ID, TITLE, f"no event loop is blocked: {loops.reason}")
    curves = [curve for curve in facts.curves if curve.label in loops.curves]
    looks, lacks = grading.parted(_look(curve) for curve in curves)
    if not looks:
        return NotAssessed(ID, TITLE, f"{curves[0].label}: {lacks[0]}" if lacks else "no load curve")
    findings = [f for look in looks if (f := _finding(look, loops)) is not None]
    if findings:
        return grading.for_all(findings)
    return Absent(ID, TITLE, _silence(max(looks, key=_ratio)))


def _look(curve: Curve) -> Look | str:
    place = eventloop_blocked.place_of(curve)
    if isinstance(place, str):
        return place
    step = curve.steps[place]
    probe = eventloop_blocked.probe_of(step)
    dear = dearest(curve, step)
    assert probe is not None  # a place has both
    assert dear is not None
    if len(working(step)) != 1:
        return f"{len(working(step))} processes work: a probe may find the one that is free"
    known = [eventloop_blocked.waits_of(one, probe.label, curve) for one in curve.steps[: place + 1]]
    waits = [one for one in known if isinstance(one, Waiting) and one.probe_s > 0]
    if len(waits) < LEVELS:
        return f"requests and probes wait at {len(waits)} level of load, needs {LEVELS}"
    return Look(curve, step, probe, dear, tuple(waits[-LEVELS:]))


def _ratio(look: Look) -> float:
    """The lower of the ratios: what holds at every level."""
    return min(waits.passes.point for waits in look.waits)


def _low(look: Look) -> float | None:
    lows = [waits.passes.low for waits in look.waits]
    known = [low for low in lows if low is not None]
    return min(known) if len(known) == len(lows) else None


def _finding(look: Look, loops: Finding) -> Finding | None:
    signals, rivals = [_signal(look), *_own_line(look)], _rivals(look)
    grade = grading.grade_of(signals, rivals, cap=min(grading.cap_of(look.curve), loops.grade))
    if grade is None:
        return None
    label = grading.short_label(look.dear.label)
    last = look.waits[-1]
    return Finding(
        rule=ID,
        grade=grade,
        impact=max(0.0, 1 - 1 / _ratio(look)),
        scope=f"{look.dear.request} · {look.curve.label}",
        statement=grading.statement(
            f"{label} crosses the blocked loop at least {FEWEST_PASSES:g} times: "
            f"{last.passes.point:.1f} waits of a probe"
        ),
        explanation=f"At {words.users(look.step.load)} {label} waits "
        f"{numbers.with_unit(last.expensive_s, 's')} beyond its own time, {look.probe.label} "
        f"{numbers.with_unit(last.probe_s, 's')}: each time it lets go of the loop it queues again.",
        evidence=tuple(signal.evidence for signal in signals),
        counter=tuple(rivals),
        advice=f"Do the work of {label} in one stretch (fewer awaits and hops to threads around it): each "
        f"crossing waits about {numbers.with_unit(last.probe_s, 's')}; best is none of it on the loop.",
        confirm="one await less around the work: below saturation requests are faster by a wait of the probe",
        unknown=("how many crossings exactly: users who go in step hide some",),
        curves=(look.curve.label,),
    )


def _signal(look: Look) -> grading.Signal:
    ratio, low = _ratio(look), _low(look)
    shown = " and ".join(f"{waits.passes.point:.2f}" for waits in look.waits)
    bound = "open" if low is None else f"{low:.2f}"
    text = (
        f"{look.dear.label} waits {shown} times as long as {look.probe.label} at the {LEVELS} highest "
        f"levels (at least {bound}; limits {LEAST_RATIO} and 1)"
    )
    passed = None if ratio >= LEAST_RATIO and (low is None or low <= 1) else ratio >= LEAST_RATIO
    least = max(FEWEST_PASSES, low or 0.0)
    chip = f"waits {ratio:.1f} times as long"
    evidence = Evidence("loop.passes", text, chip, least, least, None, None, passed)
    return grading.Signal(evidence, passed is True)


def _own_line(look: Look) -> list[grading.Signal]:
    """A probe that is accepted anew waits twice itself: what keeps its connection has no such margin."""
    if look.probe.fresh_connections or _elsewhere_s(look.step) is not None:
        return []
    text = f"{look.probe.label} keeps its connection, and no gauge says whether requests wait elsewhere"
    return [grading.stated("wait.elsewhere", None, text=text)]


def _elsewhere_s(step: Step) -> float | None:
    """What a request waits before pools and locks by their gauges, seconds; none: none is told."""
    told = [place.waiting for place in step.places if place.kind in ("lock", "pool", "threads")]
    known = [value for gauge in told if (value := point(gauge)) is not None]
    rate = completed(step)
    return sum(known) / rate if known and rate > 0 else None


def _rivals(look: Look) -> list[Counter]:
    _, is_measured = alone_time(look.curve)
    late = look.probe.is_late
    return [
        _opened(look),
        _line_elsewhere(look),
        grading.rival(
            "a delay elsewhere",
            "waits are counted beyond one user alone" if is_measured else "one user alone was not measured",
            True if is_measured else None,
        ),
        grading.rival(
            "late probe", "the probe was sent late" if late else "the probe was sent in time", not late
        ),
    ]


def _line_elsewhere(look: Look) -> Counter:
    name, waits, elsewhere = "a line elsewhere", look.waits[-1], _elsewhere_s(look.step)
    if elsewhere is None:
        return grading.rival(name, "no gauge of a pool or a lock says who waits", None)
    rest = max(0.0, waits.expensive_s - elsewhere)
    least = LEAST_RATIO * waits.probe_s
    text = (
        f"{numbers.with_unit(elsewhere, 's')} are waited at pools and locks, {numbers.with_unit(rest, 's')} "
        f"are left (limit {numbers.with_unit(least, 's')})"
    )
    return grading.rival(name, text, rest >= least)


def _opened(look: Look) -> Counter:
    name, watch = "connections of the load", look.step.connections
    if watch is None or not watch.answered:
        return grading.rival(name, "not counted", None)
    share = watch.opened / watch.answered
    return grading.rival(name, f"{numbers.percent(share)} of requests opened one", share <= MOST_OPENED)


def _silence(look: Look) -> str:
    return grading.contradiction(look.curve.label, [_signal(look)], _rivals(look))
