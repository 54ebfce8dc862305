"""Trials that never settle, and one of many that seems not to."""

from __future__ import annotations

from loadlens.diagnose.rules.measurement.steady_none import assess
from loadlens.model.finding import Absent, Finding, Grade, NotAssessed
from tests.unit.diagnose.build import facts
from tests.unit.diagnose.rules.measurement.test_warmup_incomplete import (
    falling,
    levels,
    rising,
    went,
)


def test_drifting_trials_are_found_with_the_worst_named() -> None:
    finding = assess(facts(levels((went(2),), (rising(3, 0.2),), (rising(4, 0.5),), (went(5),))))

    assert isinstance(finding, Finding)
    assert finding.statement == "2 of 4 trials never settle: n=4 +50.0 % in 3 s"
    assert finding.grade is Grade.PROBABLE
    assert "9 s" in finding.advice


def test_one_of_many_is_chance_and_one_of_one_is_not() -> None:
    assert isinstance(assess(facts(levels((went(2),), (rising(3),), (went(4),), (went(5),)))), Absent)
    alone = assess(facts(levels((rising(3),))))
    assert isinstance(alone, Finding)
    assert alone.grade is Grade.SUSPECTED


def test_a_level_counts_when_most_of_its_trials_drift() -> None:
    assert isinstance(
        assess(facts(levels((rising(1), went(2), went(3)), (rising(4), went(5), went(6))))), Absent
    )
    assert isinstance(assess(facts(levels((rising(1), rising(2), went(3))))), Finding)


def test_trials_that_reach_a_level_after_their_middle_are_not_said_to_drift() -> None:
    late = [went(order, "no_steady", cut_s=2.0, change=0.01, p_value=0.4) for order in (2, 3)]

    finding = assess(facts(levels((late[0],), (late[1],))))

    assert isinstance(finding, Finding)
    assert finding.statement == "2 of 2 trials settle late or never: n=1 after 2 s of 3 s"


def test_a_start_is_left_to_the_other_rule() -> None:
    assert isinstance(assess(facts(levels((falling(1),), (falling(2),)))), Absent)


def test_without_series_it_is_not_assessed() -> None:
    assert isinstance(assess(facts(levels(()))), NotAssessed)
