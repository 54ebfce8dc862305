"""Signals of figures that come from arrays: their truth values are other objects than True and False."""

from __future__ import annotations

import json

import numpy as np
import pytest

from loadlens.findings.common import evidence as weigh
from loadlens.model.finding import Grade
from tests.unit.findings.build import estimate

RATE = np.float64(3.0)


@pytest.mark.parametrize("limit", [2.0, 4.0])
def test_what_was_compared_in_an_array_is_said_as_such(limit: float) -> None:
    said = weigh.stated("rate", limit < RATE, text="a rate")
    beyond = weigh.at_least("rate", estimate(RATE), limit, text="a rate")
    other = weigh.rival("another", "its rate", limit < RATE)

    passed = [said.evidence.passed, beyond.evidence.passed, other.ruled_out]
    assert json.dumps(passed) == json.dumps([limit < 3.0] * 3)


def test_a_contradiction_that_an_array_showed_removes_the_finding() -> None:
    contradicted = weigh.stated("rate", RATE > 4.0, text="a rate")

    assert weigh.grade_of([contradicted], [], cap=Grade.STRONG) is None


def test_a_rival_that_an_array_showed_removes_the_finding() -> None:
    found = weigh.rival("another", "its rate", RATE > 4.0)

    assert weigh.grade_of([], [found], cap=Grade.STRONG) is None
