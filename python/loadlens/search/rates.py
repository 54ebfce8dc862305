"""Searches the highest rate that meets objectives: which rate is tried next, and what all trials say.

A trial meets the objectives if the estimate of each is within its bound. The search halves the distance
between the highest rate that met them and the lowest above it that did not, on a logarithmic scale. It may be
wrong by chance, so the rate that it ends with is confirmed on `FRESH` trials that it did not see: where half
of such trials or more would miss an objective, all of them meet it with a chance of at most 2^-FRESH, 3 %
(sign test). A rate is called missed only where an interval lies beyond its bound, and no trial met it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from loadlens.measure.metrics import QUANTILES
from loadlens.model.finding import Estimate, Figure
from loadlens.model.rates import RateAnswer, RateTrial
from loadlens.model.report import State
from loadlens.model.study import UNSUCCESSFUL, Objective
from loadlens.present import numbers, objective_text, words
from loadlens.search.objectives import SHARES

FRESH: Final = 5  # trials that confirm a rate
NARROW, UNCLEAR = 1.06, 1.25  # obstacle over the rate that is met: near enough; where chance decides
BELOW: Final = 0.9  # of a rate that was not confirmed
FIRST, MORE, LESS = 0.6, 1.5, 0.5  # of the ceiling; of the rate before, while only one side is known
AT_CEILING: Final = 0.97
LEAST_SHARE: Final = 0.01  # of the ceiling, below which no rate is tried
LIGHT_SHARE: Final = 0.1  # of the ceiling: in an M/M/1 lower rates save at most a tenth
WARMUP_S: Final = 1.0
SHORTEST_S, TRIALS_AT_LEAST = 4.0, 11  # measured part; trials that the time must allow
FAILURES: Final = Objective(UNSUCCESSFUL, None, below=0.01)  # where none bounds failures
ABOVE_QUANTILE, OF_SHARE, OF_MEAN = 15, 4, 200  # requests that let an interval end on one side of a bound


@dataclass(frozen=True, slots=True)
class Range:
    """Knowledge before the first rate is tried."""

    ceiling_per_s: float  # what users without pauses reached
    is_capacity: bool  # more users bring no more: no rate beyond it can be kept up
    cap_per_s: float  # no higher rate is allowed

    @property
    def most_per_s(self) -> float:
        """Highest rate that may be tried."""
        return min(self.cap_per_s, self.ceiling_per_s if self.is_capacity else math.inf)


@dataclass(frozen=True, slots=True)
class Try:
    """The next trial."""

    rate_per_s: float
    is_fresh: bool


@dataclass(frozen=True, slots=True)
class Bracket:
    """Rates between which the answer lies."""

    met: float | None  # highest that was met, with no obstacle at or below it
    obstacle: float | None  # lowest that a trial did not meet
    missed: float | None  # lowest whose interval lies beyond a bound, and that no trial met

    is_clear: bool  # one of the two by its whole interval

    @property
    def is_narrow(self) -> bool:
        """True if a closer search would hardly change the answer."""
        near = NARROW if self.is_clear else UNCLEAR
        return self.met is not None and self.obstacle is not None and self.obstacle <= near * self.met


def bracket_of(seen: Sequence[RateTrial]) -> Bracket:
    """Return the bracket that the trials so far leave."""
    obstacle = min((t.rate_per_s for t in seen if not t.is_met), default=None)
    below = math.inf if obstacle is None else obstacle
    met = {t.rate_per_s for t in seen if t.is_met}
    low = max((rate for rate in met if rate < below), default=None)
    return Bracket(
        met=low,
        obstacle=obstacle,
        missed=min(
            (t.rate_per_s for t in seen if t.state == "bad" and t.rate_per_s not in met), default=None
        ),
        is_clear=any((t.rate_per_s, t.state) in ((low, "ok"), (obstacle, "bad")) for t in seen),
    )


def next_of(
    seen: Sequence[RateTrial], span: Range, left_s: float, cost_s: Callable[[float], float]
) -> Try | None:
    """Return the next trial; none: nothing is left to try, or no time is.

    Args:
        seen: Every trial so far.
        span: Known before.
        left_s: Seconds left.
        cost_s: Duration of a trial at a rate, start and end included.
    """
    bracket = bracket_of(seen)
    wanted = _rate_of_search(bracket, span, is_late=any(t.is_fresh for t in seen))
    if wanted is not None:
        confirmed_at = wanted if bracket.met is None else bracket.met
        if cost_s(wanted) + FRESH * cost_s(confirmed_at) <= left_s:
            return Try(wanted, is_fresh=False)
    if bracket.met is None or cost_s(bracket.met) > left_s:
        return None
    if fresh_of(seen, bracket.met) < FRESH:
        return Try(bracket.met, is_fresh=True)
    missed = [t for t in seen if t.rate_per_s == bracket.missed]
    if bracket.missed is not None and len(missed) == 1 and cost_s(bracket.missed) <= left_s:
        return Try(bracket.missed, is_fresh=True)
    return None


def _rate_of_search(bracket: Bracket, span: Range, *, is_late: bool) -> float | None:
    """Return the rate that would narrow the bracket; none: it is narrow, or ends where nothing more is.

    Args:
        bracket: So far.
        span: Known before.
        is_late: A rate was put to the test: where it failed, the search was wrong by chance, so go down.
    """
    most = span.most_per_s
    if is_late:
        if bracket.met is not None or bracket.obstacle is None:
            return None
        rate = BELOW * bracket.obstacle
        return rate if rate >= LEAST_SHARE * span.ceiling_per_s else None
    if bracket.met is None:
        rate = FIRST * span.ceiling_per_s if bracket.obstacle is None else LESS * bracket.obstacle
        return min(rate, most) if rate >= LEAST_SHARE * span.ceiling_per_s else None
    if bracket.obstacle is None:
        return min(MORE * bracket.met, most) if bracket.met < AT_CEILING * most else None
    return None if bracket.is_narrow else math.sqrt(bracket.met * bracket.obstacle)


def fresh_of(seen: Sequence[RateTrial], rate_per_s: float) -> int:
    """Return how many trials confirm a rate."""
    return sum(t.is_fresh and t.is_met for t in seen if t.rate_per_s == rate_per_s)


# --- the length of a trial, its verdict ------------------------------------------------------------------


def with_failures(objectives: Sequence[Objective]) -> tuple[Objective, ...]:
    """Add a bound on failures where there is none: a rate at which requests fail is no capacity."""
    has_bound = any(objective.metric in SHARES for objective in objectives)
    return (*objectives, *(() if has_bound else (FAILURES,)))


def measured_s(rate_per_s: float, objectives: Sequence[Objective], within_s: float) -> float:
    """Return the length of the measured part that lets the objectives be decided, as far as time allows.

    Args:
        rate_per_s: Requests per second.
        objectives: To be decided.
        within_s: For all trials together.
    """
    needed = max(map(_requests, objectives))
    return max(SHORTEST_S, min(needed / rate_per_s, within_s / TRIALS_AT_LEAST))


def _requests(objective: Objective) -> float:
    statistic = objective.metric.rpartition(".")[2]
    if statistic in QUANTILES:
        return ABOVE_QUANTILE / (1 - QUANTILES[statistic])
    if objective.metric in SHARES and objective.below:
        return OF_SHARE / objective.below
    return OF_MEAN


def verdict(
    rate_per_s: float,
    is_fresh: bool,
    judged: Sequence[tuple[Objective, Figure]],
    served: Figure,
    took_s: float,
) -> RateTrial:
    """Return what one trial says of its rate.

    Args:
        rate_per_s: Planned.
        is_fresh: It confirms a rate.
        judged: Each objective with its figure.
        served: Successes per second: a service that falls behind misses, whatever its answers took so far.
        took_s: Of the whole trial.
    """
    rows = tuple(objective_text.judged(objective, figure) for objective, figure in judged)
    if isinstance(served, Estimate) and served.high is not None and served.high < AT_CEILING * rate_per_s:
        rate = numbers.with_unit(served.point, "1/s")
        behind = f"falls behind: {rate} succeed"
        return RateTrial(rate_per_s, is_fresh, False, "bad", behind, rows, took_s)
    met = [_is_within(objective, figure) for objective, figure in judged]
    order: dict[State, int] = {"bad": 0, "unknown": 1, "ok": 2}
    _, _, decisive = min(
        ((is_met, order.get(row.state, 1), row) for is_met, row in zip(met, rows, strict=True)),
        key=lambda each: each[:2],
    )
    state = min((row.state for row in rows), key=lambda state: order.get(state, 1))
    words_of = _in_words(decisive.figure, decisive.word)
    return RateTrial(rate_per_s, is_fresh, all(met), state, words_of, rows, took_s)


def _is_within(objective: Objective, figure: Figure) -> bool:
    if not isinstance(figure, Estimate):
        return False
    return (objective.below is None or figure.point < objective.below) and (
        objective.above is None or figure.point > objective.above
    )


def _in_words(figure: Figure, word: str) -> str:
    """Return the figure that decided, with its interval; without one why not."""
    if not isinstance(figure, Estimate):
        return word
    return f"{words.metric(figure.metric)} {numbers.show(figure).with_interval}"


# --- the answer ------------------------------------------------------------------------------------------


def answer_of(
    seen: Sequence[RateTrial], objectives: Sequence[Objective], span: Range, *, end: str = ""
) -> RateAnswer:
    """Return the highest rate that meets all objectives, as far as the trials show it.

    Args:
        seen: Every trial.
        objectives: All of them.
        span: Known before.
        end: Why no rate or no further rate was tried, if not for time.
    """
    bracket = bracket_of(seen)
    asked = tuple(_asked(objective) for objective in objectives)
    all_asked = words.listed(asked)
    low = bracket.met
    lowest = min((trial.rate_per_s for trial in seen), default=math.inf)
    is_missed = bracket.missed == lowest and lowest <= LIGHT_SHARE * span.ceiling_per_s
    fresh = 0 if low is None else fresh_of(seen, low)
    is_confirmed = fresh >= FRESH
    high = bracket.missed
    if high is None and span.is_capacity and bracket.obstacle is None:
        high = span.ceiling_per_s
    if low is None:
        sentence = _without_a_rate(seen, all_asked, end, is_missed=is_missed)
    elif not is_confirmed:
        sentence = (
            f"Undecided: {_rate(low)} met {all_asked} once, and {end or 'the budget ended'} before "
            f"{FRESH} fresh trials confirmed it."
        )
    else:
        sentence = (
            f"{_rate(low)} meet {all_asked}: {fresh} of {fresh} fresh trials did.{_above(bracket, span)}"
        )
    return RateAnswer(
        sentence=sentence,
        objectives=asked,
        low_per_s=low if is_confirmed else None,
        high_per_s=high,
        confirmed_by=fresh,
        next=_next(seen, bracket, is_confirmed=is_confirmed, is_missed=is_missed),
        trials=tuple(seen),
        is_missed=is_missed,
    )


def _asked(objective: Objective) -> str:
    metric = words.metric(objective.metric)
    unit = "" if objective.metric.endswith("share") else "s"
    show = numbers.percent if objective.metric.endswith("share") else lambda x: numbers.with_unit(x, unit)
    bounds = [("<", objective.below), (">", objective.above)]
    return " ".join(f"{metric} {sign} {show(bound)}" for sign, bound in bounds if bound is not None)


def _rate(rate_per_s: float) -> str:
    return numbers.with_unit(rate_per_s, "1/s")


def _above(bracket: Bracket, span: Range) -> str:
    """Return what is known of higher rates, as a sentence with a blank before it."""
    if bracket.obstacle is None:
        most = span.most_per_s
        if not span.is_capacity or most < span.ceiling_per_s:
            return f" Higher rates were not tried: the rate cap is {_rate(span.cap_per_s)}."
        return f" That is what it does at all: users without pauses reach {_rate(span.ceiling_per_s)}."
    unclear = f"from {_rate(bracket.obstacle)} on trials missed it"
    if bracket.missed is None:
        return f" {unclear[0].upper()}{unclear[1:]}, not clearly."
    if bracket.missed == bracket.obstacle:
        return f" {_rate(bracket.missed)} do not."
    return f" {_rate(bracket.missed)} do not; {unclear}, not clearly."


def _without_a_rate(seen: Sequence[RateTrial], asked: str, end: str, *, is_missed: bool) -> str:
    if not seen:
        return f"Undecided: no rate was tried: {end or 'no time was left'}."
    lowest = min(seen, key=lambda trial: (trial.rate_per_s, trial.is_met))
    if is_missed:
        return f"No rate meets {asked}: missed already at {_rate(lowest.rate_per_s)}: {lowest.words}."
    tried = [trial for trial in seen if trial.rate_per_s == lowest.rate_per_s]
    met = sum(trial.is_met for trial in tried)
    mixed = f", {met} of {len(tried)} did, and one did not" if met else ""
    at = f"at {_rate(lowest.rate_per_s)}, the lowest tried{mixed}"
    return f"Undecided: no rate met {asked} in every trial; {at}: {lowest.words}."


def _next(seen: Sequence[RateTrial], bracket: Bracket, *, is_confirmed: bool, is_missed: bool) -> str:
    """Return the time that would halve the bracket, or confirm a rate."""
    if bracket.met is None and seen and not is_missed:
        each_s = max(trial.took_s for trial in seen)
        return f"about {numbers.with_unit((1 + FRESH) * each_s, 's')} more would try and confirm a lower rate"
    if bracket.met is None or (is_confirmed and (bracket.obstacle is None or bracket.is_narrow)):
        return ""
    each_s = max(trial.took_s for trial in seen)
    if not is_confirmed:
        return f"about {numbers.with_unit(FRESH * each_s, 's')} more would confirm {_rate(bracket.met)}"
    assert bracket.obstacle is not None
    half = _rate((bracket.obstacle - bracket.met) / 2)
    return f"about {numbers.with_unit((1 + FRESH) * each_s, 's')} more would narrow it to {half}"
