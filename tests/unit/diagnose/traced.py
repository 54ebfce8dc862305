"""Levels of load whose requests were traced: parts with times in milliseconds, set by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loadlens.model.facts import Curve, SpanPart, SpanRequests
from loadlens.model.finding import Estimate
from tests.unit.diagnose.build import curve, estimate, probe, process, step


def amount(value: float, unit: str = "s") -> Estimate:
    return Estimate("span", unit, value, value * 0.97, value * 1.03, 3, 300, "built")


def part(name: str, own_ms: float, *, beneath_ms: float = 0.0, calls: float = 1.0, **more: Any) -> SpanPart:
    built: dict[str, Any] = {
        "kind": "client",
        "slow_own": amount(2 * own_ms / 1e3),
        "whole": amount((own_ms + beneath_ms) / 1e3),
        "in_a_row": calls,
        "failed": 0.0,
        "answered": 1.0 if beneath_ms else 0.0,
        "is_elsewhere": False,
    }
    return SpanPart(
        name,
        calls=amount(calls, ""),
        own=amount(own_ms / 1e3),
        beneath=amount(beneath_ms / 1e3),
        **{**built, **more},
    )


def traced(*parts: SpanPart) -> SpanRequests:
    """Requests whose time is that of their parts."""
    total_s = sum(each.own.point for each in parts if isinstance(each.own, Estimate))
    return SpanRequests("shop: GET /a", 300, amount(total_s), amount(2 * total_s), parts, 1)


def levels(by_users: Mapping[int, SpanRequests], **more: Any) -> Curve:
    """A closed load whose responses take as long as their traces; a service with CPU to spare."""
    steps = []
    for users, kind in by_users.items():
        took_s = kind.time.point if isinstance(kind.time, Estimate) else 0.0
        built: dict[str, Any] = {"spans": (kind,), "processes": (process(0.2),), "probes": (probe(0.0021),)}
        steps.append(step(users, users / took_s, took_s, **{**built, **more}))
    return curve(*steps, think=0.0, work=estimate(1e-4))
