"""One trial of a study from its services to its seal.

The order is the design of the measurement: services up and ready, data put back and verified, the books read
while nothing is asked of the service, load, drain, the books read again, services down, seal. Whatever goes
wrong on the way, the trial is sealed with the reason and nothing stays up that should not.
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
from loadlens.run.external_load import Hired
from loadlens.run.interrupts import Interrupts, Stopped
from loadlens.run.progress import Load, Progress, Step, Stopping, Warned
from loadlens.run.testbed_pool import Bench
from loadlens.signals import collect
from loadlens.testbed import Testbed, placement

LAST_LINES = 5  # of the log of a service that died, as they are shown while the run goes on
CHECK_EVERY_S = 0.5  # how often the services are looked at while the load runs

Guard = Callable[[EngineProgress], str | None]  # why the load must end now, in words


@dataclass(frozen=True, slots=True)
class Around:
    """What a trial needs from the run that it belongs to."""

    writer: RunWriter
    bench: Bench
    interrupts: Interrupts
    progress: Progress
    environment: Mapping[str, Any]  # of the run's start
    report: Mapping[str, Any] = field(default_factory=dict)  # what the study's report is to answer
    said: set[str] = field(default_factory=set)  # what may go wrong is told once, not before every trial
    guard: Guard | None = None  # looks at the running load about ten times a second
    watch_every_s: float = 1.0  # how often monitors read

    def caution(self, notes: Sequence[str]) -> None:
        """Tell what the engine foresees on this machine, each thing once."""
        for words in notes:
            if words not in self.said:
                self.said.add(words)
                self.progress.tell(Warned(words))


@dataclass(slots=True)
class Conducted:
    """What came of a trial; grows while it goes."""

    trial: TrialWriter
    began_unix_ns: int
    status: TrialStatus = TrialStatus.COMPLETE
    reasons: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    engine: Result | None = None  # as the record keeps it
    result: EngineResult | None = None  # the same, read
    plan: Plan | None = None
    services: tuple[dict[str, Any], ...] = ()
    held: tuple[dict[str, Any], ...] = ()  # what each replica is confined to, read while it ran
    idle: dict[str, Any] = field(default_factory=dict)
    came_up: bool = False
    fault: TestbedError | None = None  # why it did not

    def is_not_complete(self, status: TrialStatus, reason: str) -> None:
        """Note why the trial does not count; the first status stays."""
        if self.status is TrialStatus.COMPLETE:
            self.status = status
        self.reasons.append(reason)


def conduct(planned: PlannedTrial, around: Around, *, previous_cut_ns: int, reset_due: bool) -> Conducted:
    """Run one trial and seal it.

    Args:
        planned: What to run.
        previous_cut_ns: How long the last trial of the case took to settle; for an automatic warm-up.
        reset_due: Whether the data are to be put back before it.

    Raises:
        RecordError: The record cannot be written.
    """
    trial = around.writer.trial(planned)
    done = Conducted(trial, time.time_ns())
    around.writer.event("trial_started", **trial.name, position=planned.position)
    try:
        testbed = _bring_up(planned, around, done, reset_due=reset_due)
        _under_load(testbed, planned, around, done, previous_cut_ns)
    except Stopped:
        done.is_not_complete(TrialStatus.ABORTED, "ended on request before its load was over")
    except TestbedError as fault:
        done.fault = fault
        done.is_not_complete(TrialStatus.INVALID, _one_line(fault))
    except EngineError as fault:
        done.is_not_complete(TrialStatus.INVALID, _one_line(fault))
    finally:
        _note(around, "ending services")
        broken = done.status is not TrialStatus.COMPLETE
        if (shared := around.bench.shared_logs()) is not None:
            trial.keep_logs(shared)
        leaks = around.bench.done_with(planned, broken=broken)
    _seal(planned, around, done, leaks)
    around.writer.event(
        "trial_sealed", **trial.name, status=done.status, reasons=done.reasons, leaks=list(leaks)
    )
    return done


def _bring_up(planned: PlannedTrial, around: Around, done: Conducted, *, reset_due: bool) -> Testbed:
    """Services up, data back."""
    with around.interrupts.allowed():
        _note(around, "starting services")
        testbed = around.bench.ready_for(planned, done.trial.logs)
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
            _note(around, "putting data back")
            try:
                testbed.reset(planned.case.reset)
            except TestbedError as fault:
                raise TestbedError(
                    f"the data were not put back: {fault.message}", where=fault.where
                ) from fault
    return testbed


def _under_load(
    testbed: Testbed, planned: PlannedTrial, around: Around, done: Conducted, previous_cut_ns: int
) -> None:
    """Books, load, drain, books."""
    plan = engine_plan.plan_of(planned, testbed.target(planned.case.entry), previous_cut_ns=previous_cut_ns)
    done.plan = plan
    done.trial.write_plan(plan.to_json())
    with _hired(planned.case, plan, around) as hired:
        spec = watching.spec_of(
            testbed,
            planned.case,
            marker=around.writer.id,
            hired=hired,
            every_s=around.watch_every_s,
        )
        before = time.monotonic_ns()
        with collect.start(spec, done.trial.readings) as monitor:
            ready = time.monotonic_ns()
            around.interrupts.check()
            watch = _ServiceWatch(testbed)
            show = _Show(around, done.trial.name)
            result = _load(hired, plan, watch, show, around, done)
            drained = time.monotonic_ns()
            done.engine, done.result = result, EngineResult.from_json(result)
            _ask_queries(testbed, around, done, result)
            watch.look()  # a service may have ended with the last request
            hole = None if monitor.is_running() else "the monitors ended before the load did"
            said = monitor.stop()
    for words in (hole, said):
        if words:
            done.notes.append(words)
            around.progress.tell(Warned(words))
    begin = result["t0_monotonic_ns"]
    done.idle = {
        "before_ns": [before - begin, ready - begin],  # the first readings fell between these
        "after_ns": [drained - begin, time.monotonic_ns() - begin],  # and the last ones between these
        "readiness_requests": testbed.readiness_requests,
    }
    if show.must_end is not None:
        done.is_not_complete(TrialStatus.ABORTED, show.must_end)
    _judge(done.result, watch, around, done)


def _hired(case: Case, plan: Plan, around: Around) -> AbstractContextManager[Hired | None]:
    """The program of others that is to make the load; none: our engine does."""
    if case.driver is None:
        return nullcontext()
    return Hired(DRIVERS[case.driver], plan, marker=around.writer.id)


def _load(
    hired: Hired | None,
    plan: Plan,
    watch: _ServiceWatch,
    show: _Show,
    around: Around,
    done: Conducted,
) -> Result:
    """Make the load, by our engine or by another program."""

    def started(mono: int, unix: int) -> None:
        done.trial.started(t0_monotonic_ns=mono, t0_unix_ns=unix)

    if hired is None:
        return run_trial(
            plan,
            record_dir=done.trial.live,
            on_progress=show,
            stop=around.interrupts.event,
            on_started=started,
            watch=lambda: watch() or show.must_end is not None,
            on_notes=around.caution,
        )

    def turn() -> None:
        if around.interrupts.is_news():
            around.progress.tell(Stopping())

    _note(around, f"{hired.name} makes the load")
    try:
        made = hired.drive(stop=around.interrupts.event, watch=watch, on_started=started, on_turn=turn)
    except EngineError:
        around.interrupts.check()  # it was asked to end, and told nothing
        if watch.fault is not None:
            raise watch.fault from None
        raise
    if made.told.requests is not None:
        done.trial.write_samples(made.samples())
    return made.result


def _ask_queries(testbed: Testbed, around: Around, done: Conducted, result: Result) -> None:
    """The report's PromQL, while the server is up; what came of it is kept."""
    answers = prometheus_queries.ask(around.report, testbed, result)
    if answers is None:
        return
    done.trial.write_answers(answers)
    failed = [f"{answer['name']}: {answer['error']}" for answer in answers["answers"] if answer["error"]]
    if failed:
        done.notes.append(f"Prometheus refused {'; '.join(failed)}")


