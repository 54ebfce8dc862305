"""The server of the page next to real runs: its sums are the accounting, whatever happens to run and page."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from loadlens.follow.load import COUNTS
from loadlens.record import open_run, run_id
from loadlens.ui.server import Server
from tests import tiny
from tests.end_to_end import running
from tests.end_to_end.hitting import environment
from tests.unit.ui.pages import asked, events

WITHIN_S = 60.0


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "loadlens", *map(str, arguments)]


def page_of(url: str) -> Server:
    """The parts of a server that the requests of tests need, from the URL that it prints."""
    port, _, token = url.strip().removeprefix("http://127.0.0.1:").partition("/#")
    return cast(Server, SimpleNamespace(guard=SimpleNamespace(port=int(port), token=token)))


@contextmanager
def run_with_page(study: Path, out: Path) -> Iterator[tuple[subprocess.Popen[str], Server]]:
    """A run with --ui, and its page."""
    with subprocess.Popen(
        command("run", study, "--out", out, "--ui", "-q"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        while not line.startswith("page: "):
            assert line, "the run ended without a page"
            line = process.stderr.readline()
        try:
            yield process, page_of(line.removeprefix("page: "))
        finally:
            process.kill()


@contextmanager
def ui(place: Path) -> Iterator[Server]:
    """`loadlens ui`, which ends in order on Ctrl-C."""
    with subprocess.Popen(
        command("ui", place), stdout=subprocess.PIPE, text=True, env=environment()
    ) as process:
        assert process.stdout is not None
        try:
            yield page_of(process.stdout.readline())
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(10) == 0


def run_of(page: Server, run: str, *states: str) -> dict[str, Any]:
    """The run's document once it is in one of these states."""
    until = time.monotonic() + WITHIN_S
    while True:
        answer = asked(page, f"/api/runs/{run}")
        if answer.status == 200 and (document := answer.json())["state"] in states:
            return cast(dict[str, Any], document)
        assert time.monotonic() < until, f"{run} is not {states}: {answer}"
        time.sleep(0.1)


def grown(trial: dict[str, Any], added: dict[str, Any]) -> None:
    """Append columns as the page does."""
    pairs = [(trial["points"], added["points"]), (trial["generator"], added["generator"])]
    pairs += list(zip(trial["streams"], added["streams"], strict=True))
    for into, of in pairs:
        for name, values in of.items():
            if isinstance(values, list):
                into[name] = [*into.get(name, ()), *values]  # none before the first point


def stays_open(page: Server, run: str) -> socket.socket:
    """A page that asks for the stream of a run, and reads nothing of it."""
    connection = socket.create_connection(("127.0.0.1", page.guard.port), timeout=10)
    own = f"Host: 127.0.0.1:{page.guard.port}\r\nX-Loadlens-Token: {page.guard.token}\r\n"
    connection.sendall(f"GET /api/runs/{run}/stream HTTP/1.1\r\n{own}\r\n".encode())
    return connection


def test_sums_of_the_stream_are_the_accounting_also_for_a_page_that_connects_again(tmp_path: Path) -> None:
    study = tiny.write_study(tmp_path / "study", trials=1, duration="3s")
    record = tmp_path / "record"
    sealed: dict[tuple[str, str], dict[str, Any]] = {}
    live: dict[tuple[str, str], dict[str, Any]] = {}

    with run_with_page(study, record) as (process, page):
        name = asked(page, "/api/runs").json()["single"]
        tab = stays_open(page, name)
        is_over, reconnects = False, 0
        while not is_over:
            for number, (event, content) in enumerate(events(page, name)):
                key = (content.get("case", ""), content.get("trial", ""))
                if event == "trial":
                    (sealed if content["state"] != "running" else live)[key] = content
                elif event == "points":
                    grown(live[key], content)
                is_over = event == "end"
                if number == 1 and reconnects < 3 and not is_over:
                    reconnects += 1
                    time.sleep(0.7)
                    break  # the page is loaded anew, long before the run ends
        process.communicate(timeout=WITHIN_S)
        tab.close()

    trials = {(each.case.slug, each.name): each for each in open_run(record).trials}
    assert process.returncode in (0, 4)  # invalid trials, of a generator without a core, are shown too
    assert reconnects == 3
    with ui(record) as later:  # a trial that was sealed while the page was loaded is there afterwards
        for case, name_of in trials.keys() - sealed.keys():
            sealed[case, name_of] = asked(later, f"/api/runs/{name}/trials/{case}/{name_of}").json()
    assert trials.keys() == sealed.keys()
    assert live
    for key, of_record in trials.items():
        assert of_record.result is not None
        (stream,) = of_record.result.streams
        (shown,) = sealed[key]["streams"]
        assert {of: shown["totals"][of] for of in COUNTS} == {
            of: getattr(stream.requests, of) for of in COUNTS
        }
        lengths = sealed[key]["points"]["length_s"]
        for column, of in {"due_per_s": "due", "sent_per_s": "issued", "answered_per_s": "answered"}.items():
            total = sum(rate * length for rate, length in zip(shown[column], lengths, strict=True))
            assert total == pytest.approx(getattr(stream.requests, of))
        if key not in live:  # it ran while the page was loaded
            continue
        seen = len(live[key]["points"]["start_s"])
        assert seen >= 2  # a point per second, from the first second on
        for column in ("due_per_s", "ok_per_s", "in_flight", "count", "p50_s", "p99_s"):
            assert live[key]["streams"][0][column] == shown[column][:seen]


