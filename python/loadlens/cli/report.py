"""`loadlens report RUN` and `loadlens show RUN`: reports from a record alone, any time later."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from loadlens.model.report import Report

Run = Annotated[Path, typer.Argument(metavar="RUN", help="A record. Example: runs/register-2c90")]


def report(
    run: Run,
    explore: Annotated[
        bool,
        typer.Option(
            "--explore",
            help="Make charts interactive; adds 0.9 MB to the page. Default: static charts.",
        ),
    ] = False,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json", help="Print the report as JSON and write no file (docs/reference/report-json.md)."
        ),
    ] = False,
) -> None:
    """Write the report of a run again, as report.html and report.md in its record.

    Reads the record and nothing else: the services need not exist any more.
    """
    if as_json:
        from loadlens import record
        from loadlens.report import build
        from loadlens.report.write.json import report_as_json

        print(report_as_json(build.report(record.open_run(run))))
        return
    _, files = write_report(run, explore=explore)
    for path in files:
        typer.echo(path)


def show(run: Run) -> None:
    """Print the answer and the findings of a run."""
    from loadlens import record
    from loadlens.report import build
    from loadlens.report.write.terminal import print_report

    print_report(build.report(record.open_run(run)))


def write_report(run: Path, *, explore: bool = False) -> tuple[Report, tuple[Path, ...]]:
    """Build the report of a record and write it next to the trials, as HTML and Markdown.

    Returns:
        The report, and the paths of its two files; the pictures of the Markdown report are next to it.
    """
    from loadlens import record
    from loadlens.report import build
    from loadlens.report.write import html, markdown

    made = build.report(record.open_run(run))
    page = record.write_report(run, record.REPORT_HTML, html.page(made, explore=explore))
    texts = {name: record.write_report(run, name, content) for name, content in markdown.files(made).items()}
    return made, (page, texts[record.REPORT_MARKDOWN])
