"""Cases of an experiment as a matrix: rows and columns are factor levels in the order of the study."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from loadlens.diagnose.capacity import CurveCapacity
from loadlens.measure.case import CaseMeasures, quantile_name
from loadlens.measure.curves import load_factor
from loadlens.measure.metrics import figure_of, unit_of
from loadlens.measure.services.watched import processes_of
from loadlens.measure.source import factor_names
from loadlens.model.finding import Estimate, Figure, NotMeasured
from loadlens.model.report import Matrix, MatrixCell, State
from loadlens.model.trial import TrialStatus
from loadlens.present import numbers
from loadlens.report.build import comparisons
from loadlens.report.build.brief import Brief, Comparison
from loadlens.report.build.percentiles import highest_known

MOST_CLASSES = 3
FEW_FAILURES = 0.001
Quantile = Callable[[CaseMeasures, float], Figure]


@dataclass(frozen=True, slots=True)
class Metric:
    """A figure in the cells of a matrix."""

    key: str
    label: str
    unit: str
    of: Callable[[CaseMeasures], Figure]


def matrices(
    cases: Sequence[CaseMeasures],
    capacities: Mapping[str, CurveCapacity],
    cores: int,
    brief: Brief,
) -> tuple[Matrix, ...]:
    """One matrix an experiment, or one for each combination of the factors beyond two."""
    experiments = dict.fromkeys(case.experiment for case in cases)
    tables: list[Matrix] = []
    for experiment in experiments:
        members = [case for case in cases if case.experiment == experiment]
        tables += _of_experiment(
            experiment, members, capacities, cores, comparisons.wanted(brief, experiment)
        )
    return tuple(tables)


def _of_experiment(
    experiment: str,
    cases: Sequence[CaseMeasures],
    capacities: Mapping[str, CurveCapacity],
    cores: int,
    compared: Sequence[Comparison],
) -> list[Matrix]:
    row, column = _axes(cases)
    groups: dict[tuple[tuple[str, str], ...], list[CaseMeasures]] = {}
    for case in cases:
        rest = tuple((f, level) for f, level in case.levels.items() if f not in (row, column))
        groups.setdefault(rest, []).append(case)
    tables = []
    for rest, members in groups.items():
        words = ", ".join(f"{factor}={level}" for factor, level in rest)
        held = " (held out)" if all(case.is_held_out for case in members) else ""
        title = ", ".join(part for part in (experiment, words) if part) + held
        metrics = _metrics(members, compared)
        rows = _levels(members, row)
        columns = _levels(members, column)
        tables.append(
            Matrix(
                experiment=experiment,
                title=title,
                row_factor=row,
                column_factor=column,
                rows=rows,
                columns=columns,
                cells={
                    (case.levels.get(row, ""), case.levels.get(column, "")): _cell(case, metrics, cores)
                    for case in members
                },
                metrics=tuple((metric.key, metric.label, metric.unit) for metric in metrics),
                knee_after=_knees(members, row, columns, capacities),
            )
        )
    return tables


def _axes(cases: Sequence[CaseMeasures]) -> tuple[str, str]:
    """The factor of the rows and that of the columns; the load, if it varies, stands in the columns."""
    names = factor_names(case.levels for case in cases)
    varied = [n for n in names if len({case.levels.get(n) for case in cases if not case.is_held_out}) > 1]
    names = varied or names
    if not names:
        return "", ""
    load = load_factor(cases)
    column = load if load in names else names[-1]
    rest = [name for name in names if name != column]
    return (rest[0] if rest else ""), column


def _levels(cases: Sequence[CaseMeasures], factor: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(case.levels.get(factor, "") for case in cases))


def _metrics(cases: Sequence[CaseMeasures], compared: Sequence[Comparison]) -> tuple[Metric, ...]:
    """Return what each cell shows, in order."""
    load = next((case.reference for case in cases if case.reference is not None), None)
    steps = load.plan.steps[:MOST_CLASSES] if load is not None else ()
    metrics: list[Metric] = []
    if len(steps) > 1:
        for step in steps:
            metrics += _times(
                cases,
                (f"mean:{step.name}", f"mean, {step.name}", partial(CaseMeasures.mean, step=step.index)),
                _of_step(step.index),
                (f":{step.name}", f", {step.name}"),
            )
    else:
        metrics += _response_and_service(cases)
    metrics += [
        Metric("rate", "requests/s", "1/s", lambda case: case.throughput),
        Metric("failed", "failed", "share", lambda case: case.failed_share),
    ]
    for name in next((case.probe_names for case in cases if case.probe_names), ()):
        metrics += _times(
            cases,
            (f"probe_mean:{name}", f"probe {name}, mean", partial(CaseMeasures.probe_mean, name=name)),
            _of_probe(name),
            (f":{name}", ""),
            before=("probe_", f"probe {name}, "),
        )
    if any(trial.resources.services for case in cases for trial in case.usable):
        metrics.append(Metric("cpu", "busiest process", "cores", _busiest))
    shown = {"throughput", "response_time.mean", "failed.share"}
    for wanted in compared:
        if wanted.step is not None or wanted.metric not in shown:
            metrics.append(
                Metric(
                    f"{wanted.metric}:{wanted.step or ''}",
                    comparisons.what(wanted.metric, wanted.step),
                    unit_of(wanted.metric),
                    partial(figure_of, metric=wanted.metric, step=wanted.step),
                )
            )
    return tuple(metrics)


def _response_and_service(cases: Sequence[CaseMeasures]) -> list[Metric]:
    """Response times; service times first where another program, which knows no others, made some loads."""
    response = _times(cases, ("mean", "mean", CaseMeasures.mean), lambda case, p: case.quantile(p), ("", ""))
    if not any(case.plan.driver for case in cases):
        return response
    service = _times(
        cases,
        ("service_mean", "service time, mean", partial(CaseMeasures.mean, kind="service")),
        lambda case, p: case.quantile(p, kind="service"),
        ("", ""),
        before=("service_", "service time, "),
    )
    return service if all(case.plan.driver for case in cases) else service + response


def _times(
    cases: Sequence[CaseMeasures],
    mean: tuple[str, str, Callable[[CaseMeasures], Figure]],
    quantile: Quantile,
    after: tuple[str, str],
    *,
    before: tuple[str, str] = ("", ""),
) -> list[Metric]:
    """Return a mean and the highest percentile that is known, with their keys and labels."""
    key, label, of = mean
    metrics = [Metric(key, label, "s", of)]
    p = highest_known([partial(quantile, case) for case in cases if case.reference is not None])
    if p is not None:
        name = quantile_name(p)
        shown = partial(_at, quantile=quantile, p=p)
        metrics.append(Metric(f"{before[0]}{name}{after[0]}", f"{before[1]}{name}{after[1]}", "s", shown))
    return metrics


def _of_step(step: int) -> Quantile:
    return lambda case, p: case.quantile(p, step)


def _of_probe(name: str) -> Quantile:
    return lambda case, p: case.probe_quantile(name, p)


def _at(case: CaseMeasures, *, quantile: Quantile, p: float) -> Figure:
    return quantile(case, p)


def _busiest(case: CaseMeasures) -> Figure:
    process = max(processes_of(case), key=lambda process: process.cores, default=None)
    return NotMeasured("cpu", "not watched") if process is None else process.cpu


def _cell(case: CaseMeasures, metrics: Sequence[Metric], cores: int) -> MatrixCell:
    state, word = _state(case, cores)
    return MatrixCell(
        case=case.slug,
        # the JSON has the p99 also where a lower percentile is shown in its place
        figures={"p99": case.quantile(0.99)} | {metric.key: metric.of(case) for metric in metrics},
        state=state,
        word=word,
        judged=case.is_judged(cores),
    )


def _state(case: CaseMeasures, cores: int) -> tuple[State, str]:
    if not case.trials:
        return "unknown", "not run"
    if not case.usable:
        invalid = any(trial.source.status is TrialStatus.INVALID for trial in case.trials)
        return "bad", "invalid" if invalid else "not complete"
    if not case.is_judged(cores):
        return "unknown", f"not judged: {cores} cores"
    failed = case.failed_share
    if isinstance(failed, Estimate) and failed.point >= FEW_FAILURES:
        return "caution", f"{numbers.with_unit(failed.point, 'share')} failed"
    dropped = len(case.trials) - len(case.usable)
    if dropped:
        return "caution", f"{dropped} of {len(case.trials)} trials invalid"
    return "ok", "held out" if case.is_held_out else ""


def _knees(
    cases: Sequence[CaseMeasures],
    row: str,
    columns: Sequence[str],
    capacities: Mapping[str, CurveCapacity],
) -> dict[str, str]:
    """The last column before the knee of each row whose curve is saturated."""
    slugs = {case.slug for case in cases}
    knees: dict[str, str] = {}
    for reached in capacities.values():
        group, saturation = reached.group, reached.capacity.saturation
        if saturation.knee is None:
            continue
        members = [case for case in group.cases if case.slug in slugs]
        below = [
            case
            for case in members
            if case.reference is not None and case.reference.plan.load <= saturation.knee
        ]
        column = group.load_factor or ""
        if below and below[-1].levels.get(column, "") in columns:
            knees[below[-1].levels.get(row, "")] = below[-1].levels.get(column, "")
    return knees
