"""The answers of `compare` (a verdict on two versions, its effects, what would decide) and of `history`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from loadlens.model.finding import Figure

DEFAULT_MARGIN: Final = 0.03  # changes below it do not matter, unless another margin is given

# `failing`: the second version fails more often, so that its speed is not compared.
Verdict = Literal["faster", "slower", "equivalent", "undecided", "failing"]
# Of one effect: `same` lies within the margin, `undecided` contains no effect and more than the margin.
Change = Literal["better", "worse", "same", "undecided", "not measured"]


@dataclass(frozen=True, slots=True)
class PairsBegun:
    """Design of a live comparison, as its record keeps it; the default stands for no such record."""

    looks: tuple[int, ...] = ()  # pairs at each look
    names: tuple[str, ...] = ()  # of both versions
    margin: float | None = None
    budget_s: float | None = None


@dataclass(frozen=True, slots=True)
class Pair:
    """One figure of both versions, from trials that ran next to each other."""

    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Effect:
    """Change of one metric from the first version to the second."""

    case: str  # empty where there is one
    metric: str  # "response_time.p99", "throughput", "cpu_time", "memory"
    unit: str
    before: Figure  # of the first version
    after: Figure
    ratio: Figure  # second over first
    change: Change
    is_beyond: bool  # the whole interval lies beyond the margin
    is_headline: bool  # it decides whether versions are equivalent
    pairs: tuple[Pair, ...]  # trials in pairs; empty where there are none


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two versions, compared."""

    verdict: Verdict
    sentence: str
    first: str  # name of the version that the other is compared with
    second: str
    load: str
    margin: float  # relative
    pairs: int  # trials of each, where they are not paired
    is_paired: bool
    failures: tuple[str, ...]
    accounting: tuple[str, ...]
    effects: tuple[Effect, ...]
    decides: str  # how many more pairs would decide; empty: decided
    method: str
    cautions: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()  # what A and B are, where these are their names
    record: str = ""  # empty: not kept

    @property
    def is_missed(self) -> bool:
        """True if the second version fails more, or is slower by more than the margin for sure."""
        return self.verdict == "failing" or (
            self.verdict == "slower"
            and any(effect.is_beyond and effect.change == "worse" for effect in self.effects)
        )

    @property
    def is_decided(self) -> bool:
        """True if further pairs would not change what follows from the answer."""
        return self.verdict in ("failing", "equivalent") or (
            self.verdict in ("faster", "slower") and any(effect.is_beyond for effect in self.effects)
        )


# --- many records ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Point:
    """One metric of one record."""

    record: str  # path below the folder
    began_unix_ns: int
    commit: str  # of the study's folder; empty: not known
    is_modified: bool  # files differed from the commit
    figure: Figure


@dataclass(frozen=True, slots=True)
class Shift:
    """A change point."""

    record: str  # the first after the change
    commit: str
    before: float  # mean of the records since the shift before it
    after: float  # mean up to the next shift
    p_value: float
    differs: tuple[str, ...]  # what differs of machine and software from the record before


@dataclass(frozen=True, slots=True)
class Series:
    """One metric of one load over all records that have the load."""

    study: str
    load: str
    metric: str
    unit: str
    points: tuple[Point, ...]
    shifts: tuple[Shift, ...]
    lacking: int  # further records with a figure before change points are looked for


@dataclass(frozen=True, slots=True)
class History:
    """The whole answer."""

    folder: str
    sentence: str
    records: int
    series: tuple[Series, ...]
    method: str
    left_out: tuple[str, ...]  # records that could not be read, and why
