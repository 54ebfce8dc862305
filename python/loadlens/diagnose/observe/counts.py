"""Reconciliation of a service's own counter with all known senders, within bounds.

The three rules of accounting differ in their claim; observations, choice and curves are the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Answer, Claim, Lacking, Words, assessing, strongest
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
from loadlens.model.finding import Z_95, Grade
from loadlens.model.quality import Count, Counted

FEWEST = 3  # requests beyond the bounds: one or two may be a single stray check
LEVEL = 0.99  # of the intervals that show what a surplus grows with
PHASE_DEVIATION = 0.5  # of a count around seconds / period, at most: it is one of two neighbouring integers


@dataclass(frozen=True, slots=True)
class Account:
    """A counter reconciled with all known senders."""

    count: Count
    balance: Reconciliation
    sent: int  # by us, at most
    scrapes: int  # our own, at most
    rate: Interval  # requests per second that we did not send, scrapes excluded
    grows: Excess | Insufficient
    periods_s: tuple[float, ...]  # usual periods of a check that cover the surplus of every trial
    period_s: float | None  # the nearest to the rate, if it is one of them

    @property
    def label(self) -> str:
        """`api, http_requests_total`."""
        return self.count.label

    @property
    def surplus(self) -> int:
        """Requests counted beyond those that we sent; below 0: fewer."""
        return self.balance.observed - self.sent

    @property
    def is_proportional(self) -> bool:
        """True if the surplus certainly grows with what is sent, and not with time."""
        if isinstance(self.grows, Insufficient):
            return False
        by_request, by_time = self.grows.per_request, self.grows.per_second
        return (by_request.low or 0.0) > 0 and not (by_time.low or 0.0) > 0


def account(count: Count) -> Account:
    """Reconcile one counter over all trials in which it was read."""
    trials = count.trials
    low, high = sum(trial.sent_low for trial in trials), sum(trial.sent_high for trial in trials)
    scrapes = sum(trial.scrapes for trial in trials)
    counted = round(sum(trial.counted for trial in trials))
    seconds = np.array([trial.seconds for trial in trials])
    sent = np.array([float(trial.sent_high) for trial in trials])
    beyond = np.array([trial.counted - trial.sent_high for trial in trials])
    # The edges of a period, and requests that may not have arrived, widen the bounds.
    half = max(1.0, Z_95 * PHASE_DEVIATION * math.sqrt(len(trials)))
    surplus = sum(trial.counted - trial.sent_high for trial in trials)
    whole_s = sum(trial.seconds for trial in trials)
    rate = Interval(
        surplus / whole_s,
        max(0.0, (surplus - scrapes - half) / whole_s),
        (surplus + high - low + half) / whole_s,
        float(len(trials)),
        "surplus over time, idle to idle",
    )
    periods = tuple(
        period
        for period in USUAL_PERIODS_S
        if rate.covers(1 / period) and all(_is_covered(trial, period) for trial in trials)
    )
    nearest = period_of(rate)
    return Account(
        count,
        reconcile(counted, (Part("sent", low, high), Part("scrapes", 0, scrapes))),
        high,
        scrapes,
        rate,
        attribute_excess(seconds, sent, beyond, confidence=LEVEL),
        periods,
        nearest if nearest in periods else None,
    )


def _is_covered(trial: Counted, period_s: float) -> bool:
    bounds = periodic("checks", trial.seconds, period_s)
    return trial.sent_low + bounds.low <= trial.counted <= trial.sent_high + trial.scrapes + bounds.high


def observe(facts: Facts) -> Sequence[Account] | Lacking:
    """Return every counter that was read in at least one trial."""
    accounts = [account(count) for count in facts.counts if count.trials]
    if accounts:
        return accounts
    restarted = next((count for count in facts.counts if count.restarts), None)
    if restarted is not None:
        return Lacking(f"{restarted.label} went back in every trial: it began anew")
    return Lacking("needs the service's own count of its requests: --metrics, --requests")


def claim_of(
    facts: Facts, account: Account, signals: Sequence[Signal], words: Callable[[Grade], Words]
) -> Claim:
    """Make a claim about a counter, for all curves.

    Several trials allow a strong finding, one trial does not. A counter that goes back in as many trials is
    several counters: a port that several processes share shows another one's at each scrape.
    """
    trials, restarts = len(account.count.trials), account.count.restarts
    cap = Grade.STRONG if trials > 1 else Grade.PROBABLE
    text = "read while the service was idle, before and after"
    if restarts:
        text = f"the counter began anew in {restarts} trials, which are left out"
    edges = grading.rival("requests at the edges", text, None if restarts else True)
    return Claim(
        account.label,
        signals,
        [edges],
        words,
        tuple(curve.label for curve in facts.curves),
        Grade.SUSPECTED if restarts >= trials else cap,
    )


def agreement(account: Account) -> str:
    """Return how a counter agrees with its bounds, and the smallest difference that would show."""
    balance, seconds = account.balance, sum(trial.seconds for trial in account.count.trials)
    return (
        f"{account.label} counted {balance.observed:,}, sent were {account.sent:,} "
        f"(bounds {balance.expected_low:,} to {balance.expected_high:,}); "
        f"{FEWEST} in {seconds:.0f} s would be seen"
    )


def assessing_counts(
    rule: str,
    title: str,
    claim: Callable[[Facts, Account], Claim],
    silence: Callable[[Account], str] = agreement,
) -> Callable[[Facts], Answer]:
    """Return `assess` of a rule of accounting: the counter with the largest share speaks."""

    def of_furthest(_: Facts, accounts: Sequence[Account]) -> str:
        return silence(max(accounts, key=lambda account: abs(account.surplus)))

    return assessing(rule, title, observe, claim, choose=strongest, silence=of_furthest)


def bounds_signal(account: Account, signal: str, passed: bool | None) -> Signal:
    """Compare the count with its bounds."""
    balance, beyond = account.balance, account.balance.unexplained
    return grading.stated(
        signal,
        passed,
        text=f"counted {balance.observed:,}, explained {balance.expected_low:,} to {balance.expected_high:,}",
        chip=f"{beyond:+,} beyond bounds" if beyond else f"{account.surplus:+,} explained",
    )


def rate_signal(account: Account) -> Signal:
    """State the rate of requests that we did not send."""
    rate = account.rate
    return grading.at_least(
        "excess.rate",
        rate,
        0.0,
        text=f"{rate.point:.3g} requests/s that we did not send "
        f"({rate.low or 0.0:.3g}\N{EN DASH}{rate.high or 0.0:.3g})",
        chip=f"{rate.point:.3g}/s from elsewhere",
    )
