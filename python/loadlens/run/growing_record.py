"""The start of a record that grows by one trial after the other, as those of searches and comparisons do."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from loadlens import record
from loadlens.credentials import Hiding
from loadlens.model.study import PlannedTrial, Study
from loadlens.model.workload import Target
from loadlens.run import cautions, engine_plan, environment, secret_variables
from loadlens.run.engine_trial import MakeLoad
from loadlens.run.interrupts import Interrupts
from loadlens.run.preparations import prepare_all
from loadlens.run.progress import Building, Progress, Warned
from loadlens.run.study_runner import refuse_bad_plans
from loadlens.run.trial_runner import WATCH_EVERY_S, TrialRunner
from loadlens.temporary import default_cache


@dataclass(frozen=True, slots=True)
class Growing:
    """A record without trials yet."""

    runner: TrialRunner
    warnings: tuple[str, ...]  # already passed on


@contextmanager
def growing_record(
    study: Study,
    first: Sequence[PlannedTrial],
    out: Path,
    progress: Progress,
    interrupts: Interrupts,
    *,
    warnings: Sequence[str] = (),
    watch_every_s: float = WATCH_EVERY_S,
    make_load: MakeLoad | None = None,
) -> Iterator[Growing]:
    """Build what the first trials need and make a record without any; what runs is stopped at the end.

    Args:
        study: The cases of the first trials.
        first: Trials with the requests of all later ones.
        out: The record, a new folder.
        progress: Receives warnings and the lines of builds.
        interrupts: Source of requests for an early end.
        warnings: Known before; those about this machine are added.
        watch_every_s: Interval of monitor readings.
        make_load: Makes the loads elsewhere; none: our engine on this machine.

    Raises:
        PlanError: The engine will refuse the requests.
        RecordError: The record cannot be made.
    """
    refuse_bad_plans(first, is_run=make_load is None)
    record.refuse_taken(out)
    nowhere = Target("127.0.0.1", 1, "127.0.0.1:1")
    plans = [engine_plan.plan_of(trial, nowhere) for trial in first]
    with interrupts.allowed():
        preparations = prepare_all(
            study, cache=default_cache(), on_line=lambda line: progress.tell(Building(line))
        )
        warnings = (*warnings, *(cautions.before(plans) if make_load is None else ()))
    for warning in warnings:
        progress.tell(Warned(warning))
    machine = environment.of_machine()
    hiding = Hiding(study.hide)
    used = [value for plan in plans for value in hiding.values_in(json.loads(plan.to_json()))]
    used += secret_variables.values_of(study.cases)
    writer = record.create_run(out, replace(study, cases=()), (), machine, secrets_used=used)
    with (
        writer,
        TrialRunner(
            writer,
            preparations,
            interrupts,
            progress,
            machine,
            samples=study.samples,
            watch_every_s=watch_every_s,
            make_load=make_load,
        ) as runner,
    ):
        for warning in warnings:  # shown before there was a record
            writer.event("warned", words=warning)
        yield Growing(runner, tuple(warnings))
