"""Rules whose findings are not the answer: never, or not where another one names a limit of the service."""

from __future__ import annotations

from typing import Final

# Rules that qualify the figures and do not name a limit.
NOTES: Final = frozenset(
    {
        "accounting.explained",
        "co.omission",
        "failure.misclassified",
        "load.underdriven",
        "node.limit",
        "node.slow-one",
        "noise.between-runs",
        "paths.differ",
        "quantile.boundary",
        "quantile.insufficient",
        "steady.none",
    }
)
# What else ran on the machine: a caveat with its size where anything is found about the service itself.
OF_THE_HOST: Final = frozenset({"host.interference", "colocation.contention"})
