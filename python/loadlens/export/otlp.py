"""OTLP over HTTP with JSON bodies: metrics, and a span for each slow or failed request that carries a trace.

The JSON encoding belongs to the protocol (opentelemetry-proto, 1.x), so it needs no package. Numbers of 64
bits are strings there, ids are hexadecimal.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from loadlens.export.slow_requests import SlowRequest
from loadlens.export.tally import SCALE, Distribution, Family, Point, Snapshot

METRICS_PATH: Final = "/v1/metrics"
TRACES_PATH: Final = "/v1/traces"
HEADERS: Final = {"Content-Type": "application/json"}
_CUMULATIVE: Final = 2
_CLIENT: Final = 3  # kind of a span
_ERROR: Final = 2  # status of a span


def metrics(snapshots: Iterable[Snapshot], version: str) -> bytes:
    """Return the body of an ExportMetricsServiceRequest: the points of each metric in the order of time."""
    points: dict[Family, list[dict[str, Any]]] = {}
    for snapshot in snapshots:
        for point in snapshot.points:
            points.setdefault(point.family, []).append(_data_point(snapshot, point))
    content = [
        {"name": family.name, "unit": family.unit, "description": family.what, **_data(family, of)}
        for family, of in points.items()
    ]
    scope = {"scope": _scope(version), "metrics": content}
    return _body({"resourceMetrics": [{"resource": _resource(version), "scopeMetrics": [scope]}]})


def _data(family: Family, points: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    match family.kind:
        case "counter":
            return {"sum": {"dataPoints": points, "aggregationTemporality": _CUMULATIVE, "isMonotonic": True}}
        case "gauge":
            return {"gauge": {"dataPoints": points}}
        case "histogram":
            return {"exponentialHistogram": {"dataPoints": points, "aggregationTemporality": _CUMULATIVE}}


def _data_point(snapshot: Snapshot, point: Point) -> dict[str, Any]:
    content: dict[str, Any] = {
        "attributes": _attributes(dict(point.labels)),
        "startTimeUnixNano": str(snapshot.start_ns),
        "timeUnixNano": str(snapshot.time_ns),
    }
    value = point.value
    if isinstance(value, Distribution):
        places = sorted(value.exponential)
        first = places[0] if places else 0
        dense = range(first, places[-1] + 1) if places else range(0)
        return content | {
            "count": str(value.count),
            "sum": value.sum_s,
            "scale": SCALE,
            "zeroCount": str(value.zero),
            "positive": {
                "offset": first,
                "bucketCounts": [str(value.exponential.get(place, 0)) for place in dense],
            },
        }
    if point.family.unit.startswith("{"):
        return content | {"asInt": str(int(value))}
    return content | {"asDouble": value}


def spans(requests: Iterable[SlowRequest], version: str) -> bytes:
    """Return the body of an ExportTraceServiceRequest: the root span of each request's trace."""
    content = []
    for request in requests:
        attributes: dict[str, str | int | float] = {
            "http.request.method": request.method,
            "url.template": request.path,
            "server.address": request.host,
            "server.port": request.port,
            "loadlens.run": request.run,
            "loadlens.case": request.case,
            "loadlens.trial": request.trial,
            "loadlens.step": request.step,
            "loadlens.seq": request.seq,
            "loadlens.user": request.user,
            "loadlens.wait": request.wait_s,
        }
        if request.status:
            attributes["http.response.status_code"] = request.status
        if request.outcome != "ok":
            attributes["error.type"] = request.outcome
        span: dict[str, Any] = {
            "traceId": request.trace.trace_id,
            "spanId": request.trace.span_id,
            "name": f"{request.method} {request.path}",
            "kind": _CLIENT,
            "startTimeUnixNano": str(request.sent_ns),
            "endTimeUnixNano": str(request.done_ns),
            "attributes": _attributes(attributes),
        }
        if request.outcome != "ok":
            span["status"] = {"code": _ERROR, "message": request.outcome}
        content.append(span)
    scope = {"scope": _scope(version), "spans": content}
    return _body({"resourceSpans": [{"resource": _resource(version), "scopeSpans": [scope]}]})


def _resource(version: str) -> dict[str, Any]:
    return {"attributes": _attributes({"service.name": "loadlens", "service.version": version})}


def _scope(version: str) -> dict[str, Any]:
    return {"name": "loadlens", "version": version}


def _attributes(labels: Mapping[str, str | int | float]) -> list[dict[str, Any]]:
    return [{"key": name, "value": _any_value(name, value)} for name, value in labels.items()]


# Integers by the semantic conventions; a series keeps its labels as text.
_WHOLE: Final = frozenset({"server.port", "http.response.status_code"})


def _any_value(name: str, value: str | int | float) -> dict[str, Any]:
    if isinstance(value, int) or (name in _WHOLE and isinstance(value, str)):
        return {"intValue": str(value)}
    return {"doubleValue": value} if isinstance(value, float) else {"stringValue": value}


def _body(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode()
