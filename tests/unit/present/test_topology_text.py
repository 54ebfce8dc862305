"""A testbed in words."""

from __future__ import annotations

from loadlens.model.topology import (
    Admission,
    DelayFault,
    DelayLaw,
    ErrorFault,
    Limits,
    ProxyFaults,
    ResetFault,
    Service,
)
from loadlens.present import topology_text


def test_parts_say_what_stands_before_what_and_what_a_proxy_does() -> None:
    faults = ProxyFaults(
        delay=DelayFault(response=DelayLaw("normal", mean_ns=20_000_000, sd_ns=5_000_000)),
        reset=ResetFault(0.01, "body"),
        errors=ErrorFault(0.05, 503),
        admit=Admission(12, queue=24, wait_ns=100_000_000),
    )
    services = (
        Service("api", start="x", replicas=3),
        Service("lb", use="nginx", over=("api",), policy="ip-hash"),
        Service("front", use="fault-proxy", over=("lb",), faults=faults),
    )

    assert topology_text.parts(services) == (
        "api x 3; lb: nginx before api (ip-hash); front: fault-proxy before lb "
        "(delay response normal 20 ms ± 5 ms + reset 0.01 at body + answer 0.05 with 503 "
        "+ admit 12 in flight and queue 24 for 100 ms)"
    )


def test_a_proxy_without_faults_says_so() -> None:
    services = (Service("front", use="fault-proxy", over=("api",), faults=ProxyFaults()),)

    assert topology_text.parts(services) == "front: fault-proxy before api (no faults)"


def test_variant_and_limits_of_a_service_are_named() -> None:
    limits = Limits(cpu=0.3, memory_bytes=1 << 28, cpus=(0, 2))
    small = Service("api", start="serve", variant="small", replicas=3, limits=limits)

    assert not topology_text.is_plain(small)
    assert topology_text.is_plain(Service("api", start="serve"))
    assert topology_text.parts([small]) == (
        "api x 3 (variant small, 0.3 cores each in periods of 10 ms, 256 MiB each, CPUs 0, 2)"
    )
