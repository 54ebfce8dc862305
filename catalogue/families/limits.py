"""Limits that a service sets itself: it refuses, delays or sheds."""

from __future__ import annotations

from typing import Final

from catalogue.drawing import Draws
from catalogue.family import Drawn, Family, Fix, Label, Need, Number, need
from catalogue.parts import hidden, holding, many, ms, pair, per_s, plateau, remedied, server, wait

PLATEAU: Final = need("saturation.plateau")


def _bucket(draws: Draws) -> Drawn:
    base, rate = draws.scaled(3, 15), draws.by_severity(300, 60)
    burst = float(draws.whole(5, 50))
    limit = {"do": "limit", "rate": rate, "burst": burst}
    return pair(
        server(draws, limit, wait(base)),
        Label((need("ratelimit.active"),), frozenset({"saturation.plateau"})),
        {"capacity": per_s(rate), "rate": per_s(rate), "burst": many(burst), "alone": ms(base)},
        server(draws, wait(base)),
    )


def _pace(draws: Draws) -> Drawn:
    base, rate = draws.scaled(5, 25), draws.by_severity(250, 50)
    # From outside, a limiter that delays looks like a lock that is held for 1 / rate.
    label = Label((Need({"A": ("ratelimit.active", "downstream.serialised")}), PLATEAU))
    return pair(
        server(draws, {"do": "pace", "rate": rate}, wait(base)),
        label,
        plateau(rate, base, rate=per_s(rate)),
        server(draws, wait(base)),
        repaired=remedied(server(draws, {"do": "pace", "rate": 2 * rate}, wait(base)), label, 2 * rate),
    )


def _shed(draws: Draws) -> Drawn:
    work, room = draws.scaled(20, 80), draws.whole(4, 16)
    full = {"timeout_ms": 0, "status": 503, "words": "busy"}
    return pair(
        server(draws, *holding("room", wait(work), **full), resources={"room": hidden(room)}),
        Label((need("shed.overload"),), frozenset({"saturation.plateau"})),
        plateau(room * 1e3 / work, work, room=Number(room, "requests")),
        server(draws, wait(work), resources={"room": hidden(room)}),
    )


FAMILIES: Final = (
    Family("token-bucket", "requests above a rate get a 429", _bucket, looks_like=("shedding",)),
    Family(
        "delay-limiter",
        "requests above a rate are delayed",
        _pace,
        looks_like=("db-lock", "db-pool"),
        fix=Fix("twice the rate", ("ratelimit.active", "downstream.serialised"), ("a limit of", "twice")),
    ),
    Family("shedding", "requests above a number in flight get a 503", _shed, looks_like=("token-bucket",)),
)
