"""Services with two flaws, one hidden behind the other; the twin lacks the second."""

from __future__ import annotations

from typing import Final

from catalogue.drawing import Draws
from catalogue.families.loops import ALLOWED_WITH_A_LOOP, BLOCKED
from catalogue.families.waiting import LOCK, OUTSIDE, PLATEAU, POOL, WORKERS
from catalogue.family import LIMITS_OF_THE_MACHINE, Drawn, Family, Fix, Label, Number, need
from catalogue.parts import (
    burn,
    holding,
    lock,
    loops,
    many,
    ms,
    pair,
    per_s,
    plateau,
    pool,
    server,
    share,
    threads,
    wait,
)

SLOW: Final = need("mixture.slow-path")
PAUSES: Final = need("pause.periodic")
FEW: Final = need("http.keepalive-limit")


def _lock_and_slow_path(draws: Draws) -> Drawn:
    hold, shift, weight = draws.scaled(6, 15), draws.scaled(200, 600), draws.by_severity(0.03, 0.15)
    slow = wait(shift, only={"share": weight})
    held = holding("db", wait(hold))
    place = {"resources": {"db": lock()}}
    return pair(
        server(draws, slow, *held, **place),
        Label((LOCK, SLOW, PLATEAU)),
        plateau(1e3 / hold, hold + weight * shift, weight=share(weight), shift=ms(shift)),
        server(draws, *held, **place),
        Label((LOCK, PLATEAU)),
        plateau(1e3 / hold, hold),
    )


def _loop_and_few(draws: Draws) -> Drawn:
    work, first, limit = draws.by_severity(6, 20), draws.scaled(5, 15), draws.whole(2, 8)
    ops = [wait(first, only={"first": True}), burn(work)]
    numbers = plateau(1e3 / work, work, work=ms(work))
    # A single user pays for a new connection once per `limit` requests.
    alone = work + first / limit
    return pair(
        server(draws, *ops, serve=loops(), connection={"requests": limit}),
        Label((BLOCKED, FEW, PLATEAU), ALLOWED_WITH_A_LOOP),
        plateau(1e3 / work, alone, work=ms(work), limit=many(limit)),
        server(draws, *ops, serve=loops()),
        Label((BLOCKED, PLATEAU), ALLOWED_WITH_A_LOOP),
        numbers,
    )


def _lock_and_pauses(draws: Draws) -> Drawn:
    hold, length, every = draws.scaled(4, 10), draws.by_severity(250, 500), draws.scaled(2_000, 4_000)
    held = holding("db", wait(hold))
    place = {"resources": {"db": lock()}}
    runs = 1 - length / every  # proportion of time without pause; a single request meets pauses too
    return pair(
        server(draws, *held, pauses={"every_ms": every, "length_ms": length}, **place),
        Label((LOCK, PAUSES, PLATEAU)),
        plateau(1e3 / hold * runs, hold / runs, period=ms(every), length=ms(length)),
        server(draws, *held, **place),
        Label((LOCK, PLATEAU)),
        plateau(1e3 / hold, hold),
    )


def _workers_and_slow_path(draws: Draws) -> Drawn:
    base, shift, weight = draws.scaled(8, 20), draws.scaled(150, 400), draws.by_severity(0.03, 0.12)
    most = draws.whole(4, 12)
    mean = base + weight * shift
    slow = wait(shift, only={"share": weight})
    allowed = frozenset({"hol.correlation"})
    return pair(
        server(draws, wait(base), slow, serve=threads(most)),
        Label((WORKERS, OUTSIDE, SLOW, PLATEAU), allowed),
        plateau(most * 1e3 / mean, mean, weight=share(weight), shift=ms(shift)),
        server(draws, wait(base), serve=threads(most)),
        Label((WORKERS, OUTSIDE, PLATEAU), allowed),
        plateau(most * 1e3 / base, base),
    )


