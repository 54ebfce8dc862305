"""Ends of a running load: too many requests per second, or hardly any that succeed."""

from __future__ import annotations

from typing import Any

from loadlens.model.search import Bounds
from loadlens.search.guard import Guard

BOUNDS = Bounds(budget_s=90.0, rate_cap_per_s=100.0, most_users=1024)


def progress(elapsed_s: float, issued: int, *, probes: int = 0, phase: str = "measure", **last: Any) -> Any:
    """The engine's snapshot as docs/reference/engine-api.md has it."""
    second = {"seconds": 1.0, "rps": 50.0, "unexpected_status": 0, "check_failed": 0, "failed": 0, **last}
    quiet = {"seconds": 1.0, "rps": 20.0, "unexpected_status": 0, "check_failed": 0, "failed": 0}
    return {
        "phase": phase,
        "elapsed_s": elapsed_s,
        "streams": [
            {"name": "load", "issued": issued, "last": second},
            {"name": "probe", "issued": probes, "last": quiet},
        ],
    }


def test_a_load_below_the_cap_that_succeeds_goes_on() -> None:
    guard = Guard(BOUNDS)

    assert [guard(progress(t / 10, 9 * t)) for t in range(1, 60)] == [None] * 59
    assert guard.tripped is None


def test_more_than_the_cap_within_a_second_ends_it_with_both_numbers() -> None:
    guard = Guard(BOUNDS)

    reasons = [guard(progress(t / 10, 20 * t)) for t in range(1, 8)]

    # 1.05 x 100 + 3 sqrt(100) = 135: what a second may have, and chance.
    assert reasons[:6] == [None] * 6
    assert reasons[6] == "140 requests were sent a second, at most 100 are allowed"
    assert guard.tripped == "rate"


def test_probes_count_too() -> None:
    assert Guard(BOUNDS)(progress(0.5, 70, probes=70)) is not None


def test_a_burst_of_users_who_all_begin_at_once_is_no_rate() -> None:
    guard = Guard(BOUNDS)

    # 64 users, each answered after a second: 64 requests at once, and 64 a second.
    reasons = [guard(progress(t / 10, 64 * (1 + t // 10))) for t in range(1, 40)]

    assert reasons == [None] * 39


def test_a_load_whose_failures_are_of_interest_ends_by_the_cap_alone() -> None:
    guard = Guard(BOUNDS, goes_on=True)

    assert [guard(progress(t / 10, 9 * t, rps=0.0, failed=90)) for t in range(1, 60)] == [None] * 59
    assert guard(progress(6.0, 1000)) is not None


def test_half_of_a_second_that_comes_to_nothing_ends_it() -> None:
    guard = Guard(BOUNDS)

    assert guard(progress(1.0, 80, rps=41.0, failed=39)) is None
    reasons = guard(progress(2.0, 160, rps=40.0, failed=40))
    assert reasons == "40 of 80 requests came to nothing within a second"
    assert guard.tripped == "harm"


def test_a_second_without_one_success_ends_it() -> None:
    guard = Guard(BOUNDS)

    reasons = guard(progress(1.0, 60, rps=0.0, unexpected_status=60))

    assert reasons == "not one of 60 requests succeeded within a second"


def test_refusals_that_come_before_a_success_can_do_not_end_it() -> None:
    """24 of 32 users are refused after 0.2 s, the others served after 0.4 s, all again and again."""
    guard = Guard(BOUNDS, success_s=0.4)

    reasons = [guard(progress(0.2 + t / 10, 32, rps=0.0, seconds=0.2, unexpected_status=24)) for t in (0, 1)]
    reasons += [guard(progress(0.5 + t / 10, 90, rps=8.0, unexpected_status=72)) for t in range(20)]

    assert reasons == [None] * 22


def test_successes_get_twice_the_time_that_they_took_before_and_no_more() -> None:
    guard = Guard(BOUNDS, success_s=3.0)

    def seen(t: int, rps: float) -> str | None:
        return guard(progress(t / 10, 60, rps=rps, unexpected_status=60))

    assert [seen(t, 0.0) for t in range(1, 60)] == [None] * 59
    assert seen(60, 4.0) is None
    assert [seen(t, 0.0) for t in range(61, 120)] == [None] * 59
    assert seen(120, 0.0) == "not one of 60 requests succeeded within a second"


def test_resets_at_the_begin_are_held_against_successes_that_need_longer() -> None:
    guard = Guard(BOUNDS, success_s=1.0)

    assert guard(progress(0.2, 80, rps=0.0, seconds=0.2, failed=25)) is None
    assert guard(progress(2.0, 105, rps=55.0, failed=25)) is None
    assert guard(progress(2.1, 150, rps=40.0, failed=40)) is not None


def test_refusals_beside_successes_do_not_end_it() -> None:
    assert Guard(BOUNDS)(progress(1.0, 90, rps=5.0, unexpected_status=85)) is None


def test_few_failures_of_a_slow_service_are_left_to_the_end_of_the_trial() -> None:
    assert Guard(BOUNDS)(progress(1.0, 6, rps=0.0, failed=6)) is None


def test_nothing_is_judged_before_the_start_and_after_the_end() -> None:
    guard = Guard(BOUNDS)

    assert guard(progress(0.0, 5000, phase="starting")) is None
    assert guard(progress(9.0, 5000, phase="drain", rps=0.0, failed=100)) is None
