"""Runs a live comparison: a rate that both versions can serve, then pairs in random order until they decide.

The record grows like that of a search. After each look the verdict is that of `judge.py` on the record so
far, so that a finished record gives the same answer again.
"""

from __future__ import annotations

import math
import random
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Final

from loadlens import record
from loadlens.compare import records
from loadlens.compare.judge import Rules
from loadlens.compare.plan import PAIRS, PILOT, RATE, Load, Task, case_of, open_load, planned, study_of
from loadlens.errors import ExitCode, TestbedError, UsageError
from loadlens.estimate import looks as ahead
from loadlens.estimate import within_trial
from loadlens.estimate.interval import Interval
from loadlens.measure import whole_run
from loadlens.measure.whole_run import MeasureTrial
from loadlens.model.comparison import Comparison, PairsBegun
from loadlens.model.study import Case, PlannedTrial, Window
from loadlens.model.trial import TrialStatus
from loadlens.model.workload import Closed, Open
from loadlens.present import numbers, quotes, words
from loadlens.run.growing_record import growing_record
from loadlens.run.interrupts import Interrupts, Stopped
from loadlens.run.progress import Found, Progress, Provisional, TrialStarted, Warned
from loadlens.run.time_left import Remaining
from loadlens.run.trial_runner import TrialOutcome, TrialRunner
from loadlens.search.discovery import discover, refuse_redirects

SEARCH_USERS: Final = (1, 4, 16, 64)
SEARCH_S: Final = 1.5  # of each load that looks for the capacity
STILL_GROWS: Final = 1.25  # times the throughput with four times the users: else that is the capacity
SHARE_OF_CAPACITY: Final = 0.5  # far enough from it that queues do not grow without bound
MOST_FOUND_RATE: Final = 1000.0  # per second: more requests narrow nothing, as trials differ by more
MOST_FAILING: Final = 0.01  # of requests, while a rate is sought
SHORTEST_S, LONGEST_S = 2.0, 20.0  # of the measured part
USUAL_OVERHEAD_S, USUAL_START_S = 1.0, 2.5  # of a trial, where no load was run to find a rate
WARMUP_S: Final = 0.4
STARTED_WARMUP_S: Final = 1.5  # of services that were just started
METRICS_AT_MOST: Final = 5  # that Holm's procedure divides the error by
LATE: Final = 1.25  # of the budget: no further pair is begun
SPOILED_PAIRS: Final = 3  # one after the other, and the comparison is given up


@dataclass(frozen=True, slots=True)
class Done:
    """Outcome of a live comparison."""

    answer: Comparison
    code: ExitCode | None  # none: no early end was requested


def run_pairs(task: Task, out: Path, progress: Progress) -> Done:
    """Run a comparison and leave its record.

    Args:
        task: As requested.
        out: The record, a new folder.
        progress: Receives events.

    Raises:
        UsageError: The budget has no time for the fewest pairs.
        TestbedError: A service does not start, or does not answer as expected.
        RecordError: The record cannot be made or written.
        Stopped: An early end was requested before there was a pair.
    """
    with Interrupts() as interrupts:
        began = time.monotonic()
        first = Load(RATE, Closed(users=1), WARMUP_S, SEARCH_S)
        looks = [planned(task, case_of(task, arm, first, 1), 1, arm + 1) for arm in (0, 1)]
        study = study_of(task, [look.case for look in looks])
        with growing_record(study, looks, out, progress, interrupts) as growing:
            run = _Pairs(task, growing.runner, progress, began)
            try:
                run.go()
            except Stopped:
                if not run.pairs:
                    raise
            finally:
                growing.runner.writer.event("ended", complete=len(run.trials))
        code = interrupts.code if interrupts.is_set else None
        return Done(run.judged(), code)


