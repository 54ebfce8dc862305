"""What both rules of refusals ask: how many answers have their status, and why that cannot be told."""

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
        """Of the refused; 0: nothing was answered."""
        return self.refused / self.count if self.count else 0.0

    @property
    def text(self) -> str:
        """`12 of 3,400 answers are 503`."""
        return f"{self.refused:,} of {self.count:,} answers are {self.status}"

    @property
    def why_not_timed(self) -> str:
        """That many are refused, and on no level long enough for a rate; empty: few are."""
        if self.share < LEAST_REFUSED:
            return ""
        return f"{numbers.percent(self.share)} of the answers are {self.status}, on no level for 2 s"


def answers(steps: Sequence[Step], status: int) -> Answers:
    """Of all these levels together."""
    told = [one for step in steps for one in step.statuses]
    return Answers(
        sum(count for code, count in told if code == status), sum(count for _, count in told), status
    )


def lack(steps: Sequence[Step]) -> str:
    """Why nothing is known of refusals; empty: something is."""
    if not steps:
        return "no valid trial"
    if all(not step.statuses and not step.refusals for step in steps):
        return "needs answers by status: what made the load does not tell them"
    return ""


def share_signal(share: Figure, status: int, load: str) -> grading.Signal:
    """So many of the requests are refused that it matters."""
    return grading.at_least(
        "refused.share",
        share,
        LEAST_REFUSED,
        text=f"{numbers.shown(share)} of the requests are answered {status} at {load} "
        f"(limit {numbers.percent(LEAST_REFUSED)})",
        chip=f"{numbers.percent(share.point)} get {status}" if isinstance(share, Estimate) else "",
    )
