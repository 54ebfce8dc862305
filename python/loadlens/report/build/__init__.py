"""Builds the report of a record as pure data: answer, findings, matrices, tables, charts.

Reads a record and nothing else; starts nothing and renders nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from loadlens.diagnose.capacity import Reached, bounded_by
from loadlens.measure import memory_release
from loadlens.measure.case import CaseMeasures
from loadlens.measure.curve import Capacity, capacity_of
from loadlens.measure.curves import CurveCases
from loadlens.measure.source import RunSource
from loadlens.measure.whole_run import Measured, measured
from loadlens.model.facts import Curve
from loadlens.model.report import CaseDetail, Report
from loadlens.report.build import (
    chart_links,
    charts,
    comparisons,
    details,
    headline,
    matrix,
    objectives,
    predictions,
    published,
    tables,
)
from loadlens.report.build.query_tables import Asked, asked_of
from loadlens.whatif.diagnosis import verdict_of

__all__ = ["report"]

SCHEMA_VERSION = 1


def report(record: RunSource) -> Report:
    """Return the whole answer of a record, as pure data.

    Args:
        record: `store.open_run(...)`, or anything of that shape; it may be incomplete.

    Returns:
        All sections; what could not be measured or decided stands there with its reason.
    """
    found = _report(record, measured(record))
    memory_release.give_back()
    return found


def _report(record: RunSource, known: Measured) -> Report:
    study, environment = record.study, record.environment
    verdict = verdict_of(known.facts)
    capacities = _capacities(known)
    section = published.section(known.cases, study, known.facts.cores)
    wanted = (study.get("report") or {}).get("charts") or ()
    foretold = predictions.section(known.cases, record.predictions)
    shown_charts = (
        *predictions.charts(foretold),
        *comparisons.comparisons(known.cases, study),
        *charts.chosen(charts.all_charts(known.groups, capacities, section), wanted),
    )
    software = environment.get("software") or {}
    return Report(
        schema_version=SCHEMA_VERSION,
        study=str(study["name"]),
        question=str(study["question"]),
        answer=headline.answer(verdict, known.cases, known.groups),
        badges=headline.badges(known.cases, known.facts, known.books, section, study),
        conditions=headline.conditions(study, environment, known.cases),
        findings=chart_links.linked(verdict.findings, known.groups, shown_charts),
        absent=verdict.absent,
        not_assessed=verdict.not_assessed,
        matrices=matrix.matrices(known.cases, capacities, known.facts.cores, study),
        published=section,
        charts=shown_charts,
        details=_details(known, asked_of(study)),
        accounting=known.books,
        environment=headline.environment_rows(environment),
        environment_differences=headline.environment_differences(known.cases),
        limits=headline.limits(
            known.cases, known.facts, verdict, capacities, study, record.damage, record.predictions
        ),
        commands=headline.next_commands(study, environment, record.id),
        versions=tuple((str(name), str(value)) for name, value in software.items()),
        digests=_digests(known.cases),
        record_digest=record.digest,
        objectives=objectives.rows(known.cases, study.get("objectives") or ()),
        setup=tables.setup(known.cases),
        predictions=foretold,
    )


def _capacities(known: Measured) -> dict[str, Reached]:
    """Capacity of each curve that has one, by label."""
    by_label = {group.label: group for group in known.groups if group.is_curve}
    found = {}
    for curve in known.curves:
        capacity = capacity_of(curve)
        if isinstance(capacity, Capacity):
            found[curve.label] = Reached(by_label[curve.label], capacity, bounded_by(curve, capacity))
    return found


def _details(known: Measured, asked: Asked) -> tuple[CaseDetail, ...]:
    open_when_alone = len(known.cases) == 1
    allotted = {case.slug: curve.cores_allotted for group, curve in _pairs(known) for case in group.cases}
    return tuple(
        details.detail(
            case, allotted.get(case.slug, float(known.facts.cores)), asked, is_open=open_when_alone
        )
        for case in known.cases
    )


def _pairs(known: Measured) -> Sequence[tuple[CurveCases, Curve]]:
    judged = [group for group in known.groups if group.is_curve]
    return list(zip(judged, known.curves, strict=True))


def _digests(cases: Sequence[CaseMeasures]) -> tuple[tuple[str, str], ...]:
    """The digest of each trial's plan."""
    return tuple(
        (f"{case.slug}/{trial.source.name} plan.json", str(digest["sha256"]))
        for case in cases
        for trial in case.trials
        if (digest := trial.source.digests.get("plan.json")) is not None
    )
