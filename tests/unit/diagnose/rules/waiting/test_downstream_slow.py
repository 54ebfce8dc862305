"""Calls that become slow under load; times of spans by hand."""

from __future__ import annotations

import pytest

from loadlens.diagnose.rules.waiting import downstream_slow
from loadlens.model.facts import SpanRequests
from loadlens.model.finding import Absent, Finding, NotAssessed
from tests.unit.diagnose.build import curve, facts, probe, process, step
from tests.unit.diagnose.traced import levels, part, traced


def calling(price_ms: float, own_ms: float = 2.0) -> SpanRequests:
    return traced(part("GET price", price_ms), part("GET /a", own_ms, kind="server"))


def test_a_call_that_grows_with_the_load_is_found() -> None:
    answer = downstream_slow.assess(facts(levels({1: calling(8), 4: calling(20), 16: calling(78)})))

    assert isinstance(answer, Finding)
    assert answer.statement == "Requests spend 78.0 ms of 80.0 ms in GET price, 8.00 ms at the lightest load"
    assert answer.impact == pytest.approx(70 / 80)  # 70 of 80 ms came with the load
    assert answer.unknown


def test_a_span_of_the_other_service_is_named_with_it() -> None:
    def deep(query_ms: float) -> SpanRequests:
        query = part("stock: SELECT", query_ms, is_elsewhere=True)
        return traced(query, part("GET stock", 1, beneath_ms=query_ms), part("GET /a", 2, kind="server"))

    answer = downstream_slow.assess(facts(levels({1: deep(8), 16: deep(80)})))

    assert isinstance(answer, Finding)
    assert "in stock: SELECT" in answer.statement
    assert answer.unknown == ()


def test_a_call_that_is_as_slow_without_load_is_no_finding() -> None:
    answer = downstream_slow.assess(facts(levels({1: calling(70), 16: calling(80)})))

    assert isinstance(answer, Absent)


def test_a_service_that_computes_is_not_waiting_for_others() -> None:
    busy = levels({1: calling(8), 16: calling(78)}, processes=(process(0.99),))

    assert isinstance(downstream_slow.assess(facts(busy)), Absent)


def test_a_service_whose_cheap_requests_wait_too_is_held_up_itself() -> None:
    # the probe waits 60 of the 70 ms
    held_up = levels({1: calling(8), 16: calling(78)}, probes=(probe(0.062),))

    answer = downstream_slow.assess(facts(held_up))

    assert isinstance(answer, Absent)
    assert "a cheap request waits 60.0 ms" in answer.reason


def test_growth_within_the_service_is_not_of_a_call() -> None:
    def inside(wait_ms: float) -> SpanRequests:
        return traced(part("lock", wait_ms, kind="inside"), part("GET price", 8))

    assert isinstance(downstream_slow.assess(facts(levels({1: inside(1), 16: inside(70)}))), Absent)


def test_without_spans_it_says_what_is_missing() -> None:
    answer = downstream_slow.assess(facts(curve(step(1, 100, 0.01), step(8, 100, 0.08))))

    assert isinstance(answer, NotAssessed)
    assert "--otlp" in answer.reason
