"""The documents of the page, from records: one that was kept, and one that grows under the server's eyes."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from loadlens import record
from loadlens.compare.records import of_records as records_of
from loadlens.follow.load import COUNTS, NEEDS, LoadOverTime
from loadlens.model.comparison import DEFAULT_MARGIN
from loadlens.model.counters import Counters
from loadlens.model.trial import TrialStatus
from loadlens.record import IntervalHistogram, TrialEnd, create_run, disk, open_run, open_trial
from loadlens.record.traces import trace_of
from loadlens.report import build
from loadlens.report.write import html
from loadlens.report.write.json import comparison_as_json
from loadlens.ui.finished import as_csv, slow_requests
from tests import records
from tests.unit.ui.pages import KEPT, asked, events, served

TRIAL = "trials/alone-users-1/block-1"


def test_a_folder_is_listed_with_its_runs_and_one_run_by_itself() -> None:
    with served(KEPT.parent) as folder, served(KEPT, is_run=True) as run:
        listed, single = asked(folder, "/api/runs").json(), asked(run, "/api/runs").json()

    assert [each["name"] for each in listed["runs"]] == ["version-1"]
    assert listed["single"] is None
    assert single["single"] == single["runs"][0]["id"] == listed["runs"][0]["id"]


def test_a_run_shows_its_cases_and_blocks_as_the_record_has_them() -> None:
    with served(KEPT, is_run=True) as server:
        run = asked(server, f"/api/runs/{record.run_id(KEPT)}").json()

    held = open_run(KEPT)
    planned = {(trial["case"], trial["block"]) for trial in held.study["trials"]}
    complete = {(t.case.slug, t.block) for t in held.trials if t.status is TrialStatus.COMPLETE}
    assert {(cell["case"], cell["block"]) for cell in run["trials"]} == planned
    assert {(c["case"], c["block"]) for c in run["trials"] if c["state"] == "complete"} == complete
    assert run["state"] == "interrupted"  # one of its trials was never sealed, and no process writes it


def test_the_columns_of_a_trial_add_up_to_its_accounting() -> None:
    with served(KEPT, is_run=True) as server:
        trial = asked(server, f"/api/runs/{record.run_id(KEPT)}/{TRIAL}").json()

    content = json.loads((KEPT / TRIAL / "trial.json").read_text())
    (stream,), (result,) = trial["streams"], content["engine"]["streams"]
    lengths = trial["points"]["length_s"]
    for column, name in {"due_per_s": "due", "sent_per_s": "issued", "answered_per_s": "answered"}.items():
        total = sum(rate * length for rate, length in zip(stream[column], lengths, strict=True))
        assert total == pytest.approx(result["requests"][name])
    assert {name: stream["totals"][name] for name in COUNTS} == {n: result["requests"][n] for n in COUNTS}
    assert stream["totals"]["status"] == result["status"]


def test_a_stream_of_a_run_that_is_over_brings_everything_and_ends(tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(KEPT, run)
    disk.append_checked_line(run / "events.jsonl", {"event": "stopped", "unix_ns": 9, "complete": 3})
    with served(run, is_run=True) as server:
        seen = list(events(server, record.run_id(run)))

    assert [event for event, _ in seen] == ["run", "trial", "end"]
    assert seen[-1][1] == {"state": "stopped"}


def test_a_page_hears_of_its_server_each_second_though_nothing_is_new(tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(KEPT, run)
    with served(run, is_run=True) as server:
        stream = events(server, record.run_id(run))
        kinds = [next(stream)[0] for _ in range(4)]

    assert kinds == ["run", "trial", "tick", "tick"]


def test_a_stream_of_a_killed_run_goes_on_when_the_run_does(tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(KEPT, run)
    with served(run, is_run=True) as server:
        stream = events(server, record.run_id(run))
        first = next(stream)
        assert next(stream)[0] == "trial"
        disk.append_checked_line(run / "events.jsonl", {"event": "ended", "unix_ns": 9, "complete": 4})
        rest = list(stream)

    assert first[1]["state"] == "interrupted"
    assert rest[-1] == ("end", {"state": "finished"})


def test_a_run_that_does_not_exist_yet_begins_under_the_eyes_of_its_page(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with served(run, is_run=True) as server:
        stream = events(server, record.run_id(run))
        assert asked(server, "/api/runs").json()["runs"] == []
        study = records.study()
        planned = records.trials(study)[0]
        with create_run(run, study, (planned,), {"command": ["loadlens", "run", "x"]}) as writer:
            trial = writer.trial(planned)
            writer.event("trial_started", **trial.name, position=1)
            trial.write_plan(records.plan().to_json())
            kind, content = next(stream)
            assert (kind, content["state"], content["running"]["trial"]) == ("run", "running", "block-1")
            kind, content = next(stream)
            assert (kind, content["state"]) == ("trial", "running")

            trial.started(t0_monotonic_ns=5_000, t0_unix_ns=9)
            write_live(trial.live)
            grown = next(content for kind, content in stream if kind in ("points", "trial"))
            assert grown["streams"][0]["totals"]["due"] > 0

            end = TrialEnd(TrialStatus.COMPLETE, (), records.engine_result(), 9, 5_000)
            trial.seal(end)
            writer.event(
                "trial_sealed",
                case=planned.case.slug,
                trial="block-1",
                status="complete",
                reasons=[],
                leaks=[],
            )
        rest = list(stream)

    assert rest[-1] == ("end", {"state": "finished"})
    assert [content["state"] for event, content in rest if event == "trial"] == ["complete"]


def test_two_pages_and_one_that_comes_late_hold_the_same_columns(tmp_path: Path) -> None:
    run = tmp_path / "run"
    study = records.study()
    planned = records.trials(study)[0]
    with served(run, is_run=True) as server, create_run(run, study, (planned,), {"command": []}) as writer:
        trial = writer.trial(planned)
        writer.event("trial_started", **trial.name, position=1)
        trial.write_plan(records.plan().to_json())
        trial.started(t0_monotonic_ns=5_000, t0_unix_ns=9)
        first = events(server, record.run_id(run))
        held = {"first": _starts(next(first)) + _starts(next(first))}
        write_live(trial.live)
        late = events(server, record.run_id(run))
        held["late"] = _starts(next(late)) + _starts(next(late))
        while len(held["first"]) < len(held["late"]):
            held["first"] += _starts(next(first))

    assert held["late"]
    assert held["first"] == held["late"]


def write_live(live: Path) -> None:
    """Live files of two intervals, with the generator's line after each."""
    records.write_live(live, samples=100, t0_monotonic_ns=5_000)
    lines = []
    for text in (live / "counters.jsonl").read_text().splitlines():
        row = json.loads(text) | {"length_s": 1.0}  # a point each
        row["start_s"] *= 4
        own = {name: row[name] for name in ("start_s", "length_s", "phase")}
        lines += [row, {**own, "stream": None, "generator": {"busy": [0.25], "stalled_s": [0.0]}}]
    records.write_lines(live / "counters.jsonl", lines)


