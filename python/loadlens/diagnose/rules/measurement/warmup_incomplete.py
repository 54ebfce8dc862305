"""The service was still getting faster while it was measured.

**Means.** Figures hold a part of its start: a compiler at work, caches that fill, connections that are made.
They are slower than what it does later, and the next run gives others.

**Needs.** Trials in which the response time falls while it is measured: either the part before it settles
moves the median by more than 2 %, or it never settles and falls by more than 10 % (p < 0.01); and by 0.2 ms
at least. And that they are no chance: the first two trials of the run or more, one after the other; or three
trials of a level or more that are two thirds of its trials. Or, where trials are too short to show it: the
first three levels of a curve or more have each a median 5 % below the one before, intervals apart, though the
load never became smaller. Or one
level that was measured twice in one life of the service, other levels in between: the first time its median
was 10 % higher, with its interval, and by 1 ms; and in two trials or more times fall by more than chance at
1 % and by 3 %, and rise in none.

**Ruled out by.** Pauses that keep a period, as the intervals that hold them are left out first; loads that
change by plan, which are not asked; a single trial among others, as one in a hundred falls by chance. Later
trials of one level that fall while other machines or programs took the processor are a suspicion: these come
and go.

**Thresholds.** 2 %: half of what two variants should differ by to matter. 10 % and p < 0.01: fewer than one
stationary trial in a hundred. 0.2 ms: a processor that slept wakes by as much later. Levels: a queue makes
more users slower, never faster. What processors save while they idle is below 1 ms, so the medians must fall
by more than that; a share of slow connections or of slow requests moves a median once, not three times.

**Do.** Warm up for twice as long as it takes to settle, and measure again.

**Confirm.** Twice the duration: it settles at the same moment, and the median moves by less than 2 %.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from loadlens.diagnose import grading
from loadlens.estimate.steady_state import SMALLEST_TREND, TREND_LEVEL
from loadlens.measure.thresholds import OTHERS_MATTER, STOLEN_MATTERS
from loadlens.model.facts import Curve, Facts, Step
from loadlens.model.finding import Absent, Estimate, Finding, Grade, NotAssessed
from loadlens.model.quality import Settling
from loadlens.model.shapes import Slowdown
from loadlens.present import numbers, words

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


@dataclass(frozen=True, slots=True)
class _Trial:
    curve: Curve
    step: Step
    went: Settling


def assess(facts: Facts) -> Finding | Absent | NotAssessed:
    """Look at the trials of all levels in the order in which they ran."""
    trials = [
        _Trial(curve, step, went)
        for curve in facts.curves
        for step in curve.steps
        for went in step.quality.settling
    ]
    levels = [(curve, chain) for curve in facts.curves if (chain := _faster_levels(curve))]
    if levels:
        return _of_levels(*max(levels, key=lambda pair: len(pair[1])))
    again = [
        (curve, slow) for curve in facts.curves for slow in curve.slowdowns if _is_faster_again(curve, slow)
    ]
    if again:
        return _of_the_same_again(facts, *max(again, key=lambda pair: pair[1].requests))
    if not trials:
        return NotAssessed(ID, TITLE, "trials of 100 requests or more would tell; these have fewer")
    trials.sort(key=lambda trial: trial.went.order)
    found, disturbed = _first_in_a_row(trials), False
    if len(found) < FEWEST_IN_A_ROW:
        found = _mostly_in_a_level(trials)
        disturbed = any(_is_disturbed(trial.step, facts.cores) for trial in found)
    if not found:
        falling = sum(_falls(trial) for trial in trials)
        return Absent(
            ID,
            TITLE,
            f"{falling} of {len(trials)} trials get faster while they are measured, none systematically",
        )
    return _finding(found, trials, disturbed=disturbed)


def _falls(trial: _Trial) -> bool:
    """Whether a trial fell by more than noise and than processors that wake."""
    median = trial.step.response.p50
    usual = median.point if isinstance(median, Estimate) else math.inf
    return is_falling(trial.went) and _fall(trial.went) * usual > LEAST_TRIAL_FALL_S


def _is_disturbed(step: Step, cores: int) -> bool:
    """Whether others took the processor: they come and go, and times fall when they go."""
    stolen, others = step.steal or 0.0, step.other_cores or 0.0
    return stolen > STOLEN_MATTERS or others > OTHERS_MATTER * cores


def is_falling(went: Settling) -> bool:
    """Whether the response time of a trial fell by more than noise."""
    if went.kind == "no_steady":
        return went.change < -math.log(1 + SMALLEST_TREND) and went.p_value < TREND_LEVEL
    return went.kind == "warmup" and went.bias is not None and went.bias > MOST_BIAS


def _first_in_a_row(trials: Sequence[_Trial]) -> list[_Trial]:
    found: list[_Trial] = []
    for trial in trials:
        if not _falls(trial):
            break
        found.append(trial)
    return found


def _mostly_in_a_level(trials: Sequence[_Trial]) -> list[_Trial]:
    by_step: dict[tuple[str, str], list[_Trial]] = {}
    for trial in trials:
        by_step.setdefault((trial.curve.label, trial.step.label), []).append(trial)
    found = []
    for own in by_step.values():
        falling = [trial for trial in own if _falls(trial)]
        if len(falling) >= max(FEWEST_TRIALS, MOST_OF_THEM * len(own)):
            found += falling
    return found


def _faster_levels(curve: Curve) -> list[tuple[Step, Estimate]]:
    """The first levels that ran, each with a lower median than the one before; empty: fewer than four."""
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
        if chain and not _is_faster(chain[-1], step, median):
            break
        chain.append((step, median))
    if len(chain) < FEWEST_LEVELS or chain[0][1].point - chain[-1][1].point <= LEAST_FALL_S:
        return []
    return chain


def _is_faster(before: tuple[Step, Estimate], step: Step, median: Estimate) -> bool:
    earlier, was = before
    if step.load < earlier.load or was.low is None or median.high is None:
        return False
    return median.point <= (1 - LEVEL_FALL) * was.point and median.high < was.low


def _is_faster_again(curve: Curve, slow: Slowdown) -> bool:
    """Whether the first trial of a level was slower than its last, and trials fell and never rose."""
    change, first = slow.change, _level_of(curve, slow)
    if not isinstance(change, Estimate) or change.high is None or first is None:
        return False
    median = first.response.p50
    fall_s = (1 - change.point) * median.point if isinstance(median, Estimate) else 0.0
    is_falling = slow.falling >= FEWEST_IN_A_ROW and slow.rising == 0
    return is_falling and change.high <= 1 / (1 + AGAIN_FALL) and fall_s > LEAST_FALL_S


def _level_of(curve: Curve, slow: Slowdown) -> Step | None:
    return next((step for step in curve.steps if step.load == slow.load), None)


def _of_the_same_again(facts: Facts, curve: Curve, slow: Slowdown) -> Finding:
    step, change = _level_of(curve, slow), slow.change
    assert step is not None
    assert isinstance(change, Estimate)
    fall = 1 / change.point - 1
    within = numbers.duration(slow.seconds)
    signals = [
        grading.at_most(
            "response.again",
            change,
            1 / (1 + AGAIN_FALL),
            text=f"median at {words.users(step.load)} {numbers.shown(change)} times the first, {within} "
            f"later "
            f"(limit {1 / (1 + AGAIN_FALL):.2g})",
            chip=f"{numbers.signed_percent(change.point - 1)} at one level",
        ),
        grading.stated(
            "response.falls",
            True,
            text=f"times fall in {slow.falling} of {slow.trials} trials and rise in none",
            chip=f"falls in {slow.falling} of {slow.trials} trials",
        ),
    ]
    rivals = [
        grading.rival("waiting", "the same load is compared with itself", True),
        grading.interference_rival(step, facts.cores),
    ]
    cap = Grade.SUSPECTED if _is_disturbed(step, facts.cores) else grading.cap_of(curve)
    grade = grading.grade_of(signals, rivals, cap=cap)
    assert grade is not None  # it was looked at before
    return Finding(
        rule=ID,
        grade=grade,
        impact=min(1.0, fall),
        scope=curve.label,
        statement=grading.statement(
            f"The first levels hold a part of the start: {numbers.percent(fall)} slower at first"
        ),
        explanation=f"The same load took {numbers.percent(fall)} longer when it came {within} earlier; what "
        "was measured in between is slower than what the service does later.",
        evidence=tuple(signal.evidence for signal in signals),
        counter=tuple(rivals),
        advice=_warm_up(slow.seconds),
        confirm=f"{words.users(step.load)} after such a warm-up: twice, with the same median",
        curves=(curve.label,),
    )


def _of_levels(curve: Curve, chain: Sequence[tuple[Step, Estimate]]) -> Finding:
    (first, was), (last, now) = chain[0], chain[-1]
    fall = was.point / now.point - 1
    lasted = sum(step.quality.seconds or 0.0 for step, _ in chain[:-1])
    evidence = grading.stated(
        "response.falls",
        True,
        text=f"the first {len(chain)} levels get faster one after the other: p50 {numbers.shown(was)} at "
        f"{words.users(first.load)}, {numbers.shown(now)} at {words.users(last.load)}",
        chip=f"p50 {numbers.short(was)} -> {numbers.short(now)}",
    )
    rival = grading.rival("waiting", "more users make a queue slower, never faster", True)
    grade = grading.grade_of([evidence], [rival], cap=grading.cap_of(curve))
    assert grade is not None  # nothing above contradicts
    return Finding(
        rule=ID,
        grade=grade,
        impact=min(1.0, fall),
        scope=curve.label,
        statement=grading.statement(
            f"The first {len(chain)} levels hold a part of the start: {numbers.percent(fall)} slower at first"
        ),
        explanation=_settling(lasted),
        evidence=(evidence.evidence,),
        counter=(rival,),
        advice=_warm_up(lasted),
        confirm=f"{words.users(first.load)} once more at the end: p50 near {numbers.short(now)}",
        curves=(curve.label,),
    )


def _finding(found: Sequence[_Trial], trials: Sequence[_Trial], *, disturbed: bool) -> Finding:
    worst = max(found, key=lambda trial: _fall(trial.went))
    fall, lasted = _fall(worst.went), _settles_after_s(found)
    labels = tuple(dict.fromkeys(trial.curve.label for trial in found))
    settled = len(found) < len(trials)
    evidence = grading.stated(
        "response.falls",
        True,
        text=f"{len(found)} of {len(trials)} trials get faster while they are measured, "
        f"{worst.step.label} by {numbers.percent(fall)} (limit {numbers.percent(MOST_BIAS)})",
        chip=f"falls by {numbers.percent(fall)}",
    )
    rival = grading.rival(
        "chance",
        "the later trials are steady" if settled else "no trial is steady",
        True if settled or len(found) >= FEWEST_TRIALS else None,
    )
    others = grading.rival(
        "others on the machine",
        "they took the processor in some of these trials, and come and go"
        if disturbed
        else "they took little of it, or it fell from the first trial on",
        None if disturbed else True,
    )
    cap = Grade.STRONG if len(found) >= FEWEST_TRIALS else Grade.PROBABLE
    grade = grading.grade_of([evidence], [rival, others], cap=Grade.SUSPECTED if disturbed else cap)
    assert grade is not None  # nothing above contradicts
    return Finding(
        rule=ID,
        grade=grade,
        impact=min(1.0, fall),
        scope=", ".join(labels),
        statement=grading.statement(
            f"{len(found)} of {len(trials)} trials hold a part of the start: "
            f"{numbers.percent(fall)} slower at first"
        ),
        explanation=_settling(lasted),
        evidence=(evidence.evidence,),
        counter=(rival, others),
        advice=_warm_up(lasted),
        confirm="twice the duration: it settles at the same moment, the median moves by less than 2 %",
        curves=labels,
    )


def _settling(lasted_s: float) -> str:
    return (
        f"It took at least {numbers.duration(lasted_s)} of load to settle; what was measured before is "
        "slower than what the service does later."
    )


def _warm_up(lasted_s: float) -> str:
    return f"Warm up for {numbers.duration(2 * lasted_s)} before anything is measured."


def _fall(went: Settling) -> float:
    """How much slower its beginning is than its end, as a share."""
    return math.expm1(-went.change) if went.kind == "no_steady" else went.bias or 0.0


def _settles_after_s(found: Sequence[_Trial]) -> float:
    """Time under load until the last of them settled, warm-ups aside; the longest where each began anew."""
    last = found[-1].went
    end = last.measured_s if last.kind == "no_steady" else last.cut_s
    is_one_start = [t.went.order for t in found] == list(
        range(found[0].went.order, found[0].went.order + len(found))
    )
    if is_one_start:
        return sum(trial.went.measured_s for trial in found[:-1]) + end
    return max(t.went.measured_s if t.went.kind == "no_steady" else t.went.cut_s for t in found)
