"""The service counted fewer requests than reached it.

**Means.** Something in front of the service answered requests, or the service does not count all of them (a
path that its middleware skips, requests that it refuses early, a replica that was not read). Rates from its
own counters are too low.

**Needs.** The service's own count, from idle to idle, at least 3 below the requests that were answered.

**Ruled out by.** Requests that may never have reached it (refused, timed out, broken off): they widen the
bounds. A process that was restarted: such trials are left out.

**Thresholds.** Bounds, not tolerances. 3: as for a surplus.

**Do.** Compare the counter's labels with the paths and statuses that were sent, and read all replicas.

**Confirm.** Send one request by hand for each path: the counter that does not move is the one that misses
them.
"""

from __future__ import annotations

from loadlens.diagnose.driver import Claim, Words
from loadlens.diagnose.observe.counts import FEWEST, Account, assessing_counts, bounds_signal, claim_of
from loadlens.model.facts import Facts
from loadlens.model.finding import Grade
from loadlens.present.numbers import percent

ID = "accounting.deficit"
TITLE = "the service counted fewer requests than it answered"
EXPLAINS: tuple[str, ...] = ()

LEAST_IMPACT = 0.01


def claim(facts: Facts, account: Account) -> Claim:
    """Claim that requests were not counted."""
    balance, missing = account.balance, -account.balance.unexplained
    share = missing / max(1, account.sent)

    def words(_: Grade) -> Words:
        return Words(
            statement=f"{missing:,} of {account.sent:,} requests were not counted by the service: "
            f"{percent(share)}",
            explanation=f"{account.label} counted {balance.observed:,}; at least {balance.expected_low:,} "
            "were answered.",
            advice=f"Take rates from the client: the counter misses {percent(share)}. Compare its labels "
            "with the paths that were asked, and read every replica.",
            confirm="one request by hand for each path: a counter that stays misses them",
            impact=max(LEAST_IMPACT, share),
        )

    return claim_of(facts, account, [bounds_signal(account, "deficit.bounds", missing >= FEWEST)], words)


assess = assessing_counts(ID, TITLE, claim)
