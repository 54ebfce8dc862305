"""Run of a study: build once, run every trial in order, repeat invalid ones, resume.

Every case runs once per block, in the order of the plan; an invalid trial is repeated once at the end of its
block. Finished trials stay in the record, however the run ends.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from loadlens import engine
from loadlens.errors import LoadlensError, PlanError, RecordError, TestbedError
from loadlens.model.result import StreamResult
from loadlens.model.study import Case, PlannedTrial, Study
from loadlens.model.trial import TrialStatus
from loadlens.model.workload import Target
from loadlens.record import RunRecord, RunWriter, create_run, open_run, resume_run
from loadlens.run import engine_plan, environment, external_load, warm_up
from loadlens.run.calibrated_values import calibrate_all
from loadlens.run.external import cannot_do
from loadlens.run.interrupts import Interrupts
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
    TrialEnded,
    TrialStarted,
    Warned,
)
from loadlens.run.study_trial import TrialContext, TrialOutcome, run_study_trial
from loadlens.run.testbed_pool import Preparations, TestbedPool, prepare_all
from loadlens.run.time_left import Clock, Remaining
from loadlens.study import plan as design
from loadlens.testbed import default_cache

# A record and slugs of its held-out cases -> the prediction of each (docs/reference/record.md).
Predictor = Callable[[RunRecord, Sequence[str]], Mapping[str, Mapping[str, Any]]]

FRUITLESS_STARTS = 3  # consecutive trials with failed service starts before the run gives up


def run_study(
    study: Study,
    out: Path,
    *,
    resume: bool = False,
    progress: Progress | None = None,
    cache: Path | None = None,
    interrupts: Interrupts | None = None,
    predict: Predictor | None = None,
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

    Raises:
        TestbedError: A build failed, or services do not start; finished trials stay.
        RecordError: The record cannot be created, resumed or written.
        Stopped: The run was interrupted; finished trials stay.
    """
    listener = progress or Silent()
    if interrupts is None:
        with Interrupts() as own:
            return _run(study, out, resume, listener, cache or default_cache(), own, predict)
    return _run(study, out, resume, listener, cache or default_cache(), interrupts, predict)


def _run(
    study: Study,
    out: Path,
    resume: bool,
    progress: Progress,
    cache: Path,
    interrupts: Interrupts,
    predict: Predictor | None,
) -> Path:
    trials = design.order(study)
    refuse_bad_plans(trials)
    external_load.demand(study)
    if resume:
        writer = resume_run(out, study, trials)
    else:
        refuse_taken(out)
    try:
        with interrupts.allowed():
            preparations = prepare_all(study, cache=cache, on_line=lambda line: progress.tell(Building(line)))
            kept = open_run(out).environment.get("calibrated") or () if resume else ()
            calibrations = calibrate_all(
                study, preparations, before=kept, on_line=lambda line: progress.tell(Building(line))
            )
        preparations.values_of = calibrations.values_of
        now = environment.of_machine(Path(study.folder)) | {"builds": preparations.builds()}
        if parts := preparations.parts():
            now["parts"] = parts
        if calibrations.by_key:
            now["calibrated"] = calibrations.as_plain()
        if resume:
            before = open_run(out).environment
            writer.event("resumed", environment=environment.differences(before, now), command=now["command"])
        else:
            before = now
            writer = create_run(out, study, trials, now)
    except BaseException:
        if resume:
            writer.close()
        raise
    with writer:
        _Run(study, trials, writer, preparations, progress, interrupts, before, predict).go()
    return writer.path


def refuse_bad_plans(trials: Sequence[PlannedTrial]) -> None:
    """Validate the plan of every case before anything is started.

    Raises:
        PlanError: The engine refuses a plan, or its driver does not support it; case and faults are named.
    """
    nowhere = Target("127.0.0.1", 1, "127.0.0.1:1")  # the real target is unknown before services are up
    for case, trial in {trial.case.slug: trial for trial in trials}.items():
        plan, driver = engine_plan.plan_of(trial, nowhere), trial.case.driver
        faults = engine.validate(plan.to_json())
        if faults:
            words = "; ".join(f"{fault.where}: {fault.what}" for fault in faults)
            raise PlanError(f"the engine refuses the plan of case {case}: {words}")
        lacks = [] if driver is None else cannot_do(driver, plan)
        if lacks:
            raise PlanError(f"case {case}: {'; '.join(lack.words for lack in lacks)}")