@dataclass(slots=True)
class _Pairs:
    """The state of a comparison while it runs."""

    task: Task
    runner: TrialRunner
    progress: Progress
    began: float
    cases: dict[str, Case] = field(default_factory=dict)
    trials: list[PlannedTrial] = field(default_factory=list)
    overheads_s: list[float] = field(default_factory=list)
    measure: MeasureTrial = field(default_factory=whole_run.remembering)
    looks: tuple[int, ...] = ()
    pairs: int = 0

    def go(self) -> None:
        """Find a rate, look at the scatter, then run pairs until they decide."""
        with self.runner.interrupts.allowed():
            self._discover()
        if self.task.users is not None:
            workload: Closed | Open = Closed(users=self.task.users)
        else:
            workload = open_load(self.task.rate_per_s or self._found_rate())
        load = self._planned_load(workload)
        self._pilot(load)
        begun = PairsBegun(self.looks, self.task.names, self.task.margin, self.task.budget_s)
        self.runner.writer.event(records.EVENT, **asdict(begun))
        order = random.Random(self.task.seed)
        spoiled = block = 0
        while self.pairs < self.looks[-1] and not self.runner.interrupts.is_set:
            block += 1
            arms = order.sample((0, 1), 2)
            if all(self._valid(arm, load, block) for arm in arms):
                self.pairs, spoiled = self.pairs + 1, 0
            else:
                spoiled += 1
            if spoiled == SPOILED_PAIRS:
                raise TestbedError(
                    f"{SPOILED_PAIRS} pairs in a row without two valid trials",
                    hint=f"loadlens show {self.runner.writer.path}, which has the reasons",
                )
            if self.pairs in self.looks and not spoiled:
                answer = self.judged()
                self.progress.tell(Provisional(f"{words.plural(self.pairs, 'pair')}: {answer.sentence}"))
                if answer.is_decided:
                    return
            if time.monotonic() - self.began > LATE * self.task.budget_s:
                self.progress.tell(Warned("the budget is used up: no further pair is begun"))
                return

    def judged(self) -> Comparison:
        """Return the verdict on the record so far."""
        held = record.open_run(self.runner.writer.path)
        return records.of_pairs(held, Rules(self.task.margin, self.looks), self.measure)

    def _discover(self) -> None:
        """Find the processes of both versions, and refuse requests that are answered by a redirect."""
        aims = list(self.task.aims)
        for arm, aim in enumerate(aims):
            if aim.services:
                continue
            refuse_redirects(aim)
            if aim.find.anything:
                aims[arm] = discover(aim).aim
        self.task = replace(self.task, aims=(aims[0], aims[1]))

    # --- the load -----------------------------------------------------------------------------------------

    def _found_rate(self) -> float:
        """Return half of the capacity of the version that has less, to two digits."""
        capacity = min(self._capacity(0), self._capacity(1))
        rate = min(SHARE_OF_CAPACITY * capacity, MOST_FOUND_RATE)
        rate = min(rate, *(aim.bounds.rate_cap_per_s for aim in self.task.aims))
        digits = 1 - math.floor(math.log10(rate))
        rounded = round(rate, digits)
        self.progress.tell(
            Found(f"both versions serve {numbers.with_unit(capacity, '1/s')}; load: {rounded:g}/s")
        )
        return rounded

    def _capacity(self, arm: int) -> float:
        """Return the throughput with as many users as raise it, without failures."""
        best = 0.0
        for users in SEARCH_USERS:
            done = self._run(arm, Load(RATE, Closed(users=users), WARMUP_S, SEARCH_S), 1)
            counts = None if done.result is None else done.result.streams[0].requests
            if done.result is None or counts is None or not counts.ok:
                if not best:
                    raise self._no_answer(arm, done)
                break
            rate = counts.ok / done.result.measured_s
            if counts.bad > MOST_FAILING * (counts.ok + counts.bad):
                best = best or rate
                break
            grown, best = rate > STILL_GROWS * best, max(rate, best)
            if not grown or best > MOST_FOUND_RATE / SHARE_OF_CAPACITY:
                break
            self.runner.interrupts.check()
        return best

    def _no_answer(self, arm: int, done: TrialOutcome) -> TestbedError:
        aim, name = self.task.aims[arm], self.task.names[arm]
        reason = "; ".join(done.reasons)
        if done.result is not None and (load := done.result.streams[0]).status:
            statuses = words.listed(f"status {code}" for code in load.status)
            reason = "; ".join(quotes.by_status(load.failing_answers, load.status)) or statuses
        hint = f"loadlens hit {aim.origin}{aim.steps[0].path}, or --expect STATUS"
        return TestbedError(f"{name} answers no request as expected: {reason or 'no answer'}", hint=hint)

    def _planned_load(self, workload: Closed | Open) -> Load:
        """Return the load of a trial, and set the looks that there is time for."""
        starts = any(aim.services for aim in self.task.aims)
        warmup_s = STARTED_WARMUP_S if starts else WARMUP_S
        overhead_s = _middle(self.overheads_s, USUAL_START_S if starts else USUAL_OVERHEAD_S)
        left_s = self.task.budget_s - (time.monotonic() - self.began)
        for pairs in reversed(ahead.LOOKS):
            measured_s = min(left_s / (2 * pairs + 2) - overhead_s - warmup_s, LONGEST_S)
            if measured_s >= SHORTEST_S:
                self.looks = ahead.looks_within(pairs)
                return Load(PAIRS, workload, warmup_s, measured_s, "load")
        needed_s = math.ceil(8 * (SHORTEST_S + overhead_s + warmup_s) + self.task.budget_s - left_s) + 1
        raise UsageError(
            f"{self.task.budget_s:g} s are too short for 3 pairs",
            where="--budget",
            hint=f"--budget {needed_s}s",
        )

    def _pilot(self, load: Load) -> None:
        """Run one trial of each version, and say which margin the pairs to come can decide."""
        variance, most = 0.0, self.looks[-1]
        for arm in (0, 1):
            done = self._run(arm, replace(load, experiment=PILOT, purpose="look"), 1)
            if done.result is None or not done.result.streams[0].requests.ok:
                raise self._no_answer(arm, done)
            trial = self.measure(record.open_trial(done.trial.path), Window())
            typical = (
                None if trial.load is None else within_trial.quantile(trial.load.all_steps().response, 0.5)
            )
            if isinstance(typical, Interval) and typical.ratio is not None:
                variance += (math.log(typical.ratio) / 2 / 1.96) ** 2
            self.runner.interrupts.check()
        error = ahead.error_of(most, self.looks) / METRICS_AT_MOST
        allowed = numbers.percent(ahead.allowed_scatter(self.task.margin, most, error))
        margin = numbers.percent(self.task.margin)
        text = f"{most} pairs decide a margin of {margin} if pairs scatter by at most {allowed}"
        if variance:
            scatter = math.sqrt(variance)
            best = ahead.decidable_margin(scatter, most, error)
            text += (
                f"; from noise within a trial alone they scatter by {numbers.percent(scatter)},"
                f" which decides {numbers.percent(best)} at best"
            )
        self.progress.tell(Found(text))

    # --- trials -------------------------------------------------------------------------------------------

    def _valid(self, arm: int, load: Load, block: int) -> bool:
        """Run a trial of a pair, again if it is invalid."""
        for _ in range(2):
            if self.runner.interrupts.is_set:
                return False
            if self._run(arm, load, block).status is TrialStatus.COMPLETE:
                return True
        return False

    def _run(self, arm: int, load: Load, block: int) -> TrialOutcome:
        case = case_of(self.task, arm, load, block)
        self.cases[case.slug] = case
        trial = next((t for t in self.trials if (t.case.slug, t.block) == (case.slug, block)), None)
        if trial is None:
            trial = planned(self.task, case, block, len(self.trials) + 1)
            self.trials.append(trial)
            self.runner.writer.extend(study_of(self.task, tuple(self.cases.values())), self.trials)
        attempt = self.runner.writer.next_attempt(trial)
        number = trial.position
        left_s = max(0.0, self.task.budget_s - (time.monotonic() - self.began))
        left = Remaining(left_s, left_s, left_s)
        self.progress.tell(TrialStarted(trial, number, number, attempt, left))
        began = time.monotonic()
        done = self.runner.run(trial)
        if not done.came_up and done.fault is not None:
            raise TestbedError(done.fault.message, where=done.fault.where, hint=done.fault.hint)
        # The first load of a version starts it, and is light: others may wait for their last answers.
        if done.result is not None and load.workload == Closed(users=1):
            self.overheads_s.append(max(0.0, time.monotonic() - began - done.result.load_s))
        self.progress.tell(done.ended(trial, attempt, number, left, may_repeat=load.experiment == PAIRS))
        return done


def _middle(values: list[float], otherwise: float) -> float:
    return sorted(values)[len(values) // 2] if values else otherwise
