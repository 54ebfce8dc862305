"""Trials of a run, each from starting its services to sealing its record.

The order of steps is part of the measurement design: services ready, data reset and verified, first monitor
readings while the services are idle, load, drain, last readings, services down, seal. Whatever fails, the
trial is sealed with the reason, and no service stays up unintentionally.
"""

from __future__ import annotations

import secrets
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from loadlens.engine import Progress as EngineProgress
from loadlens.engine import Result
from loadlens.errors import EngineError, LoadlensError, TestbedError, limit_met
from loadlens.machine import threads
from loadlens.model.result import EngineResult, LoadChange, StreamResult
from loadlens.model.study import PlannedTrial, ReportSettings
from loadlens.model.topology import Outside
from loadlens.model.trial import TrialStatus
from loadlens.model.workload import KEPT_ROWS, Plan, RecordTo
from loadlens.record import Moment, RunWriter, TrialEnd, TrialWriter
from loadlens.run import (
    engine_plan,
    environment,
    outside_logs,
    prometheus_queries,
    trial_faults,
    watching,
)
from loadlens.run.engine_trial import Listener, MakeLoad, run_trial
from loadlens.run.external import DRIVERS
from loadlens.run.external_load import ExternalGenerator
from loadlens.run.interrupts import Interrupts, Stopped
from loadlens.run.preparations import Preparations
from loadlens.run.progress import Keeping, Load, Progress, Step, Stopping, TrialEnded, Warned
from loadlens.run.time_left import Remaining
from loadlens.signals import collect
from loadlens.signals.collect import stacks
from loadlens.testbed import Testbed, placement, remains

LAST_LINES = 5  # log lines of a dead service shown during the run
WATCH_EVERY_S = 1.0  # interval of monitor readings
CHECK_EVERY_S = 0.5  # interval of the checks of services under load
IDLE_S = 0.5  # stacks are sampled before the load, too: what threads do then is not its doing

Guard = Callable[[EngineProgress], str | None]  # returns the reason to end the load now, or None


@dataclass(slots=True)
class TrialOutcome:
    """Outcome of a trial, filled step by step."""

    trial: TrialWriter
    began: Moment
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

    def ended(
        self, planned: PlannedTrial, attempt: int, trials: int, remaining: Remaining, *, may_repeat: bool
    ) -> TrialEnded:
        """Return the event of its end.

        Args:
            planned: What ran.
            attempt: Its number, from 1.
            trials: Number of trials of the run.
            remaining: Time left of the run.
            may_repeat: An invalid trial is repeated.
        """
        load = None if self.result is None else self.result.all_loads[0]
        return TrialEnded(
            planned,
            planned.position,
            trials,
            attempt,
            self.status,
            tuple(self.reasons),
            throughput_rps=None if load is None else load.throughput_rps.value,
            failed=0 if load is None else load.requests.failed,
            will_repeat=may_repeat and self.status is TrialStatus.INVALID,
            remaining=remaining,
            unexpected_status=0 if load is None else load.requests.unexpected_status or 0,
            check_failed=load.requests.check_failed if isinstance(load, StreamResult) else 0,
        )