class _Show:
    """Passes the engine's progress on, writes down when a phase began, and asks the guard."""

    def __init__(self, around: Around, name: Mapping[str, str]) -> None:
        self._around = around
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


def _judge(result: EngineResult, watch: _ServiceWatch, around: Around, done: Conducted) -> None:
    """Gates that only the one who ran the trial can see."""
    if watch.fault is not None:
        words = _one_line(watch.fault)
        around.writer.event("service_died", **done.trial.name, words=words)
        done.is_not_complete(TrialStatus.INVALID, words)
        around.progress.tell(Warned(_with_last_words(watch.fault)))
    status, reasons = trial_faults.verdict(result)
    if status is TrialStatus.ABORTED and done.status is not TrialStatus.COMPLETE:
        return  # it ended early because the service did, or the guard saw to it
    if status is TrialStatus.COMPLETE:
        done.notes.extend(result.reasons)  # a feed that was used up ends a load before its time
    for reason in reasons:
        done.is_not_complete(status, reason)


class _ServiceWatch:
    """Looks at the services now and then; true once one has ended."""

    def __init__(self, testbed: Testbed) -> None:
        self._testbed = testbed
        self._next = 0.0
        self.fault: TestbedError | None = None

    def __call__(self) -> bool:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + CHECK_EVERY_S
            self.look()
        return self.fault is not None

    def look(self) -> None:
        """Look now, however long ago the last look was."""
        if self.fault is None:
            try:
                self._testbed.check()
            except TestbedError as fault:
                self.fault = fault


def _held_outside(outside: Outside | None) -> Iterator[dict[str, Any]]:
    """What processes that ran already are confined to."""
    if outside is None:
        return
    for number, pid in enumerate(outside.pids, 1):
        yield {"service": outside.name, "replica": number, **asdict(placement.held(pid, ()))}


def _seal(planned: PlannedTrial, around: Around, done: Conducted, leaks: tuple[str, ...]) -> None:
    _note(around, "sealing")
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
            environment=_changes(around.environment),
            idle=done.idle,
            leaks=leaks,
            notes=tuple(done.notes),
            began_unix_ns=done.began_unix_ns,
            ended_unix_ns=time.time_ns(),
        )
    )


def _refused_limit(fault: TestbedError | None) -> str | None:
    """Why the machine does not hold a limit that the study asks for."""
    is_limit = fault is not None and fault.where is not None and ".limits." in fault.where
    return f"{fault.where}: {_one_line(fault)}" if fault is not None and is_limit else None


def _changes(before: Mapping[str, Any]) -> dict[str, Any]:
    """What is not as it was at the start of the run, of what may change."""
    now = environment.changing()
    was = {group: {name: before[group].get(name) for name in values} for group, values in now.items()}
    return environment.differences(was, now)


def _note(around: Around, words: str) -> None:
    around.progress.tell(Step(words))


def _with_last_words(fault: TestbedError) -> str:
    """What is wrong, the end of the log, and where the rest is."""
    first, *lines = fault.message.splitlines()
    where = f"    (in {fault.where})" if fault.where else ""
    return "\n".join((first, *lines[-LAST_LINES:], *([where] if where else [])))


def _one_line(fault: TestbedError | EngineError) -> str:
    """What is wrong, without the log lines behind it: those are in the trial's logs."""
    return fault.message.splitlines()[0].removesuffix("; its last lines:")
