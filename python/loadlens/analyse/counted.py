"""What services counted of their own answers, in metrics that were scraped: requests, and their time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from loadlens.analyse.case import CaseMeasures
from loadlens.analyse.source import Json
from loadlens.analyse.trial import TrialMeasures
from loadlens.model.finding import Figure
from loadlens.stats import within
from loadlens.stats.interval import Floats

SECONDS = {"s": 1.0, "ms": 1e-3}


@dataclass(frozen=True, slots=True, eq=False)
class Counter:
    """A counter over all its labels and replicas at each scrape; shape (scrapes,)."""

    seconds: Floats  # since t0
    values: Floats

    @property
    def rise(self) -> float:
        """From the first scrape to the last, both while nothing was asked of the service."""
        return float(self.values[-1] - self.values[0]) if self.values.size else 0.0


def services(case: Json) -> dict[str, Mapping[str, str]]:
    """Services that say which counter holds their answers, with what they say."""
    told = [*(case.get("services") or ()), *([case["outside"]] if case.get("outside") else [])]
    found = {str(service["name"]): service["scrape"] for service in told if service.get("scrape")}
    return {name: scrape for name, scrape in found.items() if scrape.get("requests")}


def read(trial: TrialMeasures, service: str, metric: str) -> Counter | None:
    """The sum of a counter over its labels at every scrape that has it; none when no scrape does."""
    import polars as pl

    rows = trial.source.readings().filter(
        (pl.col("source") == "scrape")
        & pl.col("metric").is_in([metric, "scrape_seconds"])
        & pl.col("value").is_not_null()
    )
    own = [json.loads(text).get("service") == service for text in rows["labels"]]
    rows = rows.filter(pl.Series(own, dtype=pl.Boolean))
    moments = np.unique(
        rows["time_ns"].to_numpy()
    )  # of every scrape: many counters begin with the first request
    rows = rows.filter(pl.col("metric") == metric)
    if rows.height == 0:
        return None
    return _summed(moments, rows["time_ns"].to_numpy(), rows["labels"].to_list(), rows["value"].to_numpy())


def _summed(moments: np.ndarray, times: np.ndarray, labels: list[str], values: np.ndarray) -> Counter:
    """Each series holds its last value until its next scrape; one that is not there yet counted nothing."""
    total = np.zeros(moments.size)
    for label in dict.fromkeys(labels):
        own = np.array([each == label for each in labels])
        at, value = times[own], values[own].astype(np.float64)
        order = np.argsort(at)
        place = np.searchsorted(at[order], moments, side="right") - 1
        total += np.where(place >= 0, value[order][np.maximum(place, 0)], 0.0)
    return Counter(moments.astype(np.float64) / 1e9, total)


def scrapes(trial: TrialMeasures, service: str) -> int:
    """How often the service was scraped."""
    import polars as pl

    rows = trial.source.readings().filter((pl.col("source") == "scrape") & (pl.col("metric") == "scrapes"))
    own = [
        float(value)
        for text, value in zip(rows["labels"], rows["value"], strict=True)
        if json.loads(text).get("service") == service
    ]
    return int(max(own, default=0.0))


def mean_time(case: CaseMeasures, metric: str) -> Figure | None:
    """Mean time of all answers as the entry's service counted it; none when none does."""
    entry = str((case.plan.get("entry") or {}).get("service") or "")
    says = services(case.plan).get(entry)
    if metric != "server_time.mean" or says is None or not says.get("time"):
        return None
    factor = SECONDS[says.get("time_in") or "s"]
    found, samples = [], []
    for trial in case.usable:
        requests, time = (read(trial, entry, says[name]) for name in ("requests", "time"))
        if requests is None or time is None or trial.grid is None:
            continue
        first, last = _around(requests.seconds, trial)
        counts = np.diff(requests.values[first : last + 1])
        at = np.interp(requests.seconds[first : last + 1], time.seconds, time.values)
        found.append(within.mean(np.diff(at) * factor, counts))
        samples.append(int(counts.sum()))
    return case.figure(metric, "s", found, samples) if found else None


def _around(moments: Floats, trial: TrialMeasures) -> tuple[int, int]:
    """The scrapes around the measured part; the last one before it where a warm-up is cut off."""
    assert trial.grid is not None
    begin, end = float(trial.grid.edges_s[0]), float(trial.grid.edges_s[-1])
    first = max(0, int(np.searchsorted(moments, begin, side="right")) - 1)
    last = min(moments.size - 1, int(np.searchsorted(moments, end, side="left")))
    return first, max(first, last)
