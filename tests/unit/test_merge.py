"""Faults of merging that Python names; the simulation of the engine and `end_to_end` merge real counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from loadlens import engine
from loadlens.errors import EngineError
from loadlens.model.workload import Open, Plan, Scenario, Step, Stream, Target

STEPS = (Step("get", "GET", "/{{env LOADLENS_NOT_SET_HERE}}"),)
STREAM = Stream("load", "load", Target("h", 80, "h"), (Scenario("s", 1.0, STEPS),), Open(5.0), timeout_ns=1)
PLAN = Plan(1, (STREAM,), duration_ns=1)


def test_a_folder_without_counts_is_named(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=rf"{tmp_path}/sums\.bin: No such file"):
        engine.merge(PLAN, [tmp_path], tmp_path)


def test_a_node_that_sent_nothing_makes_the_result_incomplete_and_needs_no_secret(tmp_path: Path) -> None:
    (tmp_path / "sums.bin").touch()

    merged = engine.merge(PLAN, [tmp_path], tmp_path)

    assert merged["status"] == "incomplete"
    assert merged["reasons"] == ["its counts end at 0.000 s, before its load did"]
    assert merged["streams"][0]["requests"]["due"] == 0
