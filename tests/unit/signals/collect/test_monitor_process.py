"""The monitor process: on its grid, cheap, and never longer there than the lab."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

from loadlens.errors import TestbedError
from loadlens.signals.collect import MonitorSpec, start
from loadlens.signals.collect.host import Host
from loadlens.signals.collect.proc import Processes, Watched
from loadlens.signals.collect.scrape import Scrapes, ScrapeTarget
from tests.end_to_end.testbed_cases import is_alive, still_there

ROOT = Path(__file__).parents[4]


@dataclass(frozen=True, slots=True)
class Unknown:
    """A source that is not registered."""

    monitor: ClassVar[str] = "unknown"


def this_process() -> Processes:
    return Processes((Watched("(generator)", 1, os.getpid(), tree=False),))


def rows_of(path: Path) -> list[dict[str, Any]]:
    whole = path.read_text().rpartition("\n")[0]  # the last line may be in the middle of being written
    return [json.loads(line) for line in whole.splitlines()]


def wait_for(path: Path, metric: str, count: int) -> list[dict[str, Any]]:
    """The rows of a metric once there are so many of them."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        rows = [row for row in rows_of(path) if row["metric"] == metric]
        if len(rows) >= count:
            return rows
        time.sleep(0.01)
    raise AssertionError(f"fewer than {count} rows of {metric}")


def test_the_first_reading_is_on_disk_when_start_returns_and_the_last_when_stop_returns(
    tmp_path: Path,
) -> None:
    out = tmp_path / "readings.jsonl"
    before = time.monotonic_ns()
    monitors = start(MonitorSpec([this_process(), Host()], interval_s=60.0), out)
    first = rows_of(out)
    between = time.monotonic_ns()
    complaint = monitors.stop()
    after = time.monotonic_ns()
    last = rows_of(out)[len(first) :]

    assert complaint is None
    assert all(before <= row["t"] <= between for row in first)
    assert all(between <= row["t"] <= after for row in last)
    for rows in (first, last):
        assert {row["source"] for row in rows} == {"proc", "host", "monitor"}
        assert {"run_s", "cpu_idle_s", "cost_cpu_s"} <= {row["metric"] for row in rows}


def test_rows_have_the_form_of_the_record(tmp_path: Path) -> None:
    out = tmp_path / "readings.jsonl"
    start(MonitorSpec([this_process()]), out).stop()

    for row in rows_of(out):
        assert list(row) == ["t", "source", "metric", "labels", "unit", "value"]
        assert list(row["labels"]) == sorted(row["labels"])
        assert all(isinstance(label, str) for label in row["labels"].values())
    labels = [row["labels"] for row in rows_of(out) if row["metric"] == "run_s"]
    assert {"pid", "process", "replica", "service"} == set(labels[0])


def test_ticks_stand_on_a_grid_from_the_first_one(tmp_path: Path) -> None:
    out = tmp_path / "readings.jsonl"
    monitors = start(MonitorSpec([], interval_s=0.05), out)
    late = wait_for(out, "tick_late_s", 8)
    monitors.stop()

    due = [row["t"] - round(row["value"] * 1e9) for row in late[:8]]
    steps = [(at - due[0]) / 50e6 for at in due]
    assert steps == pytest.approx([round(step) for step in steps], abs=1e-3)  # whole numbers of 50 ms


def test_ticks_that_were_slept_through_are_rows_without_a_value(tmp_path: Path) -> None:
    out = tmp_path / "readings.jsonl"
    monitors = start(MonitorSpec([], interval_s=0.05), out)  # at most 60 are rows: 3 s
    os.kill(monitors.pid, signal.SIGSTOP)
    time.sleep(0.7)
    os.kill(monitors.pid, signal.SIGCONT)
    missed = wait_for(out, "missed", 10)
    monitors.stop()
    counted = max(row["value"] for row in rows_of(out) if row["metric"] == "missed_ticks")

    assert all(row["value"] is None and row["source"] == "monitor" for row in missed)
    assert counted == len([row for row in rows_of(out) if row["metric"] == "missed"]) >= 10


def test_a_source_that_fails_is_a_gap_in_the_record_and_the_others_go_on(tmp_path: Path) -> None:
    out = tmp_path / "readings.jsonl"
    nobody = Scrapes((ScrapeTarget("api", 1, "http://127.0.0.1:1/metrics"),))

    complaint = start(MonitorSpec([nobody, this_process()]), out).stop()

    rows = rows_of(out)
    assert complaint is None
    assert {row["value"] for row in rows if row["metric"] == "missed"} == {None}
    assert any(row["metric"] == "run_s" for row in rows)


