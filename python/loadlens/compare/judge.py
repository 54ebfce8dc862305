"""The verdict on two versions from the trials of both: failures first, then the effect on each metric.

The typical response time (or throughput, where users wait for responses) decides whether two versions are
equivalent. Any time that changes for sure makes the second version faster or slower; Holm's procedure holds
over all metrics and cases together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np

from loadlens.compare.metrics import RESOURCES, THROUGHPUT, TIMES, Metric, failed_share
from loadlens.estimate import over_trials
from loadlens.estimate.comparison import (
    Tested,
    difference_of_pairs,
    holm,
    ratio_of_pairs,
    ratio_of_trials,
)
from loadlens.estimate.interval import Floats, Insufficient, Interval
from loadlens.estimate.looks import ERROR, MOST_PAIRS, error_of, pairs_to_decide
from loadlens.measure import accounting
from loadlens.measure.case import CaseMeasures
from loadlens.measure.figures import figure
from loadlens.measure.trial import TrialMeasures
from loadlens.model.comparison import Change, Comparison, Effect, Pair, Verdict
from loadlens.model.finding import Estimate, Figure
from loadlens.model.workload import Closed
from loadlens.present import load_text, numbers, words
from loadlens.present.comparison_text import change_in_words

FAILED: Final = "failed"  # key of the failures among the effects


@dataclass(frozen=True, slots=True)
class Match:
    """The same load on both versions."""

    name: str  # empty where there is one
    first: CaseMeasures
    second: CaseMeasures


@dataclass(frozen=True, slots=True)
class Arms:
    """Two versions with the loads that both had."""

    first: str
    second: str
    matches: tuple[Match, ...]
    is_paired: bool


@dataclass(frozen=True, slots=True)
class Rules:
    """Margin, looks and error of a judgement."""

    margin: float
    looks: tuple[int, ...] = ()  # pairs at each look; empty: all trials are looked at once
    error: float = ERROR


@dataclass(frozen=True, slots=True)
class _Trials:
    """Usable trials of one match, in pairs where they are paired."""

    match: Match
    first: tuple[TrialMeasures, ...]
    second: tuple[TrialMeasures, ...]


@dataclass(frozen=True, slots=True)
class _Series:
    """One metric of both versions, a number from each trial that has it."""

    match: Match
    metric: Metric
    is_headline: bool
    first: Floats
    second: Floats

    def ratio(self, confidence: float, *, is_paired: bool) -> Interval | Insufficient:
        """Return second over first."""
        how = ratio_of_pairs if is_paired else ratio_of_trials
        return how(self.first, self.second, confidence=confidence)

    def scatter(self, *, is_paired: bool) -> float:
        """Return the standard deviation of log ratios, or of the difference of two trials' logs."""
        before, after = np.log(self.first), np.log(self.second)
        if is_paired:
            return float((after - before).std(ddof=1))
        return math.hypot(float(before.std(ddof=1)), float(after.std(ddof=1)))


def compared(arms: Arms, rules: Rules, cautions: Sequence[str] = ()) -> Comparison:
    """Return the answer from all trials, or where there are looks, from those of the last look.

    Args:
        arms: Both versions.
        rules: Margin, looks, error.
        cautions: What makes the comparison less than it could be.
    """
    trials = [_trials_of(match, is_paired=arms.is_paired) for match in arms.matches]
    size = min((min(len(each.first), len(each.second)) for each in trials), default=0)
    error = rules.error
    if rules.looks:
        size = max((look for look in rules.looks if look <= size), default=size)
        error = error_of(size, rules.looks, rules.error) if size in rules.looks else rules.error
        trials = [replace(each, first=each.first[:size], second=each.second[:size]) for each in trials]
    series = [part for each in trials for part in _series(each, is_paired=arms.is_paired)]
    effects = {place: partial(part.ratio, is_paired=arms.is_paired) for place, part in enumerate(series)}
    failing = {
        (FAILED, place): partial(_failure_ratio, each, is_paired=arms.is_paired)
        for place, each in enumerate(trials)
        if any(map(failed_share, (*each.first, *each.second)))
    }
    tested = holm({**effects, **failing}, error)
    shown = tuple(
        _effect(part, tested[place], rules.margin, is_paired=arms.is_paired)
        for place, part in enumerate(series)
    )
    worse = [key for key in failing if tested[key].differs and _point(tested[key]) > 1]
    verdict = _verdict(shown, is_failing=bool(worse))
    main = next((place for place, part in enumerate(series) if part.is_headline), None)
    decides = ""
    if verdict != "failing" and main is not None:
        decides = _decides(series[main], shown[main], rules.margin, size, is_paired=arms.is_paired)
    each_case = [case for match in arms.matches for case in (match.first, match.second)]
    answer = Comparison(
        verdict=verdict,
        sentence="",
        first=arms.first,
        second=arms.second,
        load=_load(arms),
        margin=rules.margin,
        pairs=size,
        is_paired=arms.is_paired,
        failures=tuple(_failures(arms, trials)),
        accounting=tuple(
            f"{row.source}: {row.explained_by}"
            for row in accounting.rows(each_case)
            if row.state in ("bad", "caution") or row.source == "client, load"
        ),
        effects=shown,
        decides="",
        method=_method(arms, rules, size, len(tested)),
        cautions=(*cautions, *_lost(arms)),
    )
    return replace(answer, sentence=_sentence(answer), decides="" if answer.is_decided else decides)


