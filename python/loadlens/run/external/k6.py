"""k6: a script that asks one thing, and the summary that k6 exports of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from loadlens.model.external_load import CannotDo
from loadlens.run.external.base import (
    Driver,
    Printed,
    Times,
    ToolReport,
    Work,
    is_text,
    written,
)

SCRIPT = "loadlens.js"
REPORT = "loadlens.json"
ENDLESS_NS = 24 * 3600 * 1_000_000_000
STATS = ["avg", "min", "max", "p(50)", "p(75)", "p(90)", "p(95)", "p(99)", "p(99.9)"]
_NAMES = {"p(50)": "p50", "p(75)": "p75", "p(90)": "p90", "p(95)": "p95", "p(99)": "p99", "p(99.9)": "p999"}
_TIMES = "http_req_duration{expected_response:true}"
_UNANSWERED = "http_reqs{status:0}"


def lacks(work: Work) -> Iterator[CannotDo]:
    stream, body = work.stream, work.step.body
    if stream.target.tls is not None:
        yield CannotDo("tls", "k6 would speak HTTP/2 over TLS")
    if work.plan.threads is not None:
        yield CannotDo("threads", "k6 takes its threads from GOMAXPROCS")
    if work.leaves_users_idle:
        yield CannotDo("requests", "k6 wants at least as many requests as users")
    if body.kind == "file" and not is_text(work.body):
        yield CannotDo("body", "k6 is given bodies of text only")


def command(work: Work, folder: Path) -> list[str]:
    script = folder / SCRIPT
    script.write_text(_script(work), encoding="utf-8")
    words = ["k6", "run", "--quiet", "--no-usage-report", "--no-color", "--address", "127.0.0.1:0"]
    return [*words, f"--summary-export={folder / REPORT}", str(script)]


def _script(work: Work) -> str:
    stream, step = work.stream, work.step
    params = {
        "headers": dict(work.headers),
        "timeout": stream.timeout_ns // 1_000_000,
        "redirects": 0,
        "responseType": "none",
    }
    body = work.body.decode() if step.body.kind != "none" else None
    return (
        "import http from 'k6/http';\n"
        f"export const options = {json.dumps(_options(work))};\n"
        f"const body = {json.dumps(body)};\n"
        f"const params = {json.dumps(params)};\n"
        "export default function () {\n"
        f"  http.request({json.dumps(step.method)}, {json.dumps(work.url)}, body, params);\n"
        "}\n"
    )


def _options(work: Work) -> dict[str, Any]:
    stream, requests = work.stream, work.requests
    duration = f"{(work.plan.duration_ns or ENDLESS_NS) // 1_000_000}ms"
    load: dict[str, Any] = {"vus": work.users, "gracefulStop": f"{stream.timeout_ns // 1_000_000}ms"}
    if requests is None:
        load |= {"executor": "constant-vus", "duration": duration}
    else:
        load |= {"executor": "shared-iterations", "iterations": requests, "maxDuration": duration}
    return {
        "scenarios": {"load": load},
        "noConnectionReuse": stream.connection.reuse == "new",
        "summaryTrendStats": STATS,
        # Thresholds that always hold: k6 shows the requests of a tag only where one asks for them.
        "thresholds": {_UNANSWERED: ["count>=0"], _TIMES: ["avg>=0"]},
    }


def read(printed: Printed, work: Work) -> ToolReport:
    metrics: dict[str, Any] = written(printed, REPORT, otherwise="it exported no summary")["metrics"]
    requests = metrics["http_reqs"]
    unanswered = int(metrics.get(_UNANSWERED, {}).get("count", 0))
    not_expected = int(metrics.get("http_req_failed", {}).get("passes", 0))
    answered = int(requests["count"]) - unanswered
    unexpected = not_expected - unanswered
    notes = ["its times begin when the connection stands"] if work.stream.connection.reuse == "new" else []
    return ToolReport(
        seconds=requests["count"] / requests["rate"] if requests["rate"] else 0.0,
        answered=answered,
        unexpected_status=unexpected,
        failed=unanswered,
        errors={"status 0": unanswered},
        times=_times(metrics.get(_TIMES, {}), answered - unexpected),
        bytes_out=int(metrics["data_sent"]["count"]),
        bytes_in=int(metrics["data_received"]["count"]),
        notes=tuple(notes),
    )


def _times(at: dict[str, float], count: int) -> Times | None:
    """Of successes, in milliseconds."""
    if not count:
        return None
    return Times(
        count=count,
        mean=at["avg"] / 1e3,
        least=at["min"] / 1e3,
        most=at["max"] / 1e3,
        quantiles={name: at[key] / 1e3 for key, name in _NAMES.items()},
    )


K6 = Driver(
    name="k6",
    install="go install go.k6.io/k6@latest",
    version=("k6", "version"),
    lacks=lacks,
    words=command,
    report=read,
)
