"""A cheap request takes as long as what is ahead of it.

**Means.** Cheap and expensive requests stand in one line. What a cheap one takes is not its own doing: it is
the number of requests that were under way when it came, times what each of them holds the line.

**Needs.** A blocked event loop, than which it is no surer. Over at least 500 probes, each request that was
under way when a probe was due adds a quarter of what one request holds the line or more (1 / throughput at
the highest load), and the number under way explains at least half of how much the waits vary.

**Ruled out by.** Cores that are shared fairly, or nothing shared: then a request ahead adds a few per cent of
its work, or nothing. The same number under way all the time: then nothing can be told.

**Thresholds.** Threads that share a core added 2 % of the work for each request ahead, one line all of it; a
quarter stands between. Half of the variance: what is left is where in the current work a probe arrives.

**Do.** Give cheap requests a line of their own: a process, a port, or a priority.

**Confirm.** A process of its own for the cheap path: what is under way no longer adds to it.
"""

from __future__ import annotations

from collections.abc import Sequence

from loadlens.diagnose import grading
from loadlens.diagnose.rules.processor import eventloop_blocked
from loadlens.estimate.separation import AHEAD_EXPLAINS, AHEAD_SHARE
from loadlens.measure.curve import completed
from loadlens.model.facts import Curve, Facts
from loadlens.model.finding import Absent, Counter, Estimate, Evidence, Finding, NotAssessed
from loadlens.present import numbers

ID = "hol.correlation"
TITLE = "cheap requests wait for what is ahead of them"
EXPLAINS: tuple[str, ...] = ()


def assess_after(
    facts: Facts, others: Sequence[Finding | Absent | NotAssessed]
) -> Finding | Absent | NotAssessed:
    """Look at every curve on which an event loop is blocked."""
    loops = next((other for other in others if other.rule == eventloop_blocked.ID), None)
    if isinstance(loops, Absent):
        return Absent(ID, TITLE, f"no event loop is blocked: {loops.reason}")
    if not isinstance(loops, Finding):
        why = "needs a look for blocked event loops" if loops is None else loops.reason
        return NotAssessed(ID, TITLE, why)
    curves = [curve for curve in facts.curves if curve.label in loops.curves]
    known = [curve for curve in curves if curve.ahead is not None and isinstance(curve.ahead.slope, Estimate)]
    if not known:
        slopes = [curve.ahead.slope for curve in curves if curve.ahead is not None]
        reasons = [slope.reason for slope in slopes if not isinstance(slope, Estimate)]
        return NotAssessed(ID, TITLE, reasons[0] if reasons else "needs the log of single requests")
    findings = [f for curve in known if (f := _finding(curve, loops)) is not None]
    if findings:
        return grading.for_all(findings)
    signals = _signals(known[0])
    return Absent(ID, TITLE, f"{known[0].label}: {grading.unclear(signals)}")


def _finding(curve: Curve, loops: Finding) -> Finding | None:
    watch = curve.ahead
    assert watch is not None  # only asked of such curves
    signals, rivals = _signals(curve), _rivals(curve)
    grade = grading.grade_of(signals, rivals, cap=min(grading.cap_of(curve), loops.grade))
    if grade is None or not isinstance(watch.slope, Estimate):
        return None
    each, probe = numbers.with_unit(watch.slope.point, "s"), grading.short_label(watch.probe)
    mean = (watch.ahead or 0.0) * watch.slope.point
    return Finding(
        rule=ID,
        grade=grade,
        impact=min(1.0, watch.explained or 0.0),
        scope=curve.label,
        statement=grading.statement(f"Each request that is ahead adds {each} to {probe}"),
        explanation=f"{watch.ahead or 0.0:.1f} were under way when one of {watch.probes:,} probes came, on "
        f"average: {numbers.with_unit(mean, 's')} of waiting. Their number explains "
        f"{numbers.percent(watch.explained or 0.0)} of how much the waits vary.",
        evidence=tuple(signal.evidence for signal in signals),
        counter=tuple(rivals),
        advice=f"Give {probe} a line of its own (a process or port): it then no longer waits "
        f"{each} for each request that is ahead.",
        confirm="a process of its own for the cheap path: what is under way no longer adds to it",
        curves=(curve.label,),
    )


def _held(curve: Curve) -> float | None:
    """How long one request holds the line, from the throughput at the highest load."""
    mean = completed(curve.steps[-1]) if curve.steps else 0.0
    return 1 / mean if mean > 0 else None


def _signals(curve: Curve) -> list[grading.Signal]:
    watch, held = curve.ahead, _held(curve)
    assert watch is not None
    if held is None or watch.explained is None:
        return [grading.stated("probe.ahead", None, text="how long one request holds the line is not known")]
    limit = AHEAD_SHARE * held
    text = (
        f"each request ahead adds {numbers.shown(watch.slope)} to {watch.probe}, one holds the line for "
        f"{numbers.with_unit(held, 's')} (limit {numbers.with_unit(limit, 's')})"
    )
    chip = f"{numbers.short(watch.slope)} for each ahead"
    explains = watch.explained >= AHEAD_EXPLAINS
    return [
        grading.at_least("probe.ahead", watch.slope, limit, text=text, chip=chip),
        grading.Signal(
            Evidence(
                "probe.ahead-explains",
                f"the number ahead explains {numbers.percent(watch.explained)} of how the waits vary "
                f"(limit {numbers.percent(AHEAD_EXPLAINS)})",
                f"explains {numbers.percent(watch.explained)}",
                watch.explained,
                None,
                None,
                AHEAD_EXPLAINS,
                explains,
            ),
            explains,
        ),
    ]


def _rivals(curve: Curve) -> list[Counter]:
    late = any(probe.is_late for step in curve.steps for probe in step.probes)
    return [
        grading.rival("late probe", "sent late" if late else "sent in time", None if late else True),
        grading.generator_rival(curve.steps[-1]),
    ]
