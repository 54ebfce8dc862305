"""Computing: on event loops, where it holds up everybody, and on threads, where it takes the processor."""

from __future__ import annotations

import os
from typing import Final

from catalogue.drawing import Draws
from catalogue.family import Drawn, Family, Label, Mend, Number, need
from catalogue.parts import burn, loops, ms, pair, plateau, remedied, server, threads, wait

BLOCKED: Final = need("eventloop.blocked", tier="B")
PLATEAU: Final = need("saturation.plateau")
BESIDE_A_LOOP: Final = frozenset({"hol.correlation", "scaling.workers", "colocation.contention"})


def cores() -> int:
    """Processors of this machine that we may use."""
    return len(os.sched_getaffinity(0))


def _one(draws: Draws) -> Drawn:
    work = draws.graver(5, 30)
    label = Label((BLOCKED, PLATEAU), BESIDE_A_LOOP)
    twice = server(draws, burn(work), serve=loops(2))
    return pair(
        server(draws, burn(work), serve=loops()),
        label,
        plateau(1e3 / work, work, work=ms(work)),
        server(draws, wait(work), serve=loops()),
        mended=remedied(twice, label, 2e3 / work),
    )


def _one_a_core(draws: Draws) -> Drawn:
    work, many = draws.graver(6, 30), cores()
    return pair(
        server(draws, burn(work), serve=loops(many)),
        Label((BLOCKED, PLATEAU), BESIDE_A_LOOP | {"cpu.saturated", "lb.imbalance"}),
        plateau(many * 1e3 / work, work, work=ms(work), processes=Number(many, "processes")),
        server(draws, wait(work), serve=loops(many)),
    )


def _more_than_cores(draws: Draws) -> Drawn:
    work, many = draws.graver(6, 30), 2 * cores()
    return pair(
        server(draws, burn(work), serve=loops(many)),
        Label(
            (need("cpu.saturated", tier="B"), PLATEAU),
            BESIDE_A_LOOP | {"eventloop.blocked", "lb.imbalance"},
        ),
        plateau(cores() * 1e3 / work, work, work=ms(work)),
        server(draws, wait(work), serve=loops(many)),
    )


def _passes(draws: Draws) -> Drawn:
    work, passes = draws.graver(5, 25), draws.whole(2, 4)
    again = [{"do": "pass"}] * (passes - 1)
    numbers = plateau(1e3 / work, work, work=ms(work))
    return pair(
        server(draws, *again, burn(work), serve=loops()),
        Label((BLOCKED, need("loop.multipass", tier="B"), PLATEAU), BESIDE_A_LOOP),
        numbers | {"passes": Number(passes, "passes")},
        server(draws, burn(work), serve=loops()),
        Label((BLOCKED, PLATEAU), BESIDE_A_LOOP),
        numbers,
    )


def _threads(draws: Draws) -> Drawn:
    work = draws.graver(2, 12)
    place = {"cpus": [0]}
    label = Label((need("cpu.saturated", tier="B"), PLATEAU))
    return pair(
        server(draws, burn(work), serve=threads(64), **place),
        label,
        plateau(1e3 / work, work, work=ms(work)),
        server(draws, wait(work), serve=threads(64), **place),
        # 64 threads that wait are a limit of their own, of 64 / work.
        Label(
            (),
            frozenset({"threads.pool-limit", "outside.handler-wait", "saturation.plateau"})
            | frozenset({"cpu.saturated", "load.underdriven", "no-finding.healthy", "gen.bottleneck"}),
        ),
        mended=remedied(server(draws, burn(work / 2), serve=threads(64), **place), label, 2e3 / work),
    )


FAMILIES: Final = (
    Family(
        "loop-blocked",
        "requests compute on the one event loop",
        _one,
        looks_like=("single-worker", "db-lock", "cpu-threads"),
        mend=Mend("two processes, each on a core", ("eventloop.blocked",), ("processes in place of",)),
    ),
    Family(
        "loops-blocked",
        "requests compute on event loops, one for each core",
        _one_a_core,
        looks_like=("cpu-threads",),
    ),
    Family("loops-crowded", "event loops that compute, twice as many as cores", _more_than_cores),
    Family(
        "loop-passes",
        "a handler queues again behind computing requests",
        _passes,
        looks_like=("loop-blocked",),
    ),
    Family(
        "cpu-threads",
        "threads compute until the processor is full",
        _threads,
        looks_like=("loop-blocked",),
        mend=Mend("half the CPU time of a request", ("cpu.saturated",), ("half the CPU time",)),
    ),
)
