"""Quality of the figures of a case: how its trials settled, differed, added up, and were sent."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from loadlens.estimate import omission as omitted
from loadlens.estimate import over_trials as over
from loadlens.estimate import within_trial
from loadlens.estimate.interval import Interval
from loadlens.estimate.interval_counts import IntervalCounts
from loadlens.estimate.steady_state import Steadiness
from loadlens.measure.case import CaseMeasures
from loadlens.measure.nodes import nodes_of
from loadlens.measure.trial import LAG, StreamMeasures, TrialMeasures
from loadlens.model.finding import Z_95, Estimate
from loadlens.model.quality import (
    CalledFailed,
    LittleTrial,
    Omission,
    OwnCores,
    Quality,
    QuantileWatch,
    Settling,
    Variation,
)
from loadlens.signals.read.resources import Resources

BY_LENGTH = "length"  # class of failures: answers of another length than the first
QUOTED = (0.5, 0.9, 0.95, 0.99)  # quantiles that tables and objectives quote
NEIGHBOUR = 0.02  # how far the neighbours of a quantile lie from it; half of what is above it at most
WIDE = 2.0  # upper end of an interval over its lower: from here on its neighbours are looked at
CLEARLY = 3.5  # standard errors: the cut is the one of many that parts most


def of(case: CaseMeasures) -> Quality:
    """Return the quality of a case's figures."""
    longest = [load.external.service_time("max") for load in case.loads if load.external is not None]
    return Quality(
        own_cores=_own_cores(case.usable),
        soft_cores=None if (most := most_others(case)) is None else most.soft,
        little=_little(case.loads),
        longest_reported_s=max((time.point for time in longest if time is not None), default=None),
        seconds=min((load.grid.seconds for load in case.loads), default=None),
        order=min((trial.source.position for trial in case.usable), default=None),
        settling=tuple(settling for trial in case.usable if (settling := _settling(trial)) is not None),
        variation=_variation(case),
        quantiles=tuple(_quantiles(case)),
        omission=_omission(case),
        called_failed=_called_failed(case),
        nodes=nodes_of(case),
    )


def most_others(case: CaseMeasures) -> Resources | None:
    """Return the resources of the trial in which other programs used most, soft interrupts aside."""
    watched = [trial.resources for trial in case.usable if trial.resources.others is not None]
    return max(watched, key=lambda used: (used.others or 0.0) - (used.soft or 0.0), default=None)


# --- the generator's cores --------------------------------------------------------------------------------


def _own_cores(trials: Sequence[TrialMeasures]) -> OwnCores | None:
    cores = [each for trial in trials if (each := _of_one_trial(trial)) is not None]
    if not cores:
        return None
    return OwnCores(
        max(each.cores for each in cores),
        float(np.mean([each.busy for each in cores])),
        float(np.mean([each.lab for each in cores])),
    )


def _of_one_trial(trial: TrialMeasures) -> OwnCores | None:
    cpus = trial.source.placement.own_cpus
    busy = trial.resources.busy_by_cpu
    lab = [p.cpu.point for p in trial.resources.processes if p.is_lab and isinstance(p.cpu, Interval)]
    if not cpus or not lab or any(cpu not in busy for cpu in cpus):
        return None
    return OwnCores(len(cpus), sum(busy[cpu] for cpu in cpus), sum(lab))


# --- Little's law, time, runs -----------------------------------------------------------------------------


def _little(loads: Sequence[StreamMeasures]) -> tuple[LittleTrial, ...]:
    checks = [load.result.little for load in loads if load.result is not None]
    return tuple(
        LittleTrial(check.ratio, check.edge_bound or 0.0) for check in checks if check.ratio is not None
    )


def _settling(trial: TrialMeasures) -> Settling | None:
    load, steady = trial.load, trial.steady
    if load is None or not isinstance(steady, Steadiness):
        return None
    cut_s = (1 - steady.fraction) * load.grid.seconds
    return Settling(
        order=trial.source.position,
        kind=steady.kind,
        measured_s=load.grid.seconds,
        cut_s=cut_s,
        bias=_bias(load, cut_s) if cut_s > 0 and steady.is_steady else None,
        change=steady.trend.change,
        p_value=steady.trend.p_value,
    )


def _bias(load: StreamMeasures, cut_s: float) -> float | None:
    """Return the shift of the median by the part before the cut; 0 where chance does as much."""
    counts = load.all_steps().response if load.external is None else load.all_steps().service
    first = int(np.searchsorted(load.grid.edges_s, load.grid.starts_s[0] + cut_s - 1e-9))
    whole, settled = _median(counts, 0), _median(counts, first)
    if whole is None or settled is None:
        return None
    return whole / settled - 1 if _is_slower(counts, first, settled) else 0.0


def _is_slower(counts: IntervalCounts, first: int, median: float) -> bool:
    """True if more than half of what ended before an interval took longer than the median behind it.

    A cut is made where the two parts differ most: of times that only scatter it leaves 2 % as well.
    """
    is_before = counts.interval < first
    before, behind = int(counts.count[is_before].sum()), int(counts.count[~is_before].sum())
    above = int(counts.count[is_before & (counts.upper > median)].sum())
    if not before or not behind:
        return False
    # Both the share above and the median that it is held against scatter.
    error = math.sqrt(before * (1 + before / behind)) / 2
    return above - before / 2 > CLEARLY * error


