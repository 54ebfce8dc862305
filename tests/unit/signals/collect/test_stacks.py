"""Stacks of a real Python process: each thread is at a line, and waits for a thing, that its script says."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from loadlens.model.readings import METRICS, Labels, StacksMetrics
from loadlens.model.stacks import CLIENT, Frame, Wait
from loadlens.model.topology import Service
from loadlens.signals.collect.monitor import Row
from loadlens.signals.collect.scene import Root, Running, Scene
from loadlens.signals.collect.stacks import (
    Pause,
    Roots,
    StacksMonitor,
    may_read,
    wanted,
)
from loadlens.signals.collect.threads import python_code, python_frames, waits
from tests.unit.signals.collect.test_monitor import read, unlisted, values

SCRIPT = """\
import hashlib, os, queue, socket, threading, time

lock = threading.Lock()
lock.acquire()

def timer():
    time.sleep(60)

def socket_():
    left, right = socket.socketpair()
    left.recv(1)

def lock_():
    with lock:
        pass

def library():
    queue.Queue().get()

def computes():
    while True:
        hashlib.pbkdf2_hmac("sha256", b"a", b"b", 200_000)

def process():
    if os.fork() == 0:
        time.sleep(60)
    os.wait()

for target in (timer, socket_, lock_, library, computes, process):
    threading.Thread(target=target, name=target.__name__, daemon=True).start()
