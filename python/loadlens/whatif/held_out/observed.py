"""Measured cases that a prediction may rest on: rates, times and CPU of each trial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loadlens.estimate.interval import Floats, Interval
from loadlens.estimate.interval_counts import IntervalCounts
from loadlens.measure.case import CaseMeasures
from loadlens.measure.trial import StepMeasures, StreamMeasures, TrialMeasures
from loadlens.model.recorded import PlannedCase
from loadlens.whatif.held_out.site import Site

LIGHT = 0.1  # in flight for each that takes requests: below, hardly any request waits
SHAPE = 200  # quantiles that stand for a distribution
GENERATOR = "(generator)"


@dataclass(frozen=True, eq=False)
class Observed:
    """One measured case."""

    case: CaseMeasures
    plan: PlannedCase
    site: Site

    @property
    def load(self) -> StreamMeasures:
        """The load of the first trial, for what all share."""
        return self.case.loads[0]

    @property
    def rate(self) -> float:
        """Requests per second, typical of its trials."""
        return _typical([ended_per_s(load) for load in self.case.loads])

    @property
    def response(self) -> float | None:
        """Mean response time, typical of its trials."""
        return _typical_mean([load.all_steps() for load in self.case.loads])

    def probe(self, name: str) -> float | None:
        """Mean response time of a probe."""
        return _typical_mean([stream.all_steps() for stream in self.case.probe_streams(name)])

    @property
    def in_flight(self) -> float:
        """Mean requests in flight."""
        means = [load.in_flight.point for load in self.case.loads if isinstance(load.in_flight, Interval)]
        return float(np.mean(means)) if means else float("inf")

    @property
    def is_light(self) -> bool:
        """True if hardly any request waits for another one."""
        stream = self.load.plan
        return (stream.is_closed and stream.load == 1) or self.in_flight < LIGHT * self.site.members

    @property
    def failed(self) -> float:
        """Share of the requests that did not end as expected."""
        bad, good = (sum(float(getattr(x, name).sum()) for x in self.case.loads) for name in ("not_ok", "ok"))
        return bad / (bad + good) if bad + good else 1.0


def ended_per_s(load: StreamMeasures) -> float:
    """Return requests per second that ended, well or not."""
    ok = float(load.ok.sum())
    return load.rate_by_little * (ok + float(load.not_ok.sum())) / ok if ok else 0.0


def step_share(load: StreamMeasures, step: int) -> float:
    """Return the share of the ended requests that are of one step."""
    part, whole = load.steps[step], float((load.ok + load.not_ok).sum())
    return float((part.ok + part.not_ok).sum()) / whole if whole else 0.0


def cores_of(trial: TrialMeasures, *services: str) -> float | None:
    """Return the cores that processes of these services used; none if they were not watched."""
    processes = [p.cpu for p in trial.resources.processes if p.service in services]
    used = [cpu.point for cpu in processes if isinstance(cpu, Interval)]
    return sum(used) if used else None


def shape_of(counts: Sequence[IntervalCounts]) -> Floats:
    """Return equally likely values of the observed distribution, ascending; trials weigh the same."""
    levels = (np.arange(SHAPE) + 0.5) / SHAPE
    quantiles = []
    for part in counts:
        _, upper, at_most = part.distribution()
        place = np.minimum(np.searchsorted(at_most, levels - 1e-12), upper.size - 1)
        quantiles.append(upper[place])
    return np.asarray(np.mean(quantiles, axis=0), dtype=np.float64)


def _typical(values: Sequence[float]) -> float:
    """Return the geometric mean over trials."""
    positive = [value for value in values if value > 0]
    return float(np.exp(np.mean(np.log(positive)))) if positive else 0.0


def _typical_mean(parts: Sequence[StepMeasures]) -> float | None:
    means = [part.response_mean for part in parts]
    points = [mean.point for mean in means if isinstance(mean, Interval) and mean.point > 0]
    return _typical(points) if points else None
