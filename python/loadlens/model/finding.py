"""Estimates, evidence and findings: the only ways in which a number or a cause reaches a report."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, Literal

Z_95: Final = 1.959963984540054  # standard deviations to either side that hold 95 % of a normal distribution


def wilson(hits: int, total: int) -> tuple[float, float]:
    """Return the ends of the 95 % interval of a share (E. B. Wilson, JASA 22, 1927).

    Args:
        hits: Of the total.
        total: Above zero.
    """
    share = hits / total
    spread = Z_95 * math.sqrt(share * (1 - share) / total + (Z_95 / (2 * total)) ** 2)
    middle, scale = share + Z_95**2 / (2 * total), 1 + Z_95**2 / total
    low = 0.0 if not hits else (middle - spread) / scale
    high = 1.0 if hits == total else (middle + spread) / scale
    return low, high


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its interval and where it comes from."""

    metric: str
    unit: str  # "s", "1/s", "cores", "bytes", "share", "ratio", "requests"
    point: float
    low: float | None  # none: open below
    high: float | None  # none: open above
    trials: int
    samples: int
    method: str  # "t on log of trials", "exact count" ...
    confidence: float = 0.95

    @property
    def is_within_one_trial(self) -> bool:
        """True if the interval says nothing about the variation between runs."""
        return self.trials == 1


@dataclass(frozen=True, slots=True)
class Undecided:
    """An unknown figure, and what would decide it."""

    metric: str
    unit: str
    reason: str


@dataclass(frozen=True, slots=True)
class NotMeasured:
    """A figure that was not measured, and why."""

    metric: str
    reason: str


Figure = Estimate | Undecided | NotMeasured


class Grade(IntEnum):
    """Confidence in a finding; each word has one fixed meaning."""

    SUSPECTED = 1  # a necessary signal is missing
    PROBABLE = 2  # all necessary signals pass; something could not be excluded
    STRONG = 3  # all pass beyond their thresholds with their intervals, every rival looked at and excluded
    CONFIRMED = 4  # the setting was changed and the predicted change was seen

    @property
    def word(self) -> str:
        """The word for people."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Evidence:
    """One signal that a finding needs, with its figures."""

    signal: str  # "worker.cpu", "probe.coupling"
    text: str  # one line for people, with numbers and units
    chip: str  # at most 32 characters
    value: float | None
    low: float | None
    high: float | None
    threshold: float | None
    passed: bool | None  # none: could not be observed
    chart: str | None = None  # anchor of the chart that shows it


@dataclass(frozen=True, slots=True)
class Counter:
    """A rival explanation, ruled out or not."""

    rival: str  # "thread pool"
    text: str  # "CPU is full"
    ruled_out: bool | None  # none: could not be observed


@dataclass(frozen=True, slots=True)
class Prediction:
    """The predicted effect of a change."""

    what: str  # "mean at 20 users"
    before: Figure
    after: Figure
    remedy: str = ""  # "2 processes in place of 1"
    assumes: str = ""  # assumptions of the prediction

    @property
    def words(self) -> str:
        """The predicted figure, and the change."""
        return f"{self.remedy}: {self.what}" if self.remedy else self.what


@dataclass(frozen=True, slots=True)
class Setting:
    """A number in the service's settings that a finding comes from, with how near it is known."""

    # At a time; let in per second; served per second by what may be a limiter; connections; descriptors;
    # processes; seconds until it gives up; no number: connections are closed.
    kind: Literal["places", "rate", "pace", "backlog", "files", "processes", "timeout", "closing"]
    low: float
    high: float

    @staticmethod
    def places(count: float) -> Setting:
        """Return a setting of so many at a time, a mean of readings that may fall between two holders."""
        return Setting("places", 0.94 * count, 1.06 * count)

    @staticmethod
    def rate(per_s: float, kind: Literal["rate", "pace"] = "rate") -> Setting:
        """Return a setting of so many per second, as they were measured."""
        return Setting(kind, 0.97 * per_s, 1.03 * per_s)

    @staticmethod
    def exactly(kind: Literal["places", "backlog", "files", "processes"], count: float) -> Setting:
        """Return a setting whose number is known."""
        return Setting(kind, count, count)

    @staticmethod
    def timeout(least_s: float, most_s: float) -> Setting:
        """Return a time-out that is known to lie between two times, within 2 % of either."""
        return Setting("timeout", 0.98 * least_s, 1.02 * most_s)

    @staticmethod
    def closing() -> Setting:
        """Return the setting that closes connections after a request; it has no number."""
        return Setting("closing", 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Finding:
    """A cause with its evidence, its grade, and advice."""

    rule: str  # "eventloop.blocked"
    grade: Grade
    impact: float  # share of response time, capacity or validity at stake at its worst, 0-1; the order
    scope: str  # where it holds, in the study's own words: "POST /x · workers=1"
    statement: str  # at most 90 characters, one verb, at least one number
    explanation: str  # one or two sentences
    evidence: tuple[Evidence, ...]
    counter: tuple[Counter, ...]
    advice: str  # imperative; with numbers
    confirm: str  # the experiment that would confirm it
    predictions: tuple[Prediction, ...] = ()
    unknown: tuple[str, ...] = ()
    explained_by: str | None = None  # rule that this one is folded under
    curves: tuple[str, ...] = ()  # labels of the load curves on which it holds
    explains_others: bool = True  # whether it is strong enough to make appear what its rule explains
    setting: Setting | None = None  # that would have to change


@dataclass(frozen=True, slots=True)
class Absent:
    """A rule that looked and found nothing."""

    rule: str
    title: str
    reason: str  # with the numbers that rule it out


@dataclass(frozen=True, slots=True)
class NotAssessed:
    """A rule that could not look."""

    rule: str
    title: str
    reason: str  # which signal is missing, and how to get it
