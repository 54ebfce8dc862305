"""Waiting for a lock ends in errors.

**Means.** Requests wait for a lock, such as the one writer that an embedded database allows, until their
time-out ends the wait and the server answers with an error. More load means more of them.

**Needs.** Answers with a status of 500 or above, at least 0.1 % of the requests at the highest load, and
more of them there than at the lowest. Then at least one sign of a lock: these answers pile up at one time
(half of them within 10 % of their median) that is a time-out which people set (1, 2, 3, 5, 10, 15, 20, 30, 50
or 60 s, in all or above the successes), or the server's log says so.

**Ruled out by.** The client's own time-out (these have no status). Errors that were there at the lowest load
already. Without a gauge of the database a full connection pool with a time-out looks the same: unless the
log names a lock, that rival stays open. So the finding is never more than probable here.

**Thresholds.** 0.1 %: below, single faults are as likely. Half within 10 %: times of queued requests spread
by far more.

**Do.** One writer with a queue, shorter transactions, retries with a pause, a lock time-out below the
deadline of the request.

**Confirm.** Twice the lock time-out: the errors come later by as much. One writer: they vanish.
"""

from __future__ import annotations

from dataclasses import dataclass

from loadlens.findings import evidence as weigh
from loadlens.looks import numbers
from loadlens.model.facts import Curve, Facts, FailureMode, LogSign, Step
from loadlens.model.finding import Absent, Estimate, Finding, Grade, NotAssessed

ID = "db.lock-timeouts"
TITLE = "lock waits end in errors"

LEAST_SHARE = 0.001
PILED = 0.5
FEWEST_FOR_A_PILE = 3
USUAL_TIMEOUTS_S = (1.0, 2.0, 3.0, 5.0, 10.0, 15.0, 20.0, 30.0, 50.0, 60.0)
NEAR = 0.10
SERVER_ERROR = 500


@dataclass(frozen=True, slots=True)
class Look:
    """The server errors of one curve at its highest load that has any."""

    curve: Curve
    step: Step
    mode: FailureMode  # the most frequent
    count: int
    share: float
    share_before: float  # at the lowest load
    sign: LogSign | None


def assess(facts: Facts) -> Finding | Absent | NotAssessed:
    """Look at the curve with the largest share of server errors."""
    if not any(curve.steps for curve in facts.curves):
        return NotAssessed(ID, TITLE, "no valid trial")
    if all(step.issued is None for curve in facts.curves for step in curve.steps):
        return NotAssessed(ID, TITLE, "needs what became of each request: what made the load does not say")
    looks = [look for curve in facts.curves if (look := _look(curve)) is not None]
    if not looks:
        return Absent(ID, TITLE, _no_errors(facts))
    for look in sorted(looks, key=lambda look: look.share, reverse=True):
        found = _finding(look)
        if found is not None:
            return found
    worst = max(looks, key=lambda look: look.share)
    return Absent(ID, TITLE, _silence(worst))


def _look(curve: Curve) -> Look | None:
    for step in reversed(curve.steps):
        errors = [mode for mode in step.failures if mode.status >= SERVER_ERROR]
        if not errors or not step.issued:
            continue
        count = sum(mode.count for mode in errors)
        lightest = curve.steps[0]
        before = sum(mode.count for mode in lightest.failures if mode.status >= SERVER_ERROR)
        return Look(
            curve,
            step,
            max(errors, key=lambda mode: mode.count),
            count,
            count / step.issued,
            before / lightest.issued if lightest is not step and lightest.issued else 0.0,
            next((sign for sign in step.log_signs if sign.kind == "lock"), None),
        )
    return None


def _finding(look: Look) -> Finding | None:
    piles, logged = _piles(look.mode), look.sign is not None
    if not logged and not piles:
        return None
    signals = _signals(look, piles)
    rivals = [
        weigh.rival("time-out of the client", f"the server answered with {look.mode.status}", True),
        weigh.rival(
            "full connection pool",
            "the log names a lock" if logged else "no gauge of the pool, and no line of the log names a lock",
            True if logged else None,
        ),
        weigh.rival("lock held elsewhere", "no gauge of lock waits", None),
    ]
    needed = signals if piles else [s for s in signals if s.evidence.signal != "errors.pile"]
    grade = weigh.grade_of(needed, rivals, cap=Grade.PROBABLE if logged else Grade.SUSPECTED)
    if grade is None:
        return None
    verb = "is held too long" if logged else "may be held too long"
    return Finding(
        rule=ID,
        grade=grade,
        impact=min(1.0, look.share),
        scope=f"{look.mode.label} · {look.curve.label}",
        statement=weigh.statement(
            f"{weigh.percent(look.share)} of requests end with {look.mode.status} "
            f"at {look.step.load:g} users: a lock {verb}"
        ),
        explanation=_explanation(look),
        evidence=tuple(signal.evidence for signal in signals),
        counter=tuple(rivals),
        advice="Let one writer queue the writes and keep transactions short; retry with a pause, and set "
        "the lock time-out below the deadline of the request"
        f" ({numbers.with_unit(look.mode.median_s or 0.0, 's')} now).",
        confirm="twice the lock time-out: the errors come later by as much; one writer: they vanish",
        unknown=("no gauge of lock waits or of the connection pool was read",),
        curves=(look.curve.label,),
    )