print("ready", flush=True)
time.sleep(60)
"""
# The line of each thread, and what it waits for there; empty: it runs.
LINES: dict[str, tuple[str, Wait]] = {
    "timer": ("time.sleep(60)", "timer"),
    "socket_": ("left.recv(1)", "socket"),
    "lock_": ("with lock:", "lock"),
    "library": ("queue.Queue().get()", "lock"),
    "computes": ('hashlib.pbkdf2_hmac("sha256", b"a", b"b", 200_000)', ""),
    "process": ("os.wait()", "process"),
}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Path]]:
    path = tmp_path_factory.mktemp("service") / "service.py"
    path.write_text(SCRIPT)
    process = subprocess.Popen(
        [sys.executable, str(path)], stdout=subprocess.PIPE, start_new_session=True, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process.pid, path
    finally:
        subprocess.run(["kill", "-9", "--", f"-{process.pid}"], check=False)
        process.wait()


def opened(*pids: int) -> StacksMonitor:
    monitor = StacksMonitor()
    monitor.open(Roots(tuple(Root("app", 1, pid) for pid in pids)))
    return monitor


def rows_until(monitor: StacksMonitor, is_enough: Callable[[Sequence[Row]], bool]) -> list[Row]:
    """Return the rows of all ticks up to the one after which it is enough, and of the last tick."""
    rows: list[Row] = []
    for _ in range(200):
        rows += read(monitor)
        if is_enough(rows):
            break
        time.sleep(0.02)
    return rows + read(monitor, last=True)


def places(rows: Sequence[Row], pid: int) -> dict[str, set[tuple[int, str, bool]]]:
    """Return line of its innermost own code, wait, and whether it runs, of each sample of each thread."""
    frames = {
        labels.id: [Frame.of(line) for line in labels.frames.split("\n")]
        for labels in labels_of(rows, StacksMetrics.stack_frames.name)
    }
    seen: dict[str, set[tuple[int, str, bool]]] = {}
    for row in rows:
        labels = Labels.of(row.labels)
        if row.metric == StacksMetrics.thread_sample.name and labels.stack and labels.pid == str(pid):
            own = [frame for frame in frames[labels.stack] if frame.is_own]
            place = (own[-1].line if own else 0, labels.wait, bool(row.value))
            seen.setdefault(labels.thread, set()).add(place)
    return seen


def labels_of(rows: Sequence[Row], metric: str) -> list[Labels]:
    return [Labels.of(row.labels) for row in rows if row.metric == metric]


def expected() -> dict[str, tuple[int, str, bool]]:
    lines = [line.strip() for line in SCRIPT.splitlines()]
    return {name: (lines.index(text) + 1, wait, not wait) for name, (text, wait) in LINES.items()}


def test_each_thread_is_at_its_line_and_waits_for_what_the_line_says(service: tuple[int, Path]) -> None:
    pid, _ = service
    monitor = opened(pid)

    rows = rows_until(
        monitor,
        lambda rows: all(place in places(rows, pid).get(name, ()) for name, place in expected().items()),
    )

    seen = places(rows, pid)
    for name, place in expected().items():
        assert place in seen[name], name
    for name in ("timer", "socket_", "lock_", "library", "process"):
        assert seen[name] == {expected()[name]}, name
    assert unlisted(rows, METRICS["stacks"]) == set()


def test_the_lines_of_own_code_are_copied(service: tuple[int, Path]) -> None:
    pid, path = service

    rows = rows_until(opened(pid), lambda rows: len(places(rows, pid)) >= len(LINES))

    texts = {(each.file, int(each.line)): each.text for each in labels_of(rows, "source_line")}
    for name, (text, _) in LINES.items():
        assert texts[str(path), expected()[name][0]] == text
    assert {file for file, _ in texts} == {str(path)}  # no line of a library


def test_processes_that_a_service_starts_are_sampled_too(service: tuple[int, Path]) -> None:
    pid, _ = service

    rows = rows_until(
        opened(pid), lambda rows: len({each.pid for each in labels_of(rows, "thread_sample")}) > 1
    )

    (child,) = {each.pid for each in labels_of(rows, "thread_sample")} - {str(pid)}
    parent = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[1]
    assert parent == str(pid)


def test_a_process_of_another_language_has_states_and_no_frames() -> None:
    process = subprocess.Popen(["sleep", "60"])
    try:
        rows = rows_until(
            opened(process.pid), lambda rows: "timer" in {x.wait for x in labels_of(rows, "thread_sample")}
        )
    finally:
        process.kill()
        process.wait()

    assert {each.stack for each in labels_of(rows, "thread_sample")} == {""}
    assert values(rows, "stack_failures") == []


@pytest.mark.parametrize(
    ("complaint", "why"),
    [
        ("Permission Denied: Try running again with elevated permissions", "not permitted"),
        ("Error: Failed to find python version from target process", None),
    ],
)
def test_frames_that_cannot_be_read_are_said_and_the_states_stay(
    service: tuple[int, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    complaint: str,
    why: str | None,
) -> None:
    program = tmp_path / "py-spy"
    program.write_text(f"#!/bin/sh\necho '{complaint}' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr(python_frames, "program", lambda: str(program))

    rows = rows_until(opened(service[0]), lambda rows: len(labels_of(rows, "thread_sample")) > 50)

    reasons = {each.why for each in labels_of(rows, "stack_failures")}
    assert reasons == {why or complaint.removeprefix("Error: ")}
    assert {each.stack for each in labels_of(rows, "thread_sample")} == {""}
    assert "lock" in {each.wait for each in labels_of(rows, "thread_sample")}


def test_a_machine_without_py_spy_is_said(service: tuple[int, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python_frames, "program", lambda: None)

    rows = rows_until(opened(service[0]), lambda rows: len(labels_of(rows, "thread_sample")) > 50)

    assert {each.why for each in labels_of(rows, "stack_failures")} == {"py-spy is not installed"}


def test_a_process_of_another_user_is_said_to_be_out_of_reach(
    service: tuple[int, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str) -> str:
        raise PermissionError(path)

    monkeypatch.setattr("os.readlink", refuse)

    rows = rows_until(opened(service[0]), lambda rows: len(labels_of(rows, "thread_sample")) > 5)

    assert {each.why for each in labels_of(rows, "stack_failures")} == {"not permitted"}
    assert "lock" in {each.wait for each in labels_of(rows, "thread_sample")}


def test_a_thread_waits_for_what_it_called_or_for_a_client_that_called() -> None:
    ours: dict[str, int] = {}  # threads of this process, with their numbers

    def receive(name: str, connection: socket.socket) -> None:
        ours[name] = threading.get_native_id()
        connection.recv(1)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as caller, listening.accept()[0] as called:
            threads = [
                threading.Thread(target=receive, args=each)
                for each in (("calls", caller), ("serves", called))
            ]
            for thread in threads:
                thread.start()
            ends = time.monotonic() + 10
            known: dict[str, str] = {}
            while len(known) < 2 and time.monotonic() < ends:
                time.sleep(0.01)
                states = {tid: waits.state_of(os.getpid(), tid) for tid in ours.values()}
                there = {tid: state for tid, state in states.items() if state is not None}
                seen = waits.with_other_ends(os.getpid(), there)
                known = {name: seen[tid].to for name, tid in ours.items() if tid in seen and seen[tid].to}
            caller.send(b"x")
            called.send(b"x")
            for thread in threads:
                thread.join()

    assert known == {"calls": f"127.0.0.1:{port}", "serves": CLIENT}


def test_a_thread_waits_for_the_events_of_an_epoll() -> None:
    with select.epoll() as poll:
        thread = threading.Thread(target=poll.poll, args=(5.0,))
        thread.start()
        ends, state = time.monotonic() + 10, None
        while (state is None or state.wait != "events") and thread.native_id and time.monotonic() < ends:
            time.sleep(0.01)
            state = waits.state_of(os.getpid(), thread.native_id)
        number = poll.fileno()
        reader, writer = os.pipe()
        poll.register(reader, select.EPOLLIN)
        os.write(writer, b"x")  # ends the wait
        thread.join()
        os.close(reader)
        os.close(writer)

    assert state is not None
    assert (state.wait, state.to) == ("events", f"epoll {number}")


def test_only_a_trial_for_stacks_wants_them() -> None:
    process = Running("app", 1, 7, defined=Service("app"))
    elsewhere = Running("far", 1, 8, defined=Service("far"), is_here=False)

    assert wanted(Scene((process,), {})) is None
    assert wanted(Scene((process, elsewhere), {}, samples_stacks=True)) == Roots((Root("app", 1, 7),))


def test_a_frame_comes_back_from_its_line() -> None:
    frame = Frame("query", "shop.orders", "/srv/my shop/orders.py", 41, is_own=True)

    assert Frame.of(frame.text) == frame


@pytest.mark.parametrize(
    ("file", "is_library", "module"),
    [
        ("/srv/shop/orders.py", False, "orders"),
        ("/srv/venv/lib/python3.11/site-packages/requests/api.py", True, "requests.api"),
        ("/usr/lib/python3/dist-packages/flask/__init__.py", True, "flask"),
        ("/usr/local/lib/python3.14t/http/client.py", True, "http.client"),
        ("/home/a/.local/share/uv/python/cpython-3.12/lib/python3.12/queue.py", True, "queue"),
        ("<frozen importlib._bootstrap>", True, "<frozen importlib._bootstrap>"),
        ("/srv/venv/bin/uvicorn", True, "uvicorn"),
    ],
)
def test_own_code_is_neither_installed_nor_of_the_standard_library(
    file: str, is_library: bool, module: str
) -> None:
    assert python_code.is_library(file) == is_library
    assert python_code.module_of(file) == module


@pytest.mark.parametrize(
    ("command", "is_read"),
    [
        (["sleep", "60"], False),
        (["sh", "-c", f"{sys.executable} -c 'import time; time.sleep(60)' & wait"], True),
    ],
)
def test_no_code_is_read_where_no_process_runs_a_language_that_is(command: list[str], is_read: bool) -> None:
    process = subprocess.Popen(command, start_new_session=True)
    try:
        ends = time.monotonic() + 10
        while may_read([process.pid]) != is_read and time.monotonic() < ends:
            time.sleep(0.01)  # until the shell has started its child

        assert may_read([process.pid]) == is_read
    finally:
        subprocess.run(["kill", "-9", "--", f"-{process.pid}"], check=False)
        process.wait()


@pytest.mark.parametrize(
    ("answer_s", "moments"),
    [
        (0.0005, 40),  # 0.01 of a core at 20 per second
        (0.002, 8 + 16),  # every 100 ms at 2 %, after the first 8
        (0.1, 8 + 16),  # never more than 100 ms apart
    ],
)
def test_a_process_that_answers_itself_is_asked_at_most_for_2_percent_of_a_core(
    answer_s: float, moments: int
) -> None:
    pause, asked = Pause(), 0

    for tick in range(40):  # 2 s
        asked += pause.is_over(tick * 50_000_000, lambda: asked * answer_s)  # noqa: B023

    assert asked == moments
