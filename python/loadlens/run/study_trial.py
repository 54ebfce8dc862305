"""One trial of a study, from starting its services to sealing its record.

The order of steps is part of the measurement design: services ready, data reset and verified, first monitor
readings while the services are idle, load, drain, last readings, services down, seal. Whatever fails, the
trial is sealed with the reason, and no service stays up unintentionally.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from typing import Any

from loadlens.engine import Progress as EngineProgress
from loadlens.engine import Result
from loadlens.errors import EngineError, TestbedError
from loadlens.model.result import EngineResult
from loadlens.model.study import Case, PlannedTrial
from loadlens.model.topology import Outside
from loadlens.model.trial import TrialStatus
from loadlens.model.workload import Plan
from loadlens.record import RunWriter, TrialEnd, TrialWriter
from loadlens.run import (
    engine_plan,
    environment,
    prometheus_queries,
    trial_faults,
    watching,
)
from loadlens.run.engine_trial import run_trial
from loadlens.run.external import DRIVERS
from loadlens.run.external_load import ExternalGenerator
from loadlens.run.interrupts import Interrupts, Stopped
from loadlens.run.progress import Load, Progress, Step, Stopping, Warned
from loadlens.run.testbed_pool import TestbedPool
from loadlens.signals import collect
from loadlens.testbed import Testbed, placement

LAST_LINES = 5  # log lines of a dead service shown during the run
CHECK_EVERY_S = 0.5  # interval of the checks of services under load

Guard = Callable[[EngineProgress], str | None]  # returns the reason to end the load now, or None


@dataclass(frozen=True, slots=True)
class TrialContext:
    """The run that a trial belongs to."""

    writer: RunWriter
    pool: TestbedPool
    interrupts: Interrupts
    progress: Progress
    environment: Mapping[str, Any]  # at the start of the run
    report: Mapping[str, Any] = field(default_factory=dict)  # the study's `report:` section
    warned: set[str] = field(default_factory=set)  # each warning is shown once per run, not per trial
    guard: Guard | None = None  # checks the running load about ten times per second
    watch_every_s: float = 1.0  # interval of monitor readings

    def caution(self, notes: Sequence[str]) -> None:
        """Show the engine's warnings about this machine, each once."""
        for words in notes:
            if words not in self.warned:
                self.warned.add(words)
                self.progress.tell(Warned(words))


@dataclass(slots=True)
class TrialOutcome:
    """Outcome of a trial, filled step by step."""

    trial: TrialWriter
    began_unix_ns: int
    status: TrialStatus = TrialStatus.COMPLETE
    reasons: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    engine: Result | None = None  # as the record keeps it
    result: EngineResult | None = None  # the same, typed
    plan: Plan | None = None
    services: tuple[dict[str, Any], ...] = ()
    held: tuple[dict[str, Any], ...] = ()  # actual limits of each replica, read while it ran
    idle: dict[str, Any] = field(default_factory=dict)
    came_up: bool = False
    fault: TestbedError | None = None  # reason why the services did not start

    def is_not_complete(self, status: TrialStatus, reason: str) -> None:
        """Add a reason why the trial does not count; the first status stays."""
        if self.status is TrialStatus.COMPLETE:
            self.status = status
        self.reasons.append(reason)


def run_study_trial(
    planned: PlannedTrial, context: TrialContext, *, previous_cut_ns: int, reset_due: bool
) -> TrialOutcome:
    """Run one trial and seal it.

    Args:
        planned: What to run.
        previous_cut_ns: Settling time of the previous trial of the case, for an automatic warm-up.
        reset_due: Reset the data before the load.

    Raises:
        RecordError: The record cannot be written.
    """
    trial = context.writer.trial(planned)
    done = TrialOutcome(trial, time.time_ns())
    context.writer.event("trial_started", **trial.name, position=planned.position)
    try:
        testbed = _bring_up(planned, context, done, reset_due=reset_due)
        _under_load(testbed, planned, context, done, previous_cut_ns)
    except Stopped:
        done.is_not_complete(TrialStatus.ABORTED, "ended on request before its load was over")
    except TestbedError as fault:
        done.fault = fault
        done.is_not_complete(TrialStatus.INVALID, _one_line(fault))
    except EngineError as fault:
        done.is_not_complete(TrialStatus.INVALID, _one_line(fault))
    finally:
        _note(context, "ending services")
        broken = done.status is not TrialStatus.COMPLETE
        if (shared := context.pool.shared_logs()) is not None:
            trial.keep_logs(shared)
        leaks = context.pool.done_with(planned, broken=broken)
    _seal(planned, context, done, leaks)
    context.writer.event(
        "trial_sealed", **trial.name, status=done.status, reasons=done.reasons, leaks=list(leaks)
    )
    return done


