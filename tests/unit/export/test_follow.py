"""Snapshots of a trial come at times of their own, whatever its intervals are."""

from __future__ import annotations

from itertools import pairwise

from loadlens.export.follow import _Sum
from loadlens.export.tally import Tally
from loadlens.model.counters import Counters
from tests.unit.export.build import HISTOGRAMS, PLAN, ROWS, T0_NS


def test_a_last_interval_without_length_has_a_time_of_its_own() -> None:
    drain = {**ROWS[1], "start_s": 2.0, "length_s": 0.0, "phase": "drain"}
    intervals = [list(Counters.from_rows([row]).streams) for row in (*ROWS, drain)]
    whole = _Sum(Tally(PLAN, T0_NS, {"loadlens.run": "r"}))

    snapshots = [*whole.add(intervals, HISTOGRAMS), whole.end()]

    # A store has one value of a series for each time.
    assert len(snapshots) == 3
    assert all(earlier.time_ns < later.time_ns for earlier, later in pairwise(snapshots))
