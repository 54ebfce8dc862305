"""One trial, measured: what its counters, histograms and readings say about the measured part.

Everything is aligned on one grid of equal intervals. The population of times is the successes that completed
in the measured part; unfinished requests are kept apart as censored.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from loadlens.errors import RecordError
from loadlens.estimate import within_trial
from loadlens.estimate.interval import Floats, Insufficient, Interval
from loadlens.estimate.interval_counts import (
    IntervalCounts,
    counts_from_histograms,
    overlaid,
)
from loadlens.estimate.pauses import Pauses
from loadlens.estimate.steady_state import Steadiness, steadiness
from loadlens.measure.external_report import NO_RESPONSE, ExternalReport
from loadlens.measure.requests import connections as connected
from loadlens.measure.requests import failures, log_rows, received, refused, samples, standstill
from loadlens.measure.services import backend_places, gauges, label_splits, span_times
from loadlens.measure.source import (
    HistogramRow,
    StepPlan,
    StreamPlan,
    TrialSource,
    streams_of,
    tag_part,
)
from loadlens.measure.window import WHOLE, narrowed
from loadlens.model.counters import Counters, StreamCounters
from loadlens.model.facts import PortsWatch
from loadlens.model.result import Generator, StreamResult
from loadlens.model.study import Window
from loadlens.model.trial import Outcome, TrialStatus
from loadlens.signals.read import (
    balancer_log,
    collectors,
    fields,
    memory,
    quotas,
    resources,
    runtime_metrics,
    server_log,
    sockets,
    storage,
)
from loadlens.signals.read.trial_series import Readings

MOST_INTERVALS = 512  # of a trial: beyond them several recorded ones are taken as one
SUCCESS = "ok"
TIMEOUT = "timeout"  # class of failures
TIMEOUTS = (TIMEOUT, "connect_timeout", "tls_timeout")
UNEXPECTED = ("unexpected_status", "check_failed")  # answered, but not as demanded
FAILED = ("failed",)  # no whole answer came
FIRST_BYTE, LAST_BYTE = STEP_PHASES = ("first_byte", "last_byte")
CONNECT, TLS = OF_CONNECTIONS = ("connect", "tls")
LAG = "lag"  # of open streams: users of a closed load are sent when they are free
LONG = 0.05  # of the measured part: the edges move a count by twice as much
PER_POINT = 5  # requests that a point of the steadiness series should stand on
SHORTEST_SERIES = 20
NO_SUCCESSES = "how many of its answers were as expected"


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """The measured part in equal intervals; the last may be longer, up to twice as long."""

    starts_s: Floats
    lengths_s: Floats
    places: Mapping[float, int]  # start of a recorded interval, rounded -> number of the grid's interval

    @property
    def size(self) -> int:
        """Number of intervals."""
        return int(self.starts_s.size)

    @property
    def seconds(self) -> float:
        """Length of the measured part."""
        return float(self.lengths_s.sum())

    @property
    def edges_s(self) -> Floats:
        """Begins of the intervals, and the end of the last one."""
        return np.append(self.starts_s, self.starts_s[-1:] + self.lengths_s[-1:])

    def place(self, start_s: float) -> int | None:
        """Number of the interval that a recorded one belongs to; none outside the measured part."""
        return self.places.get(round(start_s, 6))


@dataclass(frozen=True, slots=True, eq=False)
class StepMeasures:
    """Requests of one step in the measured part."""

    plan: StepPlan
    ok: Floats  # successes by interval
    unexpected: Floats  # answers that were not as demanded, by interval
    failed: Floats  # requests without a whole answer, by interval
    response_sum: Floats
    response_squares: Floats
    service_sum: Floats
    service_squares: Floats
    response: IntervalCounts
    service: IntervalCounts
    phases: Mapping[str, IntervalCounts]  # first_byte, last_byte; empty counts in old records
    external: ExternalReport | None = (
        None  # report of an external load generator: sums and counts are its own
    )

    @property
    def not_ok(self) -> Floats:
        """Requests that did not end as expected, by interval."""
        return self.unexpected + self.failed

    @property
    def response_mean(self) -> Interval | Insufficient:
        """Mean seconds from due to done."""
        if self.external is not None:
            return Insufficient(self.external.does_not_say(NO_RESPONSE))
        return within_trial.mean_time(
            self.response_sum, self.ok, self.response, squares=self.response_squares
        )

    @property
    def service_mean(self) -> Interval | Insufficient:
        """Mean seconds from sent to done."""
        if self.external is not None and not self.external.tells_requests:
            return self.external.service_time("mean") or Insufficient(self.external.does_not_say("a mean"))
        return within_trial.mean_time(self.service_sum, self.ok, self.service, squares=self.service_squares)


@dataclass(frozen=True, slots=True, eq=False)
class StreamMeasures:
    """One stream in the measured part."""

    plan: StreamPlan
    grid: Grid
    steps: tuple[StepMeasures, ...]
    issued: int | None  # requests in the measured part; none: not known
    timed_out: int  # requests that the client gave up
    statuses: Mapping[str, int]
    in_flight: Interval | Insufficient
    phases: Mapping[str, IntervalCounts]  # lag, connect, tls, first_byte, last_byte; of the whole stream
    groups: Mapping[
        str, IntervalCounts
    ]  # completed runs, from when the first request was due to the last answer
    result: StreamResult | None  # the stream's part of the engine's result
    longest_gap_s: float | None = 0.0  # without an answer; none: not known
    external: ExternalReport | None = None  # report of an external load generator

    @property
    def ok(self) -> Floats:
        """Successes by interval."""
        return sum((step.ok for step in self.steps), np.zeros(self.grid.size))

    @property
    def not_ok(self) -> Floats:
        """Requests that did not end as expected, by interval."""
        return sum((step.not_ok for step in self.steps), np.zeros(self.grid.size))

    @property
    def throughput(self) -> Interval | Insufficient:
        """Successes per second; without an interval where the load varies by plan."""
        if self.external is not None and not self.external.tells_requests:
            return self.external.rate() or Insufficient(self.external.does_not_say(NO_SUCCESSES))
        rate = self._without_edges() or within_trial.rate(self.ok, self.grid.lengths_s)
        if self.plan.is_level or isinstance(rate, Insufficient):
            return rate
        return replace(rate, low=None, high=None)

    @property
    def successes(self) -> int:
        """Number of requests that succeeded; 0 where it is not known."""
        return int(np.nansum(self.ok))

    @property
    def rate_by_little(self) -> float:
        """Successes per second: the point of `throughput`, or what was counted where that has none."""
        by_little = self._without_edges()
        return float(self.ok.sum()) / self.grid.seconds if by_little is None else by_little.point

    def _without_edges(self) -> Interval | None:
        """Return successes per second by Little's law where edges would cut off much of a count; else none.

        Requests that take a twentieth of the measured part are cut off at its edges in bursts; the mean in
        flight over the mean service time is the same rate and has no such edges. Only where all requests
        succeed: the time of the others is not in the mean. Nor is that of requests that outlast the measured
        part, so where it differs from the count by more than all that are in flight, none was cut off by
        chance, and the count stands. Relative errors are added in squares.
        """
        mean, flying = self.all_steps().service_mean, self.in_flight
        if self.not_ok.any() or not isinstance(mean, Interval) or not isinstance(flying, Interval):
            return None
        if mean.point <= LONG * self.grid.seconds or flying.point <= 0:
            return None
        point = flying.point / mean.point
        if abs(point * self.grid.seconds - float(self.ok.sum())) > flying.point:
            return None

        def off(of_flying: float | None, of_mean: float | None) -> float | None:
            if of_flying is None or of_mean is None:
                return None
            return math.hypot(of_flying / flying.point - 1, of_mean / mean.point - 1)

        down, up = off(flying.low, mean.high), off(flying.high, mean.low)
        low, high = (
            (None if down is None else max(0.0, point * (1 - down))),
            None if up is None else point * (1 + up),
        )
        return Interval(point, low, high, mean.independent, "Little's law: in flight over mean service time")

    @property
    def failed_share(self) -> Interval | Insufficient:
        """Share of the ended requests that did not end as expected."""
        return within_trial.share(self.not_ok, self.ok + self.not_ok)

    def all_steps(self) -> StepMeasures:
        """All steps as one, for the response time of whatever a user asks."""
        if len(self.steps) == 1:
            return self.steps[0]
        return merged(self.steps)


@dataclass(frozen=True, slots=True, eq=False)
class TrialMeasures:
    """One trial."""

    source: TrialSource
    grid: Grid | None  # none: nothing was measured
    streams: tuple[StreamMeasures, ...]
    steady: Steadiness | Insufficient
    pauses: Pauses | Insufficient  # of the load
    failures: tuple[failures.Failure, ...] = ()
    later: tuple[int, int] = (0, 0)  # failed, and ended, of the load after the measured part
    resources: resources.Resources = field(default_factory=resources.Resources)
    served: server_log.Served = field(default_factory=server_log.Served)
    damage: str = ""  # why its files could not be read
    runtime: runtime_metrics.RuntimeMetrics = field(default_factory=runtime_metrics.RuntimeMetrics)
    signals: fields.SignalValues = field(default_factory=fields.SignalValues)
    ports: PortsWatch | None = None
    calls: tuple[sockets.Calls, ...] = ()
    quotas: tuple[quotas.Quota, ...] = ()
    spreads: tuple[balancer_log.Spread, ...] = ()  # of requests over replicas
    storage: storage.Storage | None = None
    memory: memory.Memory | None = None
    collectors: tuple[collectors.Collector, ...] = ()
    received: received.Received | None = None  # none: the engine counted no bytes
    connected: connected.Connected | None = None  # none: no connections were recorded
    refused: tuple[refused.Refused, ...] = ()
    external: ExternalReport | None = None  # report of an external load generator
    rows: samples.Read = samples.NOT_LOOKED_AT
    thinned: int | None = 0  # k: a row of the load stands for 2^k requests; none: none was kept
    places: tuple[gauges.GaugePlace, ...] = ()  # held by requests, as services report
    numbers: tuple[gauges.Reading, ...] = ()  # whole numbers that services export
    splits: tuple[label_splits.SplitReading, ...] = ()  # services' own metrics by the values of a label
    spans: tuple[span_times.RequestReading, ...] = ()  # services' own traces

    @property
    def reasons(self) -> tuple[str, ...]:
        """Reasons why it does not count; empty when it does."""
        return (*self.source.reasons, *([self.damage] if self.damage else []))

    @property
    def is_usable(self) -> bool:
        """True if its figures may enter an estimate."""
        return self.source.status is TrialStatus.COMPLETE and self.grid is not None and self.load is not None

    @property
    def load(self) -> StreamMeasures | None:
        """The measured load."""
        return next((stream for stream in self.streams if not stream.plan.is_probe), None)

    @property
    def probes(self) -> tuple[StreamMeasures, ...]:
        """The probes."""
        return tuple(stream for stream in self.streams if stream.plan.is_probe)

    @property
    def written_down(self) -> tuple[float, float]:
        """The part in which the monitor saw what the service wrote down about the measured part.

        A line is read at the tick after it was written; what ended within the last tick comes one later.
        """
        assert self.grid is not None  # only asked of trials that were measured
        begin, tick = float(self.grid.starts_s[0]), self.resources.tick_s
        end = float(self.grid.starts_s[-1] + self.grid.lengths_s[-1])
        return (begin + tick if begin > 0 else begin), end + tick

    @property
    def generator(self) -> Generator | None:
        """The generator's report on itself; none when it never ran."""
        return None if self.source.result is None else self.source.result.generator


