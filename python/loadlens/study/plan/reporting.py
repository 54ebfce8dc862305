"""Checks of the window of each trial that the report uses, and of PromQL over it."""

from __future__ import annotations

from loadlens import promql
from loadlens.model.study import Case, Query, Window
from loadlens.study.definition import Definition, Faults
from loadlens.study.parse.schema import At
from loadlens.study.tree import items_at


def check(definition: Definition, cases: tuple[Case, ...], faults: Faults) -> None:
    """Flag windows that no trial has, and expressions that cannot be evaluated."""
    at = At(definition.place.file, definition.folder, definition.names, faults).below("report")
    report, window = items_at(definition.tree, "report"), definition.report.window
    if window is not None:
        _check_window(window, report["window"].line, cases, at.below("window"))
    queries = items_at(definition.tree, "report", "promql")
    for query in definition.report.promql:
        _check_query(query, queries[query.name].line, cases, at.below("promql", query.name))


def _check_window(window: Window, line: int, cases: tuple[Case, ...], at: At) -> None:
    for case in cases:
        if case.duration_ns is None:
            continue  # how long it lasts is not known before
        length = case.duration_ns / 1e9
        begin, end = window.of(0.0, length)
        wanted = end if window.end is None else window.end.of(length)
        if wanted > length or begin >= length:
            edge = wanted if wanted > length else begin
            message = f"the window reaches {edge:g} s, but {case.name} measures {length:g} s"
            at.fault(line, message, "edges in percent: {from: 25%, to: 75%}")
            return
        if begin >= end:
            at.fault(line, f"the window begins at {begin:g} s and ends at {end:g} s", "from before to")
            return


def _check_query(query: Query, line: int, cases: tuple[Case, ...], at: At) -> None:
    without = [case for case in cases if not any(service.scrape is not None for service in case.services)]
    if without:
        where = "the study" if len(without) == len(cases) else without[0].name
        at.fault(line, f"no service of {where} has metrics", "scrape: {get: /metrics} of a service")
        return
    try:
        promql.parse(query.expression)
    except promql.NotOurs as error:
        if not all(any(service.use == "prometheus" for service in case.services) for case in cases):
            at.fault(line, str(error), "a service with use: prometheus, or another expression")
