"""A report as JSON: every figure says what it is, every cell where it stands."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path

from loadlens.model.report import Report
from loadlens.report.write.json import report_as_json
from tests.unit.report.write import sample_report

PAGE = Path(__file__).resolve().parents[4] / "docs" / "reference" / "report-json.md"


def test_all_parts_of_a_report_are_in_its_json_and_figures_keep_their_kind() -> None:
    made = sample_report.sample()

    told = json.loads(report_as_json(made))

    assert set(told) == {field.name for field in fields(Report)}
    cells = {(cell["row"], cell["column"]): cell for cell in told["matrices"][0]["cells"]}
    assert cells["1", "20"]["word"] == "2.1 % failed"
    assert cells["1", "1"]["figures"]["response_time.p99"]["figure"] == "undecided"
    assert cells["1", "5"]["figures"]["throughput"]["figure"] == "estimate"
    assert told["findings"][0]["grade"] == "strong"
    (titles,) = {tuple(c["title"] for c in d["phases"]["columns"]) for d in told["details"]}
    assert "first byte p99" in titles
    assert told["setup"]["rows"][1][5] == "held"


def test_what_is_not_finite_is_null() -> None:
    made = sample_report.sample()
    endless = replace(sample_report.checks(), rows=((float("inf"), float("nan"), 1.5),))
    told = json.loads(report_as_json(replace(made, setup=endless)))

    assert told["setup"]["rows"] == [[None, None, 1.5]]


def test_the_page_names_every_part() -> None:
    text = PAGE.read_text()

    assert not [field.name for field in fields(Report) if f"`{field.name}`" not in text]
