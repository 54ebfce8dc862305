"""The machines of a fleet in a record: a gate over the trials that count, and what each machine saw."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from loadlens.measure import whole_run
from loadlens.model.facts import Gate
from loadlens.model.finding import Estimate
from loadlens.model.trial import TrialStatus
from loadlens.record import RunWriter, TrialEnd, create_run, open_run
from tests import records
from tests.unit.record.nodes import node

LOST = {"status": "lost", "reasons": ["no answer for 1 s"], "streams": [], "start_late_ns": None}
BROKEN = {"status": "incomplete", "reasons": ["node near was lost"]}


def keep(writer: RunWriter, block: int, kept_as: TrialStatus, near: dict[str, Any], **changes: Any) -> None:
    """Seal a trial of two machines, each with 12 connections; those of the machine `far` took 5 ms."""
    trial = writer.trial(records.trials(records.study())[block - 1])
    trial.write_plan(records.plan().to_json())
    records.write_live_of_engine(trial.live, samples=100)
    for name, took_ns in (("far", 5_000_000), ("near", 1_000_000)):
        own = trial.live / "nodes" / name
        own.mkdir(parents=True)
        rows = [(n, n, 1_000, 1_000 + took_ns, -1, 4, 0, 0, 0, 0, 99, -1, 0) for n in range(12)]
        (own / "connections.bin").write_bytes(records.chunk(b"LLC3", rows))
    engine = records.engine_result(nodes=[node("far"), node("near") | near], **changes)
    trial.seal(TrialEnd(kept_as, tuple(changes.get("reasons", ())), engine, 9, 5))


def gate(folder: Path) -> Gate | None:
    return whole_run.facts(open_run(folder)).gate("nodes")


@pytest.fixture
def writer(tmp_path: Path) -> RunWriter:
    study = records.study()
    return create_run(tmp_path / "run", study, records.trials(study), {"cores": 2})


def test_machines_that_were_there_to_the_end_and_together_pass(writer: RunWriter) -> None:
    keep(writer, 1, TrialStatus.COMPLETE, {"start_late_ns": 2_500_000, "clock_error_ns": 60_000})

    made = gate(writer.path)

    assert made is not None
    assert (made.passed, made.text) == (True, "2 nodes began within 2.50 ms, on clocks known to 60.0 µs")


def test_a_trial_that_lost_a_machine_and_was_repeated_closes_no_gate(writer: RunWriter) -> None:
    keep(writer, 1, TrialStatus.INVALID, LOST, **BROKEN)
    first = gate(writer.path)
    keep(writer, 2, TrialStatus.COMPLETE, {})

    second = gate(writer.path)

    assert first is not None
    assert second is not None
    assert (first.passed, first.text) == (False, "node near was lost")
    assert second.passed is True


def test_what_each_machine_saw_is_known_by_itself(writer: RunWriter) -> None:
    keep(writer, 1, TrialStatus.COMPLETE, {})

    (step,) = whole_run.facts(open_run(writer.path)).curves[0].steps

    far, near = step.quality.nodes
    assert (far.label, far.host, far.due, near.due) == ("far", "far.example", 100, 100)
    assert (far.part, near.part) == (1 / 3, 2 / 3)
    assert isinstance(far.connect, Estimate)
    assert isinstance(near.connect, Estimate)
    assert far.connect.point == pytest.approx(0.005)
    assert near.connect.point == pytest.approx(0.001)
    assert far.connect.samples == near.connect.samples == 12
    assert far.verdict == "kept_up"