def test_a_killed_run_ends_its_page_and_goes_on_from_another(tmp_path: Path) -> None:
    study = tiny.write_study(tmp_path / "study", trials=1, duration="2s")
    record = tmp_path / "runs" / "record"
    with run_with_page(study, record) as (process, page):
        running.wait_for_samples(record)
        process.kill()
        until = time.monotonic() + WITHIN_S
        while True:
            try:
                asked(page, "/api/runs")
            except (OSError, AssertionError):
                break  # the page ended with the run
            assert time.monotonic() < until
            time.sleep(0.05)
    assert running.left_after(record, within_s=5.0) == []

    name = run_id(record)
    with ui(record.parent) as other:
        run = run_of(other, name, "interrupted")
        assert "unsealed" in {trial["state"] for trial in run["trials"]}
        assert run["actions"] == {"stop": False, "resume": True, "again": True}
        assert asked(other, f"/api/runs/{name}/resume", "POST").status == 202
        run_of(other, name, "finished")

    assert open_run(record).is_complete


def test_a_run_is_stopped_in_order_and_begun_again_from_the_page(tmp_path: Path) -> None:
    study = tiny.write_study(tmp_path / "study", trials=1, duration="5s")
    record = tmp_path / "runs" / "record"
    with ui(tmp_path) as page, run_with_page(study, record) as (process, own):
        running.wait_for_samples(record)
        assert asked(own, f"/api/runs/{run_id(record)}/stop", "POST").status == 202
        process.communicate(timeout=WITHIN_S)
        assert asked(page, f"/api/runs/{run_id(record)}").status == 404  # in a folder of the folder
    assert process.returncode == 130

    with ui(record.parent) as page:
        assert run_of(page, run_id(record), "stopped")["why"]["resume"] is None
        begun = asked(page, f"/api/runs/{run_id(record)}/again", "POST").json()["id"]
        assert begun != run_id(record)
        run_of(page, begun, "running")
        assert asked(page, f"/api/runs/{begun}/stop", "POST").status == 202
        run_of(page, begun, "stopped")


def test_the_users_of_a_running_load_are_changed_from_the_page(tmp_path: Path) -> None:
    study = tiny.write_study(tmp_path / "study", trials=1, duration="3s", users="[2]")
    record = tmp_path / "record"
    path = f"/api/runs/{run_id(record)}/load"
    with run_with_page(study, record) as (process, page):
        running.wait_for_samples(record)
        assert asked(page, f"{path}?users=none", "POST").status == 400
        assert asked(page, f"{path}?rate_per_s=5", "POST").status == 409  # it has users
        assert asked(page, f"{path}?users=3", "POST").status == 202
        process.communicate(timeout=WITHIN_S)

    result = open_run(record).trials[0].result
    assert result is not None
    assert [(change.old, change.new) for change in result.load_changes] == [(2, 3)]


def test_ctrl_c_is_for_the_run_and_leaves_no_server(tmp_path: Path) -> None:
    study = tiny.write_study(tmp_path / "study", trials=1, duration="5s")
    record = tmp_path / "record"
    with run_with_page(study, record) as (process, page):
        running.wait_for_samples(record)
        os.kill(process.pid, signal.SIGINT)
        process.communicate(timeout=WITHIN_S)

        with pytest.raises(OSError, match="refused"):
            asked(page, "/api/runs")
    assert process.returncode == 130
