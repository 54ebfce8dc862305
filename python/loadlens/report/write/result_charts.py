"""Charts of results that are no reports: response times of one load, the ladder of a search."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Final

from loadlens.model.explanation import Explanation
from loadlens.model.finding import Estimate
from loadlens.model.report import Chart
from loadlens.model.result import Distribution, EngineResult

MS: Final = 1e3
LEVELS: Final = {"p50": 0.5, "p75": 0.75, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
ONE_TRIAL: Final = "1 trial; bands: 95 % intervals within it"


def of_load(result: EngineResult, headline: str) -> tuple[Chart, ...]:
    """Return the quantiles of the response time, and of the service time in an open loop."""
    stream = result.load
    if stream is None or not stream.law_holds or result.load_changes:
        return ()
    rows = _quantiles("response", stream.response_time_s)
    if len(rows) < 2:
        return ()
    last = rows[-1].nines
    if stream.kind == "open":
        rows += _quantiles("service", stream.service_time_s)
    chart = Chart(
        kind="quantiles",
        anchor="chart-quantiles",
        headline=headline,
        datasets={
            "curve": tuple(map(asdict, rows)),
            "cut": ({"nines": last, "label": "beyond: too few requests"},),
        },
        options={"trials": 1, "time_label": "time"},
        caption=ONE_TRIAL,
        entities={"response": 1, "service": 2},
    )
    return (chart,)


@dataclass(frozen=True, slots=True)
class _Point:
    """A quantile on the curve of a metric, in milliseconds."""

    metric: str
    nines: float
    ms: float
    lo: float | None
    hi: float | None


def _quantiles(metric: str, times: Distribution) -> list[_Point]:
    points = []
    for name, share in LEVELS.items():
        quantity = times.quantity(name)
        if quantity.value is not None:
            low, high = (None if end is None else end * MS for end in (quantity.low, quantity.high))
            points.append(_Point(metric, 1 / (1 - share), quantity.value * MS, low, high))
    return points


def of_explanation(answer: Explanation) -> tuple[Chart, ...]:
    """Return throughput and mean response time over the load, one series per curve."""
    several = len({rung.curve for rung in answer.ladder}) > 1
    rows = [
        _Rung(
            rung.curve if several else "",
            rung.users,
            rung.throughput.point,
            rung.throughput.low,
            rung.throughput.high,
            rung.mean.point * MS,
            None if rung.mean.low is None else rung.mean.low * MS,
            None if rung.mean.high is None else rung.mean.high * MS,
        )
        for rung in answer.ladder
        if isinstance(rung.throughput, Estimate) and isinstance(rung.mean, Estimate)
    ]
    if len(rows) < 2:
        return ()
    chart = Chart(
        kind="load_curve",
        anchor="chart-load",
        headline=answer.sentence,
        datasets={"steps": tuple(map(asdict, rows))},
        options={"time_label": "mean response time", "rate_label": "throughput", "x_label": "users"},
        caption="bars: 95 % intervals",
        entities={name: slot for slot, name in enumerate(dict.fromkeys(row.series for row in rows), start=1)},
    )
    return (chart,)


@dataclass(frozen=True, slots=True)
class _Rung:
    """A level of load, as columns of the chart."""

    series: str
    users: float
    x: float
    x_lo: float | None
    x_hi: float | None
    r: float
    r_lo: float | None
    r_hi: float | None
