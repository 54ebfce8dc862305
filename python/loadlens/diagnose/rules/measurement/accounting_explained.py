"""The service counted more requests than the load sent, and checks at fixed times explain all of them.

**Means.** Scrapes of the service's metrics or health checks are in its counters. Nothing is wrong, but rates
from those counters include them.

**Needs.** The service's own count, from idle to idle, above what was sent, and the whole surplus within what
our own scrapes, or checks at one usual period (1, 2, 5, 10, 15, 30 or 60 s), can make: in all trials
together, and in each of them for checks by others.

**Ruled out by.** A surplus beyond those bounds (`accounting.excess`), or one that fits several periods.

**Thresholds.** A source with a period of s makes between floor(T / s) and ceil(T / s) + 1 requests in T
seconds. 3 requests, as for a surplus.

**Do.** Leave the paths of monitoring out of the counter, or out of the sums.

**Confirm.** Scrape half as often: the surplus halves.
"""

from __future__ import annotations

from loadlens.diagnose.driver import Claim, Words
from loadlens.diagnose.observe.counts import (
    FEWEST,
    Account,
    assessing_counts,
    bounds_signal,
    claim_of,
    rate_signal,
)
from loadlens.model.facts import Facts
from loadlens.model.finding import Grade
from loadlens.present.numbers import percent

ID = "accounting.explained"
TITLE = "checks are counted among the requests"
EXPLAINS: tuple[str, ...] = ()

IMPACT = 0.01


def claim(facts: Facts, account: Account) -> Claim:
    """Claim that scrapes or checks make the whole surplus."""
    by_scrapes, observed = account.balance.unexplained == 0, account.balance.observed
    is_explained = account.surplus >= FEWEST and (by_scrapes or account.period_s is not None)
    signals = [bounds_signal(account, "excess.bounds", is_explained)]
    if not by_scrapes:
        signals.append(rate_signal(account))

    def words(_: Grade) -> Words:
        if by_scrapes:
            source, fits = "our own scrapes", f"it was scraped up to {account.scrapes:,} times"
        else:
            source, fits = f"a check every {account.period_s:g} s", "every trial fits that period"
        share = percent(account.surplus / max(1, observed))
        return Words(
            statement=f"{account.surplus:,} requests more than sent were counted: {source}",
            explanation=f"{account.label} counted {observed:,}, sent were {account.sent:,}; {fits}.",
            advice=f"Take {share} off rates by that counter, or leave monitoring's paths out of it.",
            confirm="half as many scrapes: half the surplus",
            impact=IMPACT,
        )

    return claim_of(facts, account, signals, words)


assess = assessing_counts(ID, TITLE, claim)
