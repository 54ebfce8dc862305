"""Versions out of finished records: two records of the same loads, or two levels of a factor of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from loadlens.compare.judge import Arms, Match, Rules, compared
from loadlens.compare.levels import ARM, LETTERS, chosen_of
from loadlens.errors import UsageError
from loadlens.measure import whole_run
from loadlens.measure.case import CaseMeasures
from loadlens.measure.curves import load_factor
from loadlens.measure.source import RunSource
from loadlens.measure.whole_run import MeasureTrial
from loadlens.model.comparison import Comparison, PairsBegun
from loadlens.model.plain import read
from loadlens.present import words
from loadlens.record import RunRecord
from loadlens.run import environment

EVENT: Final = "compared"  # in the record of a comparison: its looks and the names of both versions
MOST_DIFFERENCES: Final = 3


def of_records(first: RunRecord, second: RunRecord, margin: float) -> Comparison:
    """Compare two records by the cases that both have.

    Raises:
        UsageError: They have no case in common.
    """
    before, after = cases_of(first), cases_of(second)
    matches = [(case, other) for case in before for other in after if case.slug == other.slug]
    if not matches:
        have = [words.listed([case.name for case in cases[:3]]) or "nothing" for cases in (before, after)]
        raise UsageError(
            f"{first.path} and {second.path} have no load in common: {have[0]}, {have[1]}",
            hint="two runs of the same study",
        )
    cautions = ["records of different times: what drifted in between is part of each effect"]
    named = list(environment.differences(first.environment, second.environment))[:MOST_DIFFERENCES]
    if named:
        cautions.append(f"the records differ in {words.listed(named)}")
    arms = Arms(first.path.name, second.path.name, _matches(matches), is_paired=False)
    return compared(arms, Rules(margin), cautions)


def of_levels(record: RunRecord, chosen: Sequence[str], margin: float) -> Comparison:
    """Compare two levels of a factor of one record.

    Args:
        record: A record whose study has a factor.
        chosen: `FACTOR=LEVEL` of the first version and of the second; empty: its only two levels.
        margin: Relative.

    Raises:
        UsageError: The study has no such levels, or several that could be meant.
    """
    cases = cases_of(record)
    factor, first, second = _levels(record, cases, chosen)
    matches = _of_factor(cases, factor, first, second)
    if not matches:
        raise UsageError(
            f"no load was run at both {factor}={first} and {factor}={second}", where=str(record.path)
        )
    looks = begun_of(record).looks
    if looks and factor == ARM:
        return of_pairs(record, Rules(margin, looks))
    arms = Arms(f"{factor}={first}", f"{factor}={second}", _matches(matches), is_paired=True)
    return compared(arms, Rules(margin))


def of_pairs(
    record: RunRecord,
    rules: Rules,
    measure: MeasureTrial | None = None,
) -> Comparison:
    """Return the verdict on the record of a live comparison, which may still grow.

    Args:
        record: The record.
        rules: Margin and looks.
        measure: As of `whole_run.measured`, such as a function that remembers earlier trials.
    """
    matches = _of_factor(cases_of(record, measure), ARM, *LETTERS)
    versions = tuple(
        f"{letter}: {name}" for letter, name in zip(LETTERS, begun_of(record).names, strict=False)
    )
    return replace(compared(Arms(*LETTERS, _matches(matches), is_paired=True), rules), versions=versions)


def begun_of(record: RunRecord) -> PairsBegun:
    """Return the design of a live comparison from its record."""
    events = record.events(EVENT)
    return read(PairsBegun, events[-1] if events else {})


def cases_of(record: RunSource, measure: MeasureTrial | None = None) -> tuple[CaseMeasures, ...]:
    """Return the measured cases that are loads."""
    return tuple(case for case in whole_run.measured(record, measure).cases if case.purpose == "load")


def _of_factor(
    cases: Sequence[CaseMeasures], factor: str, first: str, second: str
) -> list[tuple[CaseMeasures, CaseMeasures]]:
    """Return the cases that differ in the level of a factor alone."""
    return [
        (case, other)
        for case in cases
        if case.levels.get(factor) == first
        for other in cases
        if other.experiment == case.experiment and other.levels == {**case.levels, factor: second}
    ]


def _matches(pairs: Sequence[tuple[CaseMeasures, CaseMeasures]]) -> tuple[Match, ...]:
    return tuple(Match(first.name if len(pairs) > 1 else "", first, second) for first, second in pairs)


def _levels(record: RunRecord, cases: Sequence[CaseMeasures], chosen: Sequence[str]) -> tuple[str, str, str]:
    """Return the factor and its two levels that are meant."""
    factors: dict[str, list[str]] = {}
    for case in cases:
        for name, level in case.levels.items():
            if level not in factors.setdefault(name, []):
                factors[name].append(level)
    if chosen:
        return chosen_of(factors, chosen)
    load = load_factor(cases)
    two = {name: levels for name, levels in factors.items() if name != load and len(levels) == 2}
    if len(two) == 1:
        name, (first, second) = next(iter(two.items()))
        return name, first, second
    usable = {name: levels for name, levels in factors.items() if len(levels) > 1}
    if not usable:
        raise UsageError(
            f"{record.path} has one version of everything",
            hint="a second record, or a record of a study with a factor",
        )
    name, levels = next(iter((two or usable).items()))
    raise UsageError(
        f"which levels of {words.listed(usable)}?",
        where=str(record.path),
        hint=f"loadlens compare {record.path} {name}={levels[0]} {name}={levels[1]}",
    )
