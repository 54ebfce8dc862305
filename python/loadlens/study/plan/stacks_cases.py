"""Cases that sample the stacks of the services: at the highest and the lightest level of each load curve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from loadlens.model.study import Case
from loadlens.model.workload import Closed
from loadlens.study.definition import Experiment, Faults

MEASURED_NS: Final = 3_000_000_000  # 60 samples on an unloaded machine


def of(cases: Sequence[Case], experiment: Experiment, faults: Faults) -> tuple[Case, ...]:
    """Return the cases that sample the stacks of an experiment; a load that cannot be sampled is noted."""
    curves: list[list[Case]] = []
    for case in (case for case in cases if not case.held_out):
        if case.driver is not None or case.workload.is_shaped:
            message = f"{case.name}: stacks are sampled under a steady load of our engine"
            faults.add(message, experiment.place, "stacks: off for this experiment")
            return ()
        curve = next((curve for curve in curves if _without_load(curve[0]) == _without_load(case)), None)
        if curve is None:
            curves.append([case])
        else:
            curve.append(case)
    sampled = []
    for curve in curves:
        lightest, highest = min(curve, key=_load), max(curve, key=_load)
        sampled += [highest] if highest is lightest else [lightest, highest]
    return tuple(map(_sampling, sampled))


def _load(case: Case) -> float:
    workload = case.workload
    return float(workload.users if isinstance(workload, Closed) else workload.rate_per_s or 0.0)


def _without_load(case: Case) -> Case:
    """Return a case as all cases of its curve are."""
    workload = case.workload
    same = replace(workload, users=1) if isinstance(workload, Closed) else replace(workload, rate_per_s=1.0)
    return replace(
        case, name="", slug="", levels=(), params=(), workload=same, warmup_ns=0, duration_ns=0, trials=1
    )


def _sampling(case: Case) -> Case:
    endless = replace(case.workload, requests=None)
    if isinstance(endless, Closed):
        endless = replace(endless, iterations=None)
    return replace(
        case,
        name=f"stacks of {case.name}",
        slug=f"stacks-{case.slug}",
        workload=endless,
        duration_ns=MEASURED_NS,
        probes=(),
        trials=1,
        purpose="stacks",
    )
