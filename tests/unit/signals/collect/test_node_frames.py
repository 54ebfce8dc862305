"""Frames of a real Node process: each thread is at a line, and waits for a thing, that its script says."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from loadlens.machine import listening_sockets
from loadlens.model.readings import METRICS, StacksMetrics
from loadlens.signals.collect.monitor import Row
from loadlens.signals.collect.stacks import may_read
from loadlens.signals.collect.threads import NotRead, node_frames, node_inspector
from tests.unit.signals.collect.test_monitor import read, unlisted
from tests.unit.signals.collect.test_stacks import labels_of, opened, places

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="no Node here")

SCRIPT = """\
const crypto = require("crypto");
const { Worker, isMainThread } = require("worker_threads");

function hash(password) {
  const salt = "{";
  return crypto.pbkdf2Sync(password, salt, 20000, 32, "sha256"); // computes
}

function waits() {
  const cell = new Int32Array(new SharedArrayBuffer(4));
  Atomics.wait(cell, 0, 0, 60000); // lock
}

if (isMainThread) {
  new Worker(__filename);
  setInterval(() => hash("x"), 1);
} else {
  console.log("ready");
  setTimeout(waits, 20);
}
"""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Path]]:
    path = tmp_path_factory.mktemp("service") / "app.js"
    path.write_text(SCRIPT)
    process = subprocess.Popen(["node", str(path)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield process.pid, path
    finally:
        process.kill()
        process.wait()


def line_of(mark: str) -> int:
    (line,) = [n for n, text in enumerate(SCRIPT.splitlines(), 1) if text.endswith(f"// {mark}")]
    return line


def ports_of(pid: int) -> set[int]:
    return set(listening_sockets.ports_of(pid))


def test_each_thread_is_at_its_line_and_the_inspector_is_shut_meanwhile_and_after(
    service: tuple[int, Path],
) -> None:
    pid, path = service
    monitor = opened(pid)
    rows: list[Row] = []

    for _ in range(12):
        rows += read(monitor)
        time.sleep(0.02)
    meanwhile = ports_of(pid)
    rows += read(monitor, last=True)

    seen = places(rows, pid)
    main = [place for place in seen["main"] if place[0]]
    assert main == [(line_of("computes"), "", True)]
    assert (line_of("lock"), "lock", False) in seen["worker"]
    (frames, *_) = [each.frames for each in labels_of(rows, "stack_frames") if "pbkdf2Sync" in each.frames]
    assert f"hash\tapp\t{path}\t{line_of('computes')}\town\npbkdf2Sync\tcrypto\t" in frames
    texts = {int(each.line): each.text for each in labels_of(rows, "source_line")}
    assert texts[line_of("lock")].startswith("Atomics.wait(")
    assert labels_of(rows, StacksMetrics.stack_failures.name) == []
    assert meanwhile == ports_of(pid) == set()
    assert unlisted(rows, METRICS["stacks"]) == set()
    assert may_read([pid])


def test_a_port_that_another_process_uses_is_said_and_nothing_is_opened(
    service: tuple[int, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_inspector, "WAIT_S", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as other:
        monkeypatch.setattr(node_inspector, "PORT", other.getsockname()[1])

        with pytest.raises(NotRead, match=r"which its inspector needs, is used by process \d+ \("):
            node_inspector.evaluate(service[0], "1")

    assert ports_of(service[0]) == set()


def test_an_expression_that_throws_is_a_fault_and_the_inspector_is_shut(service: tuple[int, Path]) -> None:
    with pytest.raises(NotRead, match="does not answer: Uncaught"):
        node_inspector.evaluate(service[0], "missing()")

    assert ports_of(service[0]) == set()


def test_an_inspector_that_is_open_already_stays_open() -> None:
    process = subprocess.Popen(
        ["node", "--inspect=0", "-e", "setInterval(() => {}, 1000)"], stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr is not None
        assert "Debugger listening" in process.stderr.readline()
        before = ports_of(process.pid)
        node_inspector_port, *_ = before

        answer = node_inspector.evaluate(process.pid, "process.pid")

        assert answer == process.pid
        assert ports_of(process.pid) == {node_inspector_port}
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize(
    ("file", "is_library", "module"),
    [
        ("/srv/shop/orders.js", False, "orders"),
        ("/srv/shop/node_modules/express/lib/router/index.js", True, "express"),
        ("/srv/node_modules/@fastify/static/index.js", True, "@fastify/static"),
        ("node:internal/crypto/pbkdf2", True, "crypto"),
        ("node:fs", True, "fs"),
        ("", True, ""),
    ],
)
def test_own_code_is_no_package_and_not_of_node(file: str, is_library: bool, module: str) -> None:
    assert node_frames.is_library(file) == is_library
    assert node_frames.module_of(file) == module
