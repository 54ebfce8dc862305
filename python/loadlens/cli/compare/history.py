"""`loadlens history DIR`: figures of many records in the order of time, and where they change."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from loadlens.cli import lab
from loadlens.cli.options import Example, argument, option, verb
from loadlens.cli.outputs import Show, outputs_of
from loadlens.errors import UsageError

if TYPE_CHECKING:
    from loadlens.model.comparison import History

FORMATS = ("json", "csv", "md")


@dataclass(frozen=True, slots=True)
class HistoryOptions:
    """Options of `history`."""

    folder: Path = argument("DIR", "A folder with records, at any depth. Example: runs")
    page: Path | None = option("--page FILE", "Write the pictures and tables as an HTML page to FILE.")
    out: tuple[str, ...] = option(
        "-o --out FORMAT=FILE",
        "Also write the result to files: json, csv or md. Repeatable. Example: --out csv=history.csv",
        default=(),
    )
    as_json: bool = option("--json", "Print the answer as JSON (docs/reference/history-json.md).")
    quiet: bool = option("-q --quiet", "Print only the first line and the change points.")


@verb(
    HistoryOptions,
    Example("loadlens history runs", "every record below runs/"),
    Example("loadlens history runs --page history.html", "with pictures"),
)
def history(given: HistoryOptions) -> None:
    """Show how figures change over many records, and at which record or commit.

    Prints throughput, p50, p95, p99 and CPU time per request, a line for each record. Change points need 30
    records of one load. It judges nothing: the exit code is 0 whatever changed.
    """
    outputs = outputs_of(given.out)
    unknown = [name for name in outputs.files if name not in FORMATS]
    if outputs.record is not None or outputs.sent or unknown:
        what = f"{unknown[0]}: a history judges nothing" if unknown else "a history makes no record"
        raise UsageError(what, where="--out", hint=", ".join(f"{name}=FILE" for name in FORMATS))
    if not given.folder.is_dir():
        raise UsageError(
            f"{given.folder} is no folder", hint="the folder that holds the records, such as runs"
        )
    from loadlens.record import records_below

    places = records_below(given.folder)  # before the packages that read them are loaded
    if given.page is not None:
        lab.demand("history --page", draws=True)
    from loadlens.compare.history import of_folder
    from loadlens.report.write import result_of
    from loadlens.report.write.json import history_as_json
    from loadlens.report.write.terminal.history_text import print_history

    answer = of_folder(given.folder, places)
    Show(outputs, as_json=given.as_json, quiet=given.quiet, page=given.page).answer(
        answer,
        partial(history_as_json, answer),
        partial(print_history, answer, quiet=given.quiet),
        partial(result_of.of_history, answer),
        is_missed=False,
        page=partial(_page, answer),
    )


def _page(answer: History) -> str:
    from loadlens.report.write.html.history import history_page

    return history_page(answer)