def _signals(look: Look, piles: bool) -> list[weigh.Signal]:
    status = look.mode.status
    before, share = weigh.percent(look.share_before), weigh.percent(look.share)
    found = [
        weigh.stated(
            "errors.share",
            look.share >= LEAST_SHARE,
            text=f"{look.count} of {look.step.issued} requests ({weigh.percent(look.share)}) end with "
            f"{status} at {look.step.load:g} users (limit {weigh.percent(LEAST_SHARE)})",
            chip=f"{weigh.percent(look.share)} end with {status}",
        ),
        weigh.stated(
            "errors.rise",
            look.share > look.share_before,
            text=f"{before} at the lowest load, {share} at {look.step.load:g} users",
            chip=f"{before} to {share} with load",
        ),
        weigh.stated(
            "errors.pile", True if piles else None, text=_pile_text(look.mode), chip=_pile_chip(look.mode)
        ),
    ]
    if look.sign is not None:
        text = f'the server\'s log says so {look.sign.count} times: "{look.sign.sample}"'
        found.append(weigh.stated("server.log", True, text=text, chip=f"log: {look.sign.count} lines"))
    return found


def _excess(mode: FailureMode) -> float | None:
    if mode.median_s is None:
        return None
    return mode.median_s - (mode.success_median_s or 0.0)


def _near_timeout(mode: FailureMode) -> float | None:
    """The usual time-out that the errors lie above the successes by, or that they last in all."""
    if mode.median_s is None:
        return None
    for length in (mode.median_s, _excess(mode)):
        for usual in USUAL_TIMEOUTS_S:
            if length is not None and abs(length - usual) <= NEAR * usual:
                return usual
    return None


def _piles(mode: FailureMode) -> bool:
    if mode.count < FEWEST_FOR_A_PILE:
        return False
    return mode.pile is not None and mode.pile >= PILED and _near_timeout(mode) is not None


def _pile_text(mode: FailureMode) -> str:
    if mode.median_s is None or mode.pile is None:
        return "the times of these answers were not kept"
    if mode.count < FEWEST_FOR_A_PILE:
        after = numbers.with_unit(mode.median_s, "s")
        return f"{mode.count} such, after {after}: too few to pile up"
    text = (
        f"{weigh.percent(mode.pile)} of them take within 10 % of {numbers.with_unit(mode.median_s, 's')} "
        f"(limit {weigh.percent(PILED)})"
    )
    if mode.success_median_s is not None:
        text += f", half of the successes within {numbers.with_unit(mode.success_median_s, 's')}"
    usual = _near_timeout(mode)
    return text + (
        f"; {usual:g} s is a usual time-out" if usual is not None else "; no usual time-out is near"
    )


def _pile_chip(mode: FailureMode) -> str:
    if mode.median_s is None or mode.count < FEWEST_FOR_A_PILE:
        return ""
    return f"pile at {numbers.with_unit(mode.median_s, 's')}"


def _explanation(look: Look) -> str:
    if look.sign is None:
        return f"{_pile_text(look.mode)}."
    told = f'The server\'s log says "{look.sign.sample}" {look.sign.count} times'
    return f"{told}; {_pile_text(look.mode)}."


def _silence(look: Look) -> str:
    parts = [
        f"{weigh.percent(look.share)} end with {look.mode.status} on {look.curve.label}",
        _pile_text(look.mode),
    ]
    if look.sign is None:
        parts.append("no line of the log names a lock")
    return "; ".join(parts)


def _no_errors(facts: Facts) -> str:
    known = [step for curve in facts.curves for step in curve.steps if step.issued is not None]
    issued = sum(step.issued or 0 for step in known)
    failed = sum(step.failed_count for step in known)
    shares = [s.failed.high for s in known if isinstance(s.failed, Estimate) and s.failed.high is not None]
    bound = f", at most {weigh.percent(max(shares))} of a case" if shares else ""
    return f"no answer of 500 or above among {issued:,} requests ({failed:,} failed otherwise{bound})"
