"""A load from two workers of this machine, against a real server."""

from __future__ import annotations

from benches.measuring import origin

from loadlens.fleet.cluster import connect
from loadlens.fleet.place import place_of
from loadlens.fleet.trial import run_trial
from loadlens.model.workload import Closed
from tests.end_to_end.fleets import plan_of
from tests.end_to_end.hitting import origin_program, settled_books

REQUESTS = 40


def test_local_nodes_send_what_one_engine_would() -> None:
    with origin(origin_program(), cpu=0) as server, connect(place_of("local:2")) as fleet:
        result = run_trial(fleet, plan_of(server, Closed(users=4, requests=REQUESTS)))
        served = settled_books(server)

    assert result["status"] == "complete"
    assert result["streams"][0]["requests"]["ok"] == served["answered"] == REQUESTS
    assert [node["streams"][0]["ok"] for node in result["nodes"]] == [REQUESTS / 2, REQUESTS / 2]
