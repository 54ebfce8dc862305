"""Trials with standstills in a few words, for the rules of pauses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from loadlens.model.facts import Curve, Facts, Step
from loadlens.model.shapes import Standstill, StandstillWatch
from tests.unit.diagnose.build import curve, estimate, step

TRIAL_S, BETWEEN_S = 10.0, 4.0  # measured, and from one trial to the next


def watched(
    number: int,
    moments: Sequence[float],
    length: float,
    *,
    limit: float = 0.072,
    life: str = "7",
    scale: float = 1.0,
) -> StandstillWatch:
    """Trial `number` of a run; what of the moments falls into it."""
    begin = number * (TRIAL_S + BETWEEN_S) * scale
    end = begin + TRIAL_S * scale
    stops = tuple(
        Standstill(at, at + length + 0.002, False) for at in moments if begin < at < end - length - 0.002
    )
    return StandstillWatch(life, begin, end, limit, 0.002, 0.002, stops)


def run(
    moments: Sequence[float],
    length: float,
    *,
    trials: int = 4,
    queued: bool = False,
    scale: float = 1.0,
    dense: bool = True,
    lives: bool = False,
    **last: Any,
) -> Facts:
    """A closed curve of so many levels, one trial each, and the dense look after them."""
    steps: list[Step] = []
    for number in range(trials):
        response = 0.01 * scale * (1 if not queued or number == 0 else 4)
        life = str(number) if lives else "7"
        watch = watched(number, moments, length, limit=0.06 * scale, scale=scale, life=life)
        users = 2**number
        steps.append(step(users, users / response, response, trials=1, standstills=(watch,)))
    steps[-1] = replace(steps[-1], **last)
    built: Curve = curve(*steps, think=0.0, work=estimate(0.001 * scale, trials=1))
    last_watch = watched(trials, moments, length, limit=0.072 * scale, scale=scale)
    looked = step(1, 100 / scale, 0.01 * scale, trials=1, standstills=(last_watch,))
    return Facts(4, (built,), (), (looked,) if dense else ())


def regular(period: float, *, first: float = 0.7, until: float = 80.0) -> list[float]:
    """Moments at equal distances."""
    moments = [first]
    while moments[-1] + period < until:
        moments.append(moments[-1] + period)
    return moments


IRREGULAR = [1.0, 2.1, 5.9, 6.6, 15.2, 19.9, 21.0, 30.3, 32.9, 45.1, 49.6, 58.4, 59.2, 61.9, 64.8]
