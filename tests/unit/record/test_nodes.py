"""A trial whose load several machines made: a folder each, read as one table with a column `node`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from loadlens.export import requests_table
from loadlens.model.result import Node
from loadlens.model.trial import SAMPLE, TrialStatus
from loadlens.record import RunRecord, TrialEnd, TrialRecord, create_run, layout, open_run, sample_rows
from loadlens.ui import finished
from tests import records
from tests.unit.record.nodes import BEGINS, node
from tests.unit.record.test_record import resealed

NAMES = ("far", "near")  # in the order of their threads, which is not that of the alphabet
SEQS = {"far": range(1, 300, 3), "near": [seq for seq in range(300) if seq % 3 != 1]}


def thinned(seqs: Iterable[int], k: int) -> bytes:
    """A chunk of the rows that a machine keeps that thins by 2^k."""
    kept = [records.sample(seq, thinned=k) for seq in seqs if records.hashed(seq) % 2**k == 0]
    return records.chunk(b"LLS1", kept)


def written(folder: Path, *, seal: bool, thin: int = 0) -> TrialRecord:
    """A trial of two machines; the far one thinned its rows."""
    names = [*reversed(NAMES)]
    study = records.study()
    planned = records.trials(study)[0]
    with create_run(folder, study, (planned,), {"cores": 2}) as writer:
        trial = writer.trial(planned)
        trial.write_plan(records.plan().to_json())
        trial.started(t0_monotonic_ns=5, t0_unix_ns=9)
        records.write_live_of_engine(trial.live, samples=0)
        (trial.live / "samples.bin").unlink()  # of a fleet only intervals are merged
        (trial.live / "connections.bin").unlink()
        for name in names:
            own = trial.live / "nodes" / name
            own.mkdir(parents=True)
            records.write_live_of_engine(own, samples=100)
            (own / "samples.bin").write_bytes(thinned(SEQS[name], thin if name == "far" else 0))
        if seal:
            engine = records.engine_result(nodes=[node(name) for name in NAMES])
            trial.seal(TrialEnd(TrialStatus.COMPLETE, (), engine, 9, 5))
    return open_run(folder).trials[0]


@pytest.fixture(params=["parquet", "rows as written", "not sealed"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return one of the forms in which rows are kept."""
    if request.param == "rows as written":
        monkeypatch.setattr(sample_rows, "can_write_parquet", lambda: False)
    return str(request.param)


def test_rows_of_all_machines_are_one_table_that_names_them(tmp_path: Path, kind: str) -> None:
    trial = written(tmp_path / "run", seal=kind != "not sealed")

    rows = trial.samples()

    order = sorted(NAMES) if kind == "not sealed" else NAMES  # which order is only known at the end
    assert trial.nodes == tuple(order)
    assert rows.columns == [*(name for name, _ in SAMPLE.fields), "node"]
    assert rows.select("node", "seq").rows() == [(name, seq) for name in order for seq in SEQS[name]]
    assert [row for part in trial.sample_parts(["seq", "node"]) for row in part.rows()] == [
        (seq, name) for name in order for seq in SEQS[name]
    ]
    assert trial.samples(["seq"]).columns == ["seq"]
    assert trial.connections()["node"].to_list() == list(order)
    assert [row.start_s for row in trial.counters().streams] == [0.0, 0.25]  # the merged ones


def test_rows_of_machines_that_thinned_unlike_stand_for_as_many_requests(tmp_path: Path, kind: str) -> None:
    trial = written(tmp_path / "run", seal=kind != "not sealed", thin=3)

    rows = trial.samples(["node", "seq", "thinned"])

    chosen = {(name, seq, 3) for name in NAMES for seq in SEQS[name] if records.hashed(seq) % 8 == 0}
    assert set(rows.rows()) == chosen


def test_a_trial_of_a_fleet_says_so_by_its_version_and_seals_the_files_of_each_machine(
    tmp_path: Path,
) -> None:
    trial = written(tmp_path / "run", seal=True)

    content = json.loads((trial.path / layout.TRIAL).read_text())

    own = ("connections.parquet", "counters.jsonl", "intervals.hlog", "samples.parquet")
    whole = ("counters.jsonl", "intervals.hlog", "plan.json", "readings.parquet")
    assert content["schema_version"] == 4
    assert set(trial.digests) == {*whole, *(f"nodes/{name}/{file}" for name in NAMES for file in own)}
    assert trial.result is not None
    assert [(each.name, each.part) for each in trial.result.nodes] == [("far", 1 / 3), ("near", 2 / 3)]
    assert isinstance(trial.result.nodes[0], Node)
    with pytest.raises(layout.NewerRecord, match="schema version 4 is newer than 3"):
        layout.version_of(content, trial.path, layout.CHANGED_VERSION)  # what an earlier reader does


def test_a_machine_whose_rows_are_gone_is_named(tmp_path: Path) -> None:
    trial = written(tmp_path / "run", seal=True)
    (trial.path / "nodes" / "near" / "samples.parquet").unlink()

    (damaged,) = open_run(tmp_path / "run").trials

    assert damaged.status is TrialStatus.INVALID
    assert damaged.reasons == ("nodes/near/samples.parquet: the file is missing",)


def test_a_trial_whose_machines_cannot_be_read_is_damaged(tmp_path: Path) -> None:
    trial = written(tmp_path / "run", seal=True)
    resealed(trial.path / layout.TRIAL, engine=records.engine_result(nodes=[node("far", share=7)]))

    (damaged,) = open_run(tmp_path / "run").trials

    assert damaged.status is TrialStatus.INVALID
    assert "nodes[0].share" in damaged.reasons[0]


def test_the_trace_of_a_request_follows_from_the_clock_of_its_machine(tmp_path: Path) -> None:
    trial = written(tmp_path / "run", seal=True)
    stream = records.plan((("traceparent", "{{traceparent}}"),)).streams[0]
    trial.plan = replace(records.plan(), streams=(stream,))
    rows = trial.samples().group_by("node", maintain_order=True).head(1)

    traces = trial.traces(rows)

    from loadlens.record.traces import trace_of  # its own tests compare it with the engine

    assert traces == [trace_of(7, BEGINS[name], 0, SEQS[name][0]) for name in NAMES]


def test_tables_that_are_handed_out_name_the_machine_of_each_request(tmp_path: Path) -> None:
    trial = written(tmp_path / "run", seal=True)

    exported = [part["node"].to_list() for part in requests_table.frames(trial)]
    lines = b"".join(finished.as_csv(trial, "samples")).decode().splitlines()

    order = [name for name in NAMES for _ in SEQS[name]]
    assert exported == [order]
    assert lines[0].endswith(",node")
    assert [line.rpartition(",")[2] for line in lines[1:]] == order


def test_a_trial_of_one_machine_has_no_nodes(tmp_path: Path) -> None:
    path = Path(__file__).parents[2] / "data" / "records" / "version-1"
    record: RunRecord = open_run(path)

    trial = record.trials[0]

    assert trial.nodes == ()
    assert set(trial.samples(["node"])["node"]) == {""}
    assert "node" not in trial.samples().columns
