"""Bounds for shares of replications: what a right method misses one time in 1,000 (binomial)."""

from __future__ import annotations

from scipy import stats as distributions

CHANCE = 1e-3


def at_least(share: float, replications: int) -> int:
    """Fewest hits among replications that a method with this true share may show."""
    return int(distributions.binom.ppf(CHANCE, replications, share))


def at_most(share: float, replications: int) -> int:
    """Most hits among replications that a method with this true share may show."""
    return int(distributions.binom.ppf(1 - CHANCE, replications, share))
