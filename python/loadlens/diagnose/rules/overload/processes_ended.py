"""Processes of the service end while they are asked, and their requests with them.

**Means.** A worker of the service crashes, is killed for its memory, or exceeds the time that its supervisor
allows. Its connections are cut. Until another one has begun in its place, the others do its share.

**Needs.** At levels at which at least 0.1 % of the requests get no answer because their connection is
refused, reset or closed, two processes of one program of the service that are gone before the level is over;
one is only suspected. At levels without failures, of which there is at least one, no process of that program
may end; if fewer than 3 would have ended there, at as many for each request as at the others, it is only
suspected: they may end by design after so many requests. Processes of a PostgreSQL server whose titles are
read do not count: one ends with each connection.

**Ruled out by.** Nothing else is known to look like this. Why a process ended is not seen from outside, so
the finding is never more than probable.

**Thresholds.** Two: one may be an accident, or an operator. A process counts as gone after one and a half
times the interval in which processes are looked at.

**Do.** Read what the service and its supervisor say of it: an exception, a time limit (WORKER TIMEOUT),
memory (the kernel's log names what it kills).

**Confirm.** With the cause removed, the same processes are there after the same load.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Lacking, Nothing, Words, assessing, on_curve
from loadlens.diagnose.observe.vain_waits import LEAST_SHARE
from loadlens.model.facts import Curve, EndedLevel, Facts, Step
from loadlens.model.finding import Grade
from loadlens.present import load_text, numbers, words

ID = "processes.ended"
TITLE = "processes of the service end under load"
EXPLAINS: tuple[str, ...] = (
    *("requests.stuck", "retrograde.throughput", "accept.drops", "shed.overload", "timeouts.cliff"),
    *("pause.periodic", "pause.aperiodic"),
)

SEVERAL = 2
EXPECTED = 3.0  # processes that would end at levels without failures as well, if they do by design
CUT = frozenset({"refused", "reset", "closed_before_response", "closed_on_reuse", "truncated"})


@dataclass(frozen=True, slots=True)
class Ended:
    """Processes of one program that ended at levels of a curve at which connections were cut."""

    curve: Curve
    level: Step | EndedLevel  # that cut the largest share of the requests
    program: str
    count: int  # over all these levels
    begun: int  # meanwhile
    expected: float  # that would have ended at levels without failures, if they end after so many requests


def observe(facts: Facts) -> Sequence[Ended] | Lacking | Nothing:
    """Return the programs of which processes ended, those with most first."""
    if not any(step.processes for curve in facts.curves for step in curve.steps):
        return Lacking("needs the processes of the service, on this machine")
    ended = [each for curve in facts.curves for each in _on(curve)]
    return sorted(ended, key=lambda each: -each.count) or Nothing("no process of the service ended")


def _on(curve: Curve) -> list[Ended]:
    levels: list[Step | EndedLevel] = [*curve.steps, *curve.ended]
    well = [level for level in levels if not level.failed_count]
    cut = sorted((level for level in levels if _cut(level) >= LEAST_SHARE), key=_cut)
    if not well or not cut:
        return []
    usual = {each.program for level in well for each in level.ended_processes}
    usual |= {place.program for step in curve.steps for place in step.places if place.seen_in == "titles"}
    count, begun = Counter[str](), Counter[str]()
    for level in cut:
        for each in level.ended_processes:
            count[each.program] += each.ended
            begun[each.program] += each.begun
    served, under = (sum(level.issued or 0 for level in some) for some in (well, cut))
    return [
        Ended(curve, cut[-1], name, number, begun[name], number * served / max(1, under))
        for name, number in count.items()
        if name not in usual
    ]


def _cut(level: Step | EndedLevel) -> float:
    """Return the share of the requests whose connection was cut."""
    return sum(mode.count for mode in level.failures if mode.outcome in CUT) / (level.issued or 1)


def claim(_: Facts, seen: Ended) -> Claim:
    """Require several processes that ended, and requests that were cut meanwhile."""
    at, program = load_text.load_of(seen.curve, seen.level), seen.program
    share = _cut(seen.level)
    gone = words.plural(seen.count, f"{program} process", f"{program} processes")
    signals = [
        grading.stated(
            "processes.gone",
            True if seen.count >= SEVERAL else None,
            text=f"{gone} ended where requests fail, and {seen.begun} began (limit {SEVERAL}); none ended "
            "where no request fails",
            chip=f"{gone} ended",
            value=float(seen.count),
        ),
        grading.stated(
            "processes.usual",
            True if seen.expected >= EXPECTED else None,
            text=f"{seen.expected:.2g} would have ended where no request fails, at as many for each request "
            f"(limit {EXPECTED:g}); none did",
        ),
        grading.stated(
            "errors.cut",
            share >= LEAST_SHARE,
            text=f"{numbers.percent(share)} of the requests are cut off at {at} "
            f"(limit {numbers.percent(LEAST_SHARE)})",
            chip=f"{numbers.percent(share)} cut",
            value=share,
        ),
    ]
    rivals = [grading.rival("processes that end by design", "why they end is not known", None)]

    def text(_: Grade) -> Words:
        verb = "ends" if seen.count == 1 else "end"
        return Words(
            statement=f"{gone} {verb} under load; at {at} {numbers.percent(share)} of the requests are "
            "cut off",
            explanation=f"Requests of a process that ends get no answer; {seen.begun} of its kind began "
            "meanwhile.",
            advice="Read what the service and its supervisor say of it: an exception, a time limit of the "
            "supervisor, or memory (the kernel's log names what it kills).",
            confirm="once the cause is removed, the same processes are there after the same load",
            impact=share,
            unknown=("why they end",),
        )

    return on_curve(seen.curve, signals, rivals, text, cap=Grade.PROBABLE)


assess = assessing(ID, TITLE, observe, claim)
