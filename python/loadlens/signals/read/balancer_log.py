"""Spread of requests over replicas in a trial, and the mean time of a request at each.

A balancer's log says it of each request. Without one the kernel does, at the ports of replicas that are not
asked directly: segments with data that came in, and how long the last answer on each connection took.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from loadlens.estimate.interval import Floats, Insufficient, Interval, Measured
from loadlens.model.readings import BalancerMetrics, Metric, TcpMetrics
from loadlens.signals.read.resources import Process
from loadlens.signals.read.trial_series import Readings, Series, mean_or_point, total

FEWEST_ANSWERS = 5  # seen: fewer say less than how many requests there are at a time
NOBODY = "none"  # in a balancer's log: answered without a replica


@dataclass(frozen=True, slots=True, eq=False)
class Replica:
    """One replica during the measurement window."""

    name: str
    requests: float
    time: Measured  # mean seconds per request at the replica, queueing there included
    waiting: Measured  # cores that its processes wanted and did not get


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """Replicas that do the same work."""

    name: str
    source: Literal["log", "sockets"]
    seconds: float  # over which requests were counted
    replicas: tuple[Replica, ...]  # by name

    @property
    def requests(self) -> float:
        """Requests to all replicas."""
        return sum(replica.requests for replica in self.replicas)


def read(
    readings: Readings, begin: float, end: float, processes: Sequence[Process], entry: str
) -> tuple[Spread, ...]:
    """Gather the replicas behind each balancer over the measurement window [begin, end], seconds since t0.

    Args:
        readings: Readings of all monitors.
        begin: Start of the window.
        end: End of the window.
        processes: Processes of the services.
        entry: The service that gets the load; its replicas have no balancer in front of them.
    """
    if end <= begin:
        return ()
    logs = _of_logs(readings, begin, end, processes)
    return logs or _of_sockets(readings, begin, end, processes, entry)


# --- from a balancer's log --------------------------------------------------------------------------------


def _of_logs(
    readings: Readings, begin: float, end: float, processes: Sequence[Process]
) -> tuple[Spread, ...]:
    by_balancer: dict[str, dict[str, dict[Metric, list[Series]]]] = {}
    for metric in (BalancerMetrics.requests, BalancerMetrics.backend_seconds):
        for series in readings.of(metric):
            service, backend = series.labels.service, series.labels.backend
            if backend != NOBODY:
                by_balancer.setdefault(service, {}).setdefault(backend, {}).setdefault(metric, []).append(
                    series
                )
    spreads = []
    for balancer, backends in sorted(by_balancer.items()):
        replicas, seconds = [], 0.0
        for name, metrics in sorted(backends.items()):
            moments = _moments(metrics.get(BalancerMetrics.requests, []), begin, end)
            if moments.size < 2:
                continue
            counts = _growth(metrics.get(BalancerMetrics.requests, []), moments)
            times = _growth(metrics.get(BalancerMetrics.backend_seconds, []), moments)
            seconds = max(seconds, float(moments[-1] - moments[0]))
            # A service with one replica goes by its own name.
            waiting = _waiting([p for p in processes if name in (p.service, f"{p.service}.{p.replica}")])
            replicas.append(Replica(name, float(counts.sum()), _mean(times, counts), waiting))
        if len(replicas) > 1:
            spreads.append(Spread(balancer, "log", seconds, tuple(replicas)))
    return tuple(spreads)


def _moments(parts: Sequence[Series], begin: float, end: float) -> Floats:
    """Return the moments of the measured part at which any of the series was read."""
    if not parts:
        return np.zeros(0)
    seconds = np.unique(np.concatenate([part.seconds for part in parts]))
    return seconds[(seconds >= begin) & (seconds <= end)]


def _growth(parts: Sequence[Series], moments: Floats) -> Floats:
    """Growth of several counters together between moments; one that begins later began at zero."""
    together = total(parts, moments)
    return np.zeros(moments.size - 1) if together is None else np.diff(together.values)


# --- from the kernel's sockets ----------------------------------------------------------------------------


def _of_sockets(
    readings: Readings, begin: float, end: float, processes: Sequence[Process], entry: str
) -> tuple[Spread, ...]:
    ports: dict[tuple[str, str], dict[str, dict[Metric, Series]]] = {}
    for metric in (TcpMetrics.requests_in, TcpMetrics.answers_seen, TcpMetrics.answer_s, TcpMetrics.busy):
        for series in readings.of(metric):
            service, port = series.labels.service, series.labels.port
            # A port that goes by its number belongs to a process that is not the service's own.
            if service != entry and (entry or port.isdecimal()):
                replica = ports.setdefault((service, series.labels.replica), {})
                replica.setdefault(port, {})[metric] = series
    by_service: dict[str, list[Replica]] = {}
    lengths: dict[str, float] = {}
    for (service, name), own in sorted(ports.items()):
        metrics = max(own.values(), key=lambda m: _risen(m.get(TcpMetrics.requests_in), begin, end))
        counter = metrics.get(TcpMetrics.requests_in)
        moments = _moments([counter] if counter is not None else [], begin, end)
        if counter is None or moments.size < 2:
            continue
        lengths[service] = float(moments[-1] - moments[0])
        of_replica = [p for p in processes if (p.service, p.replica) == (service, name)]
        requests = float(_growth([counter], moments).sum())
        time = _time(metrics, moments, requests)
        by_service.setdefault(service, []).append(Replica(name, requests, time, _waiting(of_replica)))
    return tuple(
        Spread(service, "sockets", lengths[service], tuple(replicas))
        for service, replicas in by_service.items()
        if len(replicas) > 1
    )


def _risen(series: Series | None, begin: float, end: float) -> float:
    part = None if series is None else series.between(begin, end).values
    return float(part[-1] - part[0]) if part is not None and part.size else 0.0


def _time(metrics: Mapping[Metric, Series], moments: Floats, requests: float) -> Measured:
    """Mean of the answers that were seen; where hardly one is, requests at a time over their rate."""
    answers, seconds = (
        _growth([metrics[metric]] if metric in metrics else [], moments)
        for metric in (TcpMetrics.answers_seen, TcpMetrics.answer_s)
    )
    if answers.sum() >= FEWEST_ANSWERS:
        return _mean(seconds, answers)
    flying = metrics.get(TcpMetrics.busy)
    busy = np.zeros(0) if flying is None else flying.between(moments[0], moments[-1]).values
    if not busy.size or requests <= 0:
        return Insufficient(f"{answers.sum():.0f} answers were seen there, needs {FEWEST_ANSWERS}")
    point = float(busy.mean()) * float(moments[-1] - moments[0]) / requests
    return Interval(point, None, None, float(busy.size), "requests at a time over their rate (Little)")


# --- shared -----------------------------------------------------------------------------------------------


def _mean(sums: Floats, counts: Floats) -> Measured:
    inside = counts > 0
    if not inside.any():
        return Insufficient("it got no request in the measured part")
    return mean_or_point(sums[inside], counts[inside], float(counts.sum()))


def _waiting(processes: Sequence[Process]) -> Measured:
    cores = [p.waiting.point for p in processes if isinstance(p.waiting, Interval)]
    if not processes or len(cores) < len(processes):
        return Insufficient("its processes were not watched")
    return Interval(sum(cores), None, None, 1.0, "sum over processes")
