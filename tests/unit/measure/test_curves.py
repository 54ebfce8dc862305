"""Trials that make a curve, from records whose trials are known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loadlens.measure import whole_run
from loadlens.model.shapes import Spacing
from loadlens.model.trial import TrialStatus
from tests.unit.measure.records import Run, Trial, record
from tests.unit.whatif import services


def failing(trial: Trial) -> Trial:
    """Return a trial in which every request fails."""
    assert trial.trace is not None
    lost = [request._replace(status=500) for request in trial.trace.requests]
    return replace(trial, trace=replace(trial.trace, requests=lost))


def after_a_break(*, is_search: bool, breaks: bool) -> Run:
    """Return one user, four, eight, and four again, who all fail."""
    run = record(
        lambda load, _: services.blocking_loop(load, work_s=0.02), users=(1, 4, 8), trials=2, seconds=6.0
    )
    alone, four, eight = run.trials[0], run.trials[2:4], run.trials[4]
    if breaks:
        eight = replace(eight, status=TrialStatus.ABORTED, reasons=("all requests failed",))
    order = [alone, four[0], eight, failing(four[1])]
    trials = [replace(trial, began_unix_ns=n + 1) for n, trial in enumerate(order)]
    if is_search:
        cases = [dict(case) for case in run.study["cases"]]
        cases[0]["purpose"] = "look"
        run = replace(run, study=run.study | {"cases": cases})
    return replace(run, trials=trials)


@pytest.mark.parametrize(
    ("is_search", "breaks", "trials"), [(True, True, 1), (True, False, 2), (False, True, 2)]
)
def test_a_trial_after_a_breakdown_says_nothing_of_its_level(
    is_search: bool, breaks: bool, trials: int
) -> None:
    measured = whole_run.measured(after_a_break(is_search=is_search, breaks=breaks))

    (curve,) = measured.curves
    (four,) = (step for step in curve.steps if step.load == 4)
    assert len(four.throughput_trials) == trials
    assert sum(len(case.trials) for case in measured.cases) == 4  # all are kept and counted


def test_answers_that_pass_one_lock_keep_apart() -> None:
    # 20 users who pause for 150 ms queue for a lock that each holds for 200 ms: one answer each 200 ms.
    run = record(lambda load, _: services.behind_lock(load), users=(20,), trials=1, seconds=15.0)
    (step,) = whole_run.measured(run).curves[0].steps

    assert step.spacing == Spacing(close=0, gaps=50)  # of 51 answers from 5 to 15 s, both included


def test_answers_of_shared_cores_come_close() -> None:
    run = record(lambda load, _: services.fair_threads(load, cores=4), users=(20,), trials=1, seconds=15.0)
    (step,) = whole_run.measured(run).curves[0].steps

    assert step.spacing.close > 0.2 * step.spacing.gaps
