"""What the three rules of accounting ask of a counter: who may have sent what it counted, within bounds."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from loadlens.diagnose import grading
from loadlens.diagnose.grading import Signal
from loadlens.estimate.interval import Insufficient, Interval
from loadlens.estimate.reconciliation import (
    USUAL_PERIODS_S,
    Excess,
    Part,
    Reconciliation,
    attribute_excess,
    period_of,
    periodic,
    reconcile,
)
from loadlens.model.facts import Facts
from loadlens.model.finding import Absent, Counter, Finding, Grade, NotAssessed
from loadlens.model.quality import Count, Counted

FEWEST = 3  # requests beyond the bounds: one or two are somebody who looked
LEVEL = 0.99  # of the intervals that tell what a surplus grows with
NORMAL_95 = 1.96
PHASE_DEVIATION = 0.5  # of a count around seconds / period, at most: it is one of two neighbouring integers


@dataclass(frozen=True, slots=True)
class Book:
    """A counter against everybody known to have sent."""

    count: Count
    found: Reconciliation
    sent: int  # by us, at most
    scrapes: int  # of ours, at most
    rate: Interval  # requests per second that we did not send, scrapes aside
    grows: Excess | Insufficient
    period_s: float | None  # usual period of a check that covers the surplus of every trial
    periods_s: tuple[float, ...]  # all usual ones that do: with several, nobody knows which

    @property
    def label(self) -> str:
        """`api, http_requests_total`."""
        return self.count.label

    @property
    def surplus(self) -> int:
        """Counted beyond what we sent; below 0: fewer."""
        return self.found.observed - self.sent

    @property
    def is_proportional(self) -> bool:
        """Whether the surplus grows with what is sent, beyond doubt, and not with time."""
        if isinstance(self.grows, Insufficient):
            return False
        by_request, by_time = self.grows.per_request, self.grows.per_second
        return (by_request.low or 0.0) > 0 and not (by_time.low or 0.0) > 0


def books(facts: Facts) -> list[Book]:
    """Every counter that was read in a trial at least."""
    return [_book(count) for count in facts.counts if count.trials]


def _book(count: Count) -> Book:
    trials = count.trials
    low, high = sum(one.sent_low for one in trials), sum(one.sent_high for one in trials)
    scrapes = sum(one.scrapes for one in trials)
    found = reconcile(
        round(sum(one.counted for one in trials)), (Part("sent", low, high), Part("scrapes", 0, scrapes))
    )
    seconds = np.array([one.seconds for one in trials])
    sent = np.array([float(one.sent_high) for one in trials])
    beyond = np.array([one.counted - one.sent_high for one in trials])
    grows = attribute_excess(seconds, sent, beyond, confidence=LEVEL)
    periods = _periods(trials)
    rate = _rate(trials)
    period = period_of(rate)
    return Book(count, found, high, scrapes, rate, grows, period if period in periods else None, periods)


def _rate(trials: tuple[Counted, ...]) -> Interval:
    """Surplus per second, the edges of a period and requests that may not have arrived allowed for."""
    seconds = sum(one.seconds for one in trials)
    surplus = sum(one.counted - one.sent_high for one in trials)
    unsure = sum(one.sent_high - one.sent_low for one in trials)
    scrapes = sum(one.scrapes for one in trials)
    half = max(1.0, NORMAL_95 * PHASE_DEVIATION * math.sqrt(len(trials)))
    return Interval(
        surplus / seconds,
        max(0.0, (surplus - scrapes - half) / seconds),
        (surplus + unsure + half) / seconds,
        float(len(trials)),
        "surplus over time, idle to idle",
    )


def _periods(trials: tuple[Counted, ...]) -> tuple[float, ...]:
    """The usual periods of checks that cover the rate and the surplus of every trial within its bounds."""
    rate = _rate(trials)
    return tuple(
        period
        for period in USUAL_PERIODS_S
        if rate.covers(1 / period) and all(_is_covered(one, period) for one in trials)
    )


def _is_covered(one: Counted, period_s: float) -> bool:
    bounds = periodic("checks", one.seconds, period_s)
    return one.sent_low + bounds.low <= one.counted <= one.sent_high + one.scrapes + bounds.high


def assess(
    facts: Facts,
    rule: str,
    title: str,
    find: Callable[[Book], Finding | None],
    silence: Callable[[Book], str],
) -> Finding | Absent | NotAssessed:
    """Ask every counter; the one with the largest share speaks."""
    kept = books(facts)
    if not kept:
        restarted = next((count for count in facts.counts if count.restarts), None)
        if restarted is not None:
            return NotAssessed(rule, title, f"{restarted.label} went back in every trial: it began anew")
        return NotAssessed(
            rule, title, "needs the service's own count of its requests: --metrics, --requests"
        )
    found = [finding for book in kept if (finding := find(book)) is not None]
    if found:
        most = grading.strongest(found)
        return replace(most, curves=tuple(curve.label for curve in facts.curves))
    return Absent(rule, title, silence(max(kept, key=lambda book: abs(book.surplus))))


def agreement(book: Book) -> str:
    """What the bounds say of a counter that breaks none, with what they can see."""
    found = book.found
    seconds = sum(one.seconds for one in book.count.trials)
    return (
        f"{book.label} counted {found.observed:,}, sent were {book.sent:,} "
        f"(bounds {found.expected_low:,} to {found.expected_high:,}); "
        f"{FEWEST} in {seconds:.0f} s would be seen"
    )


def grade(book: Book, signals: list[Signal], rivals: list[Counter]) -> Grade | None:
    """Several trials bear a strong finding, one does not; one counter that often goes back is several.

    A port that several processes answer shows another one's counter at each scrape.
    """
    cap = Grade.STRONG if len(book.count.trials) > 1 else Grade.PROBABLE
    if book.count.restarts >= len(book.count.trials):
        cap = Grade.SUSPECTED
    return grading.grade_of(signals, rivals, cap=cap)


def edges(book: Book) -> Counter:
    """Requests under way at the edges: ruled out, as each trial is read from idle to idle."""
    if book.count.restarts:
        text = f"the counter began anew in {book.count.restarts} trials, which are left out"
        return grading.rival("requests at the edges", text, None)
    return grading.rival("requests at the edges", "read while the service was idle, before and after", True)


def beyond_bounds(book: Book, signal: str, passed: bool | None) -> Signal:
    """The count against its bounds."""
    found = book.found
    return grading.stated(
        signal,
        passed,
        text=f"counted {found.observed:,}, explained {found.expected_low:,} to {found.expected_high:,}",
        chip=f"{found.unexplained:+,} beyond bounds" if found.unexplained else f"{book.surplus:+,} explained",
    )


def rate_signal(book: Book) -> Signal:
    """How many requests a second nobody here sent."""
    return grading.at_least(
        "excess.rate",
        book.rate,
        0.0,
        text=f"{book.rate.point:.3g} requests/s that we did not send "
        f"({book.rate.low or 0.0:.3g}\N{EN DASH}{book.rate.high or 0.0:.3g})",
        chip=f"{book.rate.point:.3g}/s from elsewhere",
    )
