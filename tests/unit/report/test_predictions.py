"""Predictions next to measurements: scored when they were made before, and only then."""

from __future__ import annotations

import json

import pytest

from loadlens.measure import whole_run
from loadlens.measure.source import predictions_of
from loadlens.model.finding import Estimate
from loadlens.model.plain import read
from loadlens.model.recorded import TrialCase
from loadlens.model.report import PredictionRow, PredictionSection
from loadlens.report import build
from loadlens.report.build import predictions
from loadlens.report.write.cells import predictions as predictions_table
from loadlens.whatif import held_out
from tests.unit.measure import records
from tests.unit.whatif import made
from tests.unit.whatif.services import Load, Trace, blocking_loop

MADE = 1_000


def loop(load: Load, _: int, work_s: float = 0.2) -> Trace:
    return blocking_loop(load, work_s=work_s)


def foretold_and_run(work_s: float = 0.2, began: int = MADE + 1) -> records.Run:
    """A held-out case with 10 users, foretold, then run on a service that may have become another."""
    run = made.record(loop, held_out=[(1, 10)], trials=1, seconds=12.0)
    held = next(case for case in run.study["cases"] if case["held_out"])
    content = json.loads(json.dumps(held_out.predict(run, [held["slug"]])[held["slug"]]))  # as a file has it
    run.predictions = {held["slug"]: content | {"made_unix_ns": MADE}}
    load = Load(10, 0.15, 12.0, 20.0, seed=5)
    run.trials.append(
        records.Trial(
            case=read(TrialCase, held),
            block=1,
            position=9,
            planned=records._plan(made.NAMES, load),
            trace=loop(load, 1, work_s),
            names=made.NAMES,
            services=run.trials[0].services,
            began_unix_ns=began,
        )
    )
    return run


def section_of(run: records.Run) -> PredictionSection:
    found = build.report(run).predictions
    assert found is not None
    return found


def test_a_prediction_that_came_true_is_inside_its_interval() -> None:
    section = section_of(foretold_and_run())
    rate = next(row for row in section.rows if row.metric == "throughput")

    assert (rate.state, rate.word) == ("ok", "inside its interval")
    assert isinstance(rate.predicted, Estimate)
    assert isinstance(rate.measured, Estimate)
    assert rate.error == pytest.approx(rate.predicted.point / rate.measured.point - 1)


def test_a_service_that_became_slower_is_outside() -> None:
    section = section_of(foretold_and_run(work_s=0.4))
    rate = next(row for row in section.rows if row.metric == "throughput")

    assert rate.error == pytest.approx(1.0, abs=0.3)  # half as many as foretold came
    assert rate.state == "bad"
    assert section.lines[0].startswith("0 of ")


def test_what_was_written_after_the_case_began_is_no_prediction() -> None:
    section = section_of(foretold_and_run(began=MADE))

    assert {row.word for row in section.rows} == {"made after the case began: no prediction"}
    assert not any("inside their intervals" in line for line in section.lines)


def test_a_case_that_was_not_predicted_says_why() -> None:
    run = foretold_and_run()
    (slug,) = run.predictions
    run.predictions = {
        slug: {"case": slug, "undecided": "users: [1] is missing", "predicted": [], "made_unix_ns": MADE}
    }

    report = build.report(run)

    assert report.predictions is not None
    assert report.predictions.rows == ()
    assert "not predicted: users: [1] is missing" in report.predictions.lines[0]
    assert any("was not predicted: users: [1] is missing" in limit for limit in report.limits)


def test_a_record_from_before_predictions_says_that_nobody_was_asked() -> None:
    run = foretold_and_run()
    run.predictions = {}

    assert "no prediction was made before it ran" in section_of(run).lines[0]


def test_nothing_held_out_is_no_section() -> None:
    run = made.record(loop, trials=1, seconds=12.0)

    assert build.report(run).predictions is None


def test_predictions_are_drawn_beside_what_was_measured() -> None:
    charts = [chart for chart in build.report(foretold_and_run()).charts if chart.kind == "predicted"]

    rows = {chart.anchor: chart.datasets["rows"] for chart in charts}

    (row,) = rows["chart-predicted-throughput"]
    assert row["predicted_low"] < row["predicted"] < row["predicted_high"]
    assert row["point"] is not None
    assert f"chart-predicted-response_time.mean-{made.NAMES.probe}" in rows


def test_predictions_get_no_score_where_other_programs_took_the_cores() -> None:
    run = foretold_and_run()
    cases = whole_run.measured(run).cases

    scored = predictions.section(cases, predictions_of(run))
    disturbed = predictions.section(cases, predictions_of(run), "Other programs use 1.62 of 2 cores")

    assert scored is not None
    assert disturbed is not None
    assert "were measured inside" in scored.lines[0]
    assert disturbed.lines == ("no score: Other programs use 1.62 of 2 cores", *scored.lines[1:])


def test_a_row_of_predictions_has_one_unit() -> None:
    row = PredictionRow(
        "a", "a", "response_time.mean", None, seconds(0.00102), seconds(0.0073), -0.86, "bad", "outside"
    )

    (cells,) = predictions_table([row]).rows

    assert [cell.text for cell in cells[2:4]] == ["1.02 ms", "7.30 ms"]


def seconds(point: float) -> Estimate:
    return Estimate("response_time.mean", "s", point, point * 0.99, point * 1.01, 3, 1000, "built")
