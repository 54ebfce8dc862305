"""The parts of a study that its report answers, read back from the record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from loadlens.model import plain
from loadlens.model.study import Claim, Objective, Published, Query, QuotedFigure, Window


@dataclass(frozen=True, slots=True)
class Comparison:
    """A metric that is shown for all cases of an experiment next to each other."""

    metric: str
    experiment: str
    step: str | None = None

    @property
    def is_figure(self) -> bool:
        """True if each case has one figure of it; else it is a time, drawn as a curve of quantiles."""
        return "." in self.metric or self.metric == "throughput"


@dataclass(frozen=True, slots=True)
class Wishes:
    """The part `report` of a study."""

    charts: tuple[str, ...] = ()  # kinds in their order; empty: all
    compare: tuple[Comparison, ...] = ()
    promql: tuple[Query, ...] = ()
    window: Window | None = None  # none: the whole measured part


@dataclass(frozen=True, slots=True)
class Brief:
    """The parts of a planned study that the report answers."""

    name: str
    question: str
    trials: tuple[Any, ...] = ()  # planned
    quick: bool = False
    quick_differences: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    published: Published | None = None
    claims: tuple[Claim, ...] = ()
    objectives: tuple[Objective, ...] = ()
    report: Wishes = field(default_factory=Wishes)

    @property
    def window(self) -> Window:
        """The part of each trial that figures are taken from."""
        return self.report.window or Window()

    @property
    def quoted(self) -> tuple[QuotedFigure, ...]:
        """The published figures."""
        return () if self.published is None else self.published.figures


def brief_of(study: Mapping[str, object]) -> Brief:
    """Read what a study asks.

    Raises:
        Unreadable: A key of the planned study is missing or holds something else.
    """
    return plain.read(Brief, study)
