"""Flaws in the environment of a service: quotas, neighbours, other clients, the generator itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from catalogue.drawing import Draws
from catalogue.family import (
    LIMITS_OF_THE_MACHINE,
    Drawn,
    Environment,
    Family,
    Fix,
    Label,
    Number,
    Setup,
    Specimen,
    need,
)
from catalogue.parts import (
    PING,
    burn,
    loops,
    many,
    ms,
    pair,
    per_s,
    plateau,
    remedied,
    server,
    threads,
    wait,
)

ROOM: Final = 32 << 20  # bytes of memory
PAGE: Final = 4096


def _quota(draws: Draws) -> Drawn:
    work, cores = draws.scaled(1, 4), draws.by_severity(0.6, 0.2)
    settings = server(draws, burn(work), serve=threads(32), cpus=[0])
    free = Setup((settings,))
    throttled = replace(free, environment=Environment(quota_cores=cores))
    full = need("cpu.saturated", tier="B")
    label = Label(
        (need("cgroup.throttled", tier="B"), need("saturation.plateau")),
        frozenset({"cpu.saturated", "pause.periodic"}),
    )
    twice, most = Environment(quota_cores=2 * cores), min(2 * cores, 1.0)  # it runs on one processor
    # A single user also uses up the quota: a request takes work / cores on average; the knee is one user.
    throttled_numbers = plateau(cores * 1e3 / work, work / cores, quota=Number(cores, "cores"), work=ms(work))
    return Drawn(
        Specimen(throttled, label, throttled_numbers),
        Specimen(free, Label((full, need("saturation.plateau"))), plateau(1e3 / work, work, work=ms(work))),
        remedied(settings, label, most * 1e3 / work, environment=twice),
    )


def _paging(draws: Draws) -> Drawn:
    base, pages, times = draws.scaled(1, 3), draws.whole(64, 256), draws.by_severity(2, 4)
    size = round(ROOM * times) // PAGE * PAGE
    touch = {"do": "touch", "file": "table.data", "bytes": size, "pages": pages}
    settings = server(draws, wait(base), touch, serve=threads(32), folder="@folder")
    roomy = Setup((settings,), environment=Environment(memory_bytes=2 * size))
    tight = replace(roomy, environment=Environment(memory_bytes=ROOM))
    of_threads = frozenset({"threads.pool-limit", "outside.handler-wait", "downstream.serialised"})
    allowed = LIMITS_OF_THE_MACHINE | of_threads
    # All pages are equally likely, so ROOM / size of them are in memory; the little that the threads need of
    # that memory is left out.
    faults = {"faults": many(pages * (1 - ROOM / size)), "pages": many(pages)}
    return Drawn(
        Specimen(tight, Label((need("memory.pressure", tier="B"),), allowed | {"disk.bound"}), faults),
        Specimen(roomy, Label((), allowed)),
    )


def _neighbour(draws: Draws) -> Drawn:
    work = draws.scaled(2, 8)
    settings = server(draws, burn(work), serve=threads(32), cpus=[0])
    alone = Setup((settings,))
    shared = replace(alone, environment=Environment(neighbour_cores=draws.whole(1, 2), neighbour_cpus=(0,)))
    full = need("cpu.saturated", tier="B")
    return Drawn(
        Specimen(
            shared,
            Label(
                (need("host.interference", tier="B"),),
                frozenset({"cpu.saturated", "saturation.plateau", "colocation.contention"}),
            ),
            {"work": ms(work)},
        ),
        Specimen(alone, Label((full, need("saturation.plateau"))), plateau(1e3 / work, work, work=ms(work))),
    )


def _slow_generator(draws: Draws) -> Drawn:
    settings = server(draws, wait(draws.scaled(0.5, 2)), cpus=[0])
    unloaded = Setup((settings,), environment=Environment(generator_cpus=(1,)))
    hogs = Environment(neighbour_cores=draws.whole(2, 4), neighbour_cpus=(1,), generator_cpus=(1,))
    return Drawn(
        Specimen(
            replace(unloaded, environment=hogs),
            Label((need("gen.bottleneck"),), frozenset({"load.underdriven", "colocation.contention"})),
        ),
        Specimen(unloaded, Label((), LIMITS_OF_THE_MACHINE)),
    )


def _co_located(draws: Draws) -> Drawn:
    work = draws.scaled(0.1, 0.4)
    settings = server(draws, burn(work), serve=threads(16), cpus=[0])
    together = Setup((settings,), environment=Environment(generator_cpus=(0,)))
    apart = replace(together, environment=Environment(generator_cpus=(1,)))
    return Drawn(
        Specimen(
            together,
            Label(
                (need("colocation.contention", tier="B"),),
                frozenset({"cpu.saturated", "gen.bottleneck", "saturation.plateau"}),
            ),
        ),
        Specimen(
            apart,
            Label((need("cpu.saturated", tier="B"),), frozenset({"saturation.plateau", "gen.bottleneck"})),
            plateau(1e3 / work, work, work=ms(work)),
        ),
    )


def _visited(draws: Draws) -> Drawn:
    base, every = draws.scaled(5, 20), draws.by_severity(1_000, 200)
    visitors = [{"path": PING, "every_ms": every}]
    return pair(
        server(draws, wait(base), visitors=visitors),
        Label((need("accounting.explained", "accounting.excess", tier="C"),), LIMITS_OF_THE_MACHINE),
        {"visits": per_s(1e3 / every), "alone": ms(base)},
        server(draws, wait(base)),
    )


def _visited_loop(draws: Draws) -> Drawn:
    """Draw a blocked event loop that also gets requests of another client, which are not the limit."""
    work, every = draws.by_severity(6, 20), draws.scaled(300, 1_000)
    blocked, flat = need("eventloop.blocked", tier="B"), need("saturation.plateau")
    allowed = frozenset({"hol.correlation", "colocation.contention"})
    rest = {"serve": loops()}
    numbers = plateau(1e3 / work, work, work=ms(work), visits=per_s(1e3 / every))
    return pair(
        server(draws, burn(work), visitors=[{"path": PING, "every_ms": every}], **rest),
        Label((blocked, need("accounting.explained", "accounting.excess", tier="C"), flat), allowed),
        numbers,
        server(draws, burn(work), **rest),
        Label((blocked, flat), allowed),
        plateau(1e3 / work, work, work=ms(work)),
    )


FAMILIES: Final = (
    Family(
        "quota",
        "a CPU quota stops the service for part of each period",
        _quota,
        looks_like=("pauses", "cpu-threads"),
        wants=("control groups", "two processors"),
        fix=Fix("twice the quota, on one processor", ("cgroup.throttled",), ("a share of", "twice")),
    ),
    Family(
        "paging",
        "requests read pages of a file that does not fit in the memory limit of the service",
        _paging,
        looks_like=("disk-bound", "worker-pool"),
        wants=("memory groups",),
    ),
    Family(
        "neighbour",
        "another program competes for the service's processor",
        _neighbour,
        looks_like=("cpu-threads",),
        wants=("two processors",),
        fix=Fix("no neighbour", ("host.interference",)),
    ),
    Family(
        "slow-generator",
        "the load generator gets too little CPU time",
        _slow_generator,
        looks_like=("db-lock", "cpu-threads"),
        wants=("two processors",),
    ),
    Family(
        "co-located",
        "load generator and service share a processor",
        _co_located,
        looks_like=("cpu-threads",),
        wants=("two processors",),
        fix=Fix("the generator on another processor", ("colocation.contention",)),
    ),
    Family("visited", "another client requests the cheap path at regular intervals", _visited),
    Family(
        "visited-loop",
        "a blocked event loop, and another client as in `visited`",
        _visited_loop,
        kind="composite",
    ),
)
