"""A load that ended before the capacity, and loads that reached it or were held by something else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loadlens.diagnose.rules.capacity_limits import healthy
from loadlens.diagnose.rules.measurement import gen_bottleneck
from loadlens.diagnose.rules.measurement.load_underdriven import assess
from loadlens.model.facts import Curve, Step
from loadlens.model.finding import Absent, Finding, Grade, NotAssessed
from tests.unit.diagnose.build import curve, facts, generator, process, step


def growing(*users: int, label: str = "k=1", trials: int = 3, **top: object) -> Curve:
    """50 ms whatever the load: throughput doubles with the users."""
    steps = [step(n, n / 0.05, 0.05, trials=trials) for n in users]
    steps[-1] = replace(steps[-1], **top)  # type: ignore[arg-type]
    return curve(*steps, think=0.0, label=label)


def test_throughput_that_still_grows_is_no_capacity() -> None:
    finding = assess(facts(growing(1, 2, 4, 8)))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.STRONG
    assert finding.statement == (
        "Underdriven: 160 /s at 8 users, and the last doubling still brought +100.0 %"
    )
    assert "16 users" in finding.advice


def test_a_level_just_beyond_the_knee_is_underdriven_and_the_target_lies_at_nearly_twice_the_knee() -> None:
    # X = 100/s, R1 + Z = 50 ms: the knee lies at 5 users; 8 is 1.6 times that.
    steps = [step(1, 20.0, 0.05), step(4, 95.0, 0.05), step(8, 100.0, 0.08)]

    finding = assess(facts(curve(*steps, think=0.0)))

    assert isinstance(finding, Finding)
    assert "1.6 times the knee" in finding.statement
    assert "16 users" in finding.advice  # twice the last level is more than 1.8 times 5


def test_far_beyond_the_knee_it_stays_silent() -> None:
    steps = [step(1, 20.0, 0.05), step(5, 100.0, 0.05), step(10, 100.0, 0.1)]

    assert isinstance(assess(facts(curve(*steps, think=0.0))), Absent)


@pytest.mark.parametrize(("gain", "is_found"), [(1.11, True), (1.09, False)])
def test_ten_per_cent_per_doubling_decide(gain: float, is_found: bool) -> None:
    steps = [step(1, 99.0, 0.01), step(32, 100.0, 0.32), step(64, 100.0 * gain, 0.6)]

    answer = assess(facts(curve(*steps, think=0.0)))

    assert isinstance(answer, Finding) is is_found


@pytest.mark.parametrize(
    ("think", "rate", "levels", "is_found"),
    [
        (0.05, 160.0, (), False),
        (0.0, 160.0, (), True),  # the same users: one of both is wrong
        (0.05, 150.0, (), True),  # less than was reached without a pause
        (0.05, 160.0, (("workers", "2"),), True),  # another service
    ],
)
def test_users_who_pause_may_have_reached_what_hasty_ones_did_not(
    think: float, rate: float, levels: tuple[tuple[str, str], ...], is_found: bool
) -> None:
    patient = [step(n, rate, n / rate - think) for n in (32, 64)]
    first = step(1, 1 / (0.05 + think), 0.05)
    other = replace(curve(first, *patient, think=think, label="patient"), levels=levels)

    answer = assess(facts(growing(1, 2, 4, 8), other))

    assert isinstance(answer, Finding) is is_found


def asked(users: int, rate: float, completed: float, think: float = 0.031) -> Step:
    return step(users, rate, users / completed - think, completed_trials=(completed,) * 3)


@pytest.mark.parametrize(
    ("rate", "completed", "is_found"),
    [
        (260.0, 1040.0, False),  # 28 of 726 more were served, where 74 % had been
        (500.0, 680.0, True),  # 268 of 366: as before
        (367.0, 680.0, False),  # 135 of 366 are 36.9 %, the half of 74 % is 37.0 %
        (370.0, 680.0, True),  # 138 of 366 are 37.6 %
    ],
)
def test_where_most_of_what_a_level_adds_is_turned_away_more_load_brings_nothing(
    rate: float, completed: float, is_found: bool
) -> None:
    patient = curve(asked(1, 11, 11), asked(24, 232, 314), asked(48, rate, completed), think=0.031, label="p")

    alone = assess(facts(patient))
    beside_hasty = assess(facts(growing(1, 2, 4, 8), patient))

    assert [isinstance(answer, Finding) for answer in (alone, beside_hasty)] == [is_found, is_found]
    if not is_found:
        assert isinstance(alone, Absent)
        assert alone.reason == "most of what 48 users added on p was not served"


def test_requests_that_fail_at_any_load_do_not_hide_that_the_load_was_short() -> None:
    # 40 % of all succeed, at 1 user and at 8: what is added is served as what was there before
    steps = [asked(users, 8.0 * users, 20.0 * users, think=0.0) for users in (1, 2, 4, 8)]

    assert isinstance(assess(facts(curve(*steps, think=0.0))), Finding)


def test_a_late_generator_is_the_limit_itself() -> None:
    late = generator(verdict="limit", busy=0.98)

    answer = assess(facts(growing(1, 2, 4, generator=late)))

    assert isinstance(answer, Absent)
    assert "generator was late" in answer.reason


def test_one_trial_a_level_bears_no_more_than_probable() -> None:
    finding = assess(facts(growing(1, 2, 4, trials=1)))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.PROBABLE


def test_one_level_or_an_open_load_cannot_be_judged() -> None:
    assert isinstance(assess(facts(growing(1))), NotAssessed)
    assert isinstance(assess(facts(replace(growing(1, 2), is_closed=False))), NotAssessed)


def test_health_says_first_that_the_load_was_short() -> None:
    quiet = growing(1, 2, 4, processes=(process(0.5),))
    short = assess(facts(quiet))
    silent = gen_bottleneck.assess(facts(quiet))

    before = healthy.assess_after(facts(quiet), (silent,))
    after = healthy.assess_after(facts(quiet), (silent, short))

    assert isinstance(before, Finding)
    assert isinstance(after, Finding)
    assert before.statement.startswith("Nothing limits up to 80.0 /s")
    assert after.statement.startswith("Underdriven: nothing limits up to 80.0 /s")
