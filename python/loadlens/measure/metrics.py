"""Figures of a case by the names that a study file uses: `response_time.p99`, `unexpected.share` ...

The names are those of `model.study.METRICS`; every one of them is answered here, if only with why not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from loadlens.estimate import within_trial
from loadlens.estimate.interval import Insufficient, Interval
from loadlens.measure import totals
from loadlens.measure.case import CaseMeasures
from loadlens.measure.external_report import ExternalReport
from loadlens.measure.requests import failures, log_rows, sizes
from loadlens.measure.services import request_counters
from loadlens.measure.source import StepPlan
from loadlens.measure.trial import NO_SUCCESSES, StepMeasures
from loadlens.model.finding import Estimate, Figure, NotMeasured
from loadlens.model.study import UNSUCCESSFUL

_FAILURES = ("failed.share", "unexpected.share", UNSUCCESSFUL)
QUANTILES = {"p50": 0.5, "p75": 0.75, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}


def figure_of(case: CaseMeasures, metric: str, step: str | None) -> Figure:
    """A metric of a case, of one step (or probe) or of the whole load."""
    load = case.reference
    if load is None:
        return NotMeasured(metric, case.why_nothing())
    plan = next((s for s in load.plan.steps if s.name == step), None)
    if step is not None and plan is None:
        return _of_probe(case, step, metric)
    index = None if plan is None else plan.index
    kind, _, statistic = metric.partition(".")
    if metric == "throughput":
        return case.throughput if index is None else case.step_rate(index)
    if case.external is not None and (lack := _not_reported(case, case.external, metric, kind)) is not None:
        return lack
    if metric in _FAILURES:
        return case.share_figure(metric, [_bad(part.steps, index, metric) for part in case.loads])
    if kind == "body_bytes":
        return _of_bodies(case, metric, index)
    if metric == "ab_failed.share":
        parts = as_ab(case, index)
        if parts is None:
            return NotMeasured(metric, "not every request has a row: the first answer may have none")
        return case.share_figure(metric, [(part.failed, part.ended) for part in parts])
    if kind in ("response_time", "service_time"):
        return _of_time(case, metric, index)
    if kind == "server_time":
        return _of_server(case, metric, plan, load.plan.steps, statistic)
    if kind in ("first_byte", "last_byte", "connect", "tls"):
        return _of_phase(case, metric, kind, statistic, index)
    if metric in totals.UNITS and (index is None or len(load.plan.steps) == 1):
        return totals.figure_of(case, metric)
    return NotMeasured(metric, "not a metric that is estimated")


def _not_reported(case: CaseMeasures, external: ExternalReport, metric: str, kind: str) -> NotMeasured | None:
    """Return the reason why an external load lacks a figure; none if it may have it."""
    if metric in _FAILURES and not case.counts_successes:
        return external.not_reported(metric, NO_SUCCESSES)
    if kind in ("body_bytes", "ab_failed") and not external.tells_requests:
        return external.not_reported(metric, "how long each body was")
    if kind in ("first_byte", "last_byte", "connect", "tls"):
        return external.not_reported(metric, "what the parts of a request took")
    return None


def unit_of(metric: str) -> str:
    """The base unit of a metric."""
    if metric == "throughput":
        return "1/s"
    if metric in totals.UNITS:
        return totals.UNITS[metric]
    return "share" if metric.endswith(".share") else "bytes" if metric.startswith("body_bytes.") else "s"


def has_step(case: CaseMeasures, step: str) -> bool:
    """True if a case has a step of that name, in its load or in a probe."""
    scenarios = [*case.plan.scenarios, *(p.scenario for p in case.plan.probes if p.scenario is not None)]
    names = {part.name for scenario in scenarios for part in scenario.steps}
    if case.reference is not None:
        names |= {part.name for part in case.reference.plan.steps} | set(case.probe_names)
    return step in names


def inside(case: CaseMeasures, path: str) -> Figure:
    """Mean time of a path as the server measured it."""
    return _inside(case, "server_time.mean", path, "mean")


# --- times at the client ----------------------------------------------------------------------------------


def _of_time(case: CaseMeasures, metric: str, step: int | None) -> Figure:
    kind, _, statistic = metric.partition("_time.")
    if statistic == "mean":
        return case.mean(step, kind)
    if statistic in QUANTILES:
        return case.quantile(QUANTILES[statistic], step, kind)
    if (reported := case.reported_time(kind, statistic)) is not None:
        return reported
    steps = [load.all_steps() if step is None else load.steps[step] for load in case.loads]
    return _statistic(case, metric, steps, kind, statistic)


def _statistic(
    case: CaseMeasures, metric: str, steps: Sequence[StepMeasures], kind: str, statistic: str
) -> Figure:
    """Spread and extremes: one value per trial, without an interval of its own."""
    values: list[Interval | Insufficient] = []
    for step in steps:
        counts = step.response if kind == "response" else step.service
        if counts.observed < 2:
            values.append(Insufficient(f"{counts.observed} requests, needs 2"))
            continue
        if statistic == "stdev":
            sums, squares = (
                (step.response_sum, step.response_squares)
                if kind == "response"
                else (step.service_sum, step.service_squares)
            )
            n = float(step.ok.sum())
            variance = (float(squares.sum()) - float(sums.sum()) ** 2 / n) / (n - 1)
            values.append(_bare(max(0.0, variance) ** 0.5, n, "standard deviation"))
        elif statistic in ("min", "max"):
            value = float(counts.lower.min() if statistic == "min" else counts.upper.max())
            values.append(_bare(value, counts.observed, f"{statistic} of a trial"))
        else:
            return NotMeasured(metric, "not a statistic that is estimated")
    return case.figure(metric, "s", values, [int(step.ok.sum()) for step in steps])


def _bare(value: float, n: float, method: str) -> Interval:
    return Interval(value, None, None, n, method)


def _of_probe(case: CaseMeasures, step: str, metric: str) -> Figure:
    if step not in case.probe_names:
        return NotMeasured(metric, f"{step} is neither a step nor a probe of this case")
    kind, _, statistic = metric.partition("_time.")
    streams = case.probe_streams(step)
    if metric == "response_time.mean":
        return case.probe_mean(step)
    if kind == "response" and statistic in QUANTILES:
        return case.probe_quantile(step, QUANTILES[statistic])
    if kind in ("response", "service"):
        return _statistic(case, metric, [stream.all_steps() for stream in streams], kind, statistic)
    if kind == "server":
        return _inside(case, metric, streams[0].plan.steps[0].path, statistic)
    return NotMeasured(metric, "not a metric of a probe")


def _of_phase(case: CaseMeasures, metric: str, kind: str, statistic: str, index: int | None) -> Figure:
    """Connect time of the stream; time to the first byte and from there to the last, of a step or of all."""
    if index is None or kind in ("connect", "tls"):
        parts = [load.phases[kind] for load in case.loads]
    else:
        parts = [load.steps[index].phases[kind] for load in case.loads]
    if not any(part.observed for part in parts):
        return NotMeasured(metric, "no such time was recorded")
    if statistic in QUANTILES:
        return case.quantile_figure(metric, parts, QUANTILES[statistic])
    if statistic == "mean":
        means = [within_trial.mean_of(part) for part in parts]
        return case.figure(metric, "s", means, [part.observed for part in parts])
    return NotMeasured(metric, "not a statistic that is estimated of it")


# --- shares and the server's own times --------------------------------------------------------------------


def _bad(steps: Sequence[StepMeasures], index: int | None, metric: str) -> tuple[np.ndarray, np.ndarray]:
    """Return hits and totals by interval: of unexpected answers the total is all answers, else all ended."""
    chosen = steps if index is None else [steps[index]]
    zeros = np.zeros(chosen[0].ok.size)
    failed, unexpected = sum((s.failed for s in chosen), zeros), sum((s.unexpected for s in chosen), zeros)
    answered = sum((s.ok for s in chosen), unexpected)
    if metric == "unexpected.share":
        return unexpected, answered
    return failed if metric == "failed.share" else failed + unexpected, answered + failed


def as_ab(case: CaseMeasures, index: int | None) -> list[failures.AbCounts] | None:
    """Return ApacheBench's counts of each usable trial; none when not every request has a row."""
    parts = [
        failures.as_ab_counts(trial.source, trial.load.plan.index, index, trial.load.grid.edges_s)
        for trial in case.usable
        if trial.load is not None
    ]
    complete = [part for part in parts if part is not None]
    is_whole = len(complete) == len(parts) and all(trial.thinned == 0 for trial in case.usable)
    return complete if is_whole else None


