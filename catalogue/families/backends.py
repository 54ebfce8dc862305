"""Several servers behind one address."""

from __future__ import annotations

from typing import Any, Final

from catalogue.drawing import Draws
from catalogue.families.loops import BESIDE_A_LOOP, BLOCKED
from catalogue.family import (
    LIMITS_OF_THE_MACHINE,
    Around,
    Drawn,
    Family,
    Front,
    Known,
    Label,
    Mend,
    Number,
    Setup,
    need,
)
from catalogue.parts import PING, WORK, burn, loops, ms, per_s, plateau, server, share, threads, wait

# A replica that waits with a thread for each request is limited by its threads, in twins as well.
OF_REPLICAS: Final = frozenset(
    {"saturation.plateau", "threads.pool-limit", "outside.handler-wait", "downstream.serialised"}
)


def _replicas(draws: Draws, times_ms: list[float], most: int) -> tuple[dict[str, Any], ...]:
    """Servers that differ in how long they wait, and in their names."""
    return tuple(
        server(draws, wait(time), serve=threads(most), backend=name)
        for time, name in zip(times_ms, "abcdef", strict=False)
    )


def _skewed(draws: Draws) -> Drawn:
    work, most, turns = draws.scaled(10, 40), draws.whole(2, 6), draws.whole(3, 6)
    replicas = _replicas(draws, [work] * 3, most)
    hot = turns / (turns + 2)
    one = most * 1e3 / work
    return Drawn(
        Known(
            Setup(replicas, Front((0,) * turns + (1, 2)), told_by=None),
            Label((need("lb.imbalance", tier="B"),), OF_REPLICAS | LIMITS_OF_THE_MACHINE),
            plateau(one / hot, work, hottest=share(hot), imbalance=Number(3 * hot, "ratio")),
        ),
        Known(
            Setup(replicas, Front((0, 1, 2)), told_by=None),
            Label((), OF_REPLICAS | LIMITS_OF_THE_MACHINE),
            plateau(3 * one, work),
        ),
    )


def _slow_one(draws: Draws) -> Drawn:
    work, slower, most = draws.scaled(10, 30), draws.graver(1.5, 4), draws.whole(8, 16)
    slow = work * slower
    return Drawn(
        Known(
            Setup(_replicas(draws, [work, work, slow], most), Front((0, 1, 2)), told_by=None),
            Label(
                (need("backend.slow-one", tier="B"),),
                OF_REPLICAS | LIMITS_OF_THE_MACHINE | {"mixture.slow-path"},
            ),
            plateau(3 * most * 1e3 / slow, (2 * work + slow) / 3, slower=Number(slower, "ratio")),
        ),
        Known(
            Setup(_replicas(draws, [work] * 3, most), Front((0, 1, 2)), told_by=None),
            Label((), OF_REPLICAS | LIMITS_OF_THE_MACHINE),
            plateau(3 * most * 1e3 / work, work),
        ),
    )


def _hashed(draws: Draws) -> Drawn:
    work, many = draws.graver(6, 20), draws.whole(2, 3)
    # Whether few connections fall unevenly is chance: it may be told, it need not.
    label = Label((BLOCKED,), BESIDE_A_LOOP | LIMITS_OF_THE_MACHINE | {"lb.imbalance"})
    settings = server(draws, burn(work), listen={"hashed": True}, serve=loops(many))
    numbers = {"alone": ms(work), "work": ms(work), "processes": Number(many, "processes")}
    return Drawn(Known(Setup((settings,)), label, numbers))


def _retries(draws: Draws) -> Drawn:
    base, fails, tries = draws.scaled(3, 10), draws.graver(0.04, 0.2), draws.whole(2, 4)
    behind = server(draws, wait(base), {"do": "fail", "share": fails, "status": 503})

    def front(times: int) -> dict[str, Any]:
        def call(path: str, tries: int) -> dict[str, Any]:
            return {"do": "call", "port": "@0", "path": path, "tries": tries}

        return server(draws, routes={WORK: [call(WORK, times)], PING: [call(PING, 1)]})

    excess = sum(fails**n for n in range(1, tries))
    return Drawn(
        Known(
            Setup((behind, front(tries)), told_by=0),
            Label((need("retry.amplification", tier="C"),), LIMITS_OF_THE_MACHINE | {"accounting.excess"}),
            {"excess": share(excess), "alone": ms(base * (1 + excess))},
        ),
        Known(
            Setup((behind, front(1)), told_by=0),
            Label((), LIMITS_OF_THE_MACHINE),
            {"fails": share(fails), "alone": ms(base)},
        ),
    )


def _unpooled(draws: Draws) -> Drawn:
    """On loopback Linux uses a port again after it has rested 1 s: so many ports, so many calls a second."""
    base, ports = draws.scaled(2, 6), round(draws.graver(1_200, 400))
    behind = server(draws, wait(base))

    def front(*, keep: bool) -> dict[str, Any]:
        def call(path: str) -> dict[str, Any]:
            return {"do": "call", "port": "@0", "path": path, "tries": 1, "keep": keep or path == PING}

        return server(draws, routes={WORK: [call(WORK)], PING: [call(PING)]})

    around = Around(ports=ports)
    beside = frozenset({"saturation.plateau", "retrograde.throughput"})  # what fails is cheap and asks again
    return Drawn(
        Known(
            Setup((behind, front(keep=False)), around=around),
            Label((need("ports.exhausted", tier="B"),), LIMITS_OF_THE_MACHINE | beside),
            {"ports": Number(ports, "ports"), "alone": ms(base)},
        ),
        Known(
            Setup((behind, front(keep=True)), around=around),
            Label((), LIMITS_OF_THE_MACHINE),
            {"alone": ms(base)},
        ),
    )


def _thin_pipe(draws: Draws) -> Drawn:
    base, size = draws.scaled(2, 8), draws.whole(50_000, 300_000)
    # The pipe serves in turns of 5 ms: shorter answers would go one after the other, as through a lock, where
    # packets of several answers mix on a real one.
    rate = round(size / draws.graver(0.012, 0.04))
    servers = (server(draws, wait(base), {"do": "answer", "bytes": size}),)
    pipe = {"bandwidth": {"rate": rate, "shared": True, "of": "response"}}
    capacity = rate / size
    return Drawn(
        Known(
            Setup(servers, Front((0,), pipe)),
            Label((need("network.bound", tier="B"), need("saturation.plateau"))),
            {"capacity": per_s(capacity), "bandwidth": Number(rate, "bytes/s")},
        ),
        Known(Setup(servers, Front((0,))), Label((), LIMITS_OF_THE_MACHINE | {"network.bound"})),
    )


FAMILIES: Final = (
    Family(
        "skewed-turns",
        "one of three replicas gets most of the turns",
        _skewed,
        looks_like=("slow-replica", "worker-pool"),
        mend=Mend("even turns", ("lb.imbalance",)),
    ),
    Family(
        "slow-replica",
        "one of three replicas takes longer",
        _slow_one,
        looks_like=("skewed-turns", "slow-path"),
        mend=Mend("the slow one as fast as the others", ("backend.slow-one",)),
    ),
    Family("hashed-connections", "few connections are hashed over computing event loops", _hashed, "decoy"),
    Family("retries", "a gateway asks again when the service behind it fails", _retries),
    Family(
        "unpooled-calls",
        "a gateway opens a connection for each call, and its local ports run out",
        _unpooled,
        looks_like=("retries", "shedding"),
        wants=("networks",),
    ),
    Family("thin-pipe", "large answers through a narrow pipe", _thin_pipe, looks_like=("delay-limiter",)),
)
