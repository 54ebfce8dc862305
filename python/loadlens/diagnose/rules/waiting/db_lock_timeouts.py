"""Waiting for a lock ends in errors.

**Means.** Requests wait for a lock, such as that of the single writer of an embedded database, until a
time-out ends the wait and the server answers with an error. The share of errors grows with load.

**Needs.** Answers with status 500 or above: at least 0.1 % of the requests at the highest load, and at least
twice their share at the lowest load. In addition, one sign of a lock: the server's log names it; or half of
these answers lie within 10 % of their median time, while gauges show a lock that is always held with more
than 0.5 requests waiting. Without either sign the finding is suspected if that time is a common time-out
setting (1, 2, 3, 5, 10, 15, 20, 30, 50 or 60 s), measured in full or as the excess over the successes.

**Ruled out by.** The client's own time-out (such requests have no status). Errors that occur at the lowest
load already. A connection pool whose gauges show it full with requests waiting, unless the holders of its
connections wait for the lock. Without gauges, and without a log that names a lock, a full pool with a
time-out looks the same: that alternative stays open.

**Thresholds.** 0.1 %: below it, isolated faults are as likely. Half within 10 %: response times of queued
requests spread far more. The thresholds for gauges are those of `db.lock` and `db.pool`.

**Do.** Use one writer with a queue, shorten transactions, retry after a pause, and set the lock time-out
below the deadline of the request.

**Confirm.** Double the lock time-out: the errors come later by the same amount. Use one writer: they vanish.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Lacking, Nothing, Words, assessing, on_curve
from loadlens.diagnose.observe import limits, waits
from loadlens.measure.thresholds import ONE_HOLDER, SATURATED
from loadlens.model.facts import ConcurrencyLimit, Curve, Facts, FailureMode, LogSign, Step
from loadlens.model.finding import Counter, Estimate, Grade
from loadlens.present import numbers, words

ID = "db.lock-timeouts"
TITLE = "lock waits end in errors"
EXPLAINS: tuple[str, ...] = ()

LEAST_SHARE = 0.001
RISES = 2.0  # times what there was at the lowest load
SPOKEN_FOR = 0.1  # lines of the log for each error: fewer may be about something else
PILED = 0.5
FEWEST_FOR_A_PILE = 3
USUAL_TIMEOUTS_S = (1.0, 2.0, 3.0, 5.0, 10.0, 15.0, 20.0, 30.0, 50.0, 60.0)
NEAR = 0.10
SERVER_ERROR = 500


@dataclass(frozen=True, slots=True)
class ServerErrors:
    """The server errors of one curve at its highest load that has any."""

    curve: Curve
    step: Step
    mode: FailureMode  # the most frequent
    count: int
    share: float
    share_before: float | None  # at the lowest load; none: these are its errors, or it was not counted
    sign: LogSign | None
    lock: ConcurrencyLimit | None  # with a line before it, as its gauges say

    @property
    def usual_s(self) -> float | None:
        """Return the usual time-out that the errors last, in all or beyond the successes."""
        if self.mode.median_s is None:
            return None
        lengths = (self.mode.median_s, self.mode.median_s - (self.mode.success_median_s or 0.0))
        near = (u for length in lengths for u in USUAL_TIMEOUTS_S if abs(length - u) <= NEAR * u)
        return next(near, None)

    @property
    def is_pile(self) -> bool:
        """True if most come at one time: a usual time-out, or any where a lock is known to be waited for."""
        if self.mode.count < FEWEST_FOR_A_PILE or self.mode.pile is None or self.mode.pile < PILED:
            return False
        return self.lock is not None or self.usual_s is not None

    @property
    def pile_text(self) -> str:
        """Return the time at which they pile up, in words."""
        mode, usual = self.mode, self.usual_s
        if mode.median_s is None or mode.pile is None:
            return "the times of these answers were not kept"
        took = numbers.with_unit(mode.median_s, "s")
        if mode.count < FEWEST_FOR_A_PILE:
            return f"{mode.count} such, after {took}: too few to pile up"
        piled = f"{numbers.percent(mode.pile)} of them take within 10 % of {took}"
        text = f"{piled} (limit {numbers.percent(PILED)})"
        if mode.success_median_s is not None:
            text += f", half of the successes within {numbers.with_unit(mode.success_median_s, 's')}"
        return (
            f"{text}; no usual time-out is near"
            if usual is None
            else f"{text}; {usual:g} s is a usual time-out"
        )


def observe(facts: Facts) -> Sequence[ServerErrors] | Lacking | Nothing:
    """Return the server errors of all curves, the one with the largest share first."""
    steps = [step for curve in facts.curves for step in curve.steps]
    if not steps:
        return Lacking("no valid trial")
    counted = [step for step in steps if step.issued is not None]
    if not counted:
        return Lacking("needs what became of each request: what made the load does not say")
    errors = [errors for curve in facts.curves if (errors := _errors(curve)) is not None]
    if errors:
        return sorted(errors, key=lambda errors: errors.share, reverse=True)
    issued, failed = sum(step.issued or 0 for step in counted), sum(step.failed_count for step in counted)
    shares = [s.failed.high for s in counted if isinstance(s.failed, Estimate) and s.failed.high is not None]
    bound = f", at most {numbers.percent(max(shares))} of a case" if shares else ""
    return Nothing(
        f"no answer of 500 or above among {issued:,} requests ({failed:,} failed otherwise{bound})"
    )


def _errors(curve: Curve) -> ServerErrors | None:
    for step in reversed(curve.steps):
        modes = [mode for mode in step.failures if mode.status >= SERVER_ERROR]
        if not modes or not step.issued:
            continue
        mode, lightest = max(modes, key=lambda mode: mode.count), curve.steps[0]
        count = sum(other.count for other in modes if other.status == mode.status)
        before = sum(other.count for other in lightest.failures if other.status == mode.status)
        return ServerErrors(
            curve,
            step,
            mode,
            count,
            count / step.issued,
            before / lightest.issued if lightest is not step and lightest.issued else None,
            next((sign for sign in step.log_signs if sign.kind == "lock"), None),
            next((places for places in step.places if places.kind == "lock" and _is_line(places)), None),
        )
    return None


def _is_line(places: ConcurrencyLimit) -> bool:
    """Return whether it is held all the time and waited for, as far as its own gauges say."""
    holders, bound = limits.point(places.held) or 0.0, limits.point(places.bound)
    if limits.has_waiters(places) is not True:
        return False
    if places.kind == "lock":
        return places.held_is_at_most or SATURATED <= holders <= ONE_HOLDER
    return bound is not None and holders >= limits.TAKEN_UP * bound


def claim(facts: Facts, errors: ServerErrors) -> Claim | Nothing:
    """Compare the errors with the log, with the time at which they pile up, and with gauges of a lock."""
    curve, step, mode, lock, sign = errors.curve, errors.step, errors.mode, errors.lock, errors.sign
    if sign is None and not errors.is_pile:
        return Nothing("neither a log nor a pile suggests a lock")
    share, took = numbers.percent(errors.share), numbers.with_unit(mode.median_s or 0.0, "s")
    pile = grading.stated(
        "errors.pile",
        True if errors.is_pile else None,
        text=errors.pile_text,
        chip="" if mode.median_s is None or mode.count < FEWEST_FOR_A_PILE else f"pile at {took}",
    )
    signals = [
        grading.stated(
            "errors.share",
            errors.share >= LEAST_SHARE,
            text=f"{errors.count} of {step.issued} requests ({share}) end with "
            f"{mode.status} at {step.load:g} users (limit {numbers.percent(LEAST_SHARE)})",
            chip=f"{share} end with {mode.status}",
        ),
        _rise(errors),
        pile,
        *([] if mode.median_s is None else [_time(errors, mode.median_s)]),
    ]
    explanation = ""
    if lock is not None:
        gauges = f"{limits.reading(lock.held)} and {limits.reading(lock.waiting)}"
        explanation = f"{gauges} at {words.users(step.load)}; "
        signals.append(limits.waiting_signal(lock, "lock.waiters"))
    if sign is not None:
        text = f'the server\'s log says so {sign.count} times: "{sign.sample}"'
        passed = True if sign.count >= SPOKEN_FOR * errors.count else None
        signals.append(grading.stated("server.log", passed, text=text, chip=f"log: {sign.count} lines"))
        explanation = f'The server\'s log says "{sign.sample}" {sign.count} times; '
    rivals = [
        grading.rival("time-out of the client", f"the server answered with {mode.status}", True),
        _pool_rival(errors),
        grading.rival(
            "lock held elsewhere",
            "no gauge of lock waits" if lock is None else limits.reading(lock.held),
            None if lock is None else True,
        ),
    ]

    def texts(grade: Grade) -> Words:
        verb = "may be held too long" if grade is Grade.SUSPECTED else "is held too long"
        return Words(
            statement=f"{share} of requests end with {mode.status} at {step.load:g} users: a lock {verb}",
            explanation=f"{explanation}{errors.pile_text}.",
            advice="Let one writer queue the writes and keep transactions short; retry with a pause, and set "
            f"the lock time-out below the deadline of the request ({took} now).",
            confirm="twice the lock time-out: the errors come later by as much; one writer: they vanish",
            impact=errors.share,
            unknown=() if lock is not None else ("no gauge of lock waits was read",),
            scope=f"{mode.label} · {curve.label}",
        )

    return on_curve(
        curve,
        [signal for signal in signals if errors.is_pile or signal is not pile],
        rivals,
        texts,
        cap=Grade.STRONG if sign is not None or lock is not None else Grade.SUSPECTED,
        evidence=[signal.evidence for signal in signals],
    )


def _rise(errors: ServerErrors) -> grading.Signal:
    """Waits for a lock grow with the load: errors that hardly do may be there anyway."""
    share, before = errors.share, errors.share_before
    here = f"{numbers.percent(share)} at {errors.step.load:g} users"
    if before is None:
        steps = errors.curve.steps
        is_over = errors.step is steps[0] and errors.step is not steps[-1]
        text = f"{here}, none at higher loads" if is_over else f"{here}, at the lowest load not known"
        return grading.stated("errors.rise", False if is_over else None, text=text)
    text = f"{numbers.percent(before)} at the lowest load, {here}"
    passed = False if share <= before else True if share >= RISES * before else None
    chip = f"{numbers.percent(before)} to {numbers.percent(share)} with load"
    return grading.stated("errors.rise", passed, text=text, chip=chip)


def _time(errors: ServerErrors, median_s: float) -> grading.Signal:
    """Return the time after which these answers come: the number that a longer time-out must move."""
    text, success = (
        f"half of them come within {numbers.with_unit(median_s, 's')}",
        errors.mode.success_median_s,
    )
    # A wait for the lock in vain takes about as long as one that ends well. A log may know better.
    is_soon = errors.sign is None and success is not None and median_s < waits.FAST * success
    if is_soon:
        text += f", half of the successes within {numbers.with_unit(success or 0.0, 's')}: they end no wait"
    return grading.stated("errors.time", not is_soon, text=text, value=median_s)


def _pool_rival(errors: ServerErrors) -> Counter:
    """Return the rival of a pool that is full and waited for: it makes requests time out as well."""
    name, lock = "full connection pool", errors.lock
    if errors.sign is not None:
        return grading.rival(name, "the log names a lock", True)
    pools = [places for places in errors.step.places if places.kind == "pool"]
    full = next((pool for pool in pools if _is_line(pool)), None)
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
