"""Published figures beside ours: rows, ratios to a reference case, and claims about shape."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from scipy import stats as distributions

from loadlens.measure.case import CaseMeasures
from loadlens.measure.metrics import figure_of, has_step
from loadlens.measure.source import Json
from loadlens.model.finding import Estimate, Figure, NotMeasured, Undecided
from loadlens.model.report import ClaimRow, PublishedRow, PublishedSection
from loadlens.present import numbers
from loadlens.present.numbers import percent

RESERVED = ("experiment", "step", "metric", "side", "value", "unit", "note")
FEWEST_TO_CONTRADICT = 3  # trials: fewer say nothing about the variation between runs
ZERO = "one of the two is 0"
AGREES_WITHIN = 0.30  # of a ratio; another machine, another version of everything
TO_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "min": 60.0}
TO_BYTES = {"bytes": 1.0, "KiB": 1024.0, "MiB": 1024.0**2}
TO_BASE = {  # unit -> base unit, and how many of it
    **{unit: ("s", factor) for unit, factor in TO_SECONDS.items()},
    **{unit: ("bytes", factor) for unit, factor in TO_BYTES.items()},
    **{f"{unit}/s": ("bytes/s", factor) for unit, factor in TO_BYTES.items()},
}


@dataclass(frozen=True, slots=True)
class Pair:
    """A published figure and the case that it belongs to."""

    row: Mapping[str, str]
    case: CaseMeasures | None
    published: float
    unit: str
    measured: Figure
    judged: bool


def section(cases: Sequence[CaseMeasures], study: Json, cores: int) -> PublishedSection | None:
    """The whole section; none when nobody published anything and nothing is claimed."""
    published = study.get("published") or {}
    rows = published.get("rows") or []
    claims = study.get("claims") or []
    if not rows and not claims:
        return None
    pairs = [_pair(row, cases, cores) for row in rows]
    shown = _rows(pairs)
    claim_rows = tuple(_claim(claim, cases, cores) for claim in claims)
    return PublishedSection(_agreement(pairs, shown, claim_rows), claim_rows, shown)


def _pair(row: Mapping[str, str], cases: Sequence[CaseMeasures], cores: int) -> Pair:
    case = _case_of(row, cases)
    unit = row.get("unit", "")
    in_base, factor = TO_BASE.get(unit, (unit, 1.0))
    value = float(row["value"]) * factor
    if case is None:
        measured: Figure = NotMeasured(row["metric"], "not among the cases of this run")
    else:
        metric = row["metric"]
        if row.get("side") == "server":
            metric = metric.replace("response_time.", "server_time.")
        measured = figure_of(case, metric, row.get("step") or None)
    return Pair(row, case, value, in_base, measured, case is not None and case.is_judged(cores))


def _case_of(row: Mapping[str, str], cases: Sequence[CaseMeasures]) -> CaseMeasures | None:
    wanted = {k: v for k, v in row.items() if k not in RESERVED and v not in ("", None)}
    for case in cases:
        if case.is_held_out or case.experiment != row.get("experiment", case.experiment):
            continue
        step = row.get("step")
        if step and not has_step(case, step):
            continue
        if all(_same_level(case, factor, level) for factor, level in wanted.items()):
            return case
    return None


def _same_level(case: CaseMeasures, factor: str, level: object) -> bool:
    known = case.levels.get(factor)
    if known is None:
        known = str((case.plan.get("params") or {}).get(factor))
    return known == str(level)


# --- rows -------------------------------------------------------------------------------------------------


def _rows(pairs: Sequence[Pair]) -> tuple[PublishedRow, ...]:
    references = _references(pairs)
    found = []
    for pair in pairs:
        reference = references.get(_group(pair))
        shape, ratio, note = _shape(pair, reference)
        found.append(
            PublishedRow(
                case=_case_words(pair),
                step=pair.row.get("step", ""),
                metric=_metric_words(pair.row),
                published=pair.published,
                unit=pair.unit,
                measured=pair.measured,
                ratio=ratio,
                shape=shape,
                note="; ".join(part for part in (note, pair.row.get("note", "")) if part),
            )
        )
    return tuple(found)


def _group(pair: Pair) -> tuple[str, str, str, str]:
    row = pair.row
    return (row.get("experiment", ""), row.get("step", ""), row["metric"], row.get("side", ""))


def _references(pairs: Sequence[Pair]) -> dict[tuple[str, str, str, str], Pair]:
    """The first figure of each comparable group that was measured and judged; the others are multiples."""
    found: dict[tuple[str, str, str, str], Pair] = {}
    for pair in pairs:
        is_known = isinstance(pair.measured, Estimate) and pair.measured.point > 0
        if pair.judged and is_known and pair.published > 0:
            found.setdefault(_group(pair), pair)
    return found


def _shape(pair: Pair, reference: Pair | None) -> tuple[str, float | None, str]:
    """The verdict word, our ratio over the published one, and a note."""
    if pair.case is None or isinstance(pair.measured, NotMeasured):
        return "not measured", None, pair.measured.reason if isinstance(pair.measured, NotMeasured) else ""
    if isinstance(pair.measured, Undecided):
        return "not measured", None, pair.measured.reason
    if not pair.judged:
        return "not judged", None, f"needs {pair.case.plan.get('needs_cores')} cores"
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
    """Whether an interval is over twice as wide as a tolerance, in logs: then a point inside says nothing."""
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
    levels = {k: v for k, v in pair.row.items() if k not in RESERVED and v not in ("", None)}
    words = ", ".join(f"{factor}={level}" for factor, level in levels.items())
    return " ".join(part for part in (pair.row.get("experiment", ""), words) if part)


def _metric_words(row: Mapping[str, str]) -> str:
    side = row.get("side", "")
    return f"{row['metric']} ({side})" if side else row["metric"]


def _agreement(
    pairs: Sequence[Pair], rows: Sequence[PublishedRow], claims: Sequence[ClaimRow]
) -> tuple[str, ...]:
    found = []
    judged = [row for row in rows if row.shape in ("agrees", "differs")]
    if judged:
        close = sum(row.shape == "agrees" for row in judged)
        found.append(f"{close} of {len(judged)} ratios agree within {percent(AGREES_WITHIN)}")
    tau = _order_agreement(pairs)
    if tau is not None:
        found.append(tau)
    known = [claim for claim in claims if claim.holds is not None]
    if known:
        found.append(f"{sum(claim.holds is True for claim in known)} of {len(known)} claims hold")
    if pairs:
        found.append("absolute values: another machine, not compared")
    return tuple(found)


def _order_agreement(pairs: Sequence[Pair]) -> str | None:
    """Kendall's rank correlation of published and measured figures, the largest comparable group."""
    groups: dict[tuple[str, str, str, str], list[tuple[float, float]]] = {}
    for pair in pairs:
        if pair.judged and isinstance(pair.measured, Estimate):
            groups.setdefault(_group(pair), []).append((pair.published, pair.measured.point))
    best = max(groups.values(), key=len, default=[])
    if len(best) < 3:
        return None
    tau = float(distributions.kendalltau(*zip(*best, strict=True)).statistic)
    return f"order of {len(best)} cases: Kendall τ {tau:.2f}"


