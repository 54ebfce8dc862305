"""Waiting for a lock ends in errors.

**Means.** Requests wait for a lock, such as that of the single writer of an embedded database, until a
time-out ends the wait and the server answers with an error. The share of errors grows with load.

**Needs.** Answers with status 500 or above: at least 0.1 % of the requests at the highest load, and at least
twice their share at the lowest load. In addition, one sign of a lock: the server names it, in its log or in
these answers; or half of these answers lie within 10 % of their median time, while gauges show a lock that is
always held with more than 0.5 requests waiting. Without either sign the finding is suspected if that time is
a common time-out setting (1, 2, 3, 5, 10, 15, 20, 30, 50 or 60 s), measured in full or as the excess over the
successes. Failures that ended a level count where no whole level has any.

**Ruled out by.** The client's own time-out (such requests have no status). Errors that occur at the lowest
load already. A connection pool that the server names, or whose gauges show it full with requests waiting,
unless the holders of its connections wait for the lock. Without gauges and without words of the server, a
full pool with a time-out looks the same: that alternative stays open.

**Thresholds.** 0.1 %: below it, isolated faults are as likely. Half within 10 %: response times of queued
requests spread far more. The thresholds for gauges are those of `db.lock` and `db.pool`.

**Do.** Use one writer with a queue, shorten transactions, retry after a pause, and set the lock time-out
below the deadline of the request.

**Confirm.** Double the lock time-out: the errors come later by the same amount. Use one writer: they vanish.
"""

from __future__ import annotations

from collections.abc import Sequence

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Lacking, Nothing, Words, assessing, on_curve
from loadlens.diagnose.observe import limits, vain_waits
from loadlens.diagnose.observe.vain_waits import ServerErrors
from loadlens.model.facts import Facts
from loadlens.model.finding import Counter, Grade
from loadlens.present import numbers

ID = "db.lock-timeouts"
TITLE = "lock waits end in errors"
EXPLAINS: tuple[str, ...] = ()


def observe(facts: Facts) -> Sequence[ServerErrors] | Lacking | Nothing:
    """Return the server errors of all curves, the one with the largest share first."""
    return vain_waits.observe(facts, "lock")


def claim(facts: Facts, errors: ServerErrors) -> Claim | Nothing:
    """Compare the errors with the log, with the time at which they pile up, and with gauges of a lock."""
    if errors.sign is None and not errors.is_pile:
        return Nothing("neither a log nor a pile suggests a lock")
    signals = vain_waits.signals_of(errors)
    rivals = [
        grading.rival("time-out of the client", f"the server answered with {errors.mode.status}", True),
        _pool_rival(errors),
        grading.rival(
            "lock held elsewhere",
            "no gauge of lock waits" if errors.place is None else limits.reading(errors.place.held),
            None if errors.place is None else True,
        ),
    ]

    def texts(grade: Grade) -> Words:
        verb = "may be held too long" if grade is Grade.SUSPECTED else "is held too long"
        share, took = numbers.percent(errors.share), numbers.with_unit(errors.mode.median_s or 0.0, "s")
        return Words(
            statement=f"{share} of requests end with {errors.mode.status} at {errors.step.load:g} users: "
            f"a lock {verb}",
            explanation=f"{vain_waits.who_says_so(errors)}{errors.pile_text}.",
            advice="Let one writer queue the writes and keep transactions short; retry with a pause, and set "
            f"the lock time-out below the deadline of the request ({took} now).",
            confirm="twice the lock time-out: the errors come later by as much; one writer: they vanish",
            impact=errors.share,
            unknown=() if errors.place is not None else ("no gauge of lock waits was read",),
            scope=f"{errors.mode.label} · {errors.curve.label}",
        )

    return on_curve(
        errors.curve,
        vain_waits.grading_signals(errors, signals),
        rivals,
        texts,
        cap=Grade.STRONG if errors.sign is not None or errors.place is not None else Grade.SUSPECTED,
        evidence=[signal.evidence for signal in signals],
    )


def _pool_rival(errors: ServerErrors) -> Counter:
    """Return the rival of a pool that is full and waited for: it makes requests time out as well."""
    name, lock = "full connection pool", errors.place
    if errors.sign is not None:
        return grading.rival(name, "the server names a lock", True)
    named = errors.step.sign("pool")
    if named is not None:
        return grading.rival(name, named.text, False)
    pools = [places for places in errors.step.places if places.kind == "pool"]
    full = next((pool for pool in pools if vain_waits.is_line(pool)), None)
    if full is not None:
        text = f"{limits.reading(full.held)}, {limits.reading(full.waiting)}"
        if lock is not None and limits.within(errors.step, full) is lock:
            return grading.rival(name, f"{text}: they wait for the lock", True)
        return grading.rival(name, text, False)
    if pools:
        return grading.rival(name, f"{limits.reading(pools[0].held)}: no line there", True)
    if lock is not None:
        return grading.rival(name, f"{limits.reading(lock.waiting)}: the line is at the lock", True)
    return grading.rival(name, "no gauge of the pool, and no line of the log names a lock", None)


def _silence(facts: Facts, observed: Sequence[ServerErrors]) -> str:
    errors = observed[0]
    log = "" if errors.sign is not None else "; no line of the log names a lock"
    share = f"{numbers.percent(errors.share)} end with {errors.mode.status} on {errors.curve.label}"
    return f"{share}; {errors.pile_text}{log}"


assess = assessing(ID, TITLE, observe, claim, silence=_silence)
