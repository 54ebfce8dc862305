"""Sockets of the machine in a trial: the local ports that were scarcest, and calls to other programs."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

from loadlens.estimate.interval import Interval
from loadlens.model.facts import PortsWatch
from loadlens.model.readings import TcpMetrics
from loadlens.model.workload import Target
from loadlens.signals.read.trial_series import Readings, level


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls that the kernel saw at a port of a program of this machine."""

    to: str  # name and port
    under_way: Interval  # at a time
    highest: float  # of its readings
    before: float  # its first reading, before the load
    rate: float  # segments with data that came in, per second
    connections: float | None  # the most in use between two looks; none: not read
    held_back: Interval | None  # connections with a small piece that waits to be sent; none: not read


def read_calls(readings: Readings, begin: float, end: float) -> tuple[Calls, ...]:
    """Return the calls in the measured part [begin, end] of a trial; none to ports that were not watched."""
    seen = []
    for series in readings.of(TcpMetrics.calls):
        under_way = readings.one(TcpMetrics.calls_under_way, to=series.labels.to)
        counted = series.between(begin, end)
        if under_way is None or counted.values.size < 2:
            continue
        held = under_way.between(begin, end).values
        rate = float(counted.values[-1] - counted.values[0]) / float(counted.seconds[-1] - counted.seconds[0])
        if held.size:
            before = float(under_way.values[0])
            stand = readings.one(TcpMetrics.call_connections, to=series.labels.to)
            most = None if stand is None else float(stand.between(begin, end).values.max(initial=0.0))
            kept = readings.one(TcpMetrics.calls_held_back, to=series.labels.to)
            back = None if kept is None else kept.between(begin, end).values
            held_back = level(back) if back is not None and back.size else None
            seen.append(
                Calls(series.labels.to, level(held), float(held.max()), before, rate, most, held_back)
            )
    return tuple(seen)


def read(readings: Readings, targets: Sequence[Target] = ()) -> PortsWatch | None:
    """Return the ports of the scarcest address over a whole trial; none if they were not counted.

    Args:
        readings: Of all monitors.
        targets: Destinations of the streams.
    """
    there = max((float(series.values.max()) for series in readings.of(TcpMetrics.ports_there)), default=0.0)
    if not there:
        return None
    rests = {series.labels.to: series for series in readings.of(TcpMetrics.port_rests_s)}
    watches = []
    for taken in readings.of(TcpMetrics.ports_taken):
        to, rest = taken.labels.to, rests.get(taken.labels.to)
        is_load = any(_goes_to(target, to) for target in targets)
        rests_s = 0.0 if rest is None else float(rest.values[-1])
        watches.append(PortsWatch(to, is_load, float(taken.values.max()), there, rests_s))
    return scarcest(watches)


def scarcest(watches: Sequence[PortsWatch]) -> PortsWatch | None:
    """Return the one with the largest share of its ports taken."""
    return max(watches, key=lambda watch: watch.share, default=None)


def _goes_to(target: Target, to: str) -> bool:
    """True if a stream goes to an address; of a host with a name only the port is compared."""
    address, _, port = to.rpartition(":")
    if port != str(target.port):
        return False
    try:
        host = ipaddress.ip_address(target.host.strip("[]"))
    except ValueError:
        return True
    return host == ipaddress.ip_address(address.strip("[]"))
