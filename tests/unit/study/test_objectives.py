"""Objectives written as text: one form for the command line, the units of study files."""

from __future__ import annotations

import pytest

from loadlens.model.study import UNSUCCESSFUL, Objective
from loadlens.study.objectives import objective
from loadlens.units import UnitError


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("p99<200ms", Objective("response_time.p99", None, below=0.2)),
        ("p99.9 < 1s", Objective("response_time.p999", None, below=1.0)),
        ("mean<50ms", Objective("response_time.mean", None, below=0.05)),
        ("failed<1%", Objective(UNSUCCESSFUL, None, below=0.01)),
        ("rate>500/s", Objective("throughput", None, above=500.0)),
        ("rate>3000/m", Objective("throughput", None, above=50.0)),
        ("first_byte.p95<10ms", Objective("first_byte.p95", None, below=0.01)),
    ],
)
def test_a_metric_a_sign_and_a_bound_in_its_unit(text: str, parsed: Objective) -> None:
    assert objective(text) == parsed


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("p99=200ms", "is not an objective"),
        ("p99<", "is not an objective"),
        ("p42<200ms", "'p42' is not a metric"),
        ("faild<1%", "'faild' is not a metric"),
        ("p99<1%", "not a duration"),
        ("failed<20ms", "not a percentage"),
    ],
)
def test_what_is_no_objective_is_refused_with_an_example(text: str, words: str) -> None:
    with pytest.raises(UnitError, match=words) as refused:
        objective(text)

    assert refused.value.example
