"""The kinds of single values in a study file: how each is read, refused and described."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Iterator
from typing import Any, Final
from urllib.parse import urlsplit

from loadlens import units
from loadlens.errors import nearest
from loadlens.model.study import COMPARED, METRICS, Edge, Objective
from loadlens.model.topology import Entry, Scalar
from loadlens.model.workload import Auth, Bounds, Connection
from loadlens.study.objectives import objective
from loadlens.study.parse import load_grammar, placeholders
from loadlens.study.parse.schema import Schema, Value
from loadlens.units import UnitError, shown

# Shared schemas, by name; `reference.py` writes them under $defs.
SHARED_SCHEMAS: Final[dict[str, Schema]] = {
    "name": {
        "description": "A value with a $name in it, filled when the study is planned",
        "type": "string",
        "pattern": r"\$[A-Za-z_]",
    },
    "text": {"description": "Text; a number is taken as written", "type": ["string", "number", "boolean"]},
    "duration": {
        "description": "500ms, 30s, 2m, 1h30m; a bare number is seconds",
        "anyOf": [
            {"type": "number", "minimum": 0},
            {"type": "string", "pattern": r"^\s*([0-9.]+\s*(ns|us|µs|ms|s|sec|m|min|h|d)?\s*)+$"},
        ],
    },
    "count": {
        "description": "100, 1k, 2.5M",
        "anyOf": [
            {"type": "number", "minimum": 0},
            {"type": "string", "pattern": r"^\s*[0-9.]+\s*[kKMG]?\s*$"},
        ],
    },
    "rate": {
        "description": "50, 20/s, 3000/m, 15k/min",
        "anyOf": [
            {"type": "number", "exclusiveMinimum": 0},
            {"type": "string", "pattern": r"^\s*[0-9.]+\s*[kKMG]?\s*(/\s*(s|sec|m|min|h))?\s*$"},
        ],
    },
    "share": {
        "description": "30% or 0.3",
        "anyOf": [
            {"type": "number", "minimum": 0, "maximum": 1},
            {"type": "string", "pattern": r"^\s*[0-9.]+\s*%?\s*$"},
        ],
    },
}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


# ------------------------------------------------------------------------------------------------- converters


def _text(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return _bool_text(value)
    text = str(value)
    if "\0" in text:
        raise UnitError("text with a NUL byte", "text without it")
    return text


def _bool_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    raise UnitError(f"wanted text, got {shown(value)}", "one text")


def _command(value: Any) -> str:
    """A command line as the testbed will split it: quotes as in a shell, and no shell."""
    text = _text(value)
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UnitError(f"{shown(text)} is no command: {str(error).lower()}", "closed quotes") from None
    if not words:
        raise UnitError("the command is empty", "python -m http.server $port")
    return text


def _one_line(value: Any) -> str:
    text = _text(value)
    if not text or not text.isprintable():
        raise UnitError(f"wanted text on one line, got {shown(text)}", "printable characters only")
    return text


def _name_of_secret(value: Any) -> str:
    text = _text(value)
    if not re.fullmatch(r"[A-Za-z0-9_.-]{1,80}", text):
        raise UnitError(f"{shown(text)} is no name of a header or field", "the name alone: sig")
    return text


def _label(value: Any) -> str:
    text = _one_line(value)
    if len(text) > 80 or text != text.strip():
        raise UnitError(
            f"{shown(text)} cannot be a name in a table", "at most 80 characters, no outer spaces"
        )
    return text


def _path(value: Any) -> str:
    text = _text(value)
    without_templates = re.sub(r"\{\{.*?\}\}", "", text)
    if not text.startswith("/") and not re.match(r"\{\{\s*raw\s", text):
        hint = "/api/items: host and port come from `entry`" if "://" in text else f"/{text[:60]}"
        raise UnitError(f"a path begins with /, got {shown(text)}", hint)
    if not re.fullmatch(r"[!-~]*", without_templates):
        raise UnitError(
            f"{shown(text)} holds a blank or a character beyond ASCII", "%20 for a blank, %C3%A9 for é"
        )
    rest = _IN_PATH.sub("", without_templates)
    if rest.startswith("#"):
        raise UnitError(f"{shown(text)} holds #, after which nothing is sent", "the path without it, or %23")
    if rest:
        raise UnitError(f"{shown(text)} holds {rest[0]!r} as such", f"%{ord(rest[0]):02X} for it")
    return text


# Path and query of RFC 3986, as the engine sends them.
_IN_PATH: Final = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2}")


def _header_value(value: Any) -> str:
    text = _text(value)
    if any((char < " " and char != "\t") or char == "\x7f" for char in text):
        raise UnitError(f"{shown(text)} holds a control character", "one line of text")
    return text


def _json_path(value: Any) -> str:
    text = _text(value)
    if not JSON_PATH.fullmatch(text):
        raise UnitError(f"{shown(text)} is not a path into JSON", "data.items[0].id")
    return text


_KEY, _BRACKETS = r"[^.\[\]\s]+", r"\[(?:0|-?[1-9]\d{0,8}|\d{1,9}|\"[^\"]*\"|'[^']*')\]"
JSON_PATH: Final = re.compile(rf"(?:{_BRACKETS}|{_KEY})(?:\.{_KEY}|{_BRACKETS})*")


def _choice(*names: str, later: tuple[str, ...] = ()) -> Callable[[Any], str]:
    """One of some words; `later` are words of the format that cannot be run yet."""

    def convert(value: Any) -> str:
        if isinstance(value, str) and value in names:
            return value
        allowed = ", ".join(names)
        if isinstance(value, str) and value in later:
            raise UnitError(f"{value} is not supported yet; supported: {allowed}", allowed)
        near = nearest(value, [*names, *later]) if isinstance(value, str) else None
        question = f"; did you mean {near}?" if near else ""
        raise UnitError(f"{shown(value)} is none of {allowed}{question}", near or names[0])

    return convert


def _bounds(value: Any) -> Bounds:
    """A number that must be met, or {above: , below: }."""
    example = "10, or {above: 0}, or {above: 0, below: 100}"
    if not isinstance(value, dict):
        return Bounds(equals=_bound(value, example))
    if not value or set(value) - {"above", "below"}:
        raise UnitError(f"not bounds: {shown(value)}", example)
    bounds = Bounds(**{side: _bound(bound, example) for side, bound in value.items()})
    if bounds.above is not None and bounds.below is not None and bounds.above >= bounds.below:
        raise UnitError(f"nothing is above {bounds.above:g} and below {bounds.below:g}", example)
    return bounds


def _bound(value: Any, example: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise UnitError(f"wanted a number, got {shown(value)}", example)
    if int(value) != int(float(value)):
        near = f"{float(value):.0f}"
        message = f"{value} is no number that a bound can keep: it would be {near}"
        raise UnitError(message, f"{near}; or json: {{PATH: {value}}}, which compares whole numbers exactly")
    return float(value)


def _latency(value: Any) -> int:
    """A time that answers stay below, bare or as {below: }."""
    if isinstance(value, dict):
        if list(value) != ["below"]:
            raise UnitError(
                f"a latency is checked from above, got {shown(value)}", "200ms, or {below: 200ms}"
            )
        value = value["below"]
    return units.duration_ns(value, at_least_ns=1)


_AUTH_EXAMPLE: Final = 'basic: {user: alice, password: "{{env PASSWORD}}"}, or bearer: "{{env TOKEN}}"\''
_ENV: Final = re.compile(r"\s*\{\{\s*env\s+([^\s{}=]+)\s*\}\}\s*")


def _auth(value: Any) -> Auth:
    """Credentials whose secret is an environment variable; a literal one would be kept in every record."""
    if value == "none":
        return Auth("none")
    if isinstance(value, dict) and list(value) == ["bearer"]:
        return Auth("bearer", token_env=_env(value["bearer"], "bearer"))
    basic = value.get("basic") if isinstance(value, dict) and len(value) == 1 else None
    if not isinstance(basic, dict) or set(basic) != {"user", "password"}:
        raise UnitError("neither none, nor basic with user and password, nor bearer", _AUTH_EXAMPLE)
    user = _one_line(basic["user"])
    if ":" in user or "{{" in user:
        raise UnitError(f"{shown(user)} cannot be a user: no colon (RFC 7617) and no {{{{", _AUTH_EXAMPLE)
    return Auth("basic", user=user, password_env=_env(basic["password"], "password"))


def _env(value: Any, key: str) -> str:
    match = _ENV.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise UnitError(
            f"{key} is not {{{{env NAME}}}}: a secret never stands in a study file", _AUTH_EXAMPLE
        )
    return match[1]


def _connection(value: Any) -> Connection:
    if value == "keep":
        return Connection("keep")
    if value == "new":
        return Connection("new")
    try:
        return Connection("requests", requests=units.count(value, at_least=1, at_most=2**32 - 1))
    except UnitError:
        message = f"{shown(value)} says nothing about connections"
        raise UnitError(message, "keep, new, or a number of requests such as 100") from None


def _warmup(value: Any) -> int | None:
    return None if value == "auto" else units.duration_ns(value)


def _mix(value: Any) -> dict[str, float]:
    """Scenario -> weight."""
    example = "register, or {register: 5, health: 1}"
    if isinstance(value, str):
        return {value: 1.0}
    if not isinstance(value, dict) or not value:
        raise UnitError(f"wanted a scenario or weights, got {shown(value)}", example)
    weights: dict[str, float] = {}
    for scenario, weight in value.items():
        number = weight if isinstance(weight, (int, float)) and not isinstance(weight, bool) else 0
        if not 0 < number <= 1e9:
            raise UnitError(f"weight of {scenario} is above 0, got {shown(weight)}", example)
        weights[scenario] = float(number)
    return weights


def _entry(value: Any) -> Entry:
    """A service, a service's port, or a URL."""
    text = _one_line(value)
    if "://" not in text:
        service, dot, port = text.partition(".")
        if dot and not port:
            raise UnitError(f"{shown(text)} ends in a dot", "api or api.http")
        return Entry(service=service, port=port or None)
    try:
        parts = urlsplit(text)
        host, port_number = parts.hostname, parts.port
    except ValueError:
        raise UnitError(f"{shown(text)} is not a URL", "http://127.0.0.1:8000") from None
    if parts.scheme not in ("http", "https") or not host or port_number == 0:
        raise UnitError(f"{shown(text)} is not an HTTP URL", "http://127.0.0.1:8000")
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise UnitError(
            f"an entry is a host and a port, got {shown(text)}", "the path into the steps: get: /path"
        )
    if parts.username is not None:
        raise UnitError("an entry with a name and a password", "an Authorization header with {{env NAME}}")
    return Entry(url=f"{parts.scheme}://{parts.netloc}")


