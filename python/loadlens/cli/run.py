"""`loadlens run STUDY`: a whole experiment, from starting the services to the report."""

from __future__ import annotations

import os
import re
import shlex
import sys
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from loadlens import units
from loadlens.cli.fleet.nodes import FLEET, INSECURE_FLEET, Wanted, nodes_for
from loadlens.cli.grammar import foreign
from loadlens.cli.hit_load import quantity
from loadlens.cli.options import SAMPLES, VARIANTS, Example, argument, option, verb
from loadlens.cli.outputs import ABOUT_FILES, OUTPUTS, Show, outputs_of
from loadlens.cli.report import RUNS, report_of, result_of_run, write_report
from loadlens.cli.ui.page import UI, page_of
from loadlens.errors import ExitCode, RecordError, UsageError, nearest
from loadlens.present import terminal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from loadlens.model.study import Study
    from loadlens.model.workload import Plan
    from loadlens.record import RunRecord
    from loadlens.run.engine_trial import MakeLoad

STUDY_FILE = "study.yaml"
WATCH_S = 0.5  # how long other programs are watched before the start

# Groups of the help, in their order.
TRIALS: Final = "Trials"
OUTPUT: Final = "Output"


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of `run`."""

    study: Path = argument("STUDY", "A study file, a folder with study.yaml in it, or - for standard input.")
    quick: bool = option(
        "--quick", "Run the study's quick profile; the report lists what it leaves out.", group=TRIALS
    )
    settings: tuple[str, ...] = option(
        "--set NAME=VALUE",
        "Override a param; repeatable. Example: --set hash=threads",
        default=(),
        group=TRIALS,
    )
    variants: tuple[str, ...] = option(*VARIANTS, group=TRIALS)
    resume: bool = option(
        "--resume",
        "Continue an interrupted run: --out, or the last run of the study. Example: --resume --out "
        "runs/register-2c90",
        group=TRIALS,
    )
    fleet: str | None = option(*FLEET, group=TRIALS)
    insecure_fleet: bool = option(*INSECURE_FLEET, group=TRIALS)
    out: tuple[str, ...] = option(
        OUTPUTS[0],
        "Write the record to DIR (default: runs/STUDY-xxxx), and the result to files: "
        f"{ABOUT_FILES}. Repeatable. Example: -o runs/a, --out md=summary.md,junit=junit.xml",
        default=(),
        group=OUTPUT,
    )
    samples: str | None = option(*SAMPLES, group=OUTPUT)
    ui: bool = option(*UI, group=OUTPUT)
    quiet: bool = option(
        "-q --quiet", "Show no progress, and of the answer only the first screen.", group=OUTPUT
    )


@verb(
    RunOptions,
    Example("loadlens run study.yaml", "every trial of the study"),
    Example("loadlens run study.yaml --quick", "a first look"),
    Example("loadlens run study.yaml --resume", "go on after Ctrl-C"),
    Example("loadlens run study.yaml --out junit=junit.xml", "for a CI job"),
)
def run(given: RunOptions) -> None:
    """Run a study and leave its record and report.

    Ctrl-C ends the running trial in order and keeps what is done; once more ends at once.
    """
    outputs = outputs_of(
        given.out, may_hold=given.resume, instead="--resume to continue it, or another folder, -o NEW"
    )
    planned = planned_study(given.study, quick=given.quick, settings=given.settings, variants=given.variants)
    if given.samples is not None:
        planned = replace(planned, samples=quantity(units.kept_rows, given.samples, "--samples"))
    from loadlens.run import secret_variables

    secret_variables.refuse_missing(planned, str(study_file(given.study)))
    record = _record_folder(planned, outputs.record, resume=given.resume)
    from loadlens.record import is_record, open_run
    from loadlens.run.interrupts import Stopped
    from loadlens.run.study_runner import CutShortError

    if not given.quiet:
        _warn(planned, is_here=given.fleet is None)
    lost: RecordError | None = None
    try:
        with (
            nodes_for(Wanted(given.fleet, given.insecure_fleet), planned) as make_load,
            page_of(record, is_wanted=given.ui),
            outputs.exporting(record),
        ):
            path = _run(planned, record, make_load, resume=given.resume, quiet=given.quiet)
    except Stopped as stopped:
        outputs.end_exports()
        if is_record(record):
            command = command_of(replace(given, resume=True), record, outputs.places)
            sys.stderr.write(f"loadlens: stopped; continue with: {shlex.join(command)}\n")
        sys.exit(int(stopped.code))
    except CutShortError as fault:
        from loadlens.report.write.terminal.hit_summary import print_unsealed

        outputs.end_exports()
        if fault.unsealed is not None:
            print_unsealed(fault.unsealed)
        if not any(trial.is_sealed for trial in open_run(record).trials):
            raise
        path, lost = record, fault
    from loadlens.report.write.json import report_as_json
    from loadlens.report.write.terminal.report_text import print_report

    report = report_of(path)
    files: tuple[Path, ...] = ()
    try:
        files = write_report(report, path)
    except RecordError as fault:  # after what was measured is shown
        lost = lost or fault
    code = Show(replace(outputs, record=path), as_json=False, quiet=given.quiet).answer(
        report,
        partial(report_as_json, report),
        partial(print_report, report, files=files, quiet=given.quiet),
        partial(result_of_run, report, path),
        is_missed=any(row.state == "bad" for row in report.objectives),
    )
    if lost is not None:
        raise lost
    sys.exit(int(code or (ExitCode.OK if open_run(path).is_complete else ExitCode.INVALID)))


def planned_study(
    file: Path, *, quick: bool, settings: Sequence[str] = (), variants: Sequence[str] = ()
) -> Study:
    """Read and plan the study of a file or folder with these settings."""
    import shutil

    path = study_file(file)  # before what reads a study is loaded
    from loadlens.study import parse

    definition = parse.read(path)  # before what plans it is loaded
    from loadlens import engine
    from loadlens.run.external import cannot_do
    from loadlens.study import plan

    return plan.plan(
        definition,
        overrides=dict(map(plan.parse_override, settings)),
        quick=quick,
        templates=engine,
        variants=dict(_variant(text) for text in variants),
        has_program=lambda program: shutil.which(program) is not None,
        read_due_times=engine.read_due_times,
        refusals=partial(cannot_do, hide=definition.hide),
    )


def study_file(path: Path) -> Path:
    """Return the file of a study, given by itself or by its folder; `-` is standard input.

    Raises:
        UsageError: There is none; the hint names what is there.
    """
    file = path / STUDY_FILE if path.is_dir() else path
    foreign.refuse_file(str(path))
    if str(path) == "-" or file.exists():
        return file
    if re.match(r"https?:/", str(path)):
        url = str(path).replace(":/", "://")
        raise UsageError(f"a URL is no study: {url}", hint=f"loadlens hit {url}, or loadlens explain {url}")
    if path.is_dir():
        studies = sorted(str(other) for other in path.glob("*.y*ml"))
        hint = " or ".join(studies[:3]) or "loadlens init URL, which writes one"
        raise UsageError(f"there is no {STUDY_FILE} in {path}", hint=hint)
    folder = path.parent
    near = nearest(path.name, [other.name for other in folder.iterdir()] if folder.is_dir() else [])
    hint = f"did you mean {folder / near}?" if near is not None else "loadlens init URL, which writes one"
    raise UsageError(f"there is no study {path}", hint=hint)


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


def _warn(study: Study, *, is_here: bool) -> None:
    """Print the faults of the design, and of this machine if it makes the load; notes are left to `check`."""
    from loadlens.run import cautions
    from loadlens.study import lint

    for fault in lint.faults(study, cores=len(os.sched_getaffinity(0))):
        if not fault.is_note:
            sys.stderr.write(f"loadlens: {fault.where}: {fault.message}\n  try {fault.advice}\n")
    for words in cautions.before(_plans(study), watch_s=WATCH_S) if is_here else ():
        sys.stderr.write(f"loadlens: {words}\n")


def _plans(study: Study) -> list[Plan]:
    """Return the load of each case as far as it is known before services start."""
    from loadlens.model.study import PlannedTrial
    from loadlens.model.workload import Target
    from loadlens.run import engine_plan

    nowhere = Target("127.0.0.1", 1, "127.0.0.1:1")
    return [engine_plan.plan_of(PlannedTrial(case, 1, 1, study.seed), nowhere) for case in study.cases]


def _run(study: Study, record: Path, make_load: MakeLoad | None, *, resume: bool, quiet: bool) -> Path:
    from loadlens.live.run_view import run_printer, run_view
    from loadlens.run.progress import Silent
    from loadlens.run.study_runner import run_study

    def predict(held: RunRecord, slugs: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
        from loadlens.whatif import held_out

        return held_out.predict(held, slugs)

    begin = partial(run_study, study, record, resume=resume, predict=predict, make_load=make_load)
    if quiet or not terminal.can_draw(sys.stderr):
        return begin(progress=Silent() if quiet else run_printer(record))
    with run_view(record) as view:
        return begin(progress=view)


def command_of(given: RunOptions, record: Path, places: Sequence[str]) -> list[str]:
    """Return the command with these options, which writes its record and results there."""
    parts = ["loadlens", "run", str(given.study), *(["--quick"] if given.quick else [])]
    parts += [part for text in given.settings for part in ("--set", text)]
    parts += [part for text in given.variants for part in ("--variant", text)]
    parts += [] if given.samples is None else ["--samples", given.samples]
    parts += [] if given.fleet is None else ["--fleet", given.fleet]
    parts += ["--insecure-fleet"] if given.insecure_fleet else []
    parts += [*(["--resume"] if given.resume else []), "--out", str(record)]
    return parts + [part for place in places for part in ("--out", place)]
