"""Local ports of the machine that connections had taken in a trial, where they were scarcest."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from loadlens.model.facts import PortsWatch
from loadlens.model.readings import TcpMetrics
from loadlens.model.workload import Target
from loadlens.signals.read.trial_series import Readings


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