def _starts(event: tuple[str, dict[str, object]]) -> list[float]:
    points = event[1].get("points")
    return list(points["start_s"]) if isinstance(points, dict) else []


def test_a_percentile_is_shown_from_the_requests_on_that_carry_its_interval() -> None:
    assert NEEDS == {"p50_s": 6, "p95_s": 72, "p99_s": 368}  # 2 (1/2)^6 and 0.95^72, 0.99^368 below 0.025


def test_a_point_has_the_times_of_its_own_intervals() -> None:
    load = LoadOverTime(records.plan())
    own = {"length_s": 0.5, "phase": "measure", "stream": None, "generator": {"busy": [0.5]}}
    rows = [records.counter_line(at / 2, length_s=0.5) for at in range(4)]
    counters = Counters.from_rows([*rows, *({**own, "start_s": at / 2} for at in range(4))])
    times = [(10, 1_000_000), (10, 1_000_000), (40, 9_000_000), (40, 9_000_000)]

    histograms = [_histogram(at / 2, *of) for at, of in enumerate(times)]
    load.take(counters, histograms, is_end=True)

    (stream,) = load.whole()["streams"]
    assert stream["count"] == [20, 80]
    assert stream["p50_s"] == pytest.approx([0.001, 0.009], rel=1e-3)
    assert stream["p95_s"] == [None, pytest.approx(0.009, rel=1e-3)]


def _histogram(start_s: float, count: int, value_ns: int) -> IntervalHistogram:
    upper = np.array([records.bucket_upper(value_ns)], dtype=np.uint64)
    counts = np.array([count], dtype=np.uint64)
    return IntervalHistogram(start_s, 0.5, "load", "look", "ok", "response", upper, counts)


def test_an_interval_whose_last_line_is_torn_off_waits_for_it() -> None:
    sealed = open_run(KEPT).trials[0]
    counters, histograms = sealed.counters(), sealed.intervals()
    whole, in_parts = LoadOverTime(sealed.plan), LoadOverTime(sealed.plan)
    whole.take(counters, histograms, is_end=True)

    for row in counters.streams:
        in_parts.take(type(counters)(streams=(row,)), ())
    assert in_parts.size == 0
    for own in counters.generator:
        in_parts.take(type(counters)(generator=(own,)), ())
    in_parts.take(type(counters)(), histograms, is_end=True)

    assert in_parts.whole()["streams"][0]["due_per_s"] == whole.whole()["streams"][0]["due_per_s"]


