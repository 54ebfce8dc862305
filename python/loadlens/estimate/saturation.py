"""Saturation of a load curve: the knee, and whether the load passed it.

The primary knee is Little's: N* = Xmax (R1 + Z), from two robust figures. Curves that a few points cannot
distinguish are not fitted: the universal scalability law is left to where it wins a model selection, because
on plain queues it invents a peak.

Sources: P. J. Denning and J. P. Buzen 1978 (asymptotic bounds); L. Kleinrock 1979; N. J. Gunther 2007.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from loadlens.estimate import distributions
from loadlens.estimate.interval import Floats, Insufficient, Interval

ON_PLATEAU = 0.05  # steps within 5 % of the best belong to the plateau
GAIN_PER_DOUBLING = 0.10  # 4 standard deviations of a difference of two 3-trial means at 3 % noise
BEYOND_KNEE = 1.8  # the plateau is only believed when the load went this far past the knee
RETROGRADE_MARGIN = 0.05
RETROGRADE_LEVEL = 0.01

Verdict = Literal["saturated", "underdriven", "retrograde"]


@dataclass(frozen=True, slots=True)
class Step:
    """One level of load and what came out of it, one figure a trial."""

    load: float  # users
    throughput: Floats  # completions per second, shape (trials,)


@dataclass(frozen=True, slots=True)
class Saturation:
    """Capacity, as a load curve shows it."""

    verdict: Verdict
    capacity: float  # median of the step means on the plateau, per second
    gain_per_doubling: float  # of the last doubling of the load: 0.1 is 10 % more throughput
    knee: float | None  # users, N*; none when the response time alone is not known
    beyond_knee: float | None  # last load over N*
    plateau_from: float  # the lowest load on the plateau
    drop: float  # from the plateau to the last step, 0.1 is 10 % less
    reason: str


def saturation(steps: Sequence[Step], *, alone_s: float | None, think_s: float) -> Saturation | Insufficient:
    """Return whether a curve of throughput over users has reached its capacity.

    Args:
        steps: At least two levels of load, ascending.
        alone_s: Response time of one user alone, seconds; none when no step has one user. A lower bound, such
            as the demand, gives a lower bound of the knee.
        think_s: Think time of a user, seconds.

    Returns:
        `saturated` when the last doubling of users gave less than 10 % and the last step lies at least 1.8
        times beyond the knee; `retrograde` when throughput fell by more than 5 %, tested against the whole
        plateau (against the best step alone one in eight flat curves would seem to fall); else `underdriven`.
    """
    if len(steps) < 2:
        return Insufficient(f"{len(steps)} level of load, needs 2")
    means = np.array([float(step.throughput.mean()) for step in steps])
    if np.any(means <= 0):
        return Insufficient("a level of load without completions")
    on_plateau = np.flatnonzero(means >= (1 - ON_PLATEAU) * means.max())
    capacity = float(np.median(means[on_plateau]))
    gain = _last_gain(steps, means)
    # One user who is always answered keeps a service that busy: fewer than one can be no knee.
    knee = None if alone_s is None else max(1.0, capacity * (alone_s + think_s))
    beyond = None if knee is None else steps[-1].load / knee
    drop = 1 - means[-1] / capacity
    if _fell(steps, on_plateau):
        verdict: Verdict = "retrograde"
        reason = f"throughput fell by {drop * 100:.0f} % beyond the plateau"
    elif gain >= GAIN_PER_DOUBLING:
        verdict, reason = "underdriven", f"the last doubling of the load still gave {round(gain * 100)} %"
    elif beyond is not None and beyond < BEYOND_KNEE:
        verdict = "underdriven"
        reason = f"the last load is {beyond:.1f} times the knee, a plateau needs {BEYOND_KNEE}"
    else:
        verdict, reason = "saturated", f"the last doubling of the load gave {round(gain * 100)} %"
    return Saturation(
        verdict, capacity, gain, knee, beyond, steps[int(on_plateau[0])].load, float(drop), reason
    )


def knee_interval(capacity: Interval, alone: Interval, think_s: float) -> Interval:
    """Return N* = capacity (alone + think) with the relative errors of both added in squares."""
    point = capacity.point * (alone.point + think_s)

    def side(rate_end: float | None, time_end: float | None) -> float | None:
        if rate_end is None or time_end is None:
            return None
        of_rate = (rate_end - capacity.point) / capacity.point
        of_time = (time_end - alone.point) / (alone.point + think_s)
        return math.hypot(of_rate, of_time)

    down, up = side(capacity.low, alone.low), side(capacity.high, alone.high)
    return Interval(
        point,
        None if down is None else point * (1 - down),
        None if up is None else point * (1 + up),
        min(capacity.independent, alone.independent),
        "Little's knee, errors of capacity and response time added in squares",
    )


def _last_gain(steps: Sequence[Step], means: Floats) -> float:
    """Gain of throughput per doubling of the load, from the last step back to about half of its load.

    Where that step brought less than the plateau before it, the gain is over that plateau: after a dip the
    last step only comes back to it.
    """
    half = steps[-1].load / 2
    below = [i for i, step in enumerate(steps[:-1]) if step.load <= half * 1.01]
    reference = below[-1] if below else len(steps) - 2
    doublings = math.log2(steps[-1].load / steps[reference].load)
    most = float(means[: reference + 1].max())
    before = most if means[reference] < (1 - ON_PLATEAU) * most else means[reference]
    return float((means[-1] / before) ** (1 / doublings) - 1)


@dataclass(frozen=True, slots=True)
class Fall:
    """Drop of throughput from the plateau to the end of a curve."""

    drop: Interval  # 0.1 is 10 % less
    p_value: float  # of a drop as large, if the true one were at the margin of 5 %

    @property
    def is_real(self) -> bool:
        """True if it exceeds the margin beyond doubt."""
        return self.p_value < RETROGRADE_LEVEL


def fall(plateau: Sequence[Floats], end: Floats, *, confidence: float = 0.95) -> Fall | Insufficient:
    """Return how far throughput fell behind the plateau, tested against all of the plateau.

    Against the best step alone one flat curve in eight would seem to fall: the best is best by luck, too.

    Args:
        plateau: Completions per second of the trials of each step on the plateau, arrays of shape (trials,).
        end: The same of the last step.
        confidence: Of the interval.

    Returns:
        The drop on a log scale with the variance within steps pooled, and the one-sided p-value beyond 5 %.
    """
    freedom = sum(part.size - 1 for part in plateau) + end.size - 1
    if not plateau or freedom < 2:
        return Insufficient("needs several trials of the plateau and of the last step")
    logs, last = np.log(np.concatenate(list(plateau))), np.log(end)
    squares = sum(float(((np.log(part) - np.log(part).mean()) ** 2).sum()) for part in plateau)
    squares += float(((last - last.mean()) ** 2).sum())
    error = math.sqrt(squares / freedom * (1 / logs.size + 1 / last.size))
    down = float(logs.mean() - last.mean())
    half = distributions.t_quantile(0.5 + confidence / 2, freedom) * error
    drop = Interval(
        -math.expm1(-down),
        -math.expm1(half - down),
        -math.expm1(-half - down),
        float(logs.size + last.size),
        "t on log throughput, pooled within steps",
        confidence,
    )
    excess = down + math.log(1 - RETROGRADE_MARGIN)
    if error == 0:
        return Fall(drop, 0.0 if excess > 0 else 1.0)
    return Fall(drop, distributions.t_tail(excess / error, freedom))


def _fell(steps: Sequence[Step], on_plateau: np.ndarray[tuple[int], np.dtype[np.int64]]) -> bool:
    last = len(steps) - 1
    before = [steps[int(i)].throughput for i in on_plateau if i != last]
    if last in on_plateau:
        return False
    drop = fall(before, steps[last].throughput)
    return isinstance(drop, Fall) and drop.is_real
