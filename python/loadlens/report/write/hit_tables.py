"""The result of one load as CSV, one row for each figure, and as Markdown for a summary of CI."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from loadlens.model.finding import Estimate, Figure, Undecided
from loadlens.model.report import ObjectiveRow
from loadlens.model.result import EngineResult, StepResult, StreamResult
from loadlens.present import numbers, words
from loadlens.report.write.escaping import escaped
from loadlens.report.write.hit_figures import figure

STATISTICS = ("mean", "p50", "p75", "p90", "p95", "p99", "p999")
HEAD = ("step", "metric", "unit", "value", "low", "high", "samples", "note")


def hit_csv(result: EngineResult) -> str:
    """Return every figure with its 95 % interval, counts, and statuses; rows of a step name it."""
    stream = result.streams[0]
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(HEAD)
    parts: list[tuple[str, StreamResult | StepResult]] = [("", stream)]
    if len(stream.steps) > 1:
        parts += [(step.name, step) for step in stream.steps]
    for name, part in parts:
        for each in figures(part):
            table.writerow((name, *_cells(each)))
        for kind, count in asdict(part.requests).items():
            table.writerow((name, f"requests.{kind}", "requests", count, "", "", "", ""))
    for code, count in stream.status.items():
        table.writerow(("", f"status.{code}", "answers", count, "", "", "", ""))
    for kind, error in stream.errors.items():
        table.writerow(("", f"errors.{kind}", "requests", error.count, "", "", "", ""))
    return text.getvalue()


def figures(part: StreamResult | StepResult) -> Iterator[Figure]:
    """Return throughput and times of a load or of one of its requests."""
    yield figure("throughput", "1/s", part.throughput_rps, part.response_time_s.count)
    for block, times in (("response_time", part.response_time_s), ("service_time", part.service_time_s)):
        for statistic in STATISTICS:
            yield figure(f"{block}.{statistic}", "s", times.quantity(statistic), times.count)


def _cells(each: Figure) -> tuple[object, ...]:
    if isinstance(each, Estimate):
        low, high = ("" if bound is None else bound for bound in (each.low, each.high))
        return each.metric, each.unit, each.point, low, high, each.samples, ""
    unit = each.unit if isinstance(each, Undecided) else ""
    return each.metric, unit, "", "", "", "", each.reason


def hit_markdown(
    title: str, result: EngineResult, lines: Sequence[str], objectives: Sequence[ObjectiveRow]
) -> str:
    """Return a short page.

    Args:
        title: What was loaded.
        result: The result of the load.
        lines: The answer, and what is worth a look.
        objectives: Judged objectives.
    """
    stream = result.streams[0]
    text = [f"## {escaped(title)}", "", f"**{escaped(lines[0])}**", ""]
    text += [f"- {escaped(line)}" for line in lines[1:]] + ([""] if len(lines) > 1 else [])
    if objectives:
        text += ["| | objective | limit | value |", "| --- | --- | --- | --- |"]
        for row in objectives:
            cells = (f"{words.GLYPHS[row.state]} {row.word}", row.objective, row.limit)
            shown = numbers.show(row.figure)
            text.append(_row(*cells, shown.with_interval if shown.state == "measured" else ""))
        text.append("")
    text += ["| | value | 95 % interval |", "| --- | ---: | ---: |"]
    for each in figures(stream):
        if each.metric.startswith("service_time") and stream.kind == "closed":
            continue
        shown = numbers.show(each)
        text.append(_row(words.metric(each.metric), shown.short, shown.interval))
    text += [
        "",
        " · ".join(f"status {code}: {numbers.count(count)}" for code, count in stream.status.items()),
    ]
    return "\n".join(text).rstrip() + "\n"


def _row(*cells: str) -> str:
    return "| " + " | ".join(escaped(cell) for cell in cells) + " |"
