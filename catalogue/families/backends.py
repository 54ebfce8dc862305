"""Several servers behind one address."""

from __future__ import annotations

from typing import Any, Final

from catalogue.drawing import Draws
from catalogue.families.loops import ALLOWED_WITH_A_LOOP, BLOCKED
from catalogue.family import (
    LIMITS_OF_THE_MACHINE,
    Drawn,
    Environment,
    Family,
    Fix,
    Front,
    Label,
    Number,
    Setup,
    Specimen,
    need,
)
from catalogue.parts import PING, WORK, burn, loops, ms, per_s, plateau, server, share, threads, wait

PART: Final = need("part.full")
# A replica that holds a thread per waiting request is limited by its threads, in twins as well.
OF_REPLICAS: Final = frozenset(
    {"saturation.plateau", "threads.pool-limit", "outside.handler-wait", "downstream.serialised"}
)
FULL_FIRST: Final = frozenset({"part.full"})  # the replica that is the limit, as its requests show it


def _replicas(draws: Draws, times_ms: list[float], most: int) -> tuple[dict[str, Any], ...]:
    """Return servers that differ in how long they wait, and in their names."""
    return tuple(
        server(draws, wait(time), serve=threads(most), backend=name)
        for time, name in zip(times_ms, "abcdef", strict=False)
    )


def _skewed(draws: Draws) -> Drawn:
    work, most, turns = draws.scaled(10, 40), draws.whole(2, 6), draws.whole(3, 6)
    replicas = _replicas(draws, [work] * 3, most)
    hot = turns / (turns + 2)
    of_replica = most * 1e3 / work
    return Drawn(
        Specimen(
            Setup(replicas, Front((0,) * turns + (1, 2)), metrics_from=None),
            Label((need("lb.imbalance", tier="B"),), OF_REPLICAS | LIMITS_OF_THE_MACHINE | FULL_FIRST),
            plateau(of_replica / hot, work, hottest=share(hot), imbalance=Number(3 * hot, "ratio")),
        ),
        Specimen(
            Setup(replicas, Front((0, 1, 2)), metrics_from=None),
            Label((), OF_REPLICAS | LIMITS_OF_THE_MACHINE),
            plateau(3 * of_replica, work),
        ),
    )


def _slow_one(draws: Draws) -> Drawn:
    work, slower, most = draws.scaled(10, 30), draws.by_severity(1.5, 4), draws.whole(8, 16)
    slow = work * slower
    return Drawn(
        Specimen(
            Setup(_replicas(draws, [work, work, slow], most), Front((0, 1, 2)), metrics_from=None),
            Label(
                (need("backend.slow-one", tier="B"),),
                OF_REPLICAS | LIMITS_OF_THE_MACHINE | {"mixture.slow-path"} | FULL_FIRST,
            ),
            plateau(3 * most * 1e3 / slow, (2 * work + slow) / 3, slower=Number(slower, "ratio")),
        ),
        Specimen(
            Setup(_replicas(draws, [work] * 3, most), Front((0, 1, 2)), metrics_from=None),
            Label((), OF_REPLICAS | LIMITS_OF_THE_MACHINE),
            plateau(3 * most * 1e3 / work, work),
        ),
    )


def _full_one(draws: Draws) -> Drawn:
    """All replicas take as long, and one of them serves few requests at once."""
    work, few = draws.scaled(15, 40), draws.whole(1, 3)
    allowed = frozenset(
        {"backend.slow-one", "downstream.serialised", "threads.pool-limit", "saturation.plateau"}
    )

    def replicas(most: int) -> tuple[dict[str, Any], ...]:
        others = (server(draws, wait(work), backend=name) for name in "ab")
        return (*others, server(draws, wait(work), serve=threads(most), backend="c"))

    return Drawn(
        Specimen(
            Setup(replicas(few), Front((0, 1, 2)), metrics_from=None),
            Label((PART,), allowed),
            plateau(3 * few * 1e3 / work, work, places=Number(few, "threads")),
        ),
        Specimen(
            Setup(replicas(2_000), Front((0, 1, 2)), metrics_from=None), Label((), LIMITS_OF_THE_MACHINE)
        ),
    )


def _hashed(draws: Draws) -> Drawn:
    work, many = draws.by_severity(6, 20), draws.whole(2, 3)
    # With few connections, an uneven split is chance: the finding is allowed but not needed.
    label = Label((BLOCKED,), ALLOWED_WITH_A_LOOP | LIMITS_OF_THE_MACHINE | {"lb.imbalance"})
    settings = server(draws, burn(work), listen={"hashed": True}, serve=loops(many))
    numbers = {"alone": ms(work), "work": ms(work), "processes": Number(many, "processes")}
    return Drawn(Specimen(Setup((settings,)), label, numbers))


