"""Check of how a long run is said to have changed."""

from __future__ import annotations

import pytest
from benches.soak import Reading, changes, slope


def readings(bytes_per_s: float = 0.0, rate_late: float = 100.0) -> list[Reading]:
    """One every ten seconds for ten minutes; in the last half with another rate."""
    answered, found = 0.0, []
    for number in range(61):
        found.append(Reading(10.0 * number, round(1e6 + bytes_per_s * 10 * number), 20, 5, round(answered)))
        answered += 10 * (100.0 if number < 30 else rate_late)
    return found


def test_a_flat_run_has_no_slope_and_no_drift() -> None:
    said = changes(readings())

    assert said["memory_slope_bytes_per_day"] == 0
    assert said["rate_drift"] == pytest.approx(0.0)
    assert (said["descriptors_span"], said["threads_span"]) == (0, 0)
    assert said["hours"] == pytest.approx(1 / 6)


def test_growth_is_given_for_a_day() -> None:
    # 5 bytes a second are 432,000 a day.
    assert changes(readings(bytes_per_s=5.0))["memory_slope_bytes_per_day"] == pytest.approx(432_000)


def test_a_rate_that_falls_is_a_drift() -> None:
    assert changes(readings(rate_late=98.0))["rate_drift"] == pytest.approx(-0.02)


def test_one_odd_reading_makes_no_slope() -> None:
    points = [(float(at), 7.0) for at in range(20)]
    points[12] = (12.0, 7000.0)

    assert slope(points) == 0.0
