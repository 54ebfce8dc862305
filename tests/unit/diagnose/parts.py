"""Services of several parts as facts, one of which has few places, by the bounds of a closed loop.

A share w of the requests needs the hot part: it has S places, each held for h seconds, and lets X = S / (h w)
requests of all through. The others take q seconds. R = N / X, so the hot ones take (R - (1 - w) q) / w.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from loadlens.model.facts import Curve, LabelPart, LabelSplit
from loadlens.model.finding import Estimate, NotMeasured
from loadlens.model.shapes import SlowLevel, SlowPath
from tests.unit.diagnose.build import curve, estimate, process, step
from tests.unit.diagnose.waiting import probe

USERS = (1, 2, 4, 8, 16, 32)
SHARE, PLACES, HOLD_S, QUICK_S = 0.25, 1, 0.02, 0.01
SECONDS = 20.0  # measured, of each level
MOST_PER_S = PLACES / (HOLD_S * SHARE)  # 200 requests per second


def part(value: str, rate: float, mean_s: float | None, *, seconds: float = SECONDS) -> LabelPart:
    samples = round(rate * seconds)
    figure = Estimate("m", "1/s", rate, 0.98 * rate, 1.02 * rate, 3, samples, "built")
    mean: Any = NotMeasured("m", "the metric only counts")
    if mean_s is not None:
        mean = Estimate("m", "s", mean_s, 0.98 * mean_s, 1.02 * mean_s, 3, samples, "built")
    return LabelPart(value, figure, mean)


def split(hot: tuple[float, float | None], *others: tuple[float, float | None], **more: Any) -> LabelSplit:
    """The hot value first, each with its rate and mean time."""
    parts = tuple(part(value, *each, **more) for value, each in zip("bacdefgh", (hot, *others), strict=False))
    return LabelSplit("calls_seconds", "upstream", parts)


def rates(users: float, share: float = SHARE) -> tuple[float, float]:
    """Requests per second of all, and the time of the hot ones."""
    alone = share * HOLD_S + (1 - share) * QUICK_S
    rate = min(users / alone, PLACES / (HOLD_S * share))
    return rate, (users / rate - (1 - share) * QUICK_S) / share


def one_full(
    *, labels: bool = True, times: bool = False, timed: bool = True, share: float = SHARE, cpu: float = 0.05
) -> Curve:
    """One part of four is full, as labels show it, or the times of requests."""
    steps = []
    for users in USERS:
        rate, hot_s = rates(users, share)
        own, other = rate * share, rate * (1 - share) / 3
        others = [(other, QUICK_S if timed else None)] * 3
        splits = (split((own, hot_s if timed else None), *others),) if labels else ()
        steps.append(
            step(
                users,
                rate,
                users / rate,
                processes=(process(cpu, hot=1),),
                probes=(probe(0.002),),
                host_cpu=estimate(cpu + 0.2, unit="cores"),
                splits=splits,
            )
        )
    built = curve(*steps, think=0.0)
    return replace(built, slow_paths=(hills(share),)) if times else built


def hills(share: float = SHARE, *, loads: tuple[int, ...] = (8, 16, 32)) -> SlowPath:
    """The times of the requests: two hills from eight users on, one below."""
    levels = tuple(hill(users, share, rates(users, share)[1]) for users in loads)
    return SlowPath("b", "POST /b", 5_000, 2_000, 0, 4, 0.07, parted=levels, usual_s=QUICK_S)


def hill(users: float, share: float, slow_s: float, quick_s: float = QUICK_S) -> SlowLevel:
    requests = 2_000
    weight = Estimate("w", "share", share, 0.9 * share, 1.1 * share, 1, requests, "built")
    shift = estimate(slow_s - quick_s)
    return SlowLevel(users, requests, round(share * requests), weight, shift, slow_s / quick_s)
