"""A cheap request takes as long as what is ahead of it.

**Means.** Cheap and expensive requests share one queue. The time of a cheap one is the number of requests
that were under way when it arrived, times how long each of them holds the queue.

**Needs.** A blocked event loop, whose grade bounds this one. Over at least 500 probes, each request that was
under way when a probe was due adds at least 25 % of the time for which one request holds the queue
(1 / throughput at the highest load), and the number under way explains at least half of the variance of the
waits.

**Ruled out by.** Cores that are shared fairly, or nothing shared: then a request ahead adds a few per cent of
its work, or nothing. The same number under way all the time: then the two cannot be distinguished.

**Thresholds.** Threads that share a core added 2 % of the work for each request ahead, one queue all of it;
25 % lies between. Half of the variance: the rest is where in the current work a probe arrives.

**Do.** Give cheap requests a queue of their own: a process, a port, or a priority.

**Confirm.** Give the cheap path a process of its own: requests under way no longer add to its time.
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
    assessing_after,
    for_all,
    on_curve,
)
from loadlens.diagnose.rules.processor import eventloop_blocked
from loadlens.estimate.separation import AHEAD_EXPLAINS, AHEAD_SHARE
from loadlens.measure.curve import completed
from loadlens.model.facts import AheadWatch, Curve, Facts
from loadlens.model.finding import Estimate, Evidence, Finding, Grade
from loadlens.present import numbers
from loadlens.present.numbers import percent, with_unit

ID = "hol.correlation"
TITLE = "cheap requests wait for what is ahead of them"
EXPLAINS: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class QueueAhead:
    """The growth of a probe's wait with the requests ahead of it, where an event loop is blocked."""

    curve: Curve
    watch: AheadWatch
    slope: Estimate  # seconds for each request ahead
    loop_grade: Grade


def observe(facts: Facts, others: Sequence[Answer]) -> Sequence[QueueAhead] | Lacking | Nothing:
    """Return every curve on which an event loop is blocked and probes' waits were compared."""
    loops = eventloop_blocked.answer_of(others)
    if not isinstance(loops, Finding):
        return loops
    curves = [curve for curve in facts.curves if curve.label in loops.curves]
    watches = [(curve, curve.ahead) for curve in curves if curve.ahead is not None]
    queues = [
        QueueAhead(curve, watch, watch.slope, loops.grade)
        for curve, watch in watches
        if isinstance(watch.slope, Estimate)
    ]
    reasons = [watch.slope.reason for _, watch in watches if not isinstance(watch.slope, Estimate)]
    return queues or Lacking(reasons[0] if reasons else "needs the log of single requests")


def claim(_: Facts, queue: QueueAhead) -> Claim:
    """Hold what each request ahead adds against how long one holds the line."""
    curve, watch = queue.curve, queue.watch
    rate = completed(curve.steps[-1]) if curve.steps else 0.0
    explained = watch.explained
    if rate <= 0 or explained is None:
        text = "how long one request holds the line is not known"
        signals = [grading.stated("probe.ahead", None, text=text)]
    else:
        share, limit_s = percent(explained), AHEAD_SHARE / rate
        text = (
            f"each request ahead adds {numbers.shown(queue.slope)} to {watch.probe}, one holds the line for "
            f"{with_unit(1 / rate, 's')} (limit {with_unit(limit_s, 's')})"
        )
        chip = f"{numbers.short(queue.slope)} for each ahead"
        is_passed = explained >= AHEAD_EXPLAINS
        evidence = Evidence(
            "probe.ahead-explains",
            f"the number ahead explains {share} of how the waits vary (limit {percent(AHEAD_EXPLAINS)})",
            f"explains {share}",
            explained,
            None,
            None,
            AHEAD_EXPLAINS,
            is_passed,
        )
        signals = [
            grading.at_least("probe.ahead", queue.slope, limit_s, text=text, chip=chip),
            grading.Signal(evidence, is_passed),
        ]
    is_late = any(probe.is_late for step in curve.steps for probe in step.probes)
    rivals = [
        grading.rival("late probe", "sent late" if is_late else "sent in time", None if is_late else True),
        grading.generator_rival(curve.steps[-1]),
    ]

    def words(_: Grade) -> Words:
        each, probe = with_unit(queue.slope.point, "s"), grading.short_label(watch.probe)
        mean_s = (watch.ahead or 0.0) * queue.slope.point
        return Words(
            statement=f"Each request that is ahead adds {each} to {probe}",
            explanation=f"{watch.ahead or 0.0:.1f} were under way when one of {watch.probes:,} probes came, "
            f"on average: {with_unit(mean_s, 's')} of waiting. Their number explains "
            f"{percent(explained or 0.0)} of how much the waits vary.",
            advice=f"Give {probe} a line of its own (a process or port): it then no longer waits "
            f"{each} for each request that is ahead.",
            confirm="a process of its own for the cheap path: what is under way no longer adds to it",
            impact=explained or 0.0,
        )

    return on_curve(curve, signals, rivals, words, cap=queue.loop_grade)


def _silence(facts: Facts, queues: Sequence[QueueAhead]) -> str:
    return f"{queues[0].curve.label}: {grading.unclear(claim(facts, queues[0]).signals)}"


assess_after = assessing_after(ID, TITLE, observe, claim, choose=for_all, silence=_silence)
