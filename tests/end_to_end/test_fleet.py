"""A load from several nodes of a Dask cluster: counts next to the service's own books, and broken nodes."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from benches.measuring import ROOT, Origin

from loadlens.engine import Progress, Result
from loadlens.errors import EngineError, PlanError
from loadlens.fleet import member, trial
from loadlens.fleet.cluster import Fleet, connect
from loadlens.fleet.place import place_of
from loadlens.fleet.trial import run_trial
from loadlens.model.workload import Closed, Feed, Open, RecordTo
from loadlens.run.engine_trial import Listener
from tests.end_to_end.fleets import Cluster, cluster, engines, plan_of, reached
from tests.end_to_end.hitting import check_law, settled_books

NODES = ("gen1", "gen2", "gen3")
RATE = 400.0


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cluster, Fleet]]:
    with (
        cluster(tmp_path_factory.mktemp("nodes"), *NODES) as nodes,
        connect(place_of(str(nodes.file)), nodes=len(NODES)) as fleet,
    ):
        fleet.most = None  # who joins takes part
        yield nodes, fleet


@pytest.fixture
def nodes(running: tuple[Cluster, Fleet]) -> Iterator[Cluster]:
    """Three nodes; those that a test breaks are repaired after it."""
    nodes, fleet = running
    yield nodes

    def there() -> set[str]:
        return {worker["name"] for worker in fleet.client.scheduler_info(n_workers=-1)["workers"].values()}

    for name, worker in list(nodes.workers.items()):
        worker.send_signal(signal.SIGCONT)
        if name not in NODES:
            worker.kill()
            del nodes.workers[name]
        with contextlib.suppress(subprocess.TimeoutExpired):
            worker.wait(0.0 if name in NODES else None)
            assert reached(lambda gone=name: gone not in there(), within_s=10)  # type: ignore[misc]
            if name in NODES:
                nodes.workers[name] = nodes.worker(name)
    assert reached(lambda: there() == set(NODES), within_s=20)


@pytest.fixture
def fleet(running: tuple[Cluster, Fleet], nodes: Cluster) -> Fleet:
    return running[1]


class Hearing(Listener):
    """Keeps what it hears; does something once the load runs."""

    def __init__(self, act: Callable[[], object] | None = None, *, after: int = 50) -> None:
        self.act, self.after = act, after
        self.notes: list[str] = []
        self.progress: list[Progress] = []
        self.t0_ns: list[int] = []
        self.must_end = False

    def warned(self, notes: Any) -> None:
        self.notes += notes

    def started(self, t0_monotonic_ns: int, t0_unix_ns: int) -> None:
        self.t0_ns.append(t0_monotonic_ns)

    def must_stop(self, progress: Progress | None) -> bool:
        if progress is not None:
            self.progress.append(progress)
            if self.act is not None and progress["streams"][0]["answered"] >= self.after:
                act, self.act = self.act, None
                act()
        return self.must_end


def counts(result: Result) -> dict[str, int]:
    requests: dict[str, int] = result["streams"][0]["requests"]
    return requests


def test_the_merged_counts_are_those_of_the_service(fleet: Fleet, server: Origin, tmp_path: Path) -> None:
    server.new_books()
    hearing, record = Hearing(), tmp_path / "live"
    record.mkdir()

    result = run_trial(fleet, plan_of(server, Open(RATE), seconds=1.0), hearing, record=RecordTo(str(record)))

    served = settled_books(server)
    assert result["status"] == "complete"
    assert counts(result)["due"] == RATE
    check_law(counts(result))  # the last ones may still be under way at the end
    assert counts(result)["issued"] == served["received"]
    assert [node["name"] for node in result["nodes"]] == ["gen1", "gen2", "gen3"]
    assert [node["share"] for node in result["nodes"]] == [[0, 1, 3], [1, 2, 3], [2, 3, 3]]
    assert sum(node["streams"][0]["due"] for node in result["nodes"]) == counts(result)["due"]
    assert {node["status"] for node in result["nodes"]} == {"complete"}
    assert hearing.t0_ns == [result["t0_monotonic_ns"]]
    assert hearing.progress[-1]["streams"][0]["due"] <= counts(result)["due"]
    assert sorted(path.name for path in (record / "nodes").iterdir()) == ["gen1", "gen2", "gen3"]
    assert engines() == []


def test_unequal_weights_divide_the_users(nodes: Cluster, server: Origin) -> None:
    server.new_books()

    with connect(place_of(str(nodes.file)), nodes=3, weights=(1, 3, 5)) as fleet:
        result = run_trial(fleet, plan_of(server, Closed(users=18, iterations=50)))

    served = settled_books(server)
    assert counts(result)["ok"] == served["answered"] == 18 * 50
    assert served["connections"]["accepted"] == 18
    assert [node["share"] for node in result["nodes"]] == [[0, 1, 9], [1, 4, 9], [4, 9, 9]]


def test_fewer_users_than_nodes_send_all_requests(nodes: Cluster, server: Origin) -> None:
    server.new_books()

    with connect(place_of(str(nodes.file)), nodes=3, weights=(1, 3, 5)) as fleet:
        result = run_trial(fleet, plan_of(server, Closed(users=2, requests=90)))

    assert counts(result)["ok"] == settled_books(server)["answered"] == 90
    assert [(node["name"], node["share"]) for node in result["nodes"]] == [
        ("gen1", [0, 1, 6]),
        ("gen3", [1, 6, 6]),
    ]


def test_a_request_to_stop_ends_all_nodes(fleet: Fleet, server: Origin) -> None:
    server.new_books()
    hearing = Hearing()
    hearing.act = lambda: setattr(hearing, "must_end", True)

    result = run_trial(fleet, plan_of(server, Open(RATE), seconds=60.0), hearing)

    assert result["status"] == "stopped"
    assert counts(result)["issued"] == settled_books(server)["received"] < 60 * RATE / 2
    assert engines() == []


def killed(nodes: Cluster) -> str:
    nodes.workers["gen2"].kill()
    return "gen2"


def paused(nodes: Cluster) -> str:
    nodes.workers["gen2"].send_signal(signal.SIGSTOP)
    return "gen2"


def engine_killed(nodes: Cluster) -> str:
    (engine,) = engines(nodes.workers["gen2"].pid)
    engine.kill()
    return "gen2"


def engine_suspended(nodes: Cluster) -> str:
    (engine,) = engines(nodes.workers["gen2"].pid)
    engine.send_signal(signal.SIGSTOP)
    return "gen2"


@pytest.mark.parametrize("broken", [killed, paused, engine_killed, engine_suspended])
def test_a_node_that_breaks_down_under_load_ends_that_of_all(
    broken: Callable[[Cluster], str], fleet: Fleet, nodes: Cluster, server: Origin, tmp_path: Path
) -> None:
    server.new_books()
    hearing = Hearing(lambda: broken(nodes))

    result = run_trial(
        fleet, plan_of(server, Open(RATE), seconds=60.0), hearing, record=RecordTo(str(tmp_path))
    )

    assert result["status"] == "incomplete"
    assert any("node gen2" in reason for reason in result["reasons"])
    statuses = {node["name"]: node["status"] for node in result["nodes"]}
    assert statuses.pop("gen2") in ("lost", "failed")
    assert statuses == {"gen1": "stopped", "gen3": "stopped"}
    # The others sent what they count; the broken node sent more, or as much, as is known of it.
    assert counts(result)["issued"] <= settled_books(server)["received"]
    assert reached(lambda: not engines(), within_s=5)


@pytest.mark.parametrize("broken", [killed, paused])
def test_a_node_lost_after_its_load_and_before_its_counts_came_is_named(
    broken: Callable[[Cluster], str],
    fleet: Fleet,
    nodes: Cluster,
    server: Origin,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server.new_books()
    watch = trial.Trial.watch

    def watch_and_break(self: trial.Trial) -> None:
        watch(self)
        broken(nodes)

    monkeypatch.setattr(trial.Trial, "watch", watch_and_break)

    result = run_trial(fleet, plan_of(server, Open(RATE), seconds=0.5))

    assert result["status"] == "incomplete"
    assert any(
        reason.startswith("node gen2 ") and reason.endswith("its counts did not come")
        for reason in result["reasons"]
    )
    assert {node["name"]: node["status"] for node in result["nodes"]}["gen2"] == "lost"
    assert counts(result)["issued"] < settled_books(server)["received"]


def test_a_node_lost_after_the_division_leaves_nothing_of_the_load_out(
    fleet: Fleet, nodes: Cluster, server: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.new_books()
    divide = trial.Trial._divide

    def divide_and_break(self: trial.Trial) -> None:
        divide(self)
        nodes.workers["gen3"].send_signal(signal.SIGSTOP)

    monkeypatch.setattr(trial.Trial, "_divide", divide_and_break)

    result = run_trial(fleet, plan_of(server, Open(RATE), seconds=0.5))

    assert result["status"] == "complete"
    assert counts(result)["due"] == RATE / 2
    assert counts(result)["issued"] == settled_books(server)["received"]
    assert [node["share"] for node in result["nodes"]] == [[0, 1, 2], [1, 2, 2]]


def test_a_node_lost_before_the_start_leaves_its_share_to_the_others(
    fleet: Fleet, nodes: Cluster, server: Origin
) -> None:
    server.new_books()
    nodes.workers["gen3"].send_signal(signal.SIGSTOP)
    hearing = Hearing()

    result = run_trial(fleet, plan_of(server, Open(RATE), seconds=0.5), hearing)

    assert result["status"] == "complete"
    assert counts(result)["due"] == RATE / 2
    assert counts(result)["issued"] == settled_books(server)["received"]
    assert [(node["name"], node["share"]) for node in result["nodes"]] == [
        ("gen1", [0, 1, 2]),
        ("gen2", [1, 2, 2]),
    ]
    assert any("gen3" in note for note in hearing.notes)
    assert any("gen3" in reason for reason in result["reasons"])


def test_an_engine_that_is_given_up_before_the_start_is_ended(
    fleet: Fleet, nodes: Cluster, server: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.new_books()
    monkeypatch.setattr(trial, "AHEAD_S", 3.0)  # longer than an engine may be silent
    arm, left = trial.Trial._arm, []

    def suspend_and_arm(self: trial.Trial) -> bool:
        left.append(len(engines(nodes.workers["gen2"].pid)))
        if len(left) == 1:
            engine_suspended(nodes)
        return arm(self)

    monkeypatch.setattr(trial.Trial, "_arm", suspend_and_arm)

    result = run_trial(fleet, plan_of(server, Open(RATE), seconds=0.5))

    assert left == [1, 0]
    assert [node["name"] for node in result["nodes"]] == ["gen1", "gen3"]
    assert counts(result)["due"] == RATE / 2
    assert engines() == []


def test_calls_that_wait_for_others_are_not_taken_for_silence(
    fleet: Fleet, nodes: Cluster, server: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.new_books()
    monkeypatch.setattr(trial, "IN_FLIGHT", 1)

    result = run_trial(fleet, plan_of(server, Open(RATE), seconds=60.0), Hearing(lambda: paused(nodes)))

    assert {node["name"]: node["status"] for node in result["nodes"]} == {
        "gen1": "stopped",
        "gen2": "lost",
        "gen3": "stopped",
    }
    assert counts(result)["issued"] <= settled_books(server)["received"]


def test_nodes_wait_for_one_that_gets_its_files_later(
    fleet: Fleet, server: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(member, "LEASE_S", 0.5)
    monkeypatch.setattr(trial, "LEASE_S", 0.5)
    send = member.Member.send_files

    def send_late(self: member.Member, files: Any) -> None:
        if self.node.name == "gen3":
            time.sleep(2.0)  # four leases
        send(self, files)

    monkeypatch.setattr(member.Member, "send_files", send_late)

    result = run_trial(fleet, plan_of(server, Open(RATE, requests=90)))

    assert [node["name"] for node in result["nodes"]] == ["gen1", "gen2", "gen3"]


CONTROLLER = """
import sys
from dataclasses import replace
from pathlib import Path
from loadlens.fleet.cluster import connect
from loadlens.fleet.place import place_of
from loadlens.fleet.trial import run_trial
from loadlens.model.workload import Plan
import json
if __name__ == "__main__":
    with connect(place_of(sys.argv[1]), nodes=3) as fleet:
        run_trial(fleet, Plan.from_json(json.loads(sys.argv[2])))
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_without_its_controller_a_load_ends_by_itself(
    number: signal.Signals, nodes: Cluster, server: Origin
) -> None:
    server.new_books()
    plan = plan_of(server, Open(RATE), seconds=60.0)
    controller = subprocess.Popen(
        [sys.executable, "-c", CONTROLLER, str(nodes.file), plan.to_json()],
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
    )
    try:
        assert reached(lambda: server.books()["received"] > RATE / 2, within_s=30)

        controller.send_signal(number)

        assert reached(lambda: not engines(), within_s=5)
        before = server.books()["received"]
        time.sleep(0.5)
        assert server.books()["received"] == before
    finally:
        controller.kill()
        controller.wait()