def measure(source: TrialSource, window: Window = WHOLE) -> TrialMeasures:
    """Measure one trial; one that never ran or whose files are damaged has no grid and no streams.

    Args:
        source: The trial.
        window: The part of its measured part that figures are taken from, to whole recorded intervals.
    """
    return unless_damaged(_measure, source, window)


def unless_damaged(
    how: Callable[[TrialSource, Window], TrialMeasures], source: TrialSource, window: Window
) -> TrialMeasures:
    """Return a trial, measured, or the reason why its files cannot be read."""
    try:
        return how(source, window)
    except RecordError as fault:
        return nothing(source, f"{fault.message} ({fault.where})" if fault.where else fault.message)


def _later(source: TrialSource, stream: int, recorded: Counters) -> tuple[int, int]:
    """Count what was under way at the end of the measured part: failed and ended; nothing if none failed."""
    grid = grid_of(recorded)
    if grid is None or not failures.has_any(source.result):
        return 0, 0
    end_s = float(grid.edges_s[-1])
    outcomes = set(Outcome) - failures.NOT_ENDED
    rows = log_rows.ended(source, ("thinned",), end_s, log_rows.FOREVER_S, stream=stream, outcomes=outcomes)
    counts = log_rows.stands_for(rows)
    failed = int(counts[log_rows.whole(rows, "outcome") != int(Outcome.OK)].sum())
    return (failed, int(counts.sum())) if failed else (0, 0)


