"""Comparisons that a study asks for: a figure of every case of an experiment, or quantiles as curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loadlens.measure.case import CaseMeasures
from loadlens.measure.metrics import as_ab, figure_of
from loadlens.model.finding import Estimate, NotMeasured
from loadlens.model.report import Chart, Column, Table
from loadlens.model.study import QuotedFigure
from loadlens.present import numbers, words
from loadlens.report.build.brief import Brief, Comparison
from loadlens.report.build.charts import MOST_SERIES, MS
from loadlens.report.build.details import LEVELS, band
from loadlens.report.build.published import in_base

FEWEST_CASES = 2
AB = "ab_failed.share"
Row = dict[str, object]


@dataclass(frozen=True, slots=True)
class _Bar:
    """A figure of one case."""

    case: str
    figure: Estimate
    published: float | None

    @property
    def words(self) -> str:
        return f"{numbers.with_unit(self.figure.point, self.figure.unit)} ({self.case})"


def comparisons(cases: Sequence[CaseMeasures], brief: Brief) -> tuple[Chart, ...]:
    """Return a chart for each comparison that the study asks for and that has two cases at least."""
    charts = []
    for comparison in brief.report.compare:
        members = [case for case in cases if case.experiment == comparison.experiment]
        chart = (
            _bars(members, comparison.metric, comparison.step, brief.quoted)
            if comparison.is_figure
            else _curves(members, comparison.metric, comparison.step)
        )
        charts += [] if chart is None else [chart]
    return tuple(charts)


def wanted(brief: Brief, experiment: str) -> list[Comparison]:
    """Return the figures that are compared in an experiment; quantile curves are none."""
    return [
        comparison
        for comparison in brief.report.compare
        if comparison.experiment == experiment and comparison.is_figure
    ]


def what(metric: str, step: str | None) -> str:
    """`requests/s`, `mean response time of list`."""
    return words.metric(metric) + (f" of {step}" if step else "")


def _name(case: CaseMeasures) -> str:
    levels = ", ".join(f"{factor}={level}" for factor, level in case.levels.items())
    return (levels or case.name) + (" (held out)" if case.is_held_out else "")


def _bars(
    cases: Sequence[CaseMeasures], metric: str, step: str | None, published: Sequence[QuotedFigure]
) -> Chart | None:
    bars: list[_Bar] = []
    missing = []
    for case in cases:
        figure = figure_of(case, metric, step)
        if isinstance(figure, Estimate):
            bars.append(_Bar(_name(case), figure, _published(case, metric, step, published)))
        else:
            missing.append(_name(case))
    if len(bars) < FEWEST_CASES:
        return None
    least, most = (choose(bars, key=lambda bar: bar.figure.point) for choose in (min, max))
    count = min(bar.figure.trials for bar in bars)
    intervals = (
        "1 trial, 95 % intervals within it" if count == 1 else f"{count} trials a case, 95 % intervals"
    )
    parts = [intervals, "diamond: published" if any(bar.published is not None for bar in bars) else ""]
    parts += [f"not measured: {', '.join(missing)}" if missing else ""]
    return Chart(
        kind="comparison",
        anchor="-".join(("chart-compare", cases[0].experiment, metric, step or "all")),
        headline=f"{what(metric, step)} in {cases[0].experiment}: {least.words} to {most.words}",
        datasets={
            "rows": tuple(
                {
                    "case": bar.case,
                    "value": bar.figure.point,
                    "low": bar.figure.low,
                    "high": bar.figure.high,
                    "published": bar.published,
                }
                for bar in bars
            )
        },
        options={"trials": count, "unit": least.figure.unit, "x_label": what(metric, step)},
        caption=" · ".join(part for part in parts if part),
        table=_failures(cases, step) if metric == AB else None,
    )


def _published(
    case: CaseMeasures, metric: str, step: str | None, rows: Sequence[QuotedFigure]
) -> float | None:
    """Return the published value of the same figure at the same levels, in base units."""
    steps = [] if case.reference is None else [planned.name for planned in case.reference.plan.steps]
    same = {step, steps[0]} if len(steps) == 1 and step in (None, steps[0]) else {step}
    for row in rows:
        if row.experiment != case.experiment or row.measured_metric != metric or case.is_held_out:
            continue
        is_same_step = (row.step or None) in (same | {None} if len(steps) == 1 else same)
        if is_same_step and all(case.levels.get(name) == text for name, text in row.levels.items()):
            return in_base(row)[0]
    return None


def _failures(cases: Sequence[CaseMeasures], step: str | None) -> Table:
    """Return our classes next to those of ApacheBench, and the lengths that made it call answers failed."""
    rows = []
    for case in cases:
        load = case.reference
        index = next((s.index for s in load.plan.steps if s.name == step), None) if load else None
        parts = as_ab(case, index)
        if not parts:
            continue
        chosen = [counts for x in case.loads for counts in (x.steps if index is None else (x.steps[index],))]
        first = sorted({part.first_bytes for part in parts if part.first_bytes is not None})
        rows.append(
            (
                _name(case),
                int(sum(part.ended.sum() for part in parts)),
                int(sum(counts.ok.sum() for counts in chosen)),
                int(sum(counts.unexpected.sum() for counts in chosen)),
                int(sum(counts.failed.sum() for counts in chosen)),
                int(sum(part.failed.sum() for part in parts)),
                figure_of(case, AB, step),
                ", ".join(map(str, first)),
                f"{min(part.least_bytes for part in parts)}–{max(part.most_bytes for part in parts)}",
            )
        )
    columns = (
        Column("case", align="left"),
        Column("ended", "requests"),
        Column("ok", "requests"),
        Column("status or check", "requests"),
        Column("failed", "requests"),
        Column("failed as ab counts", "requests"),
        Column("share as ab counts", "share"),
        Column("first body, bytes"),
        Column("bodies, bytes"),
    )
    note = (
        "ab calls an answer failed whose body is not as long as the first one's; measured part, valid trials"
    )
    return Table(columns, tuple(rows), note)


def _curves(cases: Sequence[CaseMeasures], kind: str, step: str | None) -> Chart | None:
    """Quantiles of a time, one curve a case."""
    rows: list[Row] = []
    names: dict[str, None] = {}
    medians: dict[str, float] = {}
    for case in cases[:MOST_SERIES]:
        for p in LEVELS:
            name = "p" + f"{p * 100:g}".replace(".", "")
            figure = _quantile(case, kind, p, name, step)
            if isinstance(figure, Estimate):
                names |= {_name(case): None}
                medians |= {_name(case): figure.point} if p == 0.5 else {}
                rows.append(
                    {
                        "metric": _name(case),
                        "nines": 1 / (1 - p),
                        "ms": figure.point * MS,
                        **band(figure),
                    }
                )
    if len(names) < FEWEST_CASES:
        return None
    shown = "; ".join(f"{numbers.with_unit(value, 's')} ({name})" for name, value in medians.items())
    count = min((len(case.usable) for case in cases[:MOST_SERIES] if case.usable), default=1)
    more = f" · {len(cases) - MOST_SERIES} more cases not drawn" if len(cases) > MOST_SERIES else ""
    return Chart(
        kind="quantiles",
        anchor="-".join(("chart-compare", cases[0].experiment, kind, step or "all")),
        headline=f"Half of {what(kind, step)} in {cases[0].experiment} within {shown}",
        datasets={"curve": tuple(rows)},
        options={"trials": count, "time_label": what(kind, step)},
        caption=("1 trial, 95 % intervals within it" if count == 1 else f"{count} trials a case") + more,
        entities={name: slot for slot, name in enumerate(names, 1)},
    )


def _quantile(case: CaseMeasures, kind: str, p: float, name: str, step: str | None) -> object:
    """By the case's own figures, which know every quantile of their times."""
    load = case.reference
    if load is None:
        return NotMeasured(f"{kind}.{name}", case.why_nothing())
    index = next((s.index for s in load.plan.steps if s.name == step), None)
    if step is not None and index is None:
        return NotMeasured(f"{kind}.{name}", f"{step} is no step of this case")
    return case.quantile(p, index, kind.removesuffix("_time"))
