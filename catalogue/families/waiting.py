"""Queueing: for a lock, a connection, a thread."""

from __future__ import annotations

from typing import Final

from catalogue.drawing import Draws
from catalogue.family import Drawn, Family, Fix, Label, Need, Number, need
from catalogue.parts import (
    hidden,
    holding,
    lock,
    loops,
    ms,
    nameless,
    pair,
    plateau,
    pool,
    remedied,
    seconds,
    server,
    threads,
    wait,
)

PLATEAU: Final = need("saturation.plateau")
LOCK: Final = Need({"A": ("downstream.serialised", "db.lock"), "C": ("db.lock",)})
POOL: Final = Need({"A": ("downstream.serialised", "db.pool"), "C": ("db.pool",)})
WORKERS: Final = need("threads.pool-limit", tier="B")
OUTSIDE: Final = need("outside.handler-wait", tier="C")
POOL_WORDS: Final = [
    "TimeoutError: QueuePool limit of size 5 overflow 0 reached, connection timed out",
    "HikariPool-1 - Connection is not available, request timed out after 500ms",
    "connection not available and request was dropped from queue after 500ms",
    "timeout exceeded when trying to connect",
]
MORE_CONNECTIONS: Final = Fix(
    "twice the connections", ("db.pool",), ("connections in place of", "twice the connections")
)
MORE_THREADS: Final = Fix(
    "twice the threads", ("threads.pool-limit",), ("threads in place of", "twice the threads")
)


def _lock(draws: Draws) -> Drawn:
    base, hold = draws.scaled(1, 5), draws.by_severity(4, 25)
    serve = draws.one_of([threads(), loops()])
    place, label = {"db": lock()}, Label((LOCK, PLATEAU))
    half = [*holding("db", wait(hold / 2)), wait(hold / 2)]
    return pair(
        server(draws, wait(base), *holding("db", wait(hold)), serve=serve, resources=place),
        label,
        plateau(1e3 / hold, base + hold, hold=ms(hold)),
        server(draws, wait(base), wait(hold), serve=serve),
        repaired=remedied(server(draws, wait(base), *half, serve=serve, resources=place), label, 2e3 / hold),
    )


def _lock_timeouts(draws: Draws) -> Drawn:
    base, patience = draws.scaled(1, 4), draws.one_of([200.0, 300.0, 500.0])
    hold = round(patience / draws.by_severity(6, 4.5))  # eight users exceed it, as in `_deadline`
    errors = {"timeout_ms": patience, "status": 500, "words": "OperationalError: database is locked"}
    return pair(
        server(draws, wait(base), *holding("db", wait(hold), **errors), resources={"db": lock()}),
        Label(
            (need("db.lock-timeouts", tier="C"), LOCK), frozenset({"saturation.plateau", "timeouts.cliff"})
        ),
        plateau(1e3 / hold, base + hold, hold=ms(hold), patience=ms(patience)),
        server(draws, wait(base), *holding("db", wait(hold)), resources={"db": lock()}),
        Label((LOCK, PLATEAU)),
        plateau(1e3 / hold, base + hold, hold=ms(hold)),
    )


def _pool_timeouts(draws: Draws) -> Drawn:
    base, patience, size = draws.scaled(1, 4), draws.one_of([200.0, 300.0, 500.0]), draws.whole(2, 4)
    hold = round(draws.by_severity(1.15, 1.5) * patience * size / (8 - size))  # eight users exceed it
    errors = {"timeout_ms": patience, "status": 500, "words": draws.one_of(POOL_WORDS)}
    return pair(
        server(draws, wait(base), *holding("db", wait(hold), **errors), resources={"db": pool(size)}),
        Label(
            (need("db.pool-timeouts", tier="C"), POOL),
            frozenset({"saturation.plateau", "timeouts.cliff", "shed.overload"}),
        ),
        plateau(size * 1e3 / hold, base + hold, hold=ms(hold), patience=ms(patience)),
        server(draws, wait(base), *holding("db", wait(hold)), resources={"db": pool(size)}),
        Label((POOL, PLATEAU)),
        plateau(size * 1e3 / hold, base + hold, hold=ms(hold)),
    )


def _pool(draws: Draws) -> Drawn:
    base, hold, size = draws.scaled(1, 5), draws.scaled(15, 60), draws.whole(2, 12)
    ops, label = [wait(base), *holding("db", wait(hold))], Label((POOL, PLATEAU))
    twice = server(draws, *ops, resources={"db": pool(2 * size)})
    return pair(
        server(draws, *ops, resources={"db": pool(size)}),
        label,
        plateau(size * 1e3 / hold, base + hold, hold=ms(hold), size=Number(size, "connections")),
        server(draws, *ops, resources={"db": pool(2_000)}),
        repaired=remedied(twice, label, 2 * size * 1e3 / hold),
    )


def _nameless(draws: Draws) -> Drawn:
    """The gauges of the places and of their queue have names that say nothing."""
    base, hold, size = draws.scaled(1, 5), draws.scaled(15, 60), draws.whole(2, 12)
    ops = [wait(base), *holding("db", wait(hold))]
    return pair(
        server(draws, *ops, resources={"db": nameless(size)}),
        Label((POOL, PLATEAU)),
        plateau(size * 1e3 / hold, base + hold, hold=ms(hold), size=Number(size, "connections")),
        server(draws, *ops, resources={"db": nameless(2_000)}),
    )