# --- claims -----------------------------------------------------------------------------------------------


def _claim(claim: Json, cases: Sequence[CaseMeasures], cores: int) -> ClaimRow:
    judged = [case for case in cases if case.is_judged(cores)]
    match claim["kind"]:
        case "ratio":
            row = _ratio(claim, cases, cores)
        case "rises":
            row = _rises(claim, judged)
        case "order":
            row = _order(claim, judged)
        case _:
            row = _same(claim, judged)
    if row.holds is False and isinstance(row.ours, Estimate) and row.ours.trials < FEWEST_TO_CONTRADICT:
        note = "; ".join(part for part in (row.note, "one trial a case cannot contradict it") if part)
        return replace(row, holds=None, note=note)
    return row


def _cases_where(claim: Json, cases: Sequence[CaseMeasures], more: Mapping[str, str]) -> list[CaseMeasures]:
    wanted = {**(claim.get("where") or {}), **more}
    return [
        case
        for case in cases
        if case.experiment == claim["experiment"]
        and not case.is_held_out
        and all(_same_level(case, factor, level) for factor, level in wanted.items())
    ]


def _words(claim: Json) -> str:
    step = f" of {claim['step']}" if claim.get("step") else ""
    return f"{claim['metric'].replace('_', ' ').replace('.', ' ')}{step} in {claim['experiment']}"


