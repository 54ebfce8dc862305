"""Runs pairs of trials in random order into a record that grows, and looks at it until the pairs decide.

After each look the verdict is that of `judge.py` on the record so far, so that a finished record gives the
same answer again. `live.py` says what a pair of two URLs or commands is, `study_pairs.py` of a study.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from loadlens import record
from loadlens.compare import records
from loadlens.compare.judge import Rules
from loadlens.compare.plan import Terms
from loadlens.errors import ExitCode, TestbedError
from loadlens.measure import whole_run
from loadlens.measure.whole_run import MeasureTrial
from loadlens.model.comparison import Comparison, PairsBegun
from loadlens.model.study import Case, PlannedTrial, Study
from loadlens.model.trial import TrialStatus
from loadlens.present import words
from loadlens.run.engine_trial import MakeLoad
from loadlens.run.growing_record import growing_record
from loadlens.run.interrupts import Interrupts, Stopped
from loadlens.run.progress import Progress, Provisional, TrialStarted, Warned
from loadlens.run.time_left import Remaining
from loadlens.run.trial_runner import TrialOutcome, TrialRunner

LATE: Final = 1.25  # times the budget, for the pairs of the first look: without them there is no answer
SPOILED_PAIRS: Final = 3  # one after the other, and the comparison is given up


@dataclass(frozen=True, slots=True)
class Done:
    """Outcome of a live comparison."""

    answer: Comparison
    code: ExitCode | None  # none: no early end was requested


@dataclass(slots=True)
class Pairing:
    """The state of a comparison while it runs."""

    terms: Terms
    runner: TrialRunner
    began: float
    cases: dict[str, Case] = field(default_factory=dict)
    trials: list[PlannedTrial] = field(default_factory=list)
    measure: MeasureTrial = field(default_factory=whole_run.remembering)
    looks: tuple[int, ...] = ()
    pairs: int = 0

    @property
    def progress(self) -> Progress:
        """Receives the events of the comparison."""
        return self.runner.progress

    def go(self) -> None:
        """Run the comparison."""
        raise NotImplementedError

    def run_pairs(self, sides: Sequence[Callable[[int], bool]]) -> None:
        """Run pairs until they decide, or until there are as many as the last look has.

        Args:
            sides: Each runs one trial of a pair, given its number, and returns whether it is valid.
        """
        begun = PairsBegun(self.looks, self.terms.names, self.terms.margin, self.terms.budget_s)
        self.runner.writer.event(records.EVENT, **asdict(begun))
        order = random.Random(self.terms.seed)
        spoiled = block = 0
        began_s = self.used_s
        while self.pairs < self.looks[-1] and not self.runner.interrupts.is_set:
            block += 1
            if all(side(block) for side in order.sample(sides, len(sides))):
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
            if not self._has_time((self.used_s - began_s) / block):
                return

    def _has_time(self, pair_s: float) -> bool:
        """Return whether the pairs up to the next look end within the budget, if each takes so long."""
        look = next((look for look in self.looks if look > self.pairs), self.pairs)
        allowed_s = self.terms.budget_s * (LATE if look == self.looks[0] else 1.0)
        if self.used_s + (look - self.pairs) * pair_s <= allowed_s or look == self.pairs:
            return True
        text = f"the budget has no time for the next look, after {look} pairs: no further pair is begun"
        self.progress.tell(Warned(text))
        return False

    @property
    def used_s(self) -> float:
        """Seconds since the begin."""
        return time.monotonic() - self.began

    def judged(self) -> Comparison:
        """Return the verdict on the record so far."""
        held = record.open_run(self.runner.writer.path)
        return records.of_pairs(held, Rules(self.terms.margin, self.looks), self.measure)

    def is_valid(self, run: Callable[[], TrialOutcome]) -> bool:
        """Run a trial of a pair, again if it is invalid."""
        for _ in range(2):
            if self.runner.interrupts.is_set:
                return False
            if run().status is TrialStatus.COMPLETE:
                return True
        return False

    def run_trial(
        self,
        case: Case,
        block: int,
        plan: Callable[[int], PlannedTrial],
        study: Callable[[Sequence[Case]], Study],
        *,
        may_repeat: bool,
    ) -> TrialOutcome:
        """Run a trial, which joins the record first.

        Args:
            case: Of the trial.
            block: Number of the pair.
            plan: Returns the trial at a position of the record.
            study: Returns the study of all cases so far.
            may_repeat: An invalid trial is repeated.
        """
        self.cases[case.slug] = case
        trial = next((t for t in self.trials if (t.case.slug, t.block) == (case.slug, block)), None)
        if trial is None:
            trial = plan(len(self.trials) + 1)
            self.trials.append(trial)
            self.runner.writer.extend(study(tuple(self.cases.values())), self.trials)
        attempt = self.runner.writer.next_attempt(trial)
        number = trial.position
        left_s = max(0.0, self.terms.budget_s - self.used_s)
        left = Remaining(left_s, left_s, left_s)
        self.progress.tell(TrialStarted(trial, number, number, attempt, left))
        done = self.runner.run(trial)
        if not done.came_up and done.fault is not None:
            raise TestbedError(done.fault.message, where=done.fault.where, hint=done.fault.hint)
        self.progress.tell(done.ended(trial, attempt, number, left, may_repeat=may_repeat))
        return done


def run(
    study: Study,
    first: Sequence[PlannedTrial],
    out: Path,
    progress: Progress,
    pairing: Callable[[TrialRunner, float], Pairing],
    make_load: MakeLoad | None = None,
) -> Done:
    """Run a comparison and leave its record.

    Args:
        study: The cases of the first trials.
        first: Trials with the requests of all later ones.
        out: The record, a new folder.
        progress: Receives events.
        pairing: Returns the comparison for a runner and the moment of its begin.
        make_load: Makes the loads elsewhere; none: our engine on this machine.

    Raises:
        UsageError: The budget has no time for the fewest pairs.
        TestbedError: A service does not start, or does not answer as expected.
        RecordError: The record cannot be made or written.
        Stopped: An early end was requested before there was a pair.
    """
    with Interrupts() as interrupts:
        began = time.monotonic()
        with growing_record(study, first, out, progress, interrupts, make_load=make_load) as growing:
            pairs = pairing(growing.runner, began)
            try:
                pairs.go()
            except Stopped:
                if not pairs.pairs:
                    raise
            finally:
                end = "stopped" if interrupts.is_set else "ended"
                growing.runner.writer.event(end, complete=len(pairs.trials))
        return Done(pairs.judged(), interrupts.code if interrupts.is_set else None)
