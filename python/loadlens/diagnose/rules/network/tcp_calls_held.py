"""Calls to another program wait until TCP acknowledges their first piece.

**Means.** A call, or its answer, is written in two small pieces on a connection without TCP_NODELAY. The
second piece is sent when the first one is acknowledged (J. Nagle, RFC 896), and the receiver delays its
acknowledgement by 40 ms, because it waits for something to send along (RFC 1122). Neither side works
meanwhile.

**Needs.** Calls to a program of this machine, and connections on which either side keeps less than a segment
back although the window has room, and something sent before is not acknowledged yet. By Little's law their
mean number over throughput is the time that a request waits so: at least 5 ms, and a fifth of the time that
a request takes at that load. It is seen at two levels of load or more.

**Ruled out by.** Nothing else keeps a small piece from being sent: not the window of the other side, and not
lost segments, for then there is no room in the window.

**Thresholds.** 5 ms: without the delay an acknowledgement comes within a millisecond on one machine, and a
look may fall into it. A fifth of the time: below, it is not what limits.

**Do.** Set TCP_NODELAY on these connections, or write each call, and each answer, at once.

**Confirm.** With TCP_NODELAY no piece is kept back, and each call takes that much less.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Lacking, Nothing, Words, assessing, on_curve, strongest
from loadlens.diagnose.observe.waits import MOSTLY
from loadlens.estimate.interval import Interval
from loadlens.measure.curve import completed
from loadlens.model.facts import Curve, Facts, Step
from loadlens.model.finding import Estimate, Grade
from loadlens.present import numbers, words

ID = "tcp.calls-held"
TITLE = "calls to another program wait for TCP's acknowledgement"
EXPLAINS: tuple[str, ...] = (
    "db.pool",
    "downstream.full",
    "threads.pool-limit",
    "calls.at-once",
    "calls.wait-before",
    "downstream.serialised",
    "saturation.plateau",
)

LEAST_S = 0.005
LEAST_SHARE = 0.2  # of the time that a request takes
LEVELS = 2


@dataclass(frozen=True, slots=True)
class Held:
    """Calls that are kept back on a curve, at the lightest level where they are."""

    curve: Curve
    step: Step
    name: str  # `calls to postgres:5432`
    connections: Estimate  # on which a piece is kept back, at a time
    seconds: float  # of each request
    levels: int  # at which it is as much

    request_s: float  # that a request takes there

    @property
    def share(self) -> float:
        """Return the part of that time which is spent so."""
        return min(1.0, self.seconds / self.request_s)

    @property
    def kept_back(self) -> Interval:
        """Return the seconds of each request with the ends of their interval."""
        back = self.connections
        scale = self.seconds / back.point
        low, high = (None if end is None else scale * end for end in (back.low, back.high))
        return Interval(
            self.seconds, low, high, float(back.samples), "kept back over throughput (Little's law)"
        )


def observe(facts: Facts) -> Sequence[Held] | Lacking | Nothing:
    """Return the calls that are kept back for the longest, on each curve."""
    looked = [
        (curve, step, calls.under_way.name, calls.held_back)
        for curve in facts.curves
        for step in curve.steps
        for calls in step.calls
        if isinstance(calls.held_back, Estimate) and completed(step) > 0
    ]
    if not looked:
        return Lacking("needs calls to programs of this machine, and the kernel's view of them")
    held: dict[tuple[str, str], list[Held]] = {}
    for curve, step, name, back in looked:
        seconds, request_s = back.point / completed(step), _mean_s(step)
        if request_s is not None and seconds >= max(LEAST_S, LEAST_SHARE * request_s):
            calls = Held(curve, step, name, back, seconds, 0, request_s)
            held.setdefault((curve.label, name), []).append(calls)
    lightest = [replace(levels[0], levels=len(levels)) for levels in held.values()]
    longest = numbers.with_unit(max(back.point / completed(step) for _, step, _, back in looked), "s")
    return sorted(lightest, key=lambda each: -each.seconds) or Nothing(
        f"calls are kept back for {longest} of each request at most"
    )


def _mean_s(step: Step) -> float | None:
    mean = step.response.mean
    return mean.point if isinstance(mean, Estimate) else None


def claim(_: Facts, held: Held) -> Claim:
    """State how long the calls are kept back, next to the time of a request."""
    each, load = numbers.with_unit(held.seconds, "s"), words.users(held.step.load)
    whole = numbers.with_unit(held.request_s, "s")
    signals = [
        grading.at_least(
            "tcp.held-back",
            held.kept_back,
            LEAST_S,
            text=f"on {held.connections.point:.3g} connections at a time a small piece waits for an "
            f"acknowledgement at {load}: {each} of each request (limit {numbers.with_unit(LEAST_S, 's')})",
            chip=f"{each} kept back",
        ),
        grading.stated(
            "tcp.held-share",
            True,
            text=f"a request takes {whole} there (limit {numbers.percent(LEAST_SHARE)} of it)",
            chip=f"{numbers.percent(held.share)} of a request",
        ),
        grading.stated(
            "tcp.held-levels",
            True if held.levels >= LEVELS else None,
            text=f"seen at {words.plural(held.levels, 'level')} of load (limit {LEVELS})",
        ),
    ]
    rivals = [
        grading.rival("a full window", "the window had room for the piece", True),
        grading.rival("work of the other program", "it cannot begin before the piece comes", True),
    ]

    def text(_: Grade) -> Words:
        return Words(
            statement=f"{held.name[0].upper()}{held.name[1:]} wait {each} of each request for TCP's "
            "acknowledgement",
            explanation=f"A second small piece is kept back until the first is acknowledged, which the "
            f"receiver delays by 40 ms: {each} of the {whole} that a request takes at {load}.",
            advice="Set TCP_NODELAY on these connections, or write each call and each answer at once.",
            confirm=f"with TCP_NODELAY a request takes {each} less at {load}",
            impact=held.share,
        )

    return on_curve(held.curve, signals, rivals, text, explains_others=held.share >= MOSTLY)


assess = assessing(ID, TITLE, observe, claim, choose=strongest)