def _workers(draws: Draws) -> Drawn:
    work, most = draws.scaled(15, 60), draws.whole(2, 16)
    label = Label((WORKERS, OUTSIDE, PLATEAU), frozenset({"hol.correlation"}))
    twice = server(draws, wait(work), serve=threads(2 * most))
    return pair(
        server(draws, wait(work), serve=threads(most)),
        label,
        plateau(most * 1e3 / work, work, size=Number(most, "threads")),
        server(draws, wait(work), serve=threads()),
        repaired=remedied(twice, label, 2 * most * 1e3 / work),
    )


def _single(draws: Draws) -> Drawn:
    work = draws.by_severity(5, 30)
    label = Label((WORKERS, OUTSIDE, PLATEAU), frozenset({"hol.correlation"}))
    return pair(
        server(draws, wait(work), serve=threads(1)),
        label,
        plateau(1e3 / work, work, size=Number(1, "threads")),
        server(draws, wait(work), serve=threads()),
        repaired=remedied(server(draws, wait(work), serve=threads(2)), label, 2e3 / work),
    )


def _nested(draws: Draws) -> Drawn:
    base, hold, size = draws.scaled(1, 5), draws.scaled(15, 50), draws.whole(2, 6)
    most = size * draws.whole(3, 5)
    ops = [wait(base), *holding("db", wait(hold))]
    # There are at least three threads per connection, so twice as many connections are still the limit.
    twice = server(draws, *ops, serve=threads(most), resources={"db": pool(2 * size)})
    allowed = frozenset({"threads.pool-limit", "outside.handler-wait", "hol.correlation"})
    label = Label((POOL, PLATEAU), allowed)
    return pair(
        server(draws, *ops, serve=threads(most), resources={"db": pool(size)}),
        label,
        plateau(size * 1e3 / hold, base + hold, hold=ms(hold), size=Number(size, "connections")),
        server(draws, *ops, serve=threads(most), resources={"db": pool(2_000)}),
        Label((WORKERS, OUTSIDE, PLATEAU), frozenset({"hol.correlation"})),
        plateau(most * 1e3 / (base + hold), base + hold, size=Number(most, "threads")),
        repaired=remedied(twice, label, 2 * size * 1e3 / hold),
    )


def _contended(draws: Draws) -> Drawn:
    base, hold, more = draws.scaled(20, 60), draws.scaled(4, 10), draws.by_severity(0.02, 0.08)
    flawed = wait(hold, contended={"resource": "db", "share": more})
    best = 1e3 / hold
    return pair(
        server(draws, wait(base), *holding("db", flawed), resources={"db": lock()}),
        Label(
            (need("retrograde.throughput"),),
            frozenset({"db.lock", "downstream.serialised", "saturation.plateau"}),
        ),
        {"alone": ms(base + hold), "most": Number(best, "1/s"), "growth": Number(more, "share")},
        server(draws, wait(base), *holding("db", wait(hold)), resources={"db": lock()}),
        Label((LOCK, PLATEAU)),
        plateau(best, base + hold, hold=ms(hold)),
    )


def _deadline(draws: Draws) -> Drawn:
    base, patience = draws.scaled(1, 4), draws.one_of([500.0, 1_000.0])
    # Eight queueing users exceed the deadline; one that only a hundred users reach would not be seen.
    hold = round(patience / draws.by_severity(6, 4.5))
    errors = {"timeout_ms": patience, "status": 504, "words": "the deadline has passed"}
    return pair(
        server(draws, wait(base), *holding("work", wait(hold), **errors), resources={"work": hidden(1)}),
        Label(
            (need("timeouts.cliff"),),
            frozenset({"db.lock", "downstream.serialised", "saturation.plateau"}),
        ),
        plateau(1e3 / hold, base + hold, patience=seconds(patience / 1e3)),
        server(draws, wait(base), *holding("work", wait(hold)), resources={"work": hidden(1)}),
        Label((Need({"A": ("downstream.serialised", "db.lock")}), PLATEAU)),
        plateau(1e3 / hold, base + hold),
    )


FAMILIES: Final = (
    Family(
        "db-lock",
        "one lock lets one request through at a time",
        _lock,
        looks_like=("loop-blocked", "single-worker", "delay-limiter"),
        fix=Fix("the lock held for half the time, the rest done after", ("db.lock",), ("half the time",)),
    ),
    Family(
        "db-lock-timeouts", "waits for a lock time out with errors", _lock_timeouts, looks_like=("deadline",)
    ),
    Family(
        "db-pool-timeouts",
        "waits for a connection time out with errors",
        _pool_timeouts,
        looks_like=("db-lock-timeouts", "deadline"),
    ),
    Family(
        "db-pool",
        "a pool with too few connections",
        _pool,
        looks_like=("worker-pool", "delay-limiter"),
        fix=MORE_CONNECTIONS,
    ),
    Family(
        "nameless-pool",
        "a pool that is too small, whose gauges have names that say nothing",
        _nameless,
        looks_like=("worker-pool", "delay-limiter"),
    ),
    Family(
        "worker-pool",
        "too few threads for requests that wait",
        _workers,
        looks_like=("db-pool",),
        fix=MORE_THREADS,
    ),
    Family(
        "single-worker",
        "one thread, blocked while its request waits",
        _single,
        looks_like=("loop-blocked", "db-lock"),
        fix=MORE_THREADS,
    ),
    Family(
        "nested-pools",
        "threads queue for a small pool of connections",
        _nested,
        looks_like=("worker-pool",),
        fix=MORE_CONNECTIONS,
    ),
    Family(
        "contended-lock",
        "a lock is held longer the more requests wait for it",
        _contended,
        looks_like=("db-lock",),
    ),
    Family("deadline", "requests that wait too long get a 504", _deadline, looks_like=("slow-path",)),
)
