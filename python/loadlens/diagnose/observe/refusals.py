"""Observations of refusals: their share of the answers, why it is not known, and a quota that is used up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Words, on_curve
from loadlens.diagnose.observe import waits
from loadlens.diagnose.observe.vain_waits import FEWEST_FOR_A_PILE, SPOKEN_FOR, stays_signal
from loadlens.estimate.rate_limiter import LEAST_REFUSED
from loadlens.model.facts import Curve, Facts, LogSign, LostWatch, Step
from loadlens.model.finding import Estimate, Figure, Grade
from loadlens.present import numbers

MOST = 0.9  # of the failures end with the same status
AS_FAST = 5.0  # times as long as half of the successes took, at most: a request that waits takes longer


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


@dataclass(frozen=True, slots=True)
class UsedUp:
    """A curve at whose end nothing succeeds any more, and the service speaks of a quota."""

    curve: Curve
    watch: LostWatch
    sign: LogSign


def used_up(facts: Facts) -> list[UsedUp]:
    """Return the curves at whose end each request is turned away because of a quota."""
    lost = [(curve, curve.lost, curve.lost.sign("quota")) for curve in facts.curves if curve.lost is not None]
    return [
        UsedUp(curve, watch, sign)
        for curve, watch, sign in lost
        if sign is not None and sign.count >= SPOKEN_FOR * watch.failed and _turns_away(watch)
    ]


def _turns_away(watch: LostWatch) -> bool:
    """True if nearly all requests end with the same status of an error, and about as fast as successes."""
    mode, took, usual = watch.mode, watch.mode.median_s, watch.mode.success_median_s
    is_same = mode.status >= waits.ERROR and watch.alike >= MOST * watch.failed
    return is_same and took is not None and usual is not None and took <= AS_FAST * usual


def claim_of_used_up(seen: UsedUp) -> Claim:
    """Require that nothing succeeds again, and quote what the service says of it."""
    watch, status = seen.watch, seen.watch.mode.status
    signals = [
        stays_signal(seen.curve, watch, True if watch.mode.count >= FEWEST_FOR_A_PILE else None),
        grading.stated("server.log", True, text=seen.sign.text, chip=seen.sign.chip),
    ]

    def text(_: Grade) -> Words:
        return Words(
            statement=f"A quota is used up: after {watch.served:,} answers all requests end with {status}",
            explanation=f"From then on not one of {watch.failed:,} succeeds; {seen.sign.text}.",
            advice="Ask less often what the quota is for (keep answers, ask for several at once), or raise "
            "it; who is refused waits for the next period.",
            confirm="the same load in the next period: it ends after as many answers",
            impact=1.0,
            unknown=("when the quota begins anew",),
        )

    return on_curve(seen.curve, signals, [], text, cap=Grade.PROBABLE)
