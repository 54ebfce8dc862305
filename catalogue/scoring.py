"""How diagnoses are held against the truth: counts of findings, errors of numbers, with intervals.

A finding that stands at least probable is a claim. A claim is right when its rule is true of the service; a
need is met when any of its rules is claimed. What is merely suspected counts in the table of grades alone.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from catalogue.claims import CLAIMS
from catalogue.drawing import Draws
from catalogue.families import FAMILIES
from catalogue.family import ABOUT_THE_MEASUREMENT, Known, Tier

CLAIMED: Final = frozenset({"probable", "strong", "confirmed"})
GRADES: Final = ("suspected", "probable", "strong", "confirmed")
HEALTH: Final = "no-finding.healthy"

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Share:
    """A share with its interval of confidence (Wilson 1927), 95 %."""

    part: int
    whole: int

    @property
    def value(self) -> float | None:
        """None when nothing was counted."""
        return self.part / self.whole if self.whole else None

    @property
    def interval(self) -> tuple[float, float]:
        """Bounds; everything is possible when nothing was counted."""
        if not self.whole:
            return 0.0, 1.0
        z = 1.959963984540054
        p, n = self.part / self.whole, self.whole
        middle = (p + z * z / (2 * n)) / (1 + z * z / n)
        half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
        return max(0.0, middle - half), min(1.0, middle + half)


@dataclass(frozen=True, slots=True)
class Case:
    """One diagnosis and the truth."""

    family: str
    side: str  # flawed, twin
    tier: Tier
    known: Known
    said: Json
    failure: str | None
    severity: float = 0.5

    @property
    def claims(self) -> tuple[str, ...]:
        """Rules that were found at least probable, in their order; health is no finding."""
        return tuple(
            finding["rule"]
            for finding in self.said.get("findings", ())
            if finding["grade"] in CLAIMED and finding["rule"] != HEALTH
        )

    @property
    def false_claims(self) -> tuple[str, ...]:
        """Claims that are not true of it."""
        return tuple(rule for rule in self.claims if rule not in self.known.label.true)

    @property
    def needs(self) -> tuple[tuple[str, ...], ...]:
        """What had to be found in its tier, each by any of some rules."""
        told = (need.rules(self.tier) for need in self.known.label.needs)
        return tuple(rules for rules in told if rules)

    @property
    def missed(self) -> tuple[tuple[str, ...], ...]:
        """Needs that no claim meets."""
        return tuple(rules for rules in self.needs if not set(rules) & set(self.claims))

    @property
    def first(self) -> str | None:
        """The cause that it names first."""
        limit: str | None = self.said.get("limit")
        return limit


def case_of(row: Json) -> Case:
    """A row of the results beside the truth, which is drawn again."""
    drawn = FAMILIES[row["family"]].drawn(row["seed"], row.get("severity"))
    known = drawn.flawed if row["side"] == "flawed" else drawn.twin
    assert known is not None
    severity = Draws(row["family"], row["seed"], row.get("severity")).severity
    return Case(row["family"], row["side"], row["tier"], known, row["said"], row["failure"], severity)


@dataclass(frozen=True, slots=True)
class RuleScore:
    """How one rule did."""

    rule: str
    exists: bool
    right: int  # claims
    wrong: int
    met: int  # needs
    missed: int

    @property
    def precision(self) -> Share:
        """Of its claims, how many were right."""
        return Share(self.right, self.right + self.wrong)

    @property
    def recall(self) -> Share:
        """Of the services that needed it, how many got it."""
        return Share(self.met, self.met + self.missed)


@dataclass(frozen=True, slots=True)
class NumberScore:
    """How claims of one number did."""

    name: str
    errors: tuple[float, ...]  # relative, signed
    covered: Share  # intervals that hold the truth
    silent: int  # truths that nobody claimed


@dataclass(frozen=True, slots=True)
class KindScore:
    """How services of one kind did."""

    kind: str  # of the family, or "twin"
    services: int
    precision: Share
    recall: Share


@dataclass(frozen=True, slots=True)
class Scores:
    """Everything that the table shows."""

    cases: int
    failures: tuple[str, ...]
    rules: tuple[RuleScore, ...]
    precision: Share
    recall: Share
    recall_of_existing: Share
    exact: Share  # nothing missed, nothing wrong
    first_cause: Share  # of the services with a flaw
    healthy_with_claims: Share  # twins and healthy services with a false claim
    kinds: tuple[KindScore, ...]
    by_severity: Mapping[str, Share]  # flaws that were found, of mild, middling and grave ones
    grades: Mapping[str, Share]
    numbers: tuple[NumberScore, ...]
    confusion: Mapping[tuple[str, str], int]  # (cause that is true, cause named first)


def score(cases: Sequence[Case], existing: Iterable[str]) -> Scores:
    """Count everything.

    Args:
        cases: Diagnoses with their truths.
        existing: Rules that the diagnosis has at all.
    """
    there = set(existing)
    needs = [(rules, rules in case.missed) for case in cases for rules in case.needs]
    claims = [(rule, rule in case.false_claims) for case in cases for rule in case.claims]
    flawed = [case for case in cases if case.side == "flawed" and case.needs]
    calm = [case for case in cases if not case.needs]
    of_existing = [(rules, gone) for rules, gone in needs if there & set(rules)]
    return Scores(
        cases=len(cases),
        failures=tuple(f"{c.family} ({c.side}): {c.failure}" for c in cases if c.failure),
        rules=_by_rule(cases, there),
        precision=_share(not wrong for _, wrong in claims),
        recall=_share(not gone for _, gone in needs),
        recall_of_existing=_share(not gone for _, gone in of_existing),
        exact=_share(not case.missed and not case.false_claims and not case.failure for case in cases),
        first_cause=_share(case.first in case.needs[0] for case in flawed),
        healthy_with_claims=_share(bool(case.false_claims) for case in calm),
        kinds=_kinds(cases),
        by_severity=_by_severity(flawed),
        grades={grade: _grade(cases, grade) for grade in GRADES},
        numbers=_numbers(cases),
        confusion=Counter((_cause(case), case.first or "none named") for case in cases if not case.failure),
    )


def _share(hits: Iterable[bool]) -> Share:
    all_of_them = list(hits)
    return Share(sum(all_of_them), len(all_of_them))


def _cause(case: Case) -> str:
    return case.needs[0][0] if case.needs else "none"


def _by_rule(cases: Sequence[Case], there: set[str]) -> tuple[RuleScore, ...]:
    right: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    met: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    for case in cases:
        wrong.update(case.false_claims)
        right.update(rule for rule in case.claims if rule not in case.false_claims)
        for rules in case.needs:
            # A need of several rules counts for the first of those that were claimed, else for the first.
            name = next((rule for rule in rules if rule in case.claims), None)
            if name is None:
                missed[next((rule for rule in rules if rule in there), rules[0])] += 1
            else:
                met[name] += 1
    named = sorted((set(right) | set(wrong) | set(met) | set(missed) | there) - {HEALTH})
    return tuple(
        RuleScore(rule, rule in there, right[rule], wrong[rule], met[rule], missed[rule]) for rule in named
    )


def _kinds(cases: Sequence[Case]) -> tuple[KindScore, ...]:
    by_kind: dict[str, list[Case]] = {}
    for case in cases:
        kind = "twin" if case.side == "twin" else FAMILIES[case.family].kind
        by_kind.setdefault(kind, []).append(case)
    return tuple(
        KindScore(
            kind,
            len(of_kind),
            _share(rule not in case.false_claims for case in of_kind for rule in case.claims),
            _share(rules not in case.missed for case in of_kind for rules in case.needs),
        )
        for kind, of_kind in sorted(by_kind.items())
    )


def _by_severity(flawed: Sequence[Case]) -> dict[str, Share]:
    def found(low: float, high: float) -> Share:
        return _share(case.needs[0] not in case.missed for case in flawed if low <= case.severity < high)

    return {"mild": found(0, 1 / 3), "middling": found(1 / 3, 2 / 3), "grave": found(2 / 3, 1.1)}


def _grade(cases: Sequence[Case], grade: str) -> Share:
    found = [
        finding["rule"] in case.known.label.true
        for case in cases
        for finding in case.said.get("findings", ())
        if finding["grade"] == grade and finding["rule"] not in {HEALTH, *ABOUT_THE_MEASUREMENT}
    ]
    return _share(found)


def _numbers(cases: Sequence[Case]) -> tuple[NumberScore, ...]:
    names = ["capacity", *CLAIMS]
    return tuple(found for name in names if (found := _number(cases, name)) is not None)


def _number(cases: Sequence[Case], name: str) -> NumberScore | None:
    errors, inside, silent = [], [], 0
    for case in cases:
        truth = case.known.numbers.get(name)
        if truth is None or case.failure:
            continue
        claim = _claim(case.said, name)
        if claim is None:
            silent += 1
            continue
        point, low, high = claim
        errors.append(point / truth.value - 1)
        inside.append((low is None or low <= truth.value) and (high is None or truth.value <= high))
    if not errors and not silent:
        return None
    return NumberScore(name, tuple(errors), _share(inside), silent)


def _claim(said: Json, name: str) -> tuple[float, float | None, float | None] | None:
    """(point, low, high) that was claimed of a number."""
    if name == "capacity":
        told = said.get("capacity")
        return (
            None
            if not told or told.get("point") is None
            else (told["point"], told.get("low"), told.get("high"))
        )
    for finding in said.get("findings", ()):
        for part in finding.get("evidence") or ():
            is_meant = (finding["rule"], part.get("signal")) in CLAIMS[name]
            if is_meant and part.get("value") is not None and finding["grade"] in CLAIMED:
                return part["value"], part.get("low"), part.get("high")
    return None
