"""The page of a history: a picture per load and metric with its change points, and a table per load."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from loadlens.model.comparison import History, Series
from loadlens.model.finding import Figure
from loadlens.present import charts, history_text, numbers
from loadlens.present.charts.history import history
from loadlens.report.write.html.pictures import inline
from loadlens.report.write.html.short_page import short_page, text


def history_page(answer: History) -> str:
    """Return the whole page; it loads nothing and runs no script."""
    notes = [
        *(history_text.shift_in_words(each, shift) for each in answer.series for shift in each.shifts),
        answer.method,
        *(f"left out: {record}" for record in answer.left_out),
    ]
    loads: dict[str, list[Series]] = {}
    for each in answer.series:
        loads.setdefault(history_text.load(each), []).append(each)
    items = "".join(f"<li>{text(note)}</li>" for note in notes)
    parts = "".join(_load(name, series, place) for place, (name, series) in enumerate(loads.items()))
    title = text(f"history of {answer.folder}")
    return short_page(title, text(answer.sentence), f"<ul>{items}</ul>{parts}")


def _load(name: str, series: Sequence[Series], place: int) -> str:
    pictures = "".join(_picture(each, f"h{place}-{i}") for i, each in enumerate(series))
    return f"<h2>{text(name)}</h2>{pictures}{''.join(_table(series))}"


def _picture(series: Series, name: str) -> str:
    spec = history(series, charts.WIDTH_PX)
    drawn = "" if spec is None else inline(charts.themed_svg(spec), name)
    label = text(f"{history_text.metric(series)} by record")
    key = "dashed: mean between change points" if series.shifts else "no change point"
    caption = text(f"{history_text.metric(series)}: {history_text.lacking(series) or key}")
    return f'<figure role="img" aria-label="{label}">{drawn}<figcaption>{caption}</figcaption></figure>'


def _table(series: Sequence[Series]) -> Iterator[str]:
    heads = ("record", "began (UTC)", "commit", *map(history_text.metric, series))
    yield f"<table><tr>{''.join(f'<th>{text(head)}</th>' for head in heads)}</tr>"
    for place, point in enumerate(series[0].points):
        figures = (_figure(each.points[place].figure) for each in series)
        cells = (point.record, history_text.began(point), history_text.commit(point), *figures)
        yield f"<tr>{''.join(f'<td>{text(cell)}</td>' for cell in cells)}</tr>"
    yield "</table>"


def _figure(figure: Figure) -> str:
    """Return a figure with its interval, without the reason where there is none: a cell is narrow."""
    shown = numbers.show(figure)
    return f"{shown.short} ({shown.interval})" if shown.interval else shown.short