def nothing(source: TrialSource, damage: str = "") -> TrialMeasures:
    """A trial of which nothing is known, and why."""
    why = Insufficient(damage or "it never ran")
    return TrialMeasures(source, None, (), why, why, damage=damage)


def _measure(source: TrialSource, window: Window) -> TrialMeasures:
    recorded = source.counters() if source.result is not None else Counters()
    counters = narrowed(recorded, window)
    grid = grid_of(counters)
    if grid is None:
        is_outside = grid_of(recorded) is not None
        return nothing(
            source, "the window holds no whole interval of what was measured" if is_outside else ""
        )
    plans = streams_of(source.plan)
    streams = _measure_streams(source, plans, grid, counters)
    readings = Readings(source.readings())
    begin, end = float(grid.starts_s[0]), float(grid.starts_s[-1] + grid.lengths_s[-1])
    load = next((stream for stream in streams if not stream.plan.is_probe), None)
    paused: Pauses | Insufficient = Insufficient("no load")
    if load is not None:
        paused = standstill.read(counters, load.plan.name, load.all_steps().response, grid.seconds)
    measures = TrialMeasures(
        source=source,
        grid=grid,
        streams=streams,
        failures=failures.read(source, plans, begin, end),
        later=(0, 0) if load is None else _later(source, load.plan.index, recorded),
        steady=Insufficient("no load") if load is None else steadiness_of(load, grid, paused),
        pauses=paused,
        connected=None
        if load is None
        else connected.read(source, load.plan.index, load.result, grid.edges_s),
        refused=() if load is None else refused.read(recorded, load.plan.name),
        received=None
        if load is None
        else received.read(counters, load.plan.name, *(load.phases[kind] for kind in STEP_PHASES)),
        rows=samples.read(source, plans, counters, grid.edges_s),
        thinned=0 if load is None else log_rows.thinning(source, load.plan.index),
        places=(*gauges.read(readings, begin, end), *backend_places.read(readings, begin, end)),
        numbers=gauges.read_numbers(readings, begin, end),
        splits=label_splits.read(readings, begin, end),
        spans=span_times.read(readings.table, begin, end),
    )
    return with_readings(measures, readings, begin, end)


