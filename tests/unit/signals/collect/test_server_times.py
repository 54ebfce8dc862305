"""Response times as services write them down, read while the files grow."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from loadlens.signals.collect.server_times import METRICS, ServerTimesMonitor
from tests.unit.signals.collect.test_monitor import read, unlisted, value, values


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "times.jsonl"


@pytest.fixture
def monitor(file: Path) -> ServerTimesMonitor:
    opened = ServerTimesMonitor()
    keys = {"path": "path", "status": "status", "seconds": "duration_s"}
    opened.open({"files": [{"service": "api", "file": str(file), **keys}]})
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
    assert {row.metric for row in rows} == {metric.name for metric in METRICS}
    assert unlisted(rows, METRICS) == set()


def test_a_line_without_end_is_given_up_and_does_not_fill_the_memory(
    monitor: ServerTimesMonitor, file: Path
) -> None:
    file.write_text("x" * 5_000_000 + "\n" + line("/a", 200, 0.5))

    rows = read(monitor)

    assert values(rows, "response_time") == [0.5]
    assert value(rows, "faulty_lines", service="api") >= 1
