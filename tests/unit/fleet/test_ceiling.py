"""A rate is refused of which a machine cannot send its share; all nodes on one machine count together."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loadlens.errors import ExitCode, TooLargeError
from loadlens.fleet.ceiling import refuse_beyond, requests_per_s
from loadlens.fleet.cluster import Node
from loadlens.model.workload import Closed, Open, Scenario, Step
from tests import records


def node(name: str, host: str, most_per_s: float | None) -> Node:
    return Node(name, f"tcp://{host}:1", host, 2, most_per_s)


def test_a_share_beyond_the_ceiling_is_refused_by_name() -> None:
    nodes = [node("gen1", "a", 100.0), node("gen2", "b", 1000.0)]

    refuse_beyond(nodes, (1, 9), 1000.0)  # 100 and 900
    with pytest.raises(TooLargeError, match=r"gen1 would send 500 requests/s .* can send 100") as refused:
        refuse_beyond(nodes, (), 1000.0)

    assert refused.value.code is ExitCode.USAGE


def test_nodes_on_one_machine_share_its_ceiling() -> None:
    nodes = [node("gen-1", "a", 100.0), node("gen-2", "a", 100.0)]

    refuse_beyond(nodes, (), 100.0)  # 50 each
    with pytest.raises(TooLargeError, match="would send 102 requests/s"):
        refuse_beyond(nodes, (), 102.0)


def test_a_machine_that_was_never_measured_is_not_refused() -> None:
    refuse_beyond([node("gen1", "a", None)], (), 1e9)


def test_every_step_of_an_iteration_is_a_request_and_users_have_no_rate() -> None:
    one, three = (
        Scenario(name, 1.0, (Step("a", "GET", "/"),) * steps) for name, steps in (("1", 1), ("3", 3))
    )
    (stream,) = records.plan().streams
    of_open, of_users = (
        replace(records.plan(), streams=(replace(stream, scenarios=(one, three), workload=workload),))
        for workload in (Open(100.0), Closed(users=5))
    )

    assert requests_per_s(of_open) == 200.0  # one or three requests, equally often
    assert requests_per_s(of_users) == 0.0