# --- a sealed trial beyond its columns ----------------------------------------------------------------------


def test_the_slowest_requests_are_those_of_the_table() -> None:
    with served(KEPT, is_run=True) as server:
        slow = asked(server, f"/api/runs/{record.run_id(KEPT)}/{TRIAL}/slow").json()

    rows = open_trial(KEPT / TRIAL).samples().filter(pl.col("done_ns") >= 0)
    times = sorted(
        ((row["done_ns"] - row["due_ns"]) / 1e9 for row in rows.iter_rows(named=True)), reverse=True
    )
    assert slow["of"] == rows.height
    assert [row["response_s"] for row in slow["rows"]] == times[:50]
    assert {row["request"] for row in slow["rows"]} == {"GET /"}
    assert all(row["response_s"] == pytest.approx(row["lag_s"] + row["service_s"]) for row in slow["rows"])
    assert all(row["connection_age_s"] >= 0 for row in slow["rows"])


def test_slow_requests_lead_to_their_traces_where_a_trace_context_was_sent(tmp_path: Path) -> None:
    shown = {}
    for name, headers in (("traced", (("traceparent", "{{traceparent}}"),)), ("plain", ())):
        planned = records.trials(records.study())[0]
        with create_run(tmp_path / name, records.study(), (planned,), {"command": []}) as writer:
            trial = writer.trial(planned)
            trial.write_plan(records.plan(headers).to_json())
            trial.started(t0_monotonic_ns=5_000, t0_unix_ns=9)
            records.write_live(trial.live, samples=10, t0_monotonic_ns=5_000)
            trial.seal(TrialEnd(TrialStatus.COMPLETE, (), records.engine_result(), 9, 5_000))
        shown[name] = slow_requests(open_run(tmp_path / name).trials[0])["rows"]

    expected = {trace_of(7, 9, 0, seq).trace_id for seq in range(10)}
    assert {row["trace_id"] for row in shown["traced"]} == expected
    assert {row["trace_id"] for row in shown["plain"]} == {None}


@pytest.mark.parametrize("table", ["samples", "connections", "readings"])
def test_a_table_is_handed_out_whole_as_csv_and_as_parquet(table: str) -> None:
    with served(KEPT, is_run=True) as server:
        place = f"/api/runs/{record.run_id(KEPT)}/{TRIAL}"
        text, columns = (asked(server, f"{place}/{table}.{kind}") for kind in ("csv", "parquet"))

    rows = getattr(open_trial(KEPT / TRIAL), table)()
    assert text.headers["Content-Disposition"].endswith(f'"alone-users-1-block-1-{table}.csv"')
    assert pl.read_csv(text.body, infer_schema_length=None).height == rows.height
    assert pl.read_parquet(columns.body).height == rows.height


def test_a_damaged_table_is_refused_before_anything_of_it_is_sent(tmp_path: Path) -> None:
    copy = shutil.copytree(KEPT, tmp_path / "run")
    os.truncate(copy / TRIAL / "samples.parquet", 100)

    with served(copy, is_run=True) as server:
        answer = asked(server, f"/api/runs/{record.run_id(copy)}/{TRIAL}/samples.csv")

    assert answer.status == 500
    assert "damaged" in answer.json()["error"]


def test_a_table_without_rows_has_its_head() -> None:
    trial = open_trial(KEPT / TRIAL)
    no_rows: Iterator[pl.DataFrame] = iter(())
    trial.sample_parts = lambda columns: no_rows  # type: ignore[method-assign]

    text = b"".join(as_csv(trial, "samples"))

    assert text.startswith(b"seq,")
    assert b"due_ns" in text.splitlines()[0]


def test_the_points_are_a_table_too() -> None:
    with served(KEPT, is_run=True) as server:
        place = f"/api/runs/{record.run_id(KEPT)}/{TRIAL}"
        table, trial = asked(server, f"{place}/points.csv"), asked(server, place).json()

    rows = pl.read_csv(table.body)
    assert rows["start_s"].to_list() == trial["points"]["start_s"]
    assert rows["due_per_s"].to_list() == trial["streams"][0]["due_per_s"]


def test_a_trial_that_is_not_sealed_has_no_tables_yet() -> None:
    with served(KEPT, is_run=True) as server:
        place = f"/api/runs/{record.run_id(KEPT)}/trials/alone-users-1/block-2"
        answers = [asked(server, f"{place}/{name}").status for name in ("slow", "samples.csv", "points.csv")]

    assert answers == [409, 409, 200]


