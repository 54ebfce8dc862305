"""Computing: on an event loop, where it delays all requests, and on threads, where it fills the processor."""

from __future__ import annotations

import os
from typing import Final

from catalogue.drawing import Draws
from catalogue.family import Drawn, Family, Fix, Label, Number, need
from catalogue.parts import burn, hidden, holding, loops, ms, pair, plateau, remedied, server, threads, wait

BLOCKED: Final = need("eventloop.blocked", tier="B")
PLATEAU: Final = need("saturation.plateau")
ALLOWED_WITH_A_LOOP: Final = frozenset({"hol.correlation", "scaling.workers", "colocation.contention"})


def cores() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0))


def _one(draws: Draws) -> Drawn:
    work = draws.by_severity(5, 30)
    label = Label((BLOCKED, PLATEAU), ALLOWED_WITH_A_LOOP)
    twice = server(draws, burn(work), serve=loops(2))
    return pair(
        server(draws, burn(work), serve=loops()),
        label,
        plateau(1e3 / work, work, work=ms(work)),
        server(draws, wait(work), serve=loops()),
        repaired=remedied(twice, label, 2e3 / work),
    )


def _one_a_core(draws: Draws) -> Drawn:
    work, many = draws.by_severity(6, 30), cores()
    return pair(
        server(draws, burn(work), serve=loops(many)),
        Label((BLOCKED, PLATEAU), ALLOWED_WITH_A_LOOP | {"cpu.saturated", "lb.imbalance"}),
        plateau(many * 1e3 / work, work, work=ms(work), processes=Number(many, "processes")),
        server(draws, wait(work), serve=loops(many)),
    )


def _more_than_cores(draws: Draws) -> Drawn:
    work, many = draws.by_severity(6, 30), 2 * cores()
    return pair(
        server(draws, burn(work), serve=loops(many)),
        Label(
            (need("cpu.saturated", tier="B"), PLATEAU),
            ALLOWED_WITH_A_LOOP | {"eventloop.blocked", "lb.imbalance"},
        ),
        plateau(cores() * 1e3 / work, work, work=ms(work)),
        server(draws, wait(work), serve=loops(many)),
    )


def _passes(draws: Draws) -> Drawn:
    work, passes = draws.by_severity(5, 25), draws.whole(2, 4)
    again = [{"do": "pass"}] * (passes - 1)
    numbers = plateau(1e3 / work, work, work=ms(work))
    return pair(
        server(draws, *again, burn(work), serve=loops()),
        Label((BLOCKED, need("loop.multipass", tier="B"), PLATEAU), ALLOWED_WITH_A_LOOP),
        numbers | {"passes": Number(passes, "passes")},
        server(draws, burn(work), serve=loops()),
        Label((BLOCKED, PLATEAU), ALLOWED_WITH_A_LOOP),
        numbers,
    )


def _threads(draws: Draws) -> Drawn:
    work = draws.by_severity(2, 12)
    place = {"cpus": [0]}
    label = Label((need("cpu.saturated", tier="B"), PLATEAU))
    return pair(
        server(draws, burn(work), serve=threads(64), **place),
        label,
        plateau(1e3 / work, work, work=ms(work)),
        server(draws, wait(work), serve=threads(64), **place),
        # 64 waiting threads are a limit too, at 64 / work.
        Label(
            (),
            frozenset({"threads.pool-limit", "outside.handler-wait", "saturation.plateau"})
            | frozenset({"cpu.saturated", "load.underdriven", "no-finding.healthy", "gen.bottleneck"}),
        ),
        repaired=remedied(server(draws, burn(work / 2), serve=threads(64), **place), label, 2e3 / work),
    )


def _in_turns(draws: Draws) -> Drawn:
    """Compute below 2 ms at times: short work holds up no request that computes nothing."""
    work = draws.by_severity(1, 12)
    return pair(
        server(draws, *holding("turn", burn(work)), serve=threads(64), resources={"turn": hidden(1)}),
        Label((need("cpu.one-core", tier="B"), PLATEAU), frozenset({"colocation.contention"})),
        plateau(1e3 / work, work, work=ms(work)),
        server(draws, *holding("turn", wait(work)), serve=threads(64), resources={"turn": hidden(1)}),
        Label((need("downstream.serialised", tier="A"), PLATEAU)),
    )


FAMILIES: Final = (
    Family(
        "loop-blocked",
        "requests compute on the only event loop",
        _one,
        looks_like=("single-worker", "db-lock", "cpu-threads"),
        fix=Fix("two processes, each on its own core", ("eventloop.blocked",), ("processes in place of",)),
    ),
    Family(
        "loops-blocked",
        "requests compute on event loops, one per core",
        _one_a_core,
        looks_like=("cpu-threads",),
    ),
    Family("loops-crowded", "requests compute on event loops, two per core", _more_than_cores),
    Family(
        "loop-passes",
        "a request passes through the event loop several times, each time behind requests that compute",
        _passes,
        looks_like=("loop-blocked",),
    ),
    Family(
        "cpu-in-turns",
        "threads take turns to compute: one core is full, the others are idle",
        _in_turns,
        looks_like=("loop-blocked", "cpu-threads", "db-lock"),
    ),
    Family(
        "cpu-threads",
        "threads compute until the processor is full",
        _threads,
        looks_like=("loop-blocked",),
        fix=Fix("half the CPU time per request", ("cpu.saturated",), ("half the CPU time",)),
    ),
)
