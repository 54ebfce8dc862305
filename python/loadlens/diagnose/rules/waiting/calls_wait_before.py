"""Calls wait before what they call begins with them.

**Means.** The span of a call takes longer under load, and the span of the service that it calls does not.
The wait is between the two: for a connection of the caller's pool, or at the door of the service that is
called.

**Needs.** Spans of caller and callee at two levels of load. Requests take longer at the highest level than
at the lightest, by at least 44 % of their time there and by 1 ms. At least half of that is in the call's
own span, outside the spans of what it calls. At least 80 % of the calls have such a span, and these spans
grow by at most a fifth of that. CPU to spare: computing and waiting for a core take at most 70 % of the
cores, and no thread is full.

**Ruled out by.** A cheap request next to the load that waits for more than a fifth of it: then threads or
the event loop of the service itself are taken. A machine or generator that is the limit, fast refusals,
transfer of large responses. Without cheap requests the finding is at most probable.

**Thresholds.** 44 % is 1 - 1 / 1.8, the waiting share at 1.8 times the knee, as for `outside.handler-wait`.
Half: then it is the main part. A fifth: two means of a few seconds vary as much.

**Do.** Look at the size of the pool of that call, and at the time that its connections are held. If the
pool has room, look at the accept queue and the threads of the service that is called.

**Confirm.** With twice the connections the span of the call becomes shorter and throughput grows.
"""

from __future__ import annotations

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Nothing, Words, assessing, on_curve
from loadlens.diagnose.observe import span_growth
from loadlens.diagnose.observe.span_growth import Growth
from loadlens.measure import figures
from loadlens.model.facts import Facts
from loadlens.model.finding import Grade
from loadlens.present import numbers

ID = "calls.wait-before"
TITLE = "calls wait before what they call begins"
EXPLAINS: tuple[str, ...] = ("saturation.plateau", "downstream.serialised")

SAME = 0.2  # of the growth


def claim(facts: Facts, growth: Growth) -> Claim | Nothing:
    """Hold the span of the call against that of what it calls."""
    part = growth.part
    if part.kind != "client":
        return Nothing(f"what grows most is {part.name}, which calls nothing")
    if part.answered < span_growth.USUALLY:
        return Nothing(
            f"{numbers.percent(part.answered)} of the calls {part.name} have a span of what they call"
        )
    callee_s = numbers.with_unit(max(0.0, growth.callee_s), "s")
    signals = [
        *span_growth.signals(facts, growth),
        grading.stated(
            "callee.same",
            growth.callee_s <= SAME * growth.part_s,
            text=f"what it calls takes {callee_s} longer, the call outside of it "
            f"{numbers.with_unit(growth.part_s, 's')} (limit {numbers.percent(SAME)})",
            chip=f"callee {callee_s} longer",
        ),
    ]

    def text(_: Grade) -> Words:
        waited, whole = (numbers.with_unit(figures.point(t), "s") for t in (part.own, growth.now.time))
        return Words(
            statement=f"{part.name} waits {waited} of {whole} before what it calls begins",
            explanation=f"At {growth.load} requests spend {waited} of {whole} in {part.name}, outside "
            f"of what it calls, and {numbers.with_unit(growth.part_before_s, 's')} at the lightest load.",
            advice="More connections for this call, or hold each for less; if its pool has room, more "
            "threads or a longer accept queue where it goes.",
            confirm="twice the connections: the call becomes shorter, and throughput grows",
            impact=growth.part_s / figures.point(growth.now.time),
            unknown=("whether it waits for a connection of the caller or at the door of what it calls",),
        )

    return on_curve(growth.curve, signals, span_growth.rivals(facts, growth), text)


assess = assessing(ID, TITLE, span_growth.observe, claim)
