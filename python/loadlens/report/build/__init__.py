"""Builds the report of a record as pure data: answer, findings, matrices, tables, charts.

Reads a record and nothing else; starts nothing and renders nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from loadlens.diagnose.capacity import CurveCapacity, most_of
from loadlens.diagnose.code_places import code_evidence, stacks_at_limit
from loadlens.diagnose.rules.processor.host_interference import ID as INTERFERENCE
from loadlens.measure import memory_release
from loadlens.measure.case import CaseMeasures
from loadlens.measure.curve import Capacity, capacity_of
from loadlens.measure.curves import CurveCases
from loadlens.measure.source import RunSource, environment_of, from_record, predictions_of
from loadlens.measure.whole_run import Measured, measured
from loadlens.model.facts import Curve
from loadlens.model.finding import Estimate, Grade
from loadlens.model.recorded import Inventory
from loadlens.model.report import CaseDetail, Report
from loadlens.report.build import (
    chart_links,
    charts,
    comparisons,
    conditions,
    details,
    effects,
    flame,
    matrix,
    objectives,
    opening,
    predictions,
    published,
    tables,
)
from loadlens.report.build.brief import Brief, brief_of
from loadlens.whatif.diagnosis import verdict_of

__all__ = ["report"]

SCHEMA_VERSION = 1
PLAN = "plan.json"


def report(record: RunSource) -> Report:
    """Return the whole answer of a record, as pure data.

    Args:
        record: `store.open_run(...)`, or anything of that shape; it may be incomplete.

    Returns:
        All sections; what could not be measured or decided stands there with its reason.
    """
    made = _report(record, measured(record))
    memory_release.give_back()
    return made


def _report(record: RunSource, run: Measured) -> Report:
    brief, environment, predicted = brief_of(record.study), environment_of(record), predictions_of(record)
    inventory = from_record(Inventory, record.environment, "environment.json")
    verdict = verdict_of(run.facts)
    capacities = _capacities(run)
    section = published.section(run.cases, brief, run.facts.cores)
    disturbed = next(
        (f.statement for f in verdict.findings if f.rule == INTERFERENCE and f.grade >= Grade.PROBABLE), ""
    )
    foretold = predictions.section(run.cases, predicted, disturbed)
    changes = effects.section(run.cases, run.facts.cores, brief.question)
    shown_charts = (
        *([changes.chart] if changes and changes.chart else ()),
        *predictions.charts(foretold),
        *comparisons.comparisons(run.cases, brief),
        *charts.chosen(
            charts.all_charts(run.groups, capacities, section, verdict.findings), brief.report.charts
        ),
    )
    is_full = any(isinstance(reached.most.figure, Estimate) for reached in capacities.values())
    stacks = stacks_at_limit(run.stacks, verdict.findings)
    code = code_evidence(stacks, verdict.findings, is_full=is_full)
    first = opening.opening(run, verdict, changes, capacities, shown_charts, brief, environment.command, code)
    return Report(
        schema_version=SCHEMA_VERSION,
        study=brief.name,
        question=brief.question,
        answer=first.answer,
        lines=first.lines,
        pictures=first.pictures,
        badges=conditions.badges(
            run.cases, run.facts, run.accounting, section, brief, apart=sum(map(len, run.stacks.values()))
        ),
        conditions=conditions.conditions(brief, environment, run.cases),
        findings=chart_links.linked(verdict.findings, run.groups, shown_charts),
        absent=verdict.absent,
        not_assessed=verdict.not_assessed,
        matrices=matrix.matrices(run.cases, capacities, run.facts.cores, brief),
        published=section,
        charts=shown_charts,
        details=_details(run, brief),
        accounting=run.accounting,
        environment=conditions.environment_rows(environment, inventory),
        environment_differences=conditions.environment_differences(run.cases),
        limits=conditions.limits(run.cases, run.facts, verdict, capacities, brief, record.damage, predicted),
        commands=conditions.next_commands(brief, environment.command, record.id),
        versions=tuple((name, str(value)) for name, value in inventory.software.items()),
        digests=_digests(run.cases),
        record_digest=record.digest,
        objectives=objectives.rows(run.cases, brief.objectives),
        setup=tables.setup(run.cases),
        predictions=foretold,
        effects=None if changes is None else changes.section,
        code=code,
        flame=flame.flame(stacks),
    )


def _capacities(run: Measured) -> dict[str, CurveCapacity]:
    """Capacity of each curve that reached it, by label."""
    by_label = {group.label: group for group in run.groups if group.is_curve}
    capacities = {}
    for curve in run.curves:
        capacity = capacity_of(curve)
        if isinstance(capacity, Capacity) and capacity.saturation.verdict != "underdriven":
            most = most_of(curve, capacity)
            capacities[curve.label] = CurveCapacity(by_label[curve.label], capacity, most)
    return capacities


def _details(run: Measured, brief: Brief) -> tuple[CaseDetail, ...]:
    open_when_alone = len(run.cases) == 1
    allotted = {case.slug: curve.cores_allotted for group, curve in _pairs(run) for case in group.cases}
    return tuple(
        details.detail(case, allotted.get(case.slug, float(run.facts.cores)), brief, is_open=open_when_alone)
        for case in run.cases
    )


def _pairs(run: Measured) -> Sequence[tuple[CurveCases, Curve]]:
    judged = [group for group in run.groups if group.is_curve]
    return list(zip(judged, run.curves, strict=True))


def _digests(cases: Sequence[CaseMeasures]) -> tuple[tuple[str, str], ...]:
    """The digest of each trial's plan."""
    return tuple(
        (f"{case.slug}/{trial.source.name} {PLAN}", digest.sha256)
        for case in cases
        for trial in case.trials
        if (digest := trial.source.digests.get(PLAN)) is not None
    )
