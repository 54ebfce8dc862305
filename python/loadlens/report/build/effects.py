"""Effects of a study's factors: what one level changes against the first, all other factors equal.

The level of load is no such factor: its effect is the load curve. A factor that changes the requests
themselves compares two loads, not two services, so its effects come last.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from loadlens.measure.case import CaseMeasures
from loadlens.measure.curves import load_factor
from loadlens.model.finding import Estimate, Figure, NotMeasured, Undecided
from loadlens.model.report import Chart, Column, EffectSection, Table
from loadlens.present import numbers, words
from loadlens.report.build.published import multiple

SAME_WITHIN = 0.10  # of the ratio: an interval that lies within it is called the same
METHOD = "ratio of two cases, relative errors added in squares"
MOST_LINES = 6


@dataclass(frozen=True, slots=True)
class Effect:
    """Two cases that differ in the level of one factor."""

    factor: str
    before: CaseMeasures  # at the first level, or without a factor that only held-out cases have
    after: CaseMeasures
    load: tuple[str, str] | None  # factor and level of the load
    others: tuple[tuple[str, str], ...]  # levels of the other factors, without the load's

    @property
    def level(self) -> str:
        """The level that is compared with the first."""
        return _named(self.factor, self.after.levels[self.factor])

    @property
    def reference(self) -> str:
        """The first level."""
        level = self.before.levels.get(self.factor)
        return "the unchanged service" if level is None else _named(self.factor, level)

    @property
    def where(self) -> str:
        """Levels that both cases share."""
        return ", ".join(_named(*level) for level in (*self.others, *([self.load] if self.load else [])))

    @property
    def throughput(self) -> Figure:
        """Throughput as a multiple of that at the first level."""
        return _ratio("throughput", self.before.throughput, self.after.throughput)

    @property
    def mean(self) -> Figure:
        """Mean response time as a multiple of that at the first level."""
        return _ratio("response_time.mean", self.before.mean(), self.after.mean())


@dataclass(frozen=True, slots=True)
class Change:
    """A level of a factor against the first one, in all conditions of one experiment, by rising load."""

    experiment: str
    effects: tuple[Effect, ...]

    @property
    def main(self) -> Effect:
        """The effect at the highest load that decides it, else at the highest that was measured."""
        measured = [(effect, effect.throughput) for effect in self.effects]
        ratios = [(effect, ratio) for effect, ratio in measured if isinstance(ratio, Estimate)]
        decided = [effect for effect, ratio in ratios if _direction(ratio) != "undecided"]
        return (decided or [effect for effect, _ in ratios] or self.effects)[-1]

    @property
    def changes_requests(self) -> bool:
        """True if the level sends other requests."""
        return _requests(self.main.before) != _requests(self.main.after)

    @property
    def varies_load(self) -> bool:
        """True if the change was seen at several levels of load."""
        return len({effect.load for effect in self.effects}) > 1

    def is_asked(self, question: str) -> bool:
        """Return true if the question names the factor, or both of the levels."""
        words_asked = _stems(question)
        levels = (self.main.before.levels.get(self.main.factor, ""), self.main.after.levels[self.main.factor])
        return _stems(self.main.factor) <= words_asked or all(
            _stems(level) and _stems(level) <= words_asked for level in levels
        )


@dataclass(frozen=True, slots=True)
class Effects:
    """The section and its chart."""

    section: EffectSection
    chart: Chart | None
    answers: tuple[str, ...]  # the lines about a service that changes, not about other requests
    lead: str  # the experiment of the first line
    is_answer: bool  # of the study's question; else the limit comes first


def section(cases: Sequence[CaseMeasures], cores: int, question: str) -> Effects | None:
    """Return the effect of each factor, in sentences, in a picture and in a table; none without a factor."""
    judged = [case for case in cases if case.reference is not None and case.is_judged(cores)]
    changes = [
        change
        for experiment in dict.fromkeys(case.experiment for case in judged)
        for change in _changes(experiment, [case for case in judged if case.experiment == experiment])
    ]
    if not changes:
        return None
    changes.sort(
        key=lambda change: (change.changes_requests, not change.is_asked(question), not change.varies_load)
    )
    named = len({change.experiment for change in changes}) > 1
    lines = [_sentence(change, named=named) for change in changes]
    if len(lines) > MOST_LINES:
        lines[MOST_LINES:] = [f"{words.plural(len(lines) - MOST_LINES, 'more effect')} in the table"]
    effects = [(change.experiment, effect) for change in changes for effect in change.effects]
    alike = [change for change in changes if not change.changes_requests]
    drawn = [(change.experiment, effect) for change in alike or changes for effect in change.effects]
    chart = _chart(drawn, named=named)
    anchor = None if chart is None else chart.anchor
    made = EffectSection(tuple(lines), _table(effects, named=named), anchor)
    is_answer = bool(alike) and changes[0].is_asked(question)
    return Effects(made, chart, tuple(lines[: len(alike)]), changes[0].experiment, is_answer)


def _requests(case: CaseMeasures) -> tuple[str, ...]:
    return () if case.reference is None else tuple(step.request for step in case.reference.plan.steps)


def _stems(text: str) -> set[str]:
    """Return the words of a text in lower case, without the s of a plural."""
    return {word.removesuffix("s") for word in re.findall(r"[^\W_]+", text.lower())}


def _changes(experiment: str, cases: Sequence[CaseMeasures]) -> Iterator[Change]:
    """Yield the change by each level of each factor but the first level."""
    load = load_factor(cases)
    for factor in dict.fromkeys(name for case in cases for name in case.levels if name != load):
        levels = list(dict.fromkeys(case.levels.get(factor) for case in cases))
        for level in levels[1:]:
            effects = tuple(
                effect
                for case in cases
                if case.levels.get(factor) == level
                and (effect := _effect(case, factor, levels[0], cases, load)) is not None
            )
            if effects:
                yield Change(experiment, effects)


def _effect(
    after: CaseMeasures, factor: str, first: str | None, cases: Sequence[CaseMeasures], load: str | None
) -> Effect | None:
    wanted = {name: level for name, level in after.levels.items() if name != factor}
    if first is not None:
        wanted[factor] = first
    before = next((case for case in cases if case.levels == wanted), None)
    if before is None:
        return None
    others = tuple((name, level) for name, level in after.levels.items() if name not in (factor, load))
    at = None if load is None or load not in after.levels else (load, after.levels[load])
    return Effect(factor, before, after, at, others)


def _ratio(metric: str, before: Figure, after: Figure) -> Figure:
    for figure in (after, before):
        if isinstance(figure, Undecided):
            return Undecided(metric, "ratio", figure.reason)
        if isinstance(figure, NotMeasured):
            return NotMeasured(metric, figure.reason)
    assert isinstance(before, Estimate)
    assert isinstance(after, Estimate)
    if before.point <= 0 or after.point <= 0:
        return Undecided(metric, "ratio", "nothing was answered at one of the two levels")
    point, low, high = multiple(after, before)
    trials, samples = min(before.trials, after.trials), min(before.samples, after.samples)
    return Estimate(metric, "ratio", point, low, high, trials, samples, METHOD)


def _named(factor: str, level: str) -> str:
    return f"{factor}={level}"


# --- words --------------------------------------------------------------------------------------------------


def _sentence(change: Change, *, named: bool) -> str:
    """Say what the level changes at the highest load that decides it, and where the change is another one."""
    main = change.main
    parts = [_throughput_words(main), _mean_words(main), _failure_words(main)]
    text = "; ".join(parts)
    of = f"experiment {change.experiment}" if named else ""
    where = ", ".join(part for part in (main.where, of) if part)
    text += f" ({where})" if where else ""
    other = next(
        (e for e in change.effects if e is not main and _differ(e.throughput, main.throughput)), None
    )
    return text if other is None else f"{text}; at {other.where} it is {_times(other.throughput)}"


def _times(ratio: Figure) -> str:
    """Return `2.6 times (2.1–3.2)`."""
    shown = numbers.show(ratio)
    return f"{shown.value} times" + (f" ({shown.interval})" if shown.interval else "")


def _throughput_words(effect: Effect) -> str:
    ratio = effect.throughput
    if not isinstance(ratio, Estimate):
        return f"{effect.level} against {effect.reference}: throughput {_lack(ratio)}"
    match _direction(ratio):
        case "same":
            return f"{effect.level} serves as much as {effect.reference}: {_times(ratio)}"
        case "undecided":
            return f"Undecided whether {effect.level} serves more than {effect.reference}: {_times(ratio)}"
        case _:
            return f"{effect.level} serves {_times(ratio)} what {effect.reference} does"


def _mean_words(effect: Effect) -> str:
    ratio, before, after = effect.mean, effect.before.mean(), effect.after.mean()
    if not isinstance(ratio, Estimate):
        return f"mean response time {_lack(ratio)}"
    change = f"from {numbers.short(before)} to {numbers.short(after)}"
    match _direction(ratio):
        case "same":
            return f"the mean stays at {numbers.short(after)}"
        case "undecided":
            return f"undecided whether the mean changes: {change}"
        case "less":
            return f"the mean falls {change}"
        case _:
            return f"the mean rises {change}"


def _failure_words(effect: Effect) -> str:
    before, after = effect.before.failed_share, effect.after.failed_share
    if not (isinstance(before, Estimate) and isinstance(after, Estimate)):
        return f"failures {_lack(after if isinstance(before, Estimate) else before)}"
    if before.point == after.point == 0:
        return "nothing fails"
    change = f"from {numbers.shown(before)} to {numbers.shown(after)}"
    if not _apart(before, after):
        return f"undecided whether failures change: {change}"
    return f"failures {'rise' if after.point > before.point else 'fall'} {change}"


def _lack(figure: Figure) -> str:
    return "undecided" if isinstance(figure, Undecided) else "not measured"


def _direction(ratio: Estimate) -> str:
    low, high = ratio.low, ratio.high
    if low is not None and high is not None and low >= 1 / (1 + SAME_WITHIN) and high <= 1 + SAME_WITHIN:
        return "same"  # a difference this small may be real and still is none that matters
    if low is not None and low > 1:
        return "more"
    if high is not None and high < 1:
        return "less"
    return "undecided"


def _differ(first: Figure, second: Figure) -> bool:
    return isinstance(first, Estimate) and isinstance(second, Estimate) and _apart(first, second)


def _apart(first: Estimate, second: Estimate) -> bool:
    """True if the intervals have no value in common."""
    low, high = sorted((first, second), key=lambda figure: figure.point)
    return low.high is not None and high.low is not None and low.high < high.low


# --- picture and table --------------------------------------------------------------------------------------


def _row_name(experiment: str, effect: Effect, *, named: bool) -> str:
    return " ".join(
        part for part in (experiment if named else "", f"{effect.level} : {effect.reference}") if part
    )


def _chart(effects: Sequence[tuple[str, Effect]], *, named: bool) -> Chart | None:
    """Draw throughput as a multiple of that at the first level."""
    ratios = [
        (
            ratio,
            ", ".join(part for part in (_row_name(experiment, effect, named=named), effect.where) if part),
        )
        for experiment, effect in effects
        if isinstance(ratio := effect.throughput, Estimate)
    ]
    if not ratios:
        return None
    decided = [(ratio, name) for ratio, name in ratios if _direction(ratio) in ("more", "less")]
    headline = "No factor changes the throughput beyond chance"
    if decided:
        ratio, name = max(decided, key=lambda pair: abs(math.log(pair[0].point)))
        headline = f"Largest effect on throughput: {numbers.short(ratio)} times, {name}"
    trials = min(ratio.trials for ratio, _ in ratios)
    rows = tuple(
        {"case": name, "value": ratio.point, "low": ratio.low, "high": ratio.high, "published": None}
        for ratio, name in ratios
    )
    intervals = (
        "1 trial, 95 % intervals within it" if trials == 1 else f"{trials} trials a case, 95 % intervals"
    )
    return Chart(
        kind="comparison",
        anchor="chart-effects",
        headline=headline,
        datasets={"rows": rows},
        options={
            "trials": trials,
            "unit": "ratio",
            "x_label": "throughput, multiple of that at the first level",
        },
        caption=f"{intervals} · 1: no effect",
    )


def _table(effects: Sequence[tuple[str, Effect]], *, named: bool) -> Table:
    columns = (
        Column("change", align="left"),
        Column("where", align="left"),
        Column("throughput, times", "ratio"),
        Column("mean response time, times", "ratio"),
        Column("mean before", "s"),
        Column("mean after", "s"),
        Column("failed before", "share"),
        Column("failed after", "share"),
    )
    rows = tuple(
        (
            _row_name(experiment, effect, named=named),
            effect.where or "everywhere",
            effect.throughput,
            effect.mean,
            effect.before.mean(),
            effect.after.mean(),
            effect.before.failed_share,
            effect.after.failed_share,
        )
        for experiment, effect in effects
    )
    return Table(columns, rows, "the second level is the first of its factor; all other factors are equal")
