"""Random draws of a family, determined by its name and a seed."""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Sequence
from typing import TypeVar

Choice = TypeVar("Choice")


class Draws:
    """The random choices of one specimen.

    Args:
        family: Name of the family, so that families with the same seed draw differently.
        seed: Seed of this specimen.
        severity: Severity of the flaw, from 0 (hardly noticeable) to 1; None: drawn as well.
    """

    def __init__(self, family: str, seed: int, severity: float | None = None) -> None:
        digest = hashlib.sha256(f"{family}/{seed}".encode()).digest()
        self._random = random.Random(int.from_bytes(digest[:8], "big"))
        drawn = self._random.random()
        self.severity = drawn if severity is None else severity
        self.seed = int.from_bytes(digest[8:12], "big")  # for the draws of the running specimen

    def between(self, low: float, high: float) -> float:
        """Draw uniformly between two bounds; three digits, because the value is printed."""
        return _rounded(self._random.uniform(low, high))

    def scaled(self, low: float, high: float) -> float:
        """Draw between two bounds, uniformly on a logarithmic scale."""
        return _rounded(math.exp(self._random.uniform(math.log(low), math.log(high))))

    def whole(self, low: int, high: int) -> int:
        """Draw an integer, both bounds included."""
        return self._random.randint(low, high)

    def one_of(self, choices: Sequence[Choice]) -> Choice:
        """Draw one of the choices."""
        return self._random.choice(choices)

    def by_severity(self, mild: float, severe: float) -> float:
        """Interpolate between two values by the severity; draws nothing."""
        return _rounded(mild + (severe - mild) * self.severity)


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")
