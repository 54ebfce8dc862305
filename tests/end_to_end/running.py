"""A run of the tiny study in a process of its own, so that a test can kill it; and what must hold after."""

from __future__ import annotations

import multiprocessing
import multiprocessing.context
import os
import subprocess
import sys
import time
from collections.abc import Collection
from pathlib import Path

from loadlens.measure.whole_run import facts
from loadlens.model.trial import Outcome, TrialStatus
from loadlens.record import RunRecord, TrialRecord, is_record, layout
from tests.end_to_end.testbed_cases import carriers, still_there

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
import sys
from pathlib import Path
from loadlens.record import is_record
from loadlens.run.interrupts import Stopped
from loadlens.run.study_runner import run_study
from tests import tiny
study, record, cache = map(Path, sys.argv[1:4])
try:
    run_study(tiny.planned(study), record, resume=is_record(record), cache=cache)
except Stopped as stopped:
    sys.exit(int(stopped.code))
"""


def run_or_resume(study: Path, record: Path) -> None:
    """The same, for a process that was forked."""
    from loadlens.run.study_runner import run_study
    from tests import tiny

    run_study(tiny.planned(study), record, resume=is_record(record), cache=record.parent / "cache")


Forked = multiprocessing.context.ForkServerContext


def forked() -> Forked:
    """Processes that have everything imported when they begin: a test of many runs is not one of imports."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["loadlens.run.study_runner", "polars", "tests.tiny", __name__])
    return context


def start(study: Path, record: Path, **environment: str) -> subprocess.Popen[bytes]:
    """Begin the run, or go on with it."""
    home = [str(ROOT / "python"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(study), str(record), str(record.parent / "cache")],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(home), **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


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
