"""The parts that settings of specimens are put together from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from catalogue.drawing import Draws
from catalogue.family import LIMITS_OF_THE_MACHINE, Drawn, Known, Label, Number, Setup

Op = dict[str, Any]
Ops = list[Op]

WAY_IS_NOTHING_MS = 10.0
WORK, PING = "/work", "/ping"  # what costs something, and what touches nothing


def burn(ms: float, **more: Any) -> Op:
    """Compute, in processor time."""
    return {"do": "burn", "ms": ms, **more}


def wait(ms: float, **more: Any) -> Op:
    """Wait for something elsewhere."""
    return {"do": "wait", "ms": ms, **more}


def holding(resource: str, *inner: Op, **more: Any) -> Ops:
    """Hold a place of a resource meanwhile."""
    return [
        {"do": "take", "resource": resource, **more},
        *inner,
        {"do": "give", "resource": resource},
    ]


def threads(most: int = 2_000) -> dict[str, Any]:
    """Served by threads."""
    return {"by": "threads", "most": most}


def loops(processes: int = 1) -> dict[str, Any]:
    """Served by event loops."""
    return {"by": "loop", "processes": processes}


def server(draws: Draws, *ops: Op, **rest: Any) -> dict[str, Any]:
    """Settings of a server whose work is this; threads unless said otherwise.

    It has the same seed as its twin, so that chance is the same too.
    """
    return {"seed": draws.seed, "serve": threads(), "routes": {WORK: list(ops), PING: []}} | rest


def lock(size: int = 1) -> dict[str, Any]:
    """A lock, in its metrics too."""
    return {"size": size, "kind": "lock"}


def pool(size: int) -> dict[str, Any]:
    """A pool of connections, in its metrics too."""
    return {"size": size, "kind": "pool"}


def hidden(size: int) -> dict[str, Any]:
    """A resource of which no metric tells."""
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
    """The numbers of a service that saturates: capacity, time of one request alone, and the users who fill
    it: the knee, X R1, and never fewer than one, who is always answered.

    A client meets the way there and back, too, of 0.1 ms or so: where that is a hundredth of the time and
    more, nobody knows the knee.
    """
    numbers = {"capacity": per_s(capacity), "alone": ms(alone_ms), **more}
    if alone_ms >= WAY_IS_NOTHING_MS:
        numbers["knee"] = Number(max(1.0, capacity * alone_ms / 1e3), "users")
    return numbers


def pair(
    flawed: Mapping[str, Any],
    label: Label,
    numbers: Mapping[str, Number],
    twin: Mapping[str, Any],
    twin_label: Label | None = None,
    twin_numbers: Mapping[str, Number] | None = None,
    mended: Known | None = None,
) -> Drawn:
    """Two services of one server each, and perhaps one with a remedy."""
    healthy = Label(allowed=LIMITS_OF_THE_MACHINE) if twin_label is None else twin_label
    return Drawn(
        Known(Setup((flawed,)), label, numbers),
        Known(Setup((twin,)), healthy, twin_numbers or {}),
        mended,
    )


def remedied(settings: Mapping[str, Any], label: Label, capacity: float, **setup: Any) -> Known:
    """The specimen with one remedy: the flaw is still there, and so much more gets through."""
    return Known(Setup((settings,), **setup), label, {"capacity": per_s(capacity)})
