"""Rates tried against objectives: what each trial showed, and the highest rate that meets them all."""

from __future__ import annotations

from dataclasses import dataclass

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