def _pauses_and_slow_path(draws: Draws) -> Drawn:
    base, shift, weight = draws.scaled(4, 12), draws.scaled(150, 500), draws.by_severity(0.03, 0.12)
    length, every = draws.scaled(150, 300), draws.scaled(1_500, 3_500)
    pauses = {"every_ms": every, "length_ms": length}
    return pair(
        server(draws, wait(base), wait(shift, only={"share": weight}), pauses=pauses),
        Label((SLOW, PAUSES), LIMITS_OF_THE_MACHINE),
        {"weight": share(weight), "shift": ms(shift), "period": ms(every), "length": ms(length)},
        server(draws, wait(base), pauses=pauses),
        Label((PAUSES,), LIMITS_OF_THE_MACHINE),
        {"period": ms(every), "length": ms(length)},
    )


def _pool_and_few(draws: Draws) -> Drawn:
    hold, size, limit = draws.scaled(15, 40), draws.whole(3, 8), draws.whole(2, 6)
    first = draws.scaled(5, 15)
    ops = [wait(first, only={"first": True}), *holding("db", wait(hold))]
    place = {"resources": {"db": pool(size)}}
    numbers = plateau(size * 1e3 / hold, hold)
    return pair(
        server(draws, *ops, connection={"requests": limit}, **place),
        Label((POOL, FEW, PLATEAU)),
        plateau(size * 1e3 / hold, hold + first / limit, limit=many(limit)),
        server(draws, *ops, **place),
        Label((POOL, PLATEAU)),
        numbers,
    )


def _pool_and_slow_path(draws: Draws) -> Drawn:
    """A share of the requests holds a connection for long: the mean decides what the pool lets through."""
    hold, shift, weight = draws.scaled(10, 25), draws.scaled(200, 500), draws.by_severity(0.06, 0.25)
    size = draws.whole(3, 8)
    mean = hold + weight * shift
    place = {"resources": {"db": pool(size)}}
    slow = wait(shift, only={"share": weight})
    return pair(
        server(draws, *holding("db", wait(hold), slow), **place),
        Label((POOL, SLOW, PLATEAU)),
        plateau(
            size * 1e3 / mean,
            mean,
            weight=share(weight),
            shift=ms(shift),
            size=Number(size, "connections"),
        ),
        server(draws, *holding("db", wait(hold)), **place),
        Label((POOL, PLATEAU)),
        plateau(size * 1e3 / hold, hold),
    )


def _bucket_and_slow_path(draws: Draws) -> Drawn:
    base, shift, weight = draws.scaled(4, 12), draws.scaled(150, 500), draws.by_severity(0.03, 0.15)
    rate = draws.scaled(80, 300)
    limit = {"do": "limit", "rate": rate, "burst": 20.0}
    limited = need("ratelimit.active")
    allowed = frozenset({"saturation.plateau"})
    return pair(
        server(draws, limit, wait(base), wait(shift, only={"share": weight})),
        Label((limited, SLOW), allowed),
        {"capacity": per_s(rate), "rate": per_s(rate), "weight": share(weight), "shift": ms(shift)},
        server(draws, limit, wait(base)),
        Label((limited,), allowed),
        {"capacity": per_s(rate), "rate": per_s(rate)},
    )


FAMILIES: Final = (
    Family("lock+slow-path", "a lock, and a slow path before it", _lock_and_slow_path, "composite"),
    Family("loop+keepalive", "a blocked loop whose connections end early", _loop_and_few, "composite"),
    Family(
        "lock+pauses",
        "a lock in a process that stops now and then",
        _lock_and_pauses,
        "composite",
        fix=Fix("no pauses", ("pause.periodic",)),
    ),
    Family(
        "workers+slow-path",
        "few threads, some of which are held long",
        _workers_and_slow_path,
        "composite",
        fix=Fix("no slow path", ("mixture.slow-path",)),
    ),
    Family(
        "pool+slow-path",
        "few connections, some of which are held long",
        _pool_and_slow_path,
        "composite",
        fix=Fix("no slow path", ("mixture.slow-path",)),
    ),
    Family("pauses+slow-path", "pauses and a slow path", _pauses_and_slow_path, "composite"),
    Family("pool+keepalive", "a small pool, and connections that end early", _pool_and_few, "composite"),
    Family("bucket+slow-path", "a limiter before a slow path", _bucket_and_slow_path, "composite"),
)
