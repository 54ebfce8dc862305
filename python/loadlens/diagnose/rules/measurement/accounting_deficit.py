"""The service counted fewer requests than reached it.

**Means.** Requests were answered by something before the service, or the service does not count them all
(a path that its middleware skips, answers that it refuses early, a replica that was not read). Rates by its
own counters are too low.

**Needs.** The service's own count, from idle to idle, at least 3 below the requests that were answered.

**Ruled out by.** Requests that may never have reached it (refused, timed out, broken off): they widen the
bounds. A process that began anew: such trials are left out.

**Thresholds.** Bounds, not tolerances. 3: as for a surplus.

**Do.** Compare the counter's labels with the paths and statuses that were sent; read all replicas.

**Confirm.** One request by hand for each path: the counter that stays is the one that misses them.
"""

from __future__ import annotations

from loadlens.diagnose import grading
from loadlens.diagnose.observe import counts
from loadlens.diagnose.observe.counts import FEWEST, Book
from loadlens.model.facts import Facts
from loadlens.model.finding import Absent, Finding, NotAssessed
from loadlens.present import numbers

ID = "accounting.deficit"
TITLE = "the service counted fewer requests than it answered"
EXPLAINS: tuple[str, ...] = ()

LEAST_IMPACT = 0.01


def assess(facts: Facts) -> Finding | Absent | NotAssessed:
    """Look at every counter of a service."""
    return counts.assess(facts, ID, TITLE, _finding, counts.agreement)


def _finding(book: Book) -> Finding | None:
    missing = -book.found.unexplained
    signals = [counts.beyond_bounds(book, "deficit.bounds", missing >= FEWEST)]
    rivals = [counts.edges(book)]
    grade = counts.grade(book, signals, rivals)
    if grade is None:
        return None
    share = missing / max(1, book.sent)
    return Finding(
        rule=ID,
        grade=grade,
        impact=min(1.0, max(LEAST_IMPACT, share)),
        scope=book.label,
        statement=grading.statement(
            f"{missing:,} of {book.sent:,} requests were not counted by the service: {numbers.percent(share)}"
        ),
        explanation=f"{book.label} counted {book.found.observed:,}; at least {book.found.expected_low:,} "
        "were answered.",
        evidence=tuple(signal.evidence for signal in signals),
        counter=tuple(rivals),
        advice=f"Take rates from the client: the counter misses {numbers.percent(share)}. Compare its labels "
        "with the paths that were asked, and read every replica.",
        confirm="one request by hand for each path: a counter that stays misses them",
    )
