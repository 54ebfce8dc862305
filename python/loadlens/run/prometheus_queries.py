"""Evaluation of the report's PromQL by the testbed's Prometheus, before the server ends with the trial.

The record keeps plain data: each expression's values over the measurement window, in seconds from t0. Without
a server the record keeps the reason, and the report evaluates the expressions on the lab's own scrapes.
"""

from __future__ import annotations

import http.client
import json
import math
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

from loadlens import promql
from loadlens.engine import Result
from loadlens.model.study import Query, ReportSettings, Window
from loadlens.testbed import Testbed
from loadlens.units import NS_PER_S

ANSWER_WITHIN_S = 30.0
LARGEST_BYTES = 64 << 20
MOST_SERIES = 200  # per expression
MOST_SET_S = 0.1  # adjustments that keep the time (NTP) stay below


def ask(report: ReportSettings, testbed: Testbed, result: Result) -> dict[str, Any] | None:
    """Evaluate every expression; None without expressions or without a measurement window."""
    queries = report.promql
    if not queries or not result["measured_s"]:
        return None
    servers = testbed.metric_servers()
    if not servers:
        reasons = [why for name, why in testbed.absent.items()]
        return {"by": None, "why": "; ".join(reasons) or "the study runs no Prometheus", "answers": []}
    service, url = next(iter(servers.items()))
    offset_ns = time.time_ns() - time.monotonic_ns()
    set_s = (offset_ns - result["t0_unix_ns"] + result["t0_monotonic_ns"]) / NS_PER_S
    if abs(set_s) > MOST_SET_S:  # its samples have times of both
        return {"by": None, "why": f"the clock was set by {set_s:.1f} s in the trial", "answers": []}
    begin = float(result["warmup_s"])
    begin, end = (report.window or Window()).of(begin, begin + float(result["measured_s"]))
    server = _Server(url, result["t0_unix_ns"] / 1e9)
    try:
        version = server.version()
    except (OSError, ValueError, http.client.HTTPException) as error:
        return {"by": None, "why": f"{service} did not answer: {_words(error)}", "answers": []}
    return {
        "by": {"server": "prometheus", "service": service, "version": version},
        "why": "",
        "begin_s": begin,
        "end_s": end,
        "answers": [_answer(server, query, begin, end) for query in queries],
    }


def _answer(server: _Server, query: Query, begin: float, end: float) -> dict[str, Any]:
    text = promql.filled(query.expression, end - begin)
    when = promql.moments(query.expression, begin, end, query.step_s)
    content = {"name": query.name, "expression": query.expression, "sent": text}
    try:
        series, left_out = server.values(text, when)
    except (OSError, ValueError, http.client.HTTPException) as error:
        return content | {"series": [], "error": _words(error)}
    return content | {"series": series, "left_out": left_out, "error": None}


class _Server:
    """Client of the Prometheus HTTP API, version 1."""

    def __init__(self, url: str, zero_unix_s: float) -> None:
        parts = urlsplit(url)
        self._host, self._port, self._zero = parts.hostname or "", parts.port or 80, zero_unix_s

    def version(self) -> str:
        """Return the version of the server."""
        return str(self._ask("/api/v1/status/buildinfo", {})["version"])

    def values(self, text: str, when: promql.Moments) -> tuple[list[dict[str, Any]], int]:
        """Return each series with its times and values, and the number of series left out."""
        rows = self._ask(
            "/api/v1/query_range",
            {
                "query": text,
                "start": f"{self._zero + when.first_s:.3f}",
                "end": f"{self._zero + when.last_s:.3f}",
                "step": f"{when.step_s:.6f}",
            },
        )["result"]
        series = [
            {
                "labels": row["metric"],
                "times_s": [round(float(time) - self._zero, 6) for time, _ in row["values"]],
                "values": [_number(value) for _, value in row["values"]],
            }
            for row in rows[:MOST_SERIES]
        ]
        return series, max(0, len(rows) - MOST_SERIES)

    def _ask(self, path: str, parameters: Mapping[str, str]) -> Any:
        connection = http.client.HTTPConnection(self._host, self._port, timeout=ANSWER_WITHIN_S)
        try:
            form = {"Content-Type": "application/x-www-form-urlencoded"}
            connection.request("POST" if parameters else "GET", path, urlencode(parameters) or None, form)
            body = connection.getresponse().read(LARGEST_BYTES + 1)
        finally:
            connection.close()
        if len(body) > LARGEST_BYTES:
            raise ValueError(f"an answer of more than {LARGEST_BYTES >> 20} MiB")
        content = json.loads(body)
        if not isinstance(content, dict) or content.get("status") != "success":
            fault = content.get("error") if isinstance(content, dict) else None
            raise ValueError(str(fault or "the answer is not from Prometheus")[:500])
        return content["data"]


def _number(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None


def _words(error: Exception) -> str:
    return str(error)[:500] or type(error).__name__