def with_readings(measures: TrialMeasures, readings: Readings, begin: float, end: float) -> TrialMeasures:
    """Return a trial with the monitors' readings over its measured part [begin, end], seconds since t0."""
    source = measures.source
    used = resources.read(readings, begin, end, is_driven=measures.external is not None)
    called = [name for name, placed in source.placement.services.items() if placed.is_called]
    watched = resources.read_throughout(used.services, called, begin, end)
    return replace(
        measures,
        resources=used,
        served=server_log.read(readings),
        runtime=runtime_metrics.read(readings, begin, end),
        signals=fields.read(readings, watched, begin, end),
        ports=sockets.read(readings, [stream.target for stream in source.plan.streams]),
        calls=sockets.read_calls(readings, begin, end),
        quotas=quotas.read(readings, begin, end, used.services, source.placement),
        spreads=balancer_log.read(readings, begin, end, used.services, source.entry),
        storage=storage.read(readings, begin, end, watched),
        memory=memory.read(readings, begin, end, watched),
        collectors=collectors.read(readings, begin, end, used.services),
    )


def _measure_streams(
    source: TrialSource, plans: Sequence[StreamPlan], grid: Grid, counters: Counters
) -> tuple[StreamMeasures, ...]:
    """All streams; the histograms are dropped before single requests are read."""
    but = {(plan.tag, LAG) for plan in plans if plan.is_closed}
    is_long = len(grid.places) > MOST_INTERVALS
    histograms = source.intervals(but, grid.edges_s.tolist()) if is_long else source.intervals(but)
    results = {stream.name: stream for stream in source.result.streams} if source.result else {}
    return tuple(_measure_stream(plan, grid, counters, histograms, results.get(plan.name)) for plan in plans)


