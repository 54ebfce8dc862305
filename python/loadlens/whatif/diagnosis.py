"""The diagnosis of a record: its facts, the findings of the rules, and the effect of each remedy."""

from __future__ import annotations

from dataclasses import dataclass

from loadlens import diagnose
from loadlens.diagnose import Verdict
from loadlens.diagnose.code_places import stacks_at_limit
from loadlens.measure import whole_run
from loadlens.measure.case import CaseMeasures
from loadlens.measure.source import RunSource
from loadlens.model.facts import Facts
from loadlens.model.report import AccountingRow
from loadlens.model.stacks import StackSamples
from loadlens.whatif import remedies


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A record's facts and verdict, without a report."""

    facts: Facts
    verdict: Verdict
    accounting: tuple[AccountingRow, ...]
    cases: tuple[CaseMeasures, ...] = ()
    stacks: tuple[StackSamples, ...] = ()


def diagnosis_of(record: RunSource) -> Diagnosis:
    """Return the diagnosis of a record."""
    measures = whole_run.measured(record)
    verdict = verdict_of(measures.facts)
    stacks = stacks_at_limit(measures.stacks, verdict.findings)
    return Diagnosis(measures.facts, verdict, measures.accounting, measures.cases, stacks)


def verdict_of(facts: Facts) -> Verdict:
    """Return the findings of the rules, with the effect of their remedies."""
    return remedies.with_predictions(facts, diagnose.assess(facts))
