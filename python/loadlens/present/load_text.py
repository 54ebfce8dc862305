"""A load in words: how much is asked, when, and how users pause."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from loadlens.model.profile import Profile
from loadlens.model.workload import Closed, Open, Scenario, Think
from loadlens.present import words
from loadlens.units import duration_text

if TYPE_CHECKING:
    from loadlens.model.facts import Curve, EndedLevel, LostWatch, Step

MOST_SEGMENTS = 4  # that are named one by one


def size(workload: Closed | Open, *, noun: str = "user") -> str:
    """`10 users`, `100/s poisson`, `0 to 100 users in 30 s`.

    Args:
        workload: As planned.
        noun: What one of a closed load is called.
    """
    if isinstance(workload, Open):
        if workload.replay is not None:
            return rate(workload)
        law = workload.arrivals if workload.profile is None else f"({workload.arrivals})"
        return f"{rate(workload)} {law}"
    if workload.profile is not None:
        return over_time(workload.profile, f" {noun}s")
    ramp = f", ramp {duration_text(workload.ramp_ns / 1e9)}" if workload.ramp_ns else ""
    return words.plural(workload.users, noun) + ramp


def rate(workload: Open) -> str:
    """`100/s`, `0 to 100/s in 30 s`, `replay of 1,200 due times`."""
    if workload.profile is not None:
        return over_time(workload.profile, "/s")
    if workload.replay is not None:
        speed = "" if workload.replay.speed == 1 else f" at {workload.replay.speed:g} times the speed"
        return f"replay of {words.plural(workload.replay.arrivals, 'due time')}{speed}"
    return f"{workload.rate_per_s or 0:g}/s"


def over_time(profile: Profile, unit: str) -> str:
    """`0 to 100/s in 30 s, 100/s for 1 min`; more than four parts are counted."""
    parts = []
    for segment in profile.segments[:MOST_SEGMENTS]:
        length = duration_text(segment.ns / 1e9)
        if segment.start == segment.end:
            parts.append(f"{segment.end:g}{unit} for {length}")
        else:
            parts.append(f"{segment.start:g} to {segment.end:g}{unit} in {length}")
    if (more := len(profile.segments) - MOST_SEGMENTS) > 0:
        parts.append(f"{more} more")
    return ", ".join(parts) + (", again and again" if profile.repeats else "")


def pauses(workload: Closed) -> str:
    """`think 1 s (exponential)`, `pace 1 s`; empty when there are none."""
    if workload.pace is not None:
        return f"pace {_law(workload.pace)}"
    return "" if workload.think.kind == "none" else f"think {_law(workload.think)}"


def _law(law: Think) -> str:
    how = "" if law.kind == "fixed" else f" ({law.kind})"
    return duration_text(law.mean_s) + how


def load_of(curve: Curve, step: Step | EndedLevel | LostWatch) -> str:
    """`64 users`, `400/s`: the load of a level."""
    return words.users(step.load, exactly=True) if curve.is_closed else f"{step.load:g}/s"


def load_with_unit(curve: Curve, step: Step) -> str:
    """`64 users`, `400 requests/s`: the same at length."""
    return words.users(step.load, exactly=True) if curve.is_closed else f"{step.load:g} requests/s"


def requests(scenarios: Sequence[Scenario]) -> str:
    """Return the request of a load, `GET /orders`; of several the number."""
    if len(scenarios) > 1:
        return f"{len(scenarios)} URLs in equal parts"
    step = scenarios[0].steps[0]
    return f"{step.method} {words.cut(words.plain(step.path), 40)}"
