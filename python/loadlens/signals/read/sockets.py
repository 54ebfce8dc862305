"""What the kernel saw of TCP in a trial: queues and drops at the services' ports, segments sent again, ports
that connections to others had taken.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from loadlens.model.facts import KernelWatch, PortsWatch
from loadlens.model.workload import Target

if TYPE_CHECKING:
    import polars as pl


def read(readings: pl.DataFrame, targets: Sequence[Target] = ()) -> KernelWatch | None:
    """Summarise the readings of a whole trial; none when sockets were not watched.

    Args:
        readings: Of all monitors.
        targets: Destinations of the streams.
    """
    if readings.is_empty():
        return None
    import polars as pl

    rows = readings.filter((pl.col("source") == "tcp") & pl.col("value").is_not_null())
    if rows.is_empty():
        return None
    return KernelWatch(
        accept_queue=_highest(rows, "accept_queue"),
        accept_queue_bound=_highest(rows, "accept_queue_bound"),
        listen_drops=_rise(rows, "listen_drops"),
        retransmitted=_rise(rows, "segments_retransmitted"),
        retransmitted_syn=_rise(rows, "syn_retransmitted"),
        begun=_rise(rows, "connects_begun"),
        begun_s=_span_s(rows, "connects_begun"),
        ports=_ports(rows, targets),
    )


def worst(watches: Sequence[KernelWatch | None]) -> KernelWatch | None:
    """Of several trials: the highest queue, all that was counted; none when none was watched."""
    known = [watch for watch in watches if watch is not None]
    if not known:
        return None
    return KernelWatch(
        accept_queue=_most([watch.accept_queue for watch in known]),
        accept_queue_bound=_most([watch.accept_queue_bound for watch in known]),
        listen_drops=_sum([watch.listen_drops for watch in known]),
        retransmitted=_sum([watch.retransmitted for watch in known]),
        retransmitted_syn=_sum([watch.retransmitted_syn for watch in known]),
        begun=_sum([watch.begun for watch in known]),
        begun_s=sum(watch.begun_s for watch in known),
        ports=_scarcest([watch.ports for watch in known if watch.ports is not None]),
    )


def _ports(rows: pl.DataFrame, targets: Sequence[Target]) -> PortsWatch | None:
    """Where they were scarcest at any look."""
    there = _highest(rows, "ports_there")
    rests = {row["labels"]: float(row["value"]) for row in _of(rows, "port_rests_s").to_dicts()}
    if not there:
        return None
    found = []
    for row in _of(rows, "ports_taken").to_dicts():
        to = str(json.loads(row["labels"]).get("to", ""))
        is_load = any(_goes_to(target, to) for target in targets)
        found.append(PortsWatch(to, is_load, float(row["value"]), there, rests.get(row["labels"], 0.0)))
    return _scarcest(found)


def _scarcest(found: Sequence[PortsWatch]) -> PortsWatch | None:
    return max(found, key=lambda one: one.share, default=None)


def _goes_to(target: Target, to: str) -> bool:
    """Whether a stream goes to an address; of a host with a name only the port is compared."""
    address, _, port = to.rpartition(":")
    if port != str(target.port):
        return False
    try:
        host = ipaddress.ip_address(target.host.strip("[]"))
    except ValueError:
        return True
    return host == ipaddress.ip_address(address.strip("[]"))


def _highest(rows: pl.DataFrame, metric: str) -> float | None:
    values = _of(rows, metric)["value"].to_list()
    return float(max(values)) if values else None


def _rise(rows: pl.DataFrame, metric: str) -> float | None:
    """How much a counter grew, over all its labels."""
    grown = [
        float(part["value"][-1]) - float(part["value"][0])
        for _, part in _of(rows, metric).group_by("labels", maintain_order=True)
    ]
    return max(0.0, sum(grown)) if grown else None


def _span_s(rows: pl.DataFrame, metric: str) -> float:
    """From the first reading of a counter to the last."""
    times = _of(rows, metric)["time_ns"].to_list()
    return (times[-1] - times[0]) / 1e9 if times else 0.0


def _of(rows: pl.DataFrame, metric: str) -> pl.DataFrame:
    return rows.filter(rows["metric"] == metric).sort("time_ns")


def _most(values: Sequence[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
