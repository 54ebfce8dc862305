"""A load that changes over time: levels (users, or iterations a second) that follow each other.

A `Leg` is what a person writes, `30s:100`, as is a `ReplayText`; a `Profile` is what the engine follows, the
same names as in `crates/plan/src/workload.rs`. It begins with the load, warm-up included.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from loadlens.units import UnitError

Shape = Literal["stages", "steps", "bursts"]
_WORD = {"stages": "stage", "steps": "step", "bursts": "burst"}


@dataclass(frozen=True, slots=True)
class Leg:
    """One part as written: how long, and to which level."""

    ns: int
    level: float
    is_rate: bool | None  # none: a bare number, or 0; the load says what it counts


@dataclass(frozen=True, slots=True)
class ReplayText:
    """A replay as written."""

    file: str
    column: str | None = None
    speed: float = 1.0
    from_first: bool = False


@dataclass(frozen=True, slots=True)
class Segment:
    """A part in which the level is linear."""

    ns: int
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Profile:
    """Levels over time; after the last segment it begins again, or the last level stays."""

    segments: tuple[Segment, ...]
    repeats: bool = False

    @property
    def length_ns(self) -> int:
        """All segments together: one cycle of a profile that repeats."""
        return sum(segment.ns for segment in self.segments)

    @property
    def peak(self) -> float:
        """The highest level."""
        return max(max(segment.start, segment.end) for segment in self.segments)

    def integral(self, until_s: float) -> float:
        """Level times seconds from the start up to a moment."""
        length_s = self.length_ns / 1e9
        if self.repeats:
            cycles = math.floor(until_s / length_s)
            return cycles * self._within(length_s) + self._within(until_s - cycles * length_s)
        held = max(0.0, until_s - length_s) * self.segments[-1].end
        return self._within(min(until_s, length_s)) + held

    def is_level(self, from_ns: int, until_ns: int) -> bool:
        """True if the level is the same at all moments between two."""
        if self.repeats:
            return len({level for segment in self.segments for level in (segment.start, segment.end)}) == 1
        levels, begin = set[float](), 0
        for segment in self.segments:
            end = begin + segment.ns
            if begin < until_ns and end > from_ns:
                levels |= {segment.start, segment.end}
            begin = end
        if until_ns > begin:
            levels.add(self.segments[-1].end)
        return len(levels) == 1

    def _within(self, until_s: float) -> float:
        area, left = 0.0, until_s
        for segment in self.segments:
            part = min(left, segment.ns / 1e9)
            if part <= 0:
                break
            reached = segment.start + (segment.end - segment.start) * part / (segment.ns / 1e9)
            area += (segment.start + reached) / 2 * part
            left -= part
        return area

    def mean(self, from_s: float, until_s: float) -> float:
        """The mean level between two moments."""
        return (self.integral(until_s) - self.integral(from_s)) / (until_s - from_s)


@dataclass(frozen=True, slots=True)
class Shaped:
    """A profile, and whether its levels are rates."""

    is_open: bool
    profile: Profile


def ramp(to: float, ns: int) -> Profile:
    """From nothing to a level, which then stays."""
    return Profile((Segment(ns, 0.0, to),))


def shaped(shape: Shape, legs: Sequence[Leg], *, users: float | None, rate: float | None) -> Shaped:
    """Return the profile that the legs of a load describe.

    Args:
        shape: Stages are ramps to their levels, steps hold them, bursts hold them again and again.
        legs: As written.
        users: Users that stages begin with; none: not said.
        rate: Rate that stages begin with; none: not said.

    Raises:
        UnitError: Levels that do not fit each other, or no level above 0.
    """
    word, example = _WORD[shape], "30s:100/s for a rate, 30s:100 for users"
    if users is not None and rate is not None:
        raise UnitError("a load is closed (users) or open (rate), not both", example)
    if shape != "stages" and (users is not None or rate is not None):
        name = "users" if rate is None else "rate"
        raise UnitError(f"{name} alongside {shape}, which say every level", f"remove {name}; {example}")
    is_open = rate is not None or any(leg.is_rate for leg in legs)
    has_bare = rate is None and any(leg.is_rate is None and leg.level for leg in legs)
    if is_open and (users is not None or has_bare):
        raise UnitError(f"some {shape} are rates and others are numbers of users", example)
    if not is_open:
        odd = next((leg.level for leg in legs if leg.level != int(leg.level)), None)
        if odd is not None:
            raise UnitError(f"a {word} of {odd:g} users", "whole users, or a rate such as 2.5/s")
    segments, level = [], (rate if is_open else users) or 0.0
    for leg in legs:
        start = level if shape == "stages" else leg.level
        if leg.ns:
            segments.append(Segment(leg.ns, float(start), float(leg.level)))
        level = leg.level
    if not segments:
        raise UnitError(f"{shape} that take no time", f"{word}s such as 30s:100")
    profile = Profile(tuple(segments), repeats=shape == "bursts")
    if profile.peak <= 0:
        raise UnitError(f"no {word} above 0: nothing would ever be asked", example)
    return Shaped(is_open, profile)
