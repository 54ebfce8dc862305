"""How requests were spread over replicas in a trial, and how long each replica took for one.

A balancer's log says it of each request. Without one the kernel does, at the ports of replicas that are not
asked directly: segments with data that came in, and how long the last answer on each connection took.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from loadlens.estimate import within_trial
from loadlens.estimate.interval import Floats, Insufficient, Interval
from loadlens.signals.read.resources import Process, Series, series_by_labels

if TYPE_CHECKING:
    import polars as pl

FEWEST_ANSWERS = 5  # seen: fewer say less than how many requests there are at a time
NOBODY = "none"  # in a balancer's log: answered without a replica
Found = Interval | Insufficient


@dataclass(frozen=True, slots=True, eq=False)
class Replica:
    """One replica in the measured part."""

    name: str
    requests: float
    time: Found  # mean seconds of a request there, its waiting there included
    waiting: Found  # cores that its processes wanted and did not get


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """Replicas that do the same work."""

    name: str
    told: Literal["log", "sockets"]
    seconds: float  # over which requests were counted
    replicas: tuple[Replica, ...]  # by name

    @property
    def requests(self) -> float:
        """All that were counted."""
        return sum(replica.requests for replica in self.replicas)


def read(
    readings: pl.DataFrame, begin: float, end: float, processes: Sequence[Process], entry: str
) -> tuple[Spread, ...]:
    """Gather the replicas behind each balancer over the measured part [begin, end], seconds since t0.

    Args:
        readings: Of all monitors.
        begin: Of the measured part.
        end: Of it.
        processes: Of the services.
        entry: The service that the load asks; its replicas have no balancer before them.
    """
    if end <= begin:
        return ()
    table = series_by_labels(readings, ("balancer", "tcp"))
    logs = _of_logs(table, begin, end, processes)
    return logs or _of_sockets(table, begin, end, processes, entry)


# --- from a balancer's log --------------------------------------------------------------------------------

Table = Mapping[tuple[str, str, str], Series]


def _of_logs(table: Table, begin: float, end: float, processes: Sequence[Process]) -> tuple[Spread, ...]:
    found: dict[str, dict[str, dict[str, list[Series]]]] = {}
    for (source, metric, text), series in table.items():
        labels = json.loads(text) if text else {}
        if source == "balancer" and "backend" in labels and labels["backend"] != NOBODY:
            own = found.setdefault(str(labels["service"]), {}).setdefault(str(labels["backend"]), {})
            own.setdefault(metric, []).append(series)
    spreads = []
    for balancer, backends in sorted(found.items()):
        replicas, seconds = [], 0.0
        for name, metrics in sorted(backends.items()):
            moments = _moments(metrics.get("requests", []), begin, end)
            if moments.size < 2:
                continue
            counts, times = (_growth(metrics.get(m, []), moments) for m in ("requests", "backend_seconds"))
            seconds = max(seconds, float(moments[-1] - moments[0]))
            # A service with one replica goes by its own name.
            waiting = _waiting([p for p in processes if name in (p.service, f"{p.service}.{p.replica}")])
            replicas.append(Replica(name, float(counts.sum()), _mean(times, counts), waiting))
        if len(replicas) > 1:
            spreads.append(Spread(balancer, "log", seconds, tuple(replicas)))
    return tuple(spreads)


def _moments(parts: Sequence[Series], begin: float, end: float) -> Floats:
    """When any of the series was read in the measured part."""
    if not parts:
        return np.zeros(0)
    seconds = np.unique(np.concatenate([part.seconds for part in parts]))
    return seconds[(seconds >= begin) & (seconds <= end)]


def _growth(parts: Sequence[Series], moments: Floats) -> Floats:
    """Growth of several counters together between moments; one that begins later began at zero."""
    total = np.zeros(moments.size)
    for part in parts:
        place = np.searchsorted(part.seconds, moments, side="right") - 1
        total += np.where(place >= 0, part.values[np.maximum(place, 0)], 0.0)
    return np.diff(total)


# --- from the kernel's sockets ----------------------------------------------------------------------------


def _of_sockets(
    table: Table, begin: float, end: float, processes: Sequence[Process], entry: str
) -> tuple[Spread, ...]:
    ports: dict[tuple[str, str], dict[str, dict[str, Series]]] = {}
    for (source, metric, text), series in table.items():
        labels = json.loads(text) if source == "tcp" and text else {}
        if "state" in labels or not labels.get("service"):
            continue
        service, port = str(labels["service"]), str(labels.get("port", ""))
        # A port that goes by its number was found at a process beside the service's own.
        if service != entry and (entry or port.isdecimal()):
            ports.setdefault((service, str(labels.get("replica", ""))), {}).setdefault(port, {})[metric] = (
                series
            )
    by_service: dict[str, list[Replica]] = {}
    lengths: dict[str, float] = {}
    for (service, name), own in sorted(ports.items()):
        metrics = max(own.values(), key=lambda m: _risen(m.get("requests_in"), begin, end))
        counter = metrics.get("requests_in")
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


def _time(metrics: Mapping[str, Series], moments: Floats, requests: float) -> Found:
    """Mean of the answers that were seen; where hardly one is, requests at a time over their rate."""
    answers, seconds = (
        _growth([metrics[name]] if name in metrics else [], moments) for name in ("answers_seen", "answer_s")
    )
    if answers.sum() >= FEWEST_ANSWERS:
        return _mean(seconds, answers)
    busy = metrics["busy"].between(moments[0], moments[-1]).values if "busy" in metrics else np.zeros(0)
    if not busy.size or requests <= 0:
        return Insufficient(f"{answers.sum():.0f} answers were seen there, needs {FEWEST_ANSWERS}")
    point = float(busy.mean()) * float(moments[-1] - moments[0]) / requests
    return Interval(point, None, None, float(busy.size), "requests at a time over their rate (Little)")


# --- shared -----------------------------------------------------------------------------------------------


def _mean(sums: Floats, counts: Floats) -> Found:
    inside = counts > 0
    if not inside.any():
        return Insufficient("it got no request in the measured part")
    found = within_trial.mean(sums[inside], counts[inside])
    if isinstance(found, Interval):
        return found
    point = float(sums[inside].sum() / counts[inside].sum())
    return Interval(point, None, None, float(counts.sum()), "difference of readings")


def _waiting(processes: Sequence[Process]) -> Found:
    known = [p.waiting.point for p in processes if isinstance(p.waiting, Interval)]
    if not processes or len(known) < len(processes):
        return Insufficient("its processes were not watched")
    return Interval(sum(known), None, None, 1.0, "sum over processes")
