"""Datasets of charts over cases: load curves, bystanders, demand, published shape. Colours by entity.

Column names are those of `present/charts/columns.py`; times are milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from loadlens.diagnose.capacity import CurveCapacity
from loadlens.estimate.interval import Insufficient, Interval
from loadlens.estimate.probes import idle_time
from loadlens.estimate.saturation import Hinge, fit_hinge
from loadlens.measure.case import CaseMeasures
from loadlens.measure.curves import CurveCases
from loadlens.measure.metrics import inside
from loadlens.measure.trial import TrialMeasures
from loadlens.model.finding import Estimate, Figure
from loadlens.model.report import Chart, PublishedSection
from loadlens.present import numbers, words
from loadlens.present.numbers import percent
from loadlens.report.build.published import multiple

MS = 1000.0
MOST_SERIES = 6
FEWEST_LEVELS = 2
FIT_POINTS = 60
UNTOUCHED = 1.5  # times the first level: below, a probe is not said to wait for the load
Row = dict[str, object]


def all_charts(
    curves: Sequence[CurveCases],
    capacities: Mapping[str, CurveCapacity],
    published: PublishedSection | None,
) -> tuple[Chart, ...]:
    """Return the charts that a reader sees before the details."""
    charts: list[Chart] = []
    experiments = dict.fromkeys(curve.experiment for curve in curves if len(curve.cases) >= FEWEST_LEVELS)
    for experiment in experiments:
        members = [c for c in curves if c.experiment == experiment and len(c.cases) >= FEWEST_LEVELS]
        shown = [c for c in members if not c.is_held_out][:MOST_SERIES]
        if shown:
            drawn = load_curve(experiment, shown, capacities)
            charts += [drawn] if drawn.datasets.get("steps") else []
            charts += bystanders(experiment, shown)
    demand = demand_chart([c for c in curves if not c.is_held_out])
    if demand is not None:
        charts.append(demand)
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
    """Throughput and mean response time over the load, one series a curve."""
    datasets: dict[str, list[Row]] = {name: [] for name in ("steps", "trials", "fit", "knee", "plateau")}
    for curve in curves:
        name = _series(curve)
        for case in curve.cases:
            datasets["steps"] += _load_step(case, name)
            datasets["trials"] += _load_trials(case, name)
        _fit(curve, capacities, datasets, name)
    reference = curves[0].cases[0].reference
    is_closed = reference is not None and reference.plan.is_closed
    best = max(
        (case.throughput.point for c in curves for case in c.cases if isinstance(case.throughput, Estimate)),
        default=0.0,
    )
    trials = _trials([case for c in curves for case in c.cases])
    return Chart(
        kind="load_curve",
        anchor=f"chart-load-{experiment}",
        headline=_load_headline(curves, capacities, best),
        datasets=_filled(datasets, "steps"),
        options={
            "trials": trials,
            "time_label": "mean response time",
            "rate_label": "throughput",
            "x_label": "users in the closed loop" if is_closed else "offered requests/s",
        },
        caption=_caption(trials),
        entities=_entities([_series(curve) for curve in curves]),
    )


def _load_step(case: CaseMeasures, series: str) -> list[Row]:
    rate, mean = case.throughput, case.mean()
    load = case.reference
    if load is None or not isinstance(rate, Estimate) or not isinstance(mean, Estimate):
        return []
    return [
        {
            "series": series,
            "users": load.plan.load,
            "x": rate.point,
            "x_lo": rate.low,
            "x_hi": rate.high,
            "r": mean.point * MS,
            "r_lo": _ms(mean.low),
            "r_hi": _ms(mean.high),
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


def _fit(
    curve: CurveCases,
    capacities: Mapping[str, CurveCapacity],
    datasets: dict[str, list[Row]],
    name: str,
) -> None:
    """The hinge, the knee and the plateau of a saturated curve."""
    reached = capacities.get(curve.label)
    if reached is None or reached.capacity.saturation.verdict == "underdriven":
        return
    if not any(row["series"] == name for row in datasets["steps"]):
        return  # no response times: another program made the load, and nothing of it is drawn
    saturation = reached.capacity.saturation
    top = curve.cases[-1].reference
    assert top is not None
    if saturation.knee is not None:
        datasets["knee"].append(
            {"series": name, "users": saturation.knee, "label": f"knee {words.users(saturation.knee)}"}
        )
    rate = f"{numbers.with_unit(saturation.capacity, '1/s')}{' or more' if reached.bounded_by else ''}"
    datasets["plateau"].append(
        {"series": name, "users": top.plan.load, "x": saturation.capacity, "label": f"plateau {rate}"}
    )
    points = [(row["users"], row["x"]) for row in datasets["steps"] if row["series"] == name]
    loads = np.array([float(str(u)) for u, _ in points])
    hinge = fit_hinge(loads, np.array([float(str(x)) for _, x in points]))
    if isinstance(hinge, Hinge):
        grid = np.geomspace(loads.min(), loads.max(), FIT_POINTS)
        for n, x in zip(grid, hinge.throughput(grid), strict=True):
            datasets["fit"].append(
                {
                    "series": name,
                    "users": float(n),
                    "x": float(x),
                    "r": max(0.0, float(n / x) - top.plan.think_s) * MS or None,
                }
            )
    datasets["fit"] = [row for row in datasets["fit"] if row["r"] is not None]


def _load_headline(curves: Sequence[CurveCases], capacities: Mapping[str, CurveCapacity], best: float) -> str:
    parts = []
    for curve in curves:
        reached = capacities.get(curve.label)
        if reached is None or reached.capacity.saturation.verdict == "underdriven":
            continue
        saturation = reached.capacity.saturation
        knee = "" if saturation.knee is None else f" from {words.users(saturation.knee)} on"
        bound = ", a lower bound of the capacity" if reached.bounded_by else ""
        parts.append(f"{numbers.with_unit(saturation.capacity, '1/s')}{knee}{bound} ({_series(curve)})")
    if parts:
        return f"Throughput stops at {'; '.join(parts[:2])}" + (
            f" and {len(parts) - 2} more" if parts[2:] else ""
        )
    return f"Throughput reaches {numbers.with_unit(best, '1/s')} and shows no plateau"


# --- C7 ---------------------------------------------------------------------------------------------------


def bystanders(experiment: str, curves: Sequence[CurveCases]) -> list[Chart]:
    """One chart a probe: what the load does to a request that has nothing to do with it."""
    names = dict.fromkeys(name for curve in curves for case in curve.cases for name in case.probe_names)
    return [chart for name in names if (chart := _bystander(experiment, name, curves)) is not None]


def _bystander(experiment: str, probe: str, curves: Sequence[CurveCases]) -> Chart | None:
    rows: list[Row] = []
    trials: list[Row] = []
    idle: list[float] = []
    for curve in curves:
        for case in curve.cases:
            mean = case.probe_mean(probe) if probe in case.probe_names else None
            load = case.reference
            if load is None or not isinstance(mean, Estimate):
                continue
            rows.append(
                {
                    "level": _series(curve),
                    "users": load.plan.load,
                    "ms": mean.point * MS,
                    "lo": _ms(mean.low),
                    "hi": _ms(mean.high),
                }
            )
            trials += _probe_trials(case, probe, _series(curve))
            idle += _idle_times(case, probe)
    if not rows:
        return None
    first, worst = rows[0], max(rows, key=lambda row: float(str(row["ms"])))
    reference = curves[0].cases[0].reference
    steps = reference.plan.steps if reference is not None else ()
    streams = curves[0].cases[0].probe_streams(probe)
    request = streams[0].plan.steps[0].request if streams else probe
    asked = ", ".join(step.request for step in steps)
    count = _trials([case for c in curves for case in c.cases])
    datasets: dict[str, list[Row]] = {"probe": rows, "trials": trials}
    if idle:
        best = min(idle)
        datasets["idle"] = [{"ms": best * MS, "label": f"idle service {numbers.with_unit(best, 's')}"}]
    return Chart(
        kind="bystander",
        anchor=f"chart-probe-{experiment}-{probe}",
        headline=_bystander_headline(probe, first, worst, ", ".join(step.name for step in steps)),
        datasets=_filled(datasets, "probe"),
        options={
            "trials": count,
            "time_label": f"mean response time of the probe {request}",
            "x_label": f"load of {asked}",
        },
        caption=_caption(count),
        entities=_entities([_series(curve) for curve in curves]),
    )


def _bystander_headline(probe: str, first: Row, worst: Row, steps: str) -> str:
    if float(str(worst["ms"])) < UNTOUCHED * float(str(first["ms"])):
        return f"{probe} takes at most {_shown_ms(worst)}, whatever the load of {steps}"
    return (
        f"{probe} takes {_shown_ms(first)} at {first['users']:g} and {_shown_ms(worst)} at "
        f"{worst['users']:g} users of {steps} ({worst['level']})"
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


def _shown_ms(row: Row) -> str:
    return numbers.with_unit(float(str(row["ms"])) / MS, "s")


# --- C8 ---------------------------------------------------------------------------------------------------


def demand_chart(curves: Sequence[CurveCases]) -> Chart | None:
    """Split the time of a request into parts, at the lightest and the heaviest level of each curve."""
    parts: list[Row] = []
    totals: list[Row] = []
    chosen: list[CaseMeasures] = []
    for curve in curves[:MOST_SERIES]:
        chosen += [curve.cases[0]] if len(curve.cases) == 1 else [curve.cases[0], curve.cases[-1]]
    for case in chosen:
        mean = case.mean()
        split = _parts(case)
        if not split or not isinstance(mean, Estimate):
            continue
        parts += [
            {"case": case.name, "part": part, "ms": value * MS} for part, value in split.items() if value > 0
        ]
        totals.append({"case": case.name, "ms": mean.point * MS, "lo": _ms(mean.low), "hi": _ms(mean.high)})
    if not parts:
        return None
    largest = max(totals, key=lambda row: float(str(row["ms"])))
    biggest = max((p for p in parts if p["case"] == largest["case"]), key=lambda p: float(str(p["ms"])))
    share = float(str(biggest["ms"])) / float(str(largest["ms"]))
    count = _trials(chosen)
    return Chart(
        kind="demand",
        anchor="chart-demand",
        headline=f"{percent(share)} of {_shown_ms(largest)} is {biggest['part']} ({largest['case']})",
        datasets={"parts": tuple(parts), "totals": tuple(totals)},
        options={"trials": count},
        caption=f"mean of all requests of a case, CPU of the services divided by them; {_caption(count)}",
    )


def _parts(case: CaseMeasures) -> dict[str, float]:
    """Mean seconds a request by part; empty when the services were not watched."""
    splits = [split for trial in case.usable if (split := _trial_parts(trial)) is not None]
    mean = case.mean()
    if not splits or not isinstance(mean, Estimate):
        return {}
    average = {name: float(np.mean([split[name] for split in splits])) for name in splits[0]}
    outside = _outside(case, mean)
    explained = sum(average.values()) + (outside or 0.0)
    if explained > mean.point:  # CPU that runs outside the requests: it cannot be a part of their time
        average = {name: value * mean.point / explained for name, value in average.items()}
        outside = None if outside is None else outside * mean.point / explained
    parts = dict(average)
    if outside is not None:
        parts["outside the handler"] = outside
    parts["unexplained"] = max(0.0, mean.point - sum(parts.values()))
    return parts


def _trial_parts(trial: TrialMeasures) -> dict[str, float] | None:
    load = trial.load
    services = [p for p in trial.resources.services if isinstance(p.cpu, Interval)]
    if load is None or not services:
        return None
    rate = float((load.ok + load.not_ok).sum()) / load.grid.seconds
    if rate <= 0:
        return None
    cpu = sum(p.cpu.point for p in services if isinstance(p.cpu, Interval))
    system = sum(p.system or 0.0 for p in services)
    waiting = sum(p.waiting.point for p in services if isinstance(p.waiting, Interval))
    return {
        "CPU, user": max(0.0, cpu - system) / rate,
        "CPU, system": system / rate,
        "wait for CPU": waiting / rate,
    }


def _outside(case: CaseMeasures, mean: Estimate) -> float | None:
    """Mean time between what the client saw and what the handler took; none without the server's times."""
    load = case.reference
    assert load is not None
    total, weight = 0.0, 0.0
    for step in load.plan.steps:
        handler = inside(case, step.path)
        count = sum(float(x.steps[step.index].ok.sum()) for x in case.loads)
        if not isinstance(handler, Estimate) or not count:
            return None
        total += handler.point * count
        weight += count
    return max(0.0, mean.point - total / weight)


