"""Uneven turns, and everything that makes turns look uneven or does not matter."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loadlens.diagnose.rules.replicas.lb_imbalance import assess
from loadlens.model.finding import Absent, Finding, Grade, NotAssessed
from tests.unit.diagnose.build import curve, facts, generator, process, step
from tests.unit.diagnose.replicas import balance, behind

SKEWED = (0.6, 0.2, 0.2)  # three turns of five
SHARED = (0.34, 0.33, 0.33)
LIGHT = (0.02, 0.02, 0.02)
FULL = (0.25, 0.021, 0.021)


def test_a_replica_with_most_of_the_turns_that_is_full_is_found() -> None:
    finding = assess(facts(behind(balance(SKEWED, LIGHT), balance(SKEWED, FULL))))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.STRONG
    assert finding.statement == "One of 3 replicas gets 60 % of the requests, 1.80 times the mean"
    uneven = finding.evidence[0]
    assert uneven.signal == "backends.max-over-mean"
    assert uneven.value == pytest.approx(1.8)  # 3 x 0.6
    assert "540 /s instead of 300 /s" in finding.advice  # 300 by 1.8


def test_equal_turns_are_even() -> None:
    answer = assess(facts(behind(balance(SHARED, LIGHT), balance(SHARED, (0.2, 0.2, 0.2)))))

    assert isinstance(answer, Absent)
    assert "1.02 times the mean" in answer.reason


def test_uneven_turns_that_make_nobody_wait_are_no_limit() -> None:
    answer = assess(facts(behind(balance(SKEWED, LIGHT), balance(SKEWED, (0.022, 0.02, 0.02)))))

    assert isinstance(answer, Absent)


def test_where_all_wait_alike_the_turns_are_not_the_limit() -> None:
    """A lock behind all of them makes the others as slow."""
    answer = assess(facts(behind(balance(SKEWED, LIGHT), balance(SKEWED, (0.2, 0.18, 0.18)))))

    assert isinstance(answer, Absent)


@pytest.mark.parametrize(("share", "kind"), [(0.40, Absent), (0.43, Finding)])
def test_a_quarter_above_the_mean_is_the_threshold(share: float, kind: type) -> None:
    shares = (share, (1 - share) / 2, (1 - share) / 2)  # 1.2 and 1.29 times the mean

    assert isinstance(assess(facts(behind(balance(shares, LIGHT), balance(shares, FULL)))), kind)


def test_few_connections_that_are_hashed_fairly_are_as_uneven() -> None:
    """Six connections over three replicas give 1.5 times the mean at the median (by simulation)."""
    shares = (0.5, 1 / 3, 1 / 6)

    answer = assess(facts(behind(balance(shares, LIGHT), balance(shares, FULL), opened=1)))

    assert isinstance(answer, Absent)
    assert "hashed fairly" in answer.reason


def test_another_replica_at_another_level_is_chance() -> None:
    """Eight connections a level, two most at the third, two at the first: 1.2 times the mean in all."""
    light, full = balance(SKEWED[::-1], LIGHT), balance(SKEWED, FULL)

    answer = assess(facts(behind(light, full, opened=8)))

    assert isinstance(answer, Absent)
    assert "over all levels 1.20 times the mean" in answer.reason


def test_a_server_that_only_probes_ask_is_no_replica() -> None:
    """It has a third of the requests of one user, and next to none of those of 64."""
    light, full = balance((0.7, 0.3), (0.02, 0.001)), balance((0.94, 0.06), (0.2, 0.001))

    assert isinstance(assess(facts(behind(light, full))), Absent)


def test_a_server_that_nobody_asks_is_no_replica() -> None:
    """The port of a gateway's metrics, say."""
    light, full = balance((1.0, 0.0), (0.02, None)), balance((1.0, 0.0), (0.2, None))

    assert isinstance(assess(facts(behind(light, full))), Absent)


