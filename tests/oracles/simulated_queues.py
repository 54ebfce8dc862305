"""Simulated queues with fixed seeds: the oracles of the statistics tests. Times in seconds."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from loadlens.estimate.interval_counts import IntervalCounts, counts_from_values

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


def several_servers(arrival: Floats, work: Floats, servers: int) -> Floats:
    """Waiting times of FIFO G/G/c by the recursion of Kiefer and Wolfowitz (1955)."""
    free = np.zeros(servers)
    wait = np.empty(arrival.size)
    for i, (come, busy) in enumerate(zip(arrival, work, strict=True)):
        first = int(free.argmin())
        wait[i] = max(0.0, free[first] - come)
        free[first] = come + wait[i] + busy
    return wait


def limited_connections(due: Floats, work: Floats, connections: int) -> tuple[Floats, Floats]:
    """(sent, done) of a client with so many connections before one FIFO server; due times stay."""
    connection_free = np.zeros(connections)
    sent, done = np.empty(due.size), np.empty(due.size)
    server_free = 0.0
    for i, (want, busy) in enumerate(zip(due, work, strict=True)):
        place = int(connection_free.argmin())
        sent[i] = max(want, connection_free[place])
        server_free = max(sent[i], server_free) + busy
        done[i] = connection_free[place] = server_free
    return sent, done


def fair_sharing(arrival: Floats, work: Floats) -> Floats:
    """Response times of one processor that all present share equally (egalitarian processor sharing)."""
    response = np.empty(arrival.size)
    left: dict[int, float] = {}
    now, following = 0.0, 0
    while following < arrival.size or left:
        comes = arrival[following] if following < arrival.size else np.inf
        least = min(left.values(), default=np.inf)
        ends = now + least * len(left) if left else np.inf
        step = min(comes, ends) - now
        for job in left:
            left[job] -= step / len(left)
        now = min(comes, ends)
        if comes <= ends:
            left[following] = work[following]
            following += 1
        else:
            job = min(left, key=lambda one: left[one])
            del left[job]
            response[job] = now - arrival[job]
    return response


def with_pauses(
    seed: int, rate: float, utilisation: float, seconds: float, every: float, length: float
) -> tuple[Floats, Floats]:
    """(due, done) of an M/M/1 queue that stands still for `length` every so many seconds; 0: never."""
    random = np.random.default_rng(seed)
    due = poisson(random, rate, int(rate * seconds * 1.2))
    due = due[due < seconds]
    stops = np.arange(every / 2, seconds, every) if every else np.zeros(0)
    arrival = np.concatenate([due, stops])
    work = np.concatenate([random.exponential(utilisation / rate, due.size), np.full(stops.size, length)])
    order = np.argsort(arrival, kind="stable")
    wait = np.empty(arrival.size)
    wait[order] = single_server(arrival[order], work[order])
    return due, due + (wait + work)[: due.size]
