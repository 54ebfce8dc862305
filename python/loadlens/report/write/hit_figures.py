"""Figures of one load: quantities of the engine's result in the form that judges and media take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from loadlens.model.finding import Estimate, Figure, NotMeasured, Undecided, wilson
from loadlens.model.report import ObjectiveRow
from loadlens.model.result import EngineResult, Quantity, RequestCounts, StreamResult
from loadlens.model.study import EXTREMES, Objective
from loadlens.present import numbers, objective_text

PER_SECOND: Final = numbers.scale("1/s")
METHOD: Final = "long-run variance, within one trial"
SHARES: Final = ("failed.share", "unexpected.share", "unsuccessful.share")
TIMES: Final = ("response_time", "service_time", "first_byte", "last_byte", "connect", "tls")
MIXED: Final = "the load was changed while it ran"  # so that its figures stand for no level


def figure(metric: str, unit: str, quantity: Quantity, samples: int) -> Figure:
    """Return a quantity of the engine's result as a figure."""
    if quantity.value is None:
        if quantity.undecided:
            return Undecided(metric, unit, quantity.undecided)
        return NotMeasured(metric, "no request was answered")
    low, high = quantity.low, quantity.high
    return Estimate(metric, unit, quantity.value, low, high, trials=1, samples=samples, method=METHOD)


def objective_rows(result: EngineResult, objectives: Sequence[Objective]) -> tuple[ObjectiveRow, ...]:
    """Judge every objective of a load by the interval of its metric."""
    if not objectives:
        return ()
    stream = result.load
    assert stream is not None, "loads of other programs have no objectives"
    if result.load_changes:
        return tuple(objective_text.judged(each, NotMeasured(each.metric, MIXED)) for each in objectives)
    return tuple(objective_text.judged(each, metric_figure(stream, each.metric)) for each in objectives)


def is_known_metric(metric: str) -> bool:
    """True if one load gives a figure for this metric."""
    kind, _, statistic = metric.partition(".")
    return metric in ("throughput", *SHARES) or (kind in TIMES and statistic not in EXTREMES)


def metric_figure(stream: StreamResult, metric: str) -> Figure:
    """Return a metric, by its name in study files, of one load."""
    kind, _, statistic = metric.partition(".")
    times = stream.response_time_s
    if metric == "throughput":
        return figure(metric, "1/s", stream.throughput_rps, times.count)
    if metric in SHARES:
        return _share(metric, stream.requests)
    phases = stream.phases_s
    block = {
        "response_time": times,
        "service_time": stream.service_time_s,
        "first_byte": phases.first_byte,
        "last_byte": phases.last_byte,
        "connect": phases.connect,
        "tls": phases.tls,
    }[kind]
    if block is None or not (block.count or block.censored):
        return NotMeasured(metric, "no request had this part")
    return figure(metric, "s", block.quantity(statistic), block.count)


def _share(metric: str, requests: RequestCounts) -> Figure:
    """Return a share of requests with its interval."""
    hits, total = {
        "failed.share": (requests.failed, requests.ended),
        "unexpected.share": (requests.unexpected_status, requests.answered),
        "unsuccessful.share": (requests.bad, requests.ended),
    }[metric]
    if not total:
        return Undecided(metric, "share", "no request ended")
    low, high = wilson(hits, total)
    return Estimate(metric, "share", hits / total, low, high, trials=1, samples=total, method="Wilson")
