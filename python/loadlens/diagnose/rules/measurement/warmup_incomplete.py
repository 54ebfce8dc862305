"""The service was still getting faster while it was measured.

**Means.** Figures include a part of the service's start: a compiler at work, caches that fill, connections
that are made. They are slower than later ones, and the next run gives others.

**Needs.** Trials in which the response time falls while it is measured: either the part before it settles
moves the median by more than 2 %, or it never settles and falls by more than 10 % (p < 0.01); in both cases
by 0.2 ms or more. These must be no chance: the first two trials of the run or more, one after the other; or
three or more trials of a level that are two thirds of its trials. Where trials are too short to show it, one
of two other signs. First, the first three levels of a curve or more each have a median 5 % below the one
before, intervals apart, though the load never became smaller. Second, one level was measured twice in one
life of the service, with other levels in between: the first time its median was 10 % higher, with its
interval, and by 1 ms; and in two or more trials times fall by more than chance at 1 % and by 3 %, and rise in
none.

**Ruled out by.** Periodic pauses, as the intervals that contain them are left out first; loads that change by
plan, which are not assessed; a single trial among others, as one in a hundred falls by chance. Later trials
of one level that fall while other machines or programs used the processor are a suspicion: such use is not
constant.

**Thresholds.** 2 %: half of a difference that would matter between two variants. 10 % and p < 0.01: fewer
than one stationary trial in a hundred. 0.2 ms: a processor that slept wakes up later by as much. Levels: a
queue makes more users slower, never faster. What processors save while they idle is below 1 ms, so the
medians must fall by more than that; a share of slow connections or of slow requests moves a median once, not
three times.

**Do.** Warm up for twice as long as it takes to settle, and measure again.

**Confirm.** Double the duration: it settles at the same moment, and the median moves by less than 2 %.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Lacking, Nothing, Words, assessing, on_curve
from loadlens.diagnose.observe.levels import Level, levels
from loadlens.estimate.steady_state import SMALLEST_TREND, TREND_LEVEL
from loadlens.measure.thresholds import OTHERS_MATTER, STOLEN_MATTERS
from loadlens.model.facts import Curve, Facts, Step
from loadlens.model.finding import Estimate, Grade
from loadlens.model.quality import Settling
from loadlens.model.shapes import Slowdown
from loadlens.present import numbers
from loadlens.present.numbers import duration, percent
from loadlens.present.words import users

ID = "warmup.incomplete"
TITLE = "figures hold a part of the start"
EXPLAINS: tuple[str, ...] = ()

MOST_BIAS = 0.02
FEWEST_IN_A_ROW = 2
FEWEST_TRIALS = 3
AGAIN_FALL = 0.10
FEWEST_LEVELS = 4  # three that are each faster than the one before
LEVEL_FALL = 0.05
LEAST_FALL_S = 0.001
LEAST_TRIAL_FALL_S = 0.0002
MOST_OF_THEM = 2 / 3
TOO_SHORT = "needs trials of 100 requests or more; these have fewer"


@dataclass(frozen=True, slots=True)
class FasterLevels:
    """The first levels that ran, each with a lower median than the one before."""

    curve: Curve
    chain: list[tuple[Step, Estimate]]


@dataclass(frozen=True, slots=True)
class FasterAgain:
    """A level that was faster when it was measured again."""

    curve: Curve
    slowdown: Slowdown
    step: Step
    change: Estimate


@dataclass(frozen=True, slots=True)
class FallingTrials:
    """Trials that got faster while they were measured."""

    falling: list[Level[Settling]]
    trials: int  # of the record
    is_disturbed: bool  # other programs used the processor during some of them


Start = FasterLevels | FasterAgain | FallingTrials


def observe(facts: Facts) -> Sequence[Start] | Lacking | Nothing:
    """Return the clearest sign of a start: levels, the same level again, or trials in the order they ran."""
    chains = [FasterLevels(curve, _chain(curve)) for curve in facts.curves]
    if any(len(levels.chain) >= FEWEST_LEVELS for levels in chains):
        return [max(chains, key=lambda levels: len(levels.chain))]
    again = [
        FasterAgain(curve, slow, step, slow.change)
        for curve in facts.curves
        for slow in curve.slowdowns
        if isinstance(slow.change, Estimate)
        and (step := next((s for s in curve.steps if s.load == slow.load), None)) is not None
    ]
    faster = [level for level in again if _is_faster_again(level)]
    if faster:
        return [max(faster, key=lambda level: level.slowdown.requests)]
    trials = [
        Level(level.curve, level.step, settling)
        for level in levels(facts, lambda step: step.quality.settling)
        for settling in level.detail
    ]
    if not trials:
        return Lacking(TOO_SHORT)
    trials.sort(key=lambda trial: trial.detail.order)
    steady = next((place for place, trial in enumerate(trials) if not _falls(trial)), len(trials))
    if steady >= FEWEST_IN_A_ROW:
        return [FallingTrials(trials[:steady], len(trials), is_disturbed=False)]
    falling = _falling_levels(trials)
    if falling:
        is_disturbed = any(_is_disturbed(trial.step, facts.cores) for trial in falling)
        return [FallingTrials(falling, len(trials), is_disturbed)]
    count = sum(map(_falls, trials))
    return Nothing(f"{count} of {len(trials)} trials get faster while they are measured, none systematically")


def claim(facts: Facts, start: Start) -> Claim:
    """Claim that figures include a part of the start."""
    if isinstance(start, FasterLevels):
        return _of_levels(start)
    return _of_same_level(facts, start) if isinstance(start, FasterAgain) else _of_trials(start)


# --- signs of a start -------------------------------------------------------------------------------------


def is_falling(settling: Settling) -> bool:
    """Return true if the response time of a trial fell by more than noise."""
    if settling.kind == "no_steady":
        return settling.change < -math.log(1 + SMALLEST_TREND) and settling.p_value < TREND_LEVEL
    return settling.kind == "warmup" and settling.bias is not None and settling.bias > MOST_BIAS


def _fall(settling: Settling) -> float:
    """Return how much slower a trial's beginning is than its end, as a share."""
    return math.expm1(-settling.change) if settling.kind == "no_steady" else settling.bias or 0.0


