"""Conversion of a driver's report to the shape of our engine's result, with null for unmeasured values."""

from __future__ import annotations

from typing import Any

from loadlens.run.external.base import QUANTILES, Times, ToolReport

NOT_REPORTED = ("due", "issued", "check_failed", "dropped", "waiting", "skipped")


def result_of(
    report: ToolReport,
    *,
    stopped: bool,
    began_unix_ns: int,
    began_monotonic_ns: int,
    cpu_s: float | None = None,
) -> dict[str, Any]:
    """Return a result (docs/reference/record.md) with null for everything that the driver does not report.

    Args:
        report: The driver's report.
        stopped: True if it was ended early.
        began_unix_ns: Best estimate of the start of its load.
        began_monotonic_ns: The same by CLOCK_MONOTONIC.
        cpu_s: CPU time of its processes, from the operating system.
    """
    return {
        "schema_version": 1,
        "status": "stopped" if stopped else "complete",
        "reasons": [],
        "t0_unix_ns": began_unix_ns,
        "t0_monotonic_ns": began_monotonic_ns,
        "warmup_s": 0.0,
        "measured_s": report.seconds,
        "elapsed_s": report.seconds,
        "streams": [_stream(report)],
        "generator": {
            "threads": None,
            "busy": None,
            "runq_wait": None,
            "lag_p99_s": None,
            "lag_limit_s": None,
            "is_marked_late": None,
            "requests_per_s": None,
            "ceiling_rps": None,
            "cpu_s": cpu_s,
            "verdict": None,
            "reasons": list(report.notes),
        },
    }


def _stream(report: ToolReport) -> dict[str, Any]:
    bad = report.unexpected_status
    ok = None if bad is None else report.answered - bad
    requests: dict[str, int | None] = dict.fromkeys(NOT_REPORTED)
    rate = None if ok is None or report.seconds <= 0 else ok / report.seconds
    times = _distribution(report.times)
    return {
        "name": "load",
        "role": "load",
        "kind": "closed",
        "requests": requests
        | {
            "answered": report.answered,
            "ok": ok,
            "unexpected_status": bad,
            "failed": report.failed,
            "in_flight": report.in_flight,
        },
        "in_warmup": None,
        "after_end": None,
        "law_holds": None,
        "law": None,
        "status": None if report.statuses is None else dict(report.statuses),
        "errors": {
            name: {"count": count, "first_s": None, "last_s": None, "samples": []}
            for name, count in report.errors.items()
            if count
        },
        "throughput_rps": {"value": rate, "low": None, "high": None},
        "response_time_s": None,
        "service_time_s": times,
        "failed_time_s": None,
        "lag_s": None,
        "phases_s": None,
        "steps": [],
        "groups": [],
        "feeds": [],
        "bytes": {"out": report.bytes_out, "in_wire": report.bytes_in, "in_body": report.bytes_in_bodies},
        "connections": None,
        "tls": None,
        "little": {"ratio": None, "in_flight_mean": None, "edge_bound": None, "verdict": "unknown"},
    }


def _distribution(times: Times | None) -> dict[str, Any] | None:
    if times is None:
        return None
    values = {"mean": times.mean, **{name: times.quantiles.get(name) for name in QUANTILES}}
    return {
        "count": times.count,
        "censored": times.censored,
        "stdev": times.deviation,
        "min": times.least,
        "max": times.most,
        "independent": None,
        "method": None,
        "histogram": None,
        **{name: _quantity(value) for name, value in values.items()},
    }


def _quantity(value: float | None) -> dict[str, Any]:
    return {"value": value, "low": None, "high": None, "undecided": None, "independent_above": None}
