"""Plans the faults that the proxy of one case injects."""

from __future__ import annotations

from loadlens.model.topology import (
    Admission,
    BandwidthFault,
    ConnectionsFault,
    DelayFault,
    DropFault,
    ErrorFault,
    ProxyFaults,
    ResetFault,
)
from loadlens.study.definition import FaultsPart, ServicePart
from loadlens.study.plan.fill import Filler

_NS_PER_S = 1_000_000_000


def proxy_faults(part: ServicePart, fill: Filler) -> ProxyFaults:
    """Return the faults that are enabled in this case."""
    faults = part.faults
    if faults is None:
        return ProxyFaults()
    return ProxyFaults(
        delay=_delay(faults, fill),
        reset=_reset(faults, fill),
        drop=_drop(faults, fill),
        errors=_errors(faults, fill),
        bandwidth=_bandwidth(faults, fill),
        connections=_connections(faults, fill),
        admit=_admit(faults, fill),
    )


def _delay(faults: FaultsPart, fill: Filler) -> DelayFault | None:
    part = faults.delay
    if part is None:
        return None
    request, response = fill.optional(part.request), fill.optional(part.response)
    if request is None and response is None:
        return None
    return DelayFault(request, response, fill.value(part.seed, 1))


def _reset(faults: FaultsPart, fill: Filler) -> ResetFault | None:
    part = faults.reset
    share = 0.0 if part is None else fill.value(part.share, 0.0)
    if part is None or share == 0:
        return None
    return ResetFault(share, fill.value(part.at, "request"), fill.value(part.seed, 1))


def _drop(faults: FaultsPart, fill: Filler) -> DropFault | None:
    part = faults.drop
    share = 0.0 if part is None else fill.value(part.share, 0.0)
    return None if part is None or share == 0 else DropFault(share, fill.value(part.seed, 1))


def _errors(faults: FaultsPart, fill: Filler) -> ErrorFault | None:
    part = faults.errors
    share = 0.0 if part is None else fill.value(part.share, 0.0)
    if part is None or share == 0:
        return None
    return ErrorFault(share, fill.value(part.status, 500), fill.value(part.seed, 1))


def _bandwidth(faults: FaultsPart, fill: Filler) -> BandwidthFault | None:
    part = faults.bandwidth
    rate = None if part is None else fill.value(part.rate, None)
    if part is None or rate is None:
        return None
    return BandwidthFault(rate, fill.value(part.shared, False), fill.value(part.of, "response"))


def _connections(faults: FaultsPart, fill: Filler) -> ConnectionsFault | None:
    part = faults.connections
    most = None if part is None else fill.value(part.most, None)
    if part is None or most is None:
        return None
    return ConnectionsFault(most, fill.value(part.above, "refuse"))


def _admit(faults: FaultsPart, fill: Filler) -> Admission | None:
    part = faults.admit
    in_flight = None if part is None else fill.value(part.in_flight, None)
    if part is None or in_flight is None:
        return None
    queue = fill.value(part.queue, 0)
    if part.wait is not None and part.queue is None:
        fill.fault("a wait without a queue", part.wait.place, "queue: how many may wait")
    retry_after_ns = fill.value(part.retry_after, _NS_PER_S)
    return Admission(
        in_flight=in_flight,
        queue=queue,
        wait_ns=fill.optional(part.wait),
        status=fill.value(part.status, 503),
        retry_after_s=-(-retry_after_ns // _NS_PER_S),
    )
