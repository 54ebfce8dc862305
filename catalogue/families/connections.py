"""Flaws in how connections are opened, kept and written to."""

from __future__ import annotations

from typing import Final

from catalogue.drawing import Draws
from catalogue.family import LIMITS_OF_THE_MACHINE, Drawn, Family, Label, need
from catalogue.parts import many, ms, pair, per_s, server, wait


def _keepalive(draws: Draws) -> Drawn:
    base, first, limit = draws.scaled(2, 6), draws.scaled(4, 12), round(draws.by_severity(20, 2))
    ops = [wait(first, only={"first": True}), wait(base)]
    return pair(
        server(draws, *ops, connection={"requests": limit}),
        Label((need("http.keepalive-limit"),), LIMITS_OF_THE_MACHINE),
        {"limit": many(limit), "alone": ms(base)},
        server(draws, *ops),
    )


def _no_reuse(draws: Draws) -> Drawn:
    base, first = draws.scaled(2, 8), draws.scaled(2, 12)
    ops = [wait(first, only={"first": True}), wait(base)]
    return pair(
        server(draws, *ops, connection={"requests": 1}),
        Label((need("http.no-reuse"),), LIMITS_OF_THE_MACHINE | {"http.keepalive-limit"}),
        {"limit": many(1), "alone": ms(base + first)},
        server(draws, *ops),
    )


def _backlog(draws: Draws) -> Drawn:
    base, every = draws.scaled(2, 8), draws.by_severity(4, 20)
    listen = {"backlog": draws.whole(2, 8), "accept_every_ms": every}
    once = {"requests": 1}
    return pair(
        server(draws, wait(base), connection=once, listen=listen),
        Label(
            (need("accept.drops", tier="B"),),
            frozenset({"http.no-reuse", "http.keepalive-limit", "saturation.plateau", "tcp.timer-mode"})
            | frozenset({"downstream.serialised", "threads.pool-limit", "outside.handler-wait"}),
        ),
        {"capacity": per_s(1e3 / every), "accept_every": ms(every)},
        server(draws, wait(base), connection=once),
        Label((need("http.no-reuse"),), LIMITS_OF_THE_MACHINE | {"http.keepalive-limit"}),
    )


def _two_writes(draws: Draws) -> Drawn:
    base, size = draws.scaled(2, 10), draws.whole(50, 800)
    ops = [wait(base), {"do": "answer", "bytes": size}]
    return pair(
        server(draws, *ops, connection={"two_writes": True}),
        Label((need("tcp.timer-mode", tier="B"),), LIMITS_OF_THE_MACHINE | {"mixture.slow-path"}),
        {"alone": ms(base), "shift": ms(40)},
        server(draws, *ops),
    )


FAMILIES: Final = (
    Family(
        "keepalive-limit",
        "connections end after a few requests, and the first request of each costs more",
        _keepalive,
        looks_like=("slow-path", "dear-connections", "aged-connections"),
    ),
    Family("no-reuse", "every connection ends after one request", _no_reuse, looks_like=("keepalive-limit",)),
    Family(
        "accept-drops",
        "connections are accepted too slowly, and the backlog is short",
        _backlog,
        looks_like=("db-lock",),
    ),
    Family(
        "two-writes",
        "head and body are sent in two writes; the second waits for a delayed ACK",
        _two_writes,
        looks_like=("slow-path",),
    ),
)
