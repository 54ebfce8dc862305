"""Two versions of a simulated service whose response times are chosen, measured as those of a record are."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from loadlens.compare.judge import Arms, Match
from loadlens.measure import whole_run
from loadlens.measure.case import CaseMeasures
from loadlens.measure.source import study_of
from loadlens.model.study import Window
from loadlens.model.trial import TrialStatus
from tests.unit.measure.records import record
from tests.unit.whatif.services import Load, Request, Trace

PER_S = 20.0
TYPICAL_S = 0.02
SECONDS = 9.0  # of a trial, a third of it warm-up


def service(load: Load, *, ratio: float, spread: float, failing: float) -> Trace:
    """Requests at a rate whose times vary within a trial, and from trial to trial by a log-normal factor."""
    random = np.random.default_rng(load.seed)
    typical_s = ratio * TYPICAL_S * np.exp(spread * random.standard_normal())
    trace = Trace(busy=[[]])
    for number, due in enumerate(np.arange(0.0, SECONDS, 1 / PER_S)):
        took = typical_s * float(random.uniform(0.95, 1.05))
        status = 500 if failing and number % round(1 / failing) == 0 else 200
        trace.busy[0].append((float(due), float(due) + 0.2 * typical_s))
        trace.requests.append(Request(0, 0, float(due), float(due) + took, status, took))
    return trace


@cache
def arms(
    ratio: float = 1.0,
    *,
    pairs: int = 5,
    spread: float = 0.005,
    failing: float = 0.0,
    is_open: bool = True,
    is_paired: bool = True,
    lost: int = 0,
) -> Arms:
    """Two versions.

    Args:
        ratio: Response time of the second over the first.
        pairs: Trials of each.
        spread: Standard deviation of the logarithm between trials.
        failing: Share of the second version's requests that fail.
        is_open: Requests come at a rate, else from users who wait.
        is_paired: Trials ran in pairs.
        lost: Trials of the second version that are invalid, its first ones.
    """
    run = record(
        lambda load, level: service(
            load, ratio=ratio if level == 2 else 1.0, spread=spread, failing=failing if level == 2 else 0.0
        ),
        users=(4,),
        processes=(1, 2),
        trials=pairs,
        seconds=SECONDS,
    )
    if is_open:
        load = {"kind": "open", "rate_per_s": PER_S}
        run.study["cases"] = [case | {"workload": load} for case in run.study["cases"]]
        for trial in run.trials:
            trial.planned["streams"][0]["workload"] = load
    run.trials = [
        replace(trial, status=TrialStatus.INVALID, reasons=("the generator stood still",))
        if trial.case.levels["processes"] == "2" and trial.block <= lost
        else trial
        for trial in run.trials
    ]
    trials = [whole_run.of_trial(trial, Window()) for trial in run.trials]
    first, second = (
        CaseMeasures(case, tuple(t for t in trials if t.source.case.slug == case.slug))
        for case in study_of(run).cases
    )
    return Arms("A", "B", (Match("", first, second),), is_paired=is_paired)
