"""From measurements to the figures of the table."""

from __future__ import annotations

from pathlib import Path

import pytest
from benches.cost import fault, summary
from benches.measuring import Counted, Used
from benches.results import Results, read
from benches.works import WORKS, chosen

from tests.unit.bench.build import cost, results, used

GET = chosen(["get-100"])


def test_start_up_is_no_part_of_the_cost() -> None:
    # 0.5 s of start-up in both runs; 100,000 requests more for 0.6 s more is 6 us each.
    (row,) = summary(results(cost("loadlens", 6.0)), GET, ["loadlens"])

    assert row.cpu_us.value == pytest.approx(6.0)
    assert row.requests_per_s.value == pytest.approx(50_000)  # 100,000 in the 2 s beyond the short run


def test_a_ratio_is_taken_within_a_round_only() -> None:
    # Ratios 0.5 and 2; round 2 has no wrk. The ratio of the medians would be 8/8 = 1.
    measured = results(
        cost("loadlens", 4.0, number=0),
        cost("wrk", 8.0, number=0),
        cost("loadlens", 16.0, number=1),
        cost("wrk", 8.0, number=1),
        cost("loadlens", 80.0, number=2),
    )

    (row,) = summary(measured, GET, ["loadlens"])

    assert row.to_peer is not None
    assert row.to_peer.value == pytest.approx(1.25)
    assert (row.to_peer.low, row.to_peer.high, row.to_peer.rounds) == (None, None, 2)
    assert row.cpu_us.rounds == 3


def test_rounds_of_two_sets_are_not_mixed() -> None:
    measured = results(cost("loadlens", 4.0, set_number=0), cost("wrk", 8.0, set_number=1))

    (row,) = summary(measured, GET, ["loadlens"])

    assert row.to_peer is None


def test_what_was_left_out_is_counted_and_not_used() -> None:
    measured = results(cost("wrk", 8.0), cost("wrk", 99.0, number=1, left_out="others were working"))

    (row,) = summary(measured, GET, ["wrk"])

    assert row.cpu_us.value == pytest.approx(8.0)
    assert row.left_out == 1


@pytest.mark.parametrize(
    ("measured", "why"),
    [
        (used(1000, 0.9), None),
        (used(1000, 0.84), "the busier side used only 0.84 of its core, so others were working"),
        (used(0, 0.9), "the longer run did not get further than the short one"),
        (used(1000, 0.9, connections=100), None),
        (used(1000, 0.9, connections=101), "101 connections for 1000 requests is not the work"),
        (Used(1000, 0.9, 0.1, 1.0, 0.0, 3, 1), "broke the rules of HTTP 3 times, by the server's books"),
        (
            Used(1000, 0.4, 0.1, 1.0, 0.0, 0, 1, stolen=0.3),
            "the busier side used only 0.40 of its core, so the host",
        ),
        (Used(1000, 0.9, 0.1, 1.0, 0.0, 0, 1, unexplained=2), "2 requests of its own counts"),
    ],
)
def test_a_measurement_that_does_not_count_says_why(measured: Used, why: str | None) -> None:
    found = fault(GET[0], measured, busy=0.85)

    assert (found or "").startswith(why or "\0") if why else found is None


@pytest.mark.parametrize(
    ("counted", "unexplained"),
    [
        (Counted(issued=100, answered=100, in_flight=0), 0),
        (Counted(issued=105, answered=100, in_flight=5), 0),  # none of the five had reached the server
        (Counted(issued=100, answered=95, in_flight=5), 0),  # all five had been answered
        (
            Counted(issued=99, answered=99, in_flight=0),
            1 + 1,
        ),  # one that the server received and answered is missing
        (Counted(issued=103, answered=103, in_flight=0), 3 + 3),  # three were never there
    ],
)
def test_own_counts_are_held_against_the_books(counted: Counted, unexplained: int) -> None:
    assert counted.unexplained({"received": 100, "answered": 100}) == unexplained


def test_a_generator_that_keeps_connections_did_not_do_fresh_ones() -> None:
    (fresh,) = chosen(["fresh-100"])

    assert fault(fresh, used(1000, 0.9, connections=100), busy=0.85) is not None
    assert fault(fresh, used(1000, 0.9, connections=1000), busy=0.85) is None


def test_one_connection_may_leave_both_cores_idle() -> None:
    (alone,) = chosen(["get-1"])

    assert fault(alone, used(1000, 0.4, connections=1), busy=0.85) is None


def test_cases_are_chosen_by_pattern_and_a_wrong_one_is_named() -> None:
    assert [work.name for work in chosen(["post-1*"])] == ["post-1", "post-12", "post-100", "post-1000"]
    with pytest.raises(ValueError, match="no such case: got-1; there are get-1"):
        chosen(["get-*", "got-1"])


def test_data_are_read_as_they_were_written(tmp_path: Path) -> None:
    measured = results(cost("wrk", 8.0), cost("ab", 9.0, left_out="a reason"))
    measured.path = tmp_path / "2026-01-01-abc.json"

    measured.write()
    again = read(measured.path)

    assert isinstance(again, Results)
    assert again.cost == measured.cost
    assert again.sets == measured.sets
    assert len(WORKS) == len({work.name for work in WORKS})
