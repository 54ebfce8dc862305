"""Compares claimed numbers with the true ones, and predicted gains of fixes with measured ones.

A family with a `fix` has a service to which the advice was applied; its measured capacity is the true gain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from catalogue.cases import CLAIMED, Case, Json, Share, share
from catalogue.claims import CLAIMS
from catalogue.families import FAMILIES

CAPACITY: Final = "capacity"
NEAR: Final = 0.10  # relative error up to which a number is right
FIX_NEAR: Final = 0.15  # the same for predictions of fixes: wider, as they rest on two measurements


@dataclass(frozen=True, slots=True)
class Claimed:
    """A number that a diagnosis claimed."""

    point: float
    low: float | None
    high: float | None

    @property
    def has_interval(self) -> bool:
        """True if the claim has a bound on either side."""
        return self.low is not None or self.high is not None

    @property
    def is_bound(self) -> bool:
        """True if it claims only `at least` or `at most`; such a claim is true or false, and has no error."""
        return (self.point == self.low and self.high is None) or (
            self.point == self.high and self.low is None
        )

    def holds(self, truth: float) -> bool:
        """Return True if the interval holds the truth; a missing bound leaves that side open."""
        return (self.low is None or self.low <= truth) and (self.high is None or truth <= self.high)


@dataclass(frozen=True, slots=True)
class NumberScore:
    """Score of the claims of one number."""

    name: str
    errors: tuple[float, ...]  # relative, signed; bounds have none
    covered: Share  # intervals that hold the truth, among claims with an interval
    silent: int  # services with this number where it was not claimed

    @property
    def near(self) -> Share:
        """Claims within 10 % of the truth."""
        return share(abs(error) <= NEAR for error in self.errors)


@dataclass(frozen=True, slots=True)
class FixScore:
    """Score of the predicted gains of fixes."""

    seen: Mapping[str, tuple[float, float]]  # (predicted, measured) per second, by flawed service
    covered: Share  # intervals that hold the measured capacity, among predictions with an interval
    silent: tuple[str, ...]  # no gain was predicted
    unmeasured: tuple[str, ...]  # predicted, but not measured with the fix, or only a bound was

    @property
    def errors(self) -> dict[str, float]:
        """Relative errors, signed, by place."""
        return {place: predicted / measured - 1 for place, (predicted, measured) in self.seen.items()}

    @property
    def near(self) -> Share:
        """Predictions that are right, among those that could be compared."""
        return share(abs(error) <= FIX_NEAR for error in self.errors.values())


def numbers_of(cases: Sequence[Case]) -> tuple[NumberScore, ...]:
    """Return the score of each number that any service has."""
    scores = (_number(cases, name) for name in (CAPACITY, *CLAIMS))
    return tuple(score for score in scores if score is not None)


def _number(cases: Sequence[Case], name: str) -> NumberScore | None:
    errors, inside, silent = [], [], 0
    for case in cases:
        truth = case.truth.numbers.get(name)
        if truth is None or case.failure:
            continue
        claim = claim_of(case, name)
        if claim is None:
            silent += 1
            continue
        if not claim.is_bound:
            errors.append(claim.point / truth.value - 1)
        if claim.has_interval:
            inside.append(claim.holds(truth.value))
    if not errors and not inside and not silent:
        return None
    return NumberScore(name, tuple(errors), share(inside), silent)


def claim_of(case: Case, name: str) -> Claimed | None:
    """Return the claim of a number; None if there is none."""
    if name == CAPACITY:
        return _figure(case.explanation.get("capacity"))
    for finding in case.explanation.get("findings", ()):
        for part in finding.get("evidence") or ():
            is_meant = (finding["rule"], part.get("signal")) in CLAIMS[name]
            if is_meant and part.get("value") is not None and finding["grade"] in CLAIMED:
                return Claimed(part["value"], part.get("low"), part.get("high"))
    return None


def _figure(figure: Json | None) -> Claimed | None:
    if not figure or figure.get("point") is None:
        return None
    return Claimed(figure["point"], figure.get("low"), figure.get("high"))


def fixes_of(cases: Sequence[Case]) -> FixScore:
    """Compare predictions with the repaired service of the same family, seed, tier and budget."""
    repaired = {_pair(case): case for case in cases if _is_repaired(case) and not case.failure}
    seen: dict[str, tuple[float, float]] = {}
    inside, silent, unmeasured = [], [], []
    for case in cases:
        if case.side != "flawed" or FAMILIES[case.family].fix is None:
            continue
        predicted = predicted_capacity(case)
        after = repaired.get(_pair(case))
        measured = None if after is None else claim_of(after, CAPACITY)
        if predicted is None:
            silent.append(case.place)
        elif measured is None or measured.is_bound:
            unmeasured.append(case.place)
        else:
            if not predicted.is_bound:
                seen[case.place] = predicted.point, measured.point
            if predicted.has_interval:
                inside.append(predicted.holds(measured.point))
    return FixScore(seen, share(inside), tuple(silent), tuple(unmeasured))


def predicted_capacity(case: Case) -> Claimed | None:
    """Return the throughput that a claim predicts for the fix; None if no claim does."""
    fix = FAMILIES[case.family].fix
    for finding in case.explanation.get("findings", ()):
        if fix is None or finding["rule"] not in fix.rules or finding["grade"] not in CLAIMED:
            continue
        for prediction in finding.get("predictions") or ():
            after = prediction.get("after") or {}
            words = f"{prediction.get('remedy') or ''} {prediction['what']}"
            is_meant = not fix.words or any(part in words for part in fix.words)
            if is_meant and after.get("unit") == "1/s" and after.get("point") is not None:
                return _figure(after)
    return None


def _is_repaired(case: Case) -> bool:
    """Return True for the service that has the fix: the repaired one if the family has it, else the twin."""
    has_own = FAMILIES[case.family].drawn(case.seed).repaired is not None
    return case.side == ("repaired" if has_own else "twin")


def _pair(case: Case) -> tuple[object, ...]:
    return case.family, case.seed, case.tier, case.budget_s
