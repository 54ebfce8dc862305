"""Two URLs or commands as pairs: a rate that both versions can serve, then the same load on both."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import median_high
from typing import Final

from loadlens import record
from loadlens.compare.pairing import Done, Pairing, run
from loadlens.compare.plan import PAIRS, PILOT, RATE, Load, Task, case_of, open_load, planned, study_of
from loadlens.errors import TestbedError, UsageError
from loadlens.estimate import looks as ahead
from loadlens.estimate import within_trial
from loadlens.estimate.interval import Interval
from loadlens.model.finding import Z_95
from loadlens.model.study import Window
from loadlens.model.workload import Closed, Open
from loadlens.present import numbers, quotes, words
from loadlens.run.engine_trial import MakeLoad
from loadlens.run.progress import Found, Progress
from loadlens.run.trial_runner import TrialOutcome
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
PLANNED: Final = 0.95  # of the budget left: the rest is for trials that take longer to start and end
METRICS_AT_MOST: Final = 5  # that Holm's procedure divides the error by


def run_pairs(task: Task, out: Path, progress: Progress, make_load: MakeLoad | None = None) -> Done:
    """Run a comparison and leave its record, as `pairing.run` does.

    Args:
        task: As requested.
        out: The record, a new folder.
        progress: Receives events.
        make_load: Makes the loads elsewhere; none: our engine on this machine.
    """
    first = Load(RATE, Closed(users=1), WARMUP_S, SEARCH_S)
    looks = [planned(task, case_of(task, arm, first, 1), 1, arm + 1) for arm in (0, 1)]
    study = study_of(task, [look.case for look in looks])
    return run(
        study,
        looks,
        out,
        progress,
        lambda runner, began: _Pairs(task, runner, began, task=task),
        make_load,
    )


@dataclass(slots=True)
class _Pairs(Pairing):
    """The state of a comparison while it runs."""

    task: Task = field(kw_only=True)
    overheads_s: list[float] = field(default_factory=list)

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
        self.run_pairs([partial(self._valid, arm, load) for arm in (0, 1)])

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
        overhead_s = median_high(self.overheads_s or [USUAL_START_S if starts else USUAL_OVERHEAD_S])
        left_s = self.task.budget_s - self.used_s
        for pairs in reversed(ahead.LOOKS):
            measured_s = min(PLANNED * left_s / (2 * pairs + 2) - overhead_s - warmup_s, LONGEST_S)
            if measured_s >= SHORTEST_S:
                self.looks = ahead.looks_within(pairs)
                return Load(PAIRS, workload, warmup_s, measured_s, "load")
        trials_s = 8 * (SHORTEST_S + overhead_s + warmup_s)
        needed_s = math.ceil(trials_s / PLANNED + self.task.budget_s - left_s) + 1
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
                variance += (math.log(typical.ratio) / 2 / Z_95) ** 2
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
        return self.is_valid(lambda: self._run(arm, load, block))

    def _run(self, arm: int, load: Load, block: int) -> TrialOutcome:
        case = case_of(self.task, arm, load, block)
        began = time.monotonic()
        done = self.run_trial(
            case,
            block,
            lambda position: planned(self.task, case, block, position),
            lambda cases: study_of(self.task, cases),
            may_repeat=load.experiment == PAIRS,
        )
        # The first load of a version starts it, and is light: others may wait for their last answers.
        if done.result is not None and load.workload == Closed(users=1):
            self.overheads_s.append(max(0.0, time.monotonic() - began - done.result.load_s))
        return done
