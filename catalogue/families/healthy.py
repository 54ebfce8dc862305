"""Services without a flaw, some of which look as if they had one."""

from __future__ import annotations

from typing import Final

from catalogue.drawing import Draws
from catalogue.family import HEALTHY, Drawn, Family, Front, Label, Setup, Specimen
from catalogue.parts import holding, loops, ms, pool, server, wait


def _threads(draws: Draws) -> Drawn:
    base = draws.scaled(3, 20)
    setup = Setup((server(draws, wait(base, law="uniform")),))
    return Drawn(Specimen(setup, HEALTHY, {"alone": ms(base)}))


def _loop(draws: Draws) -> Drawn:
    base = draws.scaled(3, 20)
    setup = Setup((server(draws, wait(base, law="uniform"), serve=loops()),))
    return Drawn(Specimen(setup, HEALTHY, {"alone": ms(base)}))


def _ample_pool(draws: Draws) -> Drawn:
    base, hold = draws.scaled(2, 6), draws.scaled(5, 20)
    ops = [wait(base), *holding("db", wait(hold, law="uniform"))]
    setup = Setup((server(draws, *ops, resources={"db": pool(2_000)}),))
    return Drawn(Specimen(setup, HEALTHY, {"alone": ms(base + hold)}))


def _behind_proxy(draws: Draws) -> Drawn:
    base = draws.scaled(3, 20)
    servers = tuple(server(draws, wait(base, law="uniform"), backend=name) for name in "ab")
    return Drawn(Specimen(Setup(servers, Front((0, 1)), metrics_from=None), HEALTHY, {"alone": ms(base)}))


def _slow(draws: Draws) -> Drawn:
    base = draws.scaled(150, 500)
    setup = Setup((server(draws, wait(base)),))
    return Drawn(Specimen(setup, HEALTHY, {"alone": ms(base)}))


def _varied(draws: Draws) -> Drawn:
    base = draws.scaled(5, 30)
    setup = Setup((server(draws, wait(base, law="exponential")),))
    return Drawn(Specimen(setup, HEALTHY, {"alone": ms(base)}))


def _dear_connections(draws: Draws) -> Drawn:
    base, first = draws.scaled(2, 6), draws.scaled(20, 80)
    setup = Setup((server(draws, wait(first, only={"first": True}), wait(base)),))
    return Drawn(Specimen(setup, HEALTHY, {"alone": ms(base), "first": ms(base + first)}))


def _aged_connections(draws: Draws) -> Drawn:
    base, age = draws.scaled(3, 10), draws.scaled(300, 1500)
    setup = Setup((server(draws, wait(base), connection={"age_ms": age}),))
    return Drawn(Specimen(setup, HEALTHY, {"alone": ms(base), "age": ms(age)}))


def _varied_length(draws: Draws) -> Drawn:
    base = draws.scaled(3, 10)
    answer = {"do": "answer", "bytes": draws.whole(100, 2_000), "spread": draws.whole(100, 4_000)}
    setup = Setup((server(draws, wait(base), answer),))
    may = HEALTHY.allowed | {"payload.length_varies", "failure.misclassified"}
    return Drawn(Specimen(setup, Label(allowed=may), {"alone": ms(base)}))


FAMILIES: Final = (
    Family(
        "healthy-threads",
        "requests wait without using a resource, with threads to spare",
        _threads,
        "healthy",
    ),
    Family("healthy-loop", "requests wait on an event loop that never computes", _loop, "healthy"),
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
    Family(
        "slow-but-healthy",
        "requests are slow, but no slower under load",
        _slow,
        "decoy",
        looks_like=("db-lock",),
    ),
    Family(
        "varied-but-healthy",
        "exponential service times: a long tail, but one mode",
        _varied,
        "decoy",
        looks_like=("slow-path", "pauses"),
    ),
    Family(
        "dear-connections",
        "the first request of a connection takes longer, as with TLS; connections are kept",
        _dear_connections,
        "decoy",
        looks_like=("slow-path", "keepalive-limit"),
    ),
    Family(
        "aged-connections",
        "connections are closed by age, not after a number of requests",
        _aged_connections,
        "decoy",
        looks_like=("keepalive-limit",),
    ),
    Family(
        "varied-length",
        "answers vary in length, which some load tools count as failures",
        _varied_length,
        "decoy",
    ),
)
