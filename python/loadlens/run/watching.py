"""Description of the testbed for the monitors of a trial."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from loadlens.machine import cgroups, listening_sockets
from loadlens.model.study import Case
from loadlens.model.topology import Outside, Service
from loadlens.run.engine_trial import NODE_VARIABLE
from loadlens.run.external_load import ExternalGenerator
from loadlens.signals import collect
from loadlens.signals.collect import stacks
from loadlens.signals.collect.scene import DRIVER, GENERATOR, KEEPER, NODE, Running, Scene
from loadlens.testbed import Testbed
from loadlens.testbed.ports import HOST

NOT_YET = -1  # pid of a process that its mark will identify
NODE_MARK = f"{NODE_VARIABLE}=1"


def spec_of(
    testbed: Testbed,
    case: Case,
    *,
    marker: str,
    external: ExternalGenerator | None = None,
    has_nodes: bool = False,
    every_s: float = 1.0,
    hide: tuple[str, ...] = (),
) -> collect.MonitorSpec:
    """Return the monitor specification of this testbed, including the generator and the keeper.

    Args:
        testbed: A running testbed.
        case: The case that it runs.
        marker: The run's id.
        every_s: Interval of the readings; stacks have one of their own.
        external: External tool that will make the load; its processes are detected once it runs.
        has_nodes: A fleet will make the load; so are its engines on this machine.
        hide: Names whose values are kept nowhere.
    """
    defined = {service.name: service for service in case.services}
    processes = [
        Running(
            p.service,
            p.replica,
            p.pid,
            p.mark,
            HOST,
            p.ports,
            p.groups,
            samples=p.samples,
            defined=defined[p.service],
        )
        for p in testbed.processes()
    ]
    if case.outside is not None:
        processes = [*_with_outside(processes, case.outside), *_called(case.outside, processes)]
    processes.append(Running(GENERATOR, 1, os.getpid()))
    if testbed.keeper_pid is not None:
        processes.append(Running(KEEPER, 1, testbed.keeper_pid))
    if has_nodes:
        processes.append(Running(NODE, 1, NOT_YET, NODE_MARK))
    if external is not None:
        processes.append(Running(DRIVER, 1, NOT_YET, external.mark))
        processes.append(Running(KEEPER, 2, external.keeper_pid))
    files = {str(file.path): file.service for file in testbed.server_times_files()}
    logs = tuple((log.service, str(log.path), dict(log.backends)) for log in testbed.access_logs())
    is_stacks = case.purpose == "stacks"
    otlp = testbed.otlp_address()
    if otlp is None and case.outside is not None and case.outside.otlp is not None:
        otlp = HOST, case.outside.otlp.port or 0
    scene = Scene(tuple(processes), files, logs, testbed.databases(), otlp, hide, is_stacks)
    return collect.spec_of(scene, marker=marker, every_s=stacks.EVERY_S if is_stacks else every_s)


def _with_outside(processes: list[Running], outside: Outside) -> Iterator[Running]:
    """Yield the processes with an external service; a service started here gets the external address."""
    service = Service(outside.name, ports=tuple(name for name, _ in outside.ports), scrape=outside.scrape)
    ports = dict(outside.ports)
    started = [p for p in processes if p.service == outside.name]
    yield from (p for p in processes if p.service != outside.name)
    if started:
        for number, process in enumerate(started):
            own = replace(service, scrape=service.scrape if number == 0 else None)
            yield replace(process, host=outside.host, ports=ports if number == 0 else {}, defined=own)
        return
    # Ports and metrics belong to the whole service: only its first process carries them.
    behind = _ports_behind(outside.pids, ports) if outside.is_here else {}
    first = outside.pids[0] if outside.pids else None
    yield Running(
        outside.name,
        1,
        first,
        host=outside.host,
        ports={**ports, **behind.get(first, {})},
        groups=_groups_around(outside.pids[:1]),
        defined=service,
        is_here=outside.is_here,
    )
    for number, pid in enumerate(outside.pids[1:], 2):
        yield Running(
            outside.name,
            number,
            pid,
            host=outside.host,
            ports=behind.get(pid, {}),
            groups=_groups_around((pid,)),
            defined=replace(service, scrape=None),
            is_here=outside.is_here,
        )


def _called(outside: Outside, processes: Sequence[Running]) -> Iterator[Running]:
    """Yield the processes that an external service calls, and where its own ones call each other."""
    for peer in outside.peers:
        groups, ports = _groups_around((peer.pid,)), {str(port): port for port in peer.ports}
        service = Service(peer.name)
        yield Running(
            peer.name,
            1,
            peer.pid,
            ports=ports,
            groups=groups,
            defined=service,
            is_called=True,
            has_code=peer.has_code,
        )
    pids = outside.pids or tuple(p.pid for p in processes if p.service == outside.name and p.pid)
    if len(pids) == 1 and outside.is_here:
        yield from _own_ports(pids[0], {port for _, port in outside.ports})


def _own_ports(pid: int, asked: Collection[int]) -> Iterator[Running]:
    """Yield where a service, and what it started, listens besides: parts of it may call each other."""
    seen = set(asked)
    for member, own in listening_sockets.ports_in_family(pid).items():
        ports = {str(port): port for port in sorted(own - seen)}
        seen |= own
        if ports:
            name = listening_sockets.name_of(member)
            yield Running(name, 1, None, ports=ports, defined=Service(name), is_called=True)


def _ports_behind(pids: Sequence[int], asked: Mapping[str, int]) -> dict[int | None, dict[str, int]]:
    """Return further ports of several processes by pid, such as those of replicas behind a balancer.

    A port is named by its number, which distinguishes it from the service's own ports. The process that
    listens on the target port is the balancer itself, whatever else it listens on.
    """
    if len(pids) < 2:
        return {}
    listening = {pid: set(listening_sockets.ports_of(pid)) for pid in pids}
    return {
        pid: {str(port): port for port in sorted(own - set(asked.values()))}
        for pid, own in listening.items()
        if asked.get("http") not in own
    }


def _groups_around(pids: Sequence[int]) -> tuple[str, ...]:
    """Return the control groups that limit CPU time and memory of processes not started here."""
    return tuple(str(folder) for pid in pids for folder in cgroups.bounds(pid))
