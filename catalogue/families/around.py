"""What lies beside the service: quotas, neighbours, other clients, the generator itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from catalogue.drawing import Draws
from catalogue.family import (
    LIMITS_OF_THE_MACHINE,
    Around,
    Drawn,
    Family,
    Known,
    Label,
    Mend,
    Number,
    Setup,
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
    work, cores = draws.scaled(1, 4), draws.graver(0.6, 0.2)
    settings = server(draws, burn(work), serve=threads(32), cpus=[0])
    free = Setup((settings,))
    tied = replace(free, around=Around(quota_cores=cores))
    full = need("cpu.saturated", tier="B")
    label = Label(
        (need("cgroup.throttled", tier="B"), need("saturation.plateau")),
        frozenset({"cpu.saturated", "pause.periodic"}),
    )
    twice, most = Around(quota_cores=2 * cores), min(2 * cores, 1.0)  # it has one processor
    # A user who is alone uses the quota up as well: he takes work / cores on average, and the knee is at one.
    tied_numbers = plateau(cores * 1e3 / work, work / cores, quota=Number(cores, "cores"), work=ms(work))
    return Drawn(
        Known(tied, label, tied_numbers),
        Known(free, Label((full, need("saturation.plateau"))), plateau(1e3 / work, work, work=ms(work))),
        remedied(settings, label, most * 1e3 / work, around=twice),
    )


def _paging(draws: Draws) -> Drawn:
    base, pages, times = draws.scaled(1, 3), draws.whole(64, 256), draws.graver(2, 4)
    size = round(ROOM * times) // PAGE * PAGE
    touch = {"do": "touch", "file": "table.data", "bytes": size, "pages": pages}
    settings = server(draws, wait(base), touch, serve=threads(32), folder="@folder")
    roomy = Setup((settings,), around=Around(memory_bytes=2 * size))
    tight = replace(roomy, around=Around(memory_bytes=ROOM))
    of_threads = frozenset({"threads.pool-limit", "outside.handler-wait", "downstream.serialised"})
    beside = LIMITS_OF_THE_MACHINE | of_threads
    # A page is as likely as any other, so those that have room answer their share; what the threads need of
    # it is missing beside.
    faults = {"faults": many(pages * (1 - ROOM / size)), "pages": many(pages)}
    return Drawn(
        Known(tight, Label((need("memory.pressure", tier="B"),), beside | {"disk.bound"}), faults),
        Known(roomy, Label((), beside)),
    )


def _neighbour(draws: Draws) -> Drawn:
    work = draws.scaled(2, 8)
    settings = server(draws, burn(work), serve=threads(32), cpus=[0])
    alone = Setup((settings,))
    beside = replace(alone, around=Around(neighbour_cores=draws.whole(1, 2), neighbour_cpus=(0,)))
    full = need("cpu.saturated", tier="B")
    return Drawn(
        Known(
            beside,
            Label(
                (need("host.interference", tier="B"),),
                frozenset({"cpu.saturated", "saturation.plateau", "colocation.contention"}),
            ),
            {"work": ms(work)},
        ),
        Known(alone, Label((full, need("saturation.plateau"))), plateau(1e3 / work, work, work=ms(work))),
    )


def _slow_generator(draws: Draws) -> Drawn:
    settings = server(draws, wait(draws.scaled(0.5, 2)), cpus=[0])
    calm = Setup((settings,), around=Around(generator_cpus=(1,)))
    hogs = Around(neighbour_cores=draws.whole(2, 4), neighbour_cpus=(1,), generator_cpus=(1,))
    return Drawn(
        Known(
            replace(calm, around=hogs),
            Label((need("gen.bottleneck"),), frozenset({"load.underdriven", "colocation.contention"})),
        ),
        Known(calm, Label((), LIMITS_OF_THE_MACHINE)),
    )


def _co_located(draws: Draws) -> Drawn:
    work = draws.scaled(0.1, 0.4)
    settings = server(draws, burn(work), serve=threads(16), cpus=[0])
    together = Setup((settings,), around=Around(generator_cpus=(0,)))
    apart = replace(together, around=Around(generator_cpus=(1,)))
    return Drawn(
        Known(
            together,
            Label(
                (need("colocation.contention", tier="B"),),
                frozenset({"cpu.saturated", "gen.bottleneck", "saturation.plateau"}),
            ),
        ),
        Known(
            apart,
            Label((need("cpu.saturated", tier="B"),), frozenset({"saturation.plateau", "gen.bottleneck"})),
            plateau(1e3 / work, work, work=ms(work)),
        ),
    )


def _visited(draws: Draws) -> Drawn:
    base, every = draws.scaled(5, 20), draws.graver(1_000, 200)
    visitors = [{"path": PING, "every_ms": every}]
    return pair(
        server(draws, wait(base), visitors=visitors),
        Label((need("accounting.explained", "accounting.excess", tier="C"),), LIMITS_OF_THE_MACHINE),
        {"visits": per_s(1e3 / every), "alone": ms(base)},
        server(draws, wait(base)),
    )


def _checked_loop(draws: Draws) -> Drawn:
    """Scrapes and a computing loop: the excess is there, and it is not what limits."""
    work, every = draws.graver(6, 20), draws.scaled(300, 1_000)
    blocked, flat = need("eventloop.blocked", tier="B"), need("saturation.plateau")
    beside = frozenset({"hol.correlation", "colocation.contention"})
    rest = {"serve": loops()}
    numbers = plateau(1e3 / work, work, work=ms(work), visits=per_s(1e3 / every))
    return pair(
        server(draws, burn(work), visitors=[{"path": PING, "every_ms": every}], **rest),
        Label((blocked, need("accounting.explained", "accounting.excess", tier="C"), flat), beside),
        numbers,
        server(draws, burn(work), **rest),
        Label((blocked, flat), beside),
        plateau(1e3 / work, work, work=ms(work)),
    )


FAMILIES: Final = (
    Family(
        "quota",
        "a quota stops the service for a part of each period",
        _quota,
        looks_like=("pauses", "cpu-threads"),
        wants=("control groups", "two processors"),
        mend=Mend("twice the quota, on one processor", ("cgroup.throttled",), ("a share of", "twice")),
    ),
    Family(
        "paging",
        "requests read pages of a file that is larger than the memory the service may use",
        _paging,
        looks_like=("disk-bound", "worker-pool"),
        wants=("memory groups",),
    ),
    Family(
        "neighbour",
        "another program takes the service's processor",
        _neighbour,
        looks_like=("cpu-threads",),
        wants=("two processors",),
        mend=Mend("the neighbour is gone", ("host.interference",)),
    ),
    Family(
        "slow-generator",
        "the generator itself has too little processor time",
        _slow_generator,
        looks_like=("db-lock", "cpu-threads"),
        wants=("two processors",),
    ),
    Family(
        "co-located",
        "generator and service on one processor",
        _co_located,
        looks_like=("cpu-threads",),
        wants=("two processors",),
        mend=Mend("the generator is elsewhere", ("colocation.contention",)),
    ),
    Family("visited", "somebody else asks for the cheap path at fixed times", _visited),
    Family("visited-loop", "the same beside a blocked event loop", _checked_loop, kind="composite"),
)
