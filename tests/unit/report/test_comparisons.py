"""Comparisons that a study asks for, over a simulated service whose rates are known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loadlens.model.report import Chart, Report
from loadlens.present import charts
from loadlens.report import build
from tests.unit.measure.records import record
from tests.unit.whatif import services


def reported(*compare: dict[str, Any], published: list[dict[str, str]] | None = None) -> Report:
    run = record(lambda load, _: services.fair_threads(load, cores=1), users=(1, 20), trials=1)
    study = run.study | {"report": {"charts": [], "compare": list(compare)}}
    if published is not None:
        study["published"] = {"file": "p.csv", "cores": None, "rows": published}
    return build.report(replace(run, study=study))


def of(report: Report) -> list[Chart]:
    return [chart for chart in report.charts if chart.anchor.startswith("chart-compare-")]


def test_one_figure_of_every_case_stands_side_by_side_and_in_the_table_of_cases() -> None:
    report = reported({"metric": "response_time.max", "experiment": "rush", "step": None})

    (chart,) = of(report)
    assert [row["case"] for row in chart.datasets["rows"]] == [
        "processes=1, users=1",
        "processes=1, users=20",
    ]
    one, twenty = (row["value"] for row in chart.datasets["rows"])
    assert one < twenty
    assert ("response_time.max:", "largest response time", "s") in report.matrices[0].metrics
    cell = report.matrices[0].cells[("", "20")]
    assert cell.figures["response_time.max:"].point == twenty  # type: ignore[union-attr]
    charts.svg(chart)


def test_a_published_figure_of_the_same_case_is_marked_in_base_units() -> None:
    row = {"experiment": "rush", "users": "20", "step": "order", "metric": "response_time.mean"}
    row |= {"side": "client", "value": "250", "unit": "ms", "note": ""}

    report = reported({"metric": "response_time.mean", "experiment": "rush", "step": None}, published=[row])

    (chart,) = of(report)
    assert [row["published"] for row in chart.datasets["rows"]] == [None, pytest.approx(0.25)]
    assert "diamond: published" in chart.caption


def test_a_time_is_put_side_by_side_as_curves_of_its_quantiles() -> None:
    report = reported({"metric": "response_time", "experiment": "rush", "step": "order"})

    (chart,) = of(report)
    assert chart.kind == "quantiles"
    assert {row["metric"] for row in chart.datasets["curve"]} == {
        "processes=1, users=1",
        "processes=1, users=20",
    }
    charts.svg(chart)


def test_what_ab_calls_failed_stands_beside_our_own_classes() -> None:
    report = reported({"metric": "ab_failed.share", "experiment": "rush", "step": None})

    (chart,) = of(report)
    assert chart.table is not None
    heads = [column.title for column in chart.table.columns]
    for row in chart.table.rows:
        cells = dict(zip(heads, row, strict=True))
        # every answer of the simulated service is 64 bytes long and fine
        assert cells["ended"] == cells["ok"]
        assert (cells["failed"], cells["failed as ab counts"]) == (0, 0)
        assert (cells["first body, bytes"], cells["bodies, bytes"]) == ("64", "64–64")


def test_a_comparison_of_one_case_or_of_another_experiment_is_not_drawn() -> None:
    assert of(reported({"metric": "throughput", "experiment": "elsewhere", "step": None})) == []
