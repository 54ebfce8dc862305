"""`loadlens check STUDY`: cases, order, duration, and advice on the design. Runs nothing."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from loadlens.cli.options import VARIANTS, Example, argument, option, verb
from loadlens.cli.report import RUNS
from loadlens.cli.run import planned_study
from loadlens.credentials import Hiding
from loadlens.present import terminal


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """Options of `check`."""

    study: Path = argument("STUDY", "A study file, a folder with study.yaml in it, or - for standard input.")
    quick: bool = option("--quick", "Check the quick profile instead of the full study.")
    overrides: tuple[str, ...] = option(
        "--set NAME=VALUE",
        "Override a param; a factor of that name is fixed to this level. Repeatable. Example: --set "
        "users=5 --set workers=1",
        default=(),
    )
    variants: tuple[str, ...] = option(*VARIANTS)
    cores: int | None = option(
        "--cores N", "Check the design for a machine with N cores. Default: this machine.", min=1
    )
    verbose: bool = option("-v --verbose", "Print the order of every block.")


@verb(
    CheckOptions,
    Example("loadlens check study.yaml", "cases, duration, remarks"),
    Example("loadlens check study.yaml --set users=5", "with another value"),
)
def check(given: CheckOptions) -> None:
    """Show the cases of a study, their order and duration, and what would make its design better.

    How long rests on earlier runs of the study under runs/, else on published times, else on guesses; it
    says which.
    Faults of the file are all shown with their lines, and exit 2. Remarks on the design name the number that
    would be enough; they are advice, and exit 0.
    """
    planned = planned_study(given.study, quick=given.quick, settings=given.overrides, variants=given.variants)
    from loadlens.report.write.terminal.printing import print_lines
    from loadlens.report.write.terminal.study_overview import study_lines
    from loadlens.run import past_durations
    from loadlens.run.study_runner import refuse_bad_plans
    from loadlens.study import lint, plan

    trials = plan.order(planned)
    refuse_bad_plans(trials, is_run=False)
    lines, headings = study_lines(
        planned,
        trials,
        plan.duration(planned, past_durations.seen(RUNS, planned.name)),
        lint.faults(planned, cores=given.cores or len(os.sched_getaffinity(0))),
        all_blocks=given.verbose,
        width=terminal.width(),
    )
    hiding = Hiding(planned.hide)
    print_lines([hiding.text(line) for line in lines], headings=headings)
