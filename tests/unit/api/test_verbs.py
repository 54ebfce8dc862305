"""Verbs on records from Python: the same answers and the same mistakes as the command, as objects."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import loadlens
from loadlens.api.results import Compared, Found
from loadlens.cli import app, run_verb
from loadlens.errors import ExitCode, LoadlensError, RecordError, UsageError
from loadlens.model.rates import RateAnswer
from loadlens.report.write import result_of
from loadlens.report.write.html.comparison import drawing
from tests.unit.report.write import sample_explanation
from tests.unit.report.write.test_comparison_page import ANSWER

RECORD = Path(__file__).parents[2] / "data" / "records" / "version-1"


@pytest.fixture
def record(tmp_path: Path) -> Path:
    """A record of a study with two levels of load."""
    return Path(shutil.copytree(RECORD, tmp_path / "record"))


def printed(*words: str) -> Any:
    done = CliRunner().invoke(app, [*words, "--json"])
    return json.loads(done.stdout), done.exit_code


def test_a_record_opens_with_its_frames_and_its_report(
    record: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    opened = loadlens.open(record)

    assert opened.trials[0].samples().height == 60
    assert opened.report.to_dict() == printed("report", str(record))[0]
    assert opened.report.figures["metric"].to_list()
    assert f"<b>{opened.report.headline}</b>" in opened._repr_html_()
    assert opened.report.charts[0].svg().startswith("<svg")
    assert opened.report.record is not None
    assert capfd.readouterr() == ("", "")


def test_what_is_no_record_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordError):
        loadlens.open(tmp_path)


def test_explain_answers_from_a_record_as_the_command(
    record: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    made = loadlens.explain(record)

    assert capfd.readouterr() == ("", "")
    assert (made.to_dict(), made.exit_code) == printed("explain", str(record))
    assert made.limit is None
    assert made.capacity.value is None
    assert not made.capacity > "1/s"


def test_compare_answers_from_records_as_the_command(record: Path) -> None:
    made = loadlens.compare(record, record, margin="5%")

    assert (made.to_dict(), made.exit_code) == printed("compare", str(record), str(record), "--margin", "5%")
    assert (made.verdict, made.is_missed) == ("undecided", False)
    with pytest.raises(UsageError, match="no figure") as refused:
        made.ratio("throughput")
    assert refused.value.hint == "case='alone users=1'"


@pytest.mark.parametrize(
    ("verb", "targets", "flags"),
    [
        ("run", ["nothing.yaml"], {}),
        ("explain", ["http://127.0.0.1:9/"], {"budget": "1s"}),
        ("compare", ["http://127.0.0.1:9/"], {}),
        ("capacity", ["http://127.0.0.1:9/"], {}),
    ],
)
def test_a_mistake_raises_the_line_of_the_command(
    verb: str,
    targets: list[str],
    flags: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = [word for name, value in flags.items() for word in (f"--{name}", value)]
    monkeypatch.setattr("sys.argv", ["loadlens", verb, *targets, *words])

    with pytest.raises(LoadlensError) as refused:
        getattr(loadlens, verb)(*targets, **flags)

    assert run_verb() == refused.value.code == ExitCode.USAGE
    assert capsys.readouterr().err == f"loadlens: {refused.value}\n"


@pytest.mark.parametrize("verb", ["explain", "compare", "capacity"])
def test_no_target_is_refused(verb: str) -> None:
    with pytest.raises(UsageError, match="no target"):
        getattr(loadlens, verb)()


@pytest.mark.parametrize(("verb", "keyword"), [("run", "quick"), ("compare", "margin")])
def test_a_package_with_the_name_of_a_verb_is_that_verb(verb: str, keyword: str) -> None:
    package = importlib.import_module(f"loadlens.{verb}")

    called: Any = getattr(loadlens, verb)
    assert id(called) == id(package)
    assert keyword in inspect.signature(called).parameters
    with pytest.raises(LoadlensError):
        called("there-is-nothing")


def found(rates: RateAnswer | None) -> Found:
    answer = replace(sample_explanation.sample(), rates=rates)
    return Found(result_of.of_explanation(answer), ExitCode.OK, None, str, answer)


def test_the_rate_of_a_search_is_from_what_was_confirmed_to_what_missed() -> None:
    rate = found(RateAnswer("between", ("p99 below 50 ms",), 410.0, 455.0, 5, "", ())).rate

    assert rate > "400/s"
    assert not rate > "410/s"
    assert rate < "500/s"
    assert not rate < "450/s"


def test_a_search_that_confirmed_no_rate_has_none() -> None:
    rate = found(RateAnswer("no rate meets p99", ("p99 below 50 ms",), None, 20.0, 0, "", ())).rate

    assert not rate > "1/s"
    assert rate.reason == "no rate meets p99"


def test_the_ladder_of_a_search_is_its_picture() -> None:
    answer = sample_explanation.sample()

    (chart,) = found(None).charts

    assert chart.chart is not None
    assert [row["users"] for row in chart.chart.datasets["steps"]] == [
        rung.users for rung in answer.ladder if not rung.ended_early
    ]
    assert chart.svg().startswith("<svg")


def test_pairs_are_the_picture_of_a_comparison(tmp_path: Path) -> None:
    made = Compared(result_of.of_comparison(ANSWER), ExitCode.OK, None, str, ANSWER)

    (picture,) = made.charts
    picture.save(tmp_path / "a.svg")

    assert re.match(r'<svg xmlns="http://www.w3.org/2000/svg" width="\d+"', picture.svg())
    assert (tmp_path / "a.svg").read_text() == picture.svg() == drawing(ANSWER)
    with pytest.raises(UsageError, match="has no spec"):
        picture.spec()
