"""ab: counts from its text, quantiles from its file of percentages, which has microseconds."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path

from loadlens.model.external_load import CannotDo
from loadlens.run.external.base import (
    QUANTILES,
    Driver,
    Printed,
    Times,
    ToolReport,
    Work,
    seconds,
    whole_seconds,
)

SERVED = "served.csv"
ENDLESS = 50_000_000  # a load that time ends needs a number all the same
ROUNDING = {"quantiles": 1e-6, "min": 1e-6, "max": 1e-6, "mean": 1e-3, "stdev": 1e-4}
_FAILED = re.compile(r"\(Connect: (\d+), Receive: (\d+), Length: (\d+), Exceptions: (\d+)\)")
_TOTAL = re.compile(r"^Total: +\d+ +(\d+) +([\d.]+) +\d+ +\d+$", re.MULTILINE)


def lacks(work: Work) -> Iterator[CannotDo]:
    yield from whole_seconds(work, "ab")
    if work.plan.threads not in (None, 1):
        yield CannotDo("threads", "ab has one thread")
    requests, body = work.requests, work.step.body
    if work.leaves_users_idle:
        yield CannotDo("requests", "ab wants at least as many requests as connections")
    if requests is not None and requests > ENDLESS:
        yield CannotDo("requests", f"ab keeps every request in memory: at most {ENDLESS}")
    if body.kind != "none" and work.step.method not in ("POST", "PUT"):
        yield CannotDo("body", "ab sends a body with POST and PUT only")


def command(work: Work, folder: Path) -> list[str]:
    stream, step = work.stream, work.step
    words = ["ab", "-q", "-r", "-c", str(work.users), "-s", str(seconds(stream.timeout_ns))]
    if work.plan.duration_ns is not None:
        words += ["-t", str(seconds(work.plan.duration_ns))]  # before -n, which it sets
    words += ["-n", str(work.requests or ENDLESS), "-e", str(folder / SERVED)]
    if stream.connection.reuse == "keep":
        words.append("-k")
    words += _request(work, folder)
    for name, value in work.headers:
        if name.lower() != "content-type" or step.body.kind == "none":
            words += ["-H", f"{name}: {value}"]
    return [*words, work.url]


def _request(work: Work, folder: Path) -> list[str]:
    step = work.step
    if step.body.kind == "none":
        return {"GET": [], "HEAD": ["-i"]}.get(step.method, ["-m", step.method])
    kinds = [value for name, value in work.headers if name.lower() == "content-type"]
    return [
        "-p" if step.method == "POST" else "-u",
        str(work.body_file(folder)),
        *(["-T", kinds[-1]] if kinds else []),
    ]


def read(printed: Printed, work: Work) -> ToolReport:
    text = printed.stdout
    complete = int(_behind(text, "Complete requests"))
    failed = _FAILED.search(text)
    connect, receive, length, exceptions = map(int, failed.groups()) if failed else (0, 0, 0, 0)
    not_2xx = re.search(r"^Non-2xx responses: +(\d+)", text, re.MULTILINE)
    has_sent = re.search(r"^Total body sent: +(\d+)", text, re.MULTILINE)
    notes = []
    if length:
        notes.append(f"{length} answers had another length than the first, which ab calls failed")
    if receive:
        notes.append("what ended in the middle counts among ab's lengths too")
    if not_2xx:
        notes.append(f"{not_2xx[1]} answers were no 2xx; which were redirections, ab does not say")
    return ToolReport(
        seconds=float(_behind(text, "Time taken for tests")),
        answered=complete - receive,
        unexpected_status=None if not_2xx else 0,
        failed=connect + receive + exceptions,
        errors={"connect": connect, "receive": receive, "length": length, "exceptions": exceptions},
        times=_times(text, printed.folder / SERVED, complete),
        bytes_out=int(has_sent[1]) if has_sent else None,
        bytes_in=int(_behind(text, "Total transferred")),
        bytes_in_bodies=int(_behind(text, "HTML transferred")),
        notes=tuple(notes),
    )


def _behind(text: str, label: str) -> str:
    match = re.search(rf"^{label}: +([\d.]+)", text, re.MULTILINE)
    if match is None:
        raise ValueError(f"no line {label!r} in what it printed")
    return match[1]


def _times(text: str, served: Path, complete: int) -> Times | None:
    """Quantiles with microseconds; mean and deviation in whole and in tenths of milliseconds."""
    if not complete or not served.is_file():
        return None
    with served.open() as file:
        at = {int(row["Percentage served"]): float(row["Time in ms"]) / 1e3 for row in csv.DictReader(file)}
    total = _TOTAL.search(text)
    whole = {name: round(100 * share) for name, share in QUANTILES.items() if name != "p999"}
    return Times(
        count=complete,
        mean=float(total[1]) / 1e3 if total else None,
        deviation=float(total[2]) / 1e3 if total else None,
        least=at[0],
        most=at[100],
        quantiles={name: at[percent] for name, percent in whole.items()},
        rounding=ROUNDING,
    )


AB = Driver(
    name="ab",
    install="apt-get install apache2-utils",
    version=("ab", "-V"),
    lacks=lacks,
    words=command,
    report=read,
    shows=frozenset({"headers", "url"}),
)
