"""ab's HTML tables (-w), as ab 2.4 prints them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

from loadlens_compat.ab.figures import AbFigures, milliseconds
from loadlens_compat.ab.layout import Shown


@dataclass(frozen=True, slots=True)
class Attributes:
    """Attributes for the tags of tables, rows and cells (-x, -y, -z)."""

    table: str = ""
    row: str = ""
    cell: str = "bgcolor=white"


def html(figures: AbFigures, shown: Shown, attributes: Attributes) -> list[str]:
    """The lines of the table."""
    rows = [_pair(name, value, attributes) for name, value in _pairs(figures, shown)]
    if figures.failed:
        what = (
            f"   (Connect: {figures.connect_failed}, Length: {figures.length_failed}, "
            f"Exceptions: {figures.exceptions})"
        )
        failed = next(place for place, row in enumerate(rows) if "Failed requests:" in row)
        line = f"<tr {attributes.row}><td colspan=4 {attributes.cell} >{what}</td></tr>"
        rows.insert(failed + 1, line)
    rows += _rates(figures, shown, attributes)
    return [f"<table {attributes.table}>", *rows, *_times(figures, attributes), "</table>"]


def _pair(name: str, value: str, attributes: Attributes) -> str:
    row, cell = attributes.row, attributes.cell
    return f"<tr {row}><th colspan=2 {cell}>{name}</th><td colspan=2 {cell}>{escape(value)}</td></tr>"


def _pairs(figures: AbFigures, shown: Shown) -> Iterator[tuple[str, str]]:
    yield "Server Software:", ""
    yield "Server Hostname:", shown.host
    yield "Server Port:", str(shown.port)
    yield "Document Path:", shown.path
    yield "Document Length:", "Variable" if shown.any_length else f"{figures.document_length} bytes"
    yield "Concurrency Level:", str(shown.concurrency)
    yield "Time taken for tests:", f"{figures.seconds:.3f} seconds"
    yield "Complete requests:", str(figures.complete)
    yield "Failed requests:", str(figures.failed)
    if figures.not_2xx:
        yield "Non-2xx responses:", str(figures.not_2xx)
    if shown.is_kept:
        yield "Keep-Alive requests:", str(figures.kept)
    yield "Total transferred:", f"{figures.received} bytes"
    if shown.has_body:
        yield "Total body sent:", str(figures.sent)
    yield "HTML transferred:", f"{figures.body} bytes"


def _rates(figures: AbFigures, shown: Shown, attributes: Attributes) -> Iterator[str]:
    seconds = figures.seconds
    if not seconds:
        return
    yield _pair("Requests per second:", f"{figures.complete / seconds:.2f}", attributes)
    yield _pair("Transfer rate:", f"{figures.received / 1024 / seconds:.2f} kb/s received", attributes)
    if shown.has_body:
        row, cell = attributes.row, attributes.cell
        for count, what in ((figures.sent, "sent"), (figures.received + figures.sent, "total")):
            yield (
                f"<tr {row}><td colspan=2 {cell}>&nbsp;</td>"
                f"<td colspan=2 {cell}>{count / 1024 / seconds:.2f} kb/s {what}</td></tr>"
            )


def _times(figures: AbFigures, attributes: Attributes) -> Iterator[str]:
    """Least, mean and most; what is left of the total without connecting is processing, as ab has it."""
    if figures.connect is None or figures.total is None:
        return
    row, cell, count = attributes.row, attributes.cell, figures.complete
    connect = (
        milliseconds(figures.connect.least),
        milliseconds(figures.connect_sum_us) // count,
        milliseconds(figures.connect.most),
    )
    total = (
        milliseconds(figures.total.least),
        milliseconds(figures.total_sum_us) // count,
        milliseconds(figures.total.most),
    )
    heads = f"<th {cell}>min</th>   <th {cell}>avg</th>   <th {cell}>max</th>"
    yield f"<tr {row}><th {cell} colspan=4>Connection Times (ms)</th></tr>"
    yield f"<tr {row}><th {cell}>&nbsp;</th> {heads}</tr>"
    processing = tuple(whole - part for whole, part in zip(total, connect, strict=True))
    for name, values in (("Connect:", connect), ("Processing:", processing), ("Total:", total)):
        cells = "".join(f"<td {cell}>{value:5d}</td>" for value in values)
        yield f"<tr {row}><th {cell}>{name}</th>{cells}</tr>"
