"""Mean time of a path inside the service, from the times that it counted itself and let us scrape.

Any pair of counters `NAME_sum` and `NAME_count` of requests by path will do: Micrometer, Prometheus' clients
and most frameworks export one. Of several the longest counts: it is the outermost, closest to what clients
see.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import numpy as np

from loadlens.estimate import within_trial
from loadlens.estimate.interval import Floats, Insufficient, Interval
from loadlens.measure.case import CaseMeasures
from loadlens.measure.trial import TrialMeasures
from loadlens.model.finding import Figure

if TYPE_CHECKING:
    import polars as pl

_OF_REQUESTS: Final = frozenset({"http", "request", "requests", "handler", "view", "route"})
_OF_TIME: Final = {"seconds": 1.0, "second": 1.0, "milliseconds": 1e-3, "millis": 1e-3, "ms": 1e-3}
_OF_OTHERS: Final = frozenset({"client", "bytes", "size", "query", "active", "outbound", "connect"})
_PLACEHOLDER: Final = re.compile(r"^(\{.*\}|:.+|<.*>|\*)$")  # of a path: /orders/{id}


def mean_time(case: CaseMeasures, path: str) -> Figure | None:
    """Return the mean time of a path over the trials of a case; none when no counter tells it."""
    told = [*(case.plan.get("services") or ()), *([case.plan["outside"]] if case.plan.get("outside") else [])]
    if not any(service.get("scrape") for service in told):
        return None
    where = path.partition("?")[0]
    by_name: dict[str, list[tuple[Interval, int]]] = {}
    for trial in case.usable:
        for name, found in _of_trial(trial, where).items():
            by_name.setdefault(name, []).append(found)
    figures = [
        case.figure(name, "s", [mean for mean, _ in found], [count for _, count in found])
        for name, found in by_name.items()
    ]
    return max(figures, key=lambda figure: getattr(figure, "point", 0.0), default=None)


def _of_trial(trial: TrialMeasures, where: str) -> dict[str, tuple[Interval, int]]:
    import polars as pl

    if trial.grid is None:
        return {}
    rows = trial.source.readings().filter((pl.col("source") == "scrape") & pl.col("value").is_not_null())
    names = {
        name.removesuffix("_sum"): factor
        for name in rows["metric"].unique().to_list()
        if (factor := _factor(name)) is not None
    }
    moments = _around(trial, np.unique(rows["time_ns"].to_numpy()))
    found = {}
    for name, factor in sorted(names.items()):
        counts = _growth(rows, f"{name}_count", where, moments)
        sums = _growth(rows, f"{name}_sum", where, moments)
        if counts is not None and sums is not None and counts.sum() > 0:
            found[name] = (_mean(sums * factor, counts), int(counts.sum()))
    return found


def _mean(sums: Floats, counts: Floats) -> Interval:
    """With an interval where there are scrapes enough for one."""
    found = within_trial.mean(sums, counts)
    if isinstance(found, Insufficient):
        total = float(counts.sum())
        return Interval(float(sums.sum()) / total, None, None, total, "difference of readings")
    return found


def _factor(metric: str) -> float | None:
    """Seconds in the unit of a counter of requests' times, told by its `_sum`; none for other metrics."""
    if not metric.endswith("_sum"):
        return None
    words = set(metric.lower().split("_"))
    if not words & _OF_REQUESTS or words & _OF_OTHERS:
        return None
    return next((factor for word, factor in _OF_TIME.items() if word in words), None)


def _around(trial: TrialMeasures, moments: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Floats:
    """Times of the scrapes in the measured part, ns; of those around it where there are too few within."""
    assert trial.grid is not None
    begin, end = float(trial.grid.edges_s[0]) * 1e9, float(trial.grid.edges_s[-1]) * 1e9
    inside = (moments >= begin) & (moments <= end)
    if inside.sum() < 2 and moments.size:
        first = max(0, int(np.searchsorted(moments, begin, side="right")) - 1)
        last = min(moments.size - 1, int(np.searchsorted(moments, end, side="left")))
        inside = np.zeros(moments.size, dtype=bool)
        inside[first : last + 1] = True
    return np.asarray(moments[inside], dtype=np.float64)


def _growth(rows: pl.DataFrame, metric: str, where: str, moments: Floats) -> Floats | None:
    """Growth between scrapes, of all series of that path; one that is not there yet counted nothing."""
    import polars as pl

    own = rows.filter(pl.col("metric") == metric).sort("time_ns")
    total = np.zeros(moments.size)
    is_told = False
    for key, part in own.group_by("labels", maintain_order=True):
        if not _is_of(json.loads(str(key[0]) or "{}"), where):
            continue
        is_told = True
        at = part["time_ns"].to_numpy().astype(np.float64)
        values = part["value"].to_numpy().astype(np.float64)
        place = np.searchsorted(at, moments, side="right") - 1
        total += np.where(place >= 0, values[np.maximum(place, 0)], 0.0)
    growth = np.diff(total)
    return growth if is_told and moments.size > 1 and np.all(growth >= 0) else None


def _is_of(labels: Mapping[str, str], where: str) -> bool:
    """Whether any label is the path, or its template."""
    return any(str(value).startswith("/") and _fits(str(value), where) for value in labels.values())


def _fits(template: str, where: str) -> bool:
    wanted, parts = template.strip("/").split("/"), where.strip("/").split("/")
    return len(wanted) == len(parts) and all(_same(a, b) for a, b in zip(wanted, parts, strict=True))


def _same(wanted: str, part: str) -> bool:
    return wanted == part or _PLACEHOLDER.match(wanted) is not None
