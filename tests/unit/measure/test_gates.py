"""The gate of the generator: a standstill closes it or leaves it open."""

from __future__ import annotations

import pytest

from loadlens.measure.curve import generator_in_time
from loadlens.measure.gates import gates_of
from tests.unit.diagnose.build import curve, generator, step


@pytest.mark.parametrize(
    ("verdict", "share", "passed", "in_time"),
    [
        ("kept_up", 0.0, True, True),
        ("kept_up", 0.009, True, True),
        ("starved", 0.015, None, None),
        ("stood_still", 0.5, False, False),
    ],
)
def test_a_generator_that_stood_still_is_not_called_in_time(
    verdict: str, share: float, *, passed: bool | None, in_time: bool | None
) -> None:
    watch = generator(verdict=verdict, stood_still=share)
    steps = [step(1, 100.0, 0.01), step(2, 180.0, 0.011, generator=watch)]

    gate = next(gate for gate in gates_of([], [curve(*steps)], [], 2) if gate.name == "generator")

    assert gate.passed is passed
    assert generator_in_time(watch) is in_time
    assert ("stood still" in gate.text) is (passed is not True)