def _levels(levels: Mapping[str, object]) -> str:
    return ", ".join(f"{factor}={level}" for factor, level in levels.items())


def _where(claim: Json) -> str:
    """Of which cases it speaks, where not of all: several claims may differ in that alone."""
    return f" at {_levels(claim['where'])}" if claim.get("where") else ""


def _ratio(claim: Json, cases: Sequence[CaseMeasures], cores: int) -> ClaimRow:
    of, to = claim.get("of") or {}, claim.get("to") or {}
    words = f"{_words(claim)}: {_levels(of)} over {_levels(to)}{_where(claim)}"
    published = claim.get("published")
    tolerance = claim.get("within")
    shown = "" if published is None else f"{published:g}"
    allowed = "" if tolerance is None else f"within {percent(tolerance)}"
    above, below = _cases_where(claim, cases, of), _cases_where(claim, cases, to)
    if len(above) != 1 or len(below) != 1:
        missing = NotMeasured(claim["metric"], "the two cases are not in this run")
        return ClaimRow(words, shown, missing, allowed, None)
    figures = [figure_of(case[0], claim["metric"], claim.get("step")) for case in (above, below)]
    unknown = next((f for f in figures if not isinstance(f, Estimate)), None)
    if unknown is not None:
        return ClaimRow(words, shown, unknown, allowed, None)
    if _is_zero(figures[1]):
        return ClaimRow(words, shown, NotMeasured(claim["metric"], ZERO), allowed, None)
    point, low, high = multiple(figures[0], figures[1])
    first = figures[0]
    assert isinstance(first, Estimate)
    ours = Estimate("ratio", "ratio", point, low, high, first.trials, first.samples, "ratio of two cases")
    judged = above[0].is_judged(cores) and below[0].is_judged(cores)
    holds = _holds(point, low, high, published, tolerance) if judged else None
    return ClaimRow(words, shown, ours, allowed, holds, "" if judged else "not judged: needs more cores")


def _holds(
    point: float, low: float | None, high: float | None, published: float | None, tolerance: float | None
) -> bool | None:
    """Inside the tolerance: holds; the whole interval outside: does not; else undecided."""
    if published is None or tolerance is None:
        return None
    bottom, top = published * (1 - tolerance), published * (1 + tolerance)
    if is_too_wide(low, high, bottom, top):
        return None
    if bottom <= point <= top:
        return True
    if low is None or high is None:
        return None
    return None if low <= top and high >= bottom else False