def _median(counts: IntervalCounts, first: int) -> float | None:
    """Of what ended from an interval on."""
    kept = counts.interval >= first
    upper, count = counts.upper[kept], counts.count[kept]
    if not count.sum():
        return None
    order = np.argsort(upper)
    below = np.cumsum(count[order])
    return float(upper[order][np.searchsorted(below, below[-1] / 2)])


def _variation(case: CaseMeasures) -> Variation | None:
    trials = [trial for trial in case.usable if trial.load is not None and trial.load.external is None]
    means = [
        mean
        for trial in sorted(trials, key=lambda t: t.source.position)
        if trial.load is not None and isinstance(mean := trial.load.all_steps().response_mean, Interval)
    ]
    errors = [_relative_error(mean) for mean in means]
    complete = [error for error in errors if error is not None]
    if len(complete) < len(trials) or not complete:
        return None
    values = np.array([mean.point for mean in means])
    split = over.variation(values, np.array(complete))
    if not isinstance(split, over.Variation):
        return None
    logs = np.log(values)
    rest = np.delete(logs, int(np.argmax(np.abs(logs - np.median(logs)))))
    return Variation(
        trials=values.size,
        between=split.between,
        between_low=split.between_low,
        between_high=split.between_high,
        within=split.within,
        share_between=split.share_between,
        order_p=over.order_trend(values),
        without_one=float(rest.std(ddof=1)),
    )


def _relative_error(mean: Interval) -> float | None:
    """Standard error over the mean; its t has more than two degrees of freedom, so this is no less."""
    if mean.low is None or mean.high is None:
        return None
    return (mean.high - mean.low) / 2 / Z_95 / mean.point


# --- quantiles --------------------------------------------------------------------------------------------


def _quantiles(case: CaseMeasures) -> list[QuantileWatch]:
    """Return the quoted quantiles of the response time that have a value."""
    if not case.loads or case.external is not None:
        return []
    each = [load.all_steps().response for load in case.loads]
    watches = []
    for level in QUOTED:
        figure = case.quantile(level)
        if not isinstance(figure, Estimate):
            continue
        apart = min(NEIGHBOUR, (1 - level) / 2)
        is_wide = figure.low is None or figure.high is None or figure.high > WIDE * figure.low
        near = [case.quantile(level + side * apart) if is_wide else None for side in (-1, 1)]
        lower, upper = (side if isinstance(side, Estimate) else None for side in near)
        watches.append(QuantileWatch(level, figure, _above(each, level), lower, upper, apart))
    return watches


def _above(each: Sequence[IntervalCounts], level: float) -> float | None:
    parts = [within_trial.quantile(counts, level) for counts in each]
    independent = [part.independent * (1 - level) for part in parts if isinstance(part, Interval)]
    return sum(independent) if independent else None


# --- what was due and what was called failed --------------------------------------------------------------


def _omission(case: CaseMeasures) -> Omission | None:
    """Return the omission of a scheduled load of our engine; none for any other load."""
    trials: list[omitted.Omission] = []
    parts = []
    for load in case.loads:
        lag = load.phases.get(LAG)
        if load.plan.is_closed or load.external is not None or lag is None or not lag.observed:
            return None
        whole = load.all_steps()
        trial = omitted.omission(whole.response, whole.service)
        if not isinstance(trial, omitted.Omission):
            return None
        median = within_trial.quantile(whole.service, 0.5)
        middle = median.point if isinstance(median, Interval) else 0.0
        threshold = max(omitted.LATE_FLOOR_S, omitted.LATE_SHARE_OF_MEDIAN * middle)
        trials.append(trial)
        parts.append((lag.above_per_interval(threshold), lag.known_per_interval(threshold)))
    if not trials:
        return None
    tails = case.quantile(0.99), case.quantile(0.99, kind="service")
    response, service = (tail.point if isinstance(tail, Estimate) else None for tail in tails)
    return Omission(
        late=case.share_figure("late.share", parts),
        tail_ratio=_middle([trial.tail_ratio for trial in trials if trial.tail_ratio is not None]),
        mean_ratio=float(np.median([trial.mean_ratio for trial in trials])),
        response_p99_s=response,
        service_p99_s=service,
    )


def _middle(values: Sequence[float]) -> float | None:
    """Median over trials: the largest of several is large by chance, too."""
    return float(np.median(values)) if values else None


def _called_failed(case: CaseMeasures) -> CalledFailed | None:
    reports = [load.external for load in case.loads if load.external is not None]
    by_length = sum(e.count for t in reports for name, e in t.load.errors.items() if name == BY_LENGTH)
    if not by_length:
        return None
    unexpected = [t.counts.unexpected_status for t in reports]
    reported = [count for count in unexpected if count is not None]
    return CalledFailed(
        program=reports[0].name,
        by_length=by_length,
        failed=sum(t.counts.failed for t in reports),
        unexpected=sum(reported) if len(reported) == len(unexpected) else None,
        answered=sum(t.counts.answered for t in reports),
    )
