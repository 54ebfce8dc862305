"""Draws of a family: a function of its name and a seed."""

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
        family: Its name, so that families with one seed do not draw alike.
        seed: Of this specimen.
        severity: How grave the flaw is, from 0 (hardly) to 1; none: drawn too.
    """

    def __init__(self, family: str, seed: int, severity: float | None = None) -> None:
        digest = hashlib.sha256(f"{family}/{seed}".encode()).digest()
        self._random = random.Random(int.from_bytes(digest[:8], "big"))
        drawn = self._random.random()
        self.severity = drawn if severity is None else severity
        self.seed = int.from_bytes(digest[8:12], "big")  # of the draws that the specimen makes itself

    def between(self, low: float, high: float) -> float:
        """Anything between two bounds, with three digits: they are printed."""
        return _rounded(self._random.uniform(low, high))

    def scaled(self, low: float, high: float) -> float:
        """Between two bounds, each factor being as likely as any other."""
        return _rounded(math.exp(self._random.uniform(math.log(low), math.log(high))))

    def whole(self, low: int, high: int) -> int:
        """A whole number, both bounds included."""
        return self._random.randint(low, high)

    def one_of(self, choices: Sequence[Choice]) -> Choice:
        """One of some."""
        return self._random.choice(choices)

    def graver(self, mild: float, grave: float) -> float:
        """Between two bounds, as grave as the severity says."""
        return _rounded(mild + (grave - mild) * self.severity)


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")
