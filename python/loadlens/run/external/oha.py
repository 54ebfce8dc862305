"""oha: all from its JSON (`print_json` of its src/printer.rs, as of 1.15), whose times are not rounded.

What was under way when its time was over oha gives up and lists among its errors; here it is what it is: in
flight at the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from loadlens.model.external_load import CannotDo
from loadlens.run.external.base import (
    Driver,
    Printed,
    Times,
    ToolReport,
    Work,
    number_or_time,
    unexpected,
    written,
)

REPORT = "loadlens.json"
GIVEN_UP = "aborted due to deadline"  # `ClientError::Deadline` of its src/client.rs
_NAMES = {"p50": "p50", "p75": "p75", "p90": "p90", "p95": "p95", "p99": "p99", "p99.9": "p999"}


def lacks(work: Work) -> Iterator[CannotDo]:
    if work.plan.threads is not None:
        yield CannotDo("threads", "oha takes as many threads as there are cores")
    yield from number_or_time(work, "oha")
    if work.leaves_users_idle:
        yield CannotDo("requests", "oha makes no more connections than requests")


def command(work: Work, folder: Path) -> list[str]:
    stream, step = work.stream, work.step
    timeout = _time(stream.timeout_ns)
    words = ["oha", "--no-tui", "--output-format", "json", "-o", str(folder / REPORT)]
    words += ["-c", str(work.users), "-t", timeout, "--connect-timeout", timeout, "-m", step.method]
    requests = work.requests
    words += ["-n", str(requests)] if requests is not None else ["-z", _time(work.plan.duration_ns or 0)]
    words += ["-r", "0", "--disable-compression"]
    if stream.connection.reuse == "new":
        words.append("--disable-keepalive")
    if stream.target.tls is not None:
        words.append("--insecure")
    if step.body.kind != "none":
        words += ["-D", str(work.body_file(folder))]
    for name, value in work.headers:
        words += ["-H", f"{name}: {value}"]
    return [*words, work.url]


def _time(ns: int) -> str:
    return f"{ns // 1_000_000}ms" if ns % 1_000_000 == 0 else f"{ns}ns"


def read(printed: Printed, work: Work) -> ToolReport:
    report: dict[str, Any] = written(printed, REPORT)
    summary, errors = report["summary"], dict(report["errorDistribution"])
    statuses = {str(code): int(count) for code, count in report["statusCodeDistribution"].items()}
    answered, in_flight = sum(statuses.values()), int(errors.pop(GIVEN_UP, 0))
    return ToolReport(
        seconds=float(summary["total"]),
        answered=answered,
        unexpected_status=unexpected(statuses),
        failed=sum(errors.values()),
        errors={words: int(count) for words, count in errors.items()},
        times=_times(summary, report["latencyPercentiles"], answered),
        statuses=statuses,
        bytes_in_bodies=int(summary["totalData"]),
        in_flight=in_flight,
        notes=("its times begin before a connection is made, where one is",),
    )


def _times(summary: Mapping[str, Any], percentiles: Mapping[str, Any], answered: int) -> Times | None:
    """Of all answers, whatever their status."""
    if not answered:
        return None
    return Times(
        count=answered,
        mean=summary["average"],
        least=summary["fastest"],
        most=summary["slowest"],
        quantiles={name: percentiles[key] for key, name in _NAMES.items() if key in percentiles},
    )


OHA = Driver(
    name="oha",
    install="cargo install oha",
    version=("oha", "--version"),
    lacks=lacks,
    words=command,
    report=read,
    shows=frozenset({"headers", "url"}),
)
