"""Services without a flaw, some of which look as if they had one."""

from __future__ import annotations

from typing import Final

from catalogue.drawing import Draws
from catalogue.family import HEALTHY, Drawn, Family, Front, Known, Label, Setup
from catalogue.parts import holding, loops, ms, pool, server, wait


def _threads(draws: Draws) -> Drawn:
    base = draws.scaled(3, 20)
    setup = Setup((server(draws, wait(base, law="uniform")),))
    return Drawn(Known(setup, HEALTHY, {"alone": ms(base)}))


def _loop(draws: Draws) -> Drawn:
    base = draws.scaled(3, 20)
    setup = Setup((server(draws, wait(base, law="uniform"), serve=loops()),))
    return Drawn(Known(setup, HEALTHY, {"alone": ms(base)}))


def _ample_pool(draws: Draws) -> Drawn:
    base, hold = draws.scaled(2, 6), draws.scaled(5, 20)
    ops = [wait(base), *holding("db", wait(hold, law="uniform"))]
    setup = Setup((server(draws, *ops, resources={"db": pool(2_000)}),))
    return Drawn(Known(setup, HEALTHY, {"alone": ms(base + hold)}))


def _behind_proxy(draws: Draws) -> Drawn:
    base = draws.scaled(3, 20)
    servers = tuple(server(draws, wait(base, law="uniform"), backend=name) for name in "ab")
    return Drawn(Known(Setup(servers, Front((0, 1)), told_by=None), HEALTHY, {"alone": ms(base)}))


def _slow(draws: Draws) -> Drawn:
    base = draws.scaled(150, 500)
    setup = Setup((server(draws, wait(base)),))
    return Drawn(Known(setup, HEALTHY, {"alone": ms(base)}))


def _varied(draws: Draws) -> Drawn:
    base = draws.scaled(5, 30)
    setup = Setup((server(draws, wait(base, law="exponential")),))
    return Drawn(Known(setup, HEALTHY, {"alone": ms(base)}))


def _dear_connections(draws: Draws) -> Drawn:
    base, first = draws.scaled(2, 6), draws.scaled(20, 80)
    setup = Setup((server(draws, wait(first, only={"first": True}), wait(base)),))
    return Drawn(Known(setup, HEALTHY, {"alone": ms(base), "first": ms(base + first)}))


def _aged_connections(draws: Draws) -> Drawn:
    base, age = draws.scaled(3, 10), draws.scaled(300, 1500)
    setup = Setup((server(draws, wait(base), connection={"age_ms": age}),))
    return Drawn(Known(setup, HEALTHY, {"alone": ms(base), "age": ms(age)}))


def _varied_length(draws: Draws) -> Drawn:
    base = draws.scaled(3, 10)
    answer = {"do": "answer", "bytes": draws.whole(100, 2_000), "spread": draws.whole(100, 4_000)}
    setup = Setup((server(draws, wait(base), answer),))
    may = HEALTHY.allowed | {"payload.length_varies", "failure.misclassified"}
    return Drawn(Known(setup, Label(allowed=may), {"alone": ms(base)}))


FAMILIES: Final = (
    Family("healthy-threads", "waits elsewhere, with threads to spare", _threads, "healthy"),
    Family("healthy-loop", "waits elsewhere on an event loop that never computes", _loop, "healthy"),
    Family(
        "healthy-pool",
        "a pool of connections that is never full",
        _ample_pool,
        "healthy",
        looks_like=("db-pool",),
    ),
    Family(
        "healthy-proxied",
        "two equal replicas behind a proxy",
        _behind_proxy,
        "healthy",
        looks_like=("skewed-turns", "slow-replica"),
    ),
    Family("slow-but-healthy", "slow alone and no slower together", _slow, "decoy", looks_like=("db-lock",)),
    Family(
        "varied-but-healthy",
        "memoryless times: a long tail of one mode",
        _varied,
        "decoy",
        looks_like=("slow-path", "pauses"),
    ),
    Family(
        "dear-connections",
        "the first request of a connection costs more, as with TLS; connections last",
        _dear_connections,
        "decoy",
        looks_like=("slow-path", "keepalive-limit"),
    ),
    Family(
        "aged-connections",
        "closes connections by age, not by count",
        _aged_connections,
        "decoy",
        looks_like=("keepalive-limit",),
    ),
    Family(
        "varied-length",
        "answers of many lengths, which some tools call failures",
        _varied_length,
        "decoy",
    ),
)
