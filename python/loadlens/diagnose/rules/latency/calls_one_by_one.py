"""A request makes many short calls of one kind, one after another.

**Means.** The same call is made again and again for one request, each after the one before has ended: a
query per row of a list (N+1), a lookup per item. Their number comes from the data, not from the load. One
call for all of them, or calls side by side, would take the time of few.

**Needs.** Spans of the service. At the lightest load a request makes at least 10 calls of one name under
one span, none of which overlap, and at least half of its time is in them. At the highest load it makes as
many, within a quarter. At most one call in ten fails.

**Ruled out by.** Calls that overlap: they do not add up. A number that grows with the load, or calls that
fail: these are retries. Few calls that are slow each. A generator that did not keep up.

**Thresholds.** 10 in a row: a page of different queries has a handful of each; ten of one name come from a
loop. Half of the time: then it is the main part. A quarter: the data of requests differ. One in ten:
retries follow failures, so nearly half of the calls of a client that tries again fail.

**Do.** Ask once for all rows (a join, `IN (...)`, a batch request), or make the calls at the same time if
nothing depends on their order.

**Confirm.** With one call a request takes the time of its other parts and of that call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Lacking, Nothing, Words, assessing, on_curve
from loadlens.measure import figures
from loadlens.model.facts import Curve, Facts, SpanPart, SpanRequests, Step
from loadlens.model.finding import Estimate, Grade
from loadlens.present import numbers

ID = "calls.one-by-one"
TITLE = "many calls one after another for one request"
EXPLAINS: tuple[str, ...] = ()

IN_A_ROW = 10.0
MOSTLY = 0.5  # of the time of a request
SAME = 0.25  # by which numbers of calls may differ
MOST_FAILED = 0.1


@dataclass(frozen=True, slots=True)
class Loop:
    """Calls of one name that follow each other, under requests of one kind."""

    curve: Curve
    first: Step
    requests: SpanRequests
    part: SpanPart
    at_top: SpanPart | None  # the same at the highest load

    @property
    def share(self) -> float:
        """Share of the time of a request, at the lightest load."""
        return figures.point(self.part.whole) / figures.point(self.requests.time)


def observe(facts: Facts) -> Sequence[Loop] | Lacking | Nothing:
    """Return calls in a row, those with the largest share of their requests' time first."""
    curves = [(curve, [step for step in curve.steps if step.spans]) for curve in facts.curves]
    traced = [(curve, steps) for curve, steps in curves if steps]
    if not traced:
        return Lacking("needs spans of the service: otlp of a service, or --otlp PORT")
    loops = [
        Loop(curve, steps[0], kind, part, _same(steps[-1], kind, part) if len(steps) > 1 else None)
        for curve, steps in traced
        for kind in steps[0].spans
        if isinstance(kind.time, Estimate) and kind.time.point > 0
        for part in kind.parts
        if part.kind == "client" and part.in_a_row >= IN_A_ROW
    ]
    loops.sort(key=lambda loop: loop.share, reverse=True)
    return loops or Nothing(f"no {IN_A_ROW:g} calls of one name follow each other in a request")


def _same(top: Step, kind: SpanRequests, part: SpanPart) -> SpanPart | None:
    return next((other.part(part) for other in top.spans if other.name == kind.name), None)


def claim(facts: Facts, loop: Loop) -> Claim:
    """Hold the calls against retries, and against what the load itself makes of them."""
    part, kind = loop.part, loop.requests
    calls, each_s = figures.point(part.calls), figures.point(part.whole) / figures.point(part.calls)
    each, whole = numbers.with_unit(each_s, "s"), numbers.with_unit(figures.point(kind.time), "s")
    many = f"{part.in_a_row:.3g}"
    signals = [
        grading.stated(
            "calls.in-a-row",
            True,
            text=f"{many} calls of {part.name} follow each other in a request, {each} each "
            f"(limit {IN_A_ROW:g}); {kind.requests} traces",
            chip=f"{many} in a row",
            value=part.in_a_row,
            threshold=IN_A_ROW,
        ),
        grading.stated(
            "calls.time",
            loop.share >= MOSTLY,
            text=f"{numbers.percent(loop.share)} of the {whole} of a request are in them "
            f"(limit {numbers.percent(MOSTLY)})",
            chip=f"{numbers.percent(loop.share)} of the time",
            value=loop.share,
            threshold=MOSTLY,
        ),
        grading.stated(
            "calls.failed",
            part.failed <= MOST_FAILED,
            text=f"{numbers.percent(part.failed)} of them fail (limit {numbers.percent(MOST_FAILED)})",
        ),
    ]
    if loop.at_top is not None:
        under_load = figures.point(loop.at_top.calls)
        text = f"{calls:.3g} calls per request at the lightest load, {under_load:.3g} at the highest"
        signals.append(grading.stated("calls.same", abs(under_load / calls - 1) <= SAME, text=text))
    saved_s = figures.point(part.whole) * (1 - 1 / part.in_a_row)

    def words(_: Grade) -> Words:
        return Words(
            statement=f"{many} calls of {part.name} one after another take {numbers.percent(loop.share)} of "
            "a request",
            explanation=f"Under {kind.name} each request makes {many} calls of {part.name}, {each} each, one "
            f"after another: {numbers.with_unit(figures.point(part.whole), 's')} of {whole}.",
            advice="Ask once for all of them, or at the same time: without the others a request takes "
            f"{numbers.with_unit(saved_s, 's')} less.",
            confirm="one call instead: the time of a request without the others",
            impact=saved_s / max(figures.point(loop.curve.steps[-1].response.mean), saved_s),
        )

    return on_curve(loop.curve, signals, [grading.generator_rival(loop.first)], words)


assess = assessing(ID, TITLE, observe, claim)
