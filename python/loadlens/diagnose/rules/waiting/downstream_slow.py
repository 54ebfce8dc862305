"""Under load requests spend the time that they take longer in a call to another service.

**Means.** The service has time, and the spans of its calls become longer with the load: what is called is
slow, or requests wait for it in a line that it does not show. Where spans of the other service were seen,
the one that grows is named.

**Needs.** Spans of the service at two levels of load. Requests take longer at the highest level than at the
lightest, by at least 44 % of their time there and by 1 ms. At least half of that is in one span: that of a
call under which at most 20 % have a span of what is called, or a span of another service than the one that
took the request. CPU to spare: computing and waiting for a core take at most 70 % of the cores, and no
thread is full.

**Ruled out by.** A cheap request next to the load that waits for more than a fifth of it: then threads or
the event loop of the service itself are taken. A machine or generator that is the limit, fast refusals,
transfer of large responses. Without cheap requests the finding is at most probable. A call that is slow
without load, too, is not a finding: the report's table of spans shows it.

**Thresholds.** 44 % is 1 - 1 / 1.8, the waiting share at 1.8 times the knee, as for `outside.handler-wait`.
Half: then it is the main part.

**Do.** Load the other service alone, or let it send its spans, too. Calls that wait need a time-out.

**Confirm.** Apply the same load with answers of that call from memory: requests take as long as one alone.
"""

from __future__ import annotations

from loadlens.diagnose.driver import Claim, Nothing, Words, assessing, on_curve
from loadlens.diagnose.observe import span_growth
from loadlens.diagnose.observe.span_growth import Growth
from loadlens.measure import figures
from loadlens.model.facts import Facts
from loadlens.model.finding import Grade
from loadlens.present import numbers

ID = "downstream.slow"
TITLE = "a call to another service becomes slow under load"
EXPLAINS: tuple[str, ...] = ("saturation.plateau", "downstream.serialised")


def claim(facts: Facts, growth: Growth) -> Claim | Nothing:
    """Hold the growth of the span against the service's own CPU, threads and loop."""
    part = growth.part
    if part.kind != "client" and not part.is_elsewhere:
        return Nothing(f"what grows most is {part.name}, within the service")
    if part.kind == "client" and part.answered > span_growth.SELDOM:
        return Nothing(
            f"{numbers.percent(part.answered)} of the calls {part.name} have a span of what they call"
        )

    def text(_: Grade) -> Words:
        spent, whole = (numbers.with_unit(figures.point(t), "s") for t in (part.own, growth.now.time))
        before = numbers.with_unit(growth.part_before_s, "s")
        unknown: tuple[str, ...] = ()
        if not part.is_elsewhere:
            unknown = (
                "whether the other side is slow, or the call waits for a connection: it sends no spans",
            )
        share = numbers.percent(growth.part_s / growth.seconds)
        return Words(
            statement=f"Requests spend {spent} of {whole} in {part.name}, {before} at the lightest load",
            explanation=f"At {growth.load} {share} of what requests "
            f"take longer is in {part.name}, while the service itself has time.",
            advice="Find out what limits the other side: load it alone, or let it send its spans, too; bound "
            "the wait by a time-out.",
            confirm="the same load with answers of this call from memory: as fast as one request alone",
            impact=growth.part_s / figures.point(growth.now.time),
            unknown=unknown,
        )

    signals = span_growth.signals(facts, growth)
    return on_curve(growth.curve, signals, span_growth.rivals(facts, growth), text)


assess = assessing(ID, TITLE, span_growth.observe, claim)
