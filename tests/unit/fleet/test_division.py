"""Nodes that would have nothing to do take no part."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest

from loadlens.fleet.division import carrying
from loadlens.model.workload import Closed, Open, Plan
from tests import records


def plan(workload: Closed | Open, role: Literal["load", "probe"] = "load") -> Plan:
    whole = records.plan()
    return replace(whole, streams=(replace(whole.streams[0], workload=workload, role=role),))


# Of 9 parts the turns are 0, 8, 4, 2, 6, 1, 5, 3, 7. Weights of 1, 3, 5 own parts 0, 1 to 3, and 4 to 8:
# the second node has its first turn as the fourth. Of the 6 parts of 1 and 5 the turns are 0, 4, 2, 1, 5, 3.
@pytest.mark.parametrize(
    ("users", "expected"), [(1, [0]), (2, [0, 2]), (3, [0, 2]), (4, [0, 1, 2]), (50, [0, 1, 2])]
)
def test_a_node_that_no_user_falls_to_takes_no_part(users: int, expected: list[int]) -> None:
    assert carrying(plan(Closed(users=users)), [1, 3, 5]) == expected


def test_arrivals_keep_every_node_busy_and_probes_decide_nothing() -> None:
    assert carrying(plan(Open(1.0)), [1, 1, 1]) == [0, 1, 2]
    assert carrying(plan(Closed(users=1), "probe"), [1, 1, 1]) == [0, 1, 2]
