"""Results of `hit` in files: JSON, CSV, Markdown and JUnit, next to the record."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from loadlens.cli import app
from loadlens.cli.outputs import outputs_of
from loadlens.errors import UsageError
from loadlens.model.finding import Estimate, NotMeasured, Undecided
from loadlens.model.report import ObjectiveRow
from loadlens.report.write.junit import junit
from tests.unit.report.write import hit_result


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Returns the folder with every format of the example's result."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("loadlens.run.single_load.run_trial", lambda *_, **__: hit_result.result())
    monkeypatch.setattr("loadlens.cli.preflight.connect_once", lambda _: None)
    files = ["--out", "json=a.json,csv=a.csv", "--out", "md=a.md,junit=a.xml"]
    done = CliRunner().invoke(app, ["hit", "http://127.0.0.1:9/", "--objective", "p99<30ms", *files])
    assert done.exit_code == 99, done.output
    return tmp_path


def test_every_format_has_the_same_p99(written: Path) -> None:
    # p99 of the example is 39.0 ms with an interval from 35.4 to 43.6 ms
    content: dict[str, Any] = json.loads((written / "a.json").read_text())
    rows = {row["metric"]: row for row in csv.DictReader(io.StringIO((written / "a.csv").read_text()))}

    assert content["response_time_s"]["p99"]["value"] == float(rows["response_time.p99"]["value"])
    assert "| p99 of response time | 39.0 ms | 35.4–43.6 |" in (written / "a.md").read_text()
    assert "missed: 39.0 ms (35.4–43.6)" in (written / "a.xml").read_text()


def test_csv_has_the_counts_too(written: Path) -> None:
    rows = {row["metric"]: row for row in csv.DictReader(io.StringIO((written / "a.csv").read_text()))}

    assert rows["requests.due"]["value"] == "244012"


def row(state: Any, figure: Any, word: str) -> ObjectiveRow:
    return ObjectiveRow("p99 of response time", "below 30 ms", figure, state, word)


def test_missed_fails_undecided_is_skipped_and_what_is_not_measured_is_an_error() -> None:
    measured = Estimate("response_time.p99", "s", 0.039, 0.0354, 0.0436, trials=1, samples=9, method="test")
    rows = [
        row("ok", measured, "met"),
        row("bad", measured, "missed"),
        row("unknown", Undecided("response_time.p99", "s", "too few"), "undecided: too few"),
        row(
            "unknown",
            NotMeasured("tls.p99", "no TLS"),
            "undecided: no TLS",
        ),
    ]

    suite = ElementTree.fromstring(junit("a load", rows, seconds=10.0))[0]

    assert {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "5",  # the load and four objectives
        "failures": "1",
        "errors": "1",
        "skipped": "1",
    }


def test_a_load_that_says_nothing_fails_its_own_test() -> None:
    suite = ElementTree.fromstring(junit("a load", [], seconds=1.0, fault="no request succeeded"))[0]

    assert suite.get("failures") == "1"


def test_a_folder_alone_is_the_record(tmp_path: Path) -> None:
    made = outputs_of([str(tmp_path / "new"), f"md={tmp_path}/a.md"])

    assert (made.record, dict(made.files)) == (tmp_path / "new", {"md": tmp_path / "a.md"})


@pytest.mark.parametrize("text", ["jsn=a", "json=", "json=nowhere/a.json", "md=a.md,b.md"])
def test_a_place_that_cannot_be_written_is_refused_before_the_load(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        outputs_of([text])

    assert refused.value.where == "--out"
