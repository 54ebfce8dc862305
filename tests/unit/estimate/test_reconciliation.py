"""Reconciliation of counts made with known sources."""

from __future__ import annotations

import numpy as np
import pytest

from loadlens.estimate.interval import Insufficient, Interval
from loadlens.estimate.reconciliation import (
    Excess,
    Part,
    attribute_excess,
    period_of,
    periodic,
    reconcile,
)
from tests.unit.estimate.binomial import at_least, at_most


def test_exact_counts_leave_nothing_unexplained() -> None:
    parts = (Part("client", 1000, 1000), Part("probes", 200, 200), Part("readiness", 3, 3))

    assert reconcile(1203, parts).unexplained == 0


@pytest.mark.parametrize(("observed", "unexplained"), [(1010, 5), (990, -5), (1000, 0), (1005, 0)])
def test_what_lies_outside_the_bounds_is_the_distance_to_the_nearer_one(
    observed: int, unexplained: int
) -> None:
    assert reconcile(observed, (Part("client", 995, 1005),)).unexplained == unexplained


def test_a_periodic_source_of_any_phase_stays_within_its_bounds() -> None:
    random = np.random.default_rng(1)
    part = periodic("scraper", 120.0, 15.0)
    for phase in random.uniform(0, 15, 1000):
        fired = np.arange(phase, 120.0, 15.0).size
        assert part.low <= fired <= part.high


def test_a_scraper_and_retries_are_told_apart() -> None:
    random = np.random.default_rng(2)
    seconds = np.full(40, 10.0)
    sent = random.integers(200, 2000, 40).astype(float)
    excess = 1.0 * seconds + random.binomial(sent.astype(int), 0.02)

    split = attribute_excess(seconds, sent, excess)

    assert isinstance(split, Excess)
    assert split.per_second.covers(1.0)
    assert split.per_request.covers(0.02)
    assert split.per_request.low is not None
    assert split.per_request.low > 0


def test_a_load_that_grows_in_step_with_time_attributes_nothing() -> None:
    seconds = np.arange(10.0, 20.0)

    assert isinstance(attribute_excess(seconds, seconds * 100, seconds), Insufficient)


@pytest.mark.parametrize(("per_second", "share"), [(1.0, 0.0), (0.0, 0.02), (1.0, 0.02)])
def test_what_an_excess_grows_with_is_covered_and_nothing_else_is_found(
    per_second: float, share: float
) -> None:
    found_rate = found_share = covered = 0
    replications = 150
    for seed in range(replications):
        random = np.random.default_rng(seed)
        sent = random.poisson(np.repeat([200.0, 600, 1200, 1800, 2400], 12)).astype(float)
        counted = random.poisson(share * sent) + 10 * per_second + random.integers(-3, 4, 60)
        excess = np.asarray(counted, dtype=np.float64)
        split = attribute_excess(np.full(60, 10.0), sent, excess, confidence=0.99)
        assert isinstance(split, Excess)
        found_rate += not split.per_second.covers(0.0)
        found_share += not split.per_request.covers(0.0)
        covered += split.per_second.covers(per_second) and split.per_request.covers(share)

    # retries scatter more where more was sent, so their interval covers a little less than it says
    assert covered >= at_least(0.95, replications)
    assert found_rate == replications if per_second else found_rate <= at_most(0.015, replications)
    assert found_share == replications if share else found_share <= at_most(0.015, replications)


def test_windows_that_scatter_more_count_less() -> None:
    """A tenth each, but for one window of which hardly anything is known."""
    sent, excess = np.array([1.0, 2.0, 3.0, 4.0, 10.0]), np.array([0.1, 0.2, 0.3, 0.4, 3.0])
    scatter = np.array([1.0, 1.0, 1.0, 1.0, 1e12])

    split = attribute_excess(np.array([1.0, 0.0, 1.0, 0.0, 1.0]), sent, excess, scatter=scatter)

    assert isinstance(split, Excess)
    assert split.per_request.point == pytest.approx(0.1)


def test_a_scraper_is_known_by_its_period() -> None:
    assert period_of(Interval(0.0668, 0.065, 0.068, 60, "x")) == 15.0
    assert period_of(Interval(0.3, 0.28, 0.32, 60, "x")) is None
    assert period_of(Interval(0.1, 0.0, 0.6, 60, "x")) is None  # several fit


IN_FLIGHT_AT_EDGES = Part("in flight at the edges", -10, 10)  # of a count whose edges were not drained


def test_books_with_every_source_known_never_raise_an_alarm() -> None:
    random = np.random.default_rng(3)
    for _ in range(1000):
        sent, refused = int(random.poisson(28_800)), int(random.binomial(1000, 0.05))
        before, after = random.integers(0, 11, 2)
        scrapes, checks = (int((120 - random.uniform(0, p)) // p) + 1 for p in (1.0, 5.0))
        seen = sent - refused + int(before - after) + scrapes + checks
        parts = (
            Part("client", sent - refused, sent - refused),
            periodic("scrapes", 120, 1.0),
            periodic("checks", 120, 5.0),
            IN_FLIGHT_AT_EDGES,
        )
        assert reconcile(seen, parts).unexplained == 0


def test_a_source_of_one_request_in_two_seconds_is_always_found() -> None:
    random = np.random.default_rng(4)
    missed = sum(
        reconcile(
            28_800 + int(random.poisson(60)), (Part("client", 28_800, 28_800), IN_FLIGHT_AT_EDGES)
        ).unexplained
        == 0
        for _ in range(1000)
    )

    assert missed == 0