def _retries(draws: Draws) -> Drawn:
    base, fails, tries = draws.scaled(3, 10), draws.by_severity(0.04, 0.2), draws.whole(2, 4)
    behind = server(draws, wait(base), {"do": "fail", "share": fails, "status": 503})

    def front(times: int) -> dict[str, Any]:
        def call(path: str, tries: int) -> dict[str, Any]:
            return {"do": "call", "port": "@0", "path": path, "tries": tries}

        return server(draws, routes={WORK: [call(WORK, times)], PING: [call(PING, 1)]})

    excess = sum(fails**n for n in range(1, tries))
    return Drawn(
        Specimen(
            Setup((behind, front(tries)), metrics_from=0),
            Label((need("retry.amplification", tier="C"),), LIMITS_OF_THE_MACHINE | {"accounting.excess"}),
            {"excess": share(excess), "alone": ms(base * (1 + excess))},
        ),
        Specimen(
            Setup((behind, front(1)), metrics_from=0),
            Label((), LIMITS_OF_THE_MACHINE),
            {"fails": share(fails), "alone": ms(base)},
        ),
    )


def _unpooled(draws: Draws) -> Drawn:
    """On loopback, Linux reuses a port after 1 s, so calls per second cannot exceed the number of ports."""
    base, ports = draws.scaled(2, 6), round(draws.by_severity(1_200, 400))
    behind = server(draws, wait(base))

    def front(*, keep: bool) -> dict[str, Any]:
        def call(path: str) -> dict[str, Any]:
            return {"do": "call", "port": "@0", "path": path, "tries": 1, "keep": keep or path == PING}

        return server(draws, routes={WORK: [call(WORK)], PING: [call(PING)]})

    environment = Environment(ports=ports)
    # Failures are fast, and the user sends the next request at once.
    allowed = frozenset({"saturation.plateau", "retrograde.throughput"})
    return Drawn(
        Specimen(
            Setup((behind, front(keep=False)), environment=environment),
            Label((need("ports.exhausted", tier="B"),), LIMITS_OF_THE_MACHINE | allowed),
            {"ports": Number(ports, "ports"), "alone": ms(base)},
        ),
        Specimen(
            Setup((behind, front(keep=True)), environment=environment),
            Label((), LIMITS_OF_THE_MACHINE),
            {"alone": ms(base)},
        ),
    )


def _thin_pipe(draws: Draws) -> Drawn:
    base, size = draws.scaled(2, 8), draws.whole(50_000, 300_000)
    # The proxy limits bandwidth in slots of 5 ms. Shorter answers would pass one after the other, as with a
    # lock, while a real link interleaves the packets of several answers.
    rate = round(size / draws.by_severity(0.012, 0.04))
    servers = (server(draws, wait(base), {"do": "answer", "bytes": size}),)
    pipe = {"bandwidth": {"rate": rate, "shared": True, "of": "response"}}
    capacity = rate / size
    return Drawn(
        Specimen(
            Setup(servers, Front((0,), pipe)),
            Label((need("network.bound", tier="B"), need("saturation.plateau"))),
            {"capacity": per_s(capacity), "bandwidth": Number(rate, "bytes/s")},
        ),
        Specimen(Setup(servers, Front((0,))), Label((), LIMITS_OF_THE_MACHINE | {"network.bound"})),
    )


FAMILIES: Final = (
    Family(
        "skewed-turns",
        "one of three replicas gets most of the turns",
        _skewed,
        looks_like=("slow-replica", "worker-pool"),
        fix=Fix("even turns", ("lb.imbalance",)),
    ),
    Family(
        "slow-replica",
        "one of three replicas takes longer",
        _slow_one,
        looks_like=("skewed-turns", "slow-path"),
        fix=Fix("the slow replica as fast as the others", ("backend.slow-one",)),
    ),
    Family(
        "full-replica",
        "one of three replicas serves few requests at once",
        _full_one,
        looks_like=("slow-replica", "skewed-turns", "slow-path", "db-lock"),
    ),
    Family("hashed-connections", "few connections are hashed to event loops that compute", _hashed, "decoy"),
    Family("retries", "a gateway retries when the service behind it fails", _retries),
    Family(
        "unpooled-calls",
        "a gateway opens a connection for each call, and its local ports run out",
        _unpooled,
        looks_like=("retries", "shedding"),
        wants=("networks",),
    ),
    Family(
        "thin-pipe",
        "large answers over a link with little bandwidth",
        _thin_pipe,
        looks_like=("delay-limiter",),
    ),
)
