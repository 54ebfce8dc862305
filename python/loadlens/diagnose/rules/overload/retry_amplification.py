"""Retries add load.

**Means.** A program between the client and the service asks again when an answer is bad or late. The service
then works for more requests than were sent, and the more it fails the more it is asked.

**Needs.** What the service counted, over at least 5 trials of different load: more than was sent, by a
share that grows in step with what was sent and is at least 1 %, above zero with 99 % confidence, without the
trial that sent most, too. What grows with time alone, as scrapes and health checks do, is split off and does
not count. And answers that failed (408, 429, 5xx) at least four for every five that are in surplus: who asks
again does so for a reason. A service whose counter does not say the status, or that counted fewer, leaves
open whether it was too slow for the caller, or is asked more than once by design, as after a miss in a
cache: the finding is then only suspected.

**Ruled out by.** A request that asks several times by design: then the share is a whole number. Another
client is ruled out because the surplus follows our load. Requests that may not have arrived
(time-outs, resets) count as sent. Failures and requests asked twice by design may meet by chance, so the
finding is never more than probable.

**Thresholds.** 1 %: what requests under way at the edges may hide. 99 %: of many rules one must not fire by
chance. Without the largest: what happens in one trial only is no rule. Four of five: each try but the last
ends in a failure, so failures are never fewer than retries; some end in a time-out, which the service does
not count. Within 2 % of a whole number counts as by design.

**Do.** Give retries a budget (a tenth of the requests) and pauses that grow, with jitter, and retry in one
place only: three layers of three tries are 27.

**Confirm.** Retries off: the service counts what was sent, and the knee moves up by the same share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Lacking, Words, assessing
from loadlens.estimate.interval import Insufficient
from loadlens.estimate.reconciliation import Excess, attribute_excess
from loadlens.model.facts import Facts
from loadlens.model.finding import Counter, Grade
from loadlens.model.quality import Count
from loadlens.present import numbers

ID = "retry.amplification"
TITLE = "retries add load"
EXPLAINS: tuple[str, ...] = ("accounting.excess",)

LEAST = 0.01  # of the requests that were sent
SURE = 0.99  # confidence
WHOLE = 0.02  # from a whole number
FOLLOWS = 0.8  # failures for each request in surplus
EDGES = 100.0  # variance of a count, besides what grows with the requests sent: those under way at its edges


@dataclass(frozen=True, slots=True)
class Surplus:
    """The surplus of one counter."""

    count: Count
    sent: float
    counted: float
    excess: Excess  # with intervals of 95 %
    surely: Excess  # of 99 %
    without_most: Excess | Insufficient  # of 99 %, without the trial that sent most
    failed: float | None  # that it answered as failed; none: it does not say


def observe(facts: Facts) -> Sequence[Surplus] | Lacking:
    """Return what each service counted beyond what was sent, the largest part in step with the load first."""
    if not facts.counts:
        return Lacking("needs what the service counted of its requests: --metrics and --requests")
    attributed = [_surplus(count) for count in facts.counts]
    surpluses = [surplus for surplus in attributed if isinstance(surplus, Surplus)]
    surpluses.sort(key=lambda surplus: surplus.excess.per_request.point, reverse=True)
    return surpluses or Lacking(next(lack.reason for lack in attributed if isinstance(lack, Insufficient)))


def _surplus(count: Count) -> Surplus | Insufficient:
    seconds = np.array([trial.seconds for trial in count.trials], dtype=np.float64)
    # A request that was given up may have been counted once; only what comes on top was asked again.
    sent = np.array([trial.sent_high for trial in count.trials], dtype=np.float64)
    counted = np.array([trial.counted for trial in count.trials], dtype=np.float64)
    excess = attribute_excess(seconds, sent, counted - sent, scatter=sent + EDGES)
    surely = attribute_excess(seconds, sent, counted - sent, confidence=SURE, scatter=sent + EDGES)
    if isinstance(excess, Insufficient):
        return excess
    if isinstance(surely, Insufficient):
        return surely
    rest = np.delete(np.arange(sent.size), int(sent.argmax()))
    seconds, sent, beyond = seconds[rest], sent[rest], (counted - sent)[rest]
    fewer = attribute_excess(seconds, sent, beyond, confidence=SURE, scatter=sent + EDGES)
    failed = [trial.failed for trial in count.trials]
    read = [count for count in failed if count is not None]
    return Surplus(
        count=count,
        sent=float(sum(trial.sent_high for trial in count.trials)),
        counted=float(counted.sum()),
        excess=excess,
        surely=surely,
        without_most=fewer,
        failed=sum(read) if len(read) == len(failed) else None,
    )


def claim(facts: Facts, surplus: Surplus) -> Claim:
    """Hold the surplus against the failures that retries follow, and against requests doubled by design."""
    share = surplus.excess.per_request
    signals = [_share(surplus), _in_step(surplus), _follows_failures(surplus)]
    rivals = [
        _design_rival(surplus),
        grading.rival("another client", "the surplus follows our load", True),
        grading.rival(
            "asking again by design for some", "why a request was asked again is not recorded", None
        ),
    ]

    def words(_: Grade) -> Words:
        more, back = numbers.percent(share.point), share.point / (1 + share.point)
        return Words(
            statement=f"The service works for {more} more requests than were sent: retries",
            explanation=f"It counted {surplus.counted:,.0f} requests where {surplus.sent:,.0f} were sent, "
            f"over {len(surplus.count.trials)} trials; what comes at a constant rate is "
            f"{numbers.with_unit(surplus.excess.per_second.point, '1/s')}.",
            advice="Bound retries (a tenth of the requests), let pauses grow with jitter, and retry in one "
            f"place only: {more} of load are theirs now, and more the more it fails.",
            confirm=f"retries off: the service counts what was sent, and {numbers.percent(back)} of its "
            "capacity comes back",
            impact=back,
            unknown=("which requests were asked again, and why",),
        )

    curves = tuple(curve.label for curve in facts.curves)
    return Claim(surplus.count.label, signals, rivals, words, curves, cap=Grade.PROBABLE)


def _share(surplus: Surplus) -> grading.Signal:
    share = surplus.excess.per_request
    return grading.at_least(
        "excess.share",
        share,
        LEAST,
        text=f"for each 100 that are sent {100 * share.point:.2g} more are counted "
        f"({_bounds(surplus)}; limit {100 * LEAST:g})",
        chip=f"{numbers.percent(max(0.0, share.point))} more",
    )


def _bounds(surplus: Surplus) -> str:
    share = surplus.excess.per_request
    if share.low is None or share.high is None:
        return f"about {100 * share.point:.2g}"
    return f"{100 * share.low:.2g} to {100 * share.high:.2g}"


def _in_step(surplus: Surplus) -> grading.Signal:
    low = surplus.surely.per_request.low
    trials = len(surplus.count.trials)
    text = f"in step with what was sent over {trials} trials, above zero with {SURE:.0%} confidence"
    is_sure: bool | None = low is not None and low > 0
    if isinstance(surplus.without_most, Insufficient):
        text += f"; without the largest it is not known: {surplus.without_most.reason}"
        is_sure = None if is_sure else False
    else:
        rest = surplus.without_most.per_request
        text += f", and {100 * rest.point:.2g} for each 100 without the largest"
        is_sure = is_sure and rest.low is not None and rest.low > 0
    return grading.stated("excess.in-step", is_sure, text=text, chip="follows the load")


def _follows_failures(surplus: Surplus) -> grading.Signal:
    """Enough failed to be asked again for."""
    name = "excess.failures"
    if surplus.failed is None:
        return grading.stated(name, None, text="the service's counter does not say what it answered")
    count = max(0.0, surplus.excess.per_request.point * surplus.sent)
    text = (
        f"the service answered {surplus.failed:,.0f} requests with 408, 429 or 5xx, {count:,.0f} are in "
        f"surplus (limit {FOLLOWS:g} for each)"
    )
    follows = True if surplus.failed >= FOLLOWS * count else None
    return grading.stated(name, follows, text=text, chip=f"{surplus.failed:,.0f} failed there")


def _design_rival(surplus: Surplus) -> Counter:
    name, share = "several requests by design", surplus.excess.per_request
    whole = round(share.point)
    text = f"{share.point:.2g} more for each that is sent"
    if whole >= 1 and abs(share.point - whole) <= WHOLE * whole:
        return grading.rival(name, f"{text}: a whole number", False)
    return grading.rival(name, f"{text}: no whole number", True)


def _silence(facts: Facts, surpluses: Sequence[Surplus]) -> str:
    surplus = surpluses[0]
    design = _design_rival(surplus)
    if design.ruled_out is False:
        return design.text
    return (
        f"{surplus.counted:,.0f} counted, {surplus.sent:,.0f} sent: for each 100 sent "
        f"{_bounds(surplus)} more in step with the load (limit {100 * LEAST:g})"
    )


assess = assessing(ID, TITLE, observe, claim, silence=_silence)
