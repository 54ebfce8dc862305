"""The parts of a testbed in words: what stands before what, and what a fault proxy does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from loadlens.model.topology import DelayLaw, ProxyFaults, Service
from loadlens.present import numbers
from loadlens.units import duration_text


def parts(services: Iterable[Service]) -> str:
    """One testbed: `api; front: fault-proxy before api (admit 12 in flight, queue 24)`."""
    return "; ".join(_part(service) for service in services)


def is_plain(service: Service) -> bool:
    """True for a single process without variants and without limits."""
    return service.use == "process" and service.replicas == 1 and not any(_own(service))


def _own(service: Service) -> Iterator[str]:
    """Name the variant that runs, and the limits of each replica."""
    if service.variant is not None:
        yield f"variant {service.variant}"
    limits, each = service.limits, " each" if service.replicas > 1 else ""
    if limits.cpu is not None:
        yield f"{limits.cpu:g} cores{each} in periods of {duration_text(limits.period_s)}"
    if limits.memory_bytes is not None:
        yield f"{numbers.with_unit(limits.memory_bytes, 'bytes')}{each}"
    if limits.cpus is not None:
        yield f"CPUs {', '.join(map(str, limits.cpus))}"


def _part(service: Service) -> str:
    words = service.name
    if service.replicas > 1:
        words += f" x {service.replicas}"
    if service.use != "process":
        words += f": {service.use}"
    if service.over:
        words += f" before {', '.join(service.over)}"
    if service.policy is not None:
        words += f" ({service.policy})"
    if own := ", ".join(_own(service)):
        words += f" ({own})"
    if service.faults is not None:
        words += f" ({' + '.join(_faults(service.faults)) or 'no faults'})"
    return words


def _faults(faults: ProxyFaults) -> Iterator[str]:
    if faults.delay is not None:
        for name, law in (("request", faults.delay.request), ("response", faults.delay.response)):
            if law is not None:
                yield f"delay {name} {_law(law)}"
    if faults.reset is not None:
        yield f"reset {faults.reset.share:.3g} at {faults.reset.at}"
    if faults.drop is not None:
        yield f"drop {faults.drop.share:.3g}"
    if faults.errors is not None:
        yield f"answer {faults.errors.share:.3g} with {faults.errors.status}"
    if faults.bandwidth is not None:
        whose = "shared" if faults.bandwidth.shared else "each"
        yield f"{faults.bandwidth.rate} B/s {whose}"
    if faults.connections is not None:
        yield f"at most {faults.connections.most} connections"
    if faults.admit is not None:
        wait_ns = faults.admit.wait_ns
        wait = "" if wait_ns is None else f" for {_time(wait_ns)}"
        yield f"admit {faults.admit.in_flight} in flight and queue {faults.admit.queue}{wait}"


def _law(law: DelayLaw) -> str:
    if law.kind == "fixed":
        return _time(law.ns)
    if law.kind == "exponential":
        return f"exponential {_time(law.mean_ns)}"
    if law.kind == "uniform":
        return f"{_time(law.low_ns)} to {_time(law.high_ns)}"
    if law.kind == "normal":
        return f"normal {_time(law.mean_ns)} ± {_time(law.sd_ns)}"
    return f"lognormal {_time(law.median_ns)}, sigma {law.sigma:g}"


def _time(ns: int | None) -> str:
    return duration_text((ns or 0) / 1e9)
