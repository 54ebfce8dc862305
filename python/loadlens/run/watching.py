"""What is watched while a trial runs: every process of the testbed, the machine, and what services tell."""

from __future__ import annotations

import os

from loadlens.model.study import Case
from loadlens.monitors import MonitorSpec
from loadlens.monitors.host import Host
from loadlens.monitors.proc import Processes, Watched
from loadlens.monitors.scrape import Scrapes, ScrapeTarget
from loadlens.monitors.server_times import Files, TimesFile
from loadlens.testbed import ServiceProcess, Testbed
from loadlens.testbed.ports import HOST

GENERATOR = "(generator)"
KEEPER = "(keeper)"


def spec_of(testbed: Testbed, case: Case, *, marker: str) -> MonitorSpec:
    """Everything that can be read of this testbed; the generator and the keeper stand beside the services."""
    processes = testbed.processes()
    own = [Watched(GENERATOR, 1, os.getpid(), tree=False)]
    if testbed.keeper_pid is not None:
        own.append(Watched(KEEPER, 1, testbed.keeper_pid, tree=False))
    watched = [Watched(p.service, p.replica, p.pid, p.mark) for p in processes]
    targets = _scrape_targets(processes, case)
    files = tuple(
        TimesFile(f.service, str(f.path), f.keys.path, f.keys.status, f.keys.seconds)
        for f in testbed.server_times_files()
    )
    return MonitorSpec(
        sources=(
            Processes((*watched, *own)),
            Host(),
            *([Scrapes(targets)] if targets else []),
            *([Files(files)] if files else []),
        ),
        marker=marker,
    )


def _scrape_targets(processes: tuple[ServiceProcess, ...], case: Case) -> tuple[ScrapeTarget, ...]:
    services = {service.name: service for service in case.services}
    found = []
    for process in processes:
        service = services[process.service]
        scrape = service.scrape
        if scrape is None:
            continue
        port = process.ports[scrape.port or service.ports[0]]
        url = f"http://{HOST}:{port}{scrape.path}"
        found.append(ScrapeTarget(process.service, process.replica, url, scrape.every_s))
    return tuple(found)
