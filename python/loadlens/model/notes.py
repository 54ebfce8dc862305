"""Which findings say how far figures go and nothing of what limits the service: they are never its answer."""

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
