"""Places of a called program; taken, waiting and rates are by the bounds of a closed loop."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loadlens.diagnose.rules.waiting import db_pool, downstream_full
from loadlens.model.facts import CallsWatch, Curve, Step
from loadlens.model.finding import Absent, Finding, Grade, NotAssessed
from tests.unit.diagnose.build import facts
from tests.unit.diagnose.waiting import gauge, waiting

# 4 places held for 20 ms: 200/s; at 32 users 26 wait, so 30 calls to the program are under way.


def called(program: str, under_way: float, to: str = "python stock.py:81") -> Curve:
    """A pool that samples of a program showed, and calls to another or the same."""

    def placed(level: Step) -> Step:
        own = tuple(replace(place, seen_in="stacks", program=program) for place in level.places)
        calls = CallsWatch(to, gauge("calls", under_way), 1.0, None)
        return replace(level, places=own, calls=(calls,))

    built = waiting(0.02, size=4, exports="pool")
    return replace(built, steps=tuple(map(placed, built.steps)))


def of_both(built: Curve) -> tuple[Finding | Absent | NotAssessed, Finding | Absent | NotAssessed]:
    return downstream_full.assess(facts(built)), db_pool.assess(facts(built))


def test_full_places_of_a_called_program_are_its_and_no_pool_of_the_service() -> None:
    finding, pool = of_both(called("python stock.py", 30.0))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.PROBABLE
    assert finding.statement == "python stock.py:81 serves 4 calls at a time, 200 /s; 26 wait there"
    assert isinstance(pool, Absent)


def test_a_class_is_in_the_file_of_its_name() -> None:
    finding, _ = of_both(called("java Stock.java", 30.0, "java Stock:81"))

    assert isinstance(finding, Finding)


@pytest.mark.parametrize(("program", "under_way"), [("python app.py", 30.0), ("python stock.py", 20.0)])
def test_those_of_another_program_or_without_as_many_calls_are_the_services_own(
    program: str, under_way: float
) -> None:
    finding, pool = of_both(called(program, under_way))

    assert isinstance(finding, Absent)
    assert isinstance(pool, Finding)
    assert pool.statement.startswith("The pool is full")
