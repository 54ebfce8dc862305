"""A result of the engine as the contract describes it, to be bent by each test."""

from __future__ import annotations

import copy
from typing import Any

from loadlens.model.workload import Closed, Open, Plan, Scenario, Step, Stream, Target


def plan(workload: Closed | Open | None = None) -> Plan:
    """One GET against a loopback port."""
    step = Step("request", "GET", "/json")
    return Plan(
        seed=1,
        streams=(
            Stream(
                "load",
                "load",
                Target("127.0.0.1", 8080, "127.0.0.1:8080"),
                (Scenario("request", 1.0, (step,)),),
                workload or Closed(users=100),
            ),
        ),
        duration_ns=10_000_000_000,
    )


def quantity(
    value: float | None, low: float | None = None, high: float | None = None, **more: Any
) -> dict[str, Any]:
    return {"value": value, "low": low, "high": high, "undecided": None, "independent_above": None} | more


def times(count: int = 243_912) -> dict[str, Any]:
    """The example of the design: p50 2.10 ms, p99 39 ms, p99.9 undecided."""
    return {
        "count": count,
        "censored": 0,
        "mean": quantity(0.00410, 0.00402, 0.00418),
        "stdev": 0.006,
        "min": 0.0003,
        "max": 0.118,
        "p50": quantity(0.00210, 0.00205, 0.00216),
        "p75": quantity(0.0051, 0.0050, 0.0052),
        "p90": quantity(0.00931, 0.00892, 0.00974),
        "p95": quantity(0.0181, 0.0171, 0.0192),
        "p99": quantity(0.0390, 0.0354, 0.0436, independent_above=96.0),
        "p999": quantity(None, undecided="10 above it, needs 20: run 21 s"),
        "independent": 9600.0,
        "histogram": [[0.0003, 10], [0.002, 120_000], [0.01, 100_000], [0.118, 23_902]],
    }


def nothing() -> dict[str, Any]:
    """A distribution in which nothing fell."""
    empty = {key: quantity(None) for key in ("mean", "p50", "p75", "p90", "p95", "p99", "p999")}
    return empty | {
        "count": 0, "censored": 0, "stdev": None, "min": None, "max": None, "independent": None,
        "histogram": [],
    }  # fmt: skip


RESULT: dict[str, Any] = {
    "schema_version": 1,
    "status": "complete",
    "reasons": [],
    "t0_unix_ns": 0,
    "t0_monotonic_ns": 0,
    "warmup_s": 0.0,
    "measured_s": 10.0,
    "elapsed_s": 10.0,
    "streams": [
        {
            "name": "load",
            "role": "load",
            "kind": "closed",
            "requests": {
                "due": 244_012, "issued": 244_012, "answered": 243_912, "ok": 243_912, "unexpected_status": 0,
                "check_failed": 0, "failed": 0, "in_flight": 100, "dropped": 0, "waiting": 0, "skipped": 0,
            },
            "in_warmup": {"answered": 0, "failed": 0},
            "after_end": {"answered": 0, "failed": 0},
            "law_holds": True,
            "law": "due 244012 = issued 244012 + dropped 0 + waiting 0",
            "status": {"200": 243_912},
            "errors": {},
            "throughput_rps": {"value": 24_391.2, "low": 23_950.0, "high": 24_840.0},
            "response_time_s": times(),
            "service_time_s": times(),
            "failed_time_s": nothing(),
            "lag_s": times(),
            "phases_s": {"connect": nothing(), "first_byte": nothing()},
            "tls": None,
            "steps": [],
            "bytes": {"out": 1, "in_wire": 1, "in_body": 1},
            "connections": {
                "wanted": 100, "opened": 100, "kept": 100, "closed_by_server": 0, "closed_by_client": 0,
                "closed_by_error": 0,
            },
            "little": {"ratio": 1.0, "in_flight_mean": 100.0, "edge_bound": 0.01, "verdict": "holds"},
        }
    ],
    "generator": {
        "threads": 1, "busy": 0.38, "runq_wait": 0.001, "lag_p99_s": 0.00006, "lag_limit_s": 0.0001,
        "cpu_s": 3.8, "verdict": "kept_up", "reasons": [],
    },
}  # fmt: skip


def result(**stream: Any) -> dict[str, Any]:
    """A copy of the example with parts of its stream replaced."""
    made = copy.deepcopy(RESULT)
    for key, value in stream.items():
        if isinstance(value, dict) and isinstance(made["streams"][0].get(key), dict):
            made["streams"][0][key] |= value
        else:
            made["streams"][0][key] = value
    return made
