"""Observations of refusals: the share of answers with their status, and why it is not known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loadlens.diagnose import grading
from loadlens.estimate.rate_limiter import LEAST_REFUSED
from loadlens.model.facts import Step
from loadlens.model.finding import Estimate, Figure
from loadlens.present import numbers


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers of some levels, and those among them that refuse."""

    refused: int
    count: int
    status: int  # of a refusal

    @property
    def share(self) -> float:
        """Share of refusals; 0: nothing was answered."""
        return self.refused / self.count if self.count else 0.0

    @property
    def text(self) -> str:
        """`12 of 3,400 answers are 503`."""
        return f"{self.refused:,} of {self.count:,} answers are {self.status}"

    @property
    def why_not_timed(self) -> str:
        """Statement that many are refused, on no level long enough for a rate; empty: few are."""
        if self.share < LEAST_REFUSED:
            return ""
        return f"{numbers.percent(self.share)} of the answers are {self.status}, on no level for 2 s"


def answers(steps: Sequence[Step], status: int) -> Answers:
    """Count the answers of all these levels."""
    counts = [pair for step in steps for pair in step.statuses]
    refused = sum(count for code, count in counts if code == status)
    return Answers(refused, sum(count for _, count in counts), status)


def lack(steps: Sequence[Step]) -> str:
    """Return why refusals are not known; empty: they are."""
    if not steps:
        return "no valid trial"
    if all(not step.statuses and not step.refusals for step in steps):
        return "needs answers by status: the source of the load does not report them"
    return ""


def share_signal(share: Figure, status: int, load: str) -> grading.Signal:
    """Require that a share of the requests is refused that matters."""
    return grading.at_least(
        "refused.share",
        share,
        LEAST_REFUSED,
        text=f"{numbers.shown(share)} of the requests are answered {status} at {load} "
        f"(limit {numbers.percent(LEAST_REFUSED)})",
        chip=f"{numbers.percent(share.point)} get {status}" if isinstance(share, Estimate) else "",
    )
