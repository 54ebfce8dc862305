"""Many records in the order of time: one series per load and metric, and the record at which it changes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

from loadlens.cli import app
from loadlens.compare.history import of_records
from loadlens.compare.records import cases_of
from loadlens.errors import RecordError, UsageError
from loadlens.estimate.change_points import FEWEST
from loadlens.model.comparison import History, Series
from loadlens.model.finding import Estimate
from loadlens.record import create_run
from loadlens.report.write import result_of
from loadlens.report.write.html.history import history_page
from loadlens.report.write.result import as_csv, as_markdown
from loadlens.report.write.terminal.history_text import history_lines
from tests import records
from tests.unit.compare.arms import service
from tests.unit.measure.records import Run, record
from tests.unit.record.test_record import write_trial

SLOWER_FROM = 20
SLOWER = 1.2  # times the response time


def run(number: int, ratio: float = 1.0, users: int = 4) -> Run:
    """A record of one short trial; the smaller its number, the earlier it began."""
    made = record(
        lambda load, _: service(load, ratio=ratio, spread=0.005, failing=0.0),
        users=(users,),
        trials=1,
        seconds=3.0,
    )
    made.id = f"run-{number:02}"
    made.environment["study_folder"] = {"commit": f"{number:02}" * 20, "changed_files": ["a"] * (number == 3)}
    made.trials[0].began_unix_ns = (1_700_000_000 + 3600 * number) * 10**9
    return made


@cache
def answer() -> History:
    """As many records as are needed, the last ones slower on another CPU, read in the wrong order."""
    runs = [run(number, SLOWER if number >= SLOWER_FROM else 1.0) for number in range(FEWEST)]
    for late in runs[SLOWER_FROM:]:
        late.environment["machine"]["cpu_model"] = "another"
    return history_of(runs[::-1])


def history_of(runs: Sequence[Run]) -> History:
    return of_records("runs", {made.id: partial(kept, made) for made in runs})


def kept(made: Run) -> Run:
    return made


def series_of(history: History, metric: str) -> Series:
    return next(each for each in history.series if each.metric == metric)


def test_records_stand_in_the_order_in_which_they_began() -> None:
    points = series_of(answer(), "throughput").points

    assert [point.record for point in points] == [f"run-{number:02}" for number in range(FEWEST)]
    assert points[7].commit == "07" * 20
    assert [point.record for point in points if point.is_modified] == ["run-03"]


@pytest.mark.parametrize("metric", ["response_time.p50", "cpu_time"])
def test_a_slower_service_is_a_change_point_at_its_first_record(metric: str) -> None:
    (shift,) = series_of(answer(), metric).shifts

    assert shift.record == f"run-{SLOWER_FROM}"
    assert shift.after / shift.before == pytest.approx(SLOWER, rel=0.01)


def test_throughput_at_a_rate_that_both_serve_has_none() -> None:
    throughput = series_of(answer(), "throughput")

    assert (throughput.lacking, throughput.shifts) == (0, ())
    assert answer().sentence.startswith(f"{FEWEST} records: 2 change points in ")


def test_what_else_changed_at_a_change_point_is_named() -> None:
    (shift,) = series_of(answer(), "response_time.p50").shifts

    assert shift.differs == ("machine.cpu_model",)


def test_too_few_records_say_how_many_more_are_needed() -> None:
    few = history_of([run(number) for number in range(4)])

    assert few.sentence == "4 records: 26 more of one load are needed to look for change points"
    assert series_of(few, "throughput").lacking == 26


def test_another_load_is_another_series() -> None:
    other = history_of([run(0), run(1, users=8)])

    loads = [each.load for each in other.series if each.metric == "throughput"]
    assert len(set(loads)) == 2


def test_figures_are_those_of_the_report() -> None:
    (case,) = cases_of(run(5))

    point = series_of(answer(), "response_time.p50").points[5]
    assert isinstance(point.figure, Estimate)
    assert point.figure == case.quantile(0.5)


def test_terminal_page_and_files_show_the_change() -> None:
    lines = "\n".join(history_lines(answer(), width=200))
    page = history_page(answer())
    result = result_of.of_history(answer())

    assert "(+20.0 %) at 20202020 (run-20); there machine.cpu_model changed too" in lines
    assert lines.count("  change: +20.0 %") == 2
    assert "+20.0 %" in page
    assert page.count("<svg") >= 3
    assert len(as_csv(result).splitlines()) == 1 + 5 * FEWEST
    assert "+20.0 %" in as_markdown(result)


def test_open_intervals_of_records_side_by_side_share_one_word() -> None:
    def opened(series: Series, numbers: set[int]) -> Series:
        points = [
            replace(point, figure=replace(point.figure, high=None))
            if isinstance(point.figure, Estimate) and number in numbers
            else point
            for number, point in enumerate(series.points)
        ]
        return replace(series, points=tuple(points))

    def words(numbers: set[int]) -> int:
        return history_page(replace(answer(), series=(opened(answer().series[0], numbers),))).count(">open<")

    # thirty records on 600 px: a word of 25 px covers the next arrow, and not the third
    assert [words(numbers) for numbers in (set(), {4}, {4, 5, 6}, {4, 12})] == [0, 1, 1, 2]


# --- the verb -------------------------------------------------------------------------------------------


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A folder with two records, one of them further down, and a damaged one."""
    study = records.study()
    for place in ("a", "older/b"):
        folder = tmp_path / "runs" / place
        folder.parent.mkdir(parents=True, exist_ok=True)
        with create_run(folder, study, records.trials(study), {"cores": 2}) as writer:
            for planned in records.trials(study):
                write_trial(writer, planned)
    broken = tmp_path / "runs" / "broken"
    broken.mkdir()
    (broken / "effective.yaml").write_text("{")
    return tmp_path / "runs"


def test_records_are_found_at_any_depth_and_damaged_ones_are_named(runs: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(
        app,
        ["history", str(runs), "--json", "--page", f"{tmp_path}/h.html", "--out", f"csv={tmp_path}/h.csv"],
    )

    assert done.exit_code == 0, done.output
    content = json.loads(done.output)
    assert content["records"] == 2
    assert {point["record"] for point in content["series"][0]["points"]} == {"a", "older/b"}
    assert [text.partition(":")[0] for text in content["left_out"]] == ["broken"]
    assert (tmp_path / "h.html").read_text().startswith("<!doctype html>")
    assert (tmp_path / "h.csv").read_text().startswith("case,step,metric")


def test_a_folder_without_records_is_refused(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["history", str(tmp_path)])

    assert isinstance(done.exception, RecordError)
    assert "no records below" in str(done.exception)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nowhere"], "no folder"),
        ([".", "--out", "junit=a.xml"], "judges nothing"),
        ([".", "-o", "new"], "makes no record"),
    ],
)
def test_a_mistake_is_one_line_that_says_what_to_type(words: list[str], says: str) -> None:
    done = CliRunner().invoke(app, ["history", *words])

    assert isinstance(done.exception, UsageError)
    assert says in str(done.exception)
    assert done.exception.hint
