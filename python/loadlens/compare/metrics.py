"""Metrics that are compared: one number of each trial, or none where it was not measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from loadlens.estimate import within_trial
from loadlens.estimate.interval import Interval
from loadlens.measure.services.watched import server_cores
from loadlens.measure.trial import TrialMeasures
from loadlens.model.readings import ProcMetrics


@dataclass(frozen=True, slots=True)
class Metric:
    """A number of each trial, and in which direction it is better."""

    name: str
    unit: str
    of: Callable[[TrialMeasures], float | None]
    more_is_better: bool = False
    is_speed: bool = True  # resources are compared, but make no version faster


def _quantile(p: float) -> Callable[[TrialMeasures], float | None]:
    def of(trial: TrialMeasures) -> float | None:
        assert trial.load is not None
        return _point(within_trial.quantile(trial.load.all_steps().response, p))

    return of


def _throughput(trial: TrialMeasures) -> float | None:
    assert trial.load is not None
    return _point(trial.load.throughput)


def _cpu(trial: TrialMeasures) -> float | None:
    cores = server_cores(trial)
    assert trial.load is not None
    rate = trial.load.rate_by_little
    return None if cores is None or rate <= 0 or cores.point <= 0 else cores.point / rate


def _memory(trial: TrialMeasures) -> float | None:
    sizes = [process.highest(ProcMetrics.rss_bytes) for process in trial.resources.services]
    held = [size for size in sizes if size]
    return sum(held) if held and len(held) == len(sizes) else None


def _point(result: object) -> float | None:
    return result.point if isinstance(result, Interval) and result.point > 0 else None


def failed_share(trial: TrialMeasures) -> float:
    """Return the share of the ended requests that did not end as expected; 0 where none ended."""
    assert trial.load is not None
    bad = float(np.nansum(trial.load.not_ok))
    ended = bad + float(np.nansum(trial.load.ok))
    return bad / ended if ended else 0.0


THROUGHPUT: Final = Metric("throughput", "1/s", _throughput, more_is_better=True)
TIMES: Final = tuple(
    Metric(f"response_time.{name}", "s", _quantile(p))
    for name, p in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
)
CPU: Final = Metric("cpu_time", "s", _cpu, is_speed=False)
RESOURCES: Final = (CPU, Metric("memory", "bytes", _memory, is_speed=False))
