"""`report` and `show` need the record and nothing else."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from loadlens.cli import app, report
from loadlens.errors import RecordError, UsageError
from loadlens.report import build
from tests import records
from tests.unit.record.test_record import begin, write_trial
from tests.unit.report.write import sample_report


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A record in a folder where nothing else is; what its analysis finds is not the matter here."""
    monkeypatch.setattr(
        build, "report", lambda record: replace(sample_report.one(), study=record.study["name"])
    )
    made = tmp_path / "made"
    with begin(made) as writer:
        for planned in records.trials(records.study()):
            write_trial(writer, planned)
    moved = tmp_path / "elsewhere" / "run"
    moved.parent.mkdir()
    shutil.move(made, moved)
    return moved


def test_a_report_is_made_from_a_record_that_was_moved(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(run.parent)

    done = CliRunner().invoke(app, ["report", "run"])

    assert done.exit_code == 0, done.output
    assert done.output.split() == ["run/report.html", "run/report.md"]
    assert (run / "report.html").read_text().startswith("<!doctype html>")
    pictures = {path.name for path in (run / "charts").glob("*.svg")}
    assert pictures == {"chart-quantiles.svg", "chart-heat.svg", "chart-demand.svg"}


def test_making_a_report_again_changes_nothing(run: Path) -> None:
    report.write_report(report.report_of(run), run)
    first = {path.name: path.read_bytes() for path in run.rglob("*") if path.is_file()}

    report.write_report(report.report_of(run), run)

    assert {path.name: path.read_bytes() for path in run.rglob("*") if path.is_file()} == first


def test_show_prints_the_answer_and_how_far_to_trust_it(run: Path) -> None:
    done = CliRunner().invoke(app, ["show", str(run)])

    assert done.exit_code == 0, done.output
    assert done.output.startswith(sample_report.one().answer[0].rstrip("."))
    assert "▲ 1 trial · 2 checks hold" in done.output


def test_what_is_no_record_is_refused_by_name(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["report", str(tmp_path)])

    assert isinstance(done.exception, RecordError)


def test_a_report_is_also_written_in_the_formats_asked_for(run: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(
        app, ["report", str(run), "--out", f"json={tmp_path}/a.json,junit={tmp_path}/a.xml"]
    )

    assert done.exit_code == 0, done.output
    assert json.loads((tmp_path / "a.json").read_text())["answer"] == list(sample_report.one().answer)
    assert 'name="trials"' in (tmp_path / "a.xml").read_text()


def test_a_report_has_no_folder_of_its_own(run: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["report", str(run), "-o", str(tmp_path / "new")])

    assert isinstance(done.exception, UsageError)
