"""The service counted more requests than the load, and checks at fixed times are all of them.

**Means.** Scrapes of its metrics or health checks are in the service's counters. Nothing is wrong; rates by
those counters hold them too.

**Needs.** The service's own count, from idle to idle, above what was sent, and the whole surplus within what
our own scrapes, or checks at one usual period (1, 2, 5, 10, 15, 30 or 60 s), can make: in all trials
together, and for checks of others in each of them.

**Ruled out by.** A surplus beyond those bounds (`accounting.excess`), or one that fits several periods.

**Thresholds.** A source of period s asks between floor(T / s) and ceil(T / s) + 1 times in T seconds. 3
requests, as for a surplus.

**Do.** Leave monitoring's paths out of the counter, or out of the sums.

**Confirm.** Scrapes half as often: the surplus halves.
"""

from __future__ import annotations

from loadlens.diagnose import grading
from loadlens.diagnose.observe import counts
from loadlens.diagnose.observe.counts import FEWEST, Book
from loadlens.model.facts import Facts
from loadlens.model.finding import Absent, Finding, NotAssessed
from loadlens.present import numbers

ID = "accounting.explained"
TITLE = "checks are counted among the requests"
EXPLAINS: tuple[str, ...] = ()

IMPACT = 0.01


def assess(facts: Facts) -> Finding | Absent | NotAssessed:
    """Look at every counter of a service."""
    return counts.assess(facts, ID, TITLE, _finding, counts.agreement)


def _finding(book: Book) -> Finding | None:
    by_scrapes = book.found.unexplained == 0
    signals = [
        counts.beyond_bounds(
            book, "excess.bounds", book.surplus >= FEWEST and (by_scrapes or book.period_s is not None)
        )
    ]
    if not by_scrapes:
        signals.append(counts.rate_signal(book))
    rivals = [counts.edges(book)]
    grade = counts.grade(book, signals, rivals)
    if grade is None:
        return None
    source = "our own scrapes" if by_scrapes else f"a check every {book.period_s:g} s"
    return Finding(
        rule=ID,
        grade=grade,
        impact=IMPACT,
        scope=book.label,
        statement=grading.statement(f"{book.surplus:,} requests more than sent were counted: {source}"),
        explanation=f"{book.label} counted {book.found.observed:,}, sent were {book.sent:,}; "
        + (
            f"it was scraped up to {book.scrapes:,} times." if by_scrapes else "every trial fits that period."
        ),
        evidence=tuple(signal.evidence for signal in signals),
        counter=tuple(rivals),
        advice=f"Take {numbers.percent(book.surplus / max(1, book.found.observed))} off rates by that "
        f"counter, "
        "or leave monitoring's paths out of it.",
        confirm="half as many scrapes: half the surplus",
    )
