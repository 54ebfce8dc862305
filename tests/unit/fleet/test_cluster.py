"""Nodes keep their names while workers leave, join and return, and every new process is described."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from distributed import Client

from loadlens.errors import UsageError
from loadlens.fleet import agent, cluster
from loadlens.fleet.cluster import Fleet


@dataclass
class Scheduler:
    """A Dask scheduler's workers, and what each says about itself."""

    workers: dict[str, dict[str, Any]] = field(default_factory=dict)
    engines: dict[str, str] = field(default_factory=dict)  # by address; else the one here
    started: int = 0

    def scheduler_info(self, n_workers: int) -> dict[str, Any]:
        return {"workers": dict(self.workers)}

    def map(self, *_: Any, **__: Any) -> list[Any]:
        return []

    def join(self, port: int, name: str | int | None = None) -> None:
        """Add a worker; without a name it has its address, as Dask gives it."""
        address = f"tcp://127.0.0.1:{port}"
        self.started += 1
        folder = f"/tmp/dask-scratch-space/worker-{self.started}"  # a new one for every process
        self.workers[address] = {"name": name or address, "nthreads": 1, "local_directory": folder}

    def leave(self, port: int) -> None:
        del self.workers[f"tcp://127.0.0.1:{port}"]

    def describe(
        self, _: Any, addresses: Sequence[str]
    ) -> tuple[dict[str, Mapping[str, Any]], tuple[str, ...]]:
        own = agent.description() | {"host": "h"}
        return {a: own | {"engine": self.engines.get(a, own["engine"])} for a in addresses}, ()


@pytest.fixture
def scheduler(monkeypatch: pytest.MonkeyPatch) -> Scheduler:
    there = Scheduler()
    monkeypatch.setattr(cluster, "_descriptions", there.describe)
    return there


def fleet_of(scheduler: Scheduler) -> Fleet:
    return Fleet(cast(Client, scheduler), "here", "tcp://127.0.0.1:1")


def names(fleet: Fleet) -> dict[int, str]:
    """Return the names of the nodes that are there now, by port."""
    fleet.refresh()
    return {int(node.address.rpartition(":")[2]): node.name for node in fleet.nodes}


def fleet_of_three(scheduler: Scheduler) -> Fleet:
    """Return a fleet that has named workers on ports 1, 2 and 3."""
    for port in (1, 2, 3):
        scheduler.join(port)
    fleet = fleet_of(scheduler)
    fleet.refresh()
    return fleet


def test_workers_without_a_name_have_their_host_and_a_number(scheduler: Scheduler) -> None:
    for port in (3, 1, 2):
        scheduler.join(port)

    assert names(fleet_of(scheduler)) == {1: "h-1", 2: "h-2", 3: "h-3"}


def test_names_stay_when_another_worker_leaves(scheduler: Scheduler) -> None:
    fleet = fleet_of_three(scheduler)

    scheduler.leave(1)
    assert names(fleet) == {2: "h-2", 3: "h-3"}

    scheduler.leave(2)
    assert names(fleet) == {3: "h-3"}


def test_a_worker_that_returns_has_its_name_again(scheduler: Scheduler) -> None:
    fleet = fleet_of_three(scheduler)
    scheduler.leave(2)
    fleet.refresh()

    scheduler.join(2)

    assert names(fleet) == {1: "h-1", 2: "h-2", 3: "h-3"}


def test_a_worker_that_returns_on_another_port_takes_the_free_name_and_its_weight(
    scheduler: Scheduler,
) -> None:
    fleet = fleet_of_three(scheduler)
    fleet.weights = {"h-1": 1, "h-2": 5, "h-3": 1}
    scheduler.leave(2)

    scheduler.join(9)

    assert names(fleet) == {1: "h-1", 9: "h-2", 3: "h-3"}
    scheduler.join(2)  # its name is another's by now, and has no weight
    assert names(fleet) == {1: "h-1", 9: "h-2", 3: "h-3"}


def test_a_worker_that_joins_one_of_its_host_takes_no_name_from_it(scheduler: Scheduler) -> None:
    scheduler.join(2)
    fleet = fleet_of(scheduler)
    fleet.refresh()

    scheduler.join(1)

    assert names(fleet) == {2: "h", 1: "h-2"}


def test_no_two_nodes_have_one_name(scheduler: Scheduler) -> None:
    for port, name in ((1, "a"), (2, "a"), (3, "a-1")):
        scheduler.join(port, name)

    assert names(fleet_of(scheduler)) == {1: "a-2", 2: "a-3", 3: "a-1"}


def test_a_name_that_is_given_to_another_address_moves_with_it(scheduler: Scheduler) -> None:
    scheduler.join(1, "gen1")
    scheduler.join(2, "gen2")
    fleet = fleet_of(scheduler)
    fleet.refresh()
    scheduler.leave(1)
    scheduler.leave(2)

    scheduler.join(1, "gen2")
    scheduler.join(3, "gen1")

    assert names(fleet) == {1: "gen2", 3: "gen1"}


def test_nodes_keep_the_order_of_their_numbers(scheduler: Scheduler) -> None:
    for number in range(12):
        scheduler.join(50 - number, number + 1)  # Dask's own numbers, on ports in another order

    fleet = fleet_of(scheduler)
    fleet.refresh()

    assert [node.name for node in fleet.nodes] == [f"h-{number}" for number in range(1, 13)]


def test_names_do_not_depend_on_who_joins_first_while_nodes_are_awaited(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler.join(3)
    late = iter((2, 1))
    monkeypatch.setattr(time, "sleep", lambda _: scheduler.join(next(late)))
    fleet = fleet_of(scheduler)

    fleet.demand(3)

    assert names(fleet) == {1: "h-1", 2: "h-2", 3: "h-3"}


@pytest.mark.parametrize("is_seen", [True, False], ids=["while it is away", "only afterwards"])
def test_a_worker_that_returns_on_its_address_with_another_engine_is_refused(
    scheduler: Scheduler, is_seen: bool
) -> None:
    scheduler.join(1)
    scheduler.join(2)
    fleet = fleet_of(scheduler)
    fleet.refresh()
    scheduler.leave(2)
    if is_seen:
        fleet.refresh()
    scheduler.join(2)
    scheduler.engines["tcp://127.0.0.1:2"] = "0" * 64

    with pytest.raises(UsageError, match="node h-2 has another compiled engine"):
        fleet.refresh()


def test_a_worker_that_stays_is_described_once(scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler.join(1)
    asked: list[str] = []
    describe: Callable[..., Any] = scheduler.describe

    def counted(client: Any, addresses: Sequence[str]) -> Any:
        asked.extend(addresses)
        return describe(client, addresses)

    monkeypatch.setattr(cluster, "_descriptions", counted)
    fleet = fleet_of(scheduler)

    fleet.refresh()
    fleet.refresh()

    assert asked == ["tcp://127.0.0.1:1"]