def test_nodes_that_come_back_or_join_take_part_in_the_next_trial(
    fleet: Fleet, nodes: Cluster, server: Origin
) -> None:
    hearing = Hearing(lambda: paused(nodes))
    plan = plan_of(server, Open(RATE), seconds=0.5)
    run_trial(fleet, replace(plan, duration_ns=60 * 10**9), hearing)
    nodes.workers["gen2"].send_signal(signal.SIGCONT)
    nodes.workers["gen4"] = nodes.worker("gen4")
    fleet.demand(4)
    server.new_books()

    result = run_trial(fleet, plan)

    assert result["status"] == "complete"
    assert counts(result)["due"] == RATE / 2
    assert counts(result)["issued"] == settled_books(server)["received"]
    assert [node["name"] for node in result["nodes"]] == ["gen1", "gen2", "gen3", "gen4"]


def test_without_the_scheduler_no_load_goes_on(server: Origin, tmp_path: Path) -> None:
    server.new_books()

    with (
        cluster(tmp_path, "gen1", "gen2") as nodes,
        connect(place_of(str(nodes.file)), nodes=2) as fleet,
        pytest.raises(EngineError, match="node gen1 was lost"),
    ):
        run_trial(fleet, plan_of(server, Open(RATE), seconds=60.0), Hearing(nodes.scheduler.kill))

    assert reached(lambda: not engines(), within_s=5)


