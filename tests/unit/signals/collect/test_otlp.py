"""Spans and log lines over real connections; messages written by hand after opentelemetry-proto's files."""

from __future__ import annotations

import contextlib
import gzip
import http.client
import json
import random
import socket
import struct
import time
from collections.abc import Iterator

import pytest

from loadlens.signals.collect import otlp
from loadlens.signals.collect import otlp_messages as messages
from loadlens.signals.collect.monitor import Row
from loadlens.signals.collect.otlp import OtlpMonitor, Receiver
from loadlens.signals.collect.otlp_messages import LogLine, Span

PROTOBUF, JSON = "application/x-protobuf", "application/json"


def varint(number: int) -> bytes:
    parts = []
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes([*parts, number])


def field(number: int, content: bytes | str | int) -> bytes:
    """A field of a protobuf message: bytes with their length, or a number."""
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    content = content.encode() if isinstance(content, str) else content
    return varint(number << 3 | 2) + varint(len(content)) + content


def attribute(key: str, value: str) -> bytes:
    return field(1, key) + field(2, field(1, value))


def span(
    number: int, begin_ns: int, end_ns: int, *, name: str = "GET /a?b=1", kind: int = 2, parent: bytes = b""
) -> bytes:
    """A span of the trace of this number."""
    return b"".join(
        (
            field(1, number.to_bytes(16, "big")),
            field(2, b"\0\0\0\0\0\0\0\7"),
            field(4, parent),
            field(5, name),
            field(6, kind),
            b"\x39" + struct.pack("<Q", begin_ns),
            b"\x41" + struct.pack("<Q", end_ns),
            field(9, attribute("url.path", "/a/1")),
            field(9, attribute("http.route", "/a/{id}")),
            field(15, field(3, 2)),
            b"\x85\x01" + struct.pack("<I", 1),  # flags, which are not read
        )
    )


def exported(*items: bytes, service: str = "shop") -> bytes:
    """One resource with one scope."""
    scope = field(1, field(1, "a library")) + b"".join(field(2, item) for item in items)
    return field(1, field(1, field(1, attribute("service.name", service))) + field(2, scope))


def test_spans_are_read_from_protobuf() -> None:
    body = exported(span(5, 1_000, 3_500, parent=b"\0\0\0\0\0\0\0\1"))

    assert list(messages.spans(body, lambda trace: True)) == [
        Span(
            service="shop",
            trace=f"{5:032x}",
            id=f"{7:016x}",
            parent=f"{1:016x}",
            name="GET /a",
            kind="server",
            begin_ns=1_000,
            end_ns=3_500,
            is_error=True,
            path="/a/1",
        )
    ]


