"""The verbs with `--fleet local:2`: what the service counted, what the record keeps, how a run goes on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from benches.measuring import Origin

from loadlens.model.result import EngineResult
from loadlens.model.trial import TrialStatus
from loadlens.record import TrialRecord, open_run
from tests import tiny
from tests.calm import assert_counted, assert_ran
from tests.end_to_end import hitting
from tests.end_to_end.fleets import reached
from tests.end_to_end.running import assert_sound

LIMIT_S = 100
NODES = ("--fleet", "local:2")


def verb(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a verb of the program that is installed to its end: local nodes are started from its script."""
    return subprocess.run(
        [Path(sys.executable).with_name("loadlens"), *arguments],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        env=hitting.environment(),
        cwd=cwd,
    )


def result_of(trial: TrialRecord) -> EngineResult:
    assert trial.result is not None
    return trial.result


@pytest.fixture(scope="module")
def loaded(
    server: Origin, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Any], Path, dict[str, Any]]:
    """A load of 200 requests/s for 3 s: what the service counted, the record, and the JSON."""
    folder = tmp_path_factory.mktemp("fleet") / "record"
    server.new_books()
    done = hitting.tried(hitting.url_of(server), "-r", "200", "-d", "3s", "-o", str(folder), *NODES)
    assert_counted(done)
    return hitting.settled_books(server), folder, json.loads(done.stdout)


def test_the_service_counts_what_both_nodes_sent(loaded: tuple[dict[str, Any], Path, dict[str, Any]]) -> None:
    counted, _, content = loaded

    nodes = content["nodes"]
    assert content["requests"]["due"] == 600
    assert 0 < content["requests"]["issued"] == counted["received"]
    hitting.check_law(content["requests"])  # the last ones may still be under way at the end
    assert [node["streams"][0]["due"] for node in nodes] == [300, 300]  # every second arrival each
    assert [node["status"] for node in nodes] == ["complete"] * 2
    assert content["ended"] == "complete"


def test_the_record_keeps_the_rows_of_each_node(loaded: tuple[dict[str, Any], Path, dict[str, Any]]) -> None:
    _, folder, content = loaded
    (trial,) = open_run(folder).trials

    rows = trial.samples()

    assert trial.status is TrialStatus.COMPLETE
    assert trial.nodes == tuple(node["name"] for node in content["nodes"])
    assert sorted(rows["seq"]) == list(range(600))  # one schedule, each arrival once
    assert [rows.filter(node=name).height for name in trial.nodes] == [300, 300]
    whole = trial.connections().select("stream", "connection")
    assert whole.is_duplicated().sum() == 0  # numbers are unique over the nodes
    assert {path.name for path in (trial.path / "nodes" / trial.nodes[0]).iterdir()} == {
        *("samples.parquet", "connections.parquet", "intervals.hlog", "counters.jsonl")
    }
    assert sum(row.due for row in trial.counters().streams) == 600  # the merged ones
    assert open_run(folder).damage == ()


def test_the_report_has_a_row_for_each_node(loaded: tuple[dict[str, Any], Path, dict[str, Any]]) -> None:
    _, folder, content = loaded

    done = verb("report", str(folder), "--json")

    assert_ran(done)
    (detail,) = json.loads(done.stdout)["details"]
    rows = detail["nodes"]["rows"]
    assert [row[0].partition(" ")[0] for row in rows] == [node["name"] for node in content["nodes"]]
    assert [(row[1], row[2]) for row in rows] == [("50 %", 300)] * 2


def test_a_study_is_run_by_a_fleet_and_goes_on_with_another(tmp_path: Path) -> None:
    study = tiny.write_study(
        tmp_path / "study", study="fleet: {weights: [1, 3]}", duration="600ms", users="[8]"
    )
    record = tmp_path / "run"
    first = verb("run", str(study), "-q", "--out", str(record), *NODES)
    assert_ran(first)
    (record / "trials" / "alone-users-8" / "block-2" / "trial.json").unlink()  # as if it had not ended

    again = verb("run", str(study), "-q", "--resume", "--out", str(record), *NODES)

    assert_ran(again)
    run = open_run(record)
    assert run.is_complete
    assert_sound(run)
    for trial in run.trials:
        if trial.status is TrialStatus.COMPLETE:
            assert [node.share for node in result_of(trial).nodes] == [(0, 1, 4), (1, 4, 4)]
            assert [node.streams[0].due > 0 for node in result_of(trial).nodes] == [True, True]
            assert trial.connections().group_by("node", maintain_order=True).len()["len"].to_list() == [2, 6]
            watched = trial.readings().filter(source="proc")["labels"].str.json_path_match("$.service")
            assert {"web", "(node)", "(generator)"} <= set(watched)  # the load is no other program's
    assert run.study["fleet"] == {"nodes": 2, "weights": [1, 3]}


def test_a_study_may_take_fewer_nodes_than_there_are(tmp_path: Path) -> None:
    study = tiny.write_study(tmp_path / "study", study="fleet: {nodes: 1}", trials=1, users="[1]")

    done = verb("run", str(study), "-q", "--out", str(tmp_path / "run"), *NODES)

    assert_ran(done)
    (trial,) = open_run(tmp_path / "run").trials
    assert [node.share for node in result_of(trial).nodes] == [(0, 1, 1)]


def test_a_load_that_a_fleet_shares_is_not_steered_and_goes_on(server: Origin, tmp_path: Path) -> None:
    server.new_books()
    record = tmp_path / "run"
    process = hitting.spawned(hitting.url_of(server), "-r", "100", "-d", "4s", "-o", str(record), *NODES)
    assert reached(lambda: server.books()["received"] > 0, 30)
    refused = verb("steer", str(record), "--rate", "200")
    hitting.ended(process, 0, 4)  # 4: a generator that came late, which is not asked here

    assert refused.returncode == 2
    assert "the load stays as it is: it is shared by a fleet. Stop it and start another" in refused.stderr
    assert hitting.settled_books(server)["received"] == 400
