"""What an estimator gave, as a figure of a report: with its metric, its unit and how much it stands on."""

from __future__ import annotations

from loadlens.estimate.interval import Insufficient, Interval
from loadlens.model.finding import Estimate, Figure, Undecided


def figure(metric: str, unit: str, found: Interval | Insufficient, trials: int, samples: int) -> Figure:
    """An estimate, or why there is none."""
    if isinstance(found, Insufficient):
        return Undecided(metric, unit, found.reason)
    return estimate(metric, unit, found, trials, samples)


def exact(metric: str, unit: str, value: float, samples: int) -> Estimate:
    """What was counted in one trial."""
    return Estimate(metric, unit, value, value, value, 1, samples, "exact count")


def estimate(metric: str, unit: str, found: Interval, trials: int, samples: int) -> Estimate:
    """What is known of a metric, from so many trials with so many requests."""
    return Estimate(metric, unit, found.point, found.low, found.high, trials, samples, found.method)


def point(figure: Figure | None) -> float:
    """The point of a figure; 0 where it is not known."""
    return figure.point if isinstance(figure, Estimate) else 0.0


def interval_of(figure: Figure) -> Interval | Insufficient:
    """A figure as the estimators take it."""
    return known(figure) if isinstance(figure, Estimate) else Insufficient(figure.reason)


def known(figure: Estimate) -> Interval:
    """A figure that is known, as the estimators take it."""
    return Interval(figure.point, figure.low, figure.high, float(figure.samples), figure.method)