def _rises(claim: Json, cases: Sequence[CaseMeasures]) -> ClaimRow:
    over = str(claim["over"])
    words = f"{_words(claim)} rises over {over}{_where(claim)}"
    found = sorted(_cases_where(claim, cases, {}), key=lambda case: _number(case.levels.get(over, "")))
    figures = [figure_of(case, claim["metric"], claim.get("step")) for case in found]
    known = [f for f in figures if isinstance(f, Estimate)]
    if len(known) < 2:
        return ClaimRow(words, "rises", NotMeasured(claim["metric"], "fewer than two levels"), "", None)
    if _is_zero(known[0]):
        return ClaimRow(words, "rises", NotMeasured(claim["metric"], ZERO), "", None)
    point, low, high = multiple(known[-1], known[0])
    ours = Estimate(
        "ratio", "ratio", point, low, high, known[-1].trials, known[-1].samples, "last over first"
    )
    steps = list(itertools.pairwise(known))
    falls = [a.low is not None and b.high is not None and b.high < a.low for a, b in steps]
    rises = [a.high is not None and b.low is not None and b.low > a.high for a, b in steps]
    holds = False if any(falls) or (high is not None and high < 1) else (True if all(rises) else None)
    if holds is None and low is not None and low > 1 and all(b.point > a.point for a, b in steps):
        holds = True
    shown = ", ".join(numbers.with_unit(f.point, f.unit) for f in known)
    return ClaimRow(words, "rises", ours, "", holds, f"{shown} over {len(known)} levels")


def _order(claim: Json, cases: Sequence[CaseMeasures]) -> ClaimRow:
    across = str(claim["across"])
    expected = [str(level) for level in claim.get("expected") or ()]
    words = f"{_words(claim)}: order across {across}{_where(claim)}"
    found: dict[str, Estimate] = {}
    for level in expected:
        matching = _cases_where(claim, cases, {across: level})
        figure = figure_of(matching[0], claim["metric"], claim.get("step")) if len(matching) == 1 else None
        if isinstance(figure, Estimate):
            found[level] = figure
    shown = " < ".join(expected)
    if len(found) < 2:
        return ClaimRow(words, shown, NotMeasured(claim["metric"], "fewer than two levels"), "", None)
    kept = [level for level in expected if level in found]
    pairs = [(found[a], found[b]) for a, b in itertools.pairwise(kept)]
    wrong = any(b.high is not None and a.low is not None and b.high < a.low for a, b in pairs)
    clear = all(a.high is not None and b.low is not None and a.high < b.low for a, b in pairs)
    in_order = sum(a.point < b.point for a, b in pairs)
    first = found[kept[0]]
    ours = Estimate(
        "pairs in order", "ratio", in_order / len(pairs), None, None, first.trials, 0, f"{len(pairs)} pairs"
    )
    note = ", ".join(f"{level} {numbers.with_unit(found[level].point, found[level].unit)}" for level in kept)
    return ClaimRow(words, shown, ours, "", False if wrong else (True if clear else None), note)


def _same(claim: Json, cases: Sequence[CaseMeasures]) -> ClaimRow:
    across = str(claim["across"])
    words = f"{_words(claim)} is the same across {across}{_where(claim)}"
    tolerance = float(claim.get("within") or AGREES_WITHIN)
    figures = [figure_of(case, claim["metric"], claim.get("step")) for case in _cases_where(claim, cases, {})]
    known = [f for f in figures if isinstance(f, Estimate)]
    if len(known) < 2:
        missing = NotMeasured(claim["metric"], "fewer than two levels")
        return ClaimRow(words, "same", missing, f"within {percent(tolerance)}", None)
    largest, smallest = max(known, key=lambda f: f.point), min(known, key=lambda f: f.point)
    if _is_zero(smallest):
        missing = NotMeasured(claim["metric"], ZERO)
        return ClaimRow(words, "same", missing, f"within {percent(tolerance)}", None)
    point, low, high = multiple(largest, smallest)
    ours = Estimate(
        "ratio", "ratio", point, low, high, largest.trials, largest.samples, "largest over smallest"
    )
    holds = True if point <= 1 + tolerance else (False if low is not None and low > 1 + tolerance else None)
    return ClaimRow(words, "same", ours, f"within {percent(tolerance)}", holds)


def _is_zero(figure: Figure) -> bool:
    """Nothing is a multiple of it: a load of which every request failed has a throughput of 0."""
    return isinstance(figure, Estimate) and figure.point <= 0


def _number(level: str) -> float:
    try:
        return float(level)
    except ValueError:
        return 0.0
