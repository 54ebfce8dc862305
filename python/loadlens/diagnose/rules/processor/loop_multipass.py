"""A handler queues again behind blocking work, several times a request.

**Means.** Each time a handler releases the event loop (an await, a hop to a thread and back, a body read in
pieces) it comes back to the end of the queue. While other requests compute on the loop, every such crossing
waits for all of them, so one expensive request waits several times as long as a cheap one.

**Needs.** A blocked event loop on one process, whose grade bounds this one. At the two highest levels of load
at which both wait, the expensive requests wait at least 1.15 times as long as a probe, each ratio above 1
with its interval. Waiting is the time beyond the same request alone.

**Ruled out by.** A load that opens connections for more than 10 % of its requests: accepting one is a
crossing too. Several processes: a probe may find the one that is free. A queue elsewhere, before a pool or a
lock, in which requests wait and probes do not: the wait there by the gauges is subtracted (waiting over
throughput, Little's law). Without gauges it is not excluded, and the finding is suspected at most where the
probe keeps its connection. A delay elsewhere that exists without any load, unless one user alone was
measured. A probe that was sent late.

**Thresholds.** A request that crosses once waits at most as long as a probe: (N - 1) D against (N - 1/2) D in
one queue, and two thirds of it where the probe uses a connection of its own, which a loop accepts in one turn
and reads in the next. So 1 is already more than one crossing can give, and 0.15 leaves room for the means.
The number of crossings is a lower bound: users in step all compute in one turn of the loop, the further turns
are short, and a probe then waits half of the long one, however many short ones there are.

**Do.** Do the blocking work in one stretch: fewer awaits around it, or none of it on the loop.

**Confirm.** Remove one await around the work: below saturation requests are faster by one wait of the
probe.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loadlens.diagnose import grading
from loadlens.diagnose.driver import (
    Answer,
    Claim,
    Lacking,
    Nothing,
    Words,
    all_seen,
    assessing_after,
    for_all,
    objecting,
    on_curve,
)
from loadlens.diagnose.observe.limits import point
from loadlens.diagnose.rules.processor import eventloop_blocked
from loadlens.estimate.probes import Waiting
from loadlens.measure.curve import alone_time, completed, costliest_class, working
from loadlens.model.facts import Curve, Facts, ProbeWatch, RequestClass, Step
from loadlens.model.finding import Counter, Evidence, Finding, Grade
from loadlens.present import words
from loadlens.present.numbers import percent, with_unit

ID = "loop.multipass"
TITLE = "a handler queues several times behind blocking work"
EXPLAINS: tuple[str, ...] = ()

LEAST_RATIO = 1.15
LEVELS = 2
MOST_OPENED = 0.10  # of the requests
FEWEST_PASSES = 2.0


@dataclass(frozen=True, slots=True)
class SeveralPasses:
    """Waits of both kinds of requests at the highest levels of one curve."""

    curve: Curve
    step: Step
    probe: ProbeWatch
    costliest: RequestClass
    waits: tuple[Waiting, ...]  # of the highest levels at which both wait, the highest last
    loop_grade: Grade

    @property
    def ratio(self) -> float:
        """The lower of the ratios: it holds at every level."""
        return min(waits.passes.point for waits in self.waits)

    @property
    def low(self) -> float | None:
        """The lower end of all; `None` if one is open."""
        lows = [waits.passes.low for waits in self.waits]
        closed = [low for low in lows if low is not None]
        return min(closed) if len(closed) == len(lows) else None


def observe(facts: Facts, others: Sequence[Answer]) -> Sequence[SeveralPasses] | Lacking | Nothing:
    """Return every curve on which a blocked event loop was found."""
    loops = eventloop_blocked.answer_of(others)
    if not isinstance(loops, Finding):
        return loops
    curves = [curve for curve in facts.curves if curve.label in loops.curves]
    seen = all_seen(_passes(curve, loops.grade) for curve in curves)
    return Lacking(f"{curves[0].label}: {seen.reason}") if curves and isinstance(seen, Lacking) else seen


def _passes(curve: Curve, loop_grade: Grade) -> SeveralPasses | str:
    place = eventloop_blocked.place_of(curve)
    if isinstance(place, str):
        return place
    step = curve.steps[place]
    probe, costliest = eventloop_blocked.probe_of(step), costliest_class(curve, step)
    assert probe is not None  # a place has both
    assert costliest is not None
    if len(working(step)) != 1:
        return f"{len(working(step))} processes work: a probe may find the one that is free"
    levels = [eventloop_blocked.waits_of(level, probe.label, curve) for level in curve.steps[: place + 1]]
    waits = [level for level in levels if isinstance(level, Waiting) and level.probe_s > 0]
    if len(waits) < LEVELS:
        return f"requests and probes wait at {len(waits)} level of load, needs {LEVELS}"
    return SeveralPasses(curve, step, probe, costliest, tuple(waits[-LEVELS:]), loop_grade)


def claim(facts: Facts, seen: SeveralPasses) -> Claim:
    """Hold the waits of expensive requests against those of a probe, at each level."""
    curve, probe, costliest, last = seen.curve, seen.probe, seen.costliest, seen.waits[-1]
    ratio, low = seen.ratio, seen.low
    ratios = " and ".join(f"{waits.passes.point:.2f}" for waits in seen.waits)
    bound = "open" if low is None else f"{low:.2f}"
    text = (
        f"{costliest.label} waits {ratios} times as long as {probe.label} at the {LEVELS} highest "
        f"levels (at least {bound}; limits {LEAST_RATIO} and 1)"
    )
    passed = None if ratio >= LEAST_RATIO and (low is None or low <= 1) else ratio >= LEAST_RATIO
    least, chip = max(FEWEST_PASSES, low or 0.0), f"waits {ratio:.1f} times as long"
    evidence = Evidence("loop.passes", text, chip, least, least, None, None, passed)
    signals = [grading.Signal(evidence, passed is True)]
    # A probe that is accepted anew waits twice itself: what keeps its connection has no such margin.
    if not probe.fresh_connections and _elsewhere_s(seen.step) is None:
        text = f"{probe.label} keeps its connection, and no gauge says whether requests wait elsewhere"
        signals.append(grading.stated("wait.elsewhere", None, text=text))
    is_measured = alone_time(curve)[1]
    rivals = [
        _opened_rival(seen.step),
        _elsewhere_rival(seen.step, last),
        grading.rival(
            "a delay elsewhere",
            "waits are counted beyond one user alone" if is_measured else "one user alone was not measured",
            True if is_measured else None,
        ),
        grading.rival(
            "late probe",
            "the probe was sent late" if probe.is_late else "the probe was sent in time",
            not probe.is_late,
        ),
    ]

    def texts(_: Grade) -> Words:
        label, wait = grading.short_label(costliest.label), with_unit(last.probe_s, "s")
        return Words(
            statement=f"{label} crosses the blocked loop at least {FEWEST_PASSES:g} times: "
            f"{last.passes.point:.1f} waits of a probe",
            explanation=f"At {words.users(seen.step.load)} {label} waits "
            f"{with_unit(last.expensive_s, 's')} beyond its own time, {probe.label} "
            f"{wait}: each time it lets go of the loop it queues again.",
            advice=f"Do the work of {label} in one stretch (fewer awaits and hops to threads around it): "
            f"each crossing waits about {wait}; best is none of it on the loop.",
            confirm="one await less around the work: below saturation requests are faster by a wait of the "
            "probe",
            impact=1 - 1 / ratio,
            unknown=("how many crossings exactly: users who go in step hide some",),
            scope=f"{costliest.request} · {curve.label}",
        )

    return on_curve(curve, signals, rivals, texts, cap=seen.loop_grade)


def _elsewhere_s(step: Step) -> float | None:
    """Time a request waits before pools and locks by their gauges, seconds; `None` if none says so."""
    gauges = [place.waiting for place in step.places if place.kind in ("lock", "pool", "threads")]
    waiting = [value for gauge in gauges if (value := point(gauge)) is not None]
    rate = completed(step)
    return sum(waiting) / rate if waiting and rate > 0 else None


def _elsewhere_rival(step: Step, waits: Waiting) -> Counter:
    name, elsewhere = "a line elsewhere", _elsewhere_s(step)
    if elsewhere is None:
        return grading.rival(name, "no gauge of a pool or a lock says who waits", None)
    rest = max(0.0, waits.expensive_s - elsewhere)
    least = LEAST_RATIO * waits.probe_s
    text = (
        f"{with_unit(elsewhere, 's')} are waited at pools and locks, {with_unit(rest, 's')} "
        f"are left (limit {with_unit(least, 's')})"
    )
    return grading.rival(name, text, rest >= least)


def _opened_rival(step: Step) -> Counter:
    name, watch = "connections of the load", step.connections
    if watch is None or not watch.answered:
        return grading.rival(name, "not counted", None)
    share = watch.opened / watch.answered
    return grading.rival(name, f"{percent(share)} of requests opened one", share <= MOST_OPENED)


_silence = objecting(claim, lambda seen: seen.ratio)
assess_after = assessing_after(ID, TITLE, observe, claim, choose=for_all, silence=_silence)
