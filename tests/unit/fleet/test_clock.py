"""Offsets of simulated clocks, of which the truth is known: skew, drift, and any division of the delays."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadlens.fleet.clock import MOST_DRIFT, Exchange, Line, Offset, offset_of

MS = 1_000_000
ROUNDING_NS = 4  # readings are whole nanoseconds
delays = st.tuples(st.integers(20_000, 5 * MS), st.integers(20_000, 5 * MS))
skews = st.integers(-(10**15), 10**15)
drifts = st.floats(-MOST_DRIFT, MOST_DRIFT)


class World:
    """Two clocks that run apart evenly; `true_ns` is the clock here."""

    def __init__(self, skew_ns: int, drift: float) -> None:
        self.skew_ns, self.drift, self.true_ns = skew_ns, drift, 10**12

    def offset_at(self, here_ns: float) -> float:
        return self.skew_ns + self.drift * (here_ns - 10**12)

    def node_ns(self) -> int:
        return self.true_ns + round(self.offset_at(self.true_ns))

    def exchange(self, there_ns: int, back_ns: int) -> Exchange:
        sent_ns = self.true_ns
        self.true_ns += there_ns
        received_ns = self.node_ns()
        self.true_ns += 30_000  # on the node
        answered_ns = self.node_ns()
        self.true_ns += back_ns
        return Exchange(sent_ns, received_ns, answered_ns, self.true_ns)


def test_an_exchange_of_equal_delays_gives_the_offset_itself() -> None:
    # Node ahead by 500: sent 100, 40 on the way, received 640, answered 660, 40 back, returned 200.
    exchange = Exchange(100, 640, 660, 200)

    assert exchange.round_trip_ns == 80
    assert exchange.offset_ns == 500
    assert offset_of([exchange]) == Offset(150, 500, 40)


@given(skews, drifts, st.lists(delays, min_size=1, max_size=32))
def test_the_true_offset_lies_within_the_bound_however_the_delays_are_divided(
    skew_ns: int, drift: float, ways: list[tuple[int, int]]
) -> None:
    world = World(skew_ns, drift)
    burst = [world.exchange(there, back) for there, back in ways]

    offset = offset_of(burst)

    half = min(each.round_trip_ns for each in burst) / 2
    assert abs(offset.offset_ns - world.offset_at(offset.at_ns)) <= offset.error_ns + ROUNDING_NS
    assert offset.error_ns <= half + ROUNDING_NS


def test_delays_of_opposite_asymmetry_bound_the_offset_better_than_either() -> None:
    world = World(skew_ns=123_456, drift=0.0)

    offset = offset_of([world.exchange(1 * MS, 3 * MS), world.exchange(3 * MS, 1 * MS)])

    # Bounds of 2 ms around -1 ms and +1 ms overlap from -1 to +1 ms; the drift of 4 ms adds 2.4 us to one.
    assert offset.error_ns == pytest.approx(1 * MS, rel=0.002)
    assert offset.offset_ns == pytest.approx(123_456, abs=2_500)


@given(skews, drifts, delays, delays, st.floats(0, 1), st.integers(1, 3600))
def test_a_line_through_both_ends_holds_the_true_offset_in_between(
    skew_ns: int,
    drift: float,
    early: tuple[int, int],
    late: tuple[int, int],
    share: float,
    seconds: int,
) -> None:
    world = World(skew_ns, drift)
    before = offset_of([world.exchange(*early)])
    world.true_ns += seconds * 10**9
    after = offset_of([world.exchange(*late)])
    line = Line(before, after)
    here_ns = before.at_ns + round(share * (after.at_ns - before.at_ns))

    offset = line.offset_at(here_ns)

    assert line.is_possible
    assert abs(offset.offset_ns - world.offset_at(here_ns)) <= offset.error_ns + ROUNDING_NS
    assert offset.error_ns <= max(before.error_ns, after.error_ns) + ROUNDING_NS


@given(skews, drifts, delays, st.integers(0, 3600 * 10**9))
def test_after_a_single_measurement_the_bound_grows_with_the_drift_that_clocks_may_have(
    skew_ns: int, drift: float, ways: tuple[int, int], later_ns: int
) -> None:
    world = World(skew_ns, drift)
    line = Line(offset_of([world.exchange(*ways)]))

    offset = line.offset_at(line.before.at_ns + later_ns)

    assert abs(offset.offset_ns - world.offset_at(offset.at_ns)) <= offset.error_ns + ROUNDING_NS


def test_a_drift_of_fifty_ppm_is_found_over_a_minute() -> None:
    world = World(skew_ns=5 * MS, drift=50e-6)
    before = offset_of([world.exchange(50_000, 50_000)])
    world.true_ns += 60 * 10**9
    line = Line(before, offset_of([world.exchange(50_000, 50_000)]))

    assert line.drift == pytest.approx(50e-6, rel=1e-4)
    assert line.on_node(before.at_ns) - before.at_ns == pytest.approx(5 * MS, abs=50)


def test_a_clock_that_jumped_is_refused() -> None:
    world = World(0, 0.0)
    first = world.exchange(50_000, 50_000)
    world.skew_ns += 2 * MS

    with pytest.raises(ValueError, match="jumped"):
        offset_of([first, world.exchange(50_000, 50_000)])
    assert not Line(offset_of([first]), offset_of([world.exchange(50_000, 50_000)])).is_possible
