"""Plans the window of each trial that the report uses, and PromQL over it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from loadlens import promql
from loadlens.model.study import Case, Edge, Query, Window
from loadlens.promql.syntax import WHOLE_RANGE
from loadlens.study.definition import Faults, QueryPart, ReportPart, WindowPart


def as_planned(part: ReportPart) -> dict[str, Any]:
    """Window and queries as the record keeps them; nothing where the study says nothing."""
    planned: dict[str, Any] = {}
    if part.window is not None:
        planned["window"] = asdict(Window(part.window.begin, part.window.end))
    if part.promql:
        planned["promql"] = [asdict(_query(name, query)) for name, query in part.promql.items()]
    return planned


def _query(name: str, part: QueryPart) -> Query:
    take = part.take or ("last" if WHOLE_RANGE in part.expr else "mean")
    return Query(name, part.expr, part.unit, take, part.step)


def queries_of(report: Mapping[str, Any]) -> tuple[Query, ...]:
    """The expressions of a `report` as planned, from a study or from its record."""
    return tuple(Query(**query) for query in report.get("promql") or ())


def window_of(report: Mapping[str, Any]) -> Window:
    """The window of a `report` as planned; the whole measured part where it says nothing."""
    edges = report.get("window") or {}
    return Window(*(None if edges.get(name) is None else Edge(**edges[name]) for name in ("begin", "end")))


def check(part: ReportPart | None, cases: Iterable[Case], faults: Faults) -> None:
    """Flag windows that no trial has, and expressions that cannot be evaluated."""
    cases = tuple(cases)
    if part is None:
        return
    if part.window is not None:
        _check_window(part.window, cases, faults)
    for query in part.promql.values():
        _check_query(query, cases, faults)


def _check_window(part: WindowPart, cases: Iterable[Case], faults: Faults) -> None:
    window = Window(part.begin, part.end)
    for case in cases:
        if case.duration_ns is None:
            continue  # how long it lasts is not known before
        length = case.duration_ns / 1e9
        begin, end = window.of(0.0, length)
        wanted = end if part.end is None else part.end.of(length)
        if wanted > length or begin >= length:
            edge = wanted if wanted > length else begin
            message = f"the window reaches {edge:g} s, but {case.name} measures {length:g} s"
            faults.add(message, part.place, "edges in percent: {from: 25%, to: 75%}")
            return
        if begin >= end:
            faults.add(
                f"the window begins at {begin:g} s and ends at {end:g} s", part.place, "from before to"
            )
            return


def _check_query(part: QueryPart, cases: tuple[Case, ...], faults: Faults) -> None:
    without = [case for case in cases if not any(service.scrape is not None for service in case.services)]
    if without:
        where = "the study" if len(without) == len(cases) else without[0].name
        faults.add(f"no service of {where} has metrics", part.place, "scrape: {get: /metrics} of a service")
        return
    try:
        promql.parse(part.expr)
    except promql.NotOurs as error:
        if not all(any(service.use == "prometheus" for service in case.services) for case in cases):
            faults.add(str(error), part.place, "a service with use: prometheus, or another expression")
