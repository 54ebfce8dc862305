"""Findings: one file each, its docstring is its page in the reference. A rule sees Facts and nothing else.

A new rule is a new file with ID, TITLE and assess(), one line in RULES, and fixtures: one record where it
fires and one near miss where it stays silent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from loadlens.findings import (
    db_lock_timeouts,
    eventloop_blocked,
    gen_bottleneck,
    healthy,
    saturation_plateau,
)
from loadlens.model.facts import Facts
from loadlens.model.finding import Absent, Finding, NotAssessed

Rule = Callable[[Facts], Finding | Absent | NotAssessed]

RULES: Mapping[str, Rule] = {
    gen_bottleneck.ID: gen_bottleneck.assess,
    saturation_plateau.ID: saturation_plateau.assess,
    eventloop_blocked.ID: eventloop_blocked.assess,
    db_lock_timeouts.ID: db_lock_timeouts.assess,
}

EXPLAINS: Mapping[str, tuple[str, ...]] = {  # cause -> what it makes appear
    gen_bottleneck.ID: (saturation_plateau.ID, eventloop_blocked.ID),
    eventloop_blocked.ID: (saturation_plateau.ID,),
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What all rules together say of a record."""

    findings: tuple[Finding, ...]  # by impact, then grade; those that another explains come last
    absent: tuple[Absent, ...]
    not_assessed: tuple[NotAssessed, ...]


def assess(facts: Facts) -> Verdict:
    """Ask every rule, fold what another finding explains, and order the rest."""
    answers = [rule(facts) for rule in RULES.values()]
    answers.append(healthy.assess_after(facts, answers))
    found = fold([answer for answer in answers if isinstance(answer, Finding)])
    return Verdict(
        tuple(sorted(found, key=lambda f: (f.explained_by is not None, -round(f.impact, 2), -f.grade))),
        tuple(answer for answer in answers if isinstance(answer, Absent)),
        tuple(answer for answer in answers if isinstance(answer, NotAssessed)),
    )


def fold(findings: list[Finding]) -> list[Finding]:
    """Mark each finding that another one explains on at least one curve, causes first."""
    by_rule = {finding.rule: finding for finding in findings}
    folded = []
    for finding in findings:
        cause = next(
            (
                rule
                for rule, effects in EXPLAINS.items()
                if finding.rule in effects and rule in by_rule and _overlap(by_rule[rule], finding)
            ),
            None,
        )
        folded.append(replace(finding, explained_by=cause))
    return folded


def _overlap(cause: Finding, effect: Finding) -> bool:
    return bool(set(cause.curves) & set(effect.curves))
