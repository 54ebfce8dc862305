"""What a driver told, in the shape of our engine's result; what it does not measure is null."""

from __future__ import annotations

from typing import Any

from loadlens.run.external.base import QUANTILES, Times, Told

NOT_TOLD = ("due", "issued", "check_failed", "dropped", "waiting", "skipped")


def result_of(
    told: Told, *, stopped: bool, began_unix_ns: int, began_monotonic_ns: int, cpu_s: float | None = None
) -> dict[str, Any]:
    """The engine's result (docs/reference/record.md) with null for all that the driver does not tell.

    Args:
        told: What it told.
        stopped: Whether a person ended it early.
        began_unix_ns: When its load began, as far as that is known.
        began_monotonic_ns: The same by CLOCK_MONOTONIC.
        cpu_s: CPU time of its processes, which the system tells.
    """
    return {
        "schema_version": 1,
        "status": "stopped" if stopped else "complete",
        "reasons": [],
        "t0_unix_ns": began_unix_ns,
        "t0_monotonic_ns": began_monotonic_ns,
        "warmup_s": 0.0,
        "measured_s": told.seconds,
        "elapsed_s": told.seconds,
        "streams": [_stream(told)],
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
            "reasons": list(told.notes),
        },
    }


def _stream(told: Told) -> dict[str, Any]:
    bad = told.unexpected_status
    ok = None if bad is None else told.answered - bad
    requests: dict[str, int | None] = dict.fromkeys(NOT_TOLD)
    rate = None if ok is None or told.seconds <= 0 else ok / told.seconds
    times = _distribution(told.times)
    return {
        "name": "load",
        "role": "load",
        "kind": "closed",
        "requests": requests
        | {
            "answered": told.answered,
            "ok": ok,
            "unexpected_status": bad,
            "failed": told.failed,
            "in_flight": told.in_flight,
        },
        "in_warmup": None,
        "after_end": None,
        "law_holds": None,
        "law": None,
        "status": None if told.statuses is None else dict(told.statuses),
        "errors": {
            name: {"count": count, "first_s": None, "last_s": None, "samples": []}
            for name, count in told.errors.items()
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
        "bytes": {"out": told.bytes_out, "in_wire": told.bytes_in, "in_body": told.bytes_in_bodies},
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
