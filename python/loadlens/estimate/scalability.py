"""Which curve a load test followed: a line, a bend to a plateau, or a peak with a fall behind it.

The universal scalability law always has a peak to offer. It is reported only where it explains the trials
clearly better than a plain bend and the load went past the peak; on queues that merely fill up it would
invent one, and capacity would come out a sixth too high.

Sources: N. J. Gunther, Guerrilla Capacity Planning, 2007 (the law); N. Sugiura, Communications in Statistics
A7, 1978 (corrected Akaike criterion); B. Efron 1979 (bootstrap of residuals); L. Kleinrock 1979 (power).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import optimize

from loadlens.estimate.interval import Floats, Insufficient, Interval, same_shape
from loadlens.estimate.resampling import percentile_interval
from loadlens.estimate.saturation import Hinge

CLEARLY_BETTER = 4.0  # of the corrected criterion; models within it are as good as each other
FEWEST_OBSERVATIONS = 8  # three parameters and a variance must leave some freedom to the criterion
FEWEST_LEVELS = 4
RESAMPLES = 200
WIDENING = 1.15  # the plain bootstrap of residuals covers 89 to 93 % at a nominal 95 %
NEAR_TOP = 0.95
METHOD = "bootstrap of residuals over trials"

Kind = Literal["linear", "hinge", "usl"]


@dataclass(frozen=True, slots=True)
class Usl:
    """The universal scalability law: throughput over users with contention and coherency."""

    slope: float  # completions per second of one user
    contention: float  # 0-1, the share that is serial
    coherency: float  # 0-1, the cost of agreeing, for each pair

    @property
    def peak(self) -> float:
        """Users at the highest throughput; infinite without coherency."""
        return math.sqrt((1 - self.contention) / self.coherency) if self.coherency > 0 else math.inf

    def throughput(self, users: Floats) -> Floats:
        """Completions per second at so many users, same shape."""
        others = users - 1
        return np.asarray(
            self.slope * users / (1 + self.contention * others + self.coherency * users * others),
            dtype=np.float64,
        )


@dataclass(frozen=True, slots=True)
class Scalability:
    """The curve that trials at several loads support."""

    kind: Kind
    scores: dict[Kind, float]  # corrected Akaike criterion, lower is better
    capacity: Interval | Insufficient  # completions per second: plateau, or the peak's
    knee: Interval | Insufficient  # users where the bend is
    peak: Interval | Insufficient  # users of the highest throughput, beyond which it falls
    contention: Interval | Insufficient
    coherency: Interval | Insufficient


def scalability(
    users: Floats, throughput: Floats, *, resamples: int = RESAMPLES, seed: int = 1
) -> Scalability | Insufficient:
    """Return the curve that explains throughput over users, with intervals of what it says.

    Args:
        users: Load of each trial, above zero, shape (trials of all levels,); at least 8, over 4 levels.
        throughput: Completions per second, above zero, same shape.
        resamples: Of the residuals.
        seed: Of the draws.

    Returns:
        The simplest of line, hinge and universal scalability law that no other beats by 4 of the corrected
        criterion. A capacity only where the curve bends; a peak only of the law, where the largest load lies
        beyond it and the coherency's interval excludes zero.
    """
    same_shape(users, throughput)
    if users.size < FEWEST_OBSERVATIONS:
        return Insufficient(f"{users.size} trials, needs {FEWEST_OBSERVATIONS}")
    levels = np.unique(users)
    if levels.size < FEWEST_LEVELS:
        return Insufficient(f"{levels.size} levels of load, a curve needs {FEWEST_LEVELS}")
    if np.any(throughput <= 0):
        return Insufficient("a trial without completions")
    fits = {kind: _fit(kind, users, np.log(throughput)) for kind in _MODELS}
    scores = {kind: _criterion(kind, fit, users.size) for kind, fit in fits.items()}
    kind = _simplest(scores)
    unbent = Insufficient("throughput grows in proportion to the load: no bend was reached")
    if kind == "linear":
        return Scalability(kind, scores, unbent, unbent, unbent, unbent, unbent)
    draws = _resampled(kind, fits[kind], users, resamples, seed)
    best = fits[kind].parameters

    def interval(of: Callable[[Floats], float]) -> Interval:
        values = np.array([of(draw) for draw in draws])
        return percentile_interval(
            of(best), values, widening=WIDENING, independent=float(users.size), method=METHOD
        )

    if kind == "hinge":
        no_law = Insufficient("a plain bend explains it as well as the universal scalability law")
        return Scalability(
            kind,
            scores,
            interval(lambda x: math.exp(x[1])),
            interval(lambda x: math.exp(x[1] - x[0])),
            no_law,
            no_law,
            no_law,
        )
    no_bend = Insufficient("the curve has a peak instead of a bend")
    peak: Interval | Insufficient = interval(lambda x: _usl(x).peak)
    coherency = interval(lambda x: float(x[2]))
    if _usl(best).peak > users.max():
        peak = Insufficient(f"the largest load, {users.max():.4g} users, lies before the peak")
    elif coherency.low is None or coherency.low <= 0:
        peak = Insufficient("the cost of agreeing may be zero: then there is no peak")
    capacity: Interval | Insufficient = interval(lambda x: _highest(_usl(x), float(users.max())))
    if isinstance(peak, Insufficient):
        capacity = Insufficient(f"not identified: {peak.reason}")
    return Scalability(kind, scores, capacity, no_bend, peak, interval(lambda x: float(x[1])), coherency)


def isotonic_knee(users: Floats, throughput: Floats, weights: Floats | None = None) -> float:
    """Return the smallest tested load that reaches 95 % of the highest throughput: as fine as the grid.

    Args:
        users: Load of each level, shape (levels,).
        throughput: Mean completions per second of each, same shape.
        weights: One over the variance of each mean; equal when none are given.

    Returns:
        Users, from the increasing fit: a single level that is high by luck does not decide.
    """
    same_shape(users, throughput)
    order = np.argsort(users)
    fit = optimize.isotonic_regression(
        throughput[order], weights=None if weights is None else weights[order]
    ).x
    return float(users[order][np.flatnonzero(fit >= NEAR_TOP * fit.max())[0]])


def most_efficient(users: Floats, throughput: Floats, response_s: Floats) -> float:
    """Return the tested load with most throughput per response time (power): a good place to run.

    Args:
        users, throughput, response_s: Of each level, shape (levels,); mean seconds.

    Source: Kleinrock 1979.
    """
    same_shape(users, throughput, response_s)
    return float(users[np.argmax(throughput / response_s)])


# --- the three models, all on the logarithm of throughput -------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Fit:
    parameters: Floats
    squares: float  # of the residuals of log throughput
    residuals: Floats


@dataclass(frozen=True, slots=True)
class _Model:
    predict: Callable[[Floats, Floats], Floats]  # (parameters, users) -> log throughput
    starts: Callable[[Floats, Floats], Sequence[Sequence[float]]]
    low: Sequence[float]
    high: Sequence[float]
    scale: Sequence[float]


def _log_line(parameters: Floats, users: Floats) -> Floats:
    return np.asarray(parameters[0] + np.log(users), dtype=np.float64)


def _log_hinge(parameters: Floats, users: Floats) -> Floats:
    slope, plateau, sharpness = np.exp(parameters)
    return np.asarray(np.log(Hinge(slope, plateau, sharpness).throughput(users)), dtype=np.float64)


def _log_usl(parameters: Floats, users: Floats) -> Floats:
    others = users - 1
    return np.asarray(
        parameters[0] + np.log(users) - np.log1p(parameters[1] * others + parameters[2] * users * others),
        dtype=np.float64,
    )


def _usl(parameters: Floats) -> Usl:
    return Usl(math.exp(parameters[0]), float(parameters[1]), float(parameters[2]))


def _steepest(users: Floats, logs: Floats) -> float:
    return float(np.max(logs - np.log(users)))


_MODELS: dict[Kind, _Model] = {
    "linear": _Model(
        _log_line, lambda users, logs: [[float(np.mean(logs - np.log(users)))]], [-40], [40], [1.0]
    ),
    "hinge": _Model(
        _log_hinge,
        lambda users, logs: [
            [_steepest(users, logs), float(logs.max()), math.log(sharpness)] for sharpness in (1.5, 4.0, 16.0)
        ],
        [-40, -40, 0.0],
        [40, 40, math.log(64)],
        [1.0, 1.0, 1.0],
    ),
    "usl": _Model(
        _log_usl,
        lambda users, logs: [
            [_steepest(users, logs), contention, coherency]
            for contention, coherency in ((0.02, 1e-5), (0.05, 1e-3), (0.4, 1e-4))
        ],
        [-40, 0.0, 0.0],
        [40, 1.0, 1.0],
        [1.0, 0.1, 1e-3],
    ),
}


def _fit(kind: Kind, users: Floats, logs: Floats, start: Sequence[float] | None = None) -> _Fit:
    model = _MODELS[kind]
    starts = model.starts(users, logs) if start is None else [start]
    found = [
        optimize.least_squares(
            lambda x: model.predict(x, users) - logs,
            np.clip(one, model.low, model.high),
            bounds=(model.low, model.high),
            x_scale=model.scale,
        )
        for one in starts
    ]
    best = min(found, key=lambda fit: float(fit.cost))
    return _Fit(np.asarray(best.x), 2 * float(best.cost), np.asarray(-best.fun))


def _criterion(kind: Kind, fit: _Fit, observations: int) -> float:
    parameters = len(fit.parameters) + 1  # and the variance
    exact = 1e-12 * observations  # a perfect fit must not win by rounding
    score = observations * math.log(max(fit.squares, exact) / observations) + 2 * parameters
    return score + 2 * parameters * (parameters + 1) / (observations - parameters - 1)


def _simplest(scores: dict[Kind, float]) -> Kind:
    chosen: Kind = "linear"
    order: tuple[Kind, ...] = ("hinge", "usl")
    for kind in order:
        if scores[kind] <= scores[chosen] - CLEARLY_BETTER:
            chosen = kind
    return chosen


def _resampled(kind: Kind, fit: _Fit, users: Floats, resamples: int, seed: int) -> list[Floats]:
    fitted = _MODELS[kind].predict(fit.parameters, users)
    spread = math.sqrt(users.size / (users.size - fit.parameters.size))
    random = np.random.default_rng(seed)
    return [
        _fit(
            kind, users, fitted + spread * random.choice(fit.residuals, users.size), list(fit.parameters)
        ).parameters
        for _ in range(resamples)
    ]


def _highest(law: Usl, largest_load: float) -> float:
    at = min(law.peak, largest_load)
    return float(law.throughput(np.array([max(1.0, at)]))[0])
