"""hey: all from its summary, whose times have tenths of milliseconds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from loadlens.model.external_load import CannotDo
from loadlens.run.external.base import (
    Driver,
    Printed,
    Times,
    ToolReport,
    Work,
    number_or_time,
    seconds,
    unexpected,
    whole_seconds,
)

KEPT = 1_000_000  # answers; of more, hey forgets times and statuses
_STATUS = re.compile(r"^  \[(\d+)\]\t(\d+) responses$", re.MULTILINE)
_ERROR = re.compile(r"^  \[(\d+)\]\t(?!\d+ responses$)(.+)$", re.MULTILINE)
_PERCENT = re.compile(r"^  (\d+)%+ in ([\d.]+) secs$", re.MULTILINE)
_NAMES = {"50": "p50", "75": "p75", "90": "p90", "95": "p95", "99": "p99"}


def lacks(work: Work) -> Iterator[CannotDo]:
    yield from whole_seconds(work, "hey")
    yield from number_or_time(work, "hey")
    requests, users = work.requests, work.users
    if requests is not None and requests % users:
        words = "hey divides its requests among its workers and leaves out the rest: give a multiple"
        yield CannotDo("requests", words)


def command(work: Work, folder: Path) -> list[str]:
    stream, step = work.stream, work.step
    words = ["hey", "-c", str(work.users), "-t", str(seconds(stream.timeout_ns)), "-m", step.method]
    requests = work.requests
    words += (
        ["-n", str(requests)] if requests is not None else ["-z", f"{seconds(work.plan.duration_ns or 0)}s"]
    )
    words += ["-disable-redirects", "-disable-compression"]
    if work.plan.threads is not None:
        words += ["-cpus", str(work.plan.threads)]
    if stream.connection.reuse == "new":
        words.append("-disable-keepalive")
    if step.body.kind != "none":
        words += ["-D", str(work.body_file(folder))]
    for name, value in work.headers:
        words += ["-T", value] if name.lower() == "content-type" else ["-H", f"{name}: {value}"]
    return [*words, work.url]


def read(printed: Printed, work: Work) -> ToolReport:
    text = printed.stdout
    statuses = {code: int(count) for code, count in _STATUS.findall(text)}
    errors: dict[str, int] = {}
    for count, words in _ERROR.findall(text):
        errors[words] = errors.get(words, 0) + int(count)
    answered = sum(statuses.values())
    if answered >= KEPT:
        raise ValueError(f"it keeps the first {KEPT} answers only: a shorter load")
    data = re.search(r"^  Total data:\t(\d+) bytes$", text, re.MULTILINE)
    return ToolReport(
        seconds=_behind(text, "Total"),
        answered=answered,
        unexpected_status=unexpected(statuses),
        failed=sum(errors.values()),
        errors=errors,
        times=_times(text, answered),
        statuses=statuses,
        bytes_in_bodies=int(data[1]) if data else None,
        notes=("an answer that breaks off in its body counts as answered",),
    )


def _behind(text: str, label: str) -> float:
    match = re.search(rf"^  {label}:\t([\d.]+) secs$", text, re.MULTILINE)
    if match is None:
        raise ValueError(f"no line {label!r} in what it printed")
    return float(match[1])


def _times(text: str, answered: int) -> Times | None:
    if not answered:
        return None
    at = {_NAMES[percent]: float(time) for percent, time in _PERCENT.findall(text) if percent in _NAMES}
    return Times(
        count=answered,
        mean=_behind(text, "Average"),
        least=_behind(text, "Fastest"),
        most=_behind(text, "Slowest"),
        quantiles=at,
        rounding=dict.fromkeys(("mean", "min", "max", "quantiles"), 1e-4),
    )


HEY = Driver(
    name="hey",
    install="go install github.com/rakyll/hey@latest",
    version=(),
    lacks=lacks,
    words=command,
    report=read,
    shows=frozenset({"headers", "url"}),
)
