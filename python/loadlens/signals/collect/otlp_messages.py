"""Spans and log lines from the bodies that OpenTelemetry exporters post, as protobuf or as JSON.

Only the fields that the record keeps are read. In protobuf, a span that is left out costs the reading of its
trace id and no more, which is why this is not a generated parser (docs/adr/0080).

Source: opentelemetry-proto 1.x, trace.proto and logs.proto; the encoding of protobuf and its JSON mapping.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from loadlens.model.plain import read

PATHS: Final = ("http.route", "url.path", "http.target")  # attributes with the path, the best last
KINDS: Final = ("inside", "inside", "server", "client", "client", "server")  # producer and consumer included
_SERVER: Final = 2
_ERROR: Final = 2  # of a status
_LONGEST: Final = 200  # characters of a name


@dataclass(frozen=True, slots=True)
class Span:
    """One span; ids in hexadecimal."""

    service: str
    trace: str
    id: str
    parent: str  # empty: none
    name: str
    kind: str  # "server", "client" or "inside"
    begin_ns: int  # since 1970
    end_ns: int
    is_error: bool
    path: str = ""  # of a request that it serves


@dataclass(frozen=True, slots=True)
class LogLine:
    """One log record whose body is text."""

    service: str
    severity: int  # 1 to 24; 0: not said
    text: str


Wanted = Callable[[bytes], bool]  # whether spans of this trace id are read


# --- protobuf ----------------------------------------------------------------------------------------------


def spans(body: bytes, wanted: Wanted) -> Iterator[Span | None]:
    """Yield the spans of an ExportTraceServiceRequest; none for each span of a trace that is not wanted.

    Raises:
        ValueError: The body is not such a message.
    """
    for service, begin, end in _grouped(body):
        # exporters write fields in order, the 16 bytes of the trace id first
        if body[begin : begin + 2] == b"\x0a\x10" and not wanted(body[begin + 2 : begin + 18]):
            yield None
            continue
        yield _span(body, begin, end, service, wanted)


def log_lines(body: bytes) -> Iterator[LogLine]:
    """Yield the records with a text of an ExportLogsServiceRequest. Raises ValueError if it is none."""
    for service, begin, end in _grouped(body):
        severity, text = 0, ""
        for number, value, first in _fields(body, begin, end):
            if number == 2:
                severity = value
            elif number == 5 and first >= 0:
                text = _text_value(body, first, value)
        yield LogLine(service, severity, text)


def _grouped(body: bytes) -> Iterator[tuple[str, int, int]]:
    """Yield the service and the bounds of each span or record; both messages nest alike."""
    for number, resource_end, resource in _fields(body, 0, len(body)):
        if number != 1 or resource < 0:
            continue
        parts = list(_fields(body, resource, resource_end))
        service = ""
        for number, end, begin in parts:
            if number == 1 and begin >= 0:
                service = _attribute(body, begin, end, 1, ("service.name",))
        for number, end, begin in parts:
            if number == 2 and begin >= 0:
                for inner, inner_end, inner_begin in _fields(body, begin, end):
                    if inner == 2 and inner_begin >= 0:
                        yield service, inner_begin, inner_end


def _span(body: bytes, begin: int, end: int, service: str, wanted: Wanted) -> Span | None:
    trace, own, parent, name = b"", b"", b"", ""
    kind, started, ended, is_error = 0, 0, 0, False
    for number, value, first in _fields(body, begin, end):
        if number == 1 and first >= 0:
            trace = body[first:value]
        elif number == 2 and first >= 0:
            own = body[first:value]
        elif number == 4 and first >= 0:
            parent = body[first:value]
        elif number == 5 and first >= 0:
            name = body[first:value].decode(errors="replace")
        elif number == 6:
            kind = value
        elif number == 7:
            started = value
        elif number == 8:
            ended = value
        elif number == 15 and first >= 0:
            is_error = any(n == 3 and code == _ERROR for n, code, _ in _fields(body, first, value))
    if len(trace) != 16 or len(own) != 8:
        raise ValueError("a span without ids")
    if not wanted(trace):
        return None
    path = _attribute(body, begin, end, 9, PATHS) if kind == _SERVER else ""
    return _made(service, trace.hex(), own.hex(), parent.hex(), name, kind, started, ended, is_error, path)


def _made(
    service: str,
    trace: str,
    own: str,
    parent: str,
    name: str,
    kind: int,
    started: int,
    ended: int,
    is_error: bool,
    path: str,
) -> Span:
    return Span(
        service[:_LONGEST],
        trace,
        own,
        parent if parent.strip("0") else "",
        name.partition("?")[0][:_LONGEST],
        KINDS[kind] if 0 <= kind < len(KINDS) else KINDS[0],
        started,
        max(started, ended),
        is_error,
        path.partition("?")[0][:_LONGEST],
    )


def _attribute(body: bytes, begin: int, end: int, of: int, keys: tuple[str, ...]) -> str:
    """Return the text of the last of these attributes in a message; `of` is the field that holds them."""
    best, value_of = -1, ""
    for number, last, first in _fields(body, begin, end):
        if number != of or first < 0:
            continue
        key, bounds = "", (0, 0)
        for inner, inner_last, inner_first in _fields(body, first, last):
            if inner_first < 0:
                continue
            if inner == 1:
                key = body[inner_first:inner_last].decode(errors="replace")
            elif inner == 2:
                bounds = inner_first, inner_last
        if key in keys and keys.index(key) > best:
            text = _text_value(body, *bounds)
            if text:
                best, value_of = keys.index(key), text
    return value_of


def _text_value(body: bytes, begin: int, end: int) -> str:
    """Return the string of an AnyValue; empty for values of other kinds."""
    for number, last, first in _fields(body, begin, end):
        if number == 1 and first >= 0:
            return body[first:last].decode(errors="replace")
    return ""


def _fields(body: bytes, at: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield number, value and begin of each field of a message.

    Of a field with a length the value is its end, of others it is the number and the begin is -1.
    """
    while at < end:
        tag, at = _varint(body, at, end)
        wire = tag & 7
        if wire == 2:
            length, at = _varint(body, at, end)
            if length > end - at:
                raise ValueError("a field longer than its message")
            yield tag >> 3, at + length, at
            at += length
        elif wire == 0:
            value, at = _varint(body, at, end)
            yield tag >> 3, value, -1
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
            if size > end - at:
                raise ValueError("a field longer than its message")
            yield tag >> 3, int.from_bytes(body[at : at + size], "little"), -1
            at += size
        else:
            raise ValueError(f"wire type {wire}")