def _trials_of(match: Match, *, is_paired: bool) -> _Trials:
    if not is_paired:
        return _Trials(match, match.first.usable, match.second.usable)
    first = {trial.source.block: trial for trial in match.first.usable}
    second = {trial.source.block: trial for trial in match.second.usable}
    both = sorted(first.keys() & second.keys())
    return _Trials(match, tuple(first[block] for block in both), tuple(second[block] for block in both))


def _series(trials: _Trials, *, is_paired: bool) -> Iterator[_Series]:
    """Yield the metrics that both versions have; the first one is the headline."""
    is_closed = isinstance(trials.match.first.plan.workload, Closed)
    speed = (THROUGHPUT, *TIMES) if is_closed else TIMES
    for place, metric in enumerate((*speed, *RESOURCES)):
        before, after = (list(map(metric.of, part)) for part in (trials.first, trials.second))
        if is_paired:
            kept = [(a, b) for a, b in zip(before, after, strict=True) if a is not None and b is not None]
            before, after = [a for a, _ in kept], [b for _, b in kept]
        first, second = (np.array([x for x in part if x is not None]) for part in (before, after))
        if first.size and second.size:
            yield _Series(trials.match, metric, place == 0, first, second)


def _failure_ratio(trials: _Trials, confidence: float, *, is_paired: bool) -> Interval | Insufficient:
    """Return the difference of the shares of failures as a ratio: its exponential, 1 where there is none."""
    before, after = (np.array([failed_share(t) for t in part]) for part in (trials.first, trials.second))
    if not is_paired:
        return ratio_of_trials(np.exp(before), np.exp(after), confidence=confidence)
    difference = difference_of_pairs(before, after, confidence=confidence)
    if isinstance(difference, Insufficient) or difference.low is None or difference.high is None:
        return difference
    ends = np.exp([difference.point, difference.low, difference.high])
    return replace(difference, point=float(ends[0]), low=float(ends[1]), high=float(ends[2]))


def _point(tested: Tested) -> float:
    return tested.effect.point if isinstance(tested.effect, Interval) else 1.0


# --- one effect ---------------------------------------------------------------------------------------------


def _effect(part: _Series, tested: Tested, margin: float, *, is_paired: bool) -> Effect:
    metric, interval = part.metric, tested.effect
    trials = min(part.first.size, part.second.size)
    is_beyond = False
    change: Change = "undecided"
    if isinstance(interval, Interval) and interval.low is not None and interval.high is not None:
        is_beyond = interval.low > 1 + margin or interval.high < 1 / (1 + margin)
        change = _change(interval.low, interval.high, tested.differs, metric, margin)
    return Effect(
        case=part.match.name,
        metric=metric.name,
        unit=metric.unit,
        before=typical(metric, part.first),
        after=typical(metric, part.second),
        ratio=figure(metric.name, "ratio", interval, trials, 0),
        change=change,
        is_beyond=is_beyond,
        is_headline=part.is_headline,
        pairs=tuple(map(Pair, part.first.tolist(), part.second.tolist())) if is_paired else (),
    )


def _change(low: float, high: float, differs: bool, metric: Metric, margin: float) -> Change:
    if low >= 1 / (1 + margin) and high <= 1 + margin:
        return "same"  # a difference this small may be real and still is none that matters
    if not differs:
        return "undecided"
    return "better" if (low > 1) == metric.more_is_better else "worse"


def typical(metric: Metric, values: Floats) -> Figure:
    """Return the figure of one version from one number of each trial; below 3 trials without an interval."""
    interval = over_trials.over_trials(values)
    if isinstance(interval, Insufficient):
        middle = float(np.exp(np.log(values).mean()))
        return Estimate(metric.name, metric.unit, middle, None, None, values.size, 0, "mean of logs")
    return figure(metric.name, metric.unit, interval, values.size, 0)


def _verdict(effects: Sequence[Effect], *, is_failing: bool) -> Verdict:
    if is_failing:
        return "failing"
    speed = [effect for effect in effects if effect.metric not in {metric.name for metric in RESOURCES}]
    if any(effect.change == "worse" for effect in speed):
        return "slower"
    if any(effect.change == "better" for effect in speed):
        return "faster"
    headline = [effect for effect in speed if effect.is_headline]
    if headline and all(effect.change == "same" for effect in headline):
        return "equivalent"
    return "undecided"


# --- words --------------------------------------------------------------------------------------------------


