"""What services counted of their own answers, in metrics that were scraped: requests, and their time."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from loadlens.estimate import reconciliation, within_trial
from loadlens.estimate.interval import Floats
from loadlens.measure.case import CaseMeasures
from loadlens.measure.source import Json
from loadlens.measure.trial import TrialMeasures
from loadlens.model.finding import Figure

SECONDS = {"s": 1.0, "ms": 1e-3}
# Labels that hold the status of an answer: of Prometheus' clients, Micrometer, OpenTelemetry.
STATUS_LABELS = (
    "status",
    "code",
    "status_code",
    "http_status",
    "http_status_code",
    "http_response_status_code",
)
STATUS = re.compile(r"[1-5](\d\d|xx)", re.IGNORECASE)
FAILED = re.compile(r"408|429|5..")  # what one asks again for


@dataclass(frozen=True, slots=True, eq=False)
class Counter:
    """A counter over all its labels and replicas at each scrape; shape (scrapes,)."""

    seconds: Floats  # since t0
    values: Floats

    @property
    def rise(self) -> float:
        """From the first scrape to the last, both while nothing was asked of the service."""
        return float(self.values[-1] - self.values[0]) if self.values.size else 0.0

    @property
    def seconds_between(self) -> float:
        """From the first scrape to the last."""
        return float(self.seconds[-1] - self.seconds[0]) if self.seconds.size else 0.0

    @property
    def restarts(self) -> int:
        """How often it went back: a process began anew."""
        found = reconciliation.counted(self.values)
        return found.restarts if isinstance(found, reconciliation.Counted) else 0


def services(case: Json) -> dict[str, Mapping[str, str]]:
    """Services that say which counter holds their answers, with what they say."""
    told = [*(case.get("services") or ()), *([case["outside"]] if case.get("outside") else [])]
    found = {str(service["name"]): service["scrape"] for service in told if service.get("scrape")}
    return {name: scrape for name, scrape in found.items() if scrape.get("requests")}


@dataclass(frozen=True, slots=True, eq=False)
class _Readings:
    """All series of one counter; shape (readings,) but for the moments."""

    moments: np.ndarray  # of every scrape: many counters begin with the first request
    times: np.ndarray
    labels: list[str]
    values: np.ndarray

    def summed(self, wanted: np.ndarray) -> Counter:
        """Over the wanted readings."""
        labels = [label for label, is_wanted in zip(self.labels, wanted, strict=True) if is_wanted]
        return _summed(self.moments, self.times[wanted], labels, self.values[wanted])


def read(trial: TrialMeasures, service: str, metric: str) -> Counter | None:
    """The sum of a counter over its labels at every scrape that has it; none when no scrape does."""
    found = _readings(trial, service, metric)
    return None if found is None else found.summed(np.ones(found.times.size, dtype=np.bool_))


def read_failed(trial: TrialMeasures, service: str, metric: str) -> Counter | None:
    """The part of a counter whose label says that an answer was none; none where no label says the status."""
    found = _readings(trial, service, metric)
    if found is None:
        return None
    status = {text: _status(json.loads(text)) for text in dict.fromkeys(found.labels)}
    if None in status.values():
        return None
    return found.summed(np.array([FAILED.fullmatch(status[text] or "") is not None for text in found.labels]))


def _status(labels: Mapping[str, object]) -> str | None:
    told = [str(labels[name]) for name in STATUS_LABELS if name in labels]
    return next((text for text in told if STATUS.fullmatch(text)), None)


def _readings(trial: TrialMeasures, service: str, metric: str) -> _Readings | None:
    import polars as pl

    rows = trial.source.readings().filter(
        (pl.col("source") == "scrape")
        & pl.col("metric").is_in([metric, "scrape_seconds"])
        & pl.col("value").is_not_null()
    )
    own = [json.loads(text).get("service") == service for text in rows["labels"]]
    rows = rows.filter(pl.Series(own, dtype=pl.Boolean))
    moments = np.unique(rows["time_ns"].to_numpy())
    rows = rows.filter(pl.col("metric") == metric)
    if rows.height == 0:
        return None
    return _Readings(moments, rows["time_ns"].to_numpy(), rows["labels"].to_list(), rows["value"].to_numpy())


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


def is_bracketed(trial: TrialMeasures, service: str) -> bool:
    """Whether the first and the last scrape of each replica were answered: those are the idle reads."""
    import polars as pl

    rows = trial.source.readings().filter(
        (pl.col("source") == "scrape") & (pl.col("metric") == "scrape_seconds")
    )
    rows = rows.sort("time_ns")
    took: dict[str, list[float | None]] = {}
    for text, value in zip(rows["labels"], rows["value"], strict=True):
        if json.loads(text).get("service") == service:
            took.setdefault(text, []).append(value)
    return all(own[0] is not None and own[-1] is not None for own in took.values())


def scrapes(trial: TrialMeasures, service: str) -> int:
    """How often the service was scraped, all of its replicas together: each counts its own."""
    import polars as pl

    rows = trial.source.readings().filter((pl.col("source") == "scrape") & (pl.col("metric") == "scrapes"))
    most: dict[str, float] = {}
    for text, value in zip(rows["labels"], rows["value"], strict=True):
        if json.loads(text).get("service") == service:
            most[text] = max(most.get(text, 0.0), float(value))
    return int(sum(most.values()))


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
        found.append(within_trial.mean(np.diff(at) * factor, counts))
        samples.append(int(counts.sum()))
    return case.figure(metric, "s", found, samples) if found else None


def _around(moments: Floats, trial: TrialMeasures) -> tuple[int, int]:
    """The scrapes around the measured part; the last one before it where a warm-up is cut off."""
    assert trial.grid is not None
    begin, end = float(trial.grid.edges_s[0]), float(trial.grid.edges_s[-1])
    first = max(0, int(np.searchsorted(moments, begin, side="right")) - 1)
    last = min(moments.size - 1, int(np.searchsorted(moments, end, side="left")))
    return first, max(first, last)