class TrialRunner:
    """Runs trials into one record, one after the other.

    Holds at most one testbed, which the next trial reuses if the study allows it (`fresh: block|run`). A
    context manager: every exit stops the testbed.
    """

    def __init__(
        self,
        writer: RunWriter,
        preparations: Preparations,
        interrupts: Interrupts,
        progress: Progress,
        environment: Mapping[str, Any],
        *,
        report: ReportSettings | None = None,
        samples: int | None = KEPT_ROWS,
        watch_every_s: float = WATCH_EVERY_S,
        make_load: MakeLoad | None = None,
    ) -> None:
        """Prepare a runner; no process runs before the first trial.

        Args:
            writer: Of the record.
            preparations: Result of `prepare_all`.
            interrupts: Source of an early end.
            progress: Receives the events of the trials.
            environment: At the start of the run; each trial records its changes.
            report: The study's `report:` section.
            samples: Rows of requests that each trial keeps of each stream; None: all.
            watch_every_s: Interval of monitor readings.
            make_load: Makes the loads elsewhere; None: our engine on this machine.
        """
        import polars as pl

        # Starts its threads now. Later a limit may be in the way, and it would end with a panic.
        pl.thread_pool_size()
        self.writer = writer
        self.interrupts = interrupts
        self.progress: Progress = Keeping(writer, progress)
        self.warned: set[str] = set()  # each warning is shown once per run, not per trial
        self._preparations = preparations
        self._environment = environment
        self._report = report or ReportSettings()
        self._samples = samples
        self._watch_every_s = watch_every_s
        self._make_load = make_load
        self._testbed: Testbed | None = None
        self._lifetime: tuple[object, ...] | None = None  # trials with the same value may share processes
        self._logs: Path | None = None  # logs of a testbed that outlives its trial
        self.unsealed: EngineResult | None = None  # of a trial whose load is over, until it is in the record

    def run(
        self,
        planned: PlannedTrial,
        *,
        previous_cut_ns: int = 0,
        reset_due: bool = False,
        guard: Guard | None = None,
    ) -> TrialOutcome:
        """Run one trial and seal it.

        Args:
            planned: What to run.
            previous_cut_ns: Settling time of the previous trial of the case, for an automatic warm-up.
            reset_due: Reset the data before the load.
            guard: Checks the running load about ten times per second.

        Raises:
            RecordError: The record cannot be written.
        """
        trial = self.writer.trial(planned)
        done = TrialOutcome(trial, Moment.now())
        leaks: tuple[str, ...] = ()
        self.writer.event("trial_started", **trial.name, position=planned.position)
        try:
            with self.interrupts.allowed():
                testbed = self._bring_up(planned, done, reset_due=reset_due)
            self._load(testbed, planned, done, previous_cut_ns, guard)
        except Stopped:
            done.is_not_complete(TrialStatus.ABORTED, "ended on request before its load was over")
        except (TestbedError, EngineError) as fault:
            done.fault = fault if isinstance(fault, TestbedError) else None
            done.is_not_complete(TrialStatus.INVALID, _one_line(fault))
        except (OSError, MemoryError, RuntimeError) as fault:
            if (limit := limit_met(fault)) is None:
                raise
            done.is_not_complete(TrialStatus.INVALID, _one_line(limit))
        finally:
            self.progress.tell(Step("ending services"))
            if self._logs is not None:
                trial.keep_logs(self._logs)
            if planned.case.fresh == "trial" or done.status is not TrialStatus.COMPLETE:
                leaks = self.close()
        self._seal(planned, done, leaks)
        return done

    def start_services(self, planned: PlannedTrial) -> None:
        """Start the services of a trial before it; only for a case whose trials share them.

        Raises:
            TestbedError: They do not start.
        """
        self.progress.tell(Step("starting services"))
        self._running_testbed(planned, self.writer.shared_logs())

    def reads_code(self, pids: Sequence[int]) -> bool | None:
        """Return whether the code of processes can be sampled; `None`: there are none."""
        return stacks.may_read(pids) if pids else None

    @property
    def started(self) -> tuple[int, ...]:
        """Processes of the services that run now."""
        return () if self._testbed is None else tuple(process.pid for process in self._testbed.processes())

    def close(self) -> tuple[str, ...]:
        """Stop the running testbed; describe leftover processes."""
        testbed, self._testbed, self._lifetime = self._testbed, None, None
        return () if testbed is None else testbed.stop()

    def __enter__(self) -> TrialRunner:
        for left in remains.end():
            self.progress.tell(Warned(f"ended what a killed run left: {remains.in_words(left)}"))
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- services -------------------------------------------------------------------------------------

    def _bring_up(self, planned: PlannedTrial, done: TrialOutcome, *, reset_due: bool) -> Testbed:
        """Start the services, unless they run already, and reset the data."""
        case = planned.case
        self.progress.tell(Step("starting services"))
        testbed = self._running_testbed(planned, done.trial.logs)
        done.came_up = True
        variants = {service.name: service.variant for service in case.services}
        processes = testbed.processes()
        done.held = (
            *(
                {"service": p.service, "replica": p.replica, **asdict(placement.held(p.pid, p.groups))}
                for p in processes
            ),
            *_held_outside(case.outside),
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
            for p in processes
        )
        if case.reset is not None and reset_due:
            self.progress.tell(Step("resetting data"))
            try:
                testbed.reset(case.reset)
            except TestbedError as fault:
                raise TestbedError(f"the data reset failed: {fault.message}", where=fault.where) from fault
        return testbed

    def _running_testbed(self, planned: PlannedTrial, logs: Path) -> Testbed:
        """Return the running testbed if this trial may reuse it; else a new one."""
        case = planned.case
        lifetime: tuple[object, ...] | None = None  # never equal to that of another trial
        if case.fresh != "trial":
            lifetime = (case.fresh, planned.block if case.fresh == "block" else None, case.services)
        if self._testbed is not None and lifetime is not None and self._lifetime == lifetime:
            return self._testbed
        self.close()
        self._logs = None if lifetime is None else self.writer.shared_logs()
        # kept before the start, because Ctrl-C may come at any time
        self._testbed = Testbed(
            case.services,
            self._preparations.of(case),
            marker=self.writer.id,
            scratch=Path(tempfile.gettempdir()) / f"loadlens-{self.writer.id}-{secrets.token_hex(4)}",
            logs=self._logs or logs,
            values=self._preparations.values_of(case),
            secret_values=self.writer.hiding.values,
            on_event=self._keep_event,
        )
        self._testbed.start()
        self._lifetime = lifetime  # only now: a testbed that failed to start is never reused
        return self._testbed

    def _keep_event(self, event: Mapping[str, object]) -> None:
        content = dict(event)
        self.writer.event(str(content.pop("event")), **content)
        if event["event"] == "leak":
            self.progress.tell(Warned(str(event["words"])))

    # --- load -----------------------------------------------------------------------------------------

    def _load(
        self,
        testbed: Testbed,
        planned: PlannedTrial,
        done: TrialOutcome,
        previous_cut_ns: int,
        guard: Guard | None,
    ) -> None:
        """Run the load and its drain, with monitor readings before and after."""
        case, trial = planned.case, done.trial
        plan = engine_plan.plan_of(planned, testbed.target(case.entry), previous_cut_ns=previous_cut_ns)
        if self._make_load is not None:  # threads and processors are those of other machines
            plan = replace(plan, threads=None, cpus=None)
        done.plan = plan
        trial.write_plan(plan.to_json())
        listener = _TrialListener(self, trial, testbed, guard)
        driver = None if case.driver is None else DRIVERS[case.driver]
        logs = outside_logs.of(case.outside)
        tool = nullcontext() if driver is None else ExternalGenerator(driver, plan, marker=self.writer.id)
        with tool as external:
            spec = watching.spec_of(
                testbed,
                case,
                marker=self.writer.id,
                external=external,
                has_nodes=self._make_load is not None,
                every_s=self._watch_every_s,
                hide=self.writer.hiding.names,
            )
            before = time.monotonic_ns()
            with collect.start(spec, trial.readings) as monitor:
                ready = time.monotonic_ns()
                self.interrupts.check()
                if case.purpose == "stacks":
                    self.progress.tell(Step("sampling stacks without load"))
                    time.sleep(IDLE_S)
                    self.interrupts.check()
                if external is None:
                    result = (self._make_load or run_trial)(
                        plan,
                        listener,
                        record=RecordTo(str(trial.live), self._samples),
                        controlled=self.writer.path,
                    )
                else:
                    result = self._external_load(external, listener, trial)
                drained = time.monotonic_ns()
                done.engine, done.result = result, EngineResult.from_json(result)
                self._ask_queries(testbed, done, result)
                listener.check_services()  # a service may have ended with the last request
                hole = None if monitor.is_running() else "the monitors ended before the load did"
                fault = monitor.stop()
        for words in (hole, fault):
            if words:
                done.notes.append(words)
                self.progress.tell(Warned(words))
        if logs is not None and (load := done.result.load) is not None and load.requests.bad:
            logs.keep(trial.logs)
        begin = result["t0_monotonic_ns"]
        done.idle = {
            "before_ns": [before - begin, ready - begin],  # the first readings fell between these
            "after_ns": [drained - begin, time.monotonic_ns() - begin],  # and the last ones between these
            "readiness_requests": testbed.readiness_requests,
        }
        self._judge(done.result, listener, done)

    def _external_load(
        self, external: ExternalGenerator, listener: _TrialListener, trial: TrialWriter
    ) -> Result:
        self.progress.tell(Step(f"{external.name} makes the load"))
        try:
            made = external.generate(listener)
        except EngineError:
            self.interrupts.check()  # an interrupted tool may end without a report
            if listener.fault is not None:
                raise listener.fault from None
            raise
        made.keep_samples(trial)
        return made.result

    def _ask_queries(self, testbed: Testbed, done: TrialOutcome, result: Result) -> None:
        """Evaluate the report's PromQL while the server is up, and keep the answers."""
        answers = prometheus_queries.ask(self._report, testbed, result)
        if answers is None:
            return
        done.trial.write_answers(answers)
        failed = [f"{answer['name']}: {answer['error']}" for answer in answers["answers"] if answer["error"]]
        if failed:
            done.notes.append(f"Prometheus refused {'; '.join(failed)}")

    def _judge(self, result: EngineResult, listener: _TrialListener, done: TrialOutcome) -> None:
        """Apply the validity gates that only the trial runner can check."""
        if listener.must_end is not None:
            done.is_not_complete(TrialStatus.ABORTED, listener.must_end)
        if listener.fault is not None:
            words = _one_line(listener.fault)
            self.writer.event("service_died", **done.trial.name, words=words)
            done.is_not_complete(TrialStatus.INVALID, words)
            self.progress.tell(Warned(_with_last_words(listener.fault)))
        status, reasons = trial_faults.verdict(result)
        if status is TrialStatus.ABORTED and done.status is not TrialStatus.COMPLETE:
            return  # it ended early because of the service or the guard
        if status is TrialStatus.COMPLETE:
            done.notes.extend(result.reasons)  # an exhausted feed ends a load early
        for reason in reasons:
            done.is_not_complete(status, reason)

    # --- seal -----------------------------------------------------------------------------------------

    def _seal(self, planned: PlannedTrial, done: TrialOutcome, leaks: tuple[str, ...]) -> None:
        self.progress.tell(Step("sealing"))
        self.unsealed = done.result
        threads.demand()
        now = environment.changing()
        was = {
            group: {name: self._environment[group].get(name) for name in values}
            for group, values in now.items()
        }
        done.trial.seal(
            TrialEnd.of(
                done.engine,
                done.status,
                tuple(done.reasons),
                done.began,
                services=done.services,
                placement=engine_plan.placement_of(
                    done.plan,
                    planned.case,
                    held=done.held,
                    refused=_refused_limit(done.fault),
                    result=done.result,
                ),
                environment=environment.differences(was, now),
                idle=done.idle,
                leaks=leaks,
                notes=tuple(done.notes),
            )
        )
        self.unsealed = None
        self.writer.event(
            "trial_sealed", **done.trial.name, status=done.status, reasons=done.reasons, leaks=list(leaks)
        )


