"""Times of spans from traces drawn by hand; expected values counted by hand."""

from __future__ import annotations

import json
import zlib

import polars as pl
import pytest

from loadlens.measure.services.span_times import PartKey, one_after_another, read, requests
from loadlens.record.readings import schema
from loadlens.signals.read.spans import Span, log_text, spans


def span(
    name: str,
    begin_s: float,
    end_s: float,
    parent: str = "",
    kind: str = "client",
    *,
    service: str = "shop",
    trace: str = "t",
) -> Span:
    """A span whose id is its name and begin."""
    return Span(service, name, kind, trace, f"{name}@{begin_s:g}", parent, "", False, begin_s, end_s)


def test_time_belongs_to_the_innermost_span() -> None:
    # 0 ....... 10  GET, with a query from 1 to 4 that is answered from 2 to 3, and one from 5 to 9
    (request,) = requests(
        [
            span("GET", 0, 10, kind="server"),
            span("query", 1, 4, "GET@0"),
            span("answer", 2, 3, "query@1", kind="server", service="db"),
            span("query", 5, 9, "GET@0"),
        ]
    )

    get = request.parts[PartKey("shop", "GET", "server")]
    query = request.parts[PartKey("shop", "query", "client")]
    answer = request.parts[PartKey("db", "answer", "server")]
    assert (get.own, query.own, answer.own) == (3, 6, 1)
    assert (get.whole, query.whole, query.beneath) == (10, 7, 1)
    assert (query.calls, query.in_a_row, query.answered) == (2, 2, 1)


def test_calls_side_by_side_share_their_time_and_what_outlasts_the_request_is_cut() -> None:
    (request,) = requests(
        [
            span("GET", 0, 10, kind="server"),
            span("a", 2, 6, "GET@0"),
            span("b", 4, 12, "GET@0"),
        ]
    )

    own = {key.name: part.own for key, part in request.parts.items()}
    # a alone from 2 to 4, both from 4 to 6, b alone from 6 to 10
    assert own == {"GET": 2, "a": 3, "b": 5}
    assert sum(own.values()) == request.seconds


def test_calls_in_a_row_are_those_that_do_not_overlap() -> None:
    one_by_one = [span("q", k, k + 1) for k in range(12)]
    at_once = [span("q", k / 100, 1) for k in range(12)]

    assert one_after_another(one_by_one) == 12
    assert one_after_another(at_once) == 1
    # pairs: every second one begins when the pair before has ended
    assert one_after_another([span("q", k // 2, k // 2 + 1) for k in range(12)]) == 6


def test_a_span_within_one_of_its_own_name_counts_once_in_the_whole() -> None:
    (request,) = requests(
        [
            span("GET", 0, 8, kind="server"),
            span("f", 1, 7, "GET@0", "inside"),
            span("f", 2, 4, "f@1", "inside"),
        ]
    )

    f = request.parts[PartKey("shop", "f", "inside")]
    assert (f.own, f.whole, f.calls) == (6, 6, 2)


def test_a_request_that_carries_a_trace_of_its_client_begins_at_the_server() -> None:
    (request,) = requests([span("GET", 0, 1, "client's", kind="server")])

    assert request.entry.name == "GET"


def test_traces_without_a_begin_and_work_that_nobody_asked_for_are_left_out() -> None:
    served = [span("GET", 0, 1, kind="server")]
    lost = [span("query", 0, 1, "not there", trace="lost")]
    circle = [
        Span("shop", "a", "inside", "c", "a", "b", "", False, 0, 1),
        Span("shop", "b", "inside", "c", "b", "a", "", False, 0, 1),
    ]
    job = [span("clean up", 0, 9, kind="inside", trace="job")]

    assert [request.entry.name for request in requests([*served, *lost, *circle, *job])] == ["GET"]


# --- from readings -----------------------------------------------------------------------------------------


Reading = tuple[str, float, dict[str, str], float | None]  # metric, seconds since t0, labels, value


def table(*rows: Reading) -> pl.DataFrame:
    """Readings of the monitor."""
    return pl.DataFrame(
        [
            (round(at * 1e9), "otlp", metric, json.dumps(labels, sort_keys=True), "", value)
            for metric, at, labels, value in rows
        ],
        schema=schema(),
        orient="row",
    )


def trace(number: int, begin_s: float, long_s: float) -> list[Reading]:
    """A request with one call that takes all but 1 ms of it."""
    of = {"service": "shop", "trace": f"{number:032x}"}
    get = {**of, "name": "GET", "kind": "server", "id": "1", "path": "/a"}
    call = {**of, "name": "call", "kind": "client", "id": "2", "parent": "1", "status": "error"}
    return [("span", begin_s, get, long_s), ("span", begin_s + 0.001, call, long_s - 0.001)]


def test_means_of_a_trial_are_those_of_its_requests_and_of_its_slowest_tenth() -> None:
    # 40 requests: 36 take 10 ms, 4 take 110 ms
    rows = [row for k in range(40) for row in trace(k, 1 + k / 10, 0.11 if k % 10 == 0 else 0.01)]

    (kind,) = read(table(*rows, *trace(99, 0.5, 5.0)), 1.0, 5.0)

    assert (kind.count, kind.path) == (40, "/a")
    assert kind.time.point == pytest.approx(0.02)
    assert kind.slow.point == pytest.approx(0.11)
    call, get = kind.parts
    assert call.key.name == "call"
    assert call.own.point == pytest.approx(0.019)
    assert call.slow_own.point == pytest.approx(0.109)
    assert get.own.point == pytest.approx(0.001)
    assert (call.calls.point, call.failed, get.failed) == (1, 1, 0)


def test_few_requests_are_no_kind() -> None:
    assert read(table(*(row for k in range(19) for row in trace(k, 1 + k / 10, 0.01))), 1.0, 5.0) == ()


def test_traces_that_were_left_out_later_are_left_out_throughout() -> None:
    rows = [row for k in range(200) for row in trace(k, 1, 0.01)]

    kept = spans(table(*rows, ("one_trace_in", 0, {}, 1), ("one_trace_in", 1, {}, 4)))

    expected = {k for k in range(200) if zlib.crc32(k.to_bytes(16, "big")) % 4 == 0}
    assert {int(span.trace, 16) for span in kept} == expected
    assert 20 < len(expected) < 80  # a quarter of 200


def test_log_lines_are_a_log() -> None:
    assert log_text(table(("log_line", 1, {"text": "a"}, 13), ("log_line", 2, {"text": "b"}, 17))) == "a\nb\n"
