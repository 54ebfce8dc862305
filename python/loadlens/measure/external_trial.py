"""Measures of a trial with an external load generator, from its report and the monitors' readings.

Most programs report a load as a whole: the measured part is then one interval, times are the program's own
figures, and their variation within the trial is unknown. A program that lists every request yields intervals
like our engine's, of service time: from when a request was sent.
"""

from __future__ import annotations

import numpy as np

from loadlens.estimate.interval import Floats, Insufficient
from loadlens.estimate.interval_counts import IntervalCounts, counts_from_values
from loadlens.measure.external_report import NO_RESPONSE, ExternalReport, external_report_of
from loadlens.measure.requests import failures
from loadlens.measure.requests.log_rows import whole
from loadlens.measure.source import StepPlan, StreamPlan, TrialSource, streams_of
from loadlens.measure.trial import (
    OF_CONNECTIONS,
    STEP_PHASES,
    TIMEOUT,
    Grid,
    StepMeasures,
    StreamMeasures,
    TrialMeasures,
    nothing,
    steadiness_of,
    unless_damaged,
    with_readings,
)
from loadlens.measure.window import WHOLE
from loadlens.model.study import Window
from loadlens.model.trial import Outcome
from loadlens.signals.read.trial_series import Readings

INTERVAL_S = 0.25  # as our engine cuts the first minute
LONG_INTERVAL_S = 1.0
FIRST_MINUTE_S = 60.0
NO_WINDOW = "its figures are of the whole load: no window can be taken of it"


def measure(source: TrialSource, window: Window = WHOLE) -> TrialMeasures:
    """Measure one driven trial; one whose files are damaged has no grid and no streams.

    Args:
        source: The trial; its engine's result names a driver.
        window: The part that figures are to be taken from; nothing can be taken from a part of it.
    """
    return unless_damaged(_measure, source, window)


def _measure(source: TrialSource, window: Window) -> TrialMeasures:
    plan = streams_of(source.plan)[0]
    external = external_report_of(source.result, int(plan.load))
    assert external is not None, "called for driven trials only"
    if window != WHOLE:
        return nothing(source, f"{external.name}: {NO_WINDOW}")
    if external.seconds <= 0:
        return nothing(source, f"{external.name} measured nothing")
    # One interval; or equal ones, where single requests are reported
    width = INTERVAL_S if external.seconds <= FIRST_MINUTE_S else LONG_INTERVAL_S
    size = max(1, int(external.seconds / width)) if external.tells_requests else 1
    starts = np.arange(size, dtype=np.float64) * width
    lengths = np.diff(np.append(starts, external.seconds)).astype(np.float64)  # the last takes in the rest
    grid = Grid(starts, lengths, {})
    load = _stream(plan, grid, source, external)
    unknown = Insufficient(external.does_not_say("how its times varied"))
    # When single answers came is known of some programs; that no answer was due meanwhile is not.
    paused = Insufficient(external.does_not_say(NO_RESPONSE))
    measures = TrialMeasures(
        source=source,
        grid=grid,
        streams=(load,),
        failures=failures.read(source, (plan,), 0.0, external.seconds) if external.tells_requests else (),
        steady=steadiness_of(load, grid, paused) if external.tells_requests else unknown,
        pauses=paused,
        external=external,
    )
    return with_readings(measures, Readings(source.readings()), 0.0, external.seconds)


def _stream(plan: StreamPlan, grid: Grid, source: TrialSource, external: ExternalReport) -> StreamMeasures:
    step = _of_requests(plan.steps[0], grid, source, external)
    if step is None:
        step = _of_whole(plan.steps[0], grid, external)
    return StreamMeasures(
        plan=plan,
        grid=grid,
        steps=(step,),
        issued=None,
        timed_out=sum(error.count for name, error in external.load.errors.items() if name == TIMEOUT),
        statuses=external.load.status or {},
        in_flight=Insufficient(external.does_not_say("how many were in flight")),
        phases={kind: _none(grid) for kind in (*OF_CONNECTIONS, *STEP_PHASES)},
        groups={},
        result=None,
        longest_gap_s=None,
        external=external,
    )


def _of_whole(plan: StepPlan, grid: Grid, external: ExternalReport) -> StepMeasures:
    """Counts of the whole load; NaN where they are not reported."""
    return StepMeasures(
        plan=plan,
        ok=_single(external.counts.ok),
        unexpected=_single(external.counts.unexpected_status),
        failed=_single(external.counts.failed),
        response_sum=_single(None),
        response_squares=_single(None),
        service_sum=_single(None),
        service_squares=_single(None),
        response=_none(grid),
        service=_none(grid),
        phases={kind: _none(grid) for kind in STEP_PHASES},
        external=external,
    )


def _of_requests(
    plan: StepPlan, grid: Grid, source: TrialSource, external: ExternalReport
) -> StepMeasures | None:
    """Return single requests by the interval in which each ended; none where they are not reported."""
    if not external.tells_requests:
        return None
    names = ("sent_ns", "done_ns", "outcome")
    rows = source.samples(names)
    sent, done, outcome = (whole(rows, name) for name in names)
    seconds = (done - sent) / 1e9
    place = np.clip(np.searchsorted(grid.starts_s, done / 1e9, side="right") - 1, 0, grid.size - 1)
    ok = outcome == int(Outcome.OK)

    def summed(chosen: np.ndarray, weights: Floats | None = None) -> Floats:
        kept = None if weights is None else weights[chosen]
        return np.bincount(place[chosen], weights=kept, minlength=grid.size).astype(np.float64)

    unknown = np.full(grid.size, np.nan)
    return StepMeasures(
        plan=plan,
        ok=summed(ok),
        unexpected=summed(outcome == int(Outcome.UNEXPECTED_STATUS)),
        failed=summed(outcome == int(Outcome.UNCLASSED)),
        response_sum=unknown,
        response_squares=unknown,
        service_sum=summed(ok, seconds),
        service_squares=summed(ok, seconds**2),
        response=_none(grid),
        service=counts_from_values(grid.size, place[ok], seconds[ok]),
        phases={kind: _none(grid) for kind in STEP_PHASES},
        external=external,
    )


def _single(count: int | None) -> Floats:
    return np.array([np.nan if count is None else float(count)])


def _none(grid: Grid) -> IntervalCounts:
    return counts_from_values(grid.size, np.zeros(0, dtype=np.int64), np.zeros(0))
