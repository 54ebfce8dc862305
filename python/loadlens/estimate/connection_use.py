"""Requests that a service serves on a connection, and the spread of connections over replicas.

Requests on one connection go to one replica, so they are no independent draws: a test on requests calls nine
in ten fair hashings unfair. Connections are what was drawn.

Sources: K. Pearson 1900 (chi-square); RFC 9112 section 9.3 (persistence).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from loadlens.estimate import distributions
from loadlens.estimate.interval import (
    Floats,
    Insufficient,
    Interval,
    Ints,
    same_shape,
)

FEWEST_CLOSED = 10
SAME_COUNT = 0.80  # of the connections that the service closed
SAME_AGE = 0.10  # coefficient of variation
UNEVEN = 1.25  # most loaded replica over the mean
UNFAIR_LEVEL = 0.01
DRAWS = 4000
FEWEST_COUNTED = 100
STARVING_JAIN = 0.8
STARVING_RATIO = 3.0


@dataclass(frozen=True, slots=True)
class Closings:
    """Common properties of the connections that the service closed."""

    count: int
    requests: int  # the most frequent number that they had served
    same_requests: float  # share that had served that many: 1 with a limit of requests
    age_s: float  # the median
    same_age: float  # share that lived within a tenth of the median: 1 with a time-out


def closings(requests: Ints, age_s: Floats) -> Closings | Insufficient:
    """Return what shows the limit by which a service closes connections.

    Args:
        requests: Answered on each connection that the service closed, shape (connections,); at least 10.
        age_s: From established to closed, seconds, same shape.
    """
    same_shape(requests, age_s)
    if requests.size < FEWEST_CLOSED:
        return Insufficient(f"the service closed {requests.size} connections, needs {FEWEST_CLOSED}")
    values, counts = np.unique(requests, return_counts=True)
    middle = float(np.median(age_s))
    near = float((np.abs(age_s - middle) <= SAME_AGE * middle).mean()) if middle > 0 else 0.0
    most = int(counts.argmax())
    return Closings(requests.size, int(values[most]), float(counts[most] / requests.size), middle, near)


def cost_of_connecting(first_s: Interval, other_s: Interval, requests: float, response_s: float) -> Interval:
    """Return the share of the response time that goes into new connections.

    Args:
        first_s: Mean time of the first request of a connection, connecting included, seconds.
        other_s: Mean time of the others.
        requests: Served on one connection.
        response_s: Mean response time of all.

    Returns:
        (first - other) / (requests x response), errors of both means added in squares.
    """
    scale = 1 / (requests * response_s)
    point = (first_s.point - other_s.point) * scale
    error = float(np.hypot(first_s.half_width, other_s.half_width)) * scale
    least = min(first_s.independent, other_s.independent)
    return Interval(point, point - error, point + error, least, "difference of means, errors in squares")


@dataclass(frozen=True, slots=True)
class Balance:
    """Evenness of the load of replicas, and whether chance explains it."""

    most_over_mean: float  # requests of the most loaded over the mean
    verdict: Literal["even", "few_connections", "uneven"]
    fair_median: float  # of most over mean, were connections hashed at random
    fair_p95: float


def balance(requests: Floats, connections: Floats, *, seed: int = 1) -> Balance | Insufficient:
    """Return how evenly a balancer spread its load.

    Args:
        requests: Of each replica, shape (replicas,); at least 2 replicas and 100 requests.
        connections: Connections that went to each replica, same shape; requests where each was balanced on
            its own.
        seed: Of the fair hashings drawn.

    Returns:
        `even` below 1.25 times the mean; beyond, `few_connections` when fair hashing of as many connections
        is as uneven one time in twenty or more, else `uneven`: weights, stickiness, or a rule that does not
        balance.
    """
    same_shape(requests, connections)
    replicas, total = requests.size, float(requests.sum())
    if replicas < 2 or total < FEWEST_COUNTED:
        return Insufficient(f"{total:.0f} requests to {replicas} replicas, needs {FEWEST_COUNTED} to 2")
    drawn = round(float(connections.sum()))
    if drawn < 1:
        return Insufficient("no connection was counted")
    most = float(requests.max()) * replicas / total
    hashed = np.random.default_rng(seed).multinomial(drawn, np.full(replicas, 1 / replicas), DRAWS)
    fair = hashed.max(axis=1) * replicas / drawn
    p_value = distributions.uniform_p_value(connections)
    p95 = float(np.quantile(fair, 0.95))
    verdict: Literal["even", "few_connections", "uneven"] = "even"
    if most >= UNEVEN:
        verdict = "uneven" if most > p95 or p_value < UNFAIR_LEVEL else "few_connections"
    return Balance(most, verdict, float(np.median(fair)), p95)


@dataclass(frozen=True, slots=True)
class Fairness:
    """Evenness of the service of connections."""

    jain: float  # 1: all alike; 1 / n: one has it all
    best_over_worst: float  # mean of the best tenth over that of the worst

    @property
    def starves(self) -> bool:
        """True if some connections starve."""
        return self.jain < STARVING_JAIN or self.best_over_worst > STARVING_RATIO


def fairness(requests: Floats) -> Fairness | Insufficient:
    """Return how evenly a closed load's connections were served.

    Args:
        requests: Answered on each connection that lived the whole time, shape (connections,); 100 on average
            and 10 connections at least, else chance alone makes them differ.

    Returns:
        Jain's index, and how much more the best served tenth got than the worst.

    Source: R. Jain, D. Chiu and W. Hawe, DEC-TR-301, 1984.
    """
    if requests.size < FEWEST_CLOSED or float(requests.mean()) < FEWEST_COUNTED:
        return Insufficient(
            f"{requests.size} connections with {requests.mean() if requests.size else 0:.0f} requests each, "
            f"needs {FEWEST_CLOSED} with {FEWEST_COUNTED}"
        )
    index = float(requests.sum() ** 2 / (requests.size * (requests**2).sum()))
    ordered = np.sort(requests)
    tenth = max(1, requests.size // 10)
    worst = float(ordered[:tenth].mean())
    return Fairness(index, float(ordered[-tenth:].mean()) / worst if worst > 0 else float("inf"))
