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

from dataclasses import dataclass, replace

from loadlens.diagnose import grading
from loadlens.diagnose.observe import places as held
from loadlens.diagnose.observe import waits
from loadlens.measure.thresholds import ONE_HOLDER, SATURATED
from loadlens.model.facts import Curve, Facts, FailureMode, LogSign, Places, Step
from loadlens.model.finding import Absent, Counter, Estimate, Finding, Grade, NotAssessed
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
class Look:
    """The server errors of one curve at its highest load that has any."""

    curve: Curve
    step: Step
    mode: FailureMode  # the most frequent
    count: int
    share: float
    share_before: float | None  # at the lowest load; none: these are its errors, or it was not counted
    sign: LogSign | None
    lock: Places | None  # with a line before it, as its gauges say


def assess(facts: Facts) -> Finding | Absent | NotAssessed:
    """Look at the curve with the largest share of server errors."""
    if not any(curve.steps for curve in facts.curves):
        return NotAssessed(ID, TITLE, "no valid trial")
    if all(step.issued is None for curve in facts.curves for step in curve.steps):
        return NotAssessed(ID, TITLE, "needs what became of each request: what made the load does not say")
    looks = [look for curve in facts.curves if (look := _look(curve)) is not None]
    if not looks:
        return Absent(ID, TITLE, _no_errors(facts))
    looks.sort(key=lambda look: look.share, reverse=True)
    found = grading.first(_finding(look) for look in looks)
    return found or Absent(ID, TITLE, _silence(looks[0]))


def _look(curve: Curve) -> Look | None:
    for step in reversed(curve.steps):
        errors = [mode for mode in step.failures if mode.status >= SERVER_ERROR]
        if not errors or not step.issued:
            continue
        mode = max(errors, key=lambda mode: mode.count)
        count = sum(one.count for one in errors if one.status == mode.status)
        lightest = curve.steps[0]
        before = sum(one.count for one in lightest.failures if one.status == mode.status)
        return Look(
            curve,
            step,
            mode,
            count,
            count / step.issued,
            before / lightest.issued if lightest is not step and lightest.issued else None,
            next((sign for sign in step.log_signs if sign.kind == "lock"), None),
            next((one for one in step.places if one.kind == "lock" and _is_line(one)), None),
        )
    return None


def _is_line(places: Places) -> bool:
    """Whether it is held all the time and waited for, as far as its own gauges say."""
    holders = held.point(places.held) or 0.0
    if held.has_waiters(places) is not True:
        return False
    if places.kind == "lock":
        return places.held_is_at_most or SATURATED <= holders <= ONE_HOLDER
    bound = held.point(places.bound)
    return bound is not None and holders >= held.TAKEN_UP * bound


def _finding(look: Look) -> Finding | None:
    logged = look.sign is not None
    is_known = logged or look.lock is not None
    piles = _piles(look.mode, at_any_time=look.lock is not None)
    if not logged and not piles:
        return None
    signals = _signals(look, piles)
    rivals = [
        grading.rival("time-out of the client", f"the server answered with {look.mode.status}", True),
        _pool_rival(look),
        grading.rival(
            "lock held elsewhere",
            "no gauge of lock waits" if look.lock is None else held.told(look.lock.held),
            None if look.lock is None else True,
        ),
    ]
    needed = signals if piles else [s for s in signals if s.evidence.signal != "errors.pile"]
    grade = grading.grade_of(needed, rivals, cap=grading.cap_of(look.curve) if is_known else Grade.SUSPECTED)
    if grade is None:
        return None
    verb = "may be held too long" if grade is Grade.SUSPECTED else "is held too long"
    return Finding(
        rule=ID,
        grade=grade,
        impact=min(1.0, look.share),
        scope=f"{look.mode.label} · {look.curve.label}",
        statement=grading.statement(
            f"{numbers.percent(look.share)} of requests end with {look.mode.status} "
            f"at {look.step.load:g} users: a lock {verb}"
        ),
        explanation=_explanation(look),
        evidence=tuple(signal.evidence for signal in signals),
        counter=tuple(rivals),
        advice="Let one writer queue the writes and keep transactions short; retry with a pause, and set "
        "the lock time-out below the deadline of the request"
        f" ({numbers.with_unit(look.mode.median_s or 0.0, 's')} now).",
        confirm="twice the lock time-out: the errors come later by as much; one writer: they vanish",
        unknown=() if look.lock is not None else ("no gauge of lock waits was read",),
        curves=(look.curve.label,),
    )