def _scalar(value: Any) -> Scalar:
    """A plain value: what `$names` stand for is not built from other names."""
    if isinstance(value, str):
        pieces = placeholders.split(value, frozenset())
        if not any(isinstance(piece, placeholders.Name) for piece in pieces):
            return str(pieces[0]) if pieces else ""
        raise UnitError(
            f"{shown(value)}: a name in here would not be filled", "a plain value; $$ for a dollar"
        )
    if isinstance(value, int) and not units.fits_64_bits(value):
        raise UnitError(f"{shown(value)} does not fit 64 bits", "quotes, to make it text")
    if isinstance(value, (int, float)):
        return value
    raise UnitError(f"wanted one value, got {shown(value)}", "text, a number, true or false")


def _metric(value: Any) -> str:
    if isinstance(value, str) and value in METRICS:
        return value
    near = nearest(value, METRICS) if isinstance(value, str) else None
    question = f"; did you mean {near}?" if near else ""
    raise UnitError(f"{shown(value)} is no metric{question}", near or "response_time.mean, failed.share")


def _objective(value: Any) -> Objective:
    return objective(_text(value))


def _identifier(value: Any) -> str:
    text = _text(value)
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", text):
        raise UnitError(f"{shown(text)} cannot name a study", "letters, digits, `.`, `_`, `-`: my-study")
    return text