def _falls(trial: Level[Settling]) -> bool:
    """Return true if a trial fell by more than noise and than the wake-up of processors."""
    median = trial.step.response.p50
    usual_s = median.point if isinstance(median, Estimate) else math.inf
    return is_falling(trial.detail) and _fall(trial.detail) * usual_s > LEAST_TRIAL_FALL_S


def _falling_levels(trials: Sequence[Level[Settling]]) -> list[Level[Settling]]:
    """Return the trials that fall of levels where most trials do."""
    by_level: dict[tuple[str, str], list[Level[Settling]]] = {}
    for trial in trials:
        by_level.setdefault((trial.curve.label, trial.step.label), []).append(trial)
    falling = []
    for own in by_level.values():
        fallen = [trial for trial in own if _falls(trial)]
        if len(fallen) >= max(FEWEST_TRIALS, MOST_OF_THEM * len(own)):
            falling += fallen
    return falling


def _is_disturbed(step: Step, cores: int) -> bool:
    """Return true if other programs used the processor: times fall when they stop."""
    stolen, others = step.steal or 0.0, step.other_cores or 0.0
    return stolen > STOLEN_MATTERS or others > OTHERS_MATTER * cores


def _chain(curve: Curve) -> list[tuple[Step, Estimate]]:
    """Return the first levels that ran, each with a lower median than the one before; empty: too few."""
    ran = sorted(
        (step.quality.order, place, step)
        for place, step in enumerate(curve.steps)
        if step.quality.order is not None
    )
    chain: list[tuple[Step, Estimate]] = []
    for _, _, step in ran:
        median = step.response.p50
        if not isinstance(median, Estimate):
            break
        if chain:
            earlier, before = chain[-1]
            if step.load < earlier.load or before.low is None or median.high is None:
                break
            if median.point > (1 - LEVEL_FALL) * before.point or median.high >= before.low:
                break
        chain.append((step, median))
    is_enough = len(chain) >= FEWEST_LEVELS and chain[0][1].point - chain[-1][1].point > LEAST_FALL_S
    return chain if is_enough else []


def _is_faster_again(level: FasterAgain) -> bool:
    """Return true if the first trial of a level was slower than its last, and trials fell and never rose."""
    change, slow, median = level.change, level.slowdown, level.step.response.p50
    fall_s = (1 - change.point) * median.point if isinstance(median, Estimate) else 0.0
    is_lower = change.high is not None and change.high <= 1 / (1 + AGAIN_FALL)
    return is_lower and fall_s > LEAST_FALL_S and slow.falling >= FEWEST_IN_A_ROW and slow.rising == 0


# --- claims -----------------------------------------------------------------------------------------------


def _of_levels(levels: FasterLevels) -> Claim:
    chain = levels.chain
    (first, before), (last, now) = chain[0], chain[-1]
    signal = grading.stated(
        "response.falls",
        True,
        text=f"the first {len(chain)} levels get faster one after the other: p50 {numbers.shown(before)} at "
        f"{users(first.load)}, {numbers.shown(now)} at {users(last.load)}",
        chip=f"p50 {numbers.short(before)} -> {numbers.short(now)}",
    )
    rival = grading.rival("waiting", "more users make a queue slower, never faster", True)

    def words(_: Grade) -> Words:
        fall = before.point / now.point - 1
        lasted_s = sum(step.quality.seconds or 0.0 for step, _ in chain[:-1])
        return Words(
            statement=f"The first {len(chain)} levels hold a part of the start: {percent(fall)} slower at "
            "first",
            explanation=_settling(lasted_s),
            advice=_warm_up(lasted_s),
            confirm=f"{users(first.load)} once more at the end: p50 near {numbers.short(now)}",
            impact=fall,
        )

    return on_curve(levels.curve, [signal], [rival], words)


