"""The measured part of a trial: its grid, its edges, and what the counters say of it."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from loadlens.errors import RecordError
from loadlens.estimate.interval import Interval
from loadlens.measure.case import CaseMeasures
from loadlens.measure.metrics import figure_of
from loadlens.measure.source import study_of
from loadlens.measure.trial import Grid, TrialMeasures, grid_of, measure
from loadlens.model.counters import Cell, Counters, Phase, StreamCounters
from loadlens.model.finding import Estimate
from loadlens.model.study import METRICS, Edge, Window
from tests.unit.measure.records import Histogram, Json, Trial, hdr, record
from tests.unit.whatif import services


def row(start: float, length: float, phase: Phase = "measure") -> StreamCounters:
    return StreamCounters(start, length, phase, "load")


def grid(*rows: StreamCounters) -> Grid | None:
    return grid_of(Counters(rows))


def test_the_grid_holds_the_measured_part_only() -> None:
    measured = grid(row(0.0, 1.0, "warmup"), *(row(1.0 + i, 1.0) for i in range(5)), row(6.0, 1.0, "drain"))

    assert measured is not None
    assert (measured.size, measured.seconds) == (5, 5.0)
    assert measured.place(0.0) is None
    assert measured.place(1.0) == 0


def test_short_intervals_are_joined_to_the_length_of_the_longest() -> None:
    measured = grid(*(row(0.25 * i, 0.25) for i in range(8)), row(2.0, 1.0), row(3.0, 0.3))

    assert measured is not None
    assert measured.lengths_s.tolist() == pytest.approx([1.0, 1.0, 1.3])  # the rest is no interval of its own
    assert measured.place(0.75) == 0
    assert measured.place(3.0) == 2


def test_a_trial_that_never_measured_has_no_grid() -> None:
    assert grid(row(0.0, 1.0, "warmup")) is None


def one_trial(users: int = 20) -> Trial:
    return record(lambda load, _: services.blocking_loop(load), users=(users,), trials=1).trials[0]


def in_flight_at_the_end(trial: Trial, age_s: float, state: str = "in_flight") -> TrialMeasures:
    """The trial with ten requests that are still under way at its end, or still wait to be sent."""

    class Unfinished(Trial):
        def intervals(
            self, but: Container[tuple[str, str]] = (), edges_s: Sequence[float] = ()
        ) -> list[Histogram]:
            values, counts = hdr(np.full(10, age_s))
            last = self.seconds - 0.25
            late = [
                Histogram(last, 0.25, "load", self.names.step, "censored", kind, values, counts)
                for kind in ("response", "service")
            ]
            return super().intervals() + late

        def _stream_result(self, index: int) -> Json:
            made = super()._stream_result(index)
            names = ("due", "waiting") if state == "waiting" else ("due", "issued", "in_flight")
            counts = {name: made["requests"][name] + 10 for name in names}
            return made | {"requests": made["requests"] | counts} if index == 0 else made

    return measure(Unfinished(**{name: getattr(trial, name) for name in Trial.__dataclass_fields__}))


def test_a_trial_with_damaged_files_is_shown_with_the_reason_and_used_for_nothing() -> None:
    class Damaged(Trial):
        def readings(self) -> pl.DataFrame:
            raise RecordError("damaged: 12 bytes, sealed with 40", where="block-1/readings.parquet")

    source = one_trial()
    measured = measure(Damaged(**{name: getattr(source, name) for name in Trial.__dataclass_fields__}))

    assert not measured.is_usable
    assert measured.reasons == ("damaged: 12 bytes, sealed with 40 (block-1/readings.parquet)",)


def test_long_requests_at_the_end_are_an_edge_and_do_not_hide_the_mean() -> None:
    whole, edged = measure(one_trial()), in_flight_at_the_end(one_trial(), 4.4)

    assert whole.load is not None
    assert edged.load is not None
    assert edged.load.all_steps().response_mean == whole.load.all_steps().response_mean


def test_requests_that_still_wait_to_be_sent_show_that_the_load_is_not_steady() -> None:
    waiting = in_flight_at_the_end(one_trial(), 4.4, "waiting")

    assert waiting.load is not None
    assert waiting.load.all_steps().response.censored == 10


def test_a_request_far_older_than_all_others_leaves_a_lower_bound() -> None:
    hung = in_flight_at_the_end(one_trial(), 14.0)

    assert hung.load is not None
    mean = hung.load.all_steps().response_mean
    assert isinstance(mean, Interval)
    assert mean.high is None


def test_without_a_warm_up_unfinished_requests_stay_in_the_mean() -> None:
    trial = one_trial()
    trial.planned["duration_ns"] += trial.planned["warmup_ns"]
    trial.planned["warmup_ns"] = 0

    edged = in_flight_at_the_end(trial, 4.4)

    assert edged.load is not None
    assert edged.load.all_steps().response.censored == 10


def test_the_rate_of_long_requests_is_that_of_littles_law() -> None:
    load = measure(one_trial()).load

    assert load is not None
    assert load.rate_by_little == pytest.approx(1 / 0.204, rel=0.02)  # 0.2 s of work, 4 probes of 1 ms each


def test_the_rate_of_short_requests_is_counted() -> None:
    load = measure(one_trial(users=1)).load

    assert load is not None
    assert load.rate_by_little == float(load.ok.sum()) / load.grid.seconds


def test_requests_that_outlast_the_trial_leave_the_rate_to_the_count() -> None:
    """Two users answered every 0.75 s, and 18 that wait: 2.7/s, not 20 in flight by 0.6 s each."""
    load = measure(record(lambda load, _: services.starving(load), users=(20,), trials=1).trials[0]).load

    assert load is not None
    assert load.rate_by_little == pytest.approx(2 / 0.75, rel=0.05)
    assert isinstance(load.throughput, Interval)
    assert load.throughput.point == load.rate_by_little


@pytest.mark.parametrize("metric", METRICS)
def test_every_metric_of_a_study_is_answered(metric: str) -> None:
    run = record(lambda load, _: services.blocking_loop(load), users=(20,), trials=1)
    case = CaseMeasures(study_of(run).cases[0], (measure(run.trials[0]),))

    assert figure_of(case, metric, "order") is not None
    assert figure_of(case, metric, None) is not None
    assert figure_of(case, metric, "ping") is not None


def test_failed_and_unexpected_are_told_apart() -> None:
    run = record(lambda load, _: services.behind_lock(load, timeout_s=2.0), users=(20,), trials=1)
    case = CaseMeasures(study_of(run).cases[0], (measure(run.trials[0]),))

    unexpected, failed = figure_of(case, "unexpected.share", None), figure_of(case, "failed.share", None)

    assert isinstance(unexpected, Estimate)
    assert isinstance(failed, Estimate)
    assert unexpected.point > 0.3
    assert failed.point == 0.0


def with_histograms(*more: tuple[str, str, str, float]) -> TrialMeasures:
    """A measured trial with ten values each of (step, class, kind, seconds) besides its own."""
    trial = one_trial()

    class Longer(Trial):
        def intervals(
            self, but: Container[tuple[str, str]] = (), edges_s: Sequence[float] = ()
        ) -> list[Histogram]:
            last = self.seconds - 0.25
            own = [h for h in super().intervals() if h.kind not in ("first_byte", "last_byte")]
            return own + [
                Histogram(last, 0.25, "load", step, klass, kind, *hdr(np.full(10, seconds)))
                for step, klass, kind, seconds in more
            ]

    return measure(Longer(**{name: getattr(trial, name) for name in Trial.__dataclass_fields__}))


def test_first_and_last_bytes_are_those_of_their_step() -> None:
    step = one_trial().names.step

    measured = with_histograms((step, "ok", "first_byte", 0.020), (step, "ok", "last_byte", 0.003))

    assert measured.load is not None
    phases = measured.load.steps[0].phases
    assert (phases["first_byte"].observed, phases["last_byte"].observed) == (10, 10)
    assert phases["first_byte"].upper.max() == pytest.approx(0.020, rel=0.001)
    assert measured.load.phases["last_byte"].upper.max() == pytest.approx(0.003, rel=0.001)


def test_an_old_record_has_the_first_byte_of_its_stream_only() -> None:
    measured = with_histograms(("", "", "first_byte", 0.020))

    assert measured.load is not None
    assert measured.load.steps[0].phases["first_byte"].observed == 0
    assert measured.load.phases["first_byte"].observed == 10
    assert measured.load.phases["last_byte"].observed == 0


def test_figures_of_a_window_are_those_of_its_intervals_alone() -> None:
    trial = one_trial(users=1)
    whole = measure(trial)
    assert whole.grid is not None
    begin, length = float(whole.grid.starts_s[0]), whole.grid.seconds
    rows = trial.counters().of("load", "measure")
    inside = [row for row in rows if begin + 2.0 <= row.start_s < begin + 5.0]  # intervals of 0.25 s

    measured = measure(trial, Window(Edge(seconds=2.0), Edge(seconds=5.0)))
    shared = measure(trial, Window(Edge(share=2.0 / length), Edge(share=5.0 / length)))

    assert measured.load is not None
    assert shared.load is not None
    ok = sum(row.ok for row in inside)
    assert 0 < ok < sum(row.ok for row in rows)
    assert measured.load.grid.seconds == pytest.approx(3.0)
    assert measured.load.ok.sum() == ok == shared.load.ok.sum()
    assert measured.load.all_steps().response.observed == ok


def test_a_window_in_which_nothing_was_measured_gives_no_figures() -> None:
    measured = measure(one_trial(), Window(Edge(seconds=10_000.0)))

    assert not measured.is_usable
    assert measured.reasons == ("the window holds no whole interval of what was measured",)


def test_requests_that_timed_out_failed_and_those_under_way_at_the_end_did_not() -> None:
    from loadlens.measure.trial import _given_up

    counts = {"0.ok": 5, "0.failed": 2, "0.censored": 8, "1.censored": 2}
    cells = {name: Cell(count) for name, count in counts.items()}

    # 2 resets are failed already; of ten that are only known to have lasted, four timed out
    assert _given_up(replace(row(0.0, 1.0), cells=cells, failed={"reset": 2, "timeout": 4})) == 0.4
    assert _given_up(replace(row(0.0, 1.0), cells=cells, failed={"reset": 2})) == 0.0
