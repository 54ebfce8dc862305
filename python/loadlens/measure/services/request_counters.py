"""Services' own counts of their answers, in metrics that were scraped: requests, and their time."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from loadlens.estimate import within_trial
from loadlens.estimate.interval import Floats
from loadlens.measure.case import CaseMeasures
from loadlens.measure.trial import TrialMeasures
from loadlens.model.finding import Figure
from loadlens.model.readings import Labels, ScrapeMetrics
from loadlens.model.recorded import PlannedCase
from loadlens.model.topology import Scrape
from loadlens.signals.read.trial_series import SCRAPE, Readings, Series, total

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
        """Times that it went back: a process began anew."""
        return int((np.diff(self.values) < 0).sum())


def scraped(case: PlannedCase) -> dict[str, Scrape]:
    """Return the scrape settings of each service that has some."""
    scrapes = {service.name: service.scrape for service in case.services}
    if case.outside is not None:
        scrapes[case.outside.name] = case.outside.scrape
    return {name: scrape for name, scrape in scrapes.items() if scrape is not None}


def read(trial: TrialMeasures, service: str, metric: str) -> Counter | None:
    """The sum of a counter over its labels at every scrape that has it; none when no scrape does."""
    every, moments = _exported(trial, service, metric)
    return _summed(every, moments) if every else None


def read_failed(trial: TrialMeasures, service: str, metric: str) -> Counter | None:
    """The part of a counter whose label says that an answer was none; none where no label says the status."""
    every, moments = _exported(trial, service, metric)
    statuses = [status for series in every if (status := _status(series.labels)) is not None]
    if not every or len(statuses) < len(every):
        return None
    failed = [series for series, status in zip(every, statuses, strict=True) if FAILED.fullmatch(status)]
    return _summed(failed, moments)


def _status(labels: Mapping[str, object]) -> str | None:
    statuses = [str(labels[name]) for name in STATUS_LABELS if name in labels]
    return next((text for text in statuses if STATUS.fullmatch(text)), None)


def _exported(trial: TrialMeasures, service: str, metric: str) -> tuple[Sequence[Series], Floats]:
    """A counter's series, and the moments of every scrape: many counters begin with the first request."""
    readings = Readings(trial.source.readings())
    every = readings.exported(metric, service)
    scrapes = readings.of(ScrapeMetrics.scrape_seconds, service=service)
    return every, np.unique(np.concatenate([np.zeros(0), *(series.seconds for series in (*every, *scrapes))]))


def _summed(every: Sequence[Series], moments: Floats) -> Counter:
    """Each series holds its last value until its next scrape; one that is not there yet counted nothing."""
    together = total(every, moments)
    return Counter(moments, np.zeros(moments.size) if together is None else together.values)


def is_bracketed(trial: TrialMeasures, service: str) -> bool:
    """True if the first and the last scrape of each replica were answered: those are the idle reads."""
    import polars as pl

    rows = trial.source.readings().filter(
        (pl.col("source") == SCRAPE) & (pl.col("metric") == ScrapeMetrics.scrape_seconds.name)
    )
    ends = rows.sort("time_ns").group_by("labels").agg(pl.first("value"), pl.last("value").alias("last"))
    return all(None not in values for text, *values in ends.iter_rows() if Labels.of(text).service == service)


def scrapes(trial: TrialMeasures, service: str) -> int:
    """Return the scrapes of a service, all of its replicas together: each counts its own."""
    counters = Readings(trial.source.readings()).of(ScrapeMetrics.scrapes, service=service)
    return int(sum(float(counter.values.max()) for counter in counters))


def mean_time(case: CaseMeasures, metric: str) -> Figure | None:
    """Mean time of all answers as the entry's service counted it; none when none does."""
    entry = case.plan.entry_service
    scrape = scraped(case.plan).get(entry)
    if metric != "server_time.mean" or scrape is None or not scrape.requests or not scrape.time:
        return None
    factor = SECONDS[scrape.time_in]
    means, samples = [], []
    for trial in case.usable:
        requests, time = (read(trial, entry, name) for name in (scrape.requests, scrape.time))
        if requests is None or time is None or trial.grid is None:
            continue
        first, last = _around(requests.seconds, trial)
        counts = np.diff(requests.values[first : last + 1])
        at = np.interp(requests.seconds[first : last + 1], time.seconds, time.values)
        means.append(within_trial.mean(np.diff(at) * factor, counts))
        samples.append(int(counts.sum()))
    return case.figure(metric, "s", means, samples) if means else None


def _around(moments: Floats, trial: TrialMeasures) -> tuple[int, int]:
    """The scrapes around the measured part; the last one before it where a warm-up is cut off."""
    assert trial.grid is not None
    begin, end = float(trial.grid.edges_s[0]), float(trial.grid.edges_s[-1])
    first = max(0, int(np.searchsorted(moments, begin, side="right")) - 1)
    last = min(moments.size - 1, int(np.searchsorted(moments, end, side="left")))
    return first, max(first, last)
