"""Effects of a study's factors: what one level changes against the first, all other factors equal.

The level of load is no such factor: its effect is the load curve.
"""

from __future__ import annotations

import math
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
    before: CaseMeasures  # at the first level
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
        return _named(self.factor, self.before.levels[self.factor])

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
class Effects:
    """The section, and its chart."""

    section: EffectSection
    chart: Chart | None


def section(cases: Sequence[CaseMeasures], cores: int) -> Effects | None:
    """Return the effect of each factor, in sentences, in a picture and in a table; none without a factor."""
    judged = [case for case in cases if case.reference is not None and case.is_judged(cores)]
    experiments = dict.fromkeys(case.experiment for case in judged)
    named = len(experiments) > 1
    lines: list[str] = []
    effects: list[tuple[str, Effect]] = []
    for experiment in experiments:
        members = [case for case in judged if case.experiment == experiment]
        for group in _by_change(members):
            effects += [(experiment, effect) for effect in group]
            lines.append(f"{experiment}: {_sentence(group)}" if named else _sentence(group))
    if not effects:
        return None
    if len(lines) > MOST_LINES:
        lines[MOST_LINES:] = [f"{words.plural(len(lines) - MOST_LINES, 'more effect')} in the table"]
    chart = _chart(effects, named=named)
    anchor = None if chart is None else chart.anchor
    return Effects(EffectSection(tuple(lines), _table(effects, named=named), anchor), chart)


def _by_change(cases: Sequence[CaseMeasures]) -> Iterator[list[Effect]]:
    """Yield, for each level of each factor but the first, the effects in all conditions, by rising load."""
    load = load_factor(cases)
    for factor in dict.fromkeys(name for case in cases for name in case.levels if name != load):
        levels = list(dict.fromkeys(case.levels[factor] for case in cases if factor in case.levels))
        for level in levels[1:]:
            effects = [
                effect
                for case in cases
                if case.levels.get(factor) == level
                and (effect := _effect(case, factor, levels[0], cases, load)) is not None
            ]
            if effects:
                yield effects


def _effect(
    after: CaseMeasures, factor: str, first: str, cases: Sequence[CaseMeasures], load: str | None
) -> Effect | None:
    wanted = {**after.levels, factor: first}
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


def _sentence(effects: Sequence[Effect]) -> str:
    """Say what the level changes at the highest load that decides it, and where the change is another one."""
    measured = [effect for effect in effects if isinstance(effect.throughput, Estimate)]
    main = (measured or effects)[-1]
    parts = [_throughput_words(main), _mean_words(main), _failure_words(main)]
    text = f"{main.level} {'; '.join(part for part in parts if part)}"
    if main.where:
        text += f" ({main.where})"
    other = next((effect for effect in measured[:-1] if _differ(effect.throughput, main.throughput)), None)
    if other is not None:
        text += f"; the effect depends on the rest: {numbers.shown(other.throughput)} times at {other.where}"
    return text


def _throughput_words(effect: Effect) -> str:
    ratio = effect.throughput
    if not isinstance(ratio, Estimate):
        return f"against {effect.reference}: throughput {_lack(ratio)}"
    match _direction(ratio):
        case "same":
            return f"serves as much as {effect.reference}, {numbers.shown(ratio)} times"
        case "undecided":
            return f"serves {numbers.shown(ratio)} times what {effect.reference} does: undecided"
        case _:
            return f"serves {numbers.shown(ratio)} times what {effect.reference} does"


def _mean_words(effect: Effect) -> str:
    ratio, before, after = effect.mean, effect.before.mean(), effect.after.mean()
    if not isinstance(ratio, Estimate):
        return f"mean response time {_lack(ratio)}"
    change = f"from {numbers.short(before)} to {numbers.short(after)}"
    match _direction(ratio):
        case "same":
            return f"the mean response time stays at {numbers.short(after)}"
        case "undecided":
            return f"the mean response time goes {change}, which may be chance"
        case "less":
            return f"the mean response time falls {change}"
        case _:
            return f"the mean response time rises {change}"


def _failure_words(effect: Effect) -> str:
    before, after = effect.before.failed_share, effect.after.failed_share
    if not (isinstance(before, Estimate) and isinstance(after, Estimate)) or not _apart(before, after):
        return ""
    verb = "rise" if after.point > before.point else "fall"
    return f"failures {verb} from {numbers.short(before)} to {numbers.short(after)}"


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