def _bring_up(
    planned: PlannedTrial, context: TrialContext, done: TrialOutcome, *, reset_due: bool
) -> Testbed:
    """Start the services and reset the data."""
    with context.interrupts.allowed():
        _note(context, "starting services")
        testbed = context.pool.ready_for(planned, done.trial.logs)
        done.came_up = True
        variants = {service.name: service.variant for service in planned.case.services}
        done.held = (
            *(
                {"service": p.service, "replica": p.replica, **asdict(placement.held(p.pid, p.groups))}
                for p in testbed.processes()
            ),
            *_held_outside(planned.case.outside),
        )
        done.services = tuple(
            {
                "service": p.service,
                "variant": variants.get(p.service),
                "replica": p.replica,
                "pid": p.pid,
                "ports": dict(p.ports),
                "command": list(p.command),
            }
            for p in testbed.processes()
        )
        if planned.case.reset is not None and reset_due:
            _note(context, "resetting data")
            try:
                testbed.reset(planned.case.reset)
            except TestbedError as fault:
                raise TestbedError(f"the data reset failed: {fault.message}", where=fault.where) from fault
    return testbed


def _under_load(
    testbed: Testbed, planned: PlannedTrial, context: TrialContext, done: TrialOutcome, previous_cut_ns: int
) -> None:
    """Run the load and its drain, with monitor readings before and after."""
    plan = engine_plan.plan_of(planned, testbed.target(planned.case.entry), previous_cut_ns=previous_cut_ns)
    done.plan = plan
    done.trial.write_plan(plan.to_json())
    with _external(planned.case, plan, context) as external:
        spec = watching.spec_of(
            testbed,
            planned.case,
            marker=context.writer.id,
            external=external,
            every_s=context.watch_every_s,
        )
        before = time.monotonic_ns()
        with collect.start(spec, done.trial.readings) as monitor:
            ready = time.monotonic_ns()
            context.interrupts.check()
            watch = _ServiceWatch(testbed)
            show = _Show(context, done.trial.name)
            result = _load(external, plan, watch, show, context, done)
            drained = time.monotonic_ns()
            done.engine, done.result = result, EngineResult.from_json(result)
            _ask_queries(testbed, context, done, result)
            watch.check_now()  # a service may have ended with the last request
            hole = None if monitor.is_running() else "the monitors ended before the load did"
            fault = monitor.stop()
    for words in (hole, fault):
        if words:
            done.notes.append(words)
            context.progress.tell(Warned(words))
    begin = result["t0_monotonic_ns"]
    done.idle = {
        "before_ns": [before - begin, ready - begin],  # the first readings fell between these
        "after_ns": [drained - begin, time.monotonic_ns() - begin],  # and the last ones between these
        "readiness_requests": testbed.readiness_requests,
    }
    if show.must_end is not None:
        done.is_not_complete(TrialStatus.ABORTED, show.must_end)
    _judge(done.result, watch, context, done)


def _external(
    case: Case, plan: Plan, context: TrialContext
) -> AbstractContextManager[ExternalGenerator | None]:
    """Return the external tool that makes the load; None for our engine."""
    if case.driver is None:
        return nullcontext()
    return ExternalGenerator(DRIVERS[case.driver], plan, marker=context.writer.id)


def _load(
    external: ExternalGenerator | None,
    plan: Plan,
    watch: _ServiceWatch,
    show: _Show,
    context: TrialContext,
    done: TrialOutcome,
) -> Result:
    """Make the load with our engine or an external tool."""

    def started(mono: int, unix: int) -> None:
        done.trial.started(t0_monotonic_ns=mono, t0_unix_ns=unix)

    if external is None:
        return run_trial(
            plan,
            record_dir=done.trial.live,
            on_progress=show,
            stop=context.interrupts.event,
            on_started=started,
            watch=lambda: watch() or show.must_end is not None,
            on_notes=context.caution,
        )

    def turn() -> None:
        if context.interrupts.is_news():
            context.progress.tell(Stopping())

    _note(context, f"{external.name} makes the load")
    try:
        made = external.generate(stop=context.interrupts.event, watch=watch, on_started=started, on_turn=turn)
    except EngineError:
        context.interrupts.check()  # an interrupted tool may end without a report
        if watch.fault is not None:
            raise watch.fault from None
        raise
    if made.report.requests is not None:
        done.trial.write_samples(made.samples())
    return made.result


