"""A run of the tiny study in a process of its own, so that a test can kill it; and what must hold after."""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Collection, Mapping
from multiprocessing.process import BaseProcess
from pathlib import Path

from loadlens.measure.whole_run import facts
from loadlens.model.trial import Outcome, TrialStatus
from loadlens.record import RunRecord, TrialRecord, is_record, layout
from loadlens.run.interrupts import Stopped
from tests import tiny
from tests.end_to_end.testbed_cases import carriers, still_there


def run_or_resume(study: Path, record: Path) -> None:
    """Begin the run, or go on with it."""
    from loadlens.run.study_runner import run_study

    run_study(tiny.planned(study), record, resume=is_record(record), cache=record.parent / "cache")


def _run(study: Path, record: Path, variables: Mapping[str, str]) -> None:
    os.environ.update(variables)
    try:
        run_or_resume(study, record)
    except Stopped as stopped:
        sys.exit(int(stopped.code))


def start(study: Path, record: Path, **variables: str) -> BaseProcess:
    """The same in a process of its own; further arguments are variables of its environment."""
    return begun(_run, study, record, variables)


def begun(function: Callable[..., object], *given: object, **named: object) -> BaseProcess:
    """Call a function in a process that has all imported: a test of many runs is not one of imports."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["loadlens.api.verbs", "loadlens.run.study_runner", __name__])
    process = context.Process(target=function, args=given, kwargs=named)
    process.start()
    return process


def send(number: int, lab: BaseProcess) -> None:
    """Send a signal to such a process."""
    assert lab.pid is not None
    os.kill(lab.pid, number)


def marked(record: Path) -> list[str]:
    """Return `pid command` of every process that carries the run's mark."""
    return carriers(layout.run_id(record))


def left_after(record: Path, within_s: float) -> list[str]:
    """Return what still carries the mark when the time is over; empty as soon as nothing does."""
    return still_there(lambda: marked(record), within_s)


def wait_for_samples(record: Path) -> None:
    """Until the load of some trial has written samples."""
    until = time.monotonic() + 30
    while not any(p.stat().st_size > 1000 for p in record.glob("trials/*/*/live/samples.bin")):
        assert time.monotonic() < until, "no load within 30 s"
        time.sleep(0.05)


def assert_books_balance(trial: TrialRecord) -> None:
    """The law of counting on the result, and the rows of the sample log against the counts."""
    assert trial.result is not None
    samples = trial.samples()
    for index, stream in enumerate(trial.result.streams):
        counted = stream.requests
        assert stream.law_holds, stream.law
        assert counted.due == counted.issued + counted.dropped + counted.waiting
        assert counted.issued == counted.answered + counted.failed + counted.in_flight
        outcomes = samples.filter(stream=index)["outcome"]
        judged = [Outcome.OK, Outcome.UNEXPECTED_STATUS, Outcome.CHECK_FAILED]
        answered = outcomes.is_in([int(o) for o in judged]).sum()
        assert answered == counted.answered, (outcomes.value_counts().rows(), counted, trial.status)
        assert ((outcomes >= 10) & (outcomes < 30)).sum() == counted.failed
        assert (outcomes == Outcome.IN_FLIGHT).sum() == counted.in_flight


def assert_sound(record: RunRecord, but: Collection[str] = ()) -> None:
    """Nothing is damaged, what is sealed adds up, and what is not opens all the same.

    Args:
        but: Folders of trials that were looked at before.
    """
    assert record.damage == ()
    for trial in record.trials:
        if str(trial.path) in but:
            continue
        assert trial.damage() == ()
        trial.connections(), trial.readings(), trial.counters(), trial.intervals()
        if trial.is_sealed and trial.result is not None:
            assert_books_balance(trial)
        else:
            assert trial.samples().height >= 0
            assert trial.status in (TrialStatus.ABORTED, TrialStatus.INVALID)
    complete = [(t.case.slug, t.block) for t in record.trials if t.status is TrialStatus.COMPLETE]
    assert len(complete) == len(set(complete)), "a planned trial was completed twice"


def others_in(record: RunRecord) -> str | None:
    """Return how many cores other programs used in a trial, if they were a fifth of one or more."""
    used = [step.other_cores or 0.0 for curve in facts(record).curves for step in curve.steps]
    return f"others used {max(used):.2f} cores in a trial" if max(used, default=0.0) >= 0.2 else None
