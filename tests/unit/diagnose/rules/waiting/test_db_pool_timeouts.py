"""Pool time-outs: fired where the server or a gauge names the pool, silent where a lock is behind it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loadlens.diagnose.rules.waiting import db_lock_timeouts
from loadlens.diagnose.rules.waiting.db_pool_timeouts import assess
from loadlens.model.facts import Curve, EndedLevel, FailureMode, LogSign, Step
from loadlens.model.finding import Absent, Finding, Grade, NotAssessed
from tests.unit.diagnose.build import LOCKED, curve, facts, failing, step
from tests.unit.diagnose.waiting import LOCK, POOL, places

# 27 of 270 requests fail after 2 s, as a pool's time-out is set, in these words.
SAID = LogSign("pool", 27, "QueuePool limit of size 5 overflow 0 reached", "answers")


def with_last(last: Step) -> Curve:
    return curve(step(1, 4.5, 0.2), last)


def timed_out(*signs: LogSign, median: float = 2.02, pile: float = 0.9) -> Step:
    return replace(failing(0.1, median=median, pile=pile), log_signs=signs)


def test_answers_that_name_a_pool_are_probable_because_a_lock_was_not_looked_for() -> None:
    finding = assess(facts(with_last(timed_out(SAID))))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.PROBABLE
    assert finding.statement == "10 % of requests end with 500 at 20 users: no connection comes free in time"
    assert finding.explanation.startswith('"QueuePool limit of size 5 overflow 0 reached" stands in 27')


def test_words_of_the_server_need_no_pile() -> None:
    finding = assess(facts(with_last(timed_out(SAID, pile=0.1))))

    assert isinstance(finding, Finding)


def test_a_full_pool_with_a_line_and_a_lock_without_one_are_strong() -> None:
    shown = (places("pool", 5.0, 12.0, 5.0, POOL), places("lock", 0.4, 0.0, None, LOCK))

    finding = assess(facts(with_last(replace(timed_out(), places=shown))))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.STRONG


@pytest.mark.parametrize(
    "last",
    [
        timed_out(),  # no words, no gauge
        timed_out(SAID, LOCKED),  # the holders of the connections wait for a lock
        replace(timed_out(SAID), places=(places("lock", 1.0, 12.0, None, LOCK),)),
        failing(0.1, median=2.02, status=0),  # the client gave up
    ],
    ids=["unnamed", "lock in the log", "lock with a line", "client"],
)
def test_a_pool_that_is_not_shown_to_be_the_cause_is_not_named(last: Step) -> None:
    assert isinstance(assess(facts(with_last(last))), Absent)


def test_errors_that_are_there_at_the_lowest_load_are_none_of_it() -> None:
    alike = timed_out(SAID)

    assert isinstance(assess(facts(curve(replace(alike, load=1.0), alike))), Absent)


def test_without_trials_it_is_not_assessed() -> None:
    assert isinstance(assess(facts()), NotAssessed)


def test_where_the_server_names_a_pool_its_time_outs_are_not_called_a_lock() -> None:
    """Both take 2 s: only the words differ."""
    unnamed = db_lock_timeouts.assess(facts(with_last(timed_out())))
    named = db_lock_timeouts.assess(facts(with_last(timed_out(SAID))))

    assert isinstance(unnamed, Finding)
    assert unnamed.grade is Grade.SUSPECTED
    assert isinstance(named, Absent)


def ended(load: float) -> EndedLevel:
    """A level at which all requests end with 503 after 3 s beyond the 0.2 s of a success."""
    mode = FailureMode("b", "unexpected_status", 503, 32, 3.2, 1.0, 0.2)
    return EndedLevel(load, 32, (mode,), (replace(SAID, count=32),))


def test_failures_that_ended_a_level_name_the_pool_as_those_of_a_whole_one_do() -> None:
    served = curve(step(1, 5, 0.2), step(16, 80, 0.2), ended=(ended(64),))

    finding = assess(facts(served))

    assert isinstance(finding, Finding)
    assert finding.statement == "100 % of requests end with 503 at 64 users: no connection comes free in time"
