"""What a full service is full of: an event loop, its CPU, a pool of threads, a lock, or something behind it.

Latency alone cannot tell them apart. What can: whether a cheap probe waits as long as the expensive requests
(coupling), whether the busy processes use their CPU, on how many threads, and how many requests are worked on
at once when nothing more goes (effective parallelism).

Sources: R. W. Wolff 1982 (PASTA); E. D. Lazowska et al., Quantitative System Performance, 1984.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats as distributions

from loadlens.estimate.interval import Floats, Insufficient, Interval, same_shape

FEWEST_PROBES = 500
FEWEST_TRIALS = 3
AHEAD_SHARE = 0.25  # of the work: a probe that waits for what is ahead gains this from each
AHEAD_EXPLAINS = 0.5


@dataclass(frozen=True, slots=True)
class Ahead:
    """How the wait of a probe grows with what was ahead of it."""

    per_request_s: Interval
    explained: float  # share of the variance of the waits
    is_one_queue: bool


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
        x = np.concatenate([one for i, one in enumerate(ahead) if i != left_out])
        y = np.concatenate([one for i, one in enumerate(wait_s) if i != left_out])
        centred = x - x.mean()
        spread = float(centred @ centred)
        if spread <= 0:
            return None
        slopes.append(float(centred @ y) / spread)
    found = np.array(slopes)
    error = float(np.sqrt((trials - 1) / trials * np.sum((found - found.mean()) ** 2)))
    return float(distributions.t.ppf(0.975, trials - 1)) * error


def waits_for_those_ahead(
    in_flight: Floats, wait_s: Floats, *, work_s: float, workers: float = 1.0
) -> Ahead | Insufficient:
    """Return whether a probe waits for the expensive requests that were there when it came.

    Args:
        in_flight: Expensive requests under way when each probe was due, shape (probes,); at least 500.
        wait_s: What the probe waited, seconds, same shape.
        work_s: Time that one expensive request holds what they share.
        workers: That share the work.

    Returns:
        One queue when each request ahead adds a quarter of its work or more and explains half of the
        variance; where cores are shared fairly a probe waits a few per cent of it.
    """
    same_shape(in_flight, wait_s)
    if wait_s.size < FEWEST_PROBES:
        return Insufficient(f"{wait_s.size} probes, needs {FEWEST_PROBES}")
    if float(np.ptp(in_flight)) == 0:
        return Insufficient("the same number was under way all the time")
    fit = distributions.linregress(in_flight, wait_s)
    half = float(distributions.t.ppf(0.975, wait_s.size - 2)) * float(fit.stderr)
    slope = float(fit.slope)
    explained = float(fit.rvalue) ** 2
    return Ahead(
        Interval(slope, slope - half, slope + half, float(wait_s.size), "least squares over probes"),
        explained,
        slope >= AHEAD_SHARE * work_s / workers and explained >= AHEAD_EXPLAINS,
    )
