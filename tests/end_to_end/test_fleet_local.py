"""A load from two workers of this machine, against a real server."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from benches.measuring import Origin

from loadlens.engine import Progress
from loadlens.fleet.cluster import Fleet, connect
from loadlens.fleet.place import place_of
from loadlens.fleet.trial import run_trial
from loadlens.follow.load import COUNTS, LoadOverTime
from loadlens.follow.nodes import NodesOverTime
from loadlens.model.workload import Closed, Open, Plan, RecordTo, Scenario, Step
from loadlens.record import FollowedLoad, layout
from loadlens.run.engine_trial import Listener
from tests.calm import where_calm
from tests.end_to_end.fleets import plan_of
from tests.end_to_end.hitting import settled_books

REQUESTS = 40


@pytest.fixture(scope="module")
def fleet() -> Iterator[Fleet]:
    """Two nodes for one load after another."""
    with connect(place_of("local:2")) as nodes:
        yield nodes


def test_local_nodes_send_what_one_engine_would(server: Origin, fleet: Fleet) -> None:
    server.new_books()

    result = run_trial(fleet, plan_of(server, Closed(users=4, requests=REQUESTS)))
    served = settled_books(server)

    assert result["status"] == "complete"
    assert result["streams"][0]["requests"]["ok"] == served["answered"] == REQUESTS
    assert [node["streams"][0]["ok"] for node in result["nodes"]] == [REQUESTS / 2, REQUESTS / 2]


def test_a_plan_longer_than_a_pipe_holds_is_carried_by_all_nodes(server: Origin, fleet: Fleet) -> None:
    server.new_books()
    plan = plan_of(server, Closed(users=4, requests=4))
    steps = tuple(
        Step(f"step {number}", "GET", "/", headers=(("x-long", "y" * 400),)) for number in range(800)
    )
    stream = replace(plan.streams[0], scenarios=(Scenario("long", 1.0, steps),))

    result = run_trial(fleet, replace(plan, streams=(stream,)))
    served = settled_books(server)

    assert result["status"] == "complete"
    assert result["streams"][0]["requests"]["ok"] == served["answered"] == 4


class Follower(Listener):
    """Looks at the live files of the nodes while they make the load, as a page does."""

    def __init__(self, plan: Plan, live: Path) -> None:
        self.load = LoadOverTime(plan)
        self.seen: set[int] = set()  # requests due on both nodes together, at each look
        self.samples: list[dict[str, Any]] = []  # of failed requests
        self._live = live

    def started(self, t0_monotonic_ns: int, t0_unix_ns: int) -> None:
        folders = sorted((self._live / "nodes").iterdir())
        loads = {folder.name: FollowedLoad(folder, layout.FAILURES_BIN) for folder in folders}
        self.nodes = NodesOverTime(loads, ["load"])

    def must_stop(self, progress: Progress | None) -> bool:
        if progress is not None:
            self.look()
        return False

    def look(self) -> None:
        self.load.take(*self.nodes.take(self.load.skipped))
        for rows in self.nodes.bad_samples(is_wanted=self.load.has_failures):
            self.load.take_bad(rows)
        self.samples = [each for kind in self.load.whole()["failures"] for each in kind["samples"]]
        self.seen.add(self.totals["due"])

    @property
    def totals(self) -> dict[str, Any]:
        totals: dict[str, Any] = self.load.whole()["streams"][0]["totals"]
        return totals


@where_calm
def test_a_load_of_nodes_is_followed_while_it_runs_and_its_sums_are_the_accounting(
    server: Origin, fleet: Fleet, tmp_path: Path
) -> None:
    plan = plan_of(server, Open(rate_per_s=40.0), seconds=2.0)  # the last ends 25 ms before the load
    live = Path(tempfile.mkdtemp(dir=tmp_path))
    follower = Follower(plan, live)

    result = run_trial(fleet, plan, follower, record=RecordTo(str(live)))
    seen = sorted(follower.seen)
    follower.look()

    requests, totals = result["streams"][0]["requests"], follower.totals
    assert len(seen) > 3, "the counts came at the end"
    assert {name: totals[name] for name in COUNTS} == {name: requests[name] for name in COUNTS}
    assert totals["due"] == 80
    assert totals["holds"]
    assert sum(follower.load.whole()["streams"][0]["count"]) == 80  # response times of both
    rows = follower.nodes.rows()
    streams = [node["streams"][0] for node in result["nodes"]]
    assert [(row["due"], row["ok"]) for row in rows] == [(node["due"], node["ok"]) for node in streams]
    assert [(row["due"], row["bad"]) for row in rows] == [(40, 0), (40, 0)]


def test_failed_requests_of_nodes_are_seen_while_they_make_the_load(
    server: Origin, fleet: Fleet, tmp_path: Path
) -> None:
    plan = plan_of(server, Open(rate_per_s=100.0), seconds=2.0)
    steps = (Step("good", "GET", "/"), Step("bad", "GET", "/", expect=(201,)))
    stream = replace(plan.streams[0], scenarios=(Scenario("both", 1.0, steps),))
    follower = Follower(replace(plan, streams=(stream,)), tmp_path)

    run_trial(fleet, replace(plan, streams=(stream,)), follower, record=RecordTo(str(tmp_path)))
    seen = [(each["step"], each["status"]) for each in follower.samples]

    assert seen == [("bad", 200)] * 3  # before the end; `look` has not been called since
