"""`loadlens run STUDY`: a whole experiment, from starting the services to the report."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from loadlens.cli.options import Variants
from loadlens.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from loadlens.model.report import Report
    from loadlens.model.study import Study
    from loadlens.model.workload import Plan
    from loadlens.record import RunRecord

RUNS = Path("runs")
STUDY_FILE = "study.yaml"
WATCH_S = 0.5  # how long other programs are watched before the start


def run(
    study: Annotated[
        Path, typer.Argument(metavar="STUDY", help="A study file, or a folder that holds a study.yaml.")
    ],
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Run the study's quick profile; the report lists what it leaves out."),
    ] = False,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Continue an interrupted run: --out, or the last run of the study. "
            "Example: --resume --out runs/register-2c90",
        ),
    ] = False,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Override a param; repeatable. Example: --set hash=threads",
        ),
    ] = None,
    variants: Variants = None,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", metavar="DIR", help="Write the record to DIR. Default: runs/STUDY-xxxx."),
    ] = None,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Show no progress.")] = False,
) -> None:
    """Run a study and leave its record and report.

    Ctrl-C ends the running trial in order and keeps what is done; once more ends at once.
    """
    from loadlens.cli.report import write_report
    from loadlens.record import is_record
    from loadlens.report.write.terminal import print_report
    from loadlens.run import secret_variables
    from loadlens.run.interrupts import Stopped

    planned = planned_study(study, quick=quick, settings=settings or [], variants=variants)
    secret_variables.refuse_missing(planned, str(study / STUDY_FILE if study.is_dir() else study))
    record = _record_folder(planned, out, resume=resume)
    if not quiet:
        _warn(planned)
    try:
        path = _run(planned, record, resume=resume, quiet=quiet)
    except Stopped as stopped:
        if is_record(record):
            command = _resume_command(study, record, quick, settings, variants)
            sys.stderr.write(f"loadlens: stopped; continue with: {command}\n")
        sys.exit(int(stopped.code))
    report, files = write_report(path)
    print_report(report, files=files)
    sys.exit(int(_exit_code(path, report)))


def planned_study(
    file: Path, *, quick: bool, settings: list[str], variants: list[str] | None = None
) -> Study:
    """Read and plan the study of a file or folder with these settings."""
    import shutil

    from loadlens import engine
    from loadlens.run.external import cannot_do
    from loadlens.study import parse, plan

    path = file / STUDY_FILE if file.is_dir() else file
    overrides = dict(plan.parse_override(text) for text in settings)
    return plan.plan(
        parse.read(path),
        overrides=overrides,
        quick=quick,
        templates=engine,
        variants=dict(_variant(text) for text in variants or []),
        has_program=lambda program: shutil.which(program) is not None,
        read_due_times=engine.read_due_times,
        refusals=cannot_do,
    )


def _variant(text: str) -> tuple[str, str]:
    service, equals, variant = text.partition("=")
    if not equals or not service or not variant:
        raise UsageError(f"not a variant: {text!r}", where="--variant", hint="--variant SERVICE=NAME")
    return service, variant


def _record_folder(study: Study, out: Path | None, *, resume: bool) -> Path:
    from loadlens.record import latest_run, new_run_path

    if out is not None:
        return out
    if not resume:
        return new_run_path(RUNS, study.name)
    latest = latest_run(RUNS, study.name)
    if latest is None:
        raise UsageError(
            f"no run of {study.name} to continue under {RUNS}/",
            where="--resume",
            hint="start without --resume, or name the record with --out",
        )
    return latest


def _warn(study: Study) -> None:
    """Print the faults of the design; notes are left to `check`."""
    from loadlens.run import cautions
    from loadlens.study import lint

    for fault in lint.faults(study, cores=len(os.sched_getaffinity(0))):
        if not fault.is_note:
            sys.stderr.write(f"loadlens: {fault.where}: {fault.message}\n  try {fault.advice}\n")
    for words in cautions.before(_plans(study), watch_s=WATCH_S):
        sys.stderr.write(f"loadlens: {words}\n")


def _plans(study: Study) -> list[Plan]:
    """Return the load of each case as far as it is known before services start."""
    from loadlens.model.study import PlannedTrial
    from loadlens.model.workload import Target
    from loadlens.run import engine_plan

    nowhere = Target("127.0.0.1", 1, "127.0.0.1:1")
    return [engine_plan.plan_of(PlannedTrial(case, 1, 1, study.seed), nowhere) for case in study.cases]


def _run(study: Study, record: Path, *, resume: bool, quiet: bool) -> Path:
    from loadlens.live.run_view import run_view
    from loadlens.run.progress import PlainPrinter, Silent
    from loadlens.run.study_runner import run_study

    def foretell(held: RunRecord, slugs: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
        from loadlens.whatif import held_out

        return held_out.foretell(held, slugs)

    if quiet or not sys.stderr.isatty():
        progress = Silent() if quiet else PlainPrinter()
        return run_study(study, record, resume=resume, progress=progress, predict=foretell)
    with run_view() as view:
        return run_study(study, record, resume=resume, progress=view, predict=foretell)


def _resume_command(
    study: Path, record: Path, quick: bool, settings: list[str] | None, variants: list[str] | None
) -> str:
    import shlex

    parts = ["loadlens", "run", str(study), *(["--quick"] if quick else [])]
    parts += [part for text in settings or [] for part in ("--set", text)]
    parts += [part for text in variants or [] for part in ("--variant", text)]
    return shlex.join([*parts, "--resume", "--out", str(record)])


def _exit_code(path: Path, report: Report) -> ExitCode:
    """Missed objectives first; then trials that could not be made valid."""
    from loadlens.record import open_run

    if any(row.state == "bad" for row in report.objectives):
        return ExitCode.OBJECTIVE
    return ExitCode.OK if open_run(path).is_complete else ExitCode.INVALID
