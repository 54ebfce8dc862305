"""Mean time of a path inside the service, from the times that it counted itself and let us scrape.

Any pair of counters `NAME_sum` and `NAME_count` of requests by path will do: Micrometer, Prometheus' clients
and most frameworks export one. Of several the longest counts: it is the outermost, closest to what clients
see.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from loadlens.estimate.interval import Floats, Interval
from loadlens.measure.case import CaseMeasures
from loadlens.measure.services.path_templates import fits
from loadlens.measure.services.request_counters import scraped
from loadlens.measure.trial import TrialMeasures
from loadlens.model.finding import Figure
from loadlens.signals.read.metric_names import seconds_per_unit
from loadlens.signals.read.trial_series import (
    SCRAPE,
    Readings,
    Series,
    mean_or_point,
    moments_around,
    total,
)

_OF_REQUESTS: Final = frozenset({"http", "request", "requests", "handler", "view", "route"})
_OF_OTHERS: Final = frozenset({"client", "bytes", "size", "query", "active", "outbound", "connect"})


def mean_time(case: CaseMeasures, path: str) -> Figure | None:
    """Return the mean time of a path over the trials of a case; none when no counter has it."""
    if not scraped(case.plan):
        return None
    where = path.partition("?")[0]
    by_name: dict[str, list[tuple[Interval, int]]] = {}
    for trial in case.usable:
        for name, means in _of_trial(trial, where).items():
            by_name.setdefault(name, []).append(means)
    figures = [
        case.figure(name, "s", [mean for mean, _ in means], [count for _, count in means])
        for name, means in by_name.items()
    ]
    return max(figures, key=lambda figure: getattr(figure, "point", 0.0), default=None)


def _of_trial(trial: TrialMeasures, where: str) -> dict[str, tuple[Interval, int]]:
    if trial.grid is None:
        return {}
    readings = Readings(trial.source.readings())
    scraped = list(readings.monitored(SCRAPE))
    names = {
        name.removesuffix("_sum"): factor for name, _ in scraped if (factor := _factor(name)) is not None
    }
    every = [series.seconds for _, series in scraped]
    begin, end = float(trial.grid.edges_s[0]), float(trial.grid.edges_s[-1])
    moments = moments_around(np.unique(np.concatenate([np.zeros(0), *every])), begin, end)
    by_name = {}
    for name, factor in sorted(names.items()):
        counts = _growth(readings.exported(f"{name}_count"), where, moments)
        sums = _growth(readings.exported(f"{name}_sum"), where, moments)
        if counts is not None and sums is not None and counts.sum() > 0:
            by_name[name] = (mean_or_point(sums * factor, counts, float(counts.sum())), int(counts.sum()))
    return by_name


def _factor(metric: str) -> float | None:
    """Return the seconds in the unit of a counter of times, from the name of its `_sum`; none for others."""
    if not metric.endswith("_sum"):
        return None
    words = set(metric.lower().split("_"))
    if not words & _OF_REQUESTS or words & _OF_OTHERS:
        return None
    return seconds_per_unit(metric)


def _growth(every: Sequence[Series], where: str, moments: Floats) -> Floats | None:
    """Growth between scrapes, of all series of that path; one that is not there yet counted nothing."""
    together = total([series for series in every if _is_of(series.labels, where)], moments)
    growth = np.zeros(0) if together is None else np.diff(together.values)
    return growth if growth.size and np.all(growth >= 0) else None


def _is_of(labels: Mapping[str, str], where: str) -> bool:
    """True if any label is the path, or its template."""
    return any(value.startswith("/") and fits(value, where) for value in labels.values())
