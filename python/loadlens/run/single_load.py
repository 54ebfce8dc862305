"""`hit`: one load, run as a study of one case that is built in memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from loadlens.engine import Progress, Result
from loadlens.errors import EngineError, ExitCode
from loadlens.model.result import EngineResult
from loadlens.model.workload import Plan
from loadlens.run import cautions, trial_faults
from loadlens.run.engine_trial import OnNotes, Start, run_trial
from loadlens.run.interrupts import Interrupts

if TYPE_CHECKING:
    from loadlens.model.study import PlannedTrial, Study
    from loadlens.record import TrialWriter


@dataclass(frozen=True, slots=True)
class HitDone:
    """Outcome of one load."""

    result: Result
    record: Path | None  # None: nothing was written
    exit_code: ExitCode


def run_hit(
    plan: Plan,
    *,
    out: Path | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    on_caution: Callable[[str], None] | None = None,
    start: Start | None = None,
) -> HitDone:
    """Run one load; Ctrl-C ends it early and keeps the results so far.

    Args:
        plan: One stream named `load`.
        out: A new folder for the record; None writes nothing.
        on_progress: Receives the engine's progress about ten times per second.
        on_caution: Receives warnings before the start; None skips the checks.
        start: Starts the engine's run if nothing is written; `Run.start` by default.

    Raises:
        PlanError, EngineError: The engine refuses the plan, or fails to run it.
        RecordError: `out` is not empty, or cannot be written.
    """
    on_notes = None if on_caution is None else partial(_each, on_caution)
    if on_notes is not None:
        on_notes(cautions.before([plan]))
    with Interrupts() as interrupts:
        if out is None:
            result = run_trial(
                plan, on_progress=on_progress, stop=interrupts.event, on_notes=on_notes, start=start
            )
        else:
            result = _run_recorded(plan, out, on_progress, interrupts, on_notes)
    if trial_faults.faults_of(EngineResult.from_json(result)):
        code = ExitCode.INVALID
    else:
        code = interrupts.code or ExitCode.OK
    return HitDone(result, out, code)


def _each(on_caution: Callable[[str], None], notes: Sequence[str]) -> None:
    for words in notes:
        on_caution(words)


def _run_recorded(
    plan: Plan,
    out: Path,
    on_progress: Callable[[Progress], None] | None,
    interrupts: Interrupts,
    on_notes: OnNotes | None,
) -> Result:
    def make(kept: TrialWriter, _: str) -> Result:
        return run_trial(
            plan,
            record_dir=kept.live,
            on_progress=on_progress,
            stop=interrupts.event,
            on_notes=on_notes,
            on_started=lambda mono, unix: kept.started(t0_monotonic_ns=mono, t0_unix_ns=unix),
        )

    return recorded(plan, out, make)


def recorded(
    plan: Plan, out: Path, make: Callable[[TrialWriter, str], Result], *, driver: str | None = None
) -> Result:
    """Make a load as a study of one case with one trial, and keep its record.

    Args:
        plan: One stream named `load`.
        out: A new folder.
        make: Makes the load, given the trial's writer and the run's id.
        driver: The external tool that makes the load; None for our engine.

    Raises:
        RecordError: `out` is not empty, or cannot be written.
        EngineError: The load failed; the record keeps the reason.
    """
    from loadlens.model.trial import TrialStatus
    from loadlens.record import TrialEnd, create_run
    from loadlens.run import engine_plan, environment

    study, trial = _as_study(plan, driver)
    with create_run(out, study, (trial,), environment.of_machine()) as writer:
        kept = writer.trial(trial)
        kept.write_plan(plan.to_json())
        writer.event("trial_started", **kept.name, position=1)
        began = time.time_ns()

        def seal(status: TrialStatus, reasons: tuple[str, ...], result: Result | None) -> None:
            kept.seal(
                TrialEnd(
                    status,
                    reasons,
                    engine=result,
                    t0_unix_ns=None if result is None else result["t0_unix_ns"],
                    t0_monotonic_ns=None if result is None else result["t0_monotonic_ns"],
                    placement=engine_plan.placement_of(plan),
                    began_unix_ns=began,
                    ended_unix_ns=time.time_ns(),
                )
            )
            writer.event("trial_sealed", **kept.name, status=status, reasons=list(reasons), leaks=[])

        try:
            result = make(kept, writer.id)
        except EngineError as fault:
            seal(TrialStatus.INVALID, (fault.message,), None)
            raise
        seal(*trial_faults.verdict(EngineResult.from_json(result)), result)
    return result


def _as_study(plan: Plan, driver: str | None) -> tuple[Study, PlannedTrial]:
    """Return the plan as a study of one case with one trial."""
    from loadlens.model.study import Case, PlannedTrial, Study
    from loadlens.model.topology import Entry

    stream = plan.streams[0]
    case = Case(
        name="hit",
        slug="hit",
        experiment="hit",
        levels=(),
        params=(),
        services=(),
        entry=Entry(url=stream.target.origin),
        scenarios=stream.scenarios,
        workload=stream.workload,
        connection=stream.connection,
        timeout_ns=stream.timeout_ns,
        cookies=stream.cookies,
        warmup_ns=plan.warmup_ns,
        duration_ns=plan.duration_ns,
        probes=(),
        feeds=plan.feeds,
        fresh="trial",
        reset=None,
        trials=1,
        driver=driver,
    )
    step = stream.scenarios[0].steps[0]
    study = Study(
        name="hit",
        question=f"How does {step.method} {step.path} of {stream.target.authority} answer under this load?",
        folder=str(Path.cwd()),
        text="",
        params=(),
        cases=(case,),
        order_by="blocks",
        seed=plan.seed,
    )
    return study, PlannedTrial(case, block=1, position=1, seed=plan.seed)
