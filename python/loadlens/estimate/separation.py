"""Limiter of a full service: an event loop, its CPU, a pool of threads, a lock, or something behind it.

Latency alone cannot distinguish them. What can: whether a cheap probe waits as long as the expensive requests
(coupling), whether the busy processes use their CPU, on how many threads, and how many requests are worked on
at once when nothing more goes (effective parallelism).

Sources: R. W. Wolff 1982 (PASTA); E. D. Lazowska et al., Quantitative System Performance, 1984.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loadlens.estimate import distributions
from loadlens.estimate.interval import Floats, Insufficient, Interval, same_shape

FEWEST_PROBES = 500
FEWEST_TRIALS = 3
AHEAD_SHARE = 0.25  # of the work: a probe that waits for what is ahead gains this from each
AHEAD_EXPLAINS = 0.5


@dataclass(frozen=True, slots=True)
class Ahead:
    """Growth of a probe's wait with what was ahead of it."""

    per_request_s: Interval
    explained: float  # share of the variance of the waits


def slope_error(ahead: Sequence[Floats], wait_s: Sequence[Floats]) -> float | None:
    """Return the half-width of the slope of waits over those ahead, 95 %, from how trials differ.

    Probes of one trial met the same lines, so they are not independent: each trial in turn is left out.

    Args:
        ahead: Requests under way when each probe was due, one array a trial.
        wait_s: What the probe waited, seconds, in the same shapes.

    Returns:
        Seconds; none below three trials, or where without one the same number was ahead all the time.

    Source: jackknife of groups, Tukey 1958.
    """
    trials = len(ahead)
    if trials < FEWEST_TRIALS:
        return None
    slopes = []
    for left_out in range(trials):
        x, y = (np.concatenate([*part[:left_out], *part[left_out + 1 :]]) for part in (ahead, wait_s))
        centred = x - x.mean()
        spread = float(centred @ centred)
        if spread <= 0:
            return None
        slopes.append(float(centred @ y) / spread)
    spread_s = np.array(slopes) - np.mean(slopes)
    error = float(np.sqrt((trials - 1) / trials * np.sum(spread_s**2)))
    return distributions.t_quantile(0.975, trials - 1) * error


def waits_for_those_ahead(in_flight: Floats, wait_s: Floats) -> Ahead | Insufficient:
    """Return how the wait of a probe grows with the expensive requests that it found.

    Args:
        in_flight: Expensive requests under way when each probe was due, shape (probes,); at least 500.
        wait_s: What the probe waited, seconds, same shape.

    Returns:
        In one queue each request ahead adds about its work; where cores are shared fairly, a few per cent.
    """
    same_shape(in_flight, wait_s)
    if wait_s.size < FEWEST_PROBES:
        return Insufficient(f"{wait_s.size} probes, needs {FEWEST_PROBES}")
    if float(np.ptp(in_flight)) == 0:
        return Insufficient("the same number was under way all the time")
    fit = distributions.line(in_flight, wait_s)
    half = distributions.t_quantile(0.975, wait_s.size - 2) * fit.slope_error
    per_request = Interval(
        fit.slope, fit.slope - half, fit.slope + half, float(wait_s.size), "least squares over probes"
    )
    return Ahead(per_request, fit.r**2)