def _ask_queries(testbed: Testbed, context: TrialContext, done: TrialOutcome, result: Result) -> None:
    """Evaluate the report's PromQL while the server is up, and keep the answers."""
    answers = prometheus_queries.ask(context.report, testbed, result)
    if answers is None:
        return
    done.trial.write_answers(answers)
    failed = [f"{answer['name']}: {answer['error']}" for answer in answers["answers"] if answer["error"]]
    if failed:
        done.notes.append(f"Prometheus refused {'; '.join(failed)}")


class _Show:
    """Forwards the engine's progress, records the start of each phase, and checks the guard."""

    def __init__(self, context: TrialContext, name: Mapping[str, str]) -> None:
        self._around = context
        self._name = name
        self._phase = ""
        self.must_end: str | None = None

    def __call__(self, progress: EngineProgress) -> None:
        if self._around.interrupts.is_news():
            self._around.progress.tell(Stopping())
        if progress["phase"] != self._phase:
            self._phase = progress["phase"]
            self._around.writer.event("phase", **self._name, phase=self._phase)
        if self._around.guard is not None and self.must_end is None:
            self.must_end = self._around.guard(progress)
        self._around.progress.tell(Load(progress))


def _judge(result: EngineResult, watch: _ServiceWatch, context: TrialContext, done: TrialOutcome) -> None:
    """Apply the validity gates that only the trial runner can check."""
    if watch.fault is not None:
        words = _one_line(watch.fault)
        context.writer.event("service_died", **done.trial.name, words=words)
        done.is_not_complete(TrialStatus.INVALID, words)
        context.progress.tell(Warned(_with_last_words(watch.fault)))
    status, reasons = trial_faults.verdict(result)
    if status is TrialStatus.ABORTED and done.status is not TrialStatus.COMPLETE:
        return  # it ended early because of the service or the guard
    if status is TrialStatus.COMPLETE:
        done.notes.extend(result.reasons)  # an exhausted feed ends a load early
    for reason in reasons:
        done.is_not_complete(status, reason)


class _ServiceWatch:
    """Checks the services from time to time; true once one has ended."""

    def __init__(self, testbed: Testbed) -> None:
        self._testbed = testbed
        self._next = 0.0
        self.fault: TestbedError | None = None

    def __call__(self) -> bool:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + CHECK_EVERY_S
            self.check_now()
        return self.fault is not None

    def check_now(self) -> None:
        """Check now, regardless of the interval."""
        if self.fault is None:
            try:
                self._testbed.check()
            except TestbedError as fault:
                self.fault = fault


def _held_outside(outside: Outside | None) -> Iterator[dict[str, Any]]:
    """Yield the actual limits of processes that ran before."""
    if outside is None:
        return
    for number, pid in enumerate(outside.pids, 1):
        yield {"service": outside.name, "replica": number, **asdict(placement.held(pid, ()))}


def _seal(planned: PlannedTrial, context: TrialContext, done: TrialOutcome, leaks: tuple[str, ...]) -> None:
    _note(context, "sealing")
    result = done.engine
    done.trial.seal(
        TrialEnd(
            done.status,
            tuple(done.reasons),
            engine=result,
            t0_unix_ns=None if result is None else result["t0_unix_ns"],
            t0_monotonic_ns=None if result is None else result["t0_monotonic_ns"],
            services=done.services,
            placement=engine_plan.placement_of(
                done.plan, planned.case, held=done.held, refused=_refused_limit(done.fault)
            ),
            environment=_changes(context.environment),
            idle=done.idle,
            leaks=leaks,
            notes=tuple(done.notes),
            began_unix_ns=done.began_unix_ns,
            ended_unix_ns=time.time_ns(),
        )
    )


def _refused_limit(fault: TestbedError | None) -> str | None:
    """Return the reason why the machine cannot enforce a limit of the study; None without one."""
    is_limit = fault is not None and fault.where is not None and ".limits." in fault.where
    return f"{fault.where}: {_one_line(fault)}" if fault is not None and is_limit else None


def _changes(before: Mapping[str, Any]) -> dict[str, Any]:
    """Return the changes of the environment since the start of the run."""
    now = environment.changing()
    was = {group: {name: before[group].get(name) for name in values} for group, values in now.items()}
    return environment.differences(was, now)


def _note(context: TrialContext, words: str) -> None:
    context.progress.tell(Step(words))


def _with_last_words(fault: TestbedError) -> str:
    """Format a fault with the end of the log and its path."""
    first, *lines = fault.message.splitlines()
    where = f"    (in {fault.where})" if fault.where else ""
    return "\n".join((first, *lines[-LAST_LINES:], *([where] if where else [])))


def _one_line(fault: TestbedError | EngineError) -> str:
    """Format a fault without its log lines, which are in the trial's logs."""
    return fault.message.splitlines()[0].removesuffix("; its last lines:")
