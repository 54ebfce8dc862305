"""Run of a study: build once, run every trial in order, repeat invalid ones, resume.

Every case runs once per block, in the order of the plan; an invalid trial is repeated once at the end of its
block. Finished trials stay in the record, however the run ends.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from loadlens import engine
from loadlens.errors import LoadlensError, PlanError, RecordError, TestbedError, TooLargeError
from loadlens.model.result import EngineResult
from loadlens.model.study import Case, PlannedTrial, Study
from loadlens.model.trial import TrialStatus
from loadlens.model.workload import Closed, Plan, Target
from loadlens.record import RunRecord, create_run, open_run, refuse_taken, resume_run
from loadlens.run import engine_plan, environment, external_load, secret_variables, warm_up
from loadlens.run.engine_trial import MakeLoad
from loadlens.run.external import cannot_do
from loadlens.run.interrupts import Interrupts
from loadlens.run.preparations import prepare_all
from loadlens.run.progress import (
    Building,
    Event,
    Prediction,
    Progress,
    RunEnded,
    RunStarted,
    Silent,
    Step,
    Stopping,
    TrialStarted,
    Warned,
)
from loadlens.run.time_left import Clock, Remaining
from loadlens.run.trial_runner import TrialOutcome, TrialRunner
from loadlens.study import plan as design
from loadlens.temporary import default_cache

# A record and slugs of its held-out cases -> the prediction of each (docs/reference/record.md).
Predictor = Callable[[RunRecord, Sequence[str]], Mapping[str, Mapping[str, Any]]]

FRUITLESS_STARTS = 3  # consecutive trials with failed service starts before the run gives up


class CutShortError(RecordError):
    """The record of a run took no more; the trials that it holds stand.

    Args:
        fault: Why.
        unsealed: What the last trial measured, if it is not in the record.
    """

    def __init__(self, fault: RecordError, unsealed: EngineResult | None) -> None:
        super().__init__(fault.message, where=fault.where, hint=fault.hint)
        self.unsealed = unsealed


def run_study(
    study: Study,
    out: Path,
    *,
    resume: bool = False,
    progress: Progress | None = None,
    cache: Path | None = None,
    interrupts: Interrupts | None = None,
    predict: Predictor | None = None,
    make_load: MakeLoad | None = None,
) -> Path:
    """Run the remaining trials of a study and return its record.

    Args:
        study: As planned.
        out: The record: a new folder, or with `resume` an existing one.
        resume: Continue with the trials that have no complete attempt.
        progress: Receives the events of the run.
        cache: Built environments; the user's cache by default.
        interrupts: Source of an early end; by default Ctrl-C and SIGTERM, for the length of this call.
        predict: Predicts held-out cases from the record before the first of them begins; optional.
        make_load: Makes the loads elsewhere; None: our engine on this machine.

    Raises:
        TestbedError: A build failed, or services do not start; finished trials stay.
        RecordError: The record cannot be created, resumed or written.
        Stopped: The run was interrupted; finished trials stay.
    """
    progress = progress or Silent()

    def on_line(line: str) -> None:
        progress.tell(Building(line))

    trials = design.order(study)
    used = secret_variables.values_of(study.cases)
    refuse_bad_plans(trials, is_run=make_load is None)
    external_load.demand(study)
    with ExitStack() as held:
        interrupts = interrupts or held.enter_context(Interrupts())
        before: Mapping[str, Any] = {}
        if resume:
            writer = held.enter_context(resume_run(out, study, trials, secrets_used=used))
            before = open_run(out).environment
        else:
            refuse_taken(out)
        with interrupts.allowed():
            preparations = prepare_all(
                study,
                cache=cache or default_cache(),
                on_line=on_line,
                calibrated_before=before.get("calibrated") or (),
            )
        now = environment.of_machine(Path(study.folder)) | preparations.facts()
        if resume:
            writer.event("resumed", environment=environment.differences(before, now), command=now["command"])
        else:
            writer = held.enter_context(create_run(out, study, trials, now, secrets_used=used))
        runner = held.enter_context(
            TrialRunner(
                writer,
                preparations,
                interrupts,
                progress,
                before or now,
                report=study.report,
                samples=study.samples,
                make_load=make_load,
            )
        )
        _StudyRun(study, trials, runner, predict).run()
    return writer.path


def refuse_bad_plans(trials: Sequence[PlannedTrial], *, is_run: bool = True) -> None:
    """Validate the plan of every case before anything is started.

    Args:
        trials: All of them.
        is_run: They run on this machine, which must be able to carry the largest of them, too.

    Raises:
        PlanError: The engine refuses a plan, or its driver does not support it; case and faults are named.
        TooLargeError: This machine has too few descriptors, ports or too little memory for a plan.
    """
    nowhere = Target("127.0.0.1", 1, "127.0.0.1:1")  # the real target is unknown before services are up
    plans: list[Plan] = []
    for case, trial in {trial.case.slug: trial for trial in trials}.items():
        plan, driver = engine_plan.plan_of(trial, nowhere), trial.case.driver
        faults = engine.validate(plan.to_json())
        if faults:
            words = "; ".join(f"{fault.where}: {fault.what}" for fault in faults)
            raise PlanError(f"the engine refuses the plan of case {case}: {words}")
        lacks = [] if driver is None else cannot_do(driver, plan)
        if lacks:
            raise PlanError(f"case {case}: {'; '.join(lack.words for lack in lacks)}")
        if driver is None:
            plans.append(plan)
    if is_run and plans:
        try:
            engine.refuse_too_large(max(plans, key=_connections))
        except TooLargeError as fault:
            message = fault.message.replace(f"{nowhere.host}:{nowhere.port}", "the entry")
            raise TooLargeError(message, hint=fault.hint) from None


def _connections(plan: Plan) -> int:
    """Return the connections that a plan will have; an open load begins only what it needs."""
    loads = (stream.workload for stream in plan.streams)
    return sum(load.users for load in loads if isinstance(load, Closed))


@dataclass(slots=True)
class _StudyRun:
    """All trials of a study: their order, repeats, durations and predictions."""

    study: Study
    trials: Sequence[PlannedTrial]
    runner: TrialRunner
    predict: Predictor | None = None
    clock: Clock = field(default_factory=Clock)
    complete: set[tuple[str, int]] = field(default_factory=set)
    cuts_ns: dict[str, int] = field(default_factory=dict)  # case -> the longest time to settle so far
    lasted_s: dict[str, float] = field(
        default_factory=dict
    )  # case with a fixed number of requests -> its last load
    fruitless_starts: int = 0
    reset_for: tuple[object, ...] | None = None  # block and services of the last data reset

    def run(self) -> None:
        """Run all remaining trials, block by block."""
        writer, interrupts = self.runner.writer, self.runner.interrupts
        record = open_run(writer.path)
        left = {(trial["case"], trial["block"]) for trial in record.unfinished()}
        self.complete = {self._key(trial) for trial in self.trials} - left
        pending = [trial for trial in self.trials if self._key(trial) in left]
        self._take_up(record, pending)
        self._tell(
            RunStarted(
                writer.path,
                self.study.name,
                self.study.question,
                trials=len(self.trials),
                done=len(self.complete),
                planned_s=self._planned_s(pending),
            )
        )
        try:
            for _block, trials in groupby(pending, key=lambda trial: trial.block):
                self._block(list(trials))
        except LoadlensError as fault:
            if not isinstance(fault, RecordError):
                self._ended(stopped=True, words=fault.message)
                raise
            with suppress(RecordError):  # the disk may be full for this line, too
                self._ended(stopped=True, words=fault.message)
            raise CutShortError(fault, self.runner.unsealed) from fault
        self.runner.close()
        if interrupts.is_news():
            self._tell(Stopping())
        self._ended(stopped=interrupts.is_set)
        interrupts.check()

    def _block(self, trials: Sequence[PlannedTrial]) -> None:
        """Run each trial once, then repeat the invalid ones."""
        again: list[PlannedTrial] = []
        for trial in trials:
            if self.runner.interrupts.is_set:
                return
            if self._one(trial, may_repeat=True) is TrialStatus.INVALID:
                again.append(trial)
        for trial in again:
            if self.runner.interrupts.is_set:
                return
            self._one(trial, may_repeat=False)

    def _predict(self) -> None:
        """Record a prediction of every held-out case that has neither a prediction nor a trial."""
        if self.predict is None:
            return
        predict, self.predict = self.predict, None
        record = open_run(self.runner.writer.path)
        begun = {trial.case.slug for trial in record.trials}
        cases = {case.slug: case.name for case in self.study.cases if case.held_out}
        left = [slug for slug in cases if slug not in begun and slug not in record.predictions]
        if not left:
            return
        self._tell(Step("predicting held-out cases"))
        for slug, content in predict(record, left).items():
            self.runner.writer.predict(slug, content)
            self._tell(Prediction(cases[slug], _in_words(content)))

    def _one(self, trial: PlannedTrial, *, may_repeat: bool) -> TrialStatus:
        if trial.case.held_out:
            self._predict()
        attempt = self.runner.writer.next_attempt(trial)
        self._tell(TrialStarted(trial, trial.position, len(self.trials), attempt, self._remaining()))
        began = time.monotonic()
        cut_ns = self.cuts_ns.get(trial.case.slug, 0)
        done = self.runner.run(trial, previous_cut_ns=cut_ns, reset_due=self._reset_is_due(trial))
        if done.status is TrialStatus.COMPLETE:
            self.complete.add(self._key(trial))
            if done.result is not None:
                self.clock.learn(done.result.load_s, time.monotonic() - began)
                self._learn(trial.case, done.result.load_s, done.trial.path)
        gives_up = self._starts_nothing(done)
        may_repeat = may_repeat and not gives_up
        remaining = self._remaining()
        self._tell(done.ended(trial, attempt, len(self.trials), remaining, may_repeat=may_repeat))
        if gives_up and done.fault is not None:
            raise TestbedError(done.fault.message, where=done.fault.where, hint=done.fault.hint)
        return done.status

    def _reset_is_due(self, trial: PlannedTrial) -> bool:
        """True before every trial, or before the first of a block on the same services."""
        reset = trial.case.reset
        if reset is None:
            return False
        place = (trial.block, trial.case.services, reset)
        due = reset.before == "trial" or self.reset_for != place or trial.case.fresh == "trial"
        self.reset_for = place
        return due

    def _take_up(self, record: RunRecord, pending: Sequence[PlannedTrial]) -> None:
        """Learn the durations of the remaining cases from their trials before the resume."""
        cases = {trial.case.slug: trial.case for trial in pending}
        for trial in record.trials:
            case = cases.get(trial.case.slug)
            if case is not None and trial.status is TrialStatus.COMPLETE and trial.result is not None:
                self._learn(case, trial.result.load_s, trial.path)

    def _learn(self, case: Case, load_s: float, path: Path) -> None:
        """Learn the duration of the load, and the warm-up for the next trial of the case."""
        if case.duration_ns is None:
            self.lasted_s[case.slug] = load_s
        if case.warmup_ns is None and case.duration_ns is not None:
            try:
                settled = warm_up.settled_after_ns(path)
            except RecordError as fault:
                self._tell(Warned(f"cannot determine when {case.name} settled: {fault.message}"))
                return
            self.cuts_ns[case.slug] = max(settled, self.cuts_ns.get(case.slug, 0))

    def _starts_nothing(self, done: TrialOutcome) -> bool:
        """Return True if services never start, which is a fault of the testbed and not a result."""
        if done.came_up or done.fault is None:
            self.fruitless_starts = 0 if done.came_up else self.fruitless_starts
            return False
        self.fruitless_starts += 1
        never_up = not self.complete and self.fruitless_starts == 1 and self.clock.overheads_s == []
        return never_up or self.fruitless_starts >= FRUITLESS_STARTS

    def _ended(self, *, stopped: bool, words: str | None = None) -> None:
        reason = {} if words is None else {"reason": words.splitlines()[0]}
        writer = self.runner.writer
        writer.event("stopped" if stopped else "ended", complete=len(self.complete), **reason)
        self._tell(RunEnded(writer.path, len(self.complete), len(self.trials), stopped))

    def _remaining(self) -> Remaining:
        left = [trial for trial in self.trials if self._key(trial) not in self.complete]
        return self.clock.left(self._planned_s(left), len(left))

    def _planned_s(self, trials: Sequence[PlannedTrial]) -> float:
        return sum(
            self.lasted_s.get(trial.case.slug)
            or engine_plan.planned_s(trial.case, self.cuts_ns.get(trial.case.slug, 0))
            for trial in trials
        )

    def _tell(self, event: Event) -> None:
        self.runner.progress.tell(event)

    @staticmethod
    def _key(trial: PlannedTrial) -> tuple[str, int]:
        return (trial.case.slug, trial.block)


def _in_words(prediction: Mapping[str, Any]) -> str:
    """Format the predicted throughput and mean time, or the reason why there is no prediction."""
    if prediction.get("undecided"):
        return f"undecided: {prediction['undecided']}"
    figures = []
    for figure in prediction["predicted"]:
        if figure["step"] is None and figure["metric"] in ("throughput", "response_time.mean"):
            unit = "/s" if figure["unit"] == "1/s" else " s"
            figures.append(f"{figure['point']:.3g}{unit} ({figure['low']:.3g}-{figure['high']:.3g})")
    return ", ".join(figures)
