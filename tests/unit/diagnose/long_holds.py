"""Few places that a share of the requests holds for long, as facts: 20 % take 410 ms, the others 10 ms."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from loadlens.model.facts import Curve
from loadlens.model.finding import Estimate
from loadlens.model.shapes import SlowLevel, SlowPath
from tests.unit.diagnose.build import estimate
from tests.unit.diagnose.waiting import waiting

SHARE, USUAL_S, SHIFT_S = 0.2, 0.01, 0.4
MEAN_S = USUAL_S + SHARE * SHIFT_S
PLACES = 4
MOST_PER_S = PLACES / MEAN_S  # 44.4 requests per second


def slow_path(share: float = SHARE) -> SlowPath:
    weight = Estimate("w", "share", share, 0.9 * share, 1.1 * share, 1, 2_000, "built")
    shift = estimate(SHIFT_S)
    level = SlowLevel(1, 300, round(300 * share), weight, shift, 41.0)
    more = replace(level, load=2, requests=1_700, slow=round(1_700 * share))
    return SlowPath(
        "b", "POST /b", 2_000, 1_700, 0, 4, 0.07, alone=level, alone_requests=300, levels=(more,),
        weight=weight, shift=shift, is_even=True, together=0.0, in_answer=0.0, usual_s=USUAL_S,
    )  # fmt: skip


def held_long(exports: str, *, hold_s: float = MEAN_S, **more: Any) -> Curve:
    built = waiting(hold_s, **{"base_s": 0.0, "size": PLACES, "exports": exports, **more})
    return replace(built, slow_paths=(slow_path(),))


def with_alone(built: Curve, mean_s: float) -> Curve:
    """Few requests of one user, among which were more long ones than usual, or fewer."""
    first = built.steps[0]
    took = replace(first.response, mean=replace(estimate(mean_s), samples=60))
    kinds = tuple(replace(kind, response=took) for kind in first.classes)
    return replace(built, steps=(replace(first, response=took, classes=kinds), *built.steps[1:]))
