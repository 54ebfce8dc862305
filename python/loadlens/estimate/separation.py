"""What a full service is full of: an event loop, its CPU, a pool of threads, a lock, or something behind it.

Latency alone cannot tell them apart. What can: whether a cheap probe waits as long as the expensive requests
(coupling), whether the busy processes use their CPU, on how many threads, and how many requests are worked on
at once when nothing more goes (effective parallelism).

Sources: R. W. Wolff 1982 (PASTA); E. D. Lazowska et al., Quantitative System Performance, 1984.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import stats as distributions

from loadlens.estimate.interval import Floats, Insufficient, Interval, same_shape

COUPLED = 0.25  # one queue, passed once, twice or three times: 1, 1/2, 1/3; fair sharing of cores: 0.09
UNCOUPLED = 0.2
BUSY = 0.85  # of what there is: a queue takes 6.7 times its idle time there
IDLE = 0.7
LEAST_WORK_S = 0.002  # below, time slices make one queue and fair sharing look the same
ONE_HOLDER = 1.5
WAITERS = 0.5
FEWEST_PROBES = 500
FEWEST_TRIALS = 3
AHEAD_SHARE = 0.25  # of the work: a probe that waits for what is ahead gains this from each
AHEAD_EXPLAINS = 0.5

Cause = Literal["event_loop", "cpu", "thread_pool", "lock", "connection_pool", "downstream"]


@dataclass(frozen=True, slots=True)
class Signs:
    """What was seen on the plateau; none: not observed."""

    coupling: float | None  # wait of the probe over wait of the expensive requests
    process_busy: float | None  # CPU of the least busy working process, in cores of its one thread
    cores_busy: float | None  # CPU of the service over the cores that it may use, 0-1
    hot_threads: int | None  # threads above 5 % of a core, most of any working process
    work_s: float | None  # CPU time of an expensive request
    parallelism: float | None  # effective, requests at once
    holders: float | None = None  # mean in use of a lock or pool behind the service
    waiters: float | None = None  # mean who wait for it


@dataclass(frozen=True, slots=True)
class Separation:
    """Causes that all signs agree with, strongest first; empty when none does."""

    causes: tuple[Cause, ...]
    missing: tuple[str, ...]  # signs that would decide more
    parallelism: float | None  # the size of a pool, when that is the cause


def separate(signs: Signs) -> Separation:
    """Return what the signs on a plateau leave as its cause.

    Args:
        signs: Of the highest load; the service must be saturated, and the generator in time.

    Returns:
        `event_loop` when the probe waits with the work and each process is busy on one thread, the work being
        2 ms or more; `cpu` when the cores are; `thread_pool` when the probe waits and the CPU does not work;
        `lock`, `connection_pool` or just `downstream` when neither waits nor works. Several may hold: event
        loops that fill all cores are both.
    """
    missing = [
        name
        for name, value in (
            ("coupling of a probe", signs.coupling),
            ("CPU of the processes", signs.process_busy),
            ("CPU of the service", signs.cores_busy),
        )
        if value is None
    ]
    causes: list[Cause] = []
    if signs.cores_busy is not None and signs.cores_busy >= BUSY:
        causes.append("cpu")
    if signs.coupling is not None and signs.process_busy is not None:
        if signs.coupling >= COUPLED and signs.process_busy >= BUSY:
            if signs.hot_threads is None or signs.work_s is None:
                missing.append("threads that work, and CPU time of a request")
            elif signs.hot_threads == 1 and signs.work_s >= LEAST_WORK_S:
                causes.insert(0, "event_loop")
        elif signs.cores_busy is not None and signs.cores_busy < IDLE and signs.process_busy < BUSY:
            causes += _waiting(signs, missing)
    size = signs.parallelism if set(causes) & {"thread_pool", "connection_pool", "downstream"} else None
    return Separation(tuple(causes), tuple(missing), size)


def _waiting(signs: Signs, missing: list[str]) -> list[Cause]:
    """The service waits and does not compute."""
    assert signs.coupling is not None
    if signs.coupling >= COUPLED:
        return ["thread_pool"]
    if signs.coupling >= UNCOUPLED:
        return []
    if signs.holders is None or signs.waiters is None:
        missing.append("who holds and who waits behind the service")
        return ["downstream"]
    if signs.waiters <= WAITERS:
        return ["downstream"]
    return ["lock"] if signs.holders <= ONE_HOLDER else ["connection_pool"]


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
