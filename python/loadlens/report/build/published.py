"""Published figures next to ours: rows, ratios to a reference case, and claims about shape."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from loadlens.measure.case import CaseMeasures
from loadlens.measure.metrics import figure_of, has_step
from loadlens.model.finding import Estimate, Figure, NotMeasured, Undecided
from loadlens.model.report import ClaimRow, PublishedRow, PublishedSection
from loadlens.model.study import Claim, QuotedFigure
from loadlens.present import numbers
from loadlens.present.numbers import percent
from loadlens.report.build.brief import Brief

FEWEST_TO_CONTRADICT = 3  # trials: fewer say nothing about the variation between runs
ZERO = "one of the two is 0"  # nothing is a multiple of it
FEW = "fewer than two levels"
AGREES_WITHIN = 0.30  # of a ratio; another machine, another version of everything
TO_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9, "min": 60.0}
TO_BYTES = {"bytes": 1.0, "KiB": 1024.0, "MiB": 1024.0**2}
TO_BASE = {  # unit -> base unit, and how many of it
    **{unit: ("s", factor) for unit, factor in TO_SECONDS.items()},
    **{unit: ("bytes", factor) for unit, factor in TO_BYTES.items()},
    **{f"{unit}/s": ("bytes/s", factor) for unit, factor in TO_BYTES.items()},
    "%": ("share", 0.01),
}


@dataclass(frozen=True, slots=True)
class Pair:
    """A published figure and the case that it belongs to."""

    row: QuotedFigure
    case: CaseMeasures | None
    published: float
    unit: str
    measured: Figure
    judged: bool


def section(cases: Sequence[CaseMeasures], brief: Brief, cores: int) -> PublishedSection | None:
    """Return the whole section; none when nothing was published and nothing is claimed."""
    if not brief.quoted and not brief.claims:
        return None
    pairs = [_pair(row, cases, cores) for row in brief.quoted]
    shown = _rows(pairs)
    claim_rows = tuple(_claim(claim, cases, cores) for claim in brief.claims)
    return PublishedSection(_agreement(pairs, shown, claim_rows), claim_rows, shown)


def _pair(row: QuotedFigure, cases: Sequence[CaseMeasures], cores: int) -> Pair:
    case = _case_of(row, cases)
    if case is None:
        measured: Figure = NotMeasured(row.metric, "not among the cases of this run")
    else:
        measured = figure_of(case, row.measured_metric, row.step or None)
    value, unit = in_base(row)
    return Pair(row, case, value, unit, measured, case is not None and case.is_judged(cores))


def in_base(row: QuotedFigure) -> tuple[float, str]:
    """Return a published figure in its base unit."""
    unit, factor = TO_BASE.get(row.unit, (row.unit, 1.0))
    return row.value * factor, unit


def _case_of(row: QuotedFigure, cases: Sequence[CaseMeasures]) -> CaseMeasures | None:
    for case in cases:
        if case.is_held_out or row.experiment not in ("", case.experiment):
            continue
        if row.step and not has_step(case, row.step):
            continue
        if all(_same_level(case, factor, level) for factor, level in row.levels.items()):
            return case
    return None


def _same_level(case: CaseMeasures, factor: str, level: object) -> bool:
    own = case.levels.get(factor)
    if own is None:
        own = str(case.plan.params.get(factor))
    return own == str(level)


# --- rows -------------------------------------------------------------------------------------------------


def _rows(pairs: Sequence[Pair]) -> tuple[PublishedRow, ...]:
    references = _references(pairs)
    rows = []
    for pair in pairs:
        reference = references.get(_group(pair))
        shape, ratio, note = _shape(pair, reference)
        rows.append(
            PublishedRow(
                case=_case_words(pair),
                step=pair.row.step,
                metric=_metric_words(pair.row),
                published=pair.published,
                unit=pair.unit,
                measured=pair.measured,
                ratio=ratio,
                shape=shape,
                note="; ".join(part for part in (note, pair.row.note) if part),
            )
        )
    return tuple(rows)


def _group(pair: Pair) -> tuple[str, str, str, str]:
    return (pair.row.experiment, pair.row.step, pair.row.metric, pair.row.side)


def _references(pairs: Sequence[Pair]) -> dict[tuple[str, str, str, str], Pair]:
    """The first figure of each comparable group that was measured and judged; the others are multiples."""
    references: dict[tuple[str, str, str, str], Pair] = {}
    for pair in pairs:
        is_known = isinstance(pair.measured, Estimate) and pair.measured.point > 0
        if pair.judged and is_known and pair.published > 0:
            references.setdefault(_group(pair), pair)
    return references


def _shape(pair: Pair, reference: Pair | None) -> tuple[str, float | None, str]:
    """The verdict word, our ratio over the published one, and a note."""
    if pair.case is None or isinstance(pair.measured, NotMeasured):
        return "not measured", None, pair.measured.reason if isinstance(pair.measured, NotMeasured) else ""
    if isinstance(pair.measured, Undecided):
        return "not measured", None, pair.measured.reason
    if not pair.judged:
        return "not judged", None, f"needs {pair.case.plan.needs_cores} cores"
    if reference is None or reference is pair:
        return "reference", None, ""
    for figure in (pair.measured, reference.measured):
        if isinstance(figure, Estimate) and numbers.is_lower_bound(figure):
            return "not measured", None, "only a lower bound is known"
    ours, theirs = multiple(pair.measured, reference.measured), pair.published / reference.published
    ratio = ours[0] / theirs
    low = ours[1] / theirs if ours[1] is not None else None
    high = ours[2] / theirs if ours[2] is not None else None
    bottom, top = 1 / (1 + AGREES_WITHIN), 1 + AGREES_WITHIN
    note = f"{_times(ours[0])} the reference, published {_times(theirs)}"
    if is_too_wide(low, high, bottom, top):
        return "undecided", ratio, f"{note}; our interval is wider than the tolerance"
    if low is None or high is None:  # an end is open: only the point can speak for it
        return ("agrees" if bottom <= ratio <= top else "undecided"), ratio, note
    return ("agrees" if bottom <= high and low <= top else "differs"), ratio, note


def _times(ratio: float) -> str:
    return f"{numbers.value(ratio, numbers.scale('ratio'))} times"


def is_too_wide(low: float | None, high: float | None, bottom: float, top: float) -> bool:
    """Return true if an interval is over twice as wide as a tolerance, in logs."""
    if low is None or high is None or low <= 0:
        return False
    return high / low > (top / bottom) ** 2


def multiple(figure: Figure, reference: Figure) -> tuple[float, float | None, float | None]:
    """A figure as a multiple of a reference, errors of both added in squares on a log scale."""
    assert isinstance(figure, Estimate)
    assert isinstance(reference, Estimate)
    ratio = figure.point / reference.point
    low = high = None
    if figure.low and reference.high:
        low = ratio / (1 + math.hypot(figure.point / figure.low - 1, reference.high / reference.point - 1))
    if figure.high and reference.low:
        high = ratio * (1 + math.hypot(figure.high / figure.point - 1, reference.point / reference.low - 1))
    return ratio, low, high


def _case_words(pair: Pair) -> str:
    return " ".join(part for part in (pair.row.experiment, _levels(tuple(pair.row.levels.items()))) if part)


def _metric_words(row: QuotedFigure) -> str:
    return f"{row.metric} ({row.side})" if row.side else row.metric


def _agreement(
    pairs: Sequence[Pair], rows: Sequence[PublishedRow], claims: Sequence[ClaimRow]
) -> tuple[str, ...]:
    lines = []
    judged = [row for row in rows if row.shape in ("agrees", "differs")]
    if judged:
        close = sum(row.shape == "agrees" for row in judged)
        lines.append(f"{close} of {len(judged)} ratios agree within {percent(AGREES_WITHIN)}")
    tau = _order_agreement(pairs)
    if tau is not None:
        lines.append(tau)
    decided = [claim for claim in claims if claim.holds is not None]
    if decided:
        lines.append(f"{sum(claim.holds is True for claim in decided)} of {len(decided)} claims hold")
    if pairs:
        lines.append("absolute values: another machine, not compared")
    return tuple(lines)


def _order_agreement(pairs: Sequence[Pair]) -> str | None:
    """Kendall's rank correlation of published and measured figures, the largest comparable group."""
    groups: dict[tuple[str, str, str, str], list[tuple[float, float]]] = {}
    for pair in pairs:
        if pair.judged and isinstance(pair.measured, Estimate):
            groups.setdefault(_group(pair), []).append((pair.published, pair.measured.point))
    best = max(groups.values(), key=len, default=[])
    if len(best) < 3:
        return None
    from scipy.stats import kendalltau  # costs a second to import: only studies with published figures pay

    tau = float(kendalltau(*zip(*best, strict=True)).statistic)
    return f"order of {len(best)} cases: Kendall τ {tau:.2f}"


