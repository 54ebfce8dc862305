"""Scores diagnoses against the truth: counts of findings and errors of numbers, with intervals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from catalogue.cases import HEALTH, Case, Share, share
from catalogue.families import FAMILIES
from catalogue.numbers import FixScore, NumberScore, fixes_of, numbers_of

# The promise of each grade: at least this proportion of its findings is true.
GRADES: Final[Mapping[str, float]] = {"suspected": 0.6, "probable": 0.9, "strong": 0.99, "confirmed": 1.0}


@dataclass(frozen=True, slots=True)
class RuleScore:
    """Score of one rule."""

    rule: str
    exists: bool
    right: int  # claims
    wrong: int
    met: int  # needs
    missed: int
    grades: Mapping[str, Share]  # true ones among its findings, by grade

    @property
    def precision(self) -> Share:
        """Right claims among its claims."""
        return Share(self.right, self.right + self.wrong)

    @property
    def recall(self) -> Share:
        """Needs met among the needs for this rule."""
        return Share(self.met, self.met + self.missed)


@dataclass(frozen=True, slots=True)
class KindScore:
    """Score of the services of one kind."""

    kind: str  # of the family, or "twin"
    services: int
    precision: Share
    recall: Share
    exact: Share


@dataclass(frozen=True, slots=True)
class Scores:
    """Everything that the table shows."""

    cases: int
    failures: tuple[str, ...]
    rules: tuple[RuleScore, ...]
    precision: Share
    recall: Share
    recall_of_existing: Share
    without_a_rule: Mapping[str, int]  # needs for which no rule exists, by their first rule
    exact: Share  # services with nothing missed and nothing wrong
    first_cause: Share  # right cause first, among services with a flaw
    first_of_existing: Share  # the same, among flaws for which a rule exists
    healthy_with_claims: Share  # services without a need that got a false claim
    twins_with_claims: Share  # twins and healthy services that got a false claim
    false_findings: Mapping[str, tuple[str, ...]]  # "rule (grade)" by place
    kinds: tuple[KindScore, ...]
    by_severity: Mapping[str, Share]  # flaws that were found, among mild, medium and severe ones
    grades: Mapping[str, Share]
    numbers: tuple[NumberScore, ...]
    covered: Share  # intervals of all numbers that hold the truth
    fixes: FixScore
    confusion: Mapping[tuple[str, str], int]  # (true cause, cause named first)


def score(cases: Sequence[Case], existing: Iterable[str]) -> Scores:
    """Score diagnoses.

    Args:
        cases: Diagnoses with their truths; those of repaired services count for the score of fixes only.
        existing: Rules that exist now.
    """
    there, fixes = set(existing), fixes_of(cases)
    cases = [case for case in cases if case.side != "repaired"]
    needs = [(rules, rules in case.missed) for case in cases for rules in case.needs]
    claims = [(rule, rule in case.false_claims) for case in cases for rule in case.claims]
    flawed = [case for case in cases if case.side == "flawed" and case.needs]
    without_need = [case for case in cases if not case.needs]
    healthy = [case for case in cases if case.side == "twin" or FAMILIES[case.family].kind == "healthy"]
    numbers = numbers_of(cases)
    return Scores(
        cases=len(cases),
        failures=tuple(f"{case.place}: {case.failure}" for case in cases if case.failure),
        rules=_by_rule(cases, there),
        precision=share(not wrong for _, wrong in claims),
        recall=share(not gone for _, gone in needs),
        recall_of_existing=share(not gone for rules, gone in needs if there & set(rules)),
        without_a_rule=Counter(rules[0] for rules, _ in needs if not there & set(rules)),
        exact=share(map(_is_exact, cases)),
        first_cause=share(case.first in case.needs[0] for case in flawed),
        first_of_existing=share(case.first in case.needs[0] for case in flawed if there & {*case.needs[0]}),
        healthy_with_claims=share(bool(case.false_claims) for case in without_need),
        twins_with_claims=share(bool(case.false_claims) for case in healthy),
        false_findings={case.place: _named(case) for case in cases if case.false_claims},
        kinds=_kinds(cases),
        by_severity=_by_severity(flawed),
        grades={grade: _grade(cases, grade) for grade in GRADES},
        numbers=numbers,
        covered=Share(
            sum(number.covered.part for number in numbers), sum(number.covered.whole for number in numbers)
        ),
        fixes=fixes,
        confusion=Counter((_cause(case), case.first or "none named") for case in cases if not case.failure),
    )


def _is_exact(case: Case) -> bool:
    return not case.missed and not case.false_claims and not case.failure


def _named(case: Case) -> tuple[str, ...]:
    return tuple(
        f"{finding['rule']} ({finding['grade']})"
        for finding in case.findings
        if finding["rule"] in case.false_claims
    )


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
            # A need with several rules counts for the first that was claimed, else for the first that exists.
            name = next((rule for rule in rules if rule in case.claims), None)
            if name is None:
                missed[next((rule for rule in rules if rule in there), rules[0])] += 1
            else:
                met[name] += 1
    named = sorted((set(right) | set(wrong) | set(met) | set(missed) | there) - {HEALTH})
    return tuple(
        RuleScore(
            rule,
            rule in there,
            right[rule],
            wrong[rule],
            met[rule],
            missed[rule],
            {grade: _grade(cases, grade, rule) for grade in GRADES},
        )
        for rule in named
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
            share(rule not in case.false_claims for case in of_kind for rule in case.claims),
            share(rules not in case.missed for case in of_kind for rules in case.needs),
            share(map(_is_exact, of_kind)),
        )
        for kind, of_kind in sorted(by_kind.items())
    )


def _by_severity(flawed: Sequence[Case]) -> dict[str, Share]:
    def found_between(low: float, high: float) -> Share:
        return share(case.needs[0] not in case.missed for case in flawed if low <= case.severity < high)

    return {
        "mild": found_between(0, 1 / 3),
        "medium": found_between(1 / 3, 2 / 3),
        "severe": found_between(2 / 3, 1.1),
    }


def _grade(cases: Sequence[Case], grade: str, rule: str | None = None) -> Share:
    """Return the proportion of true findings with a grade, of one rule or of all."""
    return share(
        finding["rule"] in case.truth.label.true
        for case in cases
        for finding in case.findings
        if finding["grade"] == grade and rule in (None, finding["rule"])
    )
