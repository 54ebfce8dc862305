"""The table beneath a chart says what the chart says, and every chart has one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loadlens.model.finding import Estimate
from loadlens.model.report import Chart
from loadlens.present import charts
from loadlens.present.charts import timeline
from tests.unit.report.write import sample_charts as sample


@pytest.mark.parametrize("chart", sample.all_charts(), ids=lambda c: c.kind)
def test_every_chart_has_a_table_of_full_rows(chart: Chart) -> None:
    table = charts.table(replace(chart, table=None))

    assert table is not None
    assert all(len(row) == len(table.columns) for row in table.rows)


def test_the_reports_own_table_goes_first() -> None:
    chart = sample.bystander()

    assert charts.table(chart) is chart.table


def test_times_stand_in_seconds_with_their_interval() -> None:
    table = charts.table(replace(sample.bystander(), table=None))

    assert table is not None
    figure = table.rows[1][2]
    assert isinstance(figure, Estimate)
    assert (figure.unit, figure.point, figure.low, figure.high) == ("s", 0.341, 0.322, 0.361)


def test_a_heat_map_is_a_dozen_stretches_whose_requests_add_up() -> None:
    chart = sample.heat()
    table = charts.table(chart)

    assert table is not None
    assert len(table.rows) == 12
    numbers: list[Any] = [row["n"] for row in chart.datasets["cells"]]
    assert sum(int(str(row[1])) for row in table.rows) == sum(numbers)


def test_resources_say_how_many_readings_were_missed() -> None:
    table = charts.table(sample.resources())

    assert table is not None
    # the sample misses seconds 30 to 35
    assert {row[-1] for row in table.rows} == {6}


def test_a_long_heat_map_merges_columns_and_loses_no_request() -> None:
    cells = [{"t": 0.25 * i, "t2": 0.25 * i + 0.25, "lo": 10.0, "hi": 20.0, "n": 3} for i in range(4000)]
    chart = Chart("heat", "a", "h", {"cells": tuple(cells)}, {}, "c")

    drawing = charts.draw(chart)

    drawn: list[dict[str, Any]] = drawing.spec["vconcat"][0]["layer"][1]["data"]["values"]
    # 1000 s in at most 120 columns: the next round step over 8.3 s is 10 s
    assert len(drawn) == 100
    assert sum(row["n"] for row in drawn) == 12_000
    assert drawing.notes == ("a column is 10 s",)


def test_a_stretch_that_was_not_read_stays_so_when_readings_are_merged() -> None:
    rows = [{"t": i, "value": None if 300 <= i < 600 else 1.0} for i in range(900)]

    merged = timeline._merged_readings(rows, "value", 300)

    assert len(merged) == 300
    assert [row["value"] for row in merged].count(None) == 100


def test_stretches_of_a_heat_map_are_whole_columns_of_the_measured_part() -> None:
    # 3 s of warm-up are cut; 8 s in columns of 1 s, none in the sixth
    cells = [{"t": 3.0 + i, "t2": 4.0 + i, "lo": 10.0, "hi": 20.0, "n": i + 1} for i in range(8) if i != 5]

    table = charts.table(Chart("heat", "a", "h", {"cells": tuple(cells)}, {}, "c"))

    assert table is not None
    counts = [(str(row[0]), row[1]) for row in table.rows]
    assert counts[0] == ("3–4 s", 1)
    assert counts[5] == ("8–9 s", 0)
    assert counts[-1] == ("10–11 s", 8)
    assert len(counts) == 8


def test_a_curve_that_ends_in_the_name_of_its_metric_has_room_for_it() -> None:
    rows = [{"metric": "run=c100", "nines": n, "ms": 1.0, "lo": None, "hi": None} for n in (2.0, 10.0)]

    named = charts.spec(Chart("quantiles", "a", "h", {"curve": tuple(rows)}, {}, "c"))
    short = charts.spec(
        Chart("quantiles", "a", "h", {"curve": tuple({**r, "metric": "r"} for r in rows)}, {}, "c")
    )

    # the fonts of a browser are wider than those that the picture is measured with, by the same share
    assert named["padding"]["right"] > short["padding"]["right"]
