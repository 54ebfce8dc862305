"""What a report says of a case from inside: over three trials, by hand."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from loadlens.model.finding import Estimate
from loadlens.model.report import CaseDetail, Report, Table
from loadlens.present.charts import columns
from loadlens.report import build
from loadlens.report.write import html, markdown
from loadlens.report.write.cells import table_view
from tests.unit.measure.records import record
from tests.unit.whatif import services

LOOP = {"service": "web", "replica": "1", "pid": "100", "thread": "0"}


def told(busy: float, worst: float, requests: tuple[int, int]) -> list[object]:
    """A loop that is busy for a share of each second, and a balancer before two replicas."""
    rows: list[tuple[int, str, str, str, str, float]] = []

    def say(second: int, source: str, metric: str, labels: dict[str, str], value: float) -> None:
        rows.append((second * 1_000_000_000, source, metric, json.dumps(labels), "", value))

    for second in range(16):
        say(second, "node", "loop_active_s", LOOP, busy * second)
        say(second, "node", "loop_idle_s", LOOP, (1 - busy) * second)
        say(second, "node", "loop_lag_max_s", LOOP, worst if second == 9 else 0.001)
        say(second, "monitor", "cost_cpu_s", {}, 0.02 * second)
        for replica, count in enumerate(requests, start=1):
            own = {"service": "lb", "backend": f"web.{replica}", "status": "200"}
            say(second, "balancer", "requests", own, float(count if second == 15 else 0))
            say(second, "balancer", "backend_seconds", own, 0.1 * count if second == 15 else 0.0)
    return list(rows)


@cache
def report() -> Report:
    run = record(lambda load, _: services.blocking_loop(load), users=(5,), trials=3)
    for trial, busy, worst, requests in zip(
        run.trials, (0.5, 0.6, 0.7), (0.2, 0.9, 0.3), ((30, 10), (30, 10), (60, 20)), strict=True
    ):
        trial.further_readings = told(busy, worst, requests)
    return build.report(run)


def detail() -> CaseDetail:
    return report().details[0]


def row(table: Table | None, *names: str) -> Any:
    assert table is not None
    (rows,) = [cells for cells in table.rows if cells[: len(names)] == names]
    return rows


def test_the_mean_is_over_trials_and_the_highest_is_of_them_all() -> None:
    busy, worst = (row(detail().inside, "web", what) for what in ("event loop busy", "event-loop lag, worst"))

    assert isinstance(busy[2], Estimate)
    assert busy[2].point == pytest.approx(0.6)
    assert busy[2].trials == 3
    # t with 2 degrees of freedom: 4.303 x 0.1 / sqrt(3)
    assert busy[2].high == pytest.approx(0.6 + 0.2484, abs=0.001)
    assert isinstance(worst[3], Estimate)
    assert worst[3].point == 0.9


def test_each_figure_of_the_table_stands_in_its_own_unit() -> None:
    table = detail().inside
    assert table is not None
    shown = {cells[1].text: (cells[2].text, cells[3].text) for cells in table_view(table).rows}

    assert shown["event loop busy"] == ("60 %", "70.0 %")
    assert shown["event-loop lag, worst"] == ("not measured", "900 ms")
    assert "the monitors took 0.02 cores" in table.note.replace("0.0200", "0.02")


def test_requests_are_counted_for_each_replica_behind_a_balancer() -> None:
    one, two = (row(detail().backends, "lb", name) for name in ("web.1", "web.2"))

    assert (one[2], two[2]) == (120, 40)
    assert isinstance(one[3], Estimate)
    assert isinstance(two[4], Estimate)
    assert one[3].point == pytest.approx(0.75)
    assert two[4].point == pytest.approx(0.1)


def test_the_chart_shows_one_trial_with_its_warm_up_and_says_the_most_telling() -> None:
    (chart,) = [chart for chart in detail().charts if chart.anchor.startswith("chart-inside")]

    assert columns.faults(chart) == []
    assert chart.headline == "web: event loop busy 50.0 %"
    assert {r["resource"] for r in chart.datasets["readings"]} == {
        "event loop busy, %",
        "event-loop lag, worst in 1 s, ms",
    }
    assert chart.datasets["shade"][0]["t2"] == 5.0


def test_page_and_text_hold_both_tables() -> None:
    pages = (html.page(report()), markdown.page(report()))

    for page in pages:
        assert "Who got the requests" in page
        assert "Seen from inside" in page
        assert "web.2" in page


def test_a_record_without_such_readings_has_neither() -> None:
    plain = build.report(record(lambda load, _: services.blocking_loop(load), users=(5,), trials=1)).details[
        0
    ]

    assert (plain.inside, plain.backends) == (None, None)
    assert not [chart for chart in plain.charts if chart.anchor.startswith("chart-inside")]
