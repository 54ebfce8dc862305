"""Cases of an experiment as a matrix: rows and columns are factor levels in the order of the study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loadlens.diagnose.capacity import CurveCapacity
from loadlens.measure.case import CaseMeasures
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

MOST_CLASSES = 3
FEW_FAILURES = 0.001


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
                    (case.levels.get(row, ""), case.levels.get(column, "")): cell(case, cores, compared)
                    for case in members
                },
                metrics=_metrics(members, compared),
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


def _metrics(
    cases: Sequence[CaseMeasures], compared: Sequence[Comparison]
) -> tuple[tuple[str, str, str], ...]:
    """Return the metrics of a cell in their order: key, label, unit."""
    load = next((case.reference for case in cases if case.reference is not None), None)
    names = [step.name for step in load.plan.steps][:MOST_CLASSES] if load is not None else []
    metrics: list[tuple[str, str, str]] = []
    if len(names) > 1:
        for name in names:
            metrics += [(f"mean:{name}", f"mean, {name}", "s"), (f"p99:{name}", f"p99, {name}", "s")]
    else:
        metrics += _times(cases)
    metrics += [("rate", "requests/s", "1/s"), ("failed", "failed", "share")]
    probes = next((case.probe_names for case in cases if case.probe_names), ())
    for name in probes:
        metrics += [
            (f"probe_mean:{name}", f"probe {name}, mean", "s"),
            (f"probe_p99:{name}", f"probe {name}, p99", "s"),
        ]
    if any(trial.resources.services for case in cases for trial in case.usable):
        metrics.append(("cpu", "busiest process", "cores"))
    shown = {"throughput", "response_time.mean", "response_time.p99", "failed.share"}
    for comparison in compared:
        if comparison.step is not None or comparison.metric not in shown:
            label = comparisons.what(comparison.metric, comparison.step)
            metrics.append(
                (f"{comparison.metric}:{comparison.step or ''}", label, unit_of(comparison.metric))
            )
    return tuple(metrics)


def _times(cases: Sequence[CaseMeasures]) -> list[tuple[str, str, str]]:
    """Response times; service times first where another program, which knows no others, made some loads."""
    response = [("mean", "mean", "s"), ("p99", "p99", "s")]
    if not any(case.plan.driver for case in cases):
        return response
    service = [("service_mean", "service time, mean", "s"), ("service_p99", "service time, p99", "s")]
    return service if all(case.plan.driver for case in cases) else service + response


def cell(case: CaseMeasures, cores: int, compared: Sequence[Comparison] = ()) -> MatrixCell:
    """One case."""
    state, word = _state(case, cores)
    return MatrixCell(
        case=case.slug,
        figures=figures(case)
        | {
            f"{wanted.metric}:{wanted.step or ''}": figure_of(case, wanted.metric, wanted.step)
            for wanted in compared
        },
        state=state,
        word=word,
        judged=case.is_judged(cores),
    )


def figures(case: CaseMeasures) -> dict[str, Figure]:
    """All metrics of a case by the keys of `Matrix.metrics`."""
    load = case.reference
    if load is None:
        reason = case.why_nothing()
        keys = ("mean", "p99", "service_mean", "service_p99", "rate", "failed")
        return {key: NotMeasured(key, reason) for key in keys}
    by_key: dict[str, Figure] = {
        "mean": case.mean(),
        "p99": case.quantile(0.99),
        "rate": case.throughput,
        "failed": case.failed_share,
    }
    if len(load.plan.steps) == 1:
        by_key["service_mean"] = case.mean(kind="service")
        by_key["service_p99"] = case.quantile(0.99, kind="service")
    else:
        for step in load.plan.steps[:MOST_CLASSES]:
            by_key[f"mean:{step.name}"] = case.mean(step.index)
            by_key[f"p99:{step.name}"] = case.quantile(0.99, step.index)
    for name in case.probe_names:
        by_key[f"probe_mean:{name}"] = case.probe_mean(name)
        by_key[f"probe_p99:{name}"] = case.probe_quantile(name, 0.99)
    busiest = max(processes_of(case), key=lambda process: process.cores, default=None)
    if busiest is not None:
        by_key["cpu"] = busiest.cpu
    return by_key


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
        if saturation.knee is None or saturation.verdict == "underdriven":
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
