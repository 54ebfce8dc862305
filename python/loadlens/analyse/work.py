"""CPU time of one request, by the utilisation law over the levels of a curve."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from loadlens.analyse.case import CaseMeasures
from loadlens.analyse.trial import StreamMeasures
from loadlens.analyse.watched import server_cores
from loadlens.model.finding import Estimate, Figure, NotMeasured, Undecided
from loadlens.stats import demand, within
from loadlens.stats.interval import Floats, Insufficient, Interval

IDLE_CORES = 0.02  # what services may use without any request, where they were not watched idle


def cpu_time(cases: Sequence[CaseMeasures], dearest: str) -> tuple[Figure, Figure]:
    """CPU seconds of one request over the levels of a curve: of the dearest class, and of all classes."""
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
    all_rates = np.array(
        [[float(load.ok.sum() + load.not_ok.sum()) / load.grid.seconds] for _, load, _ in rows]
    )
    dear_rates = np.array([[_step_rate(load, dearest)] for _, load, _ in rows])
    samples = int(sum(float(load.ok.sum()) for _, load, _ in rows))
    last = [(load, cpu) for trial, load, cpu in rows if trial in cases[-1].usable]
    return (
        _one_work(metric, busy, dear_rates, last, dearest, trials, samples),
        _one_work(metric, busy, all_rates, last, None, trials, samples),
    )


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
    found = demand.demand(busy, rates)
    if isinstance(found, demand.Demand):
        one = found.per_request[0]
        return Estimate(metric, "s", one.point, one.low, one.high, trials, samples, one.method)
    ratios = []
    for load, cpu in last:
        rate = load.throughput if step is None else _step_throughput(load, step)
        if isinstance(rate, Interval) and rate.point > 0:
            # Both come from the same window, so the count is exact for it.
            exact = Interval(rate.point, rate.point, rate.point, rate.independent, rate.method)
            ratios.append(demand.demand_with_background(cpu, exact, most_background=IDLE_CORES))
    known = [ratio for ratio in ratios if isinstance(ratio, Interval)]
    if not known:
        reason = next((r.reason for r in ratios if isinstance(r, Insufficient)), found.reason)
        return Undecided(metric, "s", reason)
    lows = [k.low for k in known if k.low is not None]
    highs = [k.high for k in known if k.high is not None]
    method = f"{known[0].method} at the highest load"
    point = float(np.mean([k.point for k in known]))
    return Estimate(metric, "s", point, min(lows), max(highs), trials, samples, method)


def _step_rate(load: StreamMeasures, name: str) -> float:
    step = next(s for s in load.steps if s.plan.name == name)
    return float(step.ok.sum() + step.not_ok.sum()) / load.grid.seconds


def _step_throughput(load: StreamMeasures, name: str) -> Interval | Insufficient:
    step = next(s for s in load.steps if s.plan.name == name)
    return within.rate(step.ok + step.not_ok, load.grid.lengths_s)
