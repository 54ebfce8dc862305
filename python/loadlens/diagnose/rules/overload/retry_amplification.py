"""Retries add load.

**Means.** Somebody between the client and the service asks again when an answer is bad or late. The service
then works for more requests than were sent, and the more it fails the more it is asked.

**Needs.** What the service counted, over at least 5 trials of different load: more than was sent, by a
share that grows in step with what was sent and is at least 1 %, above zero with 99 % confidence, without the
trial that sent most, too. What grows with time alone, as scrapes and health checks do, is split off and does
not count. And answers that failed (408, 429, 5xx) at least four for every five that are in surplus: who asks
again does so for a reason. A service whose counter does not say the status, or that counted fewer, leaves
open whether it was too slow for the caller, or is asked more than once by design, as after a miss in a
cache: the finding is then only suspected.

**Ruled out by.** A request that asks several times by design: then the share is a whole number. Another
client is ruled out because the surplus follows our load. Requests of which nobody knows whether they arrived
(time-outs, resets) count as sent. Failures and requests asked twice by design may meet by chance, so the
finding is never more than probable.

**Thresholds.** 1 %: what requests under way at the edges may hide. 99 %: of many rules one must not fire by
chance. Without the largest: what happens beside one trial is no rule. Four of five: each try but the last
ends in a failure, so failures are never fewer than retries; some end in a time-out, which the service does
not count. Within 2 % of a whole number counts as by design.

**Do.** A budget for retries (a tenth of the requests), pauses that grow, with jitter, and retries in one
place only: three layers of three tries are 27.

**Confirm.** Retries off: the service counts what was sent, and the knee moves up by the same share.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from loadlens.diagnose import grading
from loadlens.estimate.interval import Insufficient
from loadlens.estimate.reconciliation import Excess, attribute_excess
from loadlens.model.facts import Facts
from loadlens.model.finding import Absent, Counter, Finding, Grade, NotAssessed
from loadlens.model.quality import Count
from loadlens.present import numbers

ID = "retry.amplification"
TITLE = "retries add load"
EXPLAINS: tuple[str, ...] = ("accounting.excess",)

LEAST = 0.01  # of the requests that were sent
SURE = 0.99  # confidence
WHOLE = 0.02  # from a whole number
FOLLOWS = 0.8  # failures for each request in surplus
EDGES = 100.0  # variance of a count, beside what grows with the requests sent: those under way at its edges


@dataclass(frozen=True, slots=True)
class Look:
    """The surplus of one counter."""

    count: Count
    sent: float
    counted: float
    excess: Excess  # with intervals of 95 %
    surely: Excess  # of 99 %
    without_most: Excess | Insufficient  # of 99 %, without the trial that sent most
    failed: float | None  # that it answered as failed; none: it does not say


def assess(facts: Facts) -> Finding | Absent | NotAssessed:
    """Look at what each service counted; the largest surplus in step with the load speaks."""
    if not facts.counts:
        lack = "needs what the service counted of its requests: --metrics and --requests"
        return NotAssessed(ID, TITLE, lack)
    looked = [_look(count) for count in facts.counts]
    looks = [look for look in looked if isinstance(look, Look)]
    if not looks:
        return NotAssessed(ID, TITLE, next(one.reason for one in looked if isinstance(one, Insufficient)))
    looks.sort(key=lambda look: look.excess.per_request.point, reverse=True)
    found = grading.first(_finding(facts, look) for look in looks)
    return found or Absent(ID, TITLE, _silence(looks[0]))


def _look(count: Count) -> Look | Insufficient:
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
    known = [one for one in failed if one is not None]
    return Look(
        count=count,
        sent=float(sum(trial.sent_high for trial in count.trials)),
        counted=float(counted.sum()),
        excess=excess,
        surely=surely,
        without_most=fewer,
        failed=sum(known) if len(known) == len(failed) else None,
    )


def _finding(facts: Facts, look: Look) -> Finding | None:
    share = look.excess.per_request
    signals = [_share(look), _in_step(look), _follows_failures(look)]
    rivals = [
        _design_rival(look),
        grading.rival("another client", "the surplus follows our load", True),
        grading.rival(
            "asking again by design for some", "why a request was asked again is not recorded", None
        ),
    ]
    grade = grading.grade_of(signals, rivals, cap=Grade.PROBABLE)
    if grade is None:
        return None
    more = numbers.percent(share.point)
    return Finding(
        rule=ID,
        grade=grade,
        impact=min(1.0, share.point / (1 + share.point)),
        scope=look.count.label,
        statement=grading.statement(f"The service works for {more} more requests than were sent: retries"),
        explanation=f"It counted {look.counted:,.0f} requests where {look.sent:,.0f} were sent, over "
        f"{len(look.count.trials)} trials; what comes at a constant rate is "
        f"{numbers.with_unit(look.excess.per_second.point, '1/s')}.",
        evidence=tuple(signal.evidence for signal in signals),
        counter=tuple(rivals),
        advice="Bound retries (a tenth of the requests), let pauses grow with jitter, and retry in one place "
        f"only: {more} of load are theirs now, and more the more it fails.",
        confirm=f"retries off: the service counts what was sent, and {numbers.percent(_back(look))} of its "
        "capacity comes back",
        unknown=("which requests were asked again, and why",),
        curves=tuple(curve.label for curve in facts.curves),
    )


def _back(look: Look) -> float:
    share = look.excess.per_request.point
    return share / (1 + share)


def _share(look: Look) -> grading.Signal:
    share = look.excess.per_request
    found = grading.at_least(
        "excess.share",
        share,
        LEAST,
        text=f"for each 100 that are sent {100 * share.point:.2g} more are counted "
        f"({_bounds(look)}; limit {100 * LEAST:g})",
        chip=f"{numbers.percent(max(0.0, share.point))} more",
    )
    return grading.Signal(replace(found.evidence, threshold=LEAST), found.is_clear)


def _bounds(look: Look) -> str:
    share = look.excess.per_request
    if share.low is None or share.high is None:
        return f"about {100 * share.point:.2g}"
    return f"{100 * share.low:.2g} to {100 * share.high:.2g}"


def _in_step(look: Look) -> grading.Signal:
    low = look.surely.per_request.low
    trials = len(look.count.trials)
    text = f"in step with what was sent over {trials} trials, above zero with {SURE:.0%} confidence"
    is_sure: bool | None = low is not None and low > 0
    if isinstance(look.without_most, Insufficient):
        text += f"; without the largest it is not known: {look.without_most.reason}"
        is_sure = None if is_sure else False
    else:
        rest = look.without_most.per_request
        text += f", and {100 * rest.point:.2g} for each 100 without the largest"
        is_sure = is_sure and rest.low is not None and rest.low > 0
    return grading.stated("excess.in-step", is_sure, text=text, chip="follows the load")


def _follows_failures(look: Look) -> grading.Signal:
    """Whether enough failed to be asked again for."""
    name = "excess.failures"
    if look.failed is None:
        return grading.stated(name, None, text="the service's counter does not say what it answered")
    surplus = max(0.0, look.excess.per_request.point * look.sent)
    text = (
        f"the service answered {look.failed:,.0f} requests with 408, 429 or 5xx, {surplus:,.0f} are in "
        f"surplus (limit {FOLLOWS:g} for each)"
    )
    follows = True if look.failed >= FOLLOWS * surplus else None
    return grading.stated(name, follows, text=text, chip=f"{look.failed:,.0f} failed there")


def _design_rival(look: Look) -> Counter:
    name, share = "several requests by design", look.excess.per_request
    whole = round(share.point)
    text = f"{share.point:.2g} more for each that is sent"
    if whole >= 1 and abs(share.point - whole) <= WHOLE * whole:
        return grading.rival(name, f"{text}: a whole number", False)
    return grading.rival(name, f"{text}: no whole number", True)


def _silence(look: Look) -> str:
    design = _design_rival(look)
    if design.ruled_out is False:
        return design.text
    return (
        f"{look.counted:,.0f} counted, {look.sent:,.0f} sent: for each 100 sent {_bounds(look)} more "
        f"in step with the load (limit {100 * LEAST:g})"
    )
