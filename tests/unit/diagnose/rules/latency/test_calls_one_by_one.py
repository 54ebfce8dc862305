"""Calls in a row; numbers and times of spans by hand."""

from __future__ import annotations

from typing import Any

import pytest

from loadlens.diagnose.rules.latency import calls_one_by_one
from loadlens.model.facts import SpanRequests
from loadlens.model.finding import Absent, Finding, NotAssessed
from tests.unit.diagnose.build import curve, facts, step
from tests.unit.diagnose.traced import levels, part, traced


def listing(calls: float = 20, each_ms: float = 2.0, own_ms: float = 10.0, **more: Any) -> SpanRequests:
    select = part("SELECT item", calls * each_ms, calls=calls, **more)
    return traced(select, part("GET /a", own_ms, kind="server"))


def test_twenty_queries_in_a_row_are_found() -> None:
    answer = calls_one_by_one.assess(facts(levels({1: listing(), 16: listing()})))

    assert isinstance(answer, Finding)
    assert answer.statement == "20 calls of SELECT item one after another take 80 % of a request"
    assert "38.0 ms less" in answer.advice  # all but one of 20 calls of 2 ms
    assert answer.impact == pytest.approx(38 / 50)


def test_one_query_for_all_rows_is_no_loop() -> None:
    joined = listing(calls=1, each_ms=40)

    assert isinstance(calls_one_by_one.assess(facts(levels({1: joined, 16: joined}))), Absent)


def test_calls_side_by_side_are_no_loop() -> None:
    at_once = listing(in_a_row=2.0)

    assert isinstance(calls_one_by_one.assess(facts(levels({1: at_once, 16: at_once}))), Absent)


def test_calls_that_take_little_of_a_request_are_no_loop() -> None:
    cheap = listing(own_ms=100)  # 40 of 140 ms

    answer = calls_one_by_one.assess(facts(levels({1: cheap, 16: cheap})))

    assert isinstance(answer, Absent)
    assert "29 % of the 140 ms" in answer.reason


def test_calls_that_fail_are_retries() -> None:
    retried = listing(failed=0.9)

    assert isinstance(calls_one_by_one.assess(facts(levels({1: retried, 16: retried}))), Absent)


def test_calls_that_grow_with_the_load_come_from_it() -> None:
    built = levels({1: listing(calls=12), 16: listing(calls=40)})

    assert isinstance(calls_one_by_one.assess(facts(built)), Absent)


def test_without_spans_it_says_what_is_missing() -> None:
    answer = calls_one_by_one.assess(facts(curve(step(1, 100, 0.01))))

    assert isinstance(answer, NotAssessed)
