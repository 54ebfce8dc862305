"""Results of estimators as figures of a report: with metric, unit, and number of trials and requests."""

from __future__ import annotations

from dataclasses import replace

from loadlens.estimate.interval import Insufficient, Interval
from loadlens.model.finding import Estimate, Figure, Undecided


def figure(metric: str, unit: str, result: Interval | Insufficient, trials: int, samples: int) -> Figure:
    """Return an estimate, or the reason why there is none."""
    if isinstance(result, Insufficient):
        return Undecided(metric, unit, result.reason)
    return estimate(metric, unit, result, trials, samples)


def exact(metric: str, unit: str, value: float, samples: int) -> Estimate:
    """Return an exact count of one trial."""
    return Estimate(metric, unit, value, value, value, 1, samples, "exact count")


def estimate(metric: str, unit: str, interval: Interval, trials: int, samples: int) -> Estimate:
    """Return an interval as the estimate of a metric, with its number of trials and requests."""
    return Estimate(
        metric,
        unit,
        interval.point,
        interval.low,
        interval.high,
        trials,
        samples,
        interval.method,
        interval.confidence,
    )


def point(figure: Figure | None) -> float:
    """Return the point of a figure; 0 where it is not known."""
    return figure.point if isinstance(figure, Estimate) else 0.0


def interval_of(figure: Figure) -> Interval | Insufficient:
    """Return a figure as the estimators take it."""
    return known(figure) if isinstance(figure, Estimate) else Insufficient(figure.reason)


def scaled(figure: Figure, times: float) -> Figure:
    """Return a figure so many times as large; what is not measured as it is."""
    if not isinstance(figure, Estimate):
        return figure
    low, high = (None if end is None else times * end for end in (figure.low, figure.high))
    return replace(figure, point=times * figure.point, low=low, high=high)


def known(figure: Estimate) -> Interval:
    """Return an estimate as the estimators take it."""
    return Interval(
        figure.point, figure.low, figure.high, float(figure.samples), figure.method, figure.confidence
    )
