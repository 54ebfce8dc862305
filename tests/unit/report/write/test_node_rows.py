"""Rows of the machines of a fleet on the screen of `hit`, in its JSON, and among the faults of its load."""

from __future__ import annotations

import json
from typing import Any

import pytest

from loadlens.model.result import EngineResult
from loadlens.model.trial import TrialStatus
from loadlens.report.write.json import hit_as_json
from loadlens.report.write.terminal.hit_summary import Screen, summary
from loadlens.run import trial_faults
from tests.unit.record.nodes import node
from tests.unit.report.write import hit_result


def near(**changes: Any) -> dict[str, Any]:
    """A machine with two of three parts, whose figures are round."""
    figures = {
        "throughput_rps": hit_result.quantity(1626.0, 1600.0, 1650.0),
        "p50_s": hit_result.quantity(0.0021),
        "p99_s": hit_result.quantity(None, undecided="3 above it, needs 20: run 70 s"),
    }
    stream = {"name": "load", "due": 16_260, "ok": 16_260, "failed": 0, **figures}
    return node("near", streams=[stream], start_late_ns=1_200_000, clock_error_ns=41_000, **changes)


def lines(*nodes: dict[str, Any], width: int = 100, **changes: Any) -> list[str]:
    result = EngineResult.from_json(hit_result.result() | {"nodes": list(nodes), **changes})
    return summary(result, hit_result.plan(), Screen(width=width))


def test_each_machine_of_a_fleet_has_a_row() -> None:
    lost = node("far", streams=[], start_late_ns=None, generator=None, threads=None)

    shown = [line.split() for line in lines(lost, near())]

    head = shown.index(["nodes", "share", "requests", "ok/s", "p50", "p99", "began", "clock"])
    assert shown[head + 1] == ["far", "33.3", "%", "complete", "±40.0", "µs"]
    assert shown[head + 2] == [
        *("near", "66.7", "%", "16,260", "1,626", "2.10", "ms", "undecided", "+1.20", "ms", "±41.0", "µs")
    ]


@pytest.mark.parametrize("width", [80, 100, 140])
def test_rows_of_machines_fit_the_screen(width: int) -> None:
    shown = lines(near(), near() | {"name": "a-very-long-name-of-a-machine.region.example"}, width=width)

    assert max(map(len, shown)) <= width


def test_the_load_of_one_machine_has_no_such_rows() -> None:
    assert not any("nodes" in line for line in lines())


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"start_late_ns": 100_000_001}, "node near: began 100 ms late, at most 100 ms"),
        ({"clock_error_ns": 251_000_000}, "node near: its clock is known to 251 ms only, at most 250 ms"),
    ],
)
def test_a_load_is_invalid_without_one_of_its_machines_or_its_clock(
    changes: dict[str, Any], fault: str
) -> None:
    made = hit_result.result() | {"nodes": [near(), near() | changes]}
    result = EngineResult.from_json(made)

    status, reasons = trial_faults.verdict(result)
    shown = summary(result, hit_result.plan(), Screen(width=100))

    assert (status, reasons) == (TrialStatus.INVALID, (fault,))
    assert shown[0].endswith("■ invalid")
    assert f"■ {fault}" in shown


def test_a_load_that_lost_a_machine_is_invalid_for_the_reason_that_names_it() -> None:
    why = "node near was lost about 1.2 s after the start: no answer for 1 s"
    lost = near(status="lost", reasons=["no answer for 1 s"])
    made = hit_result.result() | {"nodes": [near(), lost], "status": "incomplete", "reasons": [why]}
    result = EngineResult.from_json(made)

    shown = summary(result, hit_result.plan(), Screen(width=100))

    assert trial_faults.verdict(result) == (TrialStatus.INVALID, (why,))
    assert shown[0].endswith("■ invalid")
    assert [line for line in shown if "lost" in line] == [f"■ {why}"]


@pytest.mark.parametrize("changes", [{"start_late_ns": 100_000_000}, {"clock_error_ns": 250_000_000}])
def test_a_load_at_its_bounds_counts(changes: dict[str, Any]) -> None:
    result = EngineResult.from_json(hit_result.result() | {"nodes": [near() | changes]})

    assert trial_faults.verdict(result) == (TrialStatus.COMPLETE, ())


def test_the_json_of_a_load_has_its_machines() -> None:
    content = json.loads(hit_as_json(hit_result.result() | {"nodes": [near()]}, hit_result.plan()))

    (only,) = content["nodes"]
    assert (only["name"], only["share"], only["streams"][0]["due"]) == ("near", [1, 3, 3], 16_260)
    assert json.loads(hit_as_json(hit_result.result(), hit_result.plan()))["nodes"] == []
