"""The JSON of `hit`, `explain` and reports (docs/reference/*-json.md): seconds as floats, null if unknown."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass
from typing import TYPE_CHECKING, Any

from loadlens import __version__
from loadlens.machine import calibration
from loadlens.machine.calibration import Calibration
from loadlens.model.comparison import Comparison, History
from loadlens.model.explanation import Explanation, Rung
from loadlens.model.finding import Estimate, Figure, Grade, NotMeasured, Undecided
from loadlens.model.notes import NOTES
from loadlens.model.report import ObjectiveRow, Report
from loadlens.model.result import EngineResult
from loadlens.model.workload import Closed, Plan

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

SCHEMA_VERSION = 1
_TIMES = ("response_time_s", "service_time_s", "lag_s", "phases_s")
_STEP_KEYS = ("name", "requests", "throughput_rps", "response_time_s", "service_time_s")


def hit_as_json(
    result: Mapping[str, Any],
    plan: Plan,
    calibrated: Calibration | None = None,
    objectives: Sequence[ObjectiveRow] = (),
) -> str:
    """Return one line of JSON for the result of a plan with one stream."""
    content = _hit(result, plan, calibrated) | {"objectives": [_plain(row) for row in objectives]}
    return json.dumps(content, ensure_ascii=False, allow_nan=False)


def _hit(written: Mapping[str, Any], plan: Plan, calibrated: Calibration | None) -> dict[str, object]:
    """Return the blocks of the result, as the engine wrote them, under the names that scripts rely on."""
    made, stream = EngineResult.from_json(written), written["streams"][0]
    generator = made.generator
    reached = calibration.reach(generator.requests_per_s, generator.threads, calibrated)
    mixed = {"throughput_rps", *_TIMES} if made.load_changes else set()  # figures that stand for no level
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": f"loadlens {__version__}",
        "target": _target(plan),
        "load": _load(plan),
        "duration_s": made.measured_s,
        "ended": made.status,
        "load_changes": [asdict(change) for change in made.load_changes],
        **{key: stream[key] for key in ("requests", "status")},
        "checks": [check for step in stream["steps"] for check in step["checks"]],
        **{key: None if key in mixed else stream[key] for key in ("errors", "throughput_rps", *_TIMES)},
        "steps": [
            {key: None if key in mixed else step[key] for key in _STEP_KEYS} for step in stream["steps"]
        ],
        **{key: stream[key] for key in ("bytes", "connections")},
        **{key: stream.get(key, []) for key in ("failing_answers", "feeds")},
        **{key: stream[key] for key in ("tls", "little")},
        "generator": written["generator"],
        "calibration": None if reached is None else asdict(reached),
        "driver": written.get("driver"),
        "nodes": [asdict(node) for node in made.nodes],
    }


def _target(plan: Plan) -> str:
    stream = plan.streams[0]
    path = "" if len(stream.scenarios) > 1 else stream.scenarios[0].steps[0].path
    return f"{stream.target.origin}{path}"


def _without_unset(fields: Sequence[tuple[str, object]]) -> dict[str, object]:
    return {name: value for name, value in fields if value is not None}


def _load(plan: Plan) -> dict[str, object]:
    stream = plan.streams[0]
    methods = {step.method for scenario in stream.scenarios for step in scenario.steps}
    workload, method = stream.workload, methods.pop() if len(methods) == 1 else None
    load: dict[str, object] = {"method": method, "warmup_s": plan.warmup_ns / 1e9, "seed": plan.seed}
    if isinstance(workload, Closed):
        load |= {"kind": "closed", "connections": workload.users, "requests": workload.requests}
        load |= {"ramp_s": workload.ramp_ns / 1e9} if workload.ramp_ns else {}
        load |= {
            name: asdict(law, dict_factory=_without_unset)
            for name, law in (("think", workload.think), ("pace", workload.pace))
            if law is not None and law.kind != "none"
        }
    else:
        load |= {
            "kind": "open",
            "rate_per_s": workload.rate_per_s,
            "arrivals": workload.arrivals,
            "max_in_flight": workload.max_in_flight,
            "overflow": workload.overflow,
            "requests": workload.requests,
        }
        if workload.replay is not None:
            load |= {"replay": asdict(workload.replay, dict_factory=_without_unset)}
    if workload.profile is not None:
        load |= {"profile": asdict(workload.profile)}
    return load | {"connection": stream.connection.reuse, "timeout_s": stream.timeout_ns / 1e9}


# --- the JSON of an answer ----------------------------------------------------------------------------


def explanation_as_json(answer: Explanation) -> str:
    """Return the answer of `explain` as one line of JSON (docs/reference/explain-json.md)."""
    return json.dumps(explanation_as_dict(answer), ensure_ascii=False, allow_nan=False)


def explanation_as_dict(answer: Explanation) -> dict[str, object]:
    """Return the answer under the names that scripts rely on."""
    at_least = {"at_least": answer.at_least} if isinstance(answer.capacity, Undecided) else {}
    return {
        "schema": SCHEMA_VERSION,
        "tool": f"loadlens {__version__}",
        "target": answer.target,
        "requests": list(answer.requests),
        "tier": answer.tier,
        "budget_s": answer.budget_s,
        "used_s": answer.used_s,
        "stopped_because": answer.stopped_because,
        "stopped": answer.stopped_words,
        "answer": answer.sentence,
        "limit": answer.limit,
        "grade": answer.grade,
        "capacity": _bare(answer.capacity) | at_least,
        "knee_users": answer.knee_users,
        "time": answer.time,
        "others": answer.others,
        "do": answer.do,
        "brings": answer.brings,
        "ladder": [_rung(rung) for rung in answer.ladder],
        "findings": [_fields(f) | {"is_note": f.rule in NOTES} for f in answer.findings],
        "absent": _plain(answer.absent),
        "not_assessed": _plain(answer.not_assessed),
        "unknown": _plain(answer.unknown),
        "cautions": list(answer.cautions),
        "found": list(answer.found),
        "missing": list(answer.missing),
        "seed": answer.seed,
        "record": answer.record,
        "objectives": [_plain(row) for row in answer.objectives],
        "quotes": list(answer.quotes),
        "code": _plain(answer.code),
        "rates": _plain(answer.rates),
    }


def comparison_as_json(answer: Comparison) -> str:
    """Return the answer of `compare` as one line of JSON (docs/reference/compare-json.md)."""
    content = {"schema": SCHEMA_VERSION, "tool": f"loadlens {__version__}", **_fields(answer)}
    content |= {"is_missed": answer.is_missed, "effects": [_fields(effect) for effect in answer.effects]}
    return json.dumps(content, ensure_ascii=False, allow_nan=False)


def history_as_json(answer: History) -> str:
    """Return the answer of `history` as one line of JSON (docs/reference/history-json.md)."""
    content = {"schema": SCHEMA_VERSION, "tool": f"loadlens {__version__}", **_fields(answer)}
    return json.dumps(content, ensure_ascii=False, allow_nan=False)


def _rung(rung: Rung) -> dict[str, object]:
    probe = rung.probe
    return {
        "curve": rung.curve,
        "users": rung.users,
        "trials": rung.trials,
        "throughput_per_s": _bare(rung.throughput),
        "response_s": {"mean": _bare(rung.mean), "p50": _bare(rung.p50), "p99": _bare(rung.p99)},
        "failed_share": _bare(rung.failed),
        "cpu_cores": rung.cpu_cores,
        "probe": None
        if probe is None
        else {
            "request": probe.request,
            "mean_s": _bare(probe.mean),
            "p99_s": _bare(probe.p99),
            "delayed_share": _bare(probe.delayed),
            "count": probe.count,
        },
        "ended_early": rung.ended_early or None,
    }


def _bare(figure: Figure) -> dict[str, object]:
    """A figure whose metric the key above it names: point, low, high; or why there is none."""
    match figure:
        case Estimate():
            ends = {"point": figure.point, "low": figure.low, "high": figure.high}
            content = {name: _plain(end) for name, end in ends.items()}
            return content | {"unit": figure.unit, "trials": figure.trials, "method": figure.method}
        case Undecided():
            return {"undecided": figure.reason, "unit": figure.unit}
        case NotMeasured():
            return {"not_measured": figure.reason}


# --- the JSON of a report -----------------------------------------------------------------------------


def report_as_json(report: Report) -> str:
    """Return a report as one line of JSON (docs/reference/report-json.md)."""
    return json.dumps(_plain(report), ensure_ascii=False, allow_nan=False)


_FIGURES: Mapping[type, str] = {Estimate: "estimate", Undecided: "undecided", NotMeasured: "not measured"}


def _plain(value: object) -> object:
    """A value of a report as JSON has it: figures say their kind, cells of a matrix their place."""
    if isinstance(value, Grade):
        return value.word
    if is_dataclass(value) and not isinstance(value, type):
        return _fields(value)
    if isinstance(value, Mapping):
        if any(isinstance(key, tuple) for key in value):
            return [{"row": row, "column": column, **_fields(cell)} for (row, column), cell in value.items()]
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _fields(value: DataclassInstance) -> dict[str, object]:
    content = {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    kind = _FIGURES.get(type(value))
    return content if kind is None else {"figure": kind, **content}
