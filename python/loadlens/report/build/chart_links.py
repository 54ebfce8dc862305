"""Links from evidence to the chart that shows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from loadlens.measure.curves import CurveCases
from loadlens.model.finding import Evidence, Finding
from loadlens.model.report import Chart
from loadlens.model.study import ChartKind

SHOWN_IN: dict[str, ChartKind] = {  # the first word of a signal -> the chart that shows it
    "throughput": "load_curve",
    "plateau": "load_curve",
    "errors": "load_curve",
    "probe": "bystander",
    "process": "demand",
    "work": "demand",
}


def linked(
    findings: Sequence[Finding], groups: Sequence[CurveCases], charts: Sequence[Chart]
) -> tuple[Finding, ...]:
    """The same findings, their evidence pointing at the charts of the curves where they hold."""
    experiments = {group.label: group.experiment for group in groups}
    made = []
    for finding in findings:
        where = [experiments[label] for label in finding.curves if label in experiments]
        evidence = tuple(replace(e, chart=e.chart or _chart_of(e, where, charts)) for e in finding.evidence)
        made.append(replace(finding, evidence=evidence))
    return tuple(made)


def _chart_of(evidence: Evidence, experiments: Sequence[str], charts: Sequence[Chart]) -> str | None:
    kind = SHOWN_IN.get(evidence.signal.partition(".")[0])
    for chart in charts:
        if chart.kind != kind:
            continue
        if any(_is_of(chart.anchor, experiment) for experiment in experiments):
            return chart.anchor
    return None


def _is_of(anchor: str, experiment: str) -> bool:
    whole = (f"chart-load-{experiment}", f"chart-demand-{experiment}")
    return anchor in whole or anchor.startswith(f"chart-probe-{experiment}-")
