"""The diagnosis of a record: its facts, what the rules find, and what each remedy would bring."""

from __future__ import annotations

from dataclasses import dataclass

from loadlens import diagnose
from loadlens.diagnose import Verdict
from loadlens.measure import whole_run
from loadlens.measure.source import RunSource
from loadlens.model.facts import Facts
from loadlens.model.report import AccountingRow
from loadlens.whatif import remedies


@dataclass(frozen=True, slots=True)
class Examined:
    """A record's facts and what the rules say of them, without a report."""

    facts: Facts
    verdict: Verdict
    books: tuple[AccountingRow, ...]


def examined(record: RunSource) -> Examined:
    """Return what is known of a record and what follows from it."""
    known = whole_run.measured(record)
    return Examined(known.facts, verdict_of(known.facts), known.books)


def verdict_of(known: Facts) -> Verdict:
    """What the rules say, and what their remedies would bring."""
    return remedies.foretold(known, diagnose.assess(known))
