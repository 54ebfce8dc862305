"""Specifications of monitors: for services of the testbed, and for one at an address of its own."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from loadlens.machine import listening_sockets
from loadlens.model.topology import Outside, Peer, Scrape, Service
from loadlens.model.workload import Tls
from loadlens.run import watching
from tests import records

HTTP = (("http", 8080),)


def asked(
    outside: Outside | None, *started: Any, services: tuple[Service, ...] = (), purpose: str = "load"
) -> dict[str, Any]:
    """Each monitor's spec by its name."""
    testbed: Any = SimpleNamespace(
        processes=lambda: started,
        keeper_pid=None,
        server_times_files=lambda: (),
        access_logs=lambda: (),
        databases=dict,
        otlp_address=lambda: None,
    )
    case = records.case(outside=outside, services=services, purpose=purpose)
    spec = watching.spec_of(testbed, case, marker="run", every_s=0.5)
    assert spec.interval_s == (0.5 if purpose == "load" else 0.05)
    return {source.monitor: source for source in spec.sources}


def watched(specs: dict[str, Any]) -> list[tuple[str, int, int, bool]]:
    return [(p.service, p.replica, p.pid, p.tree) for p in specs["proc"].processes if p.service[0] != "("]


def test_processes_that_run_already_are_watched_with_all_that_they_start() -> None:
    specs = asked(Outside("service", "127.0.0.1", True, HTTP, pids=(41, 42)))

    assert watched(specs) == [("service", 1, 41, True), ("service", 2, 42, True)]
    assert [(p.service, p.port) for p in specs["tcp"].ports] == [("service", 8080)]


def test_processes_that_the_service_calls_are_watched_and_their_stacks_are_not() -> None:
    called = (Peer("postgres", 51), Peer("redis-server", 52))
    outside = Outside("service", "127.0.0.1", True, HTTP, pids=(41,), peers=called)

    assert watched(asked(outside)) == [
        ("service", 1, 41, True),
        ("postgres", 1, 51, True),
        ("redis-server", 1, 52, True),
    ]
    sampled = asked(outside, purpose="stacks")["stacks"].processes
    assert [process.pid for process in sampled] == [41]


def test_ports_of_what_is_called_and_further_ones_of_the_service_are_watched_for_calls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ports = {41: {8080, 8081}, 43: {8080, 9000}, 44: {9000}}
    monkeypatch.setattr(listening_sockets, "ports_in_family", lambda pid: ports)
    monkeypatch.setattr(listening_sockets, "name_of", lambda pid: f"program {pid}")
    outside = Outside("service", "127.0.0.1", True, HTTP, pids=(41,), peers=(Peer("postgres", 51, (5432,)),))

    specs = asked(outside)

    assert {(p.service, p.port, p.is_called) for p in specs["tcp"].ports} == {
        ("service", 8080, False),
        ("postgres", 5432, True),
        ("program 41", 8081, True),
        ("program 43", 9000, True),
    }
    assert [pid for _, _, pid, _ in watched(specs)] == [41, 51]


def test_from_outside_the_port_is_watched_and_no_process_is() -> None:
    specs = asked(Outside("service", "127.0.0.1", True, HTTP))

    assert watched(specs) == []
    assert [p.port for p in specs["tcp"].ports] == [8080]


def test_nothing_of_another_machine_is_watched_here() -> None:
    specs = asked(Outside("service", "192.0.2.1", False, HTTP))

    assert watched(specs) == []
    assert "tcp" not in specs


def test_metrics_are_scraped_once_where_they_are() -> None:
    ports = (*HTTP, ("metrics", 9090))
    scrape = Scrape("/m", port="metrics")
    specs = asked(Outside("service", "127.0.0.1", True, ports, pids=(41, 42), scrape=scrape))

    assert [target.url for target in specs["scrape"].targets] == ["http://127.0.0.1:9090/m"]


def test_metrics_over_tls_are_scraped_over_tls() -> None:
    scrape = Scrape("/m", tls=Tls(insecure=True))

    (target,) = asked(Outside("service", "127.0.0.1", True, HTTP, scrape=scrape))["scrape"].targets

    assert (target.url, target.tls) == ("https://127.0.0.1:8080/m", Tls(insecure=True))


def test_a_service_that_was_started_keeps_its_process_and_gets_its_address() -> None:
    service = Service("service", "serve", ports=())
    process = SimpleNamespace(
        service="service", replica=1, pid=77, mark="MARK=1", ports={}, groups=(), samples=""
    )
    outside = Outside("service", "127.0.0.1", True, HTTP, scrape=Scrape("/metrics"))

    specs = asked(outside, process, services=(service,))

    assert watched(specs) == [("service", 1, 77, True)]
    assert specs["proc"].processes[0].mark == "MARK=1"
    assert [p.port for p in specs["tcp"].ports] == [8080]
    assert [target.url for target in specs["scrape"].targets] == ["http://127.0.0.1:8080/metrics"]


def test_without_such_a_service_nothing_changes() -> None:
    assert watched(asked(None)) == []


def test_replicas_behind_a_balancer_are_watched_at_their_own_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening_sockets, "ports_of", {41: (4710, 9000), 42: (4711,)}.__getitem__)
    ports = (*HTTP, ("metrics", 9000))

    specs = asked(Outside("service", "127.0.0.1", True, ports, pids=(41, 42)))

    assert [(p.replica, p.name, p.port) for p in specs["tcp"].ports] == [
        (1, "http", 8080), (1, "metrics", 9000), (1, "4710", 4710), (2, "4711", 4711)
    ]  # fmt: skip


def test_who_listens_on_the_port_that_is_asked_stands_before_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(listening_sockets, "ports_of", {41: (4710,), 42: (8080, 9000)}.__getitem__)

    specs = asked(Outside("service", "127.0.0.1", True, HTTP, pids=(41, 42)))

    assert [(p.replica, p.port) for p in specs["tcp"].ports] == [(1, 8080), (1, 4710)]
