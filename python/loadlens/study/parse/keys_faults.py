"""The keys of a fault proxy: what it does wrong, and how many requests it lets through."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from loadlens import units
from loadlens.model.topology import (
    Admission,
    BandwidthFault,
    ConnectionsFault,
    DelayFault,
    DelayLaw,
    DropFault,
    ErrorFault,
    ProxyFaults,
    ResetFault,
)
from loadlens.study.parse.schema import At, Block, Fields, Key, Schema, Value
from loadlens.study.parse.values import DURATION, TRUTH, choices, counts
from loadlens.study.tree import Tree
from loadlens.units import UnitError, shown

OFF: Final = "off"
_DELAY_EXAMPLE: Final = "20ms, {uniform: [10ms, 30ms]}, {exponential: 20ms}, {normal: [20ms, 5ms]} or off"
_BOUNDS: Final = {"uniform": 2, "exponential": 1, "normal": 2, "lognormal": 2}


def delay_law(value: Any) -> DelayLaw | None:
    """A fixed time or a law of times; none: no delay."""
    if value == OFF or value is False:
        return None
    if not isinstance(value, dict):
        return DelayLaw("fixed", ns=ns) if (ns := units.duration_ns(value)) else None
    kind = next(iter(value), None)
    if len(value) != 1 or kind not in _BOUNDS:
        raise UnitError(f"not one law of a delay: {', '.join(map(str, value)) or 'nothing'}", _DELAY_EXAMPLE)
    given = value[kind]
    bounds = given if isinstance(given, list) else [given]
    if len(bounds) != _BOUNDS[kind]:
        raise UnitError(f"{kind} has {_BOUNDS[kind]} parameters, got {len(bounds)}", _DELAY_EXAMPLE)
    if kind == "lognormal":
        return DelayLaw(kind, median_ns=units.duration_ns(bounds[0], at_least_ns=1), sigma=_sigma(bounds[1]))
    if kind == "exponential":
        return DelayLaw(kind, mean_ns=units.duration_ns(bounds[0], at_least_ns=1))
    first, second = (units.duration_ns(bound) for bound in bounds)
    if kind == "normal":
        return DelayLaw(kind, mean_ns=first, sd_ns=second)
    if first > second:
        raise UnitError(f"uniform from {shown(bounds[0])} down to a shorter one", _DELAY_EXAMPLE)
    return DelayLaw("uniform", low_ns=first, high_ns=second)


def _sigma(value: Any) -> float:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or not 0 <= value <= 10:
        raise UnitError(
            f"the standard deviation of the logarithm is from 0 to 10, got {shown(value)}",
            "{lognormal: [20ms, 0.5]}",
        )
    return float(value)


def _or_off(convert: Callable[[Any], int]) -> Callable[[Any], int | None]:
    return lambda value: None if value == OFF or value is False else convert(value)


def _above_0(convert: Callable[[Any], int], example: str) -> Callable[[Any], int]:
    def checked(value: Any) -> int:
        converted = convert(value)
        if converted < 1:
            raise UnitError(f"{shown(value)} would let nothing through", example)
        return converted

    return checked


def _error_status(value: Any) -> int:
    return units.count(value, at_least=400, at_most=599)


def _rate(value: Any) -> int:
    """Bytes a second: `128KiB`, `1MB/s`."""
    text = value.strip().removesuffix("/s") if isinstance(value, str) else value
    return units.size_bytes(text)


_OFF_SCHEMA: Final[Schema] = {"enum": [OFF, False]}
_DURATION: Final[Schema] = {"$ref": "#/$defs/duration"}
_NAMED_DURATION: Final[Schema] = {"anyOf": [_DURATION, {"$ref": "#/$defs/name"}]}


def _list_of_two(second: Schema) -> Schema:
    either: Schema = {"anyOf": [second, _NAMED_DURATION]}
    return {"type": "array", "items": either, "minItems": 2, "maxItems": 2}


DELAY_LAW: Final = Value(
    "duration, `{uniform: [low, high]}`, `{exponential: mean}`, `{normal: [mean, sd]}`, "
    "`{lognormal: [median, sigma]}` or `off`",
    delay_law,
    {
        "anyOf": [
            _OFF_SCHEMA,
            _DURATION,
            {
                "type": "object",
                "properties": {
                    "uniform": _list_of_two(_DURATION),
                    "exponential": _NAMED_DURATION,
                    "normal": _list_of_two(_DURATION),
                    "lognormal": _list_of_two({"type": "number"}),
                },
                "minProperties": 1,
                "maxProperties": 1,
                "additionalProperties": False,
            },
        ]
    },
    is_nested=True,
)
SHARE: Final = Value("share", units.share, {"$ref": "#/$defs/share"})
ERROR_STATUS: Final = Value(
    "status from 400 to 599", _error_status, {"type": "integer", "minimum": 400, "maximum": 599}
)
COUNT_OR_OFF: Final = Value(
    "count or `off`",
    _or_off(_above_0(lambda value: units.count(value, at_most=1_000_000), "12, or off for no bound")),
    {"anyOf": [_OFF_SCHEMA, {"$ref": "#/$defs/count"}]},
)
RATE_OR_OFF: Final = Value(
    "bytes a second or `off`",
    _or_off(_above_0(_rate, "128KiB, 1MB/s, or off")),
    {"anyOf": [_OFF_SCHEMA, {"type": ["string", "integer"]}]},
)
RETRY_AFTER: Final = Value(
    "duration",
    lambda value: math.ceil(units.duration_ns(value) / units.NS_PER_S),
    {"$ref": "#/$defs/duration"},
)
_SEED: Final = Key(counts(0), "of its draws: the same seed does the same to the same requests", "1")


def _if_any(kind: type, *keys: str) -> Callable[[Fields, Tree, At], Any]:
    """Make a fault if one of these keys says more than `off` or a share of nothing."""
    return lambda fields, node, at: kind(**fields) if any(fields.get(key) for key in keys) else None


def _admission(fields: Fields, node: Tree, at: At) -> Admission | None:
    if fields["in_flight"] is None:
        return None
    if "wait" in node.items and "queue" not in node.items:
        at.fault_of(node, "wait", "a wait without a queue", "queue: how many may wait")
    return Admission(**fields)


DELAY: Final = Block(
    "delay fault",
    _if_any(DelayFault, "request", "response"),
    {
        "request": Key(DELAY_LAW, "time that passes before the request goes on", "off"),
        "response": Key(DELAY_LAW, "time that passes before the first byte of the answer leaves", "off"),
        "seed": _SEED,
    },
    "Time added to each request, as a network does: before the request asks for admission, and after the "
    "service has begun to answer.",
)

RESET_FAULT: Final = Block(
    "reset fault",
    _if_any(ResetFault, "share"),
    {
        "share": Key(SHARE, "of the requests: `1%`", required=True),
        "at": Key(
            choices("request", "response", "body"),
            "request: the service never sees it; response: when it answers; body: within its answer",
            "request",
        ),
        "seed": _SEED,
    },
    "Requests whose connection is reset (RST).",
)

DROP: Final = Block(
    "drop fault",
    _if_any(DropFault, "share"),
    {"share": Key(SHARE, "of the requests: `0.1%`", required=True), "seed": _SEED},
    "Requests that are read and never answered, on a connection that stays open.",
)

ERRORS: Final = Block(
    "error fault",
    _if_any(ErrorFault, "share"),
    {
        "share": Key(SHARE, "of the requests: `5%`", required=True),
        "status": Key(ERROR_STATUS, "how they are answered", "500"),
        "seed": _SEED,
    },
    "Requests that the proxy answers itself; the service never sees them.",
)

BANDWIDTH: Final = Block(
    "bandwidth fault",
    _if_any(BandwidthFault, "rate"),
    {
        "rate": Key(RATE_OR_OFF, "bytes a second: `128KiB`, `1MB/s`", required=True),
        "shared": Key(TRUTH, "whether all connections together have this rate; else each has it", "false"),
        "of": Key(
            choices("response", "request", "both"),
            "bytes to the client, to the service, or both (each at this rate)",
            "response",
        ),
    },
    "How fast bytes go through: a message of L bytes takes L / rate.",
)

CONNECTIONS_FAULT: Final = Block(
    "connection fault",
    _if_any(ConnectionsFault, "most"),
    {
        "most": Key(COUNT_OR_OFF, "connections of clients at once", required=True),
        "above": Key(
            choices("refuse", "hold"),
            "refuse: one more is reset at once; hold: it waits, connected and unread",
            "refuse",
        ),
    },
    "How many connections there may be.",
)

ADMIT: Final = Block(
    "admission",
    _admission,
    {
        "in_flight": Key(COUNT_OR_OFF, "requests that the service has at once", required=True),
        "queue": Key(counts(0, 1_000_000), "requests that wait for a place, first come first served", "0"),
        "wait": Key(DURATION, "how long each of them waits at most", "for ever", field="wait_ns"),
        "status": Key(ERROR_STATUS, "how the others are answered, at once", "503"),
        "retry_after": Key(
            RETRY_AFTER, "what their Retry-After says, in whole seconds", "1s", field="retry_after_s"
        ),
    },
    "Admission control: how many requests the service has at once, how many wait, what happens to others.",
    is_of_case=True,
)

FAULTS: Final = Block(
    "faults",
    ProxyFaults,
    {
        "delay": Key(DELAY, "time added"),
        "reset": Key(RESET_FAULT, "connections reset"),
        "drop": Key(DROP, "requests never answered"),
        "errors": Key(ERRORS, "requests answered with an error"),
        "bandwidth": Key(BANDWIDTH, "bytes slowed down"),
        "connections": Key(CONNECTIONS_FAULT, "connections bounded"),
        "admit": Key(ADMIT, "requests admitted, held back or rejected"),
    },
    "What a fault proxy does to requests; every part is optional, and each counts what it did.",
)
