"""Building blocks for the settings of specimens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from catalogue.drawing import Draws
from catalogue.family import LIMITS_OF_THE_MACHINE, Drawn, Label, Number, Setup, Specimen

Op = dict[str, Any]
Ops = list[Op]

NEGLIGIBLE_ROUND_TRIP_MS = 10.0  # from this service time on, a round trip of 0.1 ms is below 1 %
WORK, PING = "/work", "/ping"  # the expensive path, and one that uses no resource


def burn(ms: float, **more: Any) -> Op:
    """Compute for this much CPU time."""
    return {"do": "burn", "ms": ms, **more}


def wait(ms: float, **more: Any) -> Op:
    """Wait without using a resource."""
    return {"do": "wait", "ms": ms, **more}


def holding(resource: str, *inner: Op, **more: Any) -> Ops:
    """Hold a place of a resource during the inner operations."""
    return [
        {"do": "take", "resource": resource, **more},
        *inner,
        {"do": "give", "resource": resource},
    ]


def threads(most: int = 2_000) -> dict[str, Any]:
    """Serve with threads."""
    return {"by": "threads", "most": most}


def loops(processes: int = 1) -> dict[str, Any]:
    """Serve with event loops."""
    return {"by": "loop", "processes": processes}


def server(draws: Draws, *ops: Op, **rest: Any) -> dict[str, Any]:
    """Return the settings of a server that does these operations per request; with threads by default.

    A specimen and its twin have the same seed, so that random draws are the same too.
    """
    return {"seed": draws.seed, "serve": threads(), "routes": {WORK: list(ops), PING: []}} | rest


def lock(size: int = 1) -> dict[str, Any]:
    """A lock that the metrics show."""
    return {"size": size, "kind": "lock"}


def pool(size: int) -> dict[str, Any]:
    """A pool of connections that the metrics show."""
    return {"size": size, "kind": "pool"}


def nameless(size: int) -> dict[str, Any]:
    """A resource that the metrics show under names that say nothing."""
    return {"size": size, "kind": "nameless"}


def hidden(size: int) -> dict[str, Any]:
    """A resource that no metric shows."""
    return {"size": size, "kind": "hidden"}


def per_s(value: float) -> Number:
    """A rate."""
    return Number(value, "1/s")


def seconds(value: float) -> Number:
    """A time."""
    return Number(value, "s")


def ms(value: float) -> Number:
    """A time given in milliseconds."""
    return Number(value / 1e3, "s")


def share(value: float) -> Number:
    """A share."""
    return Number(value, "share")


def many(value: float) -> Number:
    """A count."""
    return Number(value, "requests")


def plateau(capacity: float, alone_ms: float, **more: Number) -> dict[str, Number]:
    """Return the numbers of a service that saturates: capacity, time of a single request, and the knee.

    The knee is the number of users that saturates it: capacity times time of a single request, at least 1. A
    client also sees the round trip of about 0.1 ms; where that is 1 % of the time or more, there is no knee.
    """
    numbers = {"capacity": per_s(capacity), "alone": ms(alone_ms), **more}
    if alone_ms >= NEGLIGIBLE_ROUND_TRIP_MS:
        numbers["knee"] = Number(max(1.0, capacity * alone_ms / 1e3), "users")
    return numbers


def pair(
    flawed: Mapping[str, Any],
    label: Label,
    numbers: Mapping[str, Number],
    twin: Mapping[str, Any],
    twin_label: Label | None = None,
    twin_numbers: Mapping[str, Number] | None = None,
    repaired: Specimen | None = None,
) -> Drawn:
    """Return a specimen and its twin, of one server each, and optionally the repaired service."""
    healthy = Label(allowed=LIMITS_OF_THE_MACHINE) if twin_label is None else twin_label
    return Drawn(
        Specimen(Setup((flawed,)), label, numbers),
        Specimen(Setup((twin,)), healthy, twin_numbers or {}),
        repaired,
    )


def remedied(settings: Mapping[str, Any], label: Label, capacity: float, **setup: Any) -> Specimen:
    """Return the specimen with one remedy: the flaw is still there, at this higher capacity."""
    return Specimen(Setup((settings,), **setup), label, {"capacity": per_s(capacity)})