@pytest.fixture
def silent() -> Iterator[ScrapeTarget]:
    """A target that answers one scrape, accepts all others and sends a byte of each second, without end."""
    server = socket.create_server(("127.0.0.1", 0))
    taken: list[socket.socket] = []

    def serve() -> None:
        with contextlib.suppress(OSError):  # the test ended
            first, _ = server.accept()
            first.recv(1 << 16)
            first.sendall(b"HTTP/1.0 200 OK\r\n\r\nhits_total 1\n")
            first.close()
            while True:
                taken.append(server.accept()[0])
                threading.Thread(target=drip, args=(taken[-1],), daemon=True).start()

    def drip(connection: socket.socket) -> None:
        with contextlib.suppress(OSError):  # the scrape or the test ended
            connection.sendall(b"HTTP/1.0 200 OK\r\nX-Silent: ")
            while True:
                connection.sendall(b"-")
                time.sleep(1.0)

    threading.Thread(target=serve, daemon=True).start()
    yield ScrapeTarget("api", 1, f"http://127.0.0.1:{server.getsockname()[1]}/metrics", every_s=0.2)
    server.shutdown(socket.SHUT_RDWR)
    for each in (server, *taken):
        each.close()


def test_closing_readings_are_on_disk_while_the_next_source_still_waits(
    tmp_path: Path, silent: ScrapeTarget
) -> None:
    out = tmp_path / "readings.jsonl"
    monitors = start(MonitorSpec([this_process(), Scrapes((silent,))], interval_s=60.0), out)

    os.kill(monitors.pid, signal.SIGTERM)
    wait_for(out, "run_s", 2)
    os.kill(monitors.pid, signal.SIGKILL)
    monitors.stop()

    ends_of_ticks = [row for row in rows_of(out) if row["metric"] == "cost_cpu_s"]
    assert len(ends_of_ticks) == 1  # of the first


@pytest.mark.slow
def test_targets_that_never_answer_take_no_other_reading_from_the_record(
    tmp_path: Path, silent: ScrapeTarget
) -> None:
    out = tmp_path / "readings.jsonl"
    spec = MonitorSpec([this_process(), Scrapes((silent, silent)), Host()], interval_s=0.2)
    monitors = start(spec, out)
    wait_for(out, "missed", 1)  # a scrape runs
    began_ns = time.monotonic_ns()

    complaint = monitors.stop()

    assert complaint is None
    closing = [row for row in rows_of(out) if row["t"] >= began_ns]
    assert {"proc", "host", "scrape", "monitor"} == {row["source"] for row in closing}
    assert time.monotonic_ns() - began_ns < 15e9  # both targets are waited for at one time, 6 s twice


def test_an_unknown_source_is_an_error_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(TestbedError, match=r"the monitors did not start: .*KeyError: 'unknown'"):
        start(MonitorSpec([Unknown()]), tmp_path / "readings.jsonl")


def test_a_folder_that_is_not_there_is_an_error_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(TestbedError, match="No such file or directory"):
        start(MonitorSpec([]), tmp_path / "absent" / "readings.jsonl")


def test_term_takes_a_last_reading_and_int_is_for_the_lab(tmp_path: Path) -> None:
    out = tmp_path / "readings.jsonl"
    monitors = start(MonitorSpec([], interval_s=60.0), out)

    os.kill(monitors.pid, signal.SIGINT)
    os.kill(monitors.pid, signal.SIGTERM)
    late = wait_for(out, "tick_late_s", 2)
    complaint = monitors.stop()

    assert len(late) == 2
    assert complaint is None


def test_the_monitors_end_when_the_lab_is_killed(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from loadlens.signals.collect import MonitorSpec, start;"
        "print(start(MonitorSpec([]), Path(sys.argv[1])).pid, flush=True); time.sleep(60)"
    )
    lab = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "readings.jsonl")],
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": str(ROOT / "python")},
    )
    assert lab.stdout is not None
    pid = int(lab.stdout.readline())

    lab.kill()
    left = still_there(lambda: [pid] if is_alive(pid) else [], within_s=3.0)
    lab.communicate()

    assert left == []


def test_the_monitor_process_loads_nothing_heavy() -> None:
    code = (
        "import sys, runpy, loadlens.signals.collect, loadlens.signals.collect.__main__ as main\n"
        "[loadlens.signals.collect.make(name) for name in loadlens.signals.collect.MONITORS]\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(ROOT / "python")},
    )

    heavy = {"numpy", "polars", "scipy", "pydantic", "altair", "httpx", "psutil", "rich", "prometheus_client"}
    assert heavy.isdisjoint(done.stdout.split())
