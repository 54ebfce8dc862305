"""The key `fleet`: how many machines divide the loads of a study, and how large the part of each is."""

from __future__ import annotations

from pathlib import Path

import pytest

from loadlens.model.study import FleetSize
from tests import tiny
from tests.unit.study.test_parse import SMALL, line_of, only_fault


@pytest.mark.parametrize(
    ("written", "size"),
    [
        ("{nodes: 4}", FleetSize(4)),
        ("{weights: [1, 3, 5]}", FleetSize(3, (1, 3, 5))),
        ("{nodes: 2, weights: [10, 20]}", FleetSize(2, (10, 20))),
    ],
)
def test_a_fleet_is_a_number_of_machines_or_their_weights(
    written: str, size: FleetSize, tmp_path: Path
) -> None:
    study = tiny.planned(tiny.write_study(tmp_path, study=f"fleet: {written}"))

    assert study.fleet == size


def test_a_study_needs_no_fleet(tmp_path: Path) -> None:
    assert tiny.planned(tiny.write_study(tmp_path)).fleet is None


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("{}", "a fleet without a number of nodes"),
        ("{nodes: 3, weights: [1, 3]}", "2 weights for 3 nodes"),
        ("{weights: [1, 10000]}", "the weights make 10,001 parts, at most 10,000: use smaller numbers"),
        ("{nodes: 0}", "at least 1, got 0"),
        ("{weights: [1, 0.5]}", "whole number"),
        ("local:4", "wanted a fleet"),
    ],
)
def test_a_fleet_that_cannot_be_is_refused_at_its_line(written: str, message: str, tmp_path: Path) -> None:
    fault = only_fault(tmp_path, f"{SMALL}fleet: {written}\n")

    assert message in fault.message
    assert line_of(fault) == 15
    assert fault.hint
