"""One diagnosis compared with the truth: its claims, which of them are true, which needs it missed.

A finding graded probable or higher is a claim. A claim is right if its rule is true of the service; a need is
met if any of its rules is claimed. Suspected findings count only in the tables of grades.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from catalogue.drawing import Draws
from catalogue.families import FAMILIES
from catalogue.family import ABOUT_THE_MEASUREMENT, Specimen, Tier
from catalogue.lasted import as_measured

CLAIMED: Final = frozenset({"probable", "strong", "confirmed"})
HEALTH: Final = "no-finding.healthy"

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Share:
    """A proportion with its 95 % confidence interval (Wilson 1927)."""

    part: int
    whole: int

    @property
    def value(self) -> float | None:
        """The proportion; None if nothing was counted."""
        return self.part / self.whole if self.whole else None

    @property
    def interval(self) -> tuple[float, float]:
        """Bounds of the interval; 0 to 1 if nothing was counted."""
        if not self.whole:
            return 0.0, 1.0
        z = 1.959963984540054
        p, n = self.part / self.whole, self.whole
        middle = (p + z * z / (2 * n)) / (1 + z * z / n)
        half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
        return max(0.0, middle - half), min(1.0, middle + half)


def share(hits: Iterable[bool]) -> Share:
    """Return the proportion of true values."""
    values = list(hits)
    return Share(sum(values), len(values))


@dataclass(frozen=True, slots=True)
class Case:
    """One diagnosis and the ground truth of its service."""

    family: str
    seed: int
    side: str  # flawed, twin, repaired
    tier: Tier
    truth: Specimen
    explanation: Json  # the parts of `explain --json` that are scored; empty: no answer
    failure: str | None = None
    severity: float = 0.5
    budget_s: float = 30.0

    @property
    def place(self) -> str:
        """Name in messages and tables: `db-lock/1/twin`."""
        return f"{self.family}/{self.seed}/{self.side}"

    @property
    def findings(self) -> tuple[Json, ...]:
        """Findings of any grade that the catalogue can judge.

        "Healthy" is not a finding. Findings about the measurement can be judged only where the family
        disturbs it on purpose.
        """
        not_judged = {HEALTH, *(ABOUT_THE_MEASUREMENT - self.truth.label.needed)}
        findings = self.explanation.get("findings", ())
        return tuple(finding for finding in findings if finding["rule"] not in not_judged)

    @property
    def claims(self) -> tuple[str, ...]:
        """Rules with a finding that is at least probable, in the order of the answer."""
        return tuple(finding["rule"] for finding in self.findings if finding["grade"] in CLAIMED)

    @property
    def false_claims(self) -> tuple[str, ...]:
        """Claims that are not true of this service."""
        return tuple(rule for rule in self.claims if rule not in self.truth.label.true)

    @property
    def needs(self) -> tuple[tuple[str, ...], ...]:
        """Required findings in this tier, each as the rules that meet it."""
        required = (need.rules(self.tier) for need in self.truth.label.needs)
        return tuple(rules for rules in required if rules)

    @property
    def missed(self) -> tuple[tuple[str, ...], ...]:
        """Required findings that no claim meets."""
        return tuple(rules for rules in self.needs if not set(rules) & set(self.claims))

    @property
    def first(self) -> str | None:
        """Rule that the answer names as the limit."""
        limit: str | None = self.explanation.get("limit")
        return limit


def case_of(row: Json) -> Case:
    """Return a row of the results with its ground truth, drawn again from the seed."""
    drawn = FAMILIES[row["family"]].drawn(row["seed"], row.get("severity"))
    specimen: Specimen | None = getattr(drawn, row["side"])
    assert specimen is not None, f"{row['family']} has no {row['side']}"
    severity = Draws(row["family"], row["seed"], row.get("severity")).severity
    return Case(
        row["family"],
        row["seed"],
        row["side"],
        row["tier"],
        as_measured(specimen, row.get("lasted")),
        row["said"],
        row["failure"],
        severity,
        row["budget_s"],
    )
