"""Time before the handler: times of client and server compared; shares are by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loadlens.diagnose.rules.waiting import outside_handler_wait
from loadlens.model.facts import Curve
from loadlens.model.finding import (
    Absent,
    Estimate,
    Finding,
    Grade,
    NotAssessed,
    NotMeasured,
)
from tests.unit.diagnose.build import (
    blocked,
    connections,
    estimate,
    facts,
    generator,
    process,
)
from tests.unit.diagnose.waiting import THREADS, places, renamed, waiting, with_places

# 8 threads, each request takes 30 ms of one: at 32 users clients wait 120 ms, 90 of them before a thread.
REQUESTS = ("requests_inside", "", "")


def gapped(inside_s: float = 0.03, *, counted: float | None = 8.0, way_s: float = 0.0, **more: Any) -> Curve:
    """The service says what its handlers take, and how many are inside at the highest load."""
    built = waiting(**{"hold_s": 0.03 + way_s, "base_s": 0.0, "size": 8, "coupling": 1.0, **more})
    steps = []
    for level in built.steps:
        shown = Estimate("handler_seconds", "s", inside_s, inside_s * 0.98, inside_s * 1.02, 3, 500, "built")
        classes = tuple(replace(c, inside=shown) for c in level.classes)
        steps.append(replace(level, classes=classes))
    if counted is not None:
        steps[-1] = replace(steps[-1], places=(places("requests", counted, None, None, REQUESTS),))
    return replace(built, steps=tuple(steps))


def assessed(built: Curve) -> Finding:
    answer = outside_handler_wait.assess(facts(built))
    assert isinstance(answer, Finding)
    return answer


def silence(built: Curve) -> str:
    answer = outside_handler_wait.assess(facts(built))
    assert isinstance(answer, Absent)
    return answer.reason


def test_three_quarters_before_the_handler_are_found() -> None:
    finding = assessed(gapped())

    assert finding.grade is Grade.PROBABLE  # first and last bytes were not timed
    assert finding.statement == "75 % of the time passes before the handler: 90.0 ms of 120 ms"
    share = next(e for e in finding.evidence if e.signal == "handler.outside")
    assert share.value == pytest.approx(0.75)
    assert share.low == pytest.approx(1 - 0.03 * 1.02 / (0.12 * 0.98))
    assert "handler_seconds says 30.0 ms" in share.text
    assert any("requests_inside 8 of 32 in flight" in e.text for e in finding.evidence)
    assert finding.impact == pytest.approx(0.75)


def test_other_names_give_the_same_finding() -> None:
    assert assessed(renamed(gapped())).grade is assessed(gapped()).grade


@pytest.mark.parametrize(("inside_s", "is_found"), [(0.066, True), (0.068, False)])
def test_what_waits_at_nearly_twice_the_knee_is_the_limit(inside_s: float, is_found: bool) -> None:
    # Of 120 ms: 1 - 1 / 1.8 of it are 53.3 ms.
    built = gapped(inside_s)
    first = built.steps[0]
    own = replace(first.classes[0], inside=estimate(0.03))
    built = replace(built, steps=(replace(first, classes=(own,)), *built.steps[1:]))

    assert isinstance(outside_handler_wait.assess(facts(built)), Finding) is is_found


def test_a_long_way_that_takes_as_long_without_load_is_no_line() -> None:
    """10 ms inside, 80 on the way; under load 40 more of 120: a third came with the load."""
    assert "lowest load" in silence(gapped(0.01, way_s=0.07, users=(1, 2, 4, 8, 12)))


def test_as_many_before_the_handler_as_inside_are_found() -> None:
    """Twice as many users as threads, and a millisecond on the way: 29 of 61 ms came with the load."""
    built = gapped(0.03, way_s=0.001, users=(1, 2, 4, 8, 16))

    assert isinstance(outside_handler_wait.assess(facts(built)), Finding)


@pytest.mark.parametrize(("scale", "is_found"), [(1.0, True), (0.01, False)])
def test_less_than_a_millisecond_is_no_line(scale: float, is_found: bool) -> None:
    """90 ms before a handler of 30 ms; 0.9 before one of 0.3: processors that are shared do as much."""
    built = gapped(0.03 * scale, hold_s=0.03 * scale)

    assert isinstance(outside_handler_wait.assess(facts(built)), Finding) is is_found


def test_a_gauge_that_counts_nearly_all_inside_contradicts_the_clocks() -> None:
    assert "requests_inside 30" in silence(gapped(counted=30.0))


def test_of_several_gauges_of_requests_the_outermost_counts() -> None:
    """2 calls to elsewhere are under way while 30 of 32 requests are inside."""
    calls = places("requests", 2.0, None, None, ("calls_under_way", "", ""))
    built = with_places(gapped(counted=None), calls)

    assert "requests_inside 30" in silence(with_places(built, places("requests", 30.0, None, None, REQUESTS)))


def test_without_a_gauge_the_number_inside_stays_the_same() -> None:
    finding = assessed(gapped(counted=None))

    assert any("throughput x time inside: 8 at 16, 8 at 32" in e.text for e in finding.evidence)
    assert finding.grade is Grade.PROBABLE


def test_a_number_inside_that_still_grows_leaves_it_suspected() -> None:
    built = gapped(counted=None)
    last = built.steps[-1]
    slower = replace(last.classes[0], inside=estimate(0.045))

    assert assessed(replace(built, steps=(*built.steps[:-1], replace(last, classes=(slower,))))).grade is (
        Grade.SUSPECTED
    )


def test_who_waits_for_the_processor_does_not_wait_for_a_handler() -> None:
    assert "computes" in silence(gapped(processes=(process(0.97, hot=1),)))
    assert "full machine" in silence(gapped(host_cpu=estimate(3.9, unit="cores")))


def test_a_late_generator_adds_to_what_clients_wait() -> None:
    late = generator(verdict="late", lag_p99_s=0.05, lag_limit_s=0.001)

    assert "generator" in silence(gapped(generator=late))


def test_answers_that_take_their_time_on_the_way_are_no_line() -> None:
    built = gapped()
    last = built.steps[-1]
    slow = replace(last.classes[0], transfer=estimate(0.1))

    assert "slow transfer" in silence(
        replace(built, steps=(*built.steps[:-1], replace(last, classes=(slow,))))
    )


def test_a_service_that_tells_nothing_of_its_handlers_leaves_it_open() -> None:
    for built in (waiting(0.03, size=8), blocked(0.2)):
        answer = outside_handler_wait.assess(facts(built))
        assert isinstance(answer, NotAssessed)
        assert "time inside the handler" in answer.reason


def test_large_answers_leave_a_full_link_open_unless_threads_are_full() -> None:
    large = gapped(answer_bytes=20_000.0)
    full = with_places(large, places("threads", 8.0, None, 8, THREADS))

    assert assessed(large).grade is Grade.SUSPECTED
    assert assessed(full).grade is Grade.PROBABLE


def test_a_level_without_the_time_inside_is_passed_over() -> None:
    built = gapped(users=(1, 2, 4, 8, 16, 32, 64))
    last = built.steps[-1]
    untold = replace(last.classes[0], inside=NotMeasured("inside", "no times"))
    shorter = replace(built, steps=(*built.steps[:-1], replace(last, classes=(untold,))))

    assert "At 32 users clients wait" in assessed(shorter).explanation


@pytest.mark.parametrize(("resent", "is_found"), [(44, True), (46, False)])
def test_who_waits_to_ask_for_a_connection_again_stands_in_no_line(resent: int, is_found: bool) -> None:
    """90 of 120 ms lie outside; 4.6 % of the connections, one a request, come a second later: 46 ms."""
    built = gapped()
    watch = connections(1_000, 1_000, connects=1_000, resent=resent)
    built = replace(built, steps=(*built.steps[:-1], replace(built.steps[-1], connections=watch)))

    answer = outside_handler_wait.assess(facts(built))

    assert isinstance(answer, Finding) is is_found
    if isinstance(answer, Absent):
        assert "clients wait 46.0 ms of the 90.0 ms to ask for connections again" in answer.reason
