"""Numbers that were claimed, beside the true ones; and what a fix was said to bring, beside what it brings.

A fix is known where a service is what somebody makes of the specimen who follows the advice (`Family.mend`):
then the capacity of that one, as it was measured, is what the fix brought.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from catalogue.cases import CLAIMED, Case, Json, Share, share
from catalogue.claims import CLAIMS
from catalogue.families import FAMILIES

CAPACITY: Final = "capacity"
NEAR: Final = 0.10  # a capacity is right within that
FIX_NEAR: Final = 0.15  # and the prediction of a fix within this: two measurements stand against each other


@dataclass(frozen=True, slots=True)
class Claimed:
    """A number as it was said."""

    point: float
    low: float | None
    high: float | None

    @property
    def has_interval(self) -> bool:
        """Whether anything is said of how far it may be off."""
        return self.low is not None or self.high is not None

    @property
    def is_bound(self) -> bool:
        """Whether it says `at least` or `at most` and no number: then it is true or not, and never near."""
        return (self.point == self.low and self.high is None) or (
            self.point == self.high and self.low is None
        )

    def holds(self, truth: float) -> bool:
        """Whether its interval does; a bound that is missing leaves that side open."""
        return (self.low is None or self.low <= truth) and (self.high is None or truth <= self.high)


@dataclass(frozen=True, slots=True)
class NumberScore:
    """How claims of one number did."""

    name: str
    errors: tuple[float, ...]  # relative, signed; of bounds none
    covered: Share  # intervals that hold the truth, of those that were given
    silent: int  # truths that nobody claimed

    @property
    def near(self) -> Share:
        """Claims within a tenth of the truth."""
        return share(abs(error) <= NEAR for error in self.errors)


@dataclass(frozen=True, slots=True)
class FixScore:
    """How predictions of a fix did."""

    seen: Mapping[str, tuple[float, float]]  # (predicted, measured) per second, by place of the flawed
    covered: Share  # of the predictions' intervals that were given, those that hold what was measured
    silent: tuple[str, ...]  # nobody said what the fix brings
    unmeasured: tuple[str, ...]  # said, and the mended one was not measured or showed no capacity but a bound

    @property
    def errors(self) -> dict[str, float]:
        """Relative, signed."""
        return {place: said / true - 1 for place, (said, true) in self.seen.items()}

    @property
    def near(self) -> Share:
        """Of those that could be compared, the right ones."""
        return share(abs(error) <= FIX_NEAR for error in self.errors.values())


def numbers_of(cases: Sequence[Case]) -> tuple[NumberScore, ...]:
    """Each number that is true of any service."""
    names = [CAPACITY, *CLAIMS]
    return tuple(found for name in names if (found := _number(cases, name)) is not None)


def _number(cases: Sequence[Case], name: str) -> NumberScore | None:
    errors, inside, silent = [], [], 0
    for case in cases:
        truth = case.known.numbers.get(name)
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
    """What was claimed of a number; none: nothing."""
    if name == CAPACITY:
        return _figure(case.said.get("capacity"))
    for finding in case.said.get("findings", ()):
        for part in finding.get("evidence") or ():
            is_meant = (finding["rule"], part.get("signal")) in CLAIMS[name]
            if is_meant and part.get("value") is not None and finding["grade"] in CLAIMED:
                return Claimed(part["value"], part.get("low"), part.get("high"))
    return None


def _figure(told: Json | None) -> Claimed | None:
    if not told or told.get("point") is None:
        return None
    return Claimed(told["point"], told.get("low"), told.get("high"))


def fixes_of(cases: Sequence[Case]) -> FixScore:
    """Predictions of families that can be mended, beside the mended one of the same seed, tier and budget."""
    mended = {_pair(case): case for case in cases if _is_mended(case) and not case.failure}
    seen: dict[str, tuple[float, float]] = {}
    inside, silent, unmeasured = [], [], []
    for case in cases:
        if case.side != "flawed" or FAMILIES[case.family].mend is None:
            continue
        said = foretold(case)
        after = mended.get(_pair(case))
        measured = None if after is None else claim_of(after, CAPACITY)
        if said is None:
            silent.append(case.place)
        elif measured is None or measured.is_bound:
            unmeasured.append(case.place)
        else:
            if not said.is_bound:
                seen[case.place] = said.point, measured.point
            if said.has_interval:
                inside.append(said.holds(measured.point))
    return FixScore(seen, share(inside), tuple(silent), tuple(unmeasured))


def foretold(case: Case) -> Claimed | None:
    """The throughput that a claim says the fix brings; none: no claim of this flaw says one."""
    mend = FAMILIES[case.family].mend
    for finding in case.said.get("findings", ()):
        if mend is None or finding["rule"] not in mend.rules or finding["grade"] not in CLAIMED:
            continue
        for one in finding.get("predictions") or ():
            after, words = one.get("after") or {}, f"{one.get('remedy') or ''} {one['what']}"
            is_meant = not mend.words or any(part in words for part in mend.words)
            if is_meant and after.get("unit") == "1/s" and after.get("point") is not None:
                return _figure(after)
    return None


def _is_mended(case: Case) -> bool:
    """Whether the fix was made here: of a family with a mended one that is it, else the twin."""
    has_own = FAMILIES[case.family].drawn(case.seed).mended is not None
    return case.side == ("mended" if has_own else "twin")


def _pair(case: Case) -> tuple[object, ...]:
    return case.family, case.seed, case.tier, case.budget_s
