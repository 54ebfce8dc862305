"""k6: a script that asks one thing, and the summary that k6 exports of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from loadlens.model.external_load import CannotDo
from loadlens.model.workload import Plan
from loadlens.run.external.base import (
    Driver,
    Printed,
    Times,
    ToolReport,
    body_of,
    common_faults,
    headers_of,
    is_text,
    leaves_users_idle,
    requests_of,
    step_of,
    url_of,
    users_of,
    written,
)

SCRIPT = "loadlens.js"
REPORT = "loadlens.json"
ENDLESS_NS = 24 * 3600 * 1_000_000_000
STATS = ["avg", "min", "max", "p(50)", "p(75)", "p(90)", "p(95)", "p(99)", "p(99.9)"]
_NAMES = {"p(50)": "p50", "p(75)": "p75", "p(90)": "p90", "p(95)": "p95", "p(99)": "p99", "p(99.9)": "p999"}
_TIMES = "http_req_duration{expected_response:true}"
_UNANSWERED = "http_reqs{status:0}"


def lacks(plan: Plan) -> Iterator[CannotDo]:
    yield from common_faults(plan, "k6")
    stream, body = plan.streams[0], step_of(plan).body
    if stream.target.tls is not None:
        yield CannotDo("tls", "k6 would speak HTTP/2 over TLS")
    if plan.threads is not None:
        yield CannotDo("threads", "k6 takes its threads from GOMAXPROCS")
    if leaves_users_idle(plan):
        yield CannotDo("requests", "k6 wants at least as many requests as users")
    if body.kind == "file" and not is_text(body_of(body)):
        yield CannotDo("body", "k6 is given bodies of text only")


def command(plan: Plan, folder: Path) -> list[str]:
    script = folder / SCRIPT
    script.write_text(_script(plan), encoding="utf-8")
    words = ["k6", "run", "--quiet", "--no-usage-report", "--no-color", "--address", "127.0.0.1:0"]
    return [*words, f"--summary-export={folder / REPORT}", str(script)]


def _script(plan: Plan) -> str:
    stream, step = plan.streams[0], step_of(plan)
    params = {
        "headers": dict(headers_of(step)),
        "timeout": stream.timeout_ns // 1_000_000,
        "redirects": 0,
        "responseType": "none",
    }
    body = body_of(step.body).decode() if step.body.kind != "none" else None
    return (
        "import http from 'k6/http';\n"
        f"export const options = {json.dumps(_options(plan))};\n"
        f"const body = {json.dumps(body)};\n"
        f"const params = {json.dumps(params)};\n"
        "export default function () {\n"
        f"  http.request({json.dumps(step.method)}, {json.dumps(url_of(plan))}, body, params);\n"
        "}\n"
    )


def _options(plan: Plan) -> dict[str, Any]:
    stream, requests = plan.streams[0], requests_of(plan)
    duration = f"{(plan.duration_ns or ENDLESS_NS) // 1_000_000}ms"
    load: dict[str, Any] = {"vus": users_of(plan), "gracefulStop": f"{stream.timeout_ns // 1_000_000}ms"}
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


def read(printed: Printed, plan: Plan) -> ToolReport:
    metrics: dict[str, Any] = written(printed, REPORT, otherwise="it exported no summary")["metrics"]
    requests = metrics["http_reqs"]
    unanswered = int(metrics.get(_UNANSWERED, {}).get("count", 0))
    not_expected = int(metrics.get("http_req_failed", {}).get("passes", 0))
    answered = int(requests["count"]) - unanswered
    unexpected = not_expected - unanswered
    notes = (
        ["its times begin when the connection stands"] if plan.streams[0].connection.reuse == "new" else []
    )
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
    program="k6",
    install="go install go.k6.io/k6@latest",
    version=("k6", "version"),
    lacks=lacks,
    command=command,
    read=read,
)