# --- C6 ---------------------------------------------------------------------------------------------------


def published_charts(section: PublishedSection) -> list[Chart]:
    """Multiples of the reference case, one chart for each comparable group of figures."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    references: dict[tuple[str, str, str], tuple[float, Figure]] = {}
    for row in section.rows:
        key = (row.case.partition(" ")[0], row.step, row.metric)
        if row.shape == "reference":
            references.setdefault(key, (row.published, row.measured))
    for row in section.rows:
        key = (row.case.partition(" ")[0], row.step, row.metric)
        if key not in references or not isinstance(row.measured, Estimate):
            continue
        published, reference = references[key]
        point, low, high = (1.0, 1.0, 1.0) if row.shape == "reference" else multiple(row.measured, reference)
        groups.setdefault(key, []).append(
            {
                "case": row.case,
                "published": row.published / published,
                "point": point,
                "low": low,
                "high": high,
                "shape": row.shape,
            }
        )
    return [_published_chart(key, rows) for key, rows in groups.items() if len(rows) >= 2]


def _published_chart(key: tuple[str, str, str], rows: Sequence[Row]) -> Chart:
    experiment, step, metric = key
    judged = [row for row in rows if row["shape"] in ("agrees", "differs")]
    close = sum(row["shape"] == "agrees" for row in judged)
    base, _, side = metric.partition(" ")
    what = " ".join(part for part in (words.metric(base), side, "of" if step else "", step) if part)
    verdict = f"{close} of {len(judged)} ratios agree" if judged else "no ratio is judged"
    return Chart(
        kind="published",
        anchor="-".join(
            part for part in ("chart-published", experiment, step, metric.partition(" ")[0]) if part
        ),
        headline=f"{verdict}: {what} in {experiment}",
        datasets={"rows": tuple(rows)},
        options={"x_label": f"{what}, as a multiple of {rows[0]['case']}"},
        caption="hollow diamond: published; circle: measured",
    )


# --- shared -----------------------------------------------------------------------------------------------


def _filled(datasets: Mapping[str, list[Row]], first: str) -> dict[str, tuple[Row, ...]]:
    """Datasets that have rows; the first one always."""
    return {name: tuple(rows) for name, rows in datasets.items() if rows or name == first}


def _ms(value: float | None) -> float | None:
    return None if value is None else value * MS


def _caption(trials: int) -> str:
    if trials == 1:
        return "1 trial, 95 % intervals within it"
    return f"{trials} trials a case, 95 % intervals over trials"
