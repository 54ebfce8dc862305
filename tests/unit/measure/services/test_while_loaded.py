"""Processes while a load ran: which ended, which began, and how many files they had open."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from loadlens.measure import whole_run
from loadlens.model.facts import EndedProcesses, OpenFiles
from loadlens.model.trial import TrialStatus
from tests.unit.measure.records import Run, Trial, record
from tests.unit.whatif import services


def run() -> Run:
    return record(lambda load, _: services.behind_lock(load), users=(1, 5, 20), trials=1)


def failing(trace: services.Trace) -> services.Trace:
    """Return a trace in which every request of the load fails."""
    return replace(trace, requests=[r._replace(status=503) if r.stream == 0 else r for r in trace.requests])


def with_process(trial: Trial, pid: int, seconds: Sequence[int], *, opened: Sequence[float] = ()) -> None:
    """Add a worker that is read at these seconds, with the files that it has open; it may open 64."""
    labels = json.dumps({"pid": pid, "process": "worker", "replica": 1, "service": trial.names.service})
    for place, second in enumerate(seconds):
        values = {"threads": 1.0, "cpu_user_s": 0.0, "cpu_system_s": 0.0, "rss_bytes": 1e6}
        if opened:
            values |= {"descriptors": opened[place], "descriptor_limit": 64.0}
        for metric, value in values.items():
            trial.further_readings.append((second * 1_000_000_000, "proc", metric, labels, "", value))


@pytest.mark.parametrize("is_ended_early", [False, True])
def test_processes_that_are_gone_or_came_under_load_are_counted(*, is_ended_early: bool) -> None:
    """All of them are read once a second: one at the first two, one from the fourth on, one throughout."""
    made = run()
    trial = made.trials[-1]
    last = int(trial.seconds)
    for pid, seconds in enumerate(((0, 1), range(3, last + 1), range(last + 1)), 500):
        with_process(trial, pid, seconds)
    if is_ended_early:
        trial.status = TrialStatus.ABORTED
        assert trial.trace is not None
        trial.trace = failing(trial.trace)

    (curve,) = whole_run.facts(made).curves
    level = curve.ended[-1] if is_ended_early else curve.steps[-1]

    assert level.ended_processes == (EndedProcesses("worker", 1, 1),)


def test_a_process_that_is_read_a_tick_late_has_not_ended() -> None:
    made = run()
    with_process(made.trials[-1], 500, range(int(made.trials[-1].seconds)))

    (curve,) = whole_run.facts(made).curves

    assert curve.steps[-1].ended_processes == ()


def test_the_process_next_to_its_limit_is_the_one_with_most_open_files() -> None:
    made = run()
    trial = made.trials[-1]
    with_process(trial, 500, (0, 1), opened=(10.0, 60.0))
    with_process(trial, 501, (0, 1), opened=(50.0, 20.0))
    trial.status = TrialStatus.ABORTED
    assert trial.trace is not None
    trial.trace = failing(trial.trace)

    (curve,) = whole_run.facts(made).curves

    assert curve.ended[-1].open_files == OpenFiles("web worker 500", 60.0, 64.0)
