"""`loadlens check STUDY`: cases, order, duration and design faults. Runs nothing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from loadlens.cli.options import Variants


def check(
    study: Annotated[
        Path, typer.Argument(metavar="STUDY", help="A study file, or a folder with study.yaml in it.")
    ],
    quick: Annotated[
        bool, typer.Option("--quick", help="Check the quick profile instead of the full study.")
    ] = False,
    overrides: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Override a param; a factor of that name is fixed to this level. Repeatable. "
            "Example: --set users=5 --set workers=1",
        ),
    ] = None,
    variants: Variants = None,
    cores: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Check the design for a machine with N cores. Default: this machine."
        ),
    ] = None,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Print the order of every block.")] = False,
) -> None:
    """Show the cases of a study, their order and duration, and the faults of its design.

    How long rests on earlier runs of the study under runs/, else on published times, else on guesses; it
    says which.
    Faults of the file are all shown with their lines, and exit 2. Remarks on the design exit 0.
    """
    from loadlens.cli.run import RUNS, planned_study
    from loadlens.report.write.terminal.printing import print_lines
    from loadlens.report.write.terminal.study_overview import study_lines
    from loadlens.run import past_durations
    from loadlens.study import lint, plan

    machine = cores or len(os.sched_getaffinity(0))
    planned = planned_study(study, quick=quick, settings=overrides or [], variants=variants)
    lines, headings = study_lines(
        planned,
        plan.order(planned),
        plan.duration(planned, past_durations.seen(RUNS, planned.name)),
        lint.faults(planned, cores=machine),
        all_blocks=verbose,
    )
    print_lines(lines, headings=headings)