def _pool_rival(look: Look) -> Counter:
    """A pool that is full and waited for makes requests time out as well."""
    name = "full connection pool"
    if look.sign is not None:
        return grading.rival(name, "the log names a lock", True)
    pools = [one for one in look.step.places if one.kind == "pool"]
    full = next((one for one in pools if _is_line(one)), None)
    if full is not None:
        inner = held.within(look.step, full)
        text = f"{held.told(full.held)}, {held.told(full.waiting)}"
        if inner is not None and inner is look.lock:
            return grading.rival(name, f"{text}: they wait for the lock", True)
        return grading.rival(name, text, False)
    if pools:
        return grading.rival(name, f"{held.told(pools[0].held)}: no line there", True)
    if look.lock is not None:
        return grading.rival(name, f"{held.told(look.lock.waiting)}: the line is at the lock", True)
    return grading.rival(name, "no gauge of the pool, and no line of the log names a lock", None)


def _signals(look: Look, piles: bool) -> list[grading.Signal]:
    status = look.mode.status
    found = [
        grading.stated(
            "errors.share",
            look.share >= LEAST_SHARE,
            text=f"{look.count} of {look.step.issued} requests ({numbers.percent(look.share)}) end with "
            f"{status} at {look.step.load:g} users (limit {numbers.percent(LEAST_SHARE)})",
            chip=f"{numbers.percent(look.share)} end with {status}",
        ),
        _rise(look),
        grading.stated(
            "errors.pile", True if piles else None, text=_pile_text(look.mode), chip=_pile_chip(look.mode)
        ),
    ]
    if look.mode.median_s is not None:
        found.append(_time_of(look, look.mode.median_s))
    if look.lock is not None:
        found.append(held.waiting_signal(look.lock, "lock.waiters"))
    if look.sign is not None:
        text = f'the server\'s log says so {look.sign.count} times: "{look.sign.sample}"'
        passed = True if look.sign.count >= SPOKEN_FOR * look.count else None
        found.append(grading.stated("server.log", passed, text=text, chip=f"log: {look.sign.count} lines"))
    return found


def _rise(look: Look) -> grading.Signal:
    """Waits for a lock grow with the load: errors that hardly do may be there anyway."""
    share, before = f"{numbers.percent(look.share)} at {look.step.load:g} users", look.share_before
    if before is None:
        is_over = look.step is look.curve.steps[0] and look.step is not look.curve.steps[-1]
        text = f"{share}, none at higher loads" if is_over else f"{share}, at the lowest load not known"
        return grading.stated("errors.rise", False if is_over else None, text=text)
    text = f"{numbers.percent(before)} at the lowest load, {share}"
    passed = False if look.share <= before else True if look.share >= RISES * before else None
    chip = f"{numbers.percent(before)} to {numbers.percent(look.share)} with load"
    return grading.stated("errors.rise", passed, text=text, chip=chip)


def _time_of(look: Look, median_s: float) -> grading.Signal:
    """After what time these answers come: the number that a longer time-out must move."""
    text = f"half of them come within {numbers.with_unit(median_s, 's')}"
    success = look.mode.success_median_s
    # Who waited for the lock in vain waited about as long as who got it. A log may know better.
    is_soon = look.sign is None and success is not None and median_s < waits.FAST * success
    if is_soon:
        text += f", half of the successes within {numbers.with_unit(success or 0.0, 's')}: they end no wait"
    signal = grading.stated("errors.time", not is_soon, text=text)
    return replace(signal, evidence=replace(signal.evidence, value=median_s))


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


def _piles(mode: FailureMode, *, at_any_time: bool) -> bool:
    """Whether most come at one time: a usual time-out, or any where a lock is known to be waited for."""
    if mode.count < FEWEST_FOR_A_PILE or mode.pile is None or mode.pile < PILED:
        return False
    return at_any_time or _near_timeout(mode) is not None


def _pile_text(mode: FailureMode) -> str:
    if mode.median_s is None or mode.pile is None:
        return "the times of these answers were not kept"
    if mode.count < FEWEST_FOR_A_PILE:
        after = numbers.with_unit(mode.median_s, "s")
        return f"{mode.count} such, after {after}: too few to pile up"
    text = (
        f"{numbers.percent(mode.pile)} of them take within 10 % of {numbers.with_unit(mode.median_s, 's')} "
        f"(limit {numbers.percent(PILED)})"
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
    if look.sign is None and look.lock is not None:
        at = f"{held.told(look.lock.held)} and {held.told(look.lock.waiting)}"
        return f"{at} at {words.users(look.step.load)}; {_pile_text(look.mode)}."
    if look.sign is None:
        return f"{_pile_text(look.mode)}."
    told = f'The server\'s log says "{look.sign.sample}" {look.sign.count} times'
    return f"{told}; {_pile_text(look.mode)}."


def _silence(look: Look) -> str:
    parts = [
        f"{numbers.percent(look.share)} end with {look.mode.status} on {look.curve.label}",
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
    bound = f", at most {numbers.percent(max(shares))} of a case" if shares else ""
    return f"no answer of 500 or above among {issued:,} requests ({failed:,} failed otherwise{bound})"
