"""Reconciliation of counts made with known sources."""

from __future__ import annotations

import numpy as np
import pytest

from loadlens.stats.accounting import Excess, Part, attribute_excess, periodic, reconcile
from loadlens.stats.interval import Insufficient


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

    found = attribute_excess(seconds, sent, excess)

    assert isinstance(found, Excess)
    assert found.per_second.covers(1.0)
    assert found.per_request.covers(0.02)
    assert found.per_request.low is not None
    assert found.per_request.low > 0


def test_a_load_that_grows_in_step_with_time_attributes_nothing() -> None:
    seconds = np.arange(10.0, 20.0)

    assert isinstance(attribute_excess(seconds, seconds * 100, seconds), Insufficient)
