"""A load begins when it is told to: at once, at a time of this machine's clock, or not at all."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest

from loadlens import engine
from loadlens.errors import EngineError
from loadlens.model.workload import Open, Plan, Scenario, Share, Step, Stream, Target, shares_of

MS = 1_000_000
WHOLE = Share()


@pytest.fixture
def port() -> Iterator[int]:
    """A port where connections are accepted, and nothing is answered."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        yield server.getsockname()[1]


def plan(port: int, share: Share = WHOLE) -> Plan:
    """90 requests in 90 ms."""
    step = Step("a", "GET", "/")
    target = Target("127.0.0.1", port, f"127.0.0.1:{port}")
    workload = Open(1000.0, max_in_flight=90)
    stream = Stream("load", "load", target, (Scenario("a", 1.0, (step,)),), workload, timeout_ns=MS)
    return Plan(1, (stream,), threads=2, duration_ns=90 * MS, share=share)


def test_a_load_begins_at_the_time_it_was_given(port: int) -> None:
    run = engine.Run(plan(port))
    at_ns = time.monotonic_ns() + 200 * MS

    run.start(at_ns)
    assert run.progress()["phase"] in {"starting", "warmup", "measure"}
    assert run.wait(60)

    result = run.result()
    assert result["t0_monotonic_ns"] == at_ns
    assert result["streams"][0]["requests"]["due"] == 90
    assert result["start_late_ns"] >= 0
    assert result["t0_unix_ns"] - at_ns == pytest.approx(time.time_ns() - time.monotonic_ns(), abs=1e9)


def test_a_start_that_is_past_or_too_near_is_refused_and_sends_nothing(port: int) -> None:
    run = engine.Run(plan(port))

    for ahead_ns in (-500 * MS, 0, MS // 2):
        with pytest.raises(EngineError, match=r"the start is [0-9.]+ ms (in the past|ahead): at least 1 ms"):
            run.start(time.monotonic_ns() + ahead_ns)

    assert run.progress()["phase"] == "starting"
    run.start()  # it can still be started
    assert run.wait(60)
    assert run.result()["streams"][0]["requests"]["due"] == 90


def test_a_load_that_is_stopped_before_it_begins_never_does(port: int) -> None:
    run = engine.Run(plan(port))
    run.start(time.monotonic_ns() + 3_600_000 * MS)

    run.stop()

    assert run.wait(60)
    result = run.result()
    assert result["status"] == "stopped"
    assert result["streams"][0]["requests"]["due"] == 0
    assert result["measured_s"] == result["elapsed_s"] == 0.0


def test_a_run_that_is_given_up_before_it_begins_leaves_no_thread(port: int) -> None:
    run = engine.Run(plan(port))
    run.start(time.monotonic_ns() + 3_600_000 * MS)

    del run  # joins its threads: without a stop the test would take an hour


def test_engines_with_weights_of_one_three_and_five_carry_one_load_together(port: int) -> None:
    due = []
    for share in shares_of([10, 30, 50]):
        run = engine.Run(plan(port, share))
        run.start()
        assert run.wait(60)
        due.append(run.result()["streams"][0]["requests"]["due"])

    assert due == [10, 30, 50]  # of 90 arrivals
