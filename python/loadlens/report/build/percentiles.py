"""The highest percentile that the evidence knows, in place of a column of undecided ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from loadlens.model.finding import Estimate, Figure, Undecided

PERCENTILES = (0.99, 0.95, 0.9, 0.75, 0.5)


def highest_known(quantiles: Sequence[Callable[[float], Figure]]) -> float | None:
    """Return the highest percentile that half of the rows know, else any of them; none: nothing is known.

    Args:
        quantiles: The quantile of each row that was measured, by its share.
    """
    counts = {p: sum(isinstance(of(p), Estimate) for of in quantiles) for p in PERCENTILES}
    most = next((p for p, count in counts.items() if count and 2 * count >= len(quantiles)), None)
    if most is not None:
        return most
    if not any(isinstance(of(PERCENTILES[0]), Undecided) for of in quantiles):
        return PERCENTILES[0]  # nothing was measured, and the column says why
    return next((p for p, count in counts.items() if count), None)
