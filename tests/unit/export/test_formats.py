"""Every export of one trial, read by an independent parser, sums to the counts made by hand."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from google.protobuf import json_format
from line_protocol_parser import parse_line
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from prometheus_client.parser import text_string_to_metric_families

from loadlens.export import influx, otlp, prometheus
from loadlens.export.slow_requests import SlowRequest
from loadlens.export.tally import BOUNDS_S, NS, SCALE, Distribution
from loadlens.record import Trace
from tests.unit.export.build import T0_NS, snapshots

ENDED = {"": 5, "unexpected_status": 2, "timeout": 1, "check_failed": 0}


def test_a_page_for_prometheus_has_the_counts() -> None:
    families = {
        family.name: family.samples
        for family in text_string_to_metric_families(prometheus.as_text(snapshots()))
    }

    ended = {
        sample.labels.get("error_type", ""): sample.value for sample in families["loadlens_requests_ended"]
    }
    assert ended == {kind: count for kind, count in ENDED.items() if count}
    assert [sample.value for sample in families["loadlens_requests_due"]] == [10]
    statuses = {s.labels["http_response_status_code"]: s.value for s in families["loadlens_responses"]}
    assert statuses == {"200": 5, "500": 2}
    assert [sample.value for sample in families["loadlens_requests_in_flight"]] == [1]
    steps = {s.labels.get("loadlens_step") for s in families["http_client_request_duration_seconds"]}
    assert steps == {"read", 'say "hi", now'}


def test_explicit_buckets_are_cumulative_and_end_with_the_count() -> None:
    text = prometheus.as_text(snapshots())

    of_read = [
        sample
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.labels.get("loadlens_step") == "read" and "error_type" not in sample.labels
        if sample.name.startswith("http_client_request_duration_seconds")
    ]
    buckets = {float(s.labels["le"]): s.value for s in of_read if s.name.endswith("_bucket")}
    # 10 ms once, 15 ms twice, 20 ms twice
    assert (buckets[0.008], buckets[0.01], buckets[0.0125], buckets[0.016], buckets[0.02]) == (0, 1, 1, 3, 5)
    assert buckets[math.inf] == 5
    assert {s.name.rpartition("_")[2]: s.value for s in of_read if not s.name.endswith("_bucket")} == {
        "sum": pytest.approx(0.08),  # of the service times
        "count": 5,
    }


def test_otlp_is_what_the_protocol_defines_and_sums_to_the_counts() -> None:
    request = json_format.Parse(otlp.metrics(snapshots(), "1.2.3"), ExportMetricsServiceRequest())

    metrics = {m.name: m for m in request.resource_metrics[0].scope_metrics[0].metrics}
    assert request.resource_metrics[0].resource.attributes[0].value.string_value == "loadlens"
    ended = metrics["loadlens.requests.ended"].sum
    assert ended.is_monotonic
    assert ended.aggregation_temporality == 2  # cumulative
    newest: dict[str, Any] = {}
    for point in ended.data_points:
        assert point.start_time_unix_nano == T0_NS
        newest[attributes(point).get("error.type", "")] = point.as_int
    assert newest == {kind: count for kind, count in ENDED.items() if count}
    histogram = metrics["http.client.request.duration"].exponential_histogram
    read = [p for p in histogram.data_points if attributes(p)["loadlens.step"] == "read"]
    last = [p for p in read if "error.type" not in attributes(p)][-1]
    assert (last.count, last.scale, sum(last.positive.bucket_counts)) == (5, SCALE, 5)
    assert last.time_unix_nano == T0_NS + 2 * NS
    assert attributes(last)["server.port"] == 80


def attributes(point: Any) -> Mapping[str, Any]:
    return {a.key: a.value.string_value or a.value.int_value for a in point.attributes}


def test_an_exponential_bucket_holds_its_value_and_is_2_percent_wide() -> None:
    for value_ns in (1, 1000, 1024, 15_000_000, NS, 2 * NS, 100 * NS):
        distribution = Distribution()

        distribution.add([value_ns], [3])

        [(place, count)] = distribution.exponential.items()
        base = 2 ** (2.0**-SCALE)  # of the data model of OpenTelemetry
        assert base**place * (1 - 1e-12) < value_ns / NS <= base ** (place + 1) * (1 + 1e-12)
        assert count == 3


def test_bounds_rise_by_a_fifth_to_a_third() -> None:
    assert all(1.19 < high / low < 1.34 for low, high in itertools.pairwise(BOUNDS_S))
    assert (BOUNDS_S[0], BOUNDS_S[-1]) == (1e-5, 100)


def test_lines_for_influx_are_read_by_a_parser_of_that_protocol() -> None:
    rows = [parse_line(line) for line in influx.lines(snapshots())]

    ended: dict[str, int] = {}
    for row in rows:
        if row["measurement"] == "loadlens.requests.ended":
            ended[row["tags"].get("error.type", "")] = row["fields"]["value"]
    assert ended == {kind: count for kind, count in ENDED.items() if count}
    histograms = [row for row in rows if row["measurement"] == "http.client.request.duration"]
    read = [row for row in histograms if row["tags"]["loadlens.step"] == "read"]
    of_ok = [row for row in read if "error.type" not in row["tags"]][-1]
    assert (of_ok["fields"]["count"], of_ok["fields"]["le_0.016"], of_ok["fields"]["le_inf"]) == (5, 3, 5)
    assert of_ok["time"] == T0_NS + 2 * NS
    assert {row["tags"]["loadlens.step"] for row in histograms} == {"read", 'say "hi", now'}


def test_a_snappy_block_gives_back_what_it_holds() -> None:
    content = bytes(range(256)) * 700  # three literals

    assert unpacked(prometheus.snappy(content)) == content


def unpacked(block: bytes) -> bytes:
    """Read a Snappy block of literals, by format_description.txt of google/snappy."""
    length = shift = at = 0
    while True:
        length |= (block[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not block[at - 1] & 0x80:
            break
    out = b""
    while at < len(block):
        tag = block[at]
        assert tag & 3 == 0, "not a literal"
        more = max((tag >> 2) - 59, 0)
        size = 1 + (int.from_bytes(block[at + 1 : at + 1 + more], "little") if more else tag >> 2)
        out += block[at + 1 + more : at + 1 + more + size]
        at += 1 + more + size
    assert len(out) == length
    return out


def test_a_series_that_appears_begins_with_0_so_that_increase_counts_all_of_it() -> None:
    encoder = prometheus.RemoteWrite()
    [(classic, _native)] = encoder.requests(snapshots())

    message = unpacked(classic)

    # the time-out appears in the second second: 0 at the end of the first one, then 1
    at = message.index(b"timeout")
    series = message[at : message.index(b"error_type", at) if b"error_type" in message[at:] else None]
    first = prometheus._sample(0.0, T0_NS + NS)
    second = prometheus._sample(1.0, T0_NS + 2 * NS)
    assert first in series
    assert series.index(first) < series.index(second)


def test_a_series_begins_with_the_same_0_in_a_batch_of_its_own_and_when_it_is_sent_again() -> None:
    first, last = snapshots()
    encoder = prometheus.RemoteWrite()
    before = list(encoder.requests([first]))
    [(classic, native)] = encoder.requests([last])

    assert list(encoder.requests([last])) == [(classic, native)]
    assert list(encoder.requests([first])) == before
    message = unpacked(classic)
    at = message.index(b"timeout")
    assert prometheus._sample(0.0, T0_NS + NS) in message[at : at + 200]
    assert prometheus._sample(0.0, T0_NS) not in message


def test_what_ended_in_the_last_part_of_a_millisecond_comes_in_a_later_one() -> None:
    first, last = snapshots()
    hurried = replace(last, time_ns=first.time_ns + 59_369)  # the responses after the end of a load
    encoder = prometheus.RemoteWrite()

    [(classic, _native)] = encoder.requests([first, hurried])
    [(again, _native)] = encoder.requests([first, hurried])  # it was not delivered

    due = prometheus._sample(10.0, first.time_ns + 1_000_000)
    assert due in unpacked(classic)
    assert due in unpacked(again)
    assert prometheus._sample(10.0, first.time_ns) not in unpacked(classic)


def test_a_slow_request_is_the_root_span_of_its_trace() -> None:
    slow = SlowRequest(
        trace=Trace("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"), run="r", case="c",
        trial="block-1", step="read", method="GET", path="/a", host="127.0.0.1", port=80, seq=3, user=1,
        sent_ns=T0_NS, done_ns=T0_NS + NS, wait_s=0.25, status=503, outcome="unexpected_status",
    )  # fmt: skip

    request = json_format.Parse(otlp.spans([slow], "1"), ExportTraceServiceRequest())

    [span] = request.resource_spans[0].scope_spans[0].spans
    assert span.name == "GET /a"
    assert span.kind == 3  # client
    assert not span.parent_span_id
    assert span.end_time_unix_nano - span.start_time_unix_nano == NS
    assert attributes(span)["http.response.status_code"] == 503
    # hexadecimal in JSON by the OTLP specification, which protobuf's own reader takes for base64
    content = json.loads(otlp.spans([slow], "1"))["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    assert (content["traceId"], content["spanId"]) == (slow.trace.trace_id, slow.trace.span_id)
