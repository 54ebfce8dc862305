"""Capacity of more workers, against exact machine repairmen and bounds."""

from __future__ import annotations

import pytest

from loadlens.estimate.interval import Insufficient, Interval
from loadlens.estimate.worker_scaling import (
    Validation,
    bound,
    validate,
)
from tests.unit.estimate.test_saturation import repairman


def around(point: float, relative: float = 0.03) -> Interval:
    return Interval(point, point * (1 - relative), point * (1 + relative), 3, "x")


def validated(predicted: float, measured: float, workers: float = 8, most: float = 4) -> Validation:
    validation = validate(around(predicted), around(measured), workers=workers, most_measured=most)
    assert isinstance(validation, Validation), validation
    return validation


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_many_users_come_near_the_bound_and_never_beyond(workers: int) -> None:
    exact = repairman(60, 0.15, 0.22, workers)  # M/M/k//60

    assert 0.97 * bound(workers, 0.22) < exact <= bound(workers, 0.22) * (1 + 1e-12)


def test_workers_beyond_the_cores_bring_nothing_to_work_that_computes() -> None:
    assert bound(8, 0.22, cores=2, cpu_s=0.22) == pytest.approx(2 / 0.22)
    assert bound(8, 0.22, cores=2, cpu_s=0.01) == pytest.approx(8 / 0.22)


def test_a_prediction_that_hits_the_held_out_case_may_go_to_four_times_the_measured() -> None:
    assert validated(18.0, 17.5, workers=16).may_extrapolate
    assert not validated(18.0, 17.5, workers=17).may_extrapolate


@pytest.mark.parametrize("predicted", [15.7, 19.8])
def test_a_prediction_that_misses_by_more_than_a_tenth_is_not_extrapolated(predicted: float) -> None:
    validation = validated(predicted, 17.5)

    assert not validation.may_extrapolate
    assert not validation.is_covered
    assert "missed" in validation.reason


def test_intervals_that_meet_cover_each_other() -> None:
    assert validated(18.0, 17.5).is_covered


def test_nothing_measured_validates_nothing() -> None:
    assert isinstance(validate(around(1.0), around(0.0), workers=2, most_measured=1), Insufficient)
