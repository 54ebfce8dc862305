"""Limits that a service sets itself: it refuses, delays or sheds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from catalogue.drawing import Draws
from catalogue.family import (
    LIMITS_OF_THE_MACHINE,
    Drawn,
    Family,
    Fix,
    Label,
    Need,
    Number,
    Setup,
    Specimen,
    need,
)
from catalogue.parts import hidden, holding, many, ms, pair, per_s, plateau, remedied, server, share, wait

PLATEAU: Final = need("saturation.plateau")
SOFT_WORDS: Final = ['{"error":"busy"}', '{"ok":false}', "please try again later"]


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
    return _delayed(draws, base, rate, Need({"A": ("ratelimit.active", "downstream.serialised")}))


def _pace_after_burst(draws: Draws) -> Drawn:
    base, rate = draws.scaled(40, 120), draws.by_severity(150, 60)
    burst = float(round(draws.scaled(0.5, 1.0) * rate))
    return _delayed(draws, base, rate, need("ratelimit.active"), {"burst": burst}, burst=many(burst))


def _pace_by_window(draws: Draws) -> Drawn:
    base, each = draws.scaled(3, 15), draws.whole(8, 40)
    period = draws.one_of([500, 1000])
    limit = {"window_ms": period}
    return _delayed(draws, base, each * 1e3 / period, need("ratelimit.active"), limit, period=ms(period))


def _delayed(
    draws: Draws,
    base: float,
    rate: float,
    cause: Need,
    limit: Mapping[str, float] | None = None,
    **numbers: Number,
) -> Drawn:
    label = Label((cause, PLATEAU))

    def pace(rate: float) -> dict[str, Any]:
        return server(draws, {"do": "pace", "rate": rate, **(limit or {})}, wait(base))

    return pair(
        pace(rate),
        label,
        plateau(rate, base, rate=per_s(rate), **numbers),
        server(draws, wait(base)),
        repaired=remedied(pace(2 * rate), label, 2 * rate),
    )


def _shed(draws: Draws) -> Drawn:
    work, room = draws.scaled(20, 80), draws.whole(4, 16)
    full = {"timeout_ms": 0, "status": 503, "words": "busy"}
    return pair(
        server(draws, *holding("room", wait(work), **full), resources={"room": hidden(room)}),
        Label((need("requests.in-flight-limit", "shed.overload"),), frozenset({"saturation.plateau"})),
        plateau(room * 1e3 / work, work, room=Number(room, "requests")),
        server(draws, wait(work), resources={"room": hidden(room)}),
    )


def _no_line(draws: Draws) -> Drawn:
    work, places = draws.scaled(20, 80), draws.whole(3, 12)
    full = {"timeout_ms": 0, "status": 500, "words": "no connection is free"}
    return pair(
        server(draws, *holding("db", wait(work), **full), resources={"db": hidden(places)}),
        Label((need("requests.in-flight-limit"),), frozenset({"saturation.plateau"})),
        {"capacity": per_s(places * 1e3 / work), "alone": ms(work), "room": Number(places, "requests")},
        server(draws, wait(work), resources={"db": hidden(places)}),
    )


def _soft(draws: Draws) -> Drawn:
    """Draw a limit of what may be in flight that is answered as a success."""
    work, room, size = draws.scaled(20, 80), draws.whole(4, 12), draws.whole(400, 4_000)
    page = {"do": "answer", "bytes": size}
    full = {"timeout_ms": 0, "status": 200, "words": draws.one_of(SOFT_WORDS)}
    return pair(
        server(draws, page, *holding("room", wait(work), **full), resources={"room": hidden(room)}),
        Label((need("answers.changed"),), LIMITS_OF_THE_MACHINE),
        {"alone": ms(work), "room": Number(room, "requests")},
        server(draws, page, *holding("room", wait(work)), resources={"room": hidden(room)}),
        Label(
            allowed=LIMITS_OF_THE_MACHINE
            | {"saturation.plateau", "downstream.serialised", "threads.pool-limit"}
        ),
    )


def _by_chance(draws: Draws) -> Drawn:
    work, fails = draws.scaled(10, 40), draws.by_severity(0.02, 0.08)
    settings = server(draws, {"do": "fail", "share": fails, "status": 500}, wait(work))
    return Drawn(Specimen(Setup((settings,)), Label(allowed=LIMITS_OF_THE_MACHINE), {"share": share(fails)}))


FAMILIES: Final = (
    Family("token-bucket", "requests above a rate get a 429", _bucket, looks_like=("shedding",)),
    Family(
        "delay-limiter",
        "requests above a rate are delayed",
        _pace,
        looks_like=("db-lock", "db-pool"),
        fix=Fix("twice the rate", ("ratelimit.active", "downstream.serialised"), ("a limit of", "twice")),
    ),
    Family(
        "burst-limiter",
        "requests above a rate are delayed once a burst is spent",
        _pace_after_burst,
        looks_like=("worker-pool", "db-pool", "contended-lock"),
        fix=Fix("twice the rate", ("ratelimit.active",), ("a limit of", "twice")),
    ),
    Family(
        "window-limiter",
        "so many requests pass in each window, at its begin",
        _pace_by_window,
        looks_like=("delay-limiter", "worker-pool"),
        fix=Fix("twice the rate", ("ratelimit.active",), ("a limit of", "twice")),
    ),
    Family("shedding", "requests above a number in flight get a 503", _shed, looks_like=("token-bucket",)),
    Family(
        "pool-without-line",
        "requests that find no free place of a pool get a 500 at once",
        _no_line,
        looks_like=("shedding", "token-bucket", "errors-by-chance"),
    ),
    Family(
        "soft-errors",
        "requests above a number in flight get a short error with status 200",
        _soft,
        looks_like=("shedding", "varied-length"),
    ),
    Family("errors-by-chance", "a share of the requests fails at once, at any load", _by_chance, "decoy"),
)
