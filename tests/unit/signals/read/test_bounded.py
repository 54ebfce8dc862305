"""Which metrics of a monitor with too many series are left out: whole ones, its own last."""

from __future__ import annotations

import polars as pl
import pytest

from loadlens.signals.read import trial_series
from loadlens.signals.read.trial_series import Readings, bounded


def rows(**series: int) -> pl.DataFrame:
    """Readings of metrics with so many series each, two of each series."""
    return pl.DataFrame(
        [
            (second * 10**9, "scrape", metric, f'{{"id":"{number}"}}', "", 1.0)
            for second in range(2)
            for metric, count in series.items()
            for number in range(count)
        ],
        schema=["time_ns", "source", "metric", "labels", "unit", "value"],
        orient="row",
    )


def kept(table: pl.DataFrame, first: tuple[str, ...] = ()) -> tuple[set[str], tuple[str, ...]]:
    within, left_out = bounded(table, "scrape", first)
    return set(within["metric"]), left_out


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_series, "MOST_SERIES", 10)


def test_as_many_series_as_are_read_are_all_kept() -> None:
    assert kept(rows(a=4, b=6)) == ({"a", "b"}, ())


def test_a_metric_is_left_out_whole_and_costs_no_other() -> None:
    assert kept(rows(by_id=11, a=4, b=6)) == ({"a", "b"}, ("by_id",))


def test_metrics_of_the_monitor_itself_are_kept_before_others() -> None:
    table = rows(**{f"of_{n}": 1 for n in range(12)}, scrapes=1)

    within, left_out = kept(table)

    assert "scrapes" in within
    assert left_out == ("of_9", "of_10", "of_11")


def test_what_a_study_asks_for_is_kept_before_others() -> None:
    assert kept(rows(a=4, asked=8), first=("asked",)) == ({"asked"}, ("a",))


def test_readings_say_what_they_left_out() -> None:
    readings = Readings(rows(by_id=11, a=4))

    assert not readings.exported("by_id")
    assert len(readings.exported("a")) == 4
    assert list(readings.left_out()) == ["scrape: by_id left out: more than 10 series in a trial"]