def _size(value: Any) -> int:
    size = units.size_bytes(value)
    if size < 1 << 20:
        raise UnitError(f"{shown(value)} is less than any process needs", "256MiB")
    return size


def _cores(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= 4096:
        raise UnitError(f"wanted a number of cores above 0, got {shown(value)}", "0.3, 1 or 2")
    return float(value)


def _package(value: Any) -> str:
    text = _text(value)
    if not re.fullmatch(r"[a-z0-9][a-z0-9+.-]{1,80}(=[A-Za-z0-9.+:~-]{1,80})?", text):
        raise UnitError(
            f"{shown(text)} is no name of a package", "erlang-jiffy, or with a version erlang-jiffy=1.1.1-1"
        )
    return text


def _truth(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise UnitError(f"wanted true or false, got {shown(value)}", "true, or a $name of such a value")


def _cpus(value: Any) -> tuple[int, ...]:
    """Numbers of CPUs: `0`, `[0, 2]` or, as the kernel writes them, `0-3,6`."""
    example = "0, [0, 1] or 0-3"
    cores: list[int] = []
    for part in value if isinstance(value, list) else str(value).split(","):
        span = re.fullmatch(r"\s*([0-9]{1,5})\s*(?:-\s*([0-9]{1,5})\s*)?", str(part))
        if span is None or int(span[2] or span[1]) < int(span[1]):
            raise UnitError(f"{shown(part)} is no number of a CPU", example)
        cores += range(int(span[1]), int(span[2] or span[1]) + 1)
    if not cores or len(set(cores)) != len(cores):
        raise UnitError("a set of CPUs names each once, and at least one", example)
    return tuple(sorted(cores))


def _edge(value: Any) -> Edge:
    """A place in the measured part."""
    if isinstance(value, str) and value.strip().endswith("%"):
        return Edge(share=units.share(value))
    return Edge(seconds=units.duration_s(value))


def _plain_name(value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,63}", value):
        raise UnitError(f"{shown(value)} cannot be a name", "letters, digits and _, a letter first: work")
    return value


def _promql(value: Any) -> str:
    """An expression as written; of one that only a server answers the study is asked whether it has one."""
    from loadlens import promql  # takes time to import

    text = _text(value).strip()
    try:
        promql.parse(text)
    except promql.NotOurs:
        pass
    except promql.PromqlError as error:
        raise UnitError(f"not PromQL: {error}", "rate(requests_total[5s])") from None
    return text


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise UnitError(f"wanted a number, got {shown(value)}", "4.5")
    return float(value)


def _schema_version(value: Any) -> int:
    if value != 1 or isinstance(value, bool):
        raise UnitError(f"schema {shown(value)} is unknown to this version", "schema: 1")
    return 1


def _json_wanted(value: Any) -> Any:
    """A JSON value that answers are compared with."""
    for number in _beyond_64_bits(value):
        message = f"{number} does not fit 64 bits and would be compared as {float(number)!r}"
        raise UnitError(message, rf"regex: '\b{number}\b', which compares text")
    return value


def _json_sent(value: Any) -> Any:
    """A JSON value that is sent."""
    for number in _beyond_64_bits(value):
        message = f"{number} does not fit 64 bits and would be sent as {float(number)!r}"
        raise UnitError(message, f"the whole body as text: body: '{{\"id\": {number}}}'")
    return value


def _beyond_64_bits(value: Any) -> Iterator[int]:
    """The whole numbers in a JSON value that would become the nearest float."""
    if isinstance(value, int) and not units.fits_64_bits(value):
        yield value
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for item in items:
        yield from _beyond_64_bits(item)


def _counted(at_least: int, at_most: int) -> Callable[[Any], int]:
    return lambda value: units.count(value, at_least=at_least, at_most=at_most)


def _lasting(at_least_ns: int) -> Callable[[Any], int]:
    return lambda value: units.duration_ns(value, at_least_ns=at_least_ns)


# ------------------------------------------------------------------------------------------ kinds of values


def counts(at_least: int = 1, at_most: int = units.LARGEST_COUNT) -> Value:
    """A count that may hold a name."""
    return Value("count", _counted(at_least, at_most), _ref("count"))


def choices(*names: str, later: tuple[str, ...] = ()) -> Value:
    """One of some words, or a name."""
    return Value(
        " or ".join(f"`{word}`" for word in names), _choice(*names, later=later), {"enum": list(names)}
    )


def fixed(words: str, convert: Callable[[Any], Any], accepts: Schema) -> Value:
    """A value that stands as it is, without names."""
    return Value(words, convert, accepts, is_fixed=True)


def fixed_choice(*names: str) -> Value:
    """One of some words, no name."""
    return fixed(" or ".join(f"`{word}`" for word in names), _choice(*names), {"enum": list(names)})


TEXT: Final = Value("text", _text, _ref("text"), is_text=True)
TESTBED_TEXT: Final = Value("text", _text, _ref("text"), is_text=True, is_testbed=True)
COMMAND: Final = Value("command", _command, _ref("text"), is_text=True, is_testbed=True)
LINE: Final = Value("text on one line", _one_line, _ref("text"), is_text=True)
PACKAGE: Final = Value("name of a package", _package, {"type": "string"})
LABEL: Final = Value("name", _label, _ref("text"), is_text=True)
PATH: Final = Value("path", _path, {"type": "string", "pattern": r"^(/|\{\{\s*raw\s)"}, is_text=True)
HEADER_VALUE: Final = Value("text on one line", _header_value, _ref("text"), is_text=True)
JSON_WANTED: Final = Value("JSON value", _json_wanted, {}, is_nested=True, is_nothing_allowed=True)
JSON_SENT: Final = Value("JSON value", _json_sent, {}, is_nested=True, is_nothing_allowed=True)
JSON_PATH_VALUE: Final = Value("path into JSON", _json_path, {"type": "string"}, is_text=True)
_BOUNDS_SCHEMA: Final[Schema] = {
    "anyOf": [
        {"type": "number"},
        {
            "type": "object",
            "properties": {"above": {"type": ["number", "string"]}, "below": {"type": ["number", "string"]}},
            "minProperties": 1,
            "additionalProperties": False,
        },
    ]
}
_ENV_SCHEMA: Final[Schema] = {"type": "string", "pattern": r"^\s*\{\{\s*env\s+[^\s{}=]+\s*\}\}\s*$"}
AUTH: Final = Value(
    "`none`, `{basic: {user: , password: }}` or `{bearer: }`",
    _auth,
    {
        "anyOf": [
            {"const": "none"},
            {
                "type": "object",
                "properties": {
                    "basic": {
                        "type": "object",
                        "properties": {"user": {"type": ["string", "number"]}, "password": _ENV_SCHEMA},
                        "required": ["user", "password"],
                        "additionalProperties": False,
                    },
                    "bearer": _ENV_SCHEMA,
                },
                "minProperties": 1,
                "maxProperties": 1,
                "additionalProperties": False,
            },
        ]
    },
    is_nested=True,
)
BOUNDS: Final = Value("number or `{above: , below: }`", _bounds, _BOUNDS_SCHEMA, is_nested=True)
LATENCY: Final = Value(
    "duration or `{below: duration}`",
    _latency,
    {
        "anyOf": [
            _ref("duration"),
            {
                "type": "object",
                "properties": {"below": {"anyOf": [_ref("duration"), _ref("name")]}},
                "required": ["below"],
                "additionalProperties": False,
            },
        ]
    },
    is_nested=True,
)
DURATION: Final = Value("duration", _lasting(0), _ref("duration"))
DURATION_ABOVE_0: Final = Value("duration", _lasting(1), _ref("duration"))
SECONDS: Final = Value("duration", units.duration_s, _ref("duration"))
SECONDS_ABOVE_0: Final = Value(
    "duration", lambda value: units.duration_s(value, at_least_ns=1), _ref("duration")
)
WARMUP: Final = Value("duration or `auto`", _warmup, {"anyOf": [{"const": "auto"}, _ref("duration")]})
SIZE: Final = Value("size", _size, {"type": ["string", "integer"]})
CORES: Final = Value("number of cores", _cores, {"type": "number", "exclusiveMinimum": 0})
TRUTH: Final = Value("truth value", _truth, {"type": "boolean"})
CPUS: Final = Value(
    "CPU numbers",
    _cpus,
    {"anyOf": [{"type": ["integer", "string"]}, {"type": "array", "items": {"type": ["integer", "string"]}}]},
    is_nested=True,
)
RATE: Final = Value("rate", units.rate_per_s, _ref("rate"))
STATUS: Final = Value("status", _counted(100, 599), {"type": "integer", "minimum": 100, "maximum": 599})
STATUSES: Final = Value(
    "status, `2xx` or `200-299`",
    units.statuses,
    {
        "anyOf": [
            {"type": "integer", "minimum": 200, "maximum": 599},
            {"type": "string", "pattern": r"^\s*([2-5][xX]{2}|[2-5][0-9]{2}(-[2-5][0-9]{2})?)\s*$"},
        ]
    },
)
_PAUSE_SCHEMA: Final[Schema] = {
    "anyOf": [
        _ref("duration"),
        {"type": "string", "pattern": r"^\s*(uniform|exponential)\s*[: ]"},
        {
            "type": "object",
            "properties": {
                "uniform": {"type": "array", "minItems": 2, "maxItems": 2},
                "exponential": {"anyOf": [_ref("duration"), _ref("name")]},
            },
            "minProperties": 1,
            "maxProperties": 1,
            "additionalProperties": False,
        },
    ]
}
_LEGS_SCHEMA: Final[Schema] = {
    "anyOf": [
        {"type": "string"},
        {"type": "array", "minItems": 1, "items": {"type": ["string", "number"]}},
    ]
}
_STAGE_SCHEMA: Final[Schema] = {
    "type": "object",
    "properties": {"duration": {"type": ["string", "number"]}, "target": {"type": ["string", "number"]}},
    "required": ["duration", "target"],
    "additionalProperties": False,
}
_STAGES_SCHEMA: Final[Schema] = {
    "anyOf": [
        *_LEGS_SCHEMA["anyOf"],
        {
            "type": "array",
            "minItems": 1,
            "items": {"anyOf": [{"type": ["string", "number"]}, _STAGE_SCHEMA]},
        },
    ]
}
THINK: Final = Value(
    "duration, `{uniform: [low, high]}` or `{exponential: mean}`",
    load_grammar.think,
    _PAUSE_SCHEMA,
    is_nested=True,
)
PACE: Final = Value(
    "duration, `{uniform: [low, high]}` or `{exponential: mean}`",
    load_grammar.pace,
    _PAUSE_SCHEMA,
    is_nested=True,
)
STAGES: Final = Value("`time:level`, a list of them", load_grammar.stages, _STAGES_SCHEMA, is_nested=True)
STEPS: Final = Value("`time:level`, a list of them", load_grammar.steps, _LEGS_SCHEMA, is_nested=True)
BURSTS: Final = Value("`time:level`, a list of them", load_grammar.bursts, _LEGS_SCHEMA, is_nested=True)
REPLAY: Final = Value(
    "file, `[file, column=NAME, speed=N, from=first]`", load_grammar.replay, _LEGS_SCHEMA, is_nested=True
)
CONNECTION: Final = Value(
    "`keep`, `new` or requests per connection",
    _connection,
    {"anyOf": [{"enum": ["keep", "new"]}, _ref("count")]},
)
MIX: Final = Value(
    "scenario, or scenario -> weight",
    _mix,
    {
        "anyOf": [
            {"type": "string"},
            {
                "type": "object",
                "minProperties": 1,
                "additionalProperties": {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, _ref("name")]},
            },
        ]
    },
    is_nested=True,
)
ENTRY: Final = Value("service, service.port or URL", _entry, {"type": "string"}, is_text=True)

FIXED_SCALAR: Final = fixed("text, number or truth value", _scalar, _ref("text"))
FIXED_TEXT: Final = fixed("text", _text, _ref("text"))
FIXED_LINE: Final = fixed("text on one line", _one_line, _ref("text"))
FIXED_NAME_OF_SECRET: Final = fixed(
    "name", _name_of_secret, {"type": "string", "pattern": r"^[A-Za-z0-9_.-]{1,80}$"}
)
FIXED_NUMBER: Final = fixed("number", _number, {"type": "number"})
FIXED_COUNT: Final = fixed("count", _counted(1, 100_000), _ref("count"))
FIXED_WEIGHT: Final = fixed("count", _counted(1, 10_000), _ref("count"))
FIXED_SEED: Final = fixed("whole number", _counted(0, units.LARGEST_COUNT), _ref("count"))
FIXED_KEPT_ROWS: Final = fixed(
    "`all`, `none` or a number of rows from 1,000",
    units.kept_rows,
    {"anyOf": [{"enum": ["all", "none"]}, _ref("count")]},
)
FIXED_TOLERANCE: Final = fixed("percentage", lambda value: units.share(value, at_most=None), _ref("share"))
FIXED_NAME: Final = fixed(
    "name", _plain_name, {"type": "string", "pattern": r"^[A-Za-z_][A-Za-z0-9_]{0,63}$"}
)
FIXED_EDGE: Final = fixed("duration or percentage", _edge, {"type": ["string", "number"]})
FIXED_STEP: Final = fixed(
    "duration", lambda value: units.duration_s(value, at_least_ns=1_000_000), _ref("duration")
)
FIXED_TRUTH: Final = fixed("truth value", _truth, {"type": "boolean"})
FIXED_PROMQL: Final = fixed("PromQL expression", _promql, _ref("text"))
COMPARED_METRIC: Final = fixed(
    "metric, or `response_time` or `service_time` for their quantiles",
    _choice(*COMPARED),
    {"enum": list(COMPARED)},
)
OBJECTIVE_TEXT: Final = fixed("text such as `p99<200ms`", _objective, {"type": "string", "pattern": "[<>]"})
METRIC: Final = fixed("metric", _metric, {"enum": list(METRICS)})
STUDY_NAME: Final = fixed("name", _identifier, {"type": "string"})
SCHEMA_VERSION: Final = fixed("1", _schema_version, {"const": 1})
