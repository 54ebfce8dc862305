"""Datasets of charts over cases: load curves, bystanders, demand, published shape. Colours by entity.

Column names are those of `present/charts/columns.py`; times are milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loadlens.diagnose.capacity import CurveCapacity
from loadlens.estimate.interval import Insufficient, Interval
from loadlens.estimate.probes import idle_time
from loadlens.measure.case import CaseMeasures
from loadlens.measure.curves import CurveCases
from loadlens.model.finding import Estimate, Finding
from loadlens.model.report import Chart, PublishedRow, PublishedSection
from loadlens.present import numbers, words
from loadlens.present.charts import columns
from loadlens.report.build import request_time
from loadlens.report.build.published import multiple

MS = 1000.0
MOST_SERIES = 6
FEWEST_LEVELS = 2
MOST_NAMED = 3  # curves in a headline
UNTOUCHED = 1.5  # times the first level: below, a probe is not said to wait for the load
Row = dict[str, object]


def all_charts(
    curves: Sequence[CurveCases],
    capacities: Mapping[str, CurveCapacity],
    published: PublishedSection | None,
    findings: Sequence[Finding],
) -> tuple[Chart, ...]:
    """Return the charts that a reader sees before the details."""
    charts: list[Chart] = []
    experiments = dict.fromkeys(curve.experiment for curve in curves if len(curve.cases) >= FEWEST_LEVELS)
    for experiment in experiments:
        members = [c for c in curves if c.experiment == experiment and len(c.cases) >= FEWEST_LEVELS]
        shown = [c for c in members if not c.is_held_out][:MOST_SERIES]
        if shown:
            drawn = load_curve(experiment, shown, capacities)
            charts += [drawn] if columns.has_rows(drawn) else []
            charts += bystanders(experiment, shown)
    for experiment in dict.fromkeys(curve.experiment for curve in curves if not curve.is_held_out):
        members = [c for c in curves if c.experiment == experiment and not c.is_held_out]
        demand = request_time.chart(experiment, members[:MOST_SERIES], findings)
        charts += [] if demand is None else [demand]
    if published is not None:
        charts += published_charts(published)
    return tuple(charts)


def chosen(charts: Sequence[Chart], kinds: Sequence[str]) -> tuple[Chart, ...]:
    """The charts that a study asks for, in its order; all when it asks for none."""
    return (
        tuple(chart for kind in kinds for chart in charts if chart.kind == kind) if kinds else tuple(charts)
    )


def _entities(names: Sequence[str]) -> dict[str, int]:
    return {name: slot for slot, name in enumerate(names, start=1)}


def _series(curve: CurveCases) -> str:
    """Return the levels that distinguish a curve from the others of its experiment."""
    levels = ", ".join(f"{factor}={level}" for factor, level in curve.levels.items())
    return levels or curve.experiment


def _trials(cases: Sequence[CaseMeasures]) -> int:
    return min((len(case.usable) for case in cases if case.usable), default=1)


# --- C1 ---------------------------------------------------------------------------------------------------


def load_curve(
    experiment: str,
    curves: Sequence[CurveCases],
    capacities: Mapping[str, CurveCapacity],
) -> Chart:
    """Throughput and mean response time over the load, one series a curve, with knee and capacity."""
    steps: list[Row] = []
    trials: list[Row] = []
    knees: list[Row] = []
    bands: list[Row] = []
    for curve in curves:
        own = [row for case in curve.cases for row in _load_step(case, _series(curve))]
        steps += own
        trials += [row for case in curve.cases for row in _load_trials(case, _series(curve))]
        # without response times another program made the load, and nothing of it is drawn
        if curve.label in capacities and own:
            knees += _knee_row(curve, capacities[curve.label])
            bands += _capacity_row(curve, capacities[curve.label])
    reference = curves[0].cases[0].reference
    is_closed = reference is not None and reference.plan.is_closed
    count = _trials([case for c in curves for case in c.cases])
    return Chart(
        kind="load_curve",
        anchor=f"chart-load-{experiment}",
        headline=_load_headline(curves, capacities),
        datasets=_filled({"steps": steps, "trials": trials, "knee": knees, "plateau": bands}, "steps"),
        options={
            "trials": count,
            "time_label": "mean response time",
            "rate_label": "throughput",
            "x_label": "users in the closed loop" if is_closed else "offered requests/s",
        },
        caption=f"{caption(count)}{'; band: capacity with its interval' if bands else ''}",
        entities=_entities([_series(curve) for curve in curves]),
    )


def _load_step(case: CaseMeasures, series: str) -> list[Row]:
    rate, mean = case.throughput, case.mean()
    if case.reference is None or not isinstance(rate, Estimate) or not isinstance(mean, Estimate):
        return []
    return [
        {
            "series": series,
            "users": load_of(case),
            "x": rate.point,
            "x_lo": rate.low,
            "x_hi": rate.high,
            "r": mean.point * MS,
            "r_lo": ms(mean.low),
            "r_hi": ms(mean.high),
        }
    ]


def _load_trials(case: CaseMeasures, series: str) -> list[Row]:
    if len(case.loads) < 2:
        return []
    rows: list[Row] = []
    for load in case.loads[:10]:
        mean = load.all_steps().response_mean
        if isinstance(mean, Interval):
            rate = float(load.ok.sum()) / load.grid.seconds
            rows.append({"series": series, "users": load.plan.load, "x": rate, "r": mean.point * MS})
    return rows


def _knee_row(curve: CurveCases, reached: CurveCapacity) -> list[Row]:
    knee = reached.capacity.saturation.knee
    if knee is None:
        return []
    return [{"series": _series(curve), "users": knee, "label": f"knee {words.users(knee)}"}]


def _capacity_row(curve: CurveCases, reached: CurveCapacity) -> list[Row]:
    """Return the capacity with the band in which it lies, from the knee on."""
    saturation, most = reached.capacity.saturation, reached.most.figure
    if not isinstance(most, Estimate):
        return []
    return [
        {
            "series": _series(curve),
            "users": saturation.plateau_from if saturation.knee is None else saturation.knee,
            "x": most.point,
            "x_lo": most.low,
            "x_hi": most.high,
            "label": f"capacity {reached.most.words}",
        }
    ]


def _load_headline(curves: Sequence[CurveCases], capacities: Mapping[str, CurveCapacity]) -> str:
    """Name the capacity of each curve, and the knee where there is one curve; else what was reached."""
    reached = [capacities[curve.label] for curve in curves if curve.label in capacities]
    if not reached:
        rates = [rate for c in curves for case in c.cases if isinstance(rate := case.throughput, Estimate)]
        best = max(rates, key=lambda rate: rate.point, default=None)
        return f"Throughput reaches {numbers.short(best)}; a capacity is not seen"
    several = len(curves) > 1
    named = [f"{c.most.words} ({_series(c.group)})" if several else c.most.words for c in reached]
    if len(named) > MOST_NAMED:
        named[MOST_NAMED:] = [words.plural(len(named) - MOST_NAMED, "more curve")]
    knee = reached[0].capacity.saturation.knee
    beyond = "" if several or knee is None else f"; beyond {words.users(knee)} further ones wait"
    return f"The capacity is {words.listed(named)}{beyond}"


# --- C7 ---------------------------------------------------------------------------------------------------


def bystanders(experiment: str, curves: Sequence[CurveCases]) -> list[Chart]:
    """One chart a probe: what the load does to a request that has nothing to do with it."""
    names = dict.fromkeys(name for curve in curves for case in curve.cases for name in case.probe_names)
    return [chart for name in names if (chart := _bystander(experiment, name, curves)) is not None]


def _bystander(experiment: str, probe: str, curves: Sequence[CurveCases]) -> Chart | None:
    seen = [
        (curve, case, mean)
        for curve in curves
        for case in curve.cases
        if probe in case.probe_names
        and case.reference is not None
        and isinstance(mean := case.probe_mean(probe), Estimate)
    ]
    if not seen:
        return None
    steps = () if (reference := curves[0].cases[0].reference) is None else reference.plan.steps
    streams = curves[0].cases[0].probe_streams(probe)
    request = streams[0].plan.steps[0].request if streams else probe
    count = _trials([case for c in curves for case in c.cases])
    rows: list[Row] = [
        {
            "level": _series(curve),
            "users": load_of(case),
            "ms": mean.point * MS,
            "lo": ms(mean.low),
            "hi": ms(mean.high),
        }
        for curve, case, mean in seen
    ]
    trials = [row for curve, case, _ in seen for row in _probe_trials(case, probe, _series(curve))]
    best = min((seconds for _, case, _ in seen for seconds in _idle_times(case, probe)), default=None)
    idle: list[Row] = []
    if best is not None:
        idle = [{"ms": best * MS, "label": f"idle service {numbers.with_unit(best, 's')}"}]
    return Chart(
        kind="bystander",
        anchor=f"chart-probe-{experiment}-{probe}",
        headline=_bystander_headline(probe, seen, ", ".join(step.name for step in steps)),
        datasets=_filled({"probe": rows, "trials": trials, "idle": idle}, "probe"),
        options={
            "trials": count,
            "time_label": f"mean response time of the probe {request}",
            "x_label": f"load of {', '.join(step.request for step in steps)}",
        },
        caption=caption(count),
        entities=_entities([_series(curve) for curve in curves]),
    )


def _bystander_headline(
    probe: str, seen: Sequence[tuple[CurveCases, CaseMeasures, Estimate]], steps: str
) -> str:
    curve, case, most = max(seen, key=lambda row: row[2].point)
    of_curve = [row for row in seen if row[0] is curve]
    _, lightest, first = of_curve[0]
    if most.point < UNTOUCHED * first.point:
        return f"{probe} takes at most {numbers.short(most)}, whatever the load of {steps}"
    return (
        f"{probe} takes {numbers.short(first)} at {load_of(lightest):g} and {numbers.short(most)} at "
        f"{load_of(case):g} users of {steps} ({_series(curve)})"
    )


def _probe_trials(case: CaseMeasures, probe: str, level: str) -> list[Row]:
    streams = case.probe_streams(probe)
    if len(streams) < 2 or case.reference is None:
        return []
    rows: list[Row] = []
    for stream in streams[:10]:
        mean = stream.all_steps().response_mean
        if isinstance(mean, Interval):
            rows.append({"level": level, "users": case.reference.plan.load, "ms": mean.point * MS})
    return rows


def _idle_times(case: CaseMeasures, probe: str) -> list[float]:
    times = [idle_time(stream.all_steps().response) for stream in case.probe_streams(probe)]
    return [seconds for seconds in times if not isinstance(seconds, Insufficient)]


# --- C6 ---------------------------------------------------------------------------------------------------


def published_charts(section: PublishedSection) -> list[Chart]:
    """Multiples of the reference case, one chart for each comparable group of figures."""
    groups: dict[tuple[str, str, str], list[PublishedRow]] = {}
    for row in section.rows:
        groups.setdefault((row.case.partition(" ")[0], row.step, row.metric), []).append(row)
    drawn = (_published_chart(*key, rows) for key, rows in groups.items())
    return [chart for chart in drawn if chart is not None]


def _published_chart(experiment: str, step: str, metric: str, rows: Sequence[PublishedRow]) -> Chart | None:
    reference = next((row for row in rows if row.shape == "reference"), None)
    measured = [row for row in rows if isinstance(row.measured, Estimate)]
    if reference is None or len(measured) < 2:
        return None
    judged = [row for row in measured if row.shape in ("agrees", "differs")]
    close = sum(row.shape == "agrees" for row in judged)
    base, _, side = metric.partition(" ")
    what = " ".join(part for part in (words.metric(base), side, "of" if step else "", step) if part)
    verdict = f"{close} of {len(judged)} ratios agree" if judged else "no ratio is judged"
    return Chart(
        kind="published",
        anchor="-".join(part for part in ("chart-published", experiment, step, base) if part),
        headline=f"{verdict}: {what} in {experiment}",
        datasets={"rows": tuple(_multiples(row, reference) for row in measured)},
        options={"x_label": f"{what}, as a multiple of {measured[0].case}"},
        caption="hollow diamond: published; circle: measured",
    )


def _multiples(row: PublishedRow, reference: PublishedRow) -> Row:
    assert isinstance(row.measured, Estimate)  # others are not drawn
    point, low, high = (
        (1.0, 1.0, 1.0) if row.shape == "reference" else multiple(row.measured, reference.measured)
    )
    return {
        "case": row.case,
        "published": row.published / reference.published,
        "point": point,
        "low": low,
        "high": high,
        "shape": row.shape,
    }


# --- shared -----------------------------------------------------------------------------------------------


def _filled(datasets: Mapping[str, list[Row]], first: str) -> dict[str, tuple[Row, ...]]:
    """Datasets that have rows; the first one always."""
    return {name: tuple(rows) for name, rows in datasets.items() if rows or name == first}


def load_of(case: CaseMeasures) -> float:
    """Users, or offered requests per second, of a case that was measured."""
    assert case.reference is not None
    return case.reference.plan.load


def ms(value: float | None) -> float | None:
    """Seconds in milliseconds; none stays none."""
    return None if value is None else value * MS


def caption(trials: int) -> str:
    """Say how many trials a chart shows, and what its intervals are over."""
    if trials == 1:
        return "1 trial, 95 % intervals within it"
    return f"{trials} trials a case, 95 % intervals over trials"
