"""One case over its trials: the trial is the unit, and every figure says how many it stands on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from loadlens.estimate import over_trials as over
from loadlens.estimate import within_trial
from loadlens.estimate.interval import Insufficient, Interval, Measured
from loadlens.estimate.interval_counts import IntervalCounts
from loadlens.measure.external_report import NO_RESPONSE, ExternalReport
from loadlens.measure.figures import estimate
from loadlens.measure.trial import NO_SUCCESSES, StepMeasures, StreamMeasures, TrialMeasures
from loadlens.model.finding import Estimate, Figure, NotMeasured, Undecided
from loadlens.model.recorded import PlannedCase
from loadlens.present import numbers


@dataclass(frozen=True, eq=False)
class CaseMeasures:
    """A case with all its trials, the unusable ones too."""

    plan: PlannedCase
    trials: tuple[TrialMeasures, ...]
    _figures: dict[tuple[object, ...], Figure] = field(default_factory=dict, repr=False)

    @property
    def slug(self) -> str:
        """The case's folder name."""
        return self.plan.slug

    @property
    def name(self) -> str:
        """The case's name."""
        return self.plan.name

    @property
    def experiment(self) -> str:
        """The experiment that it belongs to."""
        return self.plan.experiment

    @property
    def levels(self) -> Mapping[str, str]:
        """Level of each factor."""
        return self.plan.levels

    def is_judged(self, cores: int) -> bool:
        """True if the machine has the cores that the case needs."""
        needed = self.plan.needs_cores
        return needed is None or needed <= cores

    @property
    def is_held_out(self) -> bool:
        """True if it was set aside to test predictions on."""
        return self.plan.held_out

    @property
    def purpose(self) -> str:
        """`load`, or what else it was run for: `look` (the first) or `dense` (for pauses)."""
        return self.plan.purpose

    @cached_property
    def usable(self) -> tuple[TrialMeasures, ...]:
        """Trials whose figures may enter an estimate."""
        return tuple(trial for trial in self.trials if trial.is_usable)

    @cached_property
    def loads(self) -> tuple[StreamMeasures, ...]:
        """The load stream of each usable trial."""
        return tuple(trial.load for trial in self.usable if trial.load is not None)

    @property
    def reference(self) -> StreamMeasures | None:
        """The load stream of the first usable trial, for what all trials share."""
        return self.loads[0] if self.loads else None

    @property
    def external(self) -> ExternalReport | None:
        """The program of others that made its load; none: our engine did."""
        return None if self.reference is None else self.reference.external

    @property
    def counts_successes(self) -> bool:
        """True if every trial says how many requests succeeded."""
        return all(load.external is None or load.external.counts.ok is not None for load in self.loads)

    def why_nothing(self) -> str:
        """Return the reason why there are no figures."""
        if not self.trials:
            return "not run"
        reasons = [reason for trial in self.trials for reason in trial.reasons]
        return reasons[0] if reasons else str(self.trials[0].source.status)

    # --- the load ------------------------------------------------------------------------------------

    @cached_property
    def throughput(self) -> Figure:
        """Successes per second."""
        if self.external is not None and not self.counts_successes:
            return self.external.not_reported("throughput", NO_SUCCESSES)
        return self._rate([load.throughput for load in self.loads], [x.successes for x in self.loads])

    def step_rate(self, step: int) -> Figure:
        """Successes per second of one step."""
        if self.external is not None:
            return self.throughput  # such a load has one step
        parts = [load.steps[step] for load in self.loads]
        rates = [
            within_trial.rate(part.ok, load.grid.lengths_s)
            for part, load in zip(parts, self.loads, strict=True)
        ]
        return self._rate(rates, [int(part.ok.sum()) for part in parts])

    def _rate(self, rates: Sequence[Measured], samples: Sequence[int]) -> Figure:
        """Trials that count alike still know their rate to one request only, which an edge may cut off."""
        whole = self.figure("throughput", "1/s", rates, samples)
        if not isinstance(whole, Estimate) or whole.trials < 2 or whole.low is None or whole.high is None:
            return whole
        grain = 1 / float(np.mean([load.grid.seconds for load in self.loads]))
        low, high = min(whole.low, max(0.0, whole.point - grain)), max(whole.high, whole.point + grain)
        return replace(whole, low=low, high=high)

    @cached_property
    def failed_share(self) -> Figure:
        """Share of the ended requests that did not end as expected.

        Time-outs may outlast a trial: where requests failed that were under way at its end, all that ended
        then count as well.
        """
        if self.external is not None and not self.counts_successes:
            return self.external.not_reported("failed.share", NO_SUCCESSES)
        share = self.share_figure(
            "failed.share", [(load.not_ok, load.ok + load.not_ok) for load in self.loads]
        )
        failed, later = (sum(trial.later[i] for trial in self.usable) for i in (0, 1))
        if not failed or not isinstance(share, Estimate):
            return share
        ended = sum(float((load.ok + load.not_ok).sum()) for load in self.loads)
        whole = ended + later
        low, high = (
            None if end is None else (end * ended + failed) / whole for end in (share.low, share.high)
        )
        return replace(
            share,
            point=(share.point * ended + failed) / whole,
            low=low,
            high=high,
            samples=int(whole),
            method=f"{share.method}; with what ended after the measured part",
        )

    @property
    def issued(self) -> int | None:
        """Requests issued in the measured part of all usable trials; none if it is not known."""
        counts = [load.issued for load in self.loads]
        return None if None in counts else sum(count for count in counts if count is not None)

    @property
    def failed_count(self) -> int:
        """Requests that did not end as expected in the measured part of all usable trials."""
        return int(sum(float(np.nansum(load.not_ok)) for load in self.loads))

    @cached_property
    def in_flight(self) -> Figure:
        """Mean requests in flight."""
        if self.external is not None:
            return self.external.not_reported("in_flight", "how many were in flight")
        return self.level_figure("in_flight", "requests", [load.in_flight for load in self.loads])

    def mean(self, step: int | None = None, kind: str = "response") -> Figure:
        """Mean response or service time of one step, or of all."""
        return self._remembered(("mean", step, kind), lambda: self._mean(step, kind))

    def _mean(self, step: int | None, kind: str) -> Figure:
        if (reported := self.reported_time(kind, "mean")) is not None:
            return reported
        steps = self._steps(step)
        means = [s.response_mean if kind == "response" else s.service_mean for s in steps]
        return self.figure(f"{kind}_time.mean", "s", means, [int(s.ok.sum()) for s in steps])

    def quantile(self, p: float, step: int | None = None, kind: str = "response") -> Figure:
        """A quantile of response or service time of one step, or of all."""
        return self._remembered(("quantile", p, step, kind), lambda: self._quantile(p, step, kind))

    def _quantile(self, p: float, step: int | None, kind: str) -> Figure:
        if (reported := self.reported_time(kind, quantile_name(p))) is not None:
            return reported
        counts = [s.response if kind == "response" else s.service for s in self._steps(step)]
        return self.quantile_figure(f"{kind}_time.{quantile_name(p)}", counts, p)

    def reported_time(self, kind: str, statistic: str) -> Figure | None:
        """Return a time that another program reported; none if times are taken from requests.

        Args:
            kind: `response` or `service`.
            statistic: `mean`, `stdev`, `min`, `max` or a quantile such as `p99`.
        """
        if self.external is None:
            return None
        metric = f"{kind}_time.{statistic}"
        if kind == "response":
            return self.external.not_reported(metric, NO_RESPONSE)
        if self.external.tells_requests:
            return None
        reports = [load.external for load in self.loads if load.external is not None]
        intervals = [
            interval for external in reports if (interval := external.service_time(statistic)) is not None
        ]
        if len(intervals) < len(reports):
            return self.external.not_reported(metric, f"its {statistic}")
        return self.figure(metric, "s", intervals, [int(interval.independent) for interval in intervals])

    def _steps(self, step: int | None) -> list[StepMeasures]:
        if step is not None:
            return [load.steps[step] for load in self.loads]
        return self._all_steps

    @cached_property
    def _all_steps(self) -> list[StepMeasures]:
        return [load.all_steps() for load in self.loads]

    def _remembered(self, key: tuple[object, ...], make: Callable[[], Figure]) -> Figure:
        """Figures are asked for by matrix, curves, charts and details alike."""
        if key not in self._figures:
            self._figures[key] = make()
        return self._figures[key]

    # --- probes --------------------------------------------------------------------------------------

    @cached_property
    def probe_names(self) -> tuple[str, ...]:
        """Names of the probes."""
        return tuple(p.plan.name for p in self.usable[0].probes) if self.usable else ()

    def probe_streams(self, name: str) -> list[StreamMeasures]:
        """A probe's stream in each usable trial."""
        return [p for trial in self.usable for p in trial.probes if p.plan.name == name]

    def probe_mean(self, name: str) -> Figure:
        """Mean response time of a probe."""
        return self._remembered(("probe", name), lambda: self._probe_mean(name))

    def _probe_mean(self, name: str) -> Figure:
        steps = [stream.all_steps() for stream in self.probe_streams(name)]
        means = [step.response_mean for step in steps]
        return self.figure("response_time.mean", "s", means, [int(s.ok.sum()) for s in steps])

    def probe_quantile(self, name: str, p: float) -> Figure:
        """A quantile of the response time of a probe."""
        return self._remembered(("probe", name, p), lambda: self._probe_quantile(name, p))

    def _probe_quantile(self, name: str, p: float) -> Figure:
        counts = [stream.all_steps().response for stream in self.probe_streams(name)]
        return self.quantile_figure(f"response_time.{quantile_name(p)}", counts, p)

    # --- figures -------------------------------------------------------------------------------------

    def figure(self, metric: str, unit: str, values: Sequence[Measured], samples: Sequence[int]) -> Figure:
        """A positive quantity over trials: t on logs; with one trial, within it."""
        return self._over(metric, unit, values, samples, over.over_trials)

    def level_figure(self, metric: str, unit: str, values: Sequence[Measured]) -> Figure:
        """A quantity that may be zero, over trials."""
        return self._over(metric, unit, values, [0] * len(values), over.level_over_trials)

    def _over(
        self,
        metric: str,
        unit: str,
        values: Sequence[Measured],
        samples: Sequence[int],
        combine: Callable[[np.ndarray[tuple[int], np.dtype[np.float64]]], Measured],
    ) -> Figure:
        intervals = [interval for interval in values if isinstance(interval, Interval)]
        if not values:
            return NotMeasured(metric, self.why_nothing())
        if not intervals:
            return Undecided(metric, unit, next(i.reason for i in values if isinstance(i, Insufficient)))
        total = sum(samples)
        if len(intervals) == 1:
            return estimate(metric, unit, intervals[0], 1, total)
        points = np.array([interval.point for interval in intervals])
        whole = combine(points)
        bound = next(
            (interval for interval in intervals if interval.high is None and interval.low == interval.point),
            None,
        )
        if bound is not None and isinstance(whole, Interval):
            method = f"{whole.method}; {bound.method} (one trial)"
            return Estimate(metric, unit, whole.point, whole.point, None, len(intervals), total, method)
        if isinstance(whole, Insufficient):
            shown = " and ".join(numbers.with_unit(point, unit) for point in points)
            return Undecided(metric, unit, f"{whole.reason}; they gave {shown}")
        return estimate(metric, unit, whole, len(intervals), total)

    def quantile_figure(self, metric: str, counts: Sequence[IntervalCounts], p: float) -> Figure:
        """A quantile over trials."""
        if not counts:
            return NotMeasured(metric, self.why_nothing())
        samples = sum(part.observed for part in counts)
        if len(counts) == 1:
            quantile = within_trial.quantile(counts[0], p)
        else:
            quantile = over.quantile_over_trials(counts, p)
        if isinstance(quantile, Insufficient):
            return Undecided(metric, "s", quantile.reason)
        figure = estimate(metric, "s", quantile, len(counts), samples)
        if p > 0.5 and not within_trial.is_firm(quantile, p):
            above = quantile.independent * (1 - p)
            return replace(figure, method=f"{figure.method}; {above:.1f} independent requests above it")
        return figure

    def share_figure(self, metric: str, parts: Sequence[tuple[np.ndarray, np.ndarray]]) -> Figure:
        """A share over trials, from hits and totals by interval of each trial."""
        if not parts:
            return NotMeasured(metric, self.why_nothing())
        shares = [self._share(hits, totals) for hits, totals in parts]
        intervals = [interval for interval in shares if isinstance(interval, Interval)]
        samples = int(sum(float(totals.sum()) for _, totals in parts))
        if not intervals:
            return Undecided(metric, "share", "no request ended")
        if len(intervals) == 1:
            return estimate(metric, "share", intervals[0], 1, samples)
        points = np.array([interval.point for interval in intervals])
        whole = over.share_over_trials(points, np.array([float(totals.sum()) for _, totals in parts]))
        if isinstance(whole, Insufficient):
            shown = " and ".join(numbers.with_unit(point, "share") for point in points)
            return Undecided(metric, "share", f"{whole.reason}; they gave {shown}")
        return estimate(metric, "share", whole, len(intervals), samples)

    def _share(self, hits: np.ndarray, totals: np.ndarray) -> Measured:
        """Within a trial; of counts of a whole load nothing is known of how they varied within it."""
        if self.external is None or self.external.tells_requests or not hits.any():
            return within_trial.share(hits, totals)
        n = float(totals.sum())
        return Interval(float(hits.sum()) / n, None, None, n, f"counted by {self.external.name}")


def quantile_name(p: float) -> str:
    """`p99`, `p999`."""
    return "p" + f"{p * 100:g}".replace(".", "")
