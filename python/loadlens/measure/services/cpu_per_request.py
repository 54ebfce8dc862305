"""CPU time of one request, by the utilisation law over the levels of a curve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from loadlens.estimate import demand
from loadlens.estimate.interval import Floats, Insufficient, Interval
from loadlens.measure.case import CaseMeasures
from loadlens.measure.figures import estimate
from loadlens.measure.services.watched import server_cores
from loadlens.measure.trial import StreamMeasures
from loadlens.model.finding import Z_95, Estimate, Figure, NotMeasured, Undecided

IDLE_CORES = 0.02  # what services may use without any request, where they were not watched idle


def cpu_time(cases: Sequence[CaseMeasures], costliest: str) -> tuple[Figure, Figure]:
    """CPU seconds of one request over the levels of a curve: of the costliest class, and of all classes."""
    rows = [
        (trial, load, cpu)
        for case in cases
        for trial in case.usable
        if (load := trial.load) is not None and (cpu := server_cores(trial)) is not None
    ]
    metric, trials = "cpu_time", min(len(case.usable) for case in cases)
    if not rows:
        missing = NotMeasured(metric, "the service's processes were not watched")
        return missing, missing
    busy = np.array([cpu.point for _, _, cpu in rows])
    samples = int(sum(float(load.ok.sum()) for _, load, _ in rows))
    top = max((load.plan.load for _, load, _ in rows if load.ok.any()), default=None)
    last = [(load, cpu) for _, load, cpu in rows if load.plan.load == top]

    def of(step: str | None) -> Figure:
        rates = np.array([[_rate(load, step)] for _, load, _ in rows])
        return _one_work(metric, busy, rates, last, step, trials, samples)

    return of(costliest), of(None)


def _one_work(
    metric: str,
    busy: Floats,
    rates: Floats,
    last: Sequence[tuple[StreamMeasures, Interval]],
    step: str | None,
    trials: int,
    samples: int,
) -> Figure:
    """By regression over the curve; where rates hardly vary, busy time over completions at the last level."""
    fit = demand.demand(busy, rates)
    if isinstance(fit, demand.Demand):
        return estimate(metric, "s", fit.per_request[0], trials, samples)
    ratios = [
        _ratio(rate, float(load.ok.sum()), cpu) for load, cpu in last if (rate := _rate(load, step)) > 0
    ]
    intervals = [ratio for ratio in ratios if isinstance(ratio, Interval)]
    if not intervals:
        reason = next((r.reason for r in ratios if isinstance(r, Insufficient)), fit.reason)
        return Undecided(metric, "s", reason)
    lows = [k.low for k in intervals if k.low is not None]
    highs = [k.high for k in intervals if k.high is not None]
    method = f"{intervals[0].method} at the highest load"
    point = float(np.mean([k.point for k in intervals]))
    return Estimate(metric, "s", point, min(lows), max(highs), trials, samples, method)


def _ratio(rate: float, ended: float, cpu: Interval) -> Interval | Insufficient:
    """Busy time over completions of one trial, which are of the same window: the rate is exact for it.

    A trial that was read twice only has no interval of its own. What its requests took is then a mean over
    `ended` of them, each off by its mean at most: 95 % of such means lie within 1.96 / sqrt(ended).
    """
    if cpu.low is None or cpu.high is None:
        off = cpu.point * min(1.0, Z_95 / max(1.0, ended) ** 0.5)
        cpu = replace(cpu, low=cpu.point - off, high=cpu.point + off)
    exact = Interval(rate, rate, rate, ended, "counted")
    return demand.demand_with_background(cpu, exact, most_background=IDLE_CORES)


def _rate(load: StreamMeasures, name: str | None) -> float:
    """Ended requests per second, of one step or of all; what did not succeed took CPU as well."""
    ended = float((load.ok + load.not_ok).sum())
    if not ended or name is None:
        return load.rate_by_little * ended / max(1.0, float(load.ok.sum()))
    step = next(s for s in load.steps if s.plan.name == name)
    return _rate(load, None) * float((step.ok + step.not_ok).sum()) / ended
