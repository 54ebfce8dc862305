"""`loadlens report RUN` and `loadlens show RUN`: reports from a record alone, any time later."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from loadlens.cli.completion import records
from loadlens.cli.options import Example, argument, option, verb
from loadlens.cli.outputs import ABOUT_FILES, FILES, Outputs, outputs_of
from loadlens.errors import RecordError, UsageError, nearest, visible
from loadlens.machine import threads

if TYPE_CHECKING:
    from loadlens.model.report import Report
    from loadlens.record import RunRecord
    from loadlens.report.write.result import Result

RUNS: Final = Path("runs")
RUN: Final = ("RUN", "A record. Example: runs/register-2c90")


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """Options of `report`."""

    run: Path = argument(*RUN, shell_complete=records)
    explore: bool = option(
        "--explore", "Make charts interactive; adds 0.9 MB to the page. Default: static charts."
    )
    out: tuple[str, ...] = option(
        "-o --out FORMAT=FILE",
        f"Also write the result to files: {ABOUT_FILES}. Repeatable. Example: --out "
        "md=summary.md,junit=junit.xml",
        default=(),
    )
    as_json: bool = option(
        "--json", "Print the report as JSON, and write no report (docs/reference/report-json.md)."
    )


@verb(
    ReportOptions,
    Example("loadlens report runs/register-2c90", "writes report.html and report.md"),
    Example("loadlens report runs/register-2c90 --out junit=a.xml", "for a CI job"),
)
def report(given: ReportOptions) -> None:
    """Write the report of a run again, as report.html and report.md in its record.

    Reads the record and nothing else: the services need not exist any more.
    """
    outputs = outputs_of(given.out)
    if outputs.record is not None:
        raise UsageError("a report is written into its record", where="--out", hint=FILES)
    if given.as_json:
        held = opened(given.run)
        from loadlens.report import build
        from loadlens.report.write.json import report_as_json

        made = build.report(held)
        print(report_as_json(made))
        write_outputs(outputs, made, given.run)
        return
    made = report_of(given.run)
    _print_paths(write_report(made, given.run, explore=given.explore))
    write_outputs(outputs, made, given.run)
    _print_paths(tuple(outputs.files.values()))


def _print_paths(paths: tuple[Path, ...]) -> None:
    for path in paths:
        print(visible(str(path)) if sys.stdout.isatty() else path)


@dataclass(frozen=True, slots=True)
class ShowOptions:
    """Options of `show`."""

    run: Path = argument(*RUN, shell_complete=records)


@verb(
    ShowOptions,
    Example("loadlens show runs/register-2c90", "answer and findings"),
)
def show(given: ShowOptions) -> None:
    """Print the answer and the findings of a run."""
    held = opened(given.run)  # before the packages of a report are loaded
    from loadlens.report import build
    from loadlens.report.write.terminal.report_text import print_report

    print_report(build.report(held))


def opened(path: Path) -> RunRecord:
    """Open a record, without loading anything that a wrong name would not need.

    Raises:
        RecordError: There is none; the hint names one that is there.
        UsageError: It is a study, another file or a URL.
    """
    if path.is_dir():
        from loadlens.record import open_run

        return open_run(path)
    if path.suffix in (".yaml", ".yml") and path.is_file():
        raise UsageError(f"{path} is a study", hint=f"loadlens run {path}, which makes a record")
    if path.is_file():
        raise UsageError(f"{path} is a file, and a record is a folder", hint="ls runs, which has the records")
    if str(path).startswith(("http:/", "https:/")):
        raise UsageError("a URL is no record", hint="loadlens hit URL, or loadlens explain URL")
    names = {other.name: other for folder in (path.parent, RUNS) for other in _records(folder)}
    near = nearest(path.name, list(names))
    hint = "loadlens run STUDY, which makes one"
    if near is not None:
        hint = f"did you mean {names[near]}?"
    elif names:
        latest = max(names.values(), key=lambda other: other.stat().st_mtime)
        hint = f"{latest}, the latest" if len(names) > 1 else str(latest)
    raise RecordError(f"there is no record {path}", hint=hint)


def _records(folder: Path) -> list[Path]:
    folders = [path for path in folder.iterdir() if path.is_dir()] if folder.is_dir() else []
    if not folders:
        return []
    from loadlens.record import is_record

    return [path for path in folders if is_record(path)]


def report_of(run: Path) -> Report:
    """Build the report of a record."""
    held = opened(run)
    threads.demand()
    from loadlens.report import build

    return build.report(held)


def write_report(made: Report, run: Path, *, explore: bool = False) -> tuple[Path, ...]:
    """Write the report of a record next to the trials, as HTML and Markdown.

    Returns:
        The paths of its two files; the pictures of the Markdown report are next to it.

    Raises:
        RecordError: One cannot be written.
    """
    from loadlens import record
    from loadlens.report.write import html, markdown

    page = record.write_report(run, record.REPORT_HTML, html.page(made, explore=explore))
    texts = {name: record.write_report(run, name, content) for name, content in markdown.files(made).items()}
    return page, texts[record.REPORT_MARKDOWN]


def write_outputs(outputs: Outputs, report: Report, run: Path) -> None:
    """Write the result of a run in every format asked for."""
    if outputs.files or outputs.sent:
        from loadlens.report.write.json import report_as_json

        outputs.of(run)
        outputs.write(partial(report_as_json, report), partial(result_of_run, report, run))


def result_of_run(report: Report, run: Path) -> Result:
    """Return the result of a run for files and for Python."""
    from loadlens import record
    from loadlens.present import words
    from loadlens.report.write import result_of

    lacking = len(record.open_run(run).unfinished())
    return result_of.of_report(
        report, error=f"{words.plural(lacking, 'trial')} without a valid result" if lacking else ""
    )
