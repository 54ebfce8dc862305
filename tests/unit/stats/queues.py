"""Simulated queues with fixed seeds: the oracles of the statistics tests. Times in seconds."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from loadlens.stats.counts import IntervalCounts, counts_from_values

Floats = npt.NDArray[np.float64]


def single_server(arrival: Floats, work: Floats) -> Floats:
    """Waiting times of a FIFO server by Lindley's recursion, as a running minimum (Lindley 1952)."""
    steps = work[:-1] - np.diff(arrival)
    walk = np.concatenate([[0.0], np.cumsum(steps)])
    return walk - np.minimum.accumulate(walk)


def poisson(random: np.random.Generator, rate: float, count: int) -> Floats:
    """Arrival times of a Poisson stream."""
    return np.cumsum(random.exponential(1 / rate, count))


def mm1(seed: int, rate: float, service_rate: float, seconds: float) -> tuple[Floats, Floats]:
    """(completion time, response time) of a stationary M/M/1 queue over `seconds`, warmed up before."""
    random = np.random.default_rng(seed)
    before = 200 * service_rate / (service_rate - rate) ** 2
    arrival = poisson(random, rate, int(rate * (seconds + before) * 1.2) + 50) - before
    work = random.exponential(1 / service_rate, arrival.size)
    response = single_server(arrival, work) + work
    done = arrival + response
    inside = (done >= 0) & (done < seconds)
    order = np.argsort(done[inside])
    return done[inside][order], response[inside][order]


def by_second(done: Floats, response: Floats, seconds: int) -> IntervalCounts:
    """Counts by interval of one second."""
    return counts_from_values(seconds, np.floor(done).astype(np.int64), response)


def closed_loop(
    seed: int, users: int, think_s: float, work_s: float, servers: int, requests: int
) -> tuple[Floats, Floats]:
    """(due, done) of a closed loop over `servers` FIFO servers with one queue; exponential think and work."""
    random = np.random.default_rng(seed)
    free = np.zeros(servers)
    ready = random.exponential(think_s, users)
    due, done = np.empty(requests), np.empty(requests)
    for i in range(requests):
        user = int(np.argmin(ready))
        server = int(np.argmin(free))
        due[i] = ready[user]
        done[i] = max(due[i], free[server]) + random.exponential(work_s)
        free[server] = done[i]
        ready[user] = done[i] + random.exponential(think_s)
    return due, done