def _varint(body: bytes, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end and shift < 70:
        byte = body[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
    raise ValueError("a number without its end")


# --- JSON --------------------------------------------------------------------------------------------------
# ruff: noqa: N815 - the names are those of the JSON mapping


@dataclass(frozen=True, slots=True)
class _Value:
    stringValue: str = ""


@dataclass(frozen=True, slots=True)
class _Attribute:
    key: str = ""
    value: _Value | None = None


@dataclass(frozen=True, slots=True)
class _Resource:
    attributes: tuple[_Attribute, ...] = ()


@dataclass(frozen=True, slots=True)
class _Status:
    code: int | str = 0


@dataclass(frozen=True, slots=True)
class _Span:
    traceId: str
    spanId: str
    parentSpanId: str | None = None
    name: str = ""
    kind: int | str = 0
    startTimeUnixNano: int | str = 0
    endTimeUnixNano: int | str = 0
    status: _Status = _Status()
    attributes: tuple[_Attribute, ...] = ()


@dataclass(frozen=True, slots=True)
class _Record:
    severityNumber: int | str = 0
    body: _Value | None = None


@dataclass(frozen=True, slots=True)
class _Scope:
    spans: tuple[_Span, ...] = ()
    logRecords: tuple[_Record, ...] = ()


@dataclass(frozen=True, slots=True)
class _OfResource:
    resource: _Resource = _Resource()
    scopeSpans: tuple[_Scope, ...] = ()
    scopeLogs: tuple[_Scope, ...] = ()


@dataclass(frozen=True, slots=True)
class _Message:
    resourceSpans: tuple[_OfResource, ...] = ()
    resourceLogs: tuple[_OfResource, ...] = ()


def json_spans(body: bytes, wanted: Wanted) -> Iterator[Span | None]:
    """As `spans`, of the same message in JSON."""
    for of in _message(body).resourceSpans:
        service = _text_of(of.resource.attributes, ("service.name",))
        for span in (span for scope in of.scopeSpans for span in scope.spans):
            if len(span.traceId) != 32 or len(span.spanId) != 16:
                raise ValueError("a span without ids")
            if not wanted(bytes.fromhex(span.traceId)):
                yield None
                continue
            kind = _number(span.kind)
            yield _made(
                service,
                span.traceId.lower(),
                span.spanId.lower(),
                (span.parentSpanId or "").lower(),
                span.name,
                kind,
                _number(span.startTimeUnixNano),
                _number(span.endTimeUnixNano),
                _number(span.status.code) == _ERROR,
                _text_of(span.attributes, PATHS) if kind == _SERVER else "",
            )


def json_log_lines(body: bytes) -> Iterator[LogLine]:
    """As `log_lines`, of the same message in JSON."""
    for of in _message(body).resourceLogs:
        service = _text_of(of.resource.attributes, ("service.name",))
        for record in (record for scope in of.scopeLogs for record in scope.logRecords):
            text = "" if record.body is None else record.body.stringValue
            yield LogLine(service, _number(record.severityNumber), text)


def _message(body: bytes) -> _Message:
    try:
        return read(_Message, json.loads(body))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _text_of(attributes: tuple[_Attribute, ...], keys: tuple[str, ...]) -> str:
    texts = {pair.key: pair.value.stringValue for pair in attributes if pair.value is not None}
    return next((texts[key] for key in reversed(keys) if texts.get(key)), "")


_ENUM: Final = {
    "SPAN_KIND_UNSPECIFIED": 0,
    "SPAN_KIND_INTERNAL": 1,
    "SPAN_KIND_SERVER": 2,
    "SPAN_KIND_CLIENT": 3,
    "SPAN_KIND_PRODUCER": 4,
    "SPAN_KIND_CONSUMER": 5,
    "STATUS_CODE_UNSET": 0,
    "STATUS_CODE_OK": 1,
    "STATUS_CODE_ERROR": 2,
}


def _number(value: int | str) -> int:
    """Return an integer that JSON may hold as a number, as text or as the name of an enumerator."""
    named = _ENUM.get(str(value))
    return int(value) if named is None else named
