"""Rates tried against objectives: what each trial showed, and the highest rate that meets them all."""

from __future__ import annotations

from dataclasses import dataclass

from loadlens.model.finding import Estimate, Figure, Undecided
from loadlens.model.report import ObjectiveRow, State


@dataclass(frozen=True, slots=True)
class RateTrial:
    """One trial of an open load, judged."""

    rate_per_s: float
    is_fresh: bool  # made to confirm a rate; the search did not see it before it chose the rate
    is_met: bool  # the estimate of every objective is within its bound
    state: State  # "ok": every interval is within; "bad": one lies beyond its bound
    words: str  # the objective that decided, with its figure; or why nothing is known
    rows: tuple[ObjectiveRow, ...] = ()
    took_s: float = 0.0


@dataclass(frozen=True, slots=True)
class RateAnswer:
    """The highest rate that meets all objectives."""

    sentence: str
    objectives: tuple[str, ...]
    low_per_s: float | None  # confirmed; none: no rate is
    high_per_s: float | None  # missed there, or more than the service does at all; none: not known
    confirmed_by: int  # fresh trials
    next: str  # what would narrow it; empty: nothing to narrow
    trials: tuple[RateTrial, ...]
    is_missed: bool = False  # even the lowest rate worth a trial does not meet the objectives

    @property
    def figure(self) -> Figure:
        """The rate, from what was confirmed to what missed."""
        if self.low_per_s is None:
            return Undecided("rate.meets", "1/s", self.sentence)
        low, high = self.low_per_s, self.high_per_s
        return Estimate("rate.meets", "1/s", low, low, high, self.confirmed_by, 0, "met by all fresh trials")

    @property
    def row(self) -> ObjectiveRow:
        """The objectives as one: some rate meets them."""
        state: State = "bad" if self.is_missed else "unknown" if self.low_per_s is None else "ok"
        word = {"ok": "met", "bad": "missed"}.get(state, "undecided")
        return ObjectiveRow(" and ".join(self.objectives), "at some rate", self.figure, state, word)
