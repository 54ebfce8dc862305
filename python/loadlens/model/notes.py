"""Rules that qualify the figures and do not name a limit: their findings are never the answer."""

from __future__ import annotations

from typing import Final

NOTES: Final = frozenset(
    {
        "accounting.explained",
        "co.omission",
        "failure.misclassified",
        "load.underdriven",
        "noise.between-runs",
        "quantile.boundary",
        "quantile.insufficient",
        "steady.none",
    }
)