def _of_bodies(case: CaseMeasures, metric: str, index: int | None) -> Figure:
    """Decoded bodies of the answers that ended in the measured part, as the sample log has them."""
    values: list[Interval | Insufficient] = []
    samples = []
    thinned = 0
    for trial in case.usable:
        if trial.load is None:
            continue
        grid = trial.load.grid
        part = sizes.read(trial.source, trial.load.plan.index, index, grid.edges_s)
        samples.append(int(part.counts.sum()))
        thinned = max(thinned, part.thinned)
        if part.largest is None:
            values.append(Insufficient(log_rows.NOT_KEPT if trial.load.ok.any() else "nothing was answered"))
        elif metric.endswith(".mean"):
            values.append(within_trial.mean(part.sums, part.counts, squares=part.squares))
        else:
            values.append(_bare(float(part.largest), samples[-1], "largest of a trial"))
    figure = case.figure(metric, "bytes", values, samples)
    if not thinned or not isinstance(figure, Estimate):
        return figure
    high = figure.high if metric.endswith(".mean") else None  # a larger one may have no row
    return replace(figure, high=high, method=f"{figure.method}, {log_rows.chosen(thinned)}")


def _of_server(
    case: CaseMeasures, metric: str, step: StepPlan | None, steps: Sequence[StepPlan], statistic: str
) -> Figure:
    """The service's own time: the mean of its counter for the whole load, else logged times of a path."""
    if step is None and (mean := request_counters.mean_time(case, metric)) is not None:
        return mean
    if step is None and len(steps) == 1:
        step = steps[0]
    if step is None:
        return NotMeasured(metric, "the service writes down times of single paths: name a step")
    return _inside(case, metric, step.path, statistic)


def _inside(case: CaseMeasures, metric: str, path: str, statistic: str) -> Figure:
    if not any(trial.served.total for trial in case.usable):
        return NotMeasured(metric, "the service writes down no times")
    where = path.partition("?")[0]
    parts = [(trial, *trial.written_down) for trial in case.usable]
    samples = [trial.served.between(where, begin, end).size for trial, begin, end in parts]
    if statistic == "mean":
        means = [trial.served.mean(where, begin, end) for trial, begin, end in parts]
        return case.figure(metric, "s", means, samples)
    if statistic in QUANTILES:
        counts = [trial.served.counts(where, begin, end) for trial, begin, end in parts]
        return case.quantile_figure(metric, counts, QUANTILES[statistic])
    return NotMeasured(metric, "not a statistic that is estimated of it")
