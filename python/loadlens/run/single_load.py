"""`hit`: one load, run as a study of one case that is built in memory."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from loadlens import engine
from loadlens.engine import Progress, Result
from loadlens.errors import EngineError, ExitCode, RecordError
from loadlens.model.result import EngineResult, LoadChange
from loadlens.model.workload import KEPT_ROWS, Plan, RecordTo
from loadlens.run import cautions, trial_faults
from loadlens.run.engine_trial import Listener, MakeLoad, Start, run_trial
from loadlens.run.interrupts import Interrupts

if TYPE_CHECKING:
    from loadlens.model.study import PlannedTrial, Study
    from loadlens.record import RunWriter, TrialWriter
    from loadlens.run.external import Driver


@dataclass(frozen=True, slots=True)
class HitDone:
    """Outcome of one load."""

    result: Result
    record: Path | None  # None: nothing was written
    exit_code: ExitCode
    lost: RecordError | None = None  # why the record is incomplete


def run_hit(
    plan: Plan,
    *,
    out: Path | None = None,
    driver: Driver | None = None,
    hide: tuple[str, ...] = (),
    samples: int | None = KEPT_ROWS,
    on_ready: Callable[[], None] | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    on_caution: Callable[[str], None] | None = None,
    start: Start | None = None,
    make_load: MakeLoad | None = None,
    is_accepted: bool = False,
) -> HitDone:
    """Run one load; Ctrl-C ends it early and keeps the results so far.

    Args:
        plan: One stream named `load`.
        out: A new folder for the record; None writes nothing.
        driver: External tool that makes the load; None for our engine.
        hide: Names whose values the record does not keep, besides those that look like credentials.
        samples: Rows of requests that the record keeps; None: all.
        on_ready: Called once the plan is accepted and before anything is started or written; may raise.
        on_progress: Receives the engine's progress about ten times per second.
        on_caution: Receives warnings before the start; None skips the checks.
        start: Starts the engine's run; `Run.start` by default.
        make_load: Makes the load elsewhere, whatever this machine can carry; None: our engine here.
        is_accepted: Whether `engine.refuse_too_large` let the plan pass; otherwise it is asked here.

    Raises:
        PlanError, EngineError: The engine refuses the plan, or the engine or the tool fails to run it.
        UsageError, TestbedError: The tool does not support the plan, or is not installed.
        RecordError: `out` is not empty, or cannot be written.
    """
    if driver is not None:
        from loadlens.run import external_load

        external_load.check(plan, driver, hide)
    elif start is None and not is_accepted:
        engine.refuse_faults(plan)
    if out is not None and driver is None and make_load is None and not is_accepted:
        engine.refuse_too_large(plan)  # before there is a record
    if on_ready is not None:
        on_ready()
    if on_caution is not None and make_load is None:
        for words in cautions.before([plan]):
            on_caution(words)

    def make(trial: TrialWriter | None, writer: RunWriter | None) -> Result:
        listener = _HitListener(interrupts, trial, writer, on_progress, on_caution)
        if driver is None:
            record = None if trial is None else RecordTo(str(trial.live), samples)
            return (make_load or run_trial)(
                plan,
                listener,
                record=record,
                start=start,
                controlled=writer.path if writer is not None and start is None else None,
            )
        marker = f"hit-{secrets.token_hex(4)}" if writer is None else writer.id
        with external_load.ExternalGenerator(driver, plan, marker=marker) as tool:
            made = tool.generate(listener)
        if trial is not None:
            made.keep_samples(trial)
        return made.result

    lost, has_tables = None, False
    if out is not None:
        from loadlens.record.sample_rows import can_write_parquet

        has_tables = can_write_parquet()
    with Interrupts(has_tables=has_tables) as interrupts:
        if out is None:
            result = make(None, None)
        else:
            study, planned = _as_study(plan, None if driver is None else driver.name, hide, samples)
            result, lost = _recorded(plan, study, planned, out, make)
    is_invalid = bool(trial_faults.faults_of(EngineResult.from_json(result)))
    return HitDone(result, out, ExitCode.INVALID if is_invalid else interrupts.code or ExitCode.OK, lost)


class _HitListener(Listener):
    def __init__(
        self,
        interrupts: Interrupts,
        trial: TrialWriter | None,
        writer: RunWriter | None,
        on_progress: Callable[[Progress], None] | None,
        on_caution: Callable[[str], None] | None,
    ) -> None:
        self._interrupts, self._trial, self._writer = interrupts, trial, writer
        self._on_progress, self._on_caution = on_progress, on_caution

    def warned(self, notes: Sequence[str]) -> None:
        if self._on_caution is not None:
            for words in notes:
                self._on_caution(words)

    def started(self, t0_monotonic_ns: int, t0_unix_ns: int) -> None:
        if self._trial is not None:
            self._trial.started(t0_monotonic_ns=t0_monotonic_ns, t0_unix_ns=t0_unix_ns)

    def load_changed(self, change: LoadChange) -> None:
        if self._trial is not None and self._writer is not None:
            self._writer.event("load_changed", **self._trial.name, **asdict(change))
        if self._on_caution is not None:
            self._on_caution(f"the load is exploratory now: {change.words}")

    def must_stop(self, progress: Progress | None) -> bool:
        if self._on_progress is not None and progress is not None:
            self._on_progress(progress)
        return self._interrupts.is_set


def _recorded(
    plan: Plan,
    study: Study,
    planned: PlannedTrial,
    out: Path,
    make: Callable[[TrialWriter, RunWriter], Result],
) -> tuple[Result, RecordError | None]:
    """Make a load as the only trial of a study, and keep its record.

    `make` receives the writers of the trial and of the run. If it fails, the record keeps the reason.

    Returns:
        The result, and why its record is incomplete: a disk that became full does not cost the figures.
    """
    from loadlens.model.trial import TrialStatus
    from loadlens.record import Moment, TrialEnd, create_run
    from loadlens.run import engine_plan, environment, secret_variables

    used = secret_variables.values_of(study.cases)
    with create_run(out, study, (planned,), environment.of_machine(), secrets_used=used) as writer:
        trial = writer.trial(planned)
        trial.write_plan(plan.to_json())
        writer.event("trial_started", **trial.name, position=1)
        began = Moment.now()

        def seal(result: Result | None, status: TrialStatus, reasons: tuple[str, ...]) -> None:
            made = None if result is None else EngineResult.from_json(result)
            placement = engine_plan.placement_of(plan, result=made)
            trial.seal(TrialEnd.of(result, status, reasons, began, placement=placement))
            writer.event("trial_sealed", **trial.name, status=status, reasons=list(reasons), leaks=[])

        try:
            result = make(trial, writer)
        except EngineError as fault:
            seal(None, TrialStatus.INVALID, (fault.message,))
            raise
        made = EngineResult.from_json(result)
        status, reasons = trial_faults.verdict(made)
        try:
            seal(result, status, reasons)
            complete = int(status is TrialStatus.COMPLETE)
            writer.event("stopped" if made.status == "stopped" else "ended", complete=complete)
        except RecordError as fault:
            return result, fault
    return result, None


def _as_study(
    plan: Plan, driver: str | None, hide: tuple[str, ...], samples: int | None
) -> tuple[Study, PlannedTrial]:
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
    step, others = stream.scenarios[0].steps[0], len(stream.scenarios) - 1
    requests = f"{step.method} {step.path}" + (f" and {others} other requests" if others else "")
    study = Study(
        name="hit",
        question=f"How does {stream.target.authority} answer {requests} under this load?",
        folder=str(Path.cwd()),
        text="",
        params=(),
        cases=(case,),
        order_by="blocks",
        seed=plan.seed,
        hide=hide,
        samples=samples,
    )
    return study, PlannedTrial(case, block=1, position=1, seed=plan.seed)
