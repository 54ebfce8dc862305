"""Words for the history of a load, the same on a terminal and on a page."""

from __future__ import annotations

import time

from loadlens.model.comparison import Point, Series, Shift
from loadlens.present import numbers, words

SHORT = 8  # characters of a commit


def began(point: Point) -> str:
    """Return when a record began, in UTC."""
    if not point.began_unix_ns:
        return "time unknown"
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(point.began_unix_ns / 1e9))


def commit(point: Point) -> str:
    """Return the short commit, with `+` if files differed from it; `-` if it is not known."""
    return point.commit[:SHORT] + "+" * point.is_modified if point.commit else "-"


def metric(series: Series) -> str:
    """Return the metric in words."""
    return "throughput" if series.metric == "throughput" else words.metric(series.metric)


def load(series: Series) -> str:
    """Return study and load."""
    return " · ".join(part for part in (series.study, series.load) if part)


def change(shift: Shift) -> str:
    """Return a change as a share of the mean before it."""
    return numbers.signed_percent(shift.after / shift.before - 1)


def shift_in_words(series: Series, shift: Shift) -> str:
    """Return a change point as a sentence; what else differs from the record before is named."""
    place = f"{shift.commit[:SHORT]} ({shift.record})" if shift.commit else shift.record
    before, after = (numbers.with_unit(mean, series.unit) for mean in (shift.before, shift.after))
    also = f"; there {words.listed(shift.differs)} changed too" if shift.differs else ""
    return f"{load(series)}: {metric(series)} from {before} to {after} ({change(shift)}) at {place}{also}"


def lacking(series: Series) -> str:
    """Return how many more records the series needs; empty: it has enough."""
    if not series.lacking:
        return ""
    more = words.plural(series.lacking, "more record")
    return f"{more} with this figure needed to look for change points"