# --- claims -----------------------------------------------------------------------------------------------


def _claim(claim: Claim, cases: Sequence[CaseMeasures], cores: int) -> ClaimRow:
    judged = [case for case in cases if case.is_judged(cores)]
    match claim.kind:
        case "ratio":
            row = _ratio(claim, cases, cores)
        case "rises":
            row = _rises(claim, judged)
        case "order":
            row = _order(claim, judged)
        case "same":
            row = _same(claim, judged)
    if row.holds is False and isinstance(row.ours, Estimate) and row.ours.trials < FEWEST_TO_CONTRADICT:
        note = "; ".join(part for part in (row.note, "one trial a case cannot contradict it") if part)
        return replace(row, holds=None, note=note)
    return row


def _cases_where(claim: Claim, cases: Sequence[CaseMeasures], *more: tuple[str, str]) -> list[CaseMeasures]:
    wanted = {**dict(claim.where), **dict(more)}
    return [
        case
        for case in cases
        if case.experiment == claim.experiment
        and not case.is_held_out
        and all(_same_level(case, factor, level) for factor, level in wanted.items())
    ]


def _figure(claim: Claim, case: CaseMeasures) -> Figure:
    return figure_of(case, claim.metric, claim.step)


def _multiple(figure: Estimate, reference: Estimate, method: str) -> Estimate:
    """Return a figure as a multiple of another."""
    point, low, high = multiple(figure, reference)
    return Estimate("ratio", "ratio", point, low, high, figure.trials, figure.samples, method)


