"""Waits of cheap requests, which show what the expensive ones wait for.

A probe that arrives at random sees the service as it is on average (PASTA), so the share of probes that are
held up is the utilisation of whatever they wait behind; how long they wait, compared with the expensive
requests, distinguishes one shared queue from fair sharing.

Sources: R. W. Wolff, Operations Research 30 (2), 1982 (PASTA); F. Pollaczek 1930 and A. Khinchine 1932.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from loadlens.estimate.interval import Floats, Insufficient, Interval
from loadlens.estimate.interval_counts import IntervalCounts
from loadlens.estimate.saturation import knee_interval

DELAY_FLOOR_S = 0.001
DELAY_SHARE_OF_WORK = 0.05  # a wait below a twentieth of the blocking work is jitter
LEAST_SLOWDOWN = 0.5  # of the response time alone: below, the coupling divides by noise


@dataclass(frozen=True, slots=True)
class Waiting:
    """Waits of probes and expensive requests in one step."""

    probe_s: float  # mean wait of a probe
    expensive_s: float  # mean wait of an expensive request, its own work left out
    coupling: Interval  # probe over expensive: 1 one queue, about 0 nothing shared
    passes: Interval  # expensive over probe: how often an expensive request queues


def waiting(
    probe: Interval, probe_idle_s: float, expensive: Interval, work_s: float
) -> Waiting | Insufficient:
    """Return how the waits of probes and expensive requests compare.

    Args:
        probe: Mean response time of the probe under load, seconds.
        probe_idle_s: Its response time on an idle service, seconds.
        expensive: Mean response time of the expensive requests under load, seconds.
        work_s: Response time of an expensive request alone, seconds.

    Returns:
        Both waits and their ratios; errors of both means added in squares. Insufficient when expensive
        requests wait less than half of their own work: then the ratio divides by noise.
    """
    waited = expensive.point - work_s
    if waited < LEAST_SLOWDOWN * work_s:
        return Insufficient(
            f"expensive requests wait {waited / work_s:.2f} of their own time, needs {LEAST_SLOWDOWN}"
        )
    held = probe.point - probe_idle_s
    if held <= 0:
        high = probe.high if probe.high is not None else probe.point
        none = Interval(0.0, 0.0, max(0.0, high - probe_idle_s) / waited, probe.independent, _METHOD)
        return Waiting(held, waited, none, Interval(float("inf"), None, None, probe.independent, _METHOD))
    error = float(np.hypot(probe.half_width / held, expensive.half_width / waited))
    ratio = held / waited
    independent = min(probe.independent, expensive.independent)
    return Waiting(
        held,
        waited,
        Interval(ratio, ratio / (1 + error), ratio * (1 + error), independent, _METHOD),
        Interval(1 / ratio, 1 / ratio / (1 + error), (1 + error) / ratio, independent, _METHOD),
    )


_METHOD = "ratio of mean waits, errors added in squares"


def idle_time(counts: IntervalCounts) -> float | Insufficient:
    """Return the response time of a probe on an idle service, from a step where most probes waited.

    Args:
        counts: Response times of the probe, seconds; at least 10 observed.

    Returns:
        The 5 % quantile. Under a load that holds up more than 19 probes in 20 it overstates the idle time;
        use the lightest step.
    """
    if counts.observed < 10:
        return Insufficient(f"{counts.observed} probes, needs 10")
    lower, upper, at_most = counts.distribution()
    place = int(np.searchsorted(at_most, 0.05 - 1e-12))
    return float(lower[place] + upper[place]) / 2


def held_up(counts: IntervalCounts, idle_s: float, work_s: float) -> tuple[Floats, Floats]:
    """Return how many probes were held up: by PASTA, their share is the utilisation of what they wait behind.

    Args:
        counts: Response times of the probe, seconds.
        idle_s: Its response time on an idle service, seconds.
        work_s: Length of the work that may be in the way, seconds.

    Returns:
        Those above idle + max(1 ms, work / 20), and of how many that is known, each of shape (intervals,).
    """
    threshold = idle_s + max(DELAY_FLOOR_S, DELAY_SHARE_OF_WORK * work_s)
    return counts.above_per_interval(threshold), counts.known_per_interval(threshold)


def parallelism(capacity: Interval, alone: Interval) -> Interval:
    """Return W = X R1 with its interval: the size of a pool that is full, the number of loops or locks.

    Args:
        capacity: Highest throughput, per second.
        alone: Response time of a request that met no other, seconds.

    Returns:
        The product, relative errors of both added in squares.

    Source: Little 1961.
    """
    width = knee_interval(capacity, alone, 0.0)
    return replace(
        width,
        low=None if width.low is None else max(0.0, width.low),
        method="Little's law, errors of capacity and response time added in squares",
    )
