"""The service counted more requests than this lab sent, and no usual check explains them.

**Means.** Another client sends requests to the service, or something between the generator and the service
sends them twice. The service's load is not the planned load, and rates from its own counters are too high.

**Needs.** The service's own count, from idle to idle, at least 3 above everything that was sent plus every
scrape of the lab that the service may have counted.

**Ruled out by.** Checks at a usual period (1, 2, 5, 10, 15, 30 or 60 s) that cover the surplus of each trial:
that is `accounting.explained`; if several periods would, the finding is suspected. Requests under way at the
edges, as the service is read while it is idle.

**Thresholds.** Bounds, not tolerances: own requests and scrapes are known exactly. 3: one or two may be a
single stray request. The surplus is said to grow with time or with what is sent only at 99 % confidence.

**Do.** Find the other client: read the access log of a minute without load. If the surplus grows with what is
sent, look for retries of a proxy or a client.

**Confirm.** Run twice as long at half the load: a surplus that grows with time doubles, one that grows with
requests stays.
"""

from __future__ import annotations

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Words
from loadlens.diagnose.observe import counts
from loadlens.diagnose.observe.counts import FEWEST, Account, assessing_counts
from loadlens.estimate.reconciliation import Excess
from loadlens.model.facts import Facts
from loadlens.model.finding import Grade
from loadlens.present.numbers import percent

ID = "accounting.excess"
TITLE = "the service counted more requests than were sent"
EXPLAINS: tuple[str, ...] = ()

LEAST_IMPACT = 0.01


def claim(facts: Facts, account: Account) -> Claim:
    """Claim that requests came from elsewhere."""
    balance, rate = account.balance, account.rate
    is_beyond: bool | None = balance.unexplained >= FEWEST and account.period_s is None
    if is_beyond and account.periods_s:
        is_beyond = None  # a check would explain it, but which one is open
    signals = [counts.bounds_signal(account, "excess.bounds", is_beyond), counts.rate_signal(account)]
    if isinstance(account.grows, Excess):  # shown, not required: the sender is known either way
        by_time, by_request = account.grows.per_second, account.grows.per_request
        text = (
            f"{by_time.point:.3g}/s ({by_time.low:.3g} to {by_time.high:.3g}) with time, "
            f"{by_request.point * 100:.2g} % ({(by_request.low or 0.0) * 100:.2g} to "
            f"{(by_request.high or 0.0) * 100:.2g}) of what is sent"
        )
        signals.append(grading.stated("excess.grows", True, text=text))
    share = balance.unexplained / max(1, account.sent)

    def words(_: Grade) -> Words:
        size = f"{rate.point:.3g}/s"
        advice = f"Find who asks {rate.point:.3g} times a second: the access log of a minute without load."
        if account.is_proportional:
            size = f"{percent(share)} of what was sent"
            advice = "Find who asks again: the surplus grows with what is sent, as a proxy's retries do."
        return Words(
            statement=f"{balance.unexplained:,} requests more than sent were counted: {size}",
            explanation=f"{account.label} counted {balance.observed:,} over {len(account.count.trials)} "
            f"trials; at most {balance.expected_high:,} came from here.",
            advice=advice,
            confirm="twice as long at half the load: what grows with time doubles, with requests stays",
            impact=max(LEAST_IMPACT, share),
        )

    return counts.claim_of(facts, account, signals, words)


def _silence(account: Account) -> str:
    if account.balance.unexplained >= FEWEST and account.period_s is not None:
        return f"a check every {account.period_s:g} s covers the {account.surplus:,} more"
    return counts.agreement(account)


assess = assessing_counts(ID, TITLE, claim, _silence)
