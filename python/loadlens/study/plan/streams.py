"""The streams of a case: its load, then its probes."""

from __future__ import annotations

from loadlens.model.study import Case
from loadlens.model.workload import LOAD, Stream, Target


def streams_of(case: Case, target: Target) -> tuple[Stream, ...]:
    """Every stream of a case, the load first.

    Args:
        case: What is sent.
        target: Where to.
    """
    load = Stream(
        name=LOAD,
        role="load",
        target=target,
        scenarios=case.scenarios,
        workload=case.workload,
        connection=case.connection,
        timeout_ns=case.timeout_ns,
        cookies=case.cookies,
    )
    probes = (
        Stream(
            name=probe.name,
            role="probe",
            target=target,
            scenarios=(probe.scenario,),
            workload=probe.workload,
            connection=probe.connection,
            timeout_ns=probe.timeout_ns,
        )
        for probe in case.probes
    )
    return (load, *probes)
