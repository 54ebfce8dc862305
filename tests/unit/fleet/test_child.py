"""The engine's process on a node, as a real process at the end of a pipe."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from loadlens.fleet.child import SILENT
from loadlens.model.workload import Plan, RecordTo, Scenario
from tests import records


class Pipe:
    """The agent's side."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "loadlens.fleet.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def tell(self, **message: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def hear(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer


@contextmanager
def child() -> Iterator[Pipe]:
    pipe = Pipe()
    try:
        yield pipe
    finally:
        pipe.process.kill()
        pipe.process.wait()
        for stream in (pipe.process.stdin, pipe.process.stdout):
            assert stream is not None
            stream.close()


def plan(tmp_path: Path) -> Plan:
    return replace(records.plan(), record=RecordTo(str(tmp_path)))


def test_it_ends_at_once_when_its_pipe_is_closed(tmp_path: Path) -> None:
    with child() as pipe:
        pipe.tell(do="prepare", plan=plan(tmp_path).to_json())
        assert pipe.hear() == {"is": "prepared", "notes": []}

        assert pipe.process.stdin is not None
        pipe.process.stdin.close()

        assert pipe.process.wait(timeout=10) == 0


def test_a_plan_that_the_engine_refuses_comes_back_with_every_fault(tmp_path: Path) -> None:
    bad = plan(tmp_path)
    bad = replace(bad, streams=(replace(bad.streams[0], scenarios=(Scenario("none", 1.0, ()),)),))
    with child() as pipe:
        pipe.tell(do="prepare", plan=bad.to_json())

        answer = pipe.hear()

    assert (answer["is"], answer["kind"]) == ("refused", "PlanError")
    assert [where for where, _ in answer["faults"]] == ["streams[0].scenarios[0].steps"]


def test_a_start_that_is_past_is_refused(tmp_path: Path) -> None:
    with child() as pipe:
        pipe.tell(do="prepare", plan=plan(tmp_path).to_json())
        pipe.hear()

        pipe.tell(do="start", at_ns=time.monotonic_ns() - 1_000_000)

        answer = pipe.hear()
        assert (answer["is"], answer["kind"]) == ("refused", "EngineError")


def test_a_start_before_anything_is_prepared_is_answered_and_the_process_goes_on() -> None:
    with child() as pipe:
        pipe.tell(do="start", at_ns=time.monotonic_ns() + 10**9)
        pipe.tell(do="beat")

        assert pipe.hear() == {"is": "failed", "what": "the start came before the load was prepared"}
        assert pipe.hear() == {"is": "alive"}


@pytest.mark.slow  # as long as it is silent
def test_it_ends_by_itself_when_no_beat_comes() -> None:
    with child() as pipe:
        pipe.tell(do="beat")

        assert pipe.process.wait(timeout=20) == SILENT
