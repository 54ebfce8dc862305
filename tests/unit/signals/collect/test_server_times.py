"""Response times as services write them down, read while the files grow."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from loadlens.model.readings import METRICS
from loadlens.signals.collect.server_times import Files, ServerTimesMonitor, TimesFile
from tests.unit.signals.collect.test_monitor import read, unlisted, value, values


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "times.jsonl"


@pytest.fixture
def monitor(file: Path) -> ServerTimesMonitor:
    opened = ServerTimesMonitor()
    opened.open(Files((TimesFile("api", str(file), "path", "status", "duration_s"),)))
    return opened


def line(path: str, status: int, seconds: float) -> str:
    return json.dumps({"path": path, "status": status, "duration_s": seconds, "pid": 1}) + "\n"


def test_each_line_is_a_row_with_service_path_and_status(monitor: ServerTimesMonitor, file: Path) -> None:
    file.write_text(line("/a", 200, 0.25) + line("/a", 500, 0.5))

    rows = read(monitor)

    assert value(rows, "response_time", service="api", path="/a", status="200") == 0.25
    assert value(rows, "response_time", service="api", path="/a", status="500") == 0.5
    assert [row.unit for row in rows] == ["s", "s"]


def test_a_file_that_appears_later_and_grows_is_read_once(monitor: ServerTimesMonitor, file: Path) -> None:
    absent = read(monitor)
    file.write_text(line("/a", 200, 0.1))
    first = read(monitor)
    with file.open("a") as growing:
        growing.write(line("/a", 200, 0.2))
    second = read(monitor)
    third = read(monitor)

    assert absent == []
    assert values(first, "response_time") == [0.1]
    assert values(second, "response_time") == [0.2]
    assert third == []


def test_a_line_that_is_not_finished_waits_for_its_end(monitor: ServerTimesMonitor, file: Path) -> None:
    whole = line("/a", 200, 0.125)
    file.write_text(whole[:20])
    begun = read(monitor)
    with file.open("a") as growing:
        growing.write(whole[20:])
    finished = read(monitor)

    assert begun == []
    assert values(finished, "response_time") == [0.125]


def test_lines_that_cannot_be_read_are_counted_and_the_others_stay(
    monitor: ServerTimesMonitor, file: Path
) -> None:
    bad = ["not json\n", '{"path": "/a"}\n', "[1]\n", '{"path":"/","status":1,"duration_s":"x"}\n', "7\n"]
    file.write_text("".join(bad) + "\n" + line("/a", 200, 0.5))

    rows = read(monitor)

    assert values(rows, "response_time") == [0.5]
    assert value(rows, "faulty_lines", service="api") == 5
    assert {row.metric for row in rows} == {metric.name for metric in METRICS["server_times"]}
    assert unlisted(rows, METRICS["server_times"]) == set()


def test_a_line_without_end_is_given_up_and_does_not_fill_the_memory(
    monitor: ServerTimesMonitor, file: Path
) -> None:
    file.write_text("x" * 5_000_000 + "\n" + line("/a", 200, 0.5))

    rows = read(monitor)

    assert values(rows, "response_time") == [0.5]
    assert value(rows, "faulty_lines", service="api") >= 1


def test_the_last_reading_has_answers_that_are_written_down_late(
    monitor: ServerTimesMonitor, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service sends an answer first; with little CPU time it writes the line a while later."""
    file.write_text(line("/a", 200, 0.1))
    late = [line("/a", 200, 0.2), line("/a", 200, 0.3)]

    def write_one_while_waiting(_: float) -> None:
        if late:
            with file.open("a") as growing:
                growing.write(late.pop(0))

    monkeypatch.setattr(time, "sleep", write_one_while_waiting)

    assert values(read(monitor, last=True), "response_time") == [0.1, 0.2, 0.3]
