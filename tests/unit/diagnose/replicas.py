"""Curves of replicas behind a balancer, by formula."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from loadlens.model.facts import BalanceWatch, ConnectionWatch, Curve, ReplicaWatch
from loadlens.model.finding import Estimate, Figure, NotMeasured
from tests.unit.diagnose.build import curve, estimate, step

UNREAD = NotMeasured("runq_wait", "not watched")


def share(point: float) -> Estimate:
    return Estimate("s", "share", point, point - 0.01, point + 0.01, 3, 900, "built")


def balance(
    shares: Sequence[float],
    times: Sequence[float | None],
    *,
    requests: int = 3000,
    covered: float | None = 1.0,
    waiting: Sequence[float] | None = None,
    label: str = "front",
    half: float = 0.02,
) -> BalanceWatch:
    waits: list[Figure] = (
        [UNREAD] * len(shares) if waiting is None else [estimate(w, unit="cores") for w in waiting]
    )
    replicas = tuple(
        ReplicaWatch(
            f"r{place}",
            round(requests * part),
            share(part),
            NotMeasured("t", "not seen") if time is None else estimate(time, half=half),
            wait,
        )
        for place, (part, time, wait) in enumerate(zip(shares, times, waits, strict=True))
    )
    return BalanceWatch(label, "sockets", replicas, covered)


def behind(
    light: BalanceWatch, full: BalanceWatch, *, opened: int = 400, trials: int = 3, **last: Any
) -> Curve:
    """Users 1, 8 and 64 of a service that stops at 300 a second; the middle level is as the light one."""
    connections = ConnectionWatch(opened, 0, 10_000)
    return curve(
        step(1, 50.0, 0.02, trials=trials, balances=(light,), connections=connections),
        step(8, 250.0, 0.032, trials=trials, balances=(light,), connections=connections),
        step(32, 300.0, 0.107, trials=trials, balances=(full,), connections=connections),
        step(64, 300.0, 0.213, trials=trials, balances=(full,), connections=connections, **last),
        think=0.0,
        work=estimate(0.0001),
    )