INTERRUPTED = """
import json, sys
from loadlens.fleet.cluster import connect
from loadlens.fleet.place import place_of
from loadlens.fleet.trial import run_trial
from loadlens.model.workload import Plan
from loadlens.run.engine_trial import Listener
from loadlens.run.interrupts import Interrupts

class Ending(Listener):
    def must_stop(self, progress):
        return interrupts.is_set

if __name__ == "__main__":
    with Interrupts() as interrupts, connect(place_of("local:2")) as fleet:
        result = run_trial(fleet, Plan.from_json(json.loads(sys.argv[1])), Ending())
    print(result["status"], result["streams"][0]["requests"]["issued"])
"""


def test_ctrl_c_at_the_terminal_of_local_nodes_is_for_the_controller(server: Origin) -> None:
    server.new_books()
    controller = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, plan_of(server, Open(RATE), seconds=60.0).to_json()],
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert reached(lambda: server.books()["received"] > RATE / 2, within_s=30)

    os.killpg(controller.pid, signal.SIGINT)

    out, _ = controller.communicate(timeout=30)
    assert out == f"stopped {settled_books(server)['received']}\n"
    assert engines() == []


def test_records_of_a_feed_are_sent_to_the_nodes_and_used_once(
    fleet: Fleet, server: Origin, tmp_path: Path
) -> None:
    feed = tmp_path / "sizes.csv"
    feed.write_text("n\n" + "".join(f"{n}\n" for n in range(1, 91)))
    digest = hashlib.sha256(feed.read_bytes()).hexdigest()
    plan = plan_of(server, Open(RATE, requests=90), path="/bytes/{{sizes.n}}")
    server.new_books()

    result = run_trial(
        fleet, replace(plan, feeds=(Feed("sizes", str(feed), digest, "csv", pick="unique", end="stop"),))
    )

    served = settled_books(server)
    assert counts(result)["ok"] == 90
    assert {path: each["answered"] for path, each in served["paths"].items()} == {
        f"/bytes/{n}": 1 for n in range(1, 91)
    }


def test_a_file_that_changed_since_the_plan_was_made_is_refused(
    fleet: Fleet, server: Origin, tmp_path: Path
) -> None:
    feed = tmp_path / "sizes.csv"
    feed.write_text("n\n1\n")
    plan = plan_of(server, Open(RATE, requests=1), path="/bytes/{{sizes.n}}")

    with pytest.raises(EngineError, match=r"sizes\.csv cannot be sent to node gen1: it changed since"):
        run_trial(fleet, replace(plan, feeds=(Feed("sizes", str(feed), "0" * 64, "csv"),)))


def test_what_the_engine_refuses_on_a_node_is_named(fleet: Fleet, server: Origin) -> None:
    plan = plan_of(server, Open(RATE, requests=1))
    (stream,) = plan.streams
    bad = replace(plan, streams=(replace(stream, scenarios=(replace(stream.scenarios[0], steps=()),)),))

    with pytest.raises(PlanError, match="node gen1: the engine refuses the plan"):
        run_trial(fleet, bad)
    assert engines() == []
