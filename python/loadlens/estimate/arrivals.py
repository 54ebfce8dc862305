"""Whether requests left as the workload wanted: at random, evenly, and independent of what the service did.

Sources: F. J. Massey, J. Amer. Stat. Assoc. 46, 1951 (Kolmogorov-Smirnov); M. Kogias et al., ATC 2019 (a load
generator that tests its own arrivals).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import stats as distributions

from loadlens.estimate.interval import Floats, Insufficient, same_shape
from loadlens.estimate.steady_state import autocorrelation

FEWEST = 100
LEVEL = 1e-3
LEAST_DISTANCE = 0.02  # with a million requests any clock differs "significantly"
MOST_CORRELATED = 0.2  # of the counts of neighbouring intervals
MOST_LATE_OF_GAP = 0.10


@dataclass(frozen=True, slots=True)
class Arrivals:
    """How requests left, compared with what was planned."""

    kind: Literal["poisson", "constant"]
    distance: float  # Kolmogorov-Smirnov, or the worst lateness over the planned gap
    p_value: float | None  # none for a constant rate, which has nothing random
    dispersion: float  # variance over mean of counts: 1 for Poisson, 0 for constant
    correlation: float  # of the counts of neighbouring intervals
    is_as_planned: bool


def check_poisson(sent_s: Floats, rate_per_s: float) -> Arrivals | Insufficient:
    """Return whether requests left as a Poisson stream of that rate.

    Args:
        sent_s: When each request was sent, ascending, seconds, shape (requests,); all of them, at least 100.
        rate_per_s: As planned, constant over the time.

    Returns:
        Not as planned when the gaps are not exponential of that rate (p below 0.001 and a distance of 0.02 or
        more), or when counts of neighbouring intervals go together: then sending waited for answers.

    Source: Massey 1951.
    """
    if sent_s.size < FEWEST:
        return Insufficient(f"{sent_s.size} requests, needs {FEWEST}")
    gaps = np.diff(sent_s)
    test = distributions.kstest(gaps * rate_per_s, "expon")
    counts = _counts(sent_s, 10 / rate_per_s)
    correlation = autocorrelation(counts)
    differs = float(test.pvalue) < LEVEL and float(test.statistic) >= LEAST_DISTANCE
    return Arrivals(
        "poisson",
        float(test.statistic),
        float(test.pvalue),
        _dispersion(counts),
        correlation,
        not differs and correlation <= _correlation_limit(counts.size),
    )


def check_constant(due_s: Floats, sent_s: Floats) -> Arrivals | Insufficient:
    """Return whether requests left at equal distances, each when it was due.

    Args:
        due_s, sent_s: Of each request, in the order of the schedule, seconds, shape (requests,); at least
            100.

    Returns:
        Not as planned when any was late by more than a tenth of the planned gap.
    """
    same_shape(due_s, sent_s)
    if sent_s.size < FEWEST:
        return Insufficient(f"{sent_s.size} requests, needs {FEWEST}")
    gap = float(due_s[-1] - due_s[0]) / (due_s.size - 1)
    worst = float(np.max(np.abs(sent_s - due_s))) / gap
    counts = _counts(np.sort(sent_s), 10 * gap)
    return Arrivals(
        "constant",
        worst,
        None,
        _dispersion(counts),
        autocorrelation(counts),
        worst <= MOST_LATE_OF_GAP,
    )


def _counts(sent_s: Floats, width_s: float) -> Floats:
    """Requests of each stretch; the last, cut one is left out."""
    place = np.floor((sent_s - sent_s[0]) / width_s).astype(np.int64)
    return np.bincount(place)[:-1].astype(np.float64)


def _dispersion(counts: Floats) -> float:
    return float(counts.var(ddof=1) / counts.mean()) if counts.size > 1 else math.nan


def _correlation_limit(size: int) -> float:
    """What chance alone does not reach one time in a thousand, and never less than what matters."""
    return max(MOST_CORRELATED, float(distributions.norm.isf(LEVEL)) / math.sqrt(max(1, size)))