def refuse_taken(out: Path) -> None:
    """Refuse a folder that is not empty, before anything is built."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise RecordError(
            "the folder for the record already holds something",
            where=str(out),
            hint="continue the record with --resume, or choose another folder with --out",
        )


@dataclass(slots=True)
class _Run:
    """State of a run."""

    study: Study
    trials: Sequence[PlannedTrial]
    writer: RunWriter
    preparations: Preparations
    progress: Progress
    interrupts: Interrupts
    environment: Mapping[str, Any]
    predict: Predictor | None = None
    clock: Clock = field(default_factory=Clock)
    complete: set[tuple[str, int]] = field(default_factory=set)
    cuts_ns: dict[str, int] = field(default_factory=dict)  # case -> the longest time to settle so far
    lasted_s: dict[str, float] = field(
        default_factory=dict
    )  # case with a fixed number of requests -> its last load
    fruitless_starts: int = 0
    reset_for: tuple[object, ...] | None = None  # block and services of the last data reset

    def go(self) -> None:
        """Run all remaining trials, block by block."""
        record = open_run(self.writer.path)
        left = {(trial["case"], trial["block"]) for trial in record.unfinished()}
        self.complete = {self._key(trial) for trial in self.trials} - left
        pending = [trial for trial in self.trials if self._key(trial) in left]
        self._take_up(record, pending)
        self._tell(
            RunStarted(
                self.writer.path,
                self.study.name,
                self.study.question,
                trials=len(self.trials),
                done=len(self.complete),
                planned_s=self._planned_s(pending),
            )
        )
        with TestbedPool(
            self.preparations,
            marker=self.writer.id,
            shared_logs=self.writer.shared_logs,
            on_event=self._testbed_event,
        ) as pool:
            context = TrialContext(
                self.writer, pool, self.interrupts, self.progress, self.environment, self.study.report
            )
            try:
                for _block, trials in groupby(pending, key=lambda trial: trial.block):
                    self._block(list(trials), context)
            except LoadlensError as fault:
                self._ended(stopped=True, words=fault.message)
                raise
        if self.interrupts.is_news():
            self._tell(Stopping())
        self._ended(stopped=self.interrupts.is_set)
        self.interrupts.check()

    def _block(self, trials: Sequence[PlannedTrial], context: TrialContext) -> None:
        """Run each trial once, then repeat the invalid ones."""
        again: list[PlannedTrial] = []
        for trial in trials:
            if self.interrupts.is_set:
                return
            if self._one(trial, context, may_repeat=True) is TrialStatus.INVALID:
                again.append(trial)
        for trial in again:
            if self.interrupts.is_set:
                return
            self._one(trial, context, may_repeat=False)

    def _predict(self) -> None:
        """Record a prediction of every held-out case that has neither a prediction nor a trial."""
        if self.predict is None:
            return
        predict, self.predict = self.predict, None
        record = open_run(self.writer.path)
        begun = {trial.case["slug"] for trial in record.trials}
        cases = {case.slug: case.name for case in self.study.cases if case.held_out}
        left = [slug for slug in cases if slug not in begun and slug not in record.predictions]
        if not left:
            return
        self._tell(Step("predicting held-out cases"))
        for slug, content in predict(record, left).items():
            self.writer.predict(slug, content)
            self._tell(Prediction(cases[slug], _in_words(content)))

    def _one(self, trial: PlannedTrial, context: TrialContext, *, may_repeat: bool) -> TrialStatus:
        if trial.case.held_out:
            self._predict()
        number = trial.position
        attempt = self.writer.next_attempt(trial)
        self._tell(TrialStarted(trial, number, len(self.trials), attempt, self._remaining()))
        began = time.monotonic()
        cut_ns = self.cuts_ns.get(trial.case.slug, 0)
        done = run_study_trial(trial, context, previous_cut_ns=cut_ns, reset_due=self._reset_is_due(trial))
        if done.status is TrialStatus.COMPLETE:
            self.complete.add(self._key(trial))
            self._learn(trial.case, done, time.monotonic() - began)
        self._tell_ended(trial, done, attempt, will_repeat=may_repeat)
        self._give_up_if_nothing_starts(done)
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
            case = cases.get(trial.case["slug"])
            if case is not None and trial.status is TrialStatus.COMPLETE and trial.result is not None:
                self._learn_case(case, trial.result.load_s, trial.path)

    def _learn(self, case: Case, done: TrialOutcome, took_s: float) -> None:
        """Learn the overhead and the durations from a complete trial."""
        if done.result is not None:
            self.clock.learn(done.result.load_s, took_s)
            self._learn_case(case, done.result.load_s, done.trial.path)

    def _learn_case(self, case: Case, load_s: float, path: Path) -> None:
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

    def _give_up_if_nothing_starts(self, done: TrialOutcome) -> None:
        """Raise if services never start, which is a fault of the testbed and not a result."""
        if done.came_up or done.fault is None:
            self.fruitless_starts = 0 if done.came_up else self.fruitless_starts
            return
        self.fruitless_starts += 1
        never_up = not self.complete and self.fruitless_starts == 1 and self.clock.overheads_s == []
        if never_up or self.fruitless_starts >= FRUITLESS_STARTS:
            raise TestbedError(done.fault.message, where=done.fault.where, hint=done.fault.hint)

    def _tell_ended(
        self, trial: PlannedTrial, done: TrialOutcome, attempt: int, *, will_repeat: bool
    ) -> None:
        load = None if done.result is None else done.result.all_loads[0]
        self._tell(
            TrialEnded(
                trial,
                trial.position,
                len(self.trials),
                attempt,
                done.status,
                tuple(done.reasons),
                throughput_rps=None if load is None else load.throughput_rps.value,
                failed=0 if load is None else load.requests.failed,
                will_repeat=will_repeat and done.status is TrialStatus.INVALID,
                remaining=self._remaining(),
                unexpected_status=0 if load is None else load.requests.unexpected_status or 0,
                check_failed=load.requests.check_failed if isinstance(load, StreamResult) else 0,
            )
        )

    def _ended(self, *, stopped: bool, words: str | None = None) -> None:
        reason = {} if words is None else {"reason": words.splitlines()[0]}
        self.writer.event("stopped" if stopped else "ended", complete=len(self.complete), **reason)
        self._tell(RunEnded(self.writer.path, len(self.complete), len(self.trials), stopped))

    def _remaining(self) -> Remaining:
        left = [trial for trial in self.trials if self._key(trial) not in self.complete]
        return self.clock.left(self._planned_s(left), len(left))

    def _planned_s(self, trials: Sequence[PlannedTrial]) -> float:
        return sum(
            self.lasted_s.get(trial.case.slug)
            or engine_plan.planned_s(trial.case, self.cuts_ns.get(trial.case.slug, 0))
            for trial in trials
        )

    def _testbed_event(self, event: Mapping[str, object]) -> None:
        content = dict(event)
        self.writer.event(str(content.pop("event")), **content)
        if event["event"] == "leak":
            self._tell(Warned(str(event["words"])))

    def _tell(self, event: Event) -> None:
        self.progress.tell(event)

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
