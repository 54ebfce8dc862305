"""Services that wait and do not compute, as facts: users, places, the time that each is held, by the
bounds of a closed loop (X = min(N / R1, W / hold), R = N / X).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from loadlens.model.facts import ConcurrencyLimit, Curve, Gauge, ProbeWatch, Step, Times
from loadlens.model.finding import Estimate
from tests.unit.diagnose.build import curve, estimate, process, step

USERS = (1, 2, 4, 8, 16, 32)
LOCK = ("locks_held", "locks_wanted", "")
POOL = ("pool_in_use", "pool_pending", "pool_max")
THREADS = ("threads_busy", "threads_queued", "threads_max")


def gauge(name: str, mean: float, *, trials: int = 3) -> Gauge:
    figure = Estimate(name, "", mean, max(0.0, mean * 0.98), mean * 1.02, trials, 0, "built")
    return Gauge(name, figure, mean)


def places(
    kind: Any, held: float, waiting: float | None, bound: float | None, names: tuple[str, str, str]
) -> ConcurrencyLimit:
    return ConcurrencyLimit(
        kind,
        gauge(names[0], held),
        waiting=None if waiting is None else gauge(names[1], waiting),
        bound=None if bound is None else gauge(names[2], bound),
    )


def waiting(
    hold_s: float = 0.02,
    *,
    base_s: float = 0.01,
    size: int = 1,
    users: tuple[int, ...] = USERS,
    coupling: float = 0.0,
    cpu: float = 0.05,
    watched: bool = True,
    exports: str = "",
    trials: int = 3,
    **of_top: Any,
) -> Curve:
    """Each request takes `base_s` and then holds one of `size` places; no user pauses.

    Args:
        coupling: What a probe waits, over what the load waits.
        exports: `lock`, `pool` or `threads`: gauges that the service exports, if any.
        of_top: Replaced in the last step.
    """
    alone, steps = base_s + hold_s, []
    for n in users:
        rate = min(n / alone, size / hold_s)
        response = n / rate
        waits = response - alone
        steps.append(
            step(
                n,
                rate,
                response,
                trials=trials,
                probes=(probe(0.002 + coupling * waits, delayed=0.9 if coupling * waits > 0.001 else 0.01),),
                processes=(process(cpu, hot=1 if cpu >= 0.05 else 0),) if watched else (),
                host_cpu=estimate(cpu + 0.2, unit="cores"),
                places=_exported(exports, rate * hold_s, rate * waits, size),
            )
        )
    steps[-1] = replace(steps[-1], **of_top)
    return curve(*steps, think=0.0)


def probe(mean: float, *, idle: float = 0.002, delayed: float = 0.01, request: str = "GET /a") -> ProbeWatch:
    """A probe, the median of which is its mean."""
    low, high = max(0.0, delayed - 0.01), min(1.0, delayed + 0.01)
    share = Estimate("d", "share", delayed, low, high, 3, 400, "built")
    times = Times(estimate(mean), estimate(mean), estimate(2 * mean))
    return ProbeWatch("a", request, times, idle, share, 400, True, False)


def _exported(kind: str, held: float, waits: float, size: int) -> tuple[ConcurrencyLimit, ...]:
    if kind == "lock":
        return (places("lock", held, waits, None, LOCK),)
    if kind == "pool":
        return (places("pool", held, waits, size, POOL),)
    return (places("threads", held, None, size, THREADS),) if kind == "threads" else ()


def with_places(built: Curve, *more: ConcurrencyLimit) -> Curve:
    """Further gauges at the highest load."""
    last = built.steps[-1]
    return replace(built, steps=(*built.steps[:-1], replace(last, places=(*last.places, *more))))


def renamed(built: Curve) -> Curve:
    """The same curve under other names everywhere."""
    return replace(
        built,
        label="Fall",
        anchor="bild",
        costliest="ж",
        steps=tuple(_renamed(level) for level in built.steps),
    )


def _renamed(level: Step) -> Step:
    return replace(
        level,
        label="Schritt",
        classes=tuple(replace(c, label="ж", request="PUT /ж") for c in level.classes),
        probes=tuple(replace(p, label="ü", request="HEAD /ü") for p in level.probes),
        processes=tuple(replace(p, label="x") for p in level.processes),
        places=tuple(
            replace(
                p,
                held=replace(p.held, name="ä1"),
                waiting=None if p.waiting is None else replace(p.waiting, name="ä2"),
                bound=None if p.bound is None else replace(p.bound, name="ä3"),
            )
            for p in level.places
        ),
    )