class _TrialListener(Listener):
    """Forwards the progress of a load; ends it on request, if a service ended, or if the guard says so."""

    def __init__(
        self, runner: TrialRunner, trial: TrialWriter, testbed: Testbed, guard: Guard | None
    ) -> None:
        self._runner = runner
        self._trial = trial
        self._testbed = testbed
        self._guard = guard
        self._phase = ""
        self._next_check = 0.0
        self.must_end: str | None = None  # reason of the guard
        self.fault: TestbedError | None = None  # end of a service

    def warned(self, notes: Sequence[str]) -> None:
        for words in notes:
            if words not in self._runner.warned:
                self._runner.warned.add(words)
                self._runner.progress.tell(Warned(words))

    def started(self, t0_monotonic_ns: int, t0_unix_ns: int) -> None:
        self._trial.started(t0_monotonic_ns=t0_monotonic_ns, t0_unix_ns=t0_unix_ns)

    def load_changed(self, change: LoadChange) -> None:
        self._runner.writer.event("load_changed", **self._trial.name, **asdict(change))
        self._runner.progress.tell(Warned(f"the trial is exploratory now: {change.words}"))

    def must_stop(self, progress: EngineProgress | None) -> bool:
        runner = self._runner
        if runner.interrupts.is_news():
            runner.progress.tell(Stopping())
        if progress is not None:
            if progress["phase"] != self._phase:
                self._phase = progress["phase"]
                runner.writer.event("phase", **self._trial.name, phase=self._phase)
            if self._guard is not None and self.must_end is None:
                self.must_end = self._guard(progress)
            runner.progress.tell(Load(progress))
        if time.monotonic() >= self._next_check:
            self._next_check = time.monotonic() + CHECK_EVERY_S
            self.check_services()
        return runner.interrupts.is_set or self.must_end is not None or self.fault is not None

    def check_services(self) -> None:
        """Check now, regardless of the interval, that every service still runs."""
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
    for peer in outside.peers:
        yield {"service": peer.name, "replica": 1, **asdict(placement.held(peer.pid, ()))}


def _refused_limit(fault: TestbedError | None) -> str | None:
    """Return the reason why the machine cannot enforce a limit of the study; None without one."""
    is_limit = fault is not None and fault.where is not None and ".limits." in fault.where
    return f"{fault.where}: {_one_line(fault)}" if fault is not None and is_limit else None


def _with_last_words(fault: TestbedError) -> str:
    """Format a fault with the end of the log and its path."""
    first, *lines = fault.message.splitlines()
    where = [f"    (in {fault.where})"] if fault.where else []
    return "\n".join((first, *lines[-LAST_LINES:], *where))


def _one_line(fault: LoadlensError) -> str:
    """Format a fault without its log lines, which are in the trial's logs."""
    return fault.message.splitlines()[0].removesuffix("; its last lines:")
