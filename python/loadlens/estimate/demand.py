"""Service demand: how much of a resource one request takes, by the utilisation law.

U = b + sum of D_c X_c over the classes of requests, regressed over every step and trial. Dividing U by X
instead counts the background into every request, by a fifth at low rates.

Source: P. J. Denning and J. P. Buzen 1978 (utilisation law); C. L. Lawson and R. J. Hanson 1974 (NNLS).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loadlens.estimate.interval import Floats, Insufficient, Interval, ShapeError

METHOD = "utilisation law, weighted non-negative least squares over steps and trials, residual bootstrap"
WORST_CONDITION = 30.0  # beyond, rates varied too little to separate the background from the classes
RESAMPLES = 200
WIDENING = 1.2  # the plain bootstrap covers 87 to 91 % at a nominal 95 %
EXPLAINS = 0.10  # of the plateau
RULED_OUT = 1.3  # times the plateau: the resource has room


@dataclass(frozen=True, slots=True)
class Demand:
    """Use of one resource by requests of each class."""

    per_request: tuple[Interval, ...]  # seconds of the resource, in the order of the classes
    background: Interval  # units of the resource that are busy without any request


def demand(busy: Floats, rates: Floats, *, seed: int = 1) -> Demand | Insufficient:
    """Return the demand of each class of requests on one resource.

    Args:
        busy: Busy units of the resource (cores), one for each step and trial, shape (observations,).
        rates: Requests per second of each class, shape (observations, classes).
        seed: Of the bootstrap.

    Returns:
        Demands and background with intervals from resampled residuals, widened by 1.2. Insufficient with
        fewer than classes + 3 observations or when the rates varied too little (condition above 30).

    Raises:
        ShapeError: The arrays do not belong together.
    """
    if rates.ndim != 2 or busy.shape != (rates.shape[0],):
        raise ShapeError(f"busy {busy.shape} and rates {rates.shape} do not belong together")
    observations, classes = rates.shape
    if observations < classes + 3:
        return Insufficient(f"{observations} observations for {classes} classes, needs {classes + 3}")
    if np.any(busy <= 0):
        return Insufficient("an observation without any use of the resource")
    design = np.column_stack([np.ones(observations), rates])
    scale = np.linalg.norm(design, axis=0)
    if np.any(scale == 0):
        return Insufficient("a class without requests")
    condition = float(np.linalg.cond(design / scale))
    if condition > WORST_CONDITION:
        return Insufficient(
            f"rates varied too little (condition {condition:.0f}, at most {WORST_CONDITION:.0f})"
        )
    weight = 1 / busy
    fitted = _fit(design, busy, weight)
    resampled = _bootstrap(design, busy, weight, fitted, seed)
    low, high = np.quantile(resampled, [0.025, 0.975], axis=0)
    intervals = [
        Interval(
            float(point),
            max(0.0, float(point - WIDENING * (point - below))),
            float(point + WIDENING * (above - point)),
            float(observations),
            METHOD,
        )
        for point, below, above in zip(fitted, low, high, strict=True)
    ]
    return Demand(tuple(intervals[1:]), intervals[0])


def demand_with_background(
    busy: Interval, rate: Interval, *, most_background: float
) -> Interval | Insufficient:
    """Return the demand of one class when the background is not known: bounds, not a bare ratio.

    Args:
        busy: Busy units of the resource.
        rate: Requests per second.
        most_background: The most that may be busy without any request, same unit; 0 when it is known that
            nothing is.

    Returns:
        Point busy / rate. The low end allows for the whole background, the high end for none of it.
    """
    if rate.point <= 0:
        return Insufficient("no requests")
    if busy.low is None or busy.high is None or rate.low is None or rate.high is None:
        return Insufficient("the interval of the rate or of the resource is open")
    point = busy.point / rate.point
    # Busy time and completions of one window move together; treating them as independent is the wider choice.
    down = ((busy.point - busy.low) / busy.point) if busy.point else 0.0
    down = (down**2 + ((rate.high - rate.point) / rate.point) ** 2) ** 0.5
    up = ((busy.high - busy.point) / busy.point) if busy.point else 0.0
    up = (up**2 + ((rate.point - rate.low) / rate.point) ** 2) ** 0.5
    low = max(0.0, point * (1 - down) - most_background / rate.point)
    return Interval(
        point, low, point * (1 + up), rate.independent, "busy time over completions", busy.confidence
    )


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource and what requests take of it."""

    name: str
    units: float  # how much there is: cores, or 1 for a disk
    per_request: Interval  # seconds of the resource


@dataclass(frozen=True, slots=True)
class Bound:
    """The throughput at which a resource would be full."""

    name: str
    rate: Interval  # requests per second
    utilisation: float  # of the resource at the plateau
    explains: bool | None  # True if it causes the plateau; none: its interval is too wide to say


def bounds(resources: Sequence[Resource], plateau: Interval) -> tuple[Bound, ...]:
    """Return the throughput that each resource allows, the tightest first.

    Args:
        resources: With the demand of the requests that were sent.
        plateau: Highest throughput, per second.

    Returns:
        units / demand with its interval. A resource explains the plateau when they differ by at most 10 %; it
        does not from 1.3 times the plateau on, or where the intervals do not meet; else it is not known.

    Source: Denning and Buzen 1978.
    """
    limits = []
    for resource in resources:
        demand_s = resource.per_request
        if demand_s.point <= 0:
            continue
        rate = Interval(
            resource.units / demand_s.point,
            None if demand_s.high is None else resource.units / demand_s.high,
            None if demand_s.low is None or demand_s.low <= 0 else resource.units / demand_s.low,
            demand_s.independent,
            "units over demand",
            demand_s.confidence,
        )
        limits.append(Bound(resource.name, rate, plateau.point / rate.point, _explains(rate, plateau)))
    return tuple(sorted(limits, key=lambda bound: bound.rate.point))


def _explains(rate: Interval, plateau: Interval) -> bool | None:
    ratio = rate.point / plateau.point
    if abs(ratio - 1) <= EXPLAINS:
        return True
    if ratio >= RULED_OUT:
        return False
    is_open = rate.low is None or plateau.high is None
    return None if is_open or (rate.low or 0.0) <= (plateau.high or 0.0) else False


def _fit(design: Floats, busy: Floats, weight: Floats) -> Floats:
    from scipy import optimize  # costs 0.3 s to import, and most loads have one class of requests

    return np.asarray(optimize.nnls(design * weight[:, None], busy * weight)[0], dtype=np.float64)


def _bootstrap(design: Floats, busy: Floats, weight: Floats, parameters: Floats, seed: int) -> Floats:
    fitted = design @ parameters
    relative = (busy - fitted) * weight
    observations, size = design.shape
    relative = relative * np.sqrt(observations / (observations - size))
    random = np.random.default_rng(seed)
    draws = np.empty((RESAMPLES, size))
    for row in range(RESAMPLES):
        again = fitted + random.choice(relative, observations) / weight
        draws[row] = _fit(design, again, weight)
    return draws
