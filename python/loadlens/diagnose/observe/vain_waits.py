"""Observations of server errors that end a wait for a lock or a connection: their number, time and words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Lacking, Nothing
from loadlens.diagnose.observe import limits, waits
from loadlens.measure.thresholds import ONE_HOLDER, SATURATED
from loadlens.model.facts import (
    ConcurrencyLimit,
    Curve,
    EndedLevel,
    Facts,
    FailureMode,
    LogSign,
    LostWatch,
    Step,
)
from loadlens.model.finding import Estimate
from loadlens.present import load_text, numbers

Kind = Literal["lock", "pool"]

LEAST_SHARE = 0.001
RISES = 2.0  # times what there was at the lowest load
SPOKEN_FOR = 0.1  # lines of the log for each error: fewer may be about something else
PILED = 0.5
FEWEST_FOR_A_PILE = 3
USUAL_TIMEOUTS_S = (1.0, 2.0, 3.0, 5.0, 10.0, 15.0, 20.0, 30.0, 50.0, 60.0)
NEAR = 0.10
SERVER_ERROR = 500
PILE_SIGNAL = "errors.pile"


@dataclass(frozen=True, slots=True)
class ServerErrors:
    """The server errors of one curve at its highest load with any, or at a level that they ended."""

    curve: Curve
    step: Step | EndedLevel
    mode: FailureMode  # the most frequent
    count: int
    share: float
    share_before: float | None  # at the lowest load; none: these are its errors, or it was not counted
    kind: Kind  # of what they may have waited for
    sign: LogSign | None  # that says so
    place: ConcurrencyLimit | None  # with a line before it, as its gauges say

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
        """True if most come at one time: a usual time-out, or any where a place is known to be waited for."""
        if self.mode.count < FEWEST_FOR_A_PILE or self.mode.pile is None or self.mode.pile < PILED:
            return False
        return self.place is not None or self.usual_s is not None

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


def observe(facts: Facts, kind: Kind) -> Sequence[ServerErrors] | Lacking | Nothing:
    """Return the server errors of all curves, the one with the largest share first.

    Args:
        facts: Of the record.
        kind: Of the places that they may have waited for.
    """
    steps = [step for curve in facts.curves for step in curve.steps]
    if not steps:
        return Lacking("no valid trial")
    counted = [step for step in steps if step.issued is not None]
    if not counted:
        return Lacking("needs what became of each request: what made the load does not say")
    errors = [errors for curve in facts.curves if (errors := _errors(curve, kind)) is not None]
    if errors:
        return sorted(errors, key=lambda errors: errors.share, reverse=True)
    issued, failed = sum(step.issued or 0 for step in counted), sum(step.failed_count for step in counted)
    shares = [s.failed.high for s in counted if isinstance(s.failed, Estimate) and s.failed.high is not None]
    bound = f", at most {numbers.percent(max(shares))} of a case" if shares else ""
    return Nothing(
        f"no answer of 500 or above among {issued:,} requests ({failed:,} failed otherwise{bound})"
    )


def stays_signal(curve: Curve, watch: LostWatch, passed: bool | None) -> grading.Signal:
    """State that requests fail from one moment on, however few there are."""
    at = load_text.load_of(curve, watch)
    return grading.stated(
        "errors.stay",
        passed,
        text=f"all {watch.failed:,} requests from then on fail, at {at} too; as much was served before",
        chip="does not recover",
        value=float(watch.served),
    )


def _errors(curve: Curve, kind: Kind) -> ServerErrors | None:
    # A level that gives figures comes first; of those that were ended, the one with the largest share.
    ended = sorted(curve.ended, key=lambda level: _server_errors(level) / level.issued)
    levels: list[Step | EndedLevel] = [*reversed(curve.steps), *reversed(ended)]
    for step in levels:
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
            kind,
            step.sign(kind),
            next((places for places in step.places if places.kind == kind and is_line(places)), None),
        )
    return None


def _server_errors(level: EndedLevel) -> int:
    return sum(mode.count for mode in level.failures if mode.status >= SERVER_ERROR)


def is_line(places: ConcurrencyLimit) -> bool:
    """Return whether it is held all the time and waited for, as far as its own gauges say."""
    holders, bound = limits.point(places.held) or 0.0, limits.point(places.bound)
    if limits.has_waiters(places) is not True:
        return False
    if places.kind == "lock":
        return places.held_is_at_most or SATURATED <= holders <= ONE_HOLDER
    return bound is not None and holders >= limits.TAKEN_UP * bound


# --- signals ---------------------------------------------------------------------------------------------


def signals_of(errors: ServerErrors) -> list[grading.Signal]:
    """Return how many failed, how that rises with load, when they ended, and who says what was waited for."""
    mode, sign, place = errors.mode, errors.sign, errors.place
    share = numbers.percent(errors.share)
    signals = [
        grading.stated(
            "errors.share",
            errors.share >= LEAST_SHARE,
            text=f"{errors.count} of {errors.step.issued} requests ({share}) end with "
            f"{mode.status} at {errors.step.load:g} users (limit {numbers.percent(LEAST_SHARE)})",
            chip=f"{share} end with {mode.status}",
        ),
        _rise(errors),
        _pile(errors),
    ]
    if mode.median_s is not None:
        signals.append(_time(errors, mode.median_s))
    if place is not None:
        signals.append(limits.waiting_signal(place, f"{errors.kind}.waiters"))
    if sign is not None:
        passed = True if sign.count >= SPOKEN_FOR * errors.count else None
        signals.append(grading.stated("server.log", passed, text=sign.text, chip=sign.chip))
    return signals


def grading_signals(errors: ServerErrors, signals: Sequence[grading.Signal]) -> list[grading.Signal]:
    """Leave out the pile where there is none: another sign must stand in for it."""
    return [each for each in signals if errors.is_pile or each.evidence.signal != PILE_SIGNAL]


def _pile(errors: ServerErrors) -> grading.Signal:
    """Most of them end at one time."""
    mode = errors.mode
    return grading.stated(
        PILE_SIGNAL,
        True if errors.is_pile else None,
        text=errors.pile_text,
        chip=""
        if mode.median_s is None or mode.count < FEWEST_FOR_A_PILE
        else f"pile at {numbers.with_unit(mode.median_s, 's')}",
    )


def who_says_so(errors: ServerErrors) -> str:
    """Return what the server or its gauges say, as the beginning of a sentence; empty: neither does."""
    if errors.sign is not None:
        text = errors.sign.text
        return f"{text[0].upper()}{text[1:]}; "
    if errors.place is not None:
        gauges = f"{limits.reading(errors.place.held)} and {limits.reading(errors.place.waiting)}"
        return f"{gauges} at {errors.step.load:g} users; "
    return ""


def _rise(errors: ServerErrors) -> grading.Signal:
    """Waits for a lock grow with the load: errors that hardly do may be there anyway."""
    share, before = errors.share, errors.share_before
    here = f"{numbers.percent(share)} at {errors.step.load:g} users"
    if before is None:
        steps = errors.curve.steps
        is_over = errors.step is steps[0] and len(steps) > 1
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
