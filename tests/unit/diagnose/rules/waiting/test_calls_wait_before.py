"""Calls that wait before what they call begins; times of spans by hand."""

from __future__ import annotations

import pytest

from loadlens.diagnose.rules.waiting import calls_wait_before, downstream_slow
from loadlens.model.facts import SpanRequests
from loadlens.model.finding import Absent, Finding
from tests.unit.diagnose.build import facts
from tests.unit.diagnose.traced import levels, part, traced


def calling(wait_ms: float, stock_ms: float) -> SpanRequests:
    return traced(
        part("GET stock", wait_ms, beneath_ms=stock_ms),
        part("stock: GET /stock", stock_ms, kind="server", is_elsewhere=True),
        part("GET /a", 1, kind="server"),
    )


def test_a_call_that_waits_while_what_it_calls_stays_fast_is_found() -> None:
    built = levels({1: calling(1, 10), 16: calling(89, 10)})

    answer = calls_wait_before.assess(facts(built))

    assert isinstance(answer, Finding)
    assert answer.statement == "GET stock waits 89.0 ms of 100 ms before what it calls begins"
    assert answer.impact == pytest.approx(0.88)  # 88 of 100 ms came with the load
    assert isinstance(downstream_slow.assess(facts(built)), Absent)


def test_what_is_called_and_takes_the_time_itself_is_not_waited_for() -> None:
    built = levels({1: calling(1, 10), 16: calling(1, 98)})

    assert isinstance(calls_wait_before.assess(facts(built)), Absent)
    assert isinstance(downstream_slow.assess(facts(built)), Finding)


def test_both_growing_is_neither() -> None:
    # 45 ms before the call begins, and 40 within it
    assert isinstance(
        calls_wait_before.assess(facts(levels({1: calling(1, 10), 16: calling(46, 50)}))), Absent
    )


def test_a_call_whose_other_side_sends_no_spans_may_be_slow_there() -> None:
    def blind(wait_ms: float) -> SpanRequests:
        return traced(part("GET stock", wait_ms), part("GET /a", 1, kind="server"))

    answer = calls_wait_before.assess(facts(levels({1: blind(1), 16: blind(89)})))

    assert isinstance(answer, Absent)
    assert "0 % of the calls GET stock have a span" in answer.reason
