"""Services of known behaviour, simulated: what their requests, probes and processes did. Times in seconds.

The causes that a report must distinguish: a loop that computes, threads that share cores, a lock.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

PROBE_WORK_S = 0.001


class Request(NamedTuple):
    """One request as the client and the server saw it."""

    stream: int  # 0: load, 1: probe
    step: int
    due: float
    done: float
    status: int
    inside: float  # response time that the server wrote down


@dataclass
class Trace:
    """Requests and CPU use of one trial."""

    requests: list[Request] = field(default_factory=list)
    busy: list[list[tuple[float, float]]] = field(
        default_factory=list
    )  # of each process: start, end, one core
    threads: int = 1  # threads of a process that carry its work
    log: str = ""


@dataclass(frozen=True)
class Load:
    """The offered load: a closed loop and a probe."""

    users: int
    think_s: float = 0.15
    seconds: float = 15.0  # warm-up included
    probe_rate: float = 20.0
    seed: int = 1


def _arrivals(load: Load) -> tuple[list[tuple[float, int, int]], np.random.Generator]:
    """A heap of (due, stream, user): every user once, and all probes."""
    random = np.random.default_rng(load.seed)
    events = [(0.05 * user, 0, user) for user in range(load.users)]
    moment = 0.0
    while load.probe_rate > 0 and (moment := moment + random.exponential(1 / load.probe_rate)) < load.seconds:
        events.append((moment, 1, 0))
    heapq.heapify(events)
    return events, random


def blocking_loop(load: Load, *, processes: int = 1, work_s: float = 0.2) -> Trace:
    """Each process computes for one request at a time; a new connection lands on a process at random."""
    events, random = _arrivals(load)
    free = [0.0] * processes
    trace = Trace(busy=[[] for _ in range(processes)])
    while events:
        due, stream, user = heapq.heappop(events)
        process = int(random.integers(processes))
        start = max(due, free[process])
        length = PROBE_WORK_S if stream else work_s * float(random.uniform(0.97, 1.03))
        free[process] = start + length
        trace.busy[process].append((start, start + length))
        done = start + length + 0.0005
        trace.requests.append(Request(stream, 0, due, done, 200 if stream else 201, length))
        if stream == 0 and done + load.think_s < load.seconds:
            heapq.heappush(events, (done + load.think_s, 0, user))
    return trace


def limited(load: Load, *, rate: float = 40.0, burst: float = 15.0, latency_s: float = 0.01) -> Trace:
    """A bucket of tokens before a service that waits: who finds none is refused at once."""
    events, _ = _arrivals(load)
    trace, tokens, last = Trace(busy=[[]]), burst, 0.0
    while events:
        due, stream, user = heapq.heappop(events)
        status, took = 200, PROBE_WORK_S
        if stream == 0:
            tokens, last = min(burst, tokens + rate * (due - last)), due
            status, took = (200, latency_s) if tokens >= 1 else (429, 0.0005)
            tokens -= status == 200
        trace.requests.append(Request(stream, 0, due, due + took, status, took))
        if stream == 0 and due + took + load.think_s < load.seconds:
            heapq.heappush(events, (due + took + load.think_s, 0, user))
    return trace


def fair_threads(load: Load, *, cores: int = 1, work_s: float = 0.2) -> Trace:
    """One process whose threads share the cores: each job progresses at the same rate."""
    events, _ = _arrivals(load)
    trace = Trace(busy=[[]], threads=8)
    jobs: list[list[float]] = []  # remaining work, due, stream, user
    now = 0.0
    while events or jobs:
        rate = min(1.0, cores / len(jobs)) if jobs else 1.0
        next_due = events[0][0] if events else float("inf")
        next_end = now + min(job[0] for job in jobs) / rate if jobs else float("inf")
        moment = min(next_due, next_end)
        for job in jobs:
            job[0] -= (moment - now) * rate
        if jobs and moment > now:
            trace.busy[0].append((now, now + (moment - now) * min(len(jobs), cores)))
        now = moment
        for job in [j for j in jobs if j[0] <= 1e-12]:
            jobs.remove(job)
            _, due, stream, user = job
            trace.requests.append(
                Request(int(stream), 0, due, now + 0.0005, 200 if stream else 201, now - due)
            )
            if stream == 0 and now + load.think_s < load.seconds:
                heapq.heappush(events, (now + load.think_s, 0, int(user)))
        while events and events[0][0] <= now:
            due, stream, user = heapq.heappop(events)
            jobs.append([PROBE_WORK_S if stream else work_s, due, float(stream), float(user)])
    return trace


def behind_lock(load: Load, *, hold_s: float = 0.2, timeout_s: float | None = None) -> Trace:
    """Requests wait for one lock without using CPU; after `timeout_s` of waiting they end with 500."""
    events, _ = _arrivals(load)
    trace = Trace(busy=[[]])
    free = 0.0
    while events:
        due, stream, user = heapq.heappop(events)
        if stream:
            trace.requests.append(Request(1, 0, due, due + PROBE_WORK_S, 200, PROBE_WORK_S))
            trace.busy[0].append((due, due + PROBE_WORK_S))
            continue
        waited = max(0.0, free - due)
        if timeout_s is not None and waited > timeout_s:
            done, status = due + timeout_s, 500
            trace.log += "sqlite3.OperationalError: database is locked\n"
        else:
            done, status = max(due, free) + hold_s, 201
            free = done
        trace.requests.append(Request(0, 0, due, done, status, done - due))
        if done + load.think_s < load.seconds:
            heapq.heappush(events, (done + load.think_s, 0, user))
    return trace


def starving(load: Load, *, served: int = 2, work_s: float = 0.6) -> Trace:
    """A few users are answered one time after another, none of the others before the end."""
    trace = Trace(busy=[[]])
    for user in range(load.users):
        due = 0.05 * user
        while due < load.seconds:
            took = work_s if user < served else 2 * load.seconds
            trace.requests.append(Request(0, 0, due, due + took, 201, took))
            due += took + load.think_s
    return trace