def grid_of(counters: Counters) -> Grid | None:
    """The measured part in equal intervals; none when there is no such part.

    They are as long as the longest recorded one, or a multiple of it where there would be more than
    `MOST_INTERVALS`: estimates are as wide with these, and a day takes no more room than ten minutes.
    """
    rows = {
        round(row.start_s, 6): (row.start_s, row.length_s)
        for row in counters.intervals
        if row.phase == "measure" and row.length_s > 0
    }
    if not rows:
        return None
    recorded = [rows[key] for key in sorted(rows)]
    steps = np.asarray(within_trial.steps_of([length for _, length in recorded]))
    several = math.ceil((steps[-1] + 1) / MOST_INTERVALS)
    steps = np.minimum(steps // several, max(1, (steps[-1] + 1) // several) - 1)  # a rest joins the last
    begins = np.flatnonzero(np.diff(steps, prepend=-1))
    lengths = np.bincount(steps, weights=[length for _, length in recorded]).astype(np.float64)
    places = dict(zip(sorted(rows), steps.tolist(), strict=True))
    return Grid(np.array([recorded[begin][0] for begin in begins]), lengths, places)


def merged(steps: Sequence[StepMeasures]) -> StepMeasures:
    """Several steps as one population."""
    return StepMeasures(
        plan=StepPlan(-1, "all", "", ""),
        ok=_total(s.ok for s in steps),
        unexpected=_total(s.unexpected for s in steps),
        failed=_total(s.failed for s in steps),
        response_sum=_total(s.response_sum for s in steps),
        response_squares=_total(s.response_squares for s in steps),
        service_sum=_total(s.service_sum for s in steps),
        service_squares=_total(s.service_squares for s in steps),
        response=overlaid([s.response for s in steps]),
        service=overlaid([s.service for s in steps]),
        phases={kind: overlaid([s.phases[kind] for s in steps]) for kind in STEP_PHASES},
    )


def _total(parts: Any) -> Floats:
    return np.asarray(np.sum(list(parts), axis=0), dtype=np.float64)


def _measure_stream(
    plan: StreamPlan,
    grid: Grid,
    counters: Counters,
    histograms: Sequence[HistogramRow],
    result: StreamResult | None,
) -> StreamMeasures:
    rows = counters.of(plan.name, "measure")
    own = [h for h in histograms if h.stream == plan.tag]
    timed_out = sum(row.failed.get(TIMEOUT, 0) for row in rows)
    is_cut = any(row.failed.get(kind) for row in rows for kind in TIMEOUTS)
    is_cut |= result is not None and bool(result.requests.waiting)  # no steady state
    steps = [_measure_step(step, grid, rows, own) for step in plan.steps]
    if plan.is_level and not is_cut and float(grid.starts_s[0]) > 0:
        steps = [_without_the_edge(step, grid, all_ended=_all_ended(result)) for step in steps]
    return StreamMeasures(
        plan=plan,
        grid=grid,
        steps=tuple(steps),
        issued=sum(row.issued for row in rows),
        timed_out=timed_out,
        statuses=_summed(row.status for row in rows),
        in_flight=_in_flight(grid, rows),
        phases=_phases(own, grid, steps),
        groups={name: _counts(_tagged(own, name), grid, "group_response") for name in plan.groups},
        result=result,
        longest_gap_s=max((row.max_gap_s or 0.0 for row in rows), default=0.0),
    )


def _phases(
    own: Sequence[HistogramRow], grid: Grid, steps: Sequence[StepMeasures]
) -> dict[str, IntervalCounts]:
    """Lateness, connect times, first and last bytes of all steps; old records have bytes of streams only."""
    phases = {kind: _counts(own, grid, kind, klass="") for kind in (LAG, *OF_CONNECTIONS)}
    for kind in STEP_PHASES:
        whole = _counts(own, grid, kind, klass="")
        phases[kind] = whole if whole.observed else overlaid([step.phases[kind] for step in steps])
    return phases


def _all_ended(result: StreamResult | None) -> bool:
    """True if every request of a stream was answered in the end, after the measured part if not in it."""
    return result is not None and not result.requests.in_flight and not result.after_end.failed


def _without_the_edge(step: StepMeasures, grid: Grid, *, all_ended: bool) -> StepMeasures:
    """Requests in flight at the end left out where they are long: as many came in from the warm-up."""
    if step.response.observed == 0 or step.response.censored == 0:
        return step
    longest = float(step.response.upper.max())
    oldest = float(step.response.censored_age.max())
    if not within_trial.edge_is_cut(longest, oldest, grid.seconds, all_ended=all_ended):
        return step
    return replace(step, response=step.response.finished(), service=step.service.finished())


def _summed(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for each in counts:
        for key, count in each.items():
            sums[key] = sums.get(key, 0) + count
    return sums


def _in_flight(grid: Grid, rows: Sequence[StreamCounters]) -> Interval | Insufficient:
    sums = np.zeros(grid.size)
    for row in rows:
        place = grid.place(row.start_s)
        if place is not None:
            sums[place] += row.in_flight_integral_s
    return within_trial.mean(sums, grid.lengths_s)


def _given_up(row: StreamCounters) -> float:
    """Share of an interval's censored requests that timed out; the others were under way when it ended."""
    failed, censored = (sum(cell.count for cell in row.of_class(klass)) for klass in ("failed", "censored"))
    return min(1.0, max(0.0, (sum(row.failed.values()) - failed) / censored))


def _measure_step(
    step: StepPlan, grid: Grid, rows: Sequence[StreamCounters], histograms: Sequence[HistogramRow]
) -> StepMeasures:
    ok, unexpected, failed = (np.zeros(grid.size) for _ in range(3))
    response_sum, response_squares, service_sum, service_squares = (np.zeros(grid.size) for _ in range(4))
    for row in rows:
        place = grid.place(row.start_s)
        if place is None:
            continue
        cell = row.cell(step.index, SUCCESS)
        ok[place] += cell.count
        response_sum[place] += cell.response_sum_s
        response_squares[place] += cell.response_sumsq_s2
        service_sum[place] += cell.service_sum_s
        service_squares[place] += cell.service_sumsq_s2
        for klasses, counts in ((UNEXPECTED, unexpected), (FAILED, failed)):
            for klass in klasses:
                counts[place] += row.cell(step.index, klass).count
        if late := row.cell(step.index, "censored").count:
            failed[place] += late * _given_up(row)
    own = [h for h in histograms if h.step in (step.tag, str(step.index))]
    return StepMeasures(
        plan=step,
        ok=ok,
        unexpected=unexpected,
        failed=failed,
        response_sum=response_sum,
        response_squares=response_squares,
        service_sum=service_sum,
        service_squares=service_squares,
        response=_counts(own, grid, "response"),
        service=_counts(own, grid, "service"),
        phases={kind: _counts(own, grid, kind, censored="") for kind in STEP_PHASES},
    )


def _tagged(histograms: Sequence[HistogramRow], name: str) -> list[HistogramRow]:
    """Return the histograms of a step or group."""
    return [h for h in histograms if h.step == tag_part(name)]


def _counts(
    histograms: Sequence[HistogramRow],
    grid: Grid,
    kind: str,
    klass: str = SUCCESS,
    censored: str = "censored",
) -> IntervalCounts:
    def of(wanted: str) -> list[tuple[int, np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
        rows = []
        for h in histograms:
            place = grid.place(h.start_s)
            if h.klass == wanted and h.kind == kind and place is not None:
                rows.append((place, h.values.astype(np.int64), h.counts.astype(np.int64)))
        return rows

    return counts_from_histograms(
        grid.size, of(klass), of(censored) if censored else [], seconds=grid.seconds
    )


def steadiness_of(
    load: StreamMeasures, grid: Grid, paused: Pauses | Insufficient
) -> Steadiness | Insufficient:
    """Return whether the mean response time settles, on points of at least a few requests each.

    For an external load it is the mean service time, the only one reported. Intervals with pauses that
    keep a period are left out: each would be two shifts of the level.
    """
    if not load.plan.is_level:
        return Insufficient("the load changes by plan: there is no level to settle at")
    steps = load.all_steps()
    is_periodic = isinstance(paused, Pauses) and paused.beat is not None
    seen = standstill.without(paused, grid.edges_s) if is_periodic else np.ones(grid.size)
    total = float((steps.ok * seen).sum())
    points = min(grid.size, int(total / PER_POINT))
    if points < SHORTEST_SERIES:
        return Insufficient(f"{total:.0f} requests: too few to distinguish a drift from noise")
    place = np.floor(np.arange(grid.size) * points / grid.size).astype(np.int64)
    counts = np.bincount(place, weights=steps.ok * seen, minlength=points)
    times = steps.response_sum if load.external is None else steps.service_sum
    sums = np.bincount(place, weights=times * seen, minlength=points)
    series = np.divide(sums, counts, out=np.full(points, np.nan), where=counts > 0)
    return steadiness(series, is_periodic=is_periodic)