def test_a_level_at_which_one_replica_was_never_asked_tells_of_others() -> None:
    """A log names two of three at the light levels; the two full levels alone show no growth."""
    light = balance((0.5, 0.5), (0.02, 0.02))

    assert isinstance(assess(facts(behind(light, balance(SKEWED, FULL)))), Absent)


def test_a_replica_that_is_slow_from_the_start_is_not_excluded() -> None:
    finding = assess(facts(behind(balance(SKEWED, (0.05, 0.02, 0.02)), balance(SKEWED, (0.5, 0.02, 0.02)))))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.PROBABLE


@pytest.mark.parametrize("covered", [2.0, None])
def test_servers_that_are_all_asked_for_each_request_may_be_no_replicas(covered: float | None) -> None:
    finding = assess(facts(behind(balance(SKEWED, LIGHT), balance(SKEWED, FULL, covered=covered))))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.SUSPECTED


def test_times_that_are_not_known_leave_it_suspected() -> None:
    unknown = (None, None, None)

    finding = assess(facts(behind(balance(SKEWED, unknown), balance(SKEWED, unknown))))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.SUSPECTED


def test_where_more_users_still_bring_more_no_limit_was_seen() -> None:
    """600 a second at 64 users after 300 at 32."""
    growing = behind(balance(SKEWED, LIGHT), balance(SKEWED, FULL), throughput_trials=(600.0,) * 3)

    finding = assess(facts(growing))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.SUSPECTED


@pytest.mark.parametrize(
    ("light", "full"),
    [
        ((0.0004, 0.0004, 0.0004), (0.004, 0.0004, 0.0004)),  # within a step of the clock
        (LIGHT, (0.25, None, None)),  # whether the others wait as well was not seen
    ],
)
def test_times_that_cannot_be_compared_leave_it_suspected(
    light: tuple[float | None, ...], full: tuple[float | None, ...]
) -> None:
    finding = assess(facts(behind(balance(SKEWED, light), balance(SKEWED, full))))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.SUSPECTED


def test_a_late_generator_is_the_cause_itself() -> None:
    late = generator(verdict="limit")

    assert isinstance(
        assess(facts(behind(balance(SKEWED, LIGHT), balance(SKEWED, FULL), generator=late))), Absent
    )


def test_one_trial_bears_no_more_than_probable() -> None:
    finding = assess(facts(behind(balance(SKEWED, LIGHT), balance(SKEWED, FULL), trials=1)))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.PROBABLE


def test_other_names_and_an_order_of_their_own_change_nothing() -> None:
    there = assess(facts(behind(balance(SKEWED, LIGHT), balance(SKEWED, FULL))))
    turned = behind(
        balance(SKEWED[::-1], LIGHT[::-1], label="ж"), balance(SKEWED[::-1], FULL[::-1], label="ж")
    )
    other = assess(facts(replace(turned, label="x")))

    assert isinstance(there, Finding)
    assert isinstance(other, Finding)
    assert (there.statement, there.grade) == (other.statement, other.grade)


def test_without_replicas_it_says_what_would_tell() -> None:
    outside = assess(facts(curve(step(1, 5.0, 0.2))))
    watched = assess(facts(curve(step(1, 5.0, 0.2, processes=(process(0.3),)))))

    assert isinstance(outside, NotAssessed)
    assert "--pid" in outside.reason
    assert isinstance(watched, NotAssessed)
    assert "no replicas" in watched.reason


def test_what_equal_turns_bring_is_said_only_where_the_others_have_room() -> None:
    """The least loaded one takes twice its light time: weights may be meant, and it has no room to give."""
    built = behind(balance(SKEWED, LIGHT), balance(SKEWED, (0.4, 0.04, 0.04)))

    finding = assess(facts(built))

    assert isinstance(finding, Finding)
    assert finding.advice == "Spread requests by least connections, with equal weights."
    assert finding.explanation.startswith("It is fuller than the others")
