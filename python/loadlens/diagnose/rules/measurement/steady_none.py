"""The response time never settles while it is measured.

**Means.** There is no level that a mean or a quantile could describe: a longer or a later trial gives another
value. The cause of the drift is another finding.

**Needs.** Trials that settle only after their middle, or whose response time still changes by more than 10 %
after that (p < 0.01), in more than half of the trials of a level: at least two trials of the record, or one
if the record has at most three.

**Ruled out by.** A service that gets faster from its start on (`warmup.incomplete`); periodic pauses, whose
intervals are left out first; loads that change by plan, which are not assessed.

**Thresholds.** 10 % and p < 0.01: fewer than one stationary trial in a hundred, so that a single one among
many says nothing, and one of three or fewer is a suspicion.

**Do.** Measure for three times as long; where it still drifts, look for what grows (memory, rows).

**Confirm.** Double the duration: it settles, or the drift goes on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Lacking, Nothing, Words, assessing, on_curve
from loadlens.diagnose.observe.levels import Level, levels
from loadlens.diagnose.rules.measurement.warmup_incomplete import TOO_SHORT, is_falling
from loadlens.estimate.steady_state import SMALLEST_TREND, TREND_LEVEL
from loadlens.model.facts import Facts
from loadlens.model.finding import Grade
from loadlens.model.quality import Settling
from loadlens.present.numbers import duration, signed_percent

ID = "steady.none"
TITLE = "response times never settle"
EXPLAINS: tuple[str, ...] = ()

FEWEST = 2
FEW_TRIALS = 3
MOST_IMPACT = 0.04  # it qualifies figures; the cause of the drift is found by other rules


@dataclass(frozen=True, slots=True)
class Drift:
    """The levels whose trials never settle, and how many trials they are."""

    levels: list[Level[list[Settling]]]
    count: int
    trials: int  # of all levels

    @property
    def share(self) -> str:
        """`2 of 6 trials`."""
        return f"{self.count} of {self.trials} trials"


def observe(facts: Facts) -> Sequence[Drift] | Lacking | Nothing:
    """Return the levels more than half of whose trials never settle, together."""
    settled = levels(facts, lambda step: step.quality.settling or None)
    if not settled:
        return Lacking(TOO_SHORT)
    drifting = []
    for level in settled:
        trials = [t for t in level.detail if t.kind == "no_steady" and not is_falling(t)]
        if 2 * len(trials) > len(level.detail):
            drifting.append(Level(level.curve, level.step, trials))
    drift = Drift(
        drifting, sum(len(level.detail) for level in drifting), sum(len(level.detail) for level in settled)
    )
    if not drifting or (drift.count < FEWEST and drift.trials > FEW_TRIALS):
        return Nothing(f"{drift.share} drift, as many as chance makes")
    return [drift]


def claim(_: Facts, drift: Drift) -> Claim:
    """Name the trial that drifts most."""
    level = max(drift.levels, key=lambda level: max(abs(trial.change) for trial in level.detail))
    worst = max(level.detail, key=lambda trial: abs(trial.change))
    label, change = level.step.label, math.expm1(worst.change)
    cut, whole, longer = duration(worst.cut_s), duration(worst.measured_s), duration(3 * worst.measured_s)
    text = f"{drift.share} settle late or never; {label} after {cut} of {whole}"
    chip, statement = (
        f"settles after {cut}",
        f"{drift.share} settle late or never: {label} after {cut} of {whole}",
    )
    # The others came to their last level after the middle, and no longer drift.
    if abs(worst.change) > math.log(1 + SMALLEST_TREND) and worst.p_value < TREND_LEVEL:
        percents = signed_percent(change)
        text = f"{drift.share} never settle; {label} changes by {percents} (p = {worst.p_value:.2g})"
        chip, statement = f"drifts {percents}", f"{drift.share} never settle: {label} {percents} in {whole}"

    def words(_: Grade) -> Words:
        return Words(
            statement=statement,
            explanation="Means and quantiles of these trials are those of a moment, not of a level.",
            advice=f"Measure {label} for {longer}; where it still drifts, look for what grows.",
            confirm=f"{longer} in place of {whole}: it settles, or goes on",
            impact=min(MOST_IMPACT, abs(change)),
        )

    return on_curve(
        level.curve,
        [grading.stated("response.drifts", True, text=text, chip=chip)],
        [],
        words,
        where=level.label,
        curves=tuple(dict.fromkeys(drifting.curve.label for drifting in drift.levels)),
        cap=Grade.SUSPECTED if drift.count < FEWEST else Grade.STRONG,
    )


assess = assessing(ID, TITLE, observe, claim)
