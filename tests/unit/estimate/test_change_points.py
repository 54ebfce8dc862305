"""Change points next to the reference implementation, a closed form, and the error that is allowed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from loadlens.estimate.change_points import ERROR, change_points, split_statistics

# By signal-processing-algorithms 2.1.6; reference.py in the same folder wrote it and has the command.
REFERENCE = json.loads(
    (Path(__file__).parents[2] / "data" / "change_points" / "reference.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("name", REFERENCE)
def test_every_split_has_the_statistic_of_the_reference(name: str) -> None:
    reference = REFERENCE[name]

    statistics = split_statistics(np.array(reference["values"]))

    assert statistics == pytest.approx(reference["first_split"], abs=1e-8)


@pytest.mark.parametrize("name", REFERENCE)
def test_the_change_points_are_those_of_the_reference(name: str) -> None:
    reference = REFERENCE[name]

    changes = change_points(np.array(reference["values"]))

    assert [change.index for change in changes] == reference["change_points"]


def test_a_clean_step_has_the_statistic_of_its_closed_form() -> None:
    # 20 figures of 3 and then 10 of 8: n m / (n + m) * (2 * 5 - 0 - 0)
    statistics = split_statistics(np.array([3.0] * 20 + [8.0] * 10))

    assert int(np.argmax(statistics)) == 20
    assert statistics[20] == pytest.approx(20 * 10 / 30 * 10)


def test_noise_alone_gives_change_points_no_more_often_than_allowed() -> None:
    # Of 100 series at 1 %, more than 5 has a probability below 0.1 % (binomial).
    random = np.random.default_rng(5)

    false = sum(bool(change_points(100 * np.exp(0.03 * random.standard_normal(30)))) for _ in range(100))

    assert ERROR == 0.01
    assert false <= 5


def test_the_same_series_has_the_same_change_points() -> None:
    values = np.array(REFERENCE["one step of 10 % up"]["values"])

    assert change_points(values) == change_points(values)
