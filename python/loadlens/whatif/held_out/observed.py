"""What was measured of the cases that a prediction may rest on: rates, times and CPU of each trial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loadlens.estimate.interval import Floats, Interval
from loadlens.estimate.interval_counts import IntervalCounts
from loadlens.measure.case import CaseMeasures
from loadlens.measure.trial import StepMeasures, StreamMeasures, TrialMeasures
from loadlens.whatif.held_out.site import Json, Site

MOST_FAILED = 0.05  # of the requests: the times of the others are then not those of the load
LIGHT = 0.1  # in flight for each that takes requests: below, hardly anybody waits
SHAPE = 200  # quantiles that stand for a distribution
GENERATOR = "(generator)"


@dataclass(frozen=True, eq=False)
class Observed:
    """One measured case."""

    case: CaseMeasures
    site: Site

    @property
    def plan(self) -> Json:
        """The case as planned."""
        return self.case.plan

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
        found = [load.in_flight.point for load in self.case.loads if isinstance(load.in_flight, Interval)]
        return float(np.mean(found)) if found else float("inf")

    @property
    def is_light(self) -> bool:
        """Whether hardly any request waits for another one."""
        plan = self.load.plan
        return (plan.is_closed and plan.load == 1) or self.in_flight < LIGHT * self.site.members

    @property
    def failed(self) -> float:
        """Share of the requests that did not end as expected."""
        bad, good = (sum(float(getattr(x, name).sum()) for x in self.case.loads) for name in ("not_ok", "ok"))
        return bad / (bad + good) if bad + good else 1.0


def ended_per_s(load: StreamMeasures) -> float:
    """Requests per second that ended, well or not."""
    ok = float(load.ok.sum())
    return load.rate_by_little * (ok + float(load.not_ok.sum())) / ok if ok else 0.0


def step_share(load: StreamMeasures, step: int) -> float:
    """Share of the ended requests that are of one step."""
    part, whole = load.steps[step], float((load.ok + load.not_ok).sum())
    return float((part.ok + part.not_ok).sum()) / whole if whole else 0.0


def cores_of(trial: TrialMeasures, *services: str) -> float | None:
    """Cores that processes of these services used; none: they were not watched."""
    found = [p.cpu for p in trial.resources.processes if p.service in services]
    known = [cpu.point for cpu in found if isinstance(cpu, Interval)]
    return sum(known) if known else None


def shape_of(counts: Sequence[IntervalCounts]) -> Floats:
    """Equally likely values that stand for what was observed, ascending; each trial counts as much."""
    levels = (np.arange(SHAPE) + 0.5) / SHAPE
    found = []
    for part in counts:
        _, upper, at_most = part.distribution()
        place = np.minimum(np.searchsorted(at_most, levels - 1e-12), upper.size - 1)
        found.append(upper[place])
    return np.asarray(np.mean(found, axis=0), dtype=np.float64)


def _typical(values: Sequence[float]) -> float:
    """The geometric mean over trials."""
    known = [value for value in values if value > 0]
    return float(np.exp(np.mean(np.log(known)))) if known else 0.0


def _typical_mean(parts: Sequence[StepMeasures]) -> float | None:
    means = [part.response_mean for part in parts]
    known = [mean.point for mean in means if isinstance(mean, Interval) and mean.point > 0]
    return _typical(known) if known else None
