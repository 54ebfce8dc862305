"""Charts of results that are no reports: response times of one load, the ladder of a search."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Final

from loadlens.model.report import Chart
from loadlens.model.result import Distribution, EngineResult

MS: Final = 1e3
LEVELS: Final = {"p50": 0.5, "p75": 0.75, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
ONE_TRIAL: Final = "1 trial; bands: 95 % intervals within it"


def of_load(result: EngineResult, headline: str) -> tuple[Chart, ...]:
    """Return the quantiles of the response time, and of the service time in an open loop."""
    stream = result.load
    if stream is None or not stream.law_holds:
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
