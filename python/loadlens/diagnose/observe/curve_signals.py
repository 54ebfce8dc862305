"""Signals from a load curve that rules share: the last gain, waits for cores, room left, later trials."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from loadlens.diagnose import grading
from loadlens.estimate import saturation as load
from loadlens.measure.curve import waits_for_cores
from loadlens.measure.thresholds import SERVICE_WAITS
from loadlens.model.facts import Curve, Step
from loadlens.present import numbers

BY_CHANCE = 0.05  # an order of trials that is as improbable is none of chance


def gives_less_each_time(step: Step) -> bool:
    """True if a level was measured again, and each trial had a lower throughput than the one before it."""
    trials = step.throughput_trials
    return len(trials) > 1 and all(after < before for before, after in itertools.pairwise(trials))


def by_chance(repeated: Sequence[Step]) -> float:
    """Return the probability with which each trial of all these levels gives less than the one before it."""
    return 1 / math.prod(math.factorial(len(step.throughput_trials)) for step in repeated)


def gain_text(gain: float) -> str:
    """Return the gain of the last doubling of users, with the limit up to which it counts as nothing."""
    return (
        f"the last doubling of users brought {numbers.signed_percent(gain)} "
        f"(limit {numbers.percent(load.GAIN_PER_DOUBLING)})"
    )


def plateau_signal(saturation: load.Saturation) -> grading.Signal:
    """Require that throughput has reached its limit."""
    gain = numbers.signed_percent(saturation.gain_per_doubling)
    return grading.stated(
        "plateau",
        saturation.verdict != "underdriven",
        text=f"the last doubling of users brought {gain}",
        chip=f"last doubling {gain}",
    )


def gain_signal(signal: str, gain: float, passed: bool) -> grading.Signal:
    """Return the same as a signal, which the rule judges."""
    return grading.stated(
        signal,
        passed,
        text=gain_text(gain),
        chip=f"last doubling {numbers.signed_percent(gain)}",
    )


def waits_signal(step: Step) -> grading.Signal:
    """Require that the service's threads wait for a core, relative to the time that they run."""
    waits = waits_for_cores(step)
    if waits is None:
        return grading.stated(
            "service.waits", None, text="how long the service waits for a core was not read"
        )
    return grading.stated(
        "service.waits",
        waits >= SERVICE_WAITS,
        text=f"the service waits for a core {numbers.percent(waits)} of the time that it runs "
        f"(limit {numbers.percent(SERVICE_WAITS)})",
        chip=f"service waits {numbers.percent(waits)}",
    )


def room_signal(curve: Curve, step: Step, most: float) -> grading.Signal:
    """Require that the service's processes use no more than a share of its cores."""
    share = step.server_cores / curve.cores_allotted
    text = f"the service uses {numbers.percent(share)} of its cores (limit {numbers.percent(most)})"
    return grading.stated("cpu.room", share <= most, text=text, chip=f"{numbers.percent(share)} of its cores")