def test_the_same_spans_are_read_from_json() -> None:
    written = {
        "traceId": f"{5:032X}",
        "spanId": f"{7:016x}",
        "parentSpanId": f"{1:016x}",
        "name": "GET /a?b=1",
        "kind": "SPAN_KIND_SERVER",
        "startTimeUnixNano": "1000",
        "endTimeUnixNano": 3500,
        "attributes": [
            {"key": "url.path", "value": {"stringValue": "/a/1"}},
            {"key": "size", "value": {"intValue": "4"}},
        ],
        "status": {"code": 2},
    }
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]}
    body = json.dumps(
        {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": [written]}]}]}
    ).encode()

    binary = exported(span(5, 1_000, 3_500, parent=b"\0\0\0\0\0\0\0\1"))
    assert list(messages.json_spans(body, lambda trace: True)) == list(
        messages.spans(binary, lambda trace: True)
    )


def test_the_project_s_own_messages_are_read_alike() -> None:
    pb = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    request = pb.ExportTraceServiceRequest()
    of = request.resource_spans.add()
    of.resource.attributes.add(key="service.name").value.string_value = "é"
    theirs = of.scope_spans.add().spans.add(
        trace_id=bytes(range(16)), span_id=bytes(range(8)), name="n", kind=3, start_time_unix_nano=1
    )
    theirs.end_time_unix_nano = 1 << 60
    theirs.attributes.add(key="a").value.int_value = -1

    (ours,) = messages.spans(request.SerializeToString(), lambda trace: True)

    assert ours == Span(
        "é", bytes(range(16)).hex(), bytes(range(8)).hex(), "", "n", "client", 1, 1 << 60, False, ""
    )


def test_a_trace_that_is_not_wanted_is_counted_and_not_read() -> None:
    body = exported(span(1, 0, 1), span(2, 0, 1), span(3, 0, 1))

    read = list(messages.spans(body, lambda trace: trace[-1] == 2))

    assert [None if each is None else each.trace[-1] for each in read] == [None, "2", None]


def test_log_lines_are_read_from_both() -> None:
    record = field(2, 17) + field(5, field(1, "no connection in time"))
    body = json.dumps(
        {
            "resourceLogs": [
                {
                    "scopeLogs": [
                        {"logRecords": [{"severityNumber": 17, "body": {"stringValue": "no connection"}}]}
                    ]
                }
            ]
        }
    ).encode()

    assert list(messages.log_lines(exported(record))) == [LogLine("shop", 17, "no connection in time")]
    assert list(messages.json_log_lines(body)) == [LogLine("", 17, "no connection")]


def test_any_bytes_are_read_or_refused() -> None:
    draw = random.Random(5)
    whole = exported(span(5, 1_000, 3_500), span(6, 1_000, 3_500))
    for _ in range(3_000):
        body = bytearray(whole[: draw.randrange(len(whole) + 1)])
        for _ in range(draw.randrange(4)):
            if body:
                body[draw.randrange(len(body))] = draw.randrange(256)
        for read in (messages.spans, messages.json_spans):
            with contextlib.suppress(ValueError):
                list(read(bytes(body), lambda trace: True))


# --- the receiver ------------------------------------------------------------------------------------------


@pytest.fixture
def monitor() -> Iterator[OtlpMonitor]:
    made = OtlpMonitor()
    made.open(Receiver("127.0.0.1", 0))
    yield made
    made.close()


def post(monitor: OtlpMonitor, body: bytes, path: str = "/v1/traces", **headers: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", monitor.port, timeout=5)
    sent = {"Content-Type": PROTOBUF} | {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request("POST", path, body, sent)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, content


def rows(monitor: OtlpMonitor) -> list[Row]:
    return list(monitor.tick(time.monotonic_ns(), last=False))


def of(rows: list[Row], metric: str) -> list[float | None]:
    return [row.value for row in rows if row.metric == metric]


def test_a_span_becomes_a_row_on_the_clock_of_the_record(monitor: OtlpMonitor) -> None:
    now = time.time_ns() + 1_000_000_000
    before = time.monotonic_ns() + 1_000_000_000

    assert post(monitor, exported(span(5, now, now + 2_500_000))) == (200, b"")

    read = rows(monitor)
    (row,) = [row for row in read if row.metric == "span"]
    assert row.value == 0.0025
    assert row.time_ns is not None
    assert abs(row.time_ns - before) < 100_000_000  # two clocks read one after the other
    assert json.loads(row.labels)["path"] == "/a/1"
    assert (of(read, "spans_received"), of(read, "spans_kept"), of(read, "one_trace_in")) == ([1], [1], [1])


def test_a_span_from_before_the_trial_is_left_out(monitor: OtlpMonitor) -> None:
    now = time.time_ns()

    post(monitor, exported(span(5, now - 10_000_000_000, now)))

    assert of(rows(monitor), "span") == []


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (lambda body: gzip.compress(body), {"Content_Encoding": "gzip"}),
        (lambda body: iter([body[:10], body[10:]]), {"Transfer_Encoding": "chunked"}),
    ],
    ids=["gzip", "chunked"],
)
def test_bodies_come_packed_or_in_chunks(monitor: OtlpMonitor, body, headers) -> None:  # type: ignore[no-untyped-def]
    now = time.time_ns() + 1_000_000_000
    connection = http.client.HTTPConnection("127.0.0.1", monitor.port, timeout=5)
    sent = {"Content-Type": PROTOBUF} | {name.replace("_", "-"): value for name, value in headers.items()}
    is_chunked = "Transfer_Encoding" in headers

    connection.request(
        "POST", "/v1/traces", body(exported(span(5, now, now + 1))), sent, encode_chunked=is_chunked
    )

    assert connection.getresponse().status == 200
    assert len(of(rows(monitor), "span")) == 1


def test_what_is_no_export_is_refused_and_said(monitor: OtlpMonitor) -> None:
    large = gzip.compress(bytes(otlp.LARGEST_BYTES + 1))

    assert post(monitor, b"\xff")[0] == 400
    assert post(monitor, b"[]", Content_Type=JSON)[0] == 400
    assert post(monitor, b"", path="/v1/other")[0] == 404
    assert post(monitor, b"", Content_Type="text/plain")[0] == 415
    assert post(monitor, large, Content_Encoding="gzip")[0] == 413
    assert post(monitor, b"", Content_Length="5000000")[0] == 413
    assert len([row for row in rows(monitor) if row.metric == "missed"]) == 5


def test_grpc_is_refused_by_name(monitor: OtlpMonitor) -> None:
    with socket.create_connection(("127.0.0.1", monitor.port)) as connection:
        connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        connection.settimeout(5)
        assert connection.recv(100).startswith(b"HTTP/1.1 505")

    (row,) = [row for row in rows(monitor) if row.metric == "missed"]
    assert "gRPC is not read: OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf" in row.labels


def test_too_many_spans_halve_the_traces_that_are_kept(monitor: OtlpMonitor) -> None:
    now = time.time_ns() + 1_000_000_000
    count = 3 * otlp.MOST_SPANS_A_SECOND
    for begin in range(0, count, 1_000):
        post(monitor, exported(*(span(begin + k, now, now + 1) for k in range(1_000))))

    read = rows(monitor)
    (one_in,) = of(read, "one_trace_in")
    (kept,) = of(read, "spans_kept")
    assert of(read, "spans_received") == [count]
    assert one_in in (2, 4)
    assert kept is not None
    assert otlp.MOST_SPANS_A_SECOND <= kept < count
    last = [json.loads(row.labels)["trace"] for row in read if row.metric == "span"][-100:]
    assert all(otlp.place_of(bytes.fromhex(trace)) % one_in == 0 for trace in last)


def test_log_lines_from_warnings_on_are_kept_without_credentials(monitor: OtlpMonitor) -> None:
    lines = [
        field(2, severity) + field(5, field(1, text))
        for severity, text in ((9, "all is well"), (13, "slow"), (17, "refused, password=hunter22"))
    ]

    post(monitor, exported(*lines), path="/v1/logs")

    read = [row for row in rows(monitor) if row.metric == "log_line"]
    assert [json.loads(row.labels)["text"] for row in read] == ["slow", "refused, password=(hidden)"]
