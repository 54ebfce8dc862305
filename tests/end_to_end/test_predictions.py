"""A held-out case of a real service: predicted before it runs, run, scored, drawn."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from loadlens.model.finding import Estimate
from loadlens.model.report import Report
from loadlens.record import RunRecord, open_run
from loadlens.report import build
from loadlens.report.write import html, markdown
from tests.calm import calmly
from tests.end_to_end.running import others_in

HERE = Path(__file__).parent

STUDY = """\
schema: 1
study: predicted
question: what do more users do to one event loop?
params: {users: 1}
services:
  web:
    dir: .
    start: python3 -S -E loop_service.py $port
    ready: {get: /health, status: 200, within: 60s}
entry: web
scenarios: {work: [{name: work, get: /, expect: 200}]}
probes: {health: {get: /health, rate: 20/s, arrivals: poisson}}
fresh: trial
trials: 1
experiments:
  alone:
    mix: work
    load: {users: $users, warmup: 500ms, duration: 4s, timeout: 5s}
    factors: {users: [1, 4]}
    hold_out: {users: [12]}
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    """A run whose prediction knows the service and is scored; another only where others used the machine."""
    records: list[RunRecord] = []

    def predict() -> None:
        records.append(run_in(tmp_path_factory.mktemp("predicted")))
        (content,) = records[-1].predictions.values()
        assert content["undecided"] is None
        assert knows_the_work(content), content["parameters"]
        assert knows_the_kind(content), content["structures"]
        section = build.report(records[-1]).predictions
        assert section is not None
        assert "predicted figures were measured inside" in section.lines[0]

    calmly(predict, why=lambda: others_in(records[-1]))
    return records[-1]


def run_in(folder: Path) -> RunRecord:
    shutil.copy(HERE / "loop_service.py", folder / "loop_service.py")
    (folder / "study.yaml").write_text(STUDY)
    home = Path(__file__).resolve().parents[2] / "python"
    done = subprocess.run(
        [sys.executable, "-m", "loadlens", "run", str(folder), "--out", str(folder / "record"), "-q"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(home), os.environ.get("PYTHONPATH", "")])},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return open_run(folder / "record")


def knows_the_work(content: Mapping[str, Any]) -> bool:
    work = next(p for p in content["parameters"] if p["name"].startswith("work"))
    return bool(work["point"] == pytest.approx(0.010, rel=0.25))


def knows_the_kind(content: Mapping[str, Any]) -> bool:
    return content["structures"][0]["kind"] in ("loop", "pool")


@pytest.fixture(scope="module")
def report(run: RunRecord) -> Report:
    return build.report(run)


def test_the_prediction_is_written_before_the_first_trial_of_its_case_begins(run: RunRecord) -> None:
    (slug,) = run.predictions
    events = [(e["event"], e.get("case")) for e in run.events()]

    assert events.index(("predicted", slug)) < events.index(("trial_started", slug))
    began = [trial.began_unix_ns for trial in run.trials if trial.case.slug == slug]
    assert run.predictions[slug]["made_unix_ns"] < min(began)
    assert all(trial.case.held_out for trial in run.trials if trial.case.slug == slug)


def test_it_rests_on_the_other_cases_alone(run: RunRecord) -> None:
    (content,) = run.predictions.values()

    assert content["undecided"] is None
    assert {i["case"] for i in content["inputs"]} == {t.case.slug for t in run.trials if not t.case.held_out}


def test_it_knows_what_the_service_is(run: RunRecord) -> None:
    """10 ms of work on one loop: 100/s at most, whatever else the machine does."""
    (content,) = run.predictions.values()

    assert knows_the_work(content), content["parameters"]
    assert knows_the_kind(content), content["structures"]


def test_the_report_scores_it(report: Report) -> None:
    section = report.predictions
    assert section is not None
    rates = [row for row in section.rows if row.metric == "throughput"]

    assert len(rates) == 1
    assert isinstance(rates[0].measured, Estimate)
    assert isinstance(rates[0].predicted, Estimate)
    assert rates[0].error == pytest.approx(rates[0].predicted.point / rates[0].measured.point - 1)
    assert "predicted figures were measured inside" in section.lines[0]


def test_it_is_drawn_and_listed_in_every_medium(report: Report) -> None:
    drawn = [chart for chart in report.charts if chart.kind == "predicted"]

    assert {chart.anchor for chart in drawn} >= {
        "chart-predicted-throughput",
        "chart-predicted-response_time.mean",
    }
    assert "## Predictions" in markdown.files(report)[markdown.MAIN]
    assert 'id="predictions"' in html.page(report)


def test_a_prediction_that_was_edited_afterwards_is_named(run: RunRecord, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(run.path, copy)
    (slug,) = run.predictions
    path = copy / "predictions" / f"{slug}.json"
    path.write_text(path.read_text().replace('"point": ', '"point": 1'))

    reopened = open_run(copy)

    assert reopened.predictions == {}
    assert any(f"predictions/{slug}.json" in words and "SHA-256" in words for words in reopened.damage)
