"""One diagnosis beside the truth: what it claimed, what of that is true, what it missed.

A finding that stands at least probable is a claim. A claim is right when its rule is true of the service; a
need is met when any of its rules is claimed. What is merely suspected counts in the tables of grades alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from catalogue.drawing import Draws
from catalogue.families import FAMILIES
from catalogue.family import ABOUT_THE_MEASUREMENT, Known, Tier
from catalogue.lasted import really

CLAIMED: Final = frozenset({"probable", "strong", "confirmed"})
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


def share(hits: Iterable[bool]) -> Share:
    """How many of some are so."""
    all_of_them = list(hits)
    return Share(sum(all_of_them), len(all_of_them))


@dataclass(frozen=True, slots=True)
class Case:
    """One diagnosis and the truth."""

    family: str
    seed: int
    side: str  # flawed, twin, mended
    tier: Tier
    known: Known
    said: Json
    failure: str | None = None
    severity: float = 0.5
    budget_s: float = 30.0

    @property
    def place(self) -> str:
        """What people call it: `db-lock/1/twin`."""
        return f"{self.family}/{self.seed}/{self.side}"

    @property
    def findings(self) -> tuple[Json, ...]:
        """Those that the catalogue can judge, of any grade.

        Health is no finding; and how good the measurement was is known only where it was made bad on purpose.
        """
        untold = {HEALTH, *(ABOUT_THE_MEASUREMENT - self.known.label.needed)}
        return tuple(one for one in self.said.get("findings", ()) if one["rule"] not in untold)

    @property
    def claims(self) -> tuple[str, ...]:
        """Rules that were found at least probable, in their order."""
        return tuple(one["rule"] for one in self.findings if one["grade"] in CLAIMED)

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
    known: Known | None = getattr(drawn, row["side"])
    assert known is not None, f"{row['family']} has no {row['side']}"
    severity = Draws(row["family"], row["seed"], row.get("severity")).severity
    return Case(
        row["family"],
        row["seed"],
        row["side"],
        row["tier"],
        really(known, row.get("lasted")),
        row["said"],
        row["failure"],
        severity,
        row["budget_s"],
    )
