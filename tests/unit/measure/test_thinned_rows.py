"""Figures of a record that keeps a row of one in four requests, of none, and of every one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import polars as pl
import pytest

from loadlens.measure import metrics, whole_run
from loadlens.measure.curves import failure_modes
from loadlens.model.finding import Estimate, Figure, NotMeasured, Undecided
from loadlens.report.build.conditions import rows_kept
from loadlens.report.build.details import failures_counted
from tests.unit.measure.records import Trial, record
from tests.unit.whatif import services


def some_fail(load: services.Load, _: int) -> services.Trace:
    """Every fifth request is answered with 500."""
    trace = services.fair_threads(load, work_s=0.01)
    requests = [r._replace(status=500 if n % 5 == 0 else r.status) for n, r in enumerate(trace.requests)]
    return replace(trace, requests=requests)


def every_row(rows: pl.DataFrame) -> pl.DataFrame:
    return rows


def no_rows(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.clear()


def one_in_four(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.gather_every(4).with_columns(thinned=pl.lit(2, pl.UInt8))


METRICS = ("throughput", "response_time.p99", "response_time.mean", "failed.share", "unexpected.share",
           "body_bytes.mean", "body_bytes.max", "ab_failed.share")  # fmt: skip


@dataclass(frozen=True)
class Read:
    """Figures, failures and limits of a case as a report has them."""

    figures: dict[str, Figure]
    failures: Figure | int
    limits: list[str]


@cache
def read(kept: Callable[[pl.DataFrame], pl.DataFrame]) -> Read:
    """Measure a case of one trial whose log of requests has these rows, and bodies that differ."""
    whole = Trial.samples

    def samples(self: Trial, columns: Sequence[str] = ()) -> pl.DataFrame:
        rows = whole(self, [*dict.fromkeys([*columns, "done_ns"])])
        return kept(rows.with_columns(body_bytes=pl.col("done_ns").hash(1) % 1_000)).select(columns)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Trial, "samples", samples)
        run = record(some_fail, users=(8,), trials=1, seconds=30.0)
        (case,) = whole_run.measured(run).cases
        figures = {name: metrics.figure_of(case, name, None) for name in METRICS}
        mode = next(iter(failure_modes(case)), None)
        return Read(figures, 0 if mode is None else failures_counted(mode), rows_kept([case]))


def width(figure: Estimate) -> float:
    assert figure.low is not None
    assert figure.high is not None
    return figure.high - figure.low


def test_a_thinned_log_widens_what_is_read_from_rows_and_nothing_else() -> None:
    whole = read(every_row)
    thinned = read(one_in_four)

    of_rows = {"body_bytes.mean", "body_bytes.max", "ab_failed.share"}
    assert {name for name in METRICS if whole.figures[name] != thinned.figures[name]} == of_rows
    before, after = (figures["body_bytes.mean"] for figures in (whole.figures, thinned.figures))
    assert isinstance(before, Estimate)
    assert isinstance(after, Estimate)
    assert after.samples == pytest.approx(before.samples / 4, rel=0.05)
    # A quarter of the rows, independent of each other: errors are twice as large.
    widths = [width(figure) for figure in (before, after)]
    assert widths[1] / widths[0] == pytest.approx(2, rel=0.4)
    assert after.low is not None
    assert after.high is not None
    assert after.low < before.point < after.high
    assert after.method.endswith("from 1 of every 4 requests")
    largest = thinned.figures["body_bytes.max"]
    assert isinstance(largest, Estimate)
    assert largest.high is None
    assert "1 of every 4 requests has a row" in thinned.limits[0]
    assert whole.limits == []


def test_failures_of_a_thinned_log_have_the_interval_of_their_rows() -> None:
    exact = read(every_row).failures
    estimated = read(one_in_four).failures

    assert isinstance(exact, int)
    assert isinstance(estimated, Estimate)
    assert estimated.low is not None
    assert estimated.high is not None
    assert estimated.point == 4 * estimated.samples
    # F. Garwood, Biometrika 28 (1936): for a count of n about n - 1.96 sqrt(n) to n + 1.96 sqrt(n) + 3.
    spread = 4 * 1.96 * estimated.samples**0.5
    assert estimated.high - estimated.low == pytest.approx(2 * spread, rel=0.1)
    assert estimated.low < exact < estimated.high


def test_without_rows_counts_and_times_are_those_of_every_request() -> None:
    whole = read(every_row)
    none = read(no_rows)

    of_rows = ("body_bytes.mean", "body_bytes.max", "ab_failed.share")
    assert all(whole.figures[name] == none.figures[name] for name in METRICS if name not in of_rows)
    bodies = none.figures["body_bytes.mean"]
    assert isinstance(bodies, Undecided)
    assert bodies.reason == "the record keeps no rows of single requests"
    assert isinstance(none.figures["ab_failed.share"], NotMeasured)
    assert "keeps no rows" in none.limits[0]