def _worded(claim: Claim, statement: str) -> str:
    """Return a claim in words, with its cases where it is not about all of them."""
    step = f" of {claim.step}" if claim.step else ""
    metric = claim.metric.replace("_", " ").replace(".", " ")
    where = f" at {_levels(claim.where)}" if claim.where else ""
    return f"{metric}{step} in {claim.experiment}{statement}{where}"


def _levels(levels: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{factor}={level}" for factor, level in levels)


def _ratio(claim: Claim, cases: Sequence[CaseMeasures], cores: int) -> ClaimRow:
    published, tolerance = claim.published, claim.within
    row = ClaimRow(
        claim=_worded(claim, f": {_levels(claim.of)} over {_levels(claim.to)}"),
        published="" if published is None else f"{published:g}",
        ours=NotMeasured(claim.metric, "the two cases are not in this run"),
        tolerance="" if tolerance is None else f"within {percent(tolerance)}",
        holds=None,
    )
    above, below = _cases_where(claim, cases, *claim.of), _cases_where(claim, cases, *claim.to)
    if len(above) != 1 or len(below) != 1:
        return row
    ours, base = _figure(claim, above[0]), _figure(claim, below[0])
    if not isinstance(ours, Estimate):
        return replace(row, ours=ours)
    if not isinstance(base, Estimate):
        return replace(row, ours=base)
    if base.point <= 0:
        return replace(row, ours=NotMeasured(claim.metric, ZERO))
    ratio = _multiple(ours, base, "ratio of two cases")
    if not (above[0].is_judged(cores) and below[0].is_judged(cores)):
        return replace(row, ours=ratio, note="not judged: needs more cores")
    return replace(row, ours=ratio, holds=_holds(ratio, published, tolerance))


def _holds(ratio: Estimate, published: float | None, tolerance: float | None) -> bool | None:
    """Return true inside the tolerance, false if the whole interval is outside, else none."""
    if published is None or tolerance is None:
        return None
    bottom, top = published * (1 - tolerance), published * (1 + tolerance)
    low, high = ratio.low, ratio.high
    if is_too_wide(low, high, bottom, top):
        return None
    if bottom <= ratio.point <= top:
        return True
    if low is None or high is None:
        return None
    return None if low <= top and high >= bottom else False


def _rises(claim: Claim, cases: Sequence[CaseMeasures]) -> ClaimRow:
    over = str(claim.over)
    row = ClaimRow(_worded(claim, f" rises over {over}"), "rises", NotMeasured(claim.metric, FEW), "", None)
    members = sorted(_cases_where(claim, cases), key=lambda case: _number(case.levels.get(over, "")))
    figures = [f for f in (_figure(claim, case) for case in members) if isinstance(f, Estimate)]
    if len(figures) < 2:
        return row
    if figures[0].point <= 0:
        return replace(row, ours=NotMeasured(claim.metric, ZERO))
    ours = _multiple(figures[-1], figures[0], "last over first")
    steps = list(itertools.pairwise(figures))
    falls = [a.low is not None and b.high is not None and b.high < a.low for a, b in steps]
    rises = [a.high is not None and b.low is not None and b.low > a.high for a, b in steps]
    in_order = ours.low is not None and ours.low > 1 and all(b.point > a.point for a, b in steps)
    if any(falls) or (ours.high is not None and ours.high < 1):
        holds: bool | None = False
    else:
        holds = True if all(rises) or in_order else None
    shown = ", ".join(numbers.with_unit(f.point, f.unit) for f in figures)
    return replace(row, ours=ours, holds=holds, note=f"{shown} over {len(figures)} levels")


def _order(claim: Claim, cases: Sequence[CaseMeasures]) -> ClaimRow:
    across = str(claim.across)
    row = ClaimRow(
        _worded(claim, f": order across {across}"),
        " < ".join(claim.expected),
        NotMeasured(claim.metric, FEW),
        "",
        None,
    )
    by_level: dict[str, Estimate] = {}
    for level in claim.expected:
        matching = _cases_where(claim, cases, (across, level))
        figure = _figure(claim, matching[0]) if len(matching) == 1 else None
        if isinstance(figure, Estimate):
            by_level[level] = figure
    if len(by_level) < 2:
        return row
    pairs = list(itertools.pairwise(by_level.values()))
    wrong = any(b.high is not None and a.low is not None and b.high < a.low for a, b in pairs)
    clear = all(a.high is not None and b.low is not None and a.high < b.low for a, b in pairs)
    share, trials = sum(a.point < b.point for a, b in pairs) / len(pairs), pairs[0][0].trials
    ours = Estimate("pairs in order", "ratio", share, None, None, trials, 0, f"{len(pairs)} pairs")
    note = ", ".join(f"{level} {numbers.with_unit(f.point, f.unit)}" for level, f in by_level.items())
    return replace(row, ours=ours, holds=False if wrong else True if clear else None, note=note)


def _same(claim: Claim, cases: Sequence[CaseMeasures]) -> ClaimRow:
    tolerance = float(claim.within or AGREES_WITHIN)
    row = ClaimRow(
        _worded(claim, f" is the same across {claim.across}"),
        "same",
        NotMeasured(claim.metric, FEW),
        f"within {percent(tolerance)}",
        None,
    )
    figures = [f for case in _cases_where(claim, cases) if isinstance(f := _figure(claim, case), Estimate)]
    if len(figures) < 2:
        return row
    largest, smallest = max(figures, key=lambda f: f.point), min(figures, key=lambda f: f.point)
    if smallest.point <= 0:
        return replace(row, ours=NotMeasured(claim.metric, ZERO))
    ours = _multiple(largest, smallest, "largest over smallest")
    differs = ours.low is not None and ours.low > 1 + tolerance
    return replace(row, ours=ours, holds=True if ours.point <= 1 + tolerance else False if differs else None)


def _number(level: str) -> float:
    try:
        return float(level)
    except ValueError:
        return 0.0
