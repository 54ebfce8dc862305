"""From a record to the answer: estimates per case, facts for the rules, findings, the report as pure data.

Reads a record and nothing else; starts nothing and renders nothing. Invalid trials are shown and enter no
figure; requests of different trials are never pooled for an interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from loadlens import findings
from loadlens.analyse import (
    answer,
    books,
    charts,
    comparisons,
    details,
    driven,
    growth,
    heap,
    linking,
    matrix,
    objectives,
    predictions,
    published,
    remedies,
    slow,
    tables,
)
from loadlens.analyse.capacity import Reached, bounded_by
from loadlens.analyse.case import CaseMeasures
from loadlens.analyse.curves import CurveCases, asked_calmly, curve_of, gather
from loadlens.analyse.gates import gates_of
from loadlens.analyse.queries import Asked, asked_of
from loadlens.analyse.source import RunSource, TrialSource
from loadlens.analyse.trial import TrialMeasures, measure
from loadlens.design.reporting import window_of
from loadlens.findings import Verdict
from loadlens.findings.common.curves import Capacity, capacity_of
from loadlens.model.facts import Curve, Facts
from loadlens.model.report import AccountingRow, CaseDetail, Report
from loadlens.model.study import Window

__all__ = ["Examined", "examined", "facts", "report"]

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class Measured:
    """A record, measured: all that the parts of a report draw on."""

    cases: tuple[CaseMeasures, ...]
    groups: tuple[CurveCases, ...]  # held-out ones too
    curves: tuple[Curve, ...]  # what rules see
    books: tuple[AccountingRow, ...]
    facts: Facts


@dataclass(frozen=True, slots=True)
class Examined:
    """A record's facts and what the rules say of them, without a report."""

    facts: Facts
    verdict: Verdict
    books: tuple[AccountingRow, ...]


def facts(record: RunSource) -> Facts:
    """Return what the rules may see of a record."""
    return _measured(record).facts


def examined(record: RunSource) -> Examined:
    """Return what is known of a record and what follows from it."""
    known = _measured(record)
    return Examined(known.facts, _verdict(known.facts), known.books)


def report(record: RunSource) -> Report:
    """Return the whole answer of a record, as pure data.

    Args:
        record: `store.open_run(...)`, or anything of that shape; it may be incomplete.

    Returns:
        All sections; what could not be measured or decided stands there with its reason.
    """
    found = _report(record, _measured(record))
    heap.give_back()
    return found


def _report(record: RunSource, known: Measured) -> Report:
    study, environment = record.study, record.environment
    verdict = _verdict(known.facts)
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
        answer=answer.answer(verdict, known.cases, known.groups),
        badges=answer.badges(known.cases, known.facts, known.books, section, study),
        conditions=answer.conditions(study, environment, known.cases),
        findings=linking.linked(verdict.findings, known.groups, shown_charts),
        absent=verdict.absent,
        not_assessed=verdict.not_assessed,
        matrices=matrix.matrices(known.cases, capacities, known.facts.cores, study),
        published=section,
        charts=shown_charts,
        details=_details(known, asked_of(study)),
        accounting=known.books,
        environment=answer.environment_rows(environment),
        environment_differences=answer.environment_differences(known.cases),
        limits=answer.limits(
            known.cases, known.facts, verdict, capacities, study, record.damage, record.predictions
        ),
        commands=answer.next_commands(study, environment, record.id),
        versions=tuple((str(name), str(value)) for name, value in software.items()),
        digests=_digests(known.cases),
        record_digest=record.digest,
        objectives=objectives.rows(known.cases, study.get("objectives") or ()),
        setup=tables.setup(known.cases),
        predictions=foretold,
    )


def _verdict(known: Facts) -> Verdict:
    """What the rules say, and what their remedies would bring."""
    return remedies.foretold(known, findings.assess(known))


def _measured(record: RunSource) -> Measured:
    study = record.study
    window = window_of(study.get("report") or {})
    trials = [_of_trial(trial, window) for trial in record.trials]
    cases = tuple(
        CaseMeasures(plan, tuple(t for t in trials if t.source.case["slug"] == plan["slug"]))
        for plan in study["cases"]
    )
    machine = record.environment.get("machine") or {}
    cores = int(machine.get("cores_allowed") or machine.get("cores") or 1)
    groups = gather(cases)
    looks = [case for group in groups if group.purpose == "dense" for case in group.cases]
    curves = tuple(
        _with_shapes(curve_of(group, cores), group, looks, cases) for group in groups if group.is_curve
    )
    dense = tuple(
        step for group in groups if group.purpose == "dense" for step in curve_of(group, cores).steps
    )
    rows = books.rows(cases, study)
    gates = gates_of(cases, curves, rows, cores)
    counts = books.counts(cases, study)
    known = Facts(cores, curves, gates, dense, counts=counts, calm=asked_calmly(groups))
    return Measured(cases, groups, curves, rows, known)


def _with_shapes(
    curve: Curve, group: CurveCases, looks: Sequence[CaseMeasures], everything: Sequence[CaseMeasures]
) -> Curve:
    """A curve with what its single requests tell, beside looks with dense probes, and what grew meanwhile."""
    return replace(
        curve,
        slow_paths=slow.slow_paths(group.cases, looks),
        timer_piles=slow.timer_piles(group.cases, looks),
        memory=growth.memory_growth(group.cases, everything),
        slowdowns=growth.slowdowns(group.cases, everything),
    )


def _of_trial(trial: TrialSource, window: Window) -> TrialMeasures:
    """One trial, whoever made its load."""
    is_driven = (trial.engine or {}).get("driver") is not None
    found = driven.measure(trial, window) if is_driven else measure(trial, window)
    heap.give_back()
    return found


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