def _of_same_level(facts: Facts, level: FasterAgain) -> Claim:
    step, change, slow = level.step, level.change, level.slowdown
    within, limit = duration(slow.seconds), 1 / (1 + AGAIN_FALL)
    in_trials = f"in {slow.falling} of {slow.trials} trials"
    signals = [
        grading.at_most(
            "response.again",
            change,
            limit,
            text=f"median at {users(step.load)} {numbers.shown(change)} times the first, {within} later "
            f"(limit {limit:.2g})",
            chip=f"{numbers.signed_percent(change.point - 1)} at one level",
        ),
        grading.stated(
            "response.falls",
            True,
            text=f"times fall {in_trials} and rise in none",
            chip=f"falls {in_trials}",
        ),
    ]
    rivals = [
        grading.rival("waiting", "the same load is compared with itself", True),
        grading.interference_rival(step, facts.cores),
    ]

    def words(_: Grade) -> Words:
        fall = percent(1 / change.point - 1)
        return Words(
            statement=f"The first levels hold a part of the start: {fall} slower at first",
            explanation=f"The same load took {fall} longer when it came {within} earlier; what was measured "
            "in between is slower than what the service does later.",
            advice=_warm_up(slow.seconds),
            confirm=f"{users(step.load)} after such a warm-up: twice, with the same median",
            impact=1 / change.point - 1,
        )

    cap = Grade.SUSPECTED if _is_disturbed(step, facts.cores) else Grade.STRONG
    return on_curve(level.curve, signals, rivals, words, cap=cap)


def _of_trials(trials: FallingTrials) -> Claim:
    falling, is_disturbed = trials.falling, trials.is_disturbed
    worst = max(falling, key=lambda trial: _fall(trial.detail))
    fall, count = _fall(worst.detail), f"{len(falling)} of {trials.trials} trials"
    is_many, is_settled = len(falling) >= FEWEST_TRIALS, len(falling) < trials.trials
    signal = grading.stated(
        "response.falls",
        True,
        text=f"{count} get faster while they are measured, {worst.step.label} by {percent(fall)} "
        f"(limit {percent(MOST_BIAS)})",
        chip=f"falls by {percent(fall)}",
    )
    chance = "the later trials are steady" if is_settled else "no trial is steady"
    others = "they took little of it, or it fell from the first trial on"
    if is_disturbed:
        others = "they took the processor in some of these trials, and come and go"
    rivals = [
        grading.rival("chance", chance, True if is_settled or is_many else None),
        grading.rival("others on the machine", others, None if is_disturbed else True),
    ]

    def words(_: Grade) -> Words:
        lasted_s = _settles_after_s(falling)
        return Words(
            statement=f"{count} hold a part of the start: {percent(fall)} slower at first",
            explanation=_settling(lasted_s),
            advice=_warm_up(lasted_s),
            confirm="twice the duration: it settles at the same moment, the median moves by less than 2 %",
            impact=fall,
        )

    cap = Grade.STRONG if is_many else Grade.PROBABLE
    labels = tuple(dict.fromkeys(trial.curve.label for trial in falling))
    # Trials bound the grade here, and not how many trials a level has.
    return Claim(", ".join(labels), [signal], rivals, words, labels, Grade.SUSPECTED if is_disturbed else cap)


def _settles_after_s(falling: Sequence[Level[Settling]]) -> float:
    """Return the time under load until the last of them settled, without warm-ups.

    Trials that follow each other are one start, so their times add up; else the longest counts.
    """
    trials = [trial.detail for trial in falling]
    ends_s = [t.measured_s if t.kind == "no_steady" else t.cut_s for t in trials]
    is_one_start = all(later.order == t.order + 1 for t, later in pairwise(trials))
    return sum(t.measured_s for t in trials[:-1]) + ends_s[-1] if is_one_start else max(ends_s)


def _settling(lasted_s: float) -> str:
    return (
        f"It took at least {duration(lasted_s)} of load to settle; what was measured before is slower than "
        "what the service does later."
    )


def _warm_up(lasted_s: float) -> str:
    return f"Warm up for {duration(2 * lasted_s)} before anything is measured."


assess = assessing(ID, TITLE, observe, claim)
