"""Results in files for other programs: JSON, CSV, Markdown and JUnit, next to the record."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from loadlens.cli import app
from loadlens.cli.outputs import outputs_of
from loadlens.errors import UsageError
from loadlens.model.finding import Estimate, NotMeasured, Undecided
from loadlens.model.rates import RateAnswer
from loadlens.model.report import ObjectiveRow
from loadlens.model.result import EngineResult
from loadlens.report.write import benchmarks, result_of
from loadlens.report.write.result import HEAD, Result, as_csv, as_junit, as_markdown
from tests.unit.report.write import hit_result, sample_explanation, sample_report
from tests.unit.report.write.test_comparison_page import ANSWER


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Returns the folder with every format of the example's result."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("loadlens.run.single_load.run_trial", lambda *_, **__: hit_result.result())
    monkeypatch.setattr("loadlens.cli.preflight.connect_once", lambda _: None)
    files = ["--out", "json=a.json,csv=a.csv", "--out", "md=a.md,junit=a.xml"]
    files += ["--out", "smaller=small.json,bigger=big.json,bencher=bmf.json"]
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


def test_github_action_benchmark_reads_times_as_smaller_and_rates_as_bigger_is_better(written: Path) -> None:
    smaller, bigger = (json.loads((written / name).read_text()) for name in ("small.json", "big.json"))

    # `BenchmarkResult` of the action: name, value and unit are required, range and extra are texts
    for entry in (*smaller, *bigger):
        assert set(entry) == {"name", "value", "unit", "range", "extra"}
        assert all(isinstance(entry[key], str) for key in ("name", "unit", "range", "extra"))
        assert isinstance(entry["value"], float)
    (p99,) = [entry for entry in smaller if entry["name"].endswith(" · p99 of response time")]
    assert (round(p99["value"], 1), p99["unit"], p99["range"]) == (39.0, "ms", "35.4–43.6")
    assert [entry["name"].rpartition(" · ")[2] for entry in bigger] == ["requests/s"]


def test_bencher_reads_its_metric_format(written: Path) -> None:
    content = json.loads((written / "bmf.json").read_text())

    # its JSON schema: benchmark -> measure -> value, lower_value, upper_value, all numbers; latency in ns
    for measures in content.values():
        for measure in measures.values():
            assert {"value"} <= set(measure) <= {"value", "lower_value", "upper_value"}
            assert all(isinstance(number, float) for number in measure.values())
    (latency,) = [content[name]["latency"] for name in content if name.endswith("p99 of response time")]
    assert latency["value"] == pytest.approx(39.0e6, rel=0.01)
    assert any("throughput" in measures for measures in content.values())


def test_a_comparison_has_a_series_for_each_version_and_a_search_its_rate() -> None:
    compared = json.loads(benchmarks.as_smaller_is_better(result_of.of_comparison(ANSWER)))
    rate = RateAnswer("410 /s meet it", ("p99 < 50 ms",), 410.0, 455.0, 5, "", ())
    searched = result_of.of_explanation(sample_explanation.sample(rates=rate))

    assert [entry["name"].split(" · ")[1:] for entry in compared] == [
        ["A", "p50 of response time"],
        ["B", "p50 of response time"],
    ]
    (met,) = [e for e in json.loads(benchmarks.as_bigger_is_better(searched)) if "objectives" in e["name"]]
    assert (met["value"], met["range"]) == (410.0, "410–455")
    assert searched.title.startswith("capacity ")
    assert "```mermaid\nxychart-beta\n" in as_markdown(searched)
    assert "```text\np50 of response time, B over A\n" in as_markdown(result_of.of_comparison(ANSWER))
    assert searched.lines[0] == "410 /s meet it"


def test_junit_names_the_metric_that_misses_and_not_an_undecided_headline() -> None:
    (slower,) = ANSWER.effects
    wide = Estimate("throughput", "ratio", 0.8, 0.5, 1.2, 3, 0, "by hand")
    headline = replace(slower, metric="throughput", ratio=wide, change="undecided", is_beyond=False)
    answer = replace(ANSWER, effects=(headline, replace(slower, is_headline=False)))

    (failure,) = ElementTree.fromstring(as_junit(result_of.of_comparison(answer))).iter("failure")

    assert failure.get("message") == "missed, p50 of response time: 1.10 (1.05–1.15)"


@pytest.mark.parametrize(
    ("low", "is_missed", "outcome"), [(410.0, False, None), (None, True, "failure"), (None, False, "error")]
)
def test_a_rate_that_meets_the_objectives_is_a_test_of_its_own(
    low: float | None, is_missed: bool, outcome: str | None
) -> None:
    rates = RateAnswer("why", ("p99 < 50 ms", "failed < 1 %"), low, 455.0, 5, "", (), is_missed)
    result = result_of.of_explanation(sample_explanation.sample(rates=rates, objectives=(rates.row,)))

    _, test = ElementTree.fromstring(as_junit(result)).iter("testcase")

    assert test.get("name") == "p99 < 50 ms and failed < 1 % at some rate"
    assert [child.tag for child in test] == ([] if outcome is None else [outcome])


def test_csv_has_the_counts_too(written: Path) -> None:
    rows = {row["metric"]: row for row in csv.DictReader(io.StringIO((written / "a.csv").read_text()))}

    assert rows["requests.due"]["value"] == "244012"


def row(state: Any, figure: Any, word: str) -> ObjectiveRow:
    return ObjectiveRow("p99 of response time", "below 30 ms", figure, state, word)


def test_a_missed_objective_fails_and_what_cannot_be_judged_is_an_error() -> None:
    measured = Estimate("response_time.p99", "s", 0.039, 0.0354, 0.0436, trials=1, samples=9, method="test")
    rows = (
        row("ok", measured, "met"),
        row("bad", measured, "missed"),
        row("unknown", Undecided("response_time.p99", "s", "too few"), "undecided: too few"),
        row(
            "unknown",
            NotMeasured("tls.p99", "no TLS"),
            "undecided: no TLS",
        ),
    )

    suite = ElementTree.fromstring(as_junit(Result("a load", ("fast",), rows, (), "load")))[0]

    assert {name: suite.get(name) for name in ("tests", "failures", "errors")} == {
        "tests": "5",  # the load and four objectives
        "failures": "1",
        "errors": "2",
    }


def test_a_load_without_a_success_fails_its_own_test_and_an_invalid_one_is_an_error() -> None:
    failed = Result("a load", ("none",), (), (), "load", failure="no request succeeded")
    invalid = Result("a load", ("none",), (), (), "load", error="ran out of ports")

    counted = [ElementTree.fromstring(as_junit(each))[0].attrib for each in (failed, invalid)]

    assert [(each["failures"], each["errors"]) for each in counted] == [("1", "0"), ("0", "1")]


def test_a_folder_alone_is_the_record(tmp_path: Path) -> None:
    made = outputs_of([str(tmp_path / "new"), f"md={tmp_path}/a.md"])

    assert (made.record, dict(made.files)) == (tmp_path / "new", {"md": tmp_path / "a.md"})


@pytest.mark.parametrize(
    "text", ["jsn=a", "json=", "json", "json=nowhere/a.json", "md=a.md,b.md", "csv=.", "result.json"]
)
def test_a_place_that_cannot_be_written_is_refused_before_the_load(text: str) -> None:
    with pytest.raises(UsageError):
        outputs_of([text])


def rows_of(result: Result) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(as_csv(result))))


def test_csv_of_every_verb_has_the_same_columns() -> None:
    results = (
        result_of.of_load("a load", EngineResult.from_json(hit_result.result()), ("fast",), ()),
        result_of.of_explanation(sample_explanation.sample()),
        result_of.of_report(sample_report.sample()),
    )

    assert {as_csv(result).partition("\n")[0] for result in results} == {",".join(HEAD)}


def test_a_load_that_was_changed_by_hand_has_counts_and_no_figures_in_any_form() -> None:
    change = {"stream": "load", "what": "users", "old": 2, "new": 5, "at_ns": 1_500_000_000}
    content = {**hit_result.result(), "load_changes": [change]}
    result = result_of.of_load("a load", EngineResult.from_json(content), ("exploratory",), ())

    rows = rows_of(result)
    counts = {row["metric"] for row in rows if row["value"]}
    suite = ElementTree.fromstring(as_junit(result))[0]
    error = suite.find("testcase/error")

    assert {metric.partition(".")[0] for metric in counts} <= {"requests", "status", "errors"}
    assert {"requests.issued", "requests.ok"} <= counts
    notes = {row["note"] for row in rows if row["metric"] in ("throughput", "response_time.p99")}
    assert notes == {"the load was changed while it ran"}
    assert "| p99 of response time | not measured |" in as_markdown(result)
    assert (suite.get("failures"), suite.get("errors")) == ("0", "1")
    assert error is not None
    assert "load: 2 users to 5 users from 1.500 s on" in str(error.get("message"))
    assert json.loads(benchmarks.as_smaller_is_better(result)) == []


def test_a_search_has_its_capacity_and_a_row_for_each_level() -> None:
    # by the sample: 100/s from 98 to 102 over 7 trials; means of 10 ms per user at 1, 2, 4 and 8 users
    result = result_of.of_explanation(sample_explanation.sample())
    rows = rows_of(result)

    assert {key: rows[0][key] for key in ("metric", "value", "low", "high", "trials")} == {
        "metric": "capacity",
        "value": "100.0",
        "low": "98.0",
        "high": "102.0",
        "trials": "7",
    }
    means = [row for row in rows if row["metric"] == "response_time.mean" and not row["step"]]
    assert [(row["case"], float(row["value"])) for row in means] == [
        ("1 user", 0.01),
        ("2 users", 0.02),
        ("4 users", 0.04),
        ("8 users", 0.08),
    ]
    assert "| 8 users | 100 (98–102) | 80.0 (78.4–81.6) |" in as_markdown(result)


def test_a_search_that_measured_nothing_is_an_error_and_a_service_that_fails_a_failure() -> None:
    unmeasured = sample_explanation.sample(ladder=(), stopped_because="broken")
    failing = sample_explanation.sample(ladder=(), stopped_because="fails_alone")

    suites = [
        ElementTree.fromstring(as_junit(result_of.of_explanation(each)))[0] for each in (unmeasured, failing)
    ]

    assert [(suite.get("failures"), suite.get("errors")) for suite in suites] == [("0", "1"), ("1", "0")]


def test_a_report_has_a_row_for_each_case_and_says_why_a_figure_is_missing() -> None:
    rows = rows_of(result_of.of_report(sample_report.sample()))

    invalid = [row for row in rows if row["case"] == "workers=2,users=15"]
    assert {row["note"] for row in invalid} == {"invalid"}
    undecided = [row for row in rows if row["case"] == "workers=1,users=1" and row["metric"].endswith("p99")]
    assert undecided[0]["note"] == "needs 21 s"


def test_figures_of_a_study_have_the_names_of_those_of_a_load() -> None:
    only = sample_report.matrix()
    short = {"mean": NotMeasured("m", "x"), "p99:login": NotMeasured("m", "x"), "rate": NotMeasured("m", "x")}
    cells = {("1", "1"): replace(only.cells["1", "1"], figures=short)}
    report = replace(sample_report.sample(), matrices=(replace(only, cells=cells),))

    rows = rows_of(result_of.of_report(report))

    assert [(row["metric"], row["step"]) for row in rows] == [
        ("response_time.mean", ""),
        ("response_time.p99", "login"),
        ("throughput", ""),
    ]


def test_a_report_without_figures_is_still_a_page_and_a_suite() -> None:
    result = result_of.of_report(sample_report.minimal(), error="4 trials without a valid result")

    assert as_markdown(result).startswith("## empty\n\n**Undecided: no trial is complete;")
    assert ElementTree.fromstring(as_junit(result))[0].get("errors") == "1"


def test_text_from_outside_breaks_no_format() -> None:
    result = result_of.of_report(sample_report.hostile(sample_report.sample()))

    ElementTree.fromstring(as_junit(result))
    assert "<script>" not in as_markdown(result)
    assert {None in row for row in rows_of(result)} == {False}  # no row has more fields than the head


def test_an_objective_of_a_search_is_the_same_test_at_whatever_level_it_was_judged() -> None:
    measured = Estimate("throughput", "1/s", 92.0, 90.0, 95.0, trials=3, samples=900, method="test")
    judged = [
        ObjectiveRow("requests/s", "above 500 /s", measured, "bad", "missed", place)
        for place in ("at full load", "at 8 users, and more was not tried")
    ]

    suites = [
        ElementTree.fromstring(
            as_junit(result_of.of_explanation(sample_explanation.sample(objectives=(row,))))
        )
        for row in judged
    ]

    assert [suite[0][1].get("name") for suite in suites] == ["requests/s above 500 /s"] * 2
    assert suites[0][0][1][0].get("message") == "missed, at full load: 92.0 /s (90.0–95.0)"