def _sentence(answer: Comparison) -> str:
    """Return the first line: the verdict, then the effect that it rests on."""
    second, margin = answer.second, numbers.percent(answer.margin)
    if answer.verdict == "failing":
        return f"Failing: {second} fails more often than {answer.first}: {answer.failures[0]}"
    main = _deciding(answer)
    if main is None:
        return f"Undecided: nothing was measured of both {answer.first} and {second}"
    head = answer.verdict.capitalize()
    text = f"{words.metric(main.metric)} of {second} {change_in_words(main)} against {answer.first}"
    if isinstance(main.before, Estimate) and isinstance(main.after, Estimate):
        after, before = (numbers.with_unit(f.point, f.unit) for f in (main.after, main.before))
        text += f", {after} to {before}"
    where = f" in {main.case}" if main.case else ""
    match answer.verdict:
        case "equivalent":
            return f"{head} within {margin}: {text}{where}"
        case "undecided":
            return f"{head}: {text}{where}; the margin is {margin}"
        case _:
            size = (
                f" by more than {margin}" if main.is_beyond else f", undecided whether by more than {margin}"
            )
            also = [
                f"{words.metric(e.metric)} is better"
                for e in answer.effects
                if answer.verdict == "slower" and e.change == "better" and e.case == main.case
            ]
            return "; ".join([f"{head}{size}: {text}{where}", *also])


def _deciding(answer: Comparison) -> Effect | None:
    """Return the effect that the verdict rests on: the headline's, or another one beyond the margin."""
    wanted = {"slower": "worse", "faster": "better"}.get(answer.verdict)
    changed = [effect for effect in answer.effects if effect.change == wanted]
    ordered = sorted(changed, key=lambda effect: (not effect.is_beyond, not effect.is_headline))
    return next(iter(ordered), None) or next((e for e in answer.effects if e.is_headline), None)


def _decides(part: _Series, effect: Effect, margin: float, size: int, *, is_paired: bool) -> str:
    noun = "pair" if is_paired else "trial of each"
    many = "pairs" if is_paired else "trials of each"
    if size < over_trials.FEWEST_TRIALS:
        lacking = over_trials.FEWEST_TRIALS - size
        return f"at least {words.plural(lacking, f'more {noun}', f'more {many}')}"
    if not isinstance(effect.ratio, Estimate):
        return ""
    error = 1 - effect.ratio.confidence
    needed = pairs_to_decide(effect.ratio.point, part.scatter(is_paired=is_paired), margin, error)
    if needed >= MOST_PAIRS:
        return f"hardly any number of {many}: the effect is as large as the margin; try another --margin"
    more = max(1, needed - size)
    return f"about {words.plural(more, f'more {noun}', f'more {many}')}, if the effect is as it seems now"


def _failures(arms: Arms, trials: Sequence[_Trials]) -> Iterator[str]:
    for each in trials:
        shares = []
        for part in (each.first, each.second):
            bad = sum(float(np.nansum(t.load.not_ok)) for t in part if t.load is not None)
            ended = bad + sum(float(np.nansum(t.load.ok)) for t in part if t.load is not None)
            shares.append((bad, ended))
        (bad, ended), (bad_after, ended_after) = shares
        where = f", {each.match.name}" if each.match.name else ""
        if not bad and not bad_after:
            yield f"none of {numbers.count(ended + ended_after)} requests{where}"
            continue
        yield (
            f"{arms.first} {numbers.count(bad)} of {numbers.count(ended)}, "
            f"{arms.second} {numbers.count(bad_after)} of {numbers.count(ended_after)} requests{where}"
        )


def _load(arms: Arms) -> str:
    loads = dict.fromkeys(load_text.size(match.first.plan.workload) for match in arms.matches)
    return words.listed(loads)


def _lost(arms: Arms) -> Iterator[str]:
    """Yield what is wrong with trials or loads that makes versions less comparable."""
    for match in arms.matches:
        for name, case in ((arms.first, match.first), (arms.second, match.second)):
            lost = [trial for trial in case.trials if not trial.is_usable]
            if lost:
                reason = next((reason for trial in lost for reason in trial.reasons), "unfinished")
                yield f"{words.plural(len(lost), 'trial')} of {name} not used: {reason}"
        loads = [load_text.size(case.plan.workload) for case in (match.first, match.second)]
        if loads[0] != loads[1]:
            yield f"the load differs: {loads[0]} on {arms.first}, {loads[1]} on {arms.second}"


def _method(arms: Arms, rules: Rules, size: int, tests: int) -> str:
    unit = (
        words.plural(size, "pair") if arms.is_paired else f"{words.plural(size, 'trial')} of each, not paired"
    )
    over = f", {words.plural(tests, 'metric')} by Holm" if tests > 1 else ""
    looked = f", looks after {words.listed(map(str, rules.looks))} pairs" if len(rules.looks) > 1 else ""
    return f"{unit}; {rules.error:.0%} error over everything{over}{looked}".replace("%", " %")
