"""The time of requests by span: a table of a case, and the parts that a chart shows."""

from __future__ import annotations

from collections.abc import Iterator

from loadlens.measure import figures
from loadlens.measure.case import CaseMeasures
from loadlens.measure.services import span_times
from loadlens.model.facts import SpanRequests
from loadlens.model.finding import Figure
from loadlens.model.report import Cell, Column, Table

MOST_ROWS = 12  # of one kind of request
LEAST = 0.005  # of the time of a request: less is not listed
MOST_CALLS = 3  # in a chart


def table(case: CaseMeasures) -> Table | None:
    """Return own times of spans, of all requests and of the slowest tenth; none without spans."""
    kinds = span_times.requests_of(case)
    if not kinds:
        return None
    rows = [row for kind in kinds for row in _rows(kind)]
    columns = (
        Column("request", align="left"),
        Column("span", align="left"),
        Column("per request"),
        Column("own time", "s"),
        Column("of the slowest tenth", "s"),
    )
    return Table(columns, tuple(rows), _note(kinds))


def _rows(kind: SpanRequests) -> Iterator[tuple[Cell, ...]]:
    yield (kind.name, "all", "1", kind.time, kind.slow)
    whole_s, slow_s = figures.point(kind.time), figures.point(kind.slow)
    listed = 0
    for part in kind.parts:
        is_small = figures.point(part.own) < LEAST * whole_s and figures.point(part.slow_own) < LEAST * slow_s
        if is_small or listed == MOST_ROWS:
            continue
        listed += 1
        yield (kind.name, part.name, _calls(part.calls), part.own, part.slow_own)


def _calls(calls: Figure) -> str:
    return f"{figures.point(calls):.3g}"


def _note(kinds: tuple[SpanRequests, ...]) -> str:
    traces = sum(kind.requests for kind in kinds)
    one_in = max(kind.one_in for kind in kinds)
    sampled = f", one of {one_in} that came" if one_in > 1 else ""
    return (
        f"{traces:,} traces{sampled}; own time: without what is inside a span, so that rows add up to the "
        "request; spans under 0.5 % of it are not listed"
    )


def calls(case: CaseMeasures) -> dict[str, float]:
    """Return the own seconds of calls to other services and of spans there, the longest first."""
    kinds = span_times.requests_of(case)
    if not kinds:
        return {}
    elsewhere = [part for part in kinds[0].parts if part.kind == "client" or part.is_elsewhere]
    return {part.name: figures.point(part.own) for part in elsewhere[:MOST_CALLS]}
