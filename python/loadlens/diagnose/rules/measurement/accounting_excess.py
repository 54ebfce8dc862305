"""The service counted more requests than anybody here sent, and no usual check explains them.

**Means.** Somebody else asks the service, or something between it and the generator asks twice. The load that
it bears is not the load that was planned, and rates by its own counters are too high.

**Needs.** The service's own count, from idle to idle, at least 3 above everything that was sent and every
scrape of ours that it may have counted.

**Ruled out by.** Checks at a usual period (1, 2, 5, 10, 15, 30 or 60 s) that cover the surplus of each trial:
that is `accounting.explained`; where several of them would, it is suspected. Requests under way at the edges,
as the service is read while it is idle.

**Thresholds.** Bounds, not tolerances: own requests and scrapes are known to the last one. 3: one or two are
somebody who looked. Whether the surplus grows with time or with what is sent is said with 99 %.

**Do.** Find who asks: the access log of a minute without load. Where it grows with what is sent, look for
retries of a proxy or a client.

**Confirm.** The same for twice as long at half the load: a surplus that grows with time doubles, one that
grows with requests stays.
"""

from __future__ import annotations

from loadlens.diagnose import grading
from loadlens.diagnose.grading import Signal
from loadlens.diagnose.observe import counts
from loadlens.diagnose.observe.counts import FEWEST, Book
from loadlens.estimate.reconciliation import Excess
from loadlens.model.facts import Facts
from loadlens.model.finding import Absent, Finding, NotAssessed
from loadlens.present import numbers

ID = "accounting.excess"
TITLE = "the service counted more requests than were sent"
EXPLAINS: tuple[str, ...] = ()

LEAST_IMPACT = 0.01


def assess(facts: Facts) -> Finding | Absent | NotAssessed:
    """Look at every counter of a service."""
    return counts.assess(facts, ID, TITLE, _finding, _silence)


def _finding(book: Book) -> Finding | None:
    is_beyond: bool | None = book.found.unexplained >= FEWEST and book.period_s is None
    if is_beyond and book.periods_s:
        is_beyond = None  # a check would explain it, only not which
    signals = [counts.beyond_bounds(book, "excess.bounds", is_beyond), counts.rate_signal(book)]
    if isinstance(book.grows, Excess):
        signals.append(_grows(book.grows))
    rivals = [counts.edges(book)]
    grade = counts.grade(book, signals, rivals)
    if grade is None:
        return None
    share = book.found.unexplained / max(1, book.sent)
    how = f"{numbers.percent(share)} of what was sent" if book.is_proportional else f"{book.rate.point:.3g}/s"
    return Finding(
        rule=ID,
        grade=grade,
        impact=min(1.0, max(LEAST_IMPACT, share)),
        scope=book.label,
        statement=grading.statement(
            f"{book.found.unexplained:,} requests more than sent were counted: {how}"
        ),
        explanation=f"{book.label} counted {book.found.observed:,} over {len(book.count.trials)} trials; "
        f"at most {book.found.expected_high:,} came from here.",
        evidence=tuple(signal.evidence for signal in signals),
        counter=tuple(rivals),
        advice="Find who asks again: the surplus grows with what is sent, as a proxy's retries do."
        if book.is_proportional
        else f"Find who asks {book.rate.point:.3g} times a second: the access log of a minute without load.",
        confirm="twice as long at half the load: what grows with time doubles, with requests stays",
    )


def _grows(grows: Excess) -> Signal:
    """Told, not required: who sends is known either way."""
    by_time, by_request = grows.per_second, grows.per_request
    return grading.stated(
        "excess.grows",
        True,
        text=f"{by_time.point:.3g}/s ({by_time.low:.3g} to {by_time.high:.3g}) with time, "
        f"{by_request.point * 100:.2g} % ({(by_request.low or 0.0) * 100:.2g} to "
        f"{(by_request.high or 0.0) * 100:.2g}) of what is sent",
    )


def _silence(book: Book) -> str:
    if book.found.unexplained >= FEWEST and book.period_s is not None:
        return f"a check every {book.period_s:g} s covers the {book.surplus:,} more"
    return counts.agreement(book)
