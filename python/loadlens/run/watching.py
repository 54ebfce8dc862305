"""What is watched while a trial runs: the testbed described for the monitors, which take what is theirs."""

from __future__ import annotations

import os

from loadlens import monitors
from loadlens.model.study import Case
from loadlens.monitors.scene import GENERATOR, KEEPER, Running, Scene
from loadlens.testbed import Testbed
from loadlens.testbed.ports import HOST


def spec_of(testbed: Testbed, case: Case, *, marker: str) -> monitors.MonitorSpec:
    """Everything that can be read of this testbed; the generator and the keeper stand beside the services."""
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
    processes.append(Running(GENERATOR, 1, os.getpid()))
    if testbed.keeper_pid is not None:
        processes.append(Running(KEEPER, 1, testbed.keeper_pid))
    files = {str(file.path): file.service for file in testbed.server_times_files()}
    logs = tuple((log.service, str(log.path), dict(log.backends)) for log in testbed.access_logs())
    return monitors.spec_of(Scene(tuple(processes), files, logs, testbed.databases()), marker=marker)