def test_files_that_are_none_of_the_tables_are_not_there() -> None:
    with served(KEPT, is_run=True) as server:
        place = f"/api/runs/{record.run_id(KEPT)}/{TRIAL}"
        names = ("trial.json", "plan.json", "samples", "samples.bin", "..%2F..%2Feffective.yaml")
        answers = [asked(server, f"{place}/{name}").status for name in names]

    assert answers == [404] * 5


def test_the_report_is_framed_without_the_rights_of_the_page(tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(KEPT, run)
    with served(run, is_run=True) as server:
        none = asked(server, f"/api/runs/{record.run_id(run)}/report")
        (run / "report.html").write_text("<p>answer")
        report = asked(server, f"/api/runs/{record.run_id(run)}/report")
        (run / "report.html").unlink()
        disk.append_checked_line(run / "events.jsonl", {"event": "ended", "unix_ns": 9, "complete": 3})
        made = asked(server, f"/api/runs/{record.run_id(run)}/report")

    assert (none.status, report.status, report.body) == (404, 200, b"<p>answer")
    assert html.page(build.report(open_run(run))).encode() == made.body
    assert report.headers["Content-Security-Policy"].startswith("sandbox allow-scripts")
    assert "allow-same-origin" not in report.headers["Content-Security-Policy"]


def test_two_runs_are_compared_as_the_verb_does(tmp_path: Path) -> None:
    for name in ("a", "b"):
        shutil.copytree(KEPT, tmp_path / name)
    query = "&".join(f"{name}={record.run_id(tmp_path / name)}" for name in ("a", "b"))
    with served(tmp_path) as server:
        answer = asked(server, f"/api/compare?{query}").json()
        page = asked(server, f"/api/compare/page?{query}")

    compared = records_of(open_run(tmp_path / "a"), open_run(tmp_path / "b"), DEFAULT_MARGIN)
    assert answer["comparison"] == json.loads(comparison_as_json(compared))
    assert len(answer["words"]) == len(compared.effects)
    assert compared.sentence in unescape(page.body.decode())


def test_a_record_that_takes_the_place_of_another_is_shown_alone(tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(KEPT, run)
    with served(run, is_run=True) as server:
        name = record.run_id(run)
        before = asked(server, f"/api/runs/{name}").json()
        cell = next(cell for cell in before["trials"] if cell["state"] == "complete")
        asked(server, f"/api/runs/{name}/trials/{cell['case']}/{cell['trial']}")
        shutil.rmtree(run)
        with create_run(run, records.study(), records.trials(records.study()), {"command": []}) as writer:
            writer.event("warned", words="the second")
        after = asked(server, f"/api/runs/{name}").json()
        gone = asked(server, f"/api/runs/{name}/trials/{cell['case']}/{cell['trial']}")

    assert before["created_s"] < after["created_s"]
    assert [line["words"] for line in after["log"]] == ["warned: the second"]
    assert gone.status == 404


# --- actions ----------------------------------------------------------------------------------------------


def test_what_is_not_possible_is_refused_with_the_reason() -> None:
    with served(KEPT, is_run=True) as server:
        place = f"/api/runs/{record.run_id(KEPT)}"
        run = asked(server, place).json()
        refused = {name: asked(server, f"{place}/{name}", "POST") for name in ("stop", "resume", "again")}
        other = asked(server, f"{place}/burn", "POST")

    assert run["actions"] == {"stop": False, "resume": False, "again": False}
    assert {name: answer.json()["error"] for name, answer in refused.items()} == run["why"]
    assert [answer.status for answer in refused.values()] == [409] * 3
    assert other.status == 404


def test_an_action_needs_the_token_and_no_get_acts(tmp_path: Path) -> None:
    begun: list[Path] = []

    def begin(path: Path, *, is_resumed: bool) -> Path:
        begun.append(path)
        return path

    with served(KEPT, is_run=True, begin=begin) as server:
        place = f"/api/runs/{record.run_id(KEPT)}/again"
        cookie = f"loadlens-{server.guard.port}={server.guard.cookie}"
        answers = [
            asked(server, place, "POST", token=None, Cookie=cookie).status,
            asked(server, place, "POST", Origin="https://evil.example").status,
            asked(server, place).status,
        ]
        assert (answers, begun) == ([401, 403, 404], [])
        assert asked(server, place, "POST").status == 202

    assert begun == [KEPT]


def test_only_the_process_that_holds_the_lock_is_interrupted(tmp_path: Path) -> None:
    with create_run(tmp_path / "run", records.study(), (), {}):
        mine = record.writer_of(tmp_path / "run")
        again = record.writer_of(tmp_path / "run", mine)
        not_another = record.writer_of(tmp_path / "run", os.getppid())

    assert mine == again == not_another == os.getpid()
    assert record.writer_of(tmp_path / "run", mine) is None  # the lock ended
    assert not record.interrupt_writer(tmp_path / "run")
