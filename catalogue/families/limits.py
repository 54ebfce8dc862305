"""Limits that a service sets itself: it refuses, delays or sheds."""

from __future__ import annotations

from typing import Final

from catalogue.drawing import Draws
from catalogue.family import Drawn, Family, Label, Mend, Need, Number, need
from catalogue.parts import hidden, holding, many, ms, pair, per_s, plateau, remedied, server, wait

PLATEAU: Final = need("saturation.plateau")


def _bucket(draws: Draws) -> Drawn:
    base, rate = draws.scaled(3, 15), draws.graver(300, 60)
    burst = float(draws.whole(5, 50))
    limit = {"do": "limit", "rate": rate, "burst": burst}
    return pair(
        server(draws, limit, wait(base)),
        Label((need("ratelimit.active"),), frozenset({"saturation.plateau"})),
        {"capacity": per_s(rate), "rate": per_s(rate), "burst": many(burst), "alone": ms(base)},
        server(draws, wait(base)),
    )


def _pace(draws: Draws) -> Drawn:
    base, rate = draws.scaled(5, 25), draws.graver(250, 50)
    # From outside, a pace is a lock that is held for one over the rate.
    label = Label((Need({"A": ("ratelimit.active", "downstream.serialised")}), PLATEAU))
    return pair(
        server(draws, {"do": "pace", "rate": rate}, wait(base)),
        label,
        plateau(rate, base, rate=per_s(rate)),
        server(draws, wait(base)),
        mended=remedied(server(draws, {"do": "pace", "rate": 2 * rate}, wait(base)), label, 2 * rate),
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
    Family("token-bucket", "more than a rate is answered 429", _bucket, looks_like=("shedding",)),
    Family(
        "delay-limiter",
        "more than a rate is delayed",
        _pace,
        looks_like=("db-lock", "db-pool"),
        mend=Mend("twice the rate", ("ratelimit.active", "downstream.serialised"), ("a limit of", "twice")),
    ),
    Family("shedding", "more than so many at once are answered 503", _shed, looks_like=("token-bucket",)),
)
