"""A slow replica, equal ones, and what makes an equal one look slow."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loadlens.diagnose.rules.replicas.backend_slow_one import assess, slowest_of
from loadlens.model.facts import BalanceWatch, Curve
from loadlens.model.finding import Absent, Estimate, Finding, Grade, NotAssessed
from tests.unit.diagnose.build import curve, facts, generator, step
from tests.unit.diagnose.replicas import balance, behind

EVEN = (0.33, 0.33, 0.34)
QUIET = (0.001, 0.001, 0.001)  # cores waited for


def slow(
    times: tuple[float, ...] = (0.02, 0.02, 0.05), shares: tuple[float, ...] = EVEN, **more: object
) -> Curve:
    """At the highest levels the slow one is full and takes longer still."""
    given = {"waiting": QUIET, **more}
    full = (times[0], times[1], 10 * times[2])
    return behind(balance(shares, times, **given), balance(shares, full, **given))  # type: ignore[arg-type]


def test_a_replica_that_takes_longer_for_the_same_share_is_found() -> None:
    finding = assess(facts(slow()))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.STRONG
    assert (
        finding.statement == "One of 3 replicas takes 2.50 times as long as the others (50.0 ms, not 20.0 ms)"
    )
    ratio = finding.evidence[0]
    assert ratio.signal == "backends.slowest-ratio"
    assert ratio.value == pytest.approx(2.5)  # below the knee
    assert ratio.low is not None
    assert ratio.high is not None
    assert ratio.low < 2.5 < ratio.high


def test_equal_replicas_are_not() -> None:
    answer = assess(facts(slow((0.02, 0.021, 0.022))))

    assert isinstance(answer, Absent)
    assert "1.07 times" in answer.reason  # 0.022 over the mean of 0.0205


@pytest.mark.parametrize(("time", "kind"), [(0.0244, Absent), (0.0256, Finding)])
def test_a_quarter_longer_is_the_threshold(time: float, kind: type) -> None:
    assert isinstance(assess(facts(slow((0.02, 0.02, time)))), kind)


def test_an_interval_that_reaches_down_to_a_tenth_is_only_suspected() -> None:
    """1.3 times, and either way 1.3 x 0.2 x sqrt(1 + 1/2) = 0.32."""
    finding = assess(facts(slow((0.02, 0.02, 0.026), half=0.2)))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.SUSPECTED


def opened(built: BalanceWatch) -> BalanceWatch:
    """The same from so few answers that times have no interval."""
    replicas = []
    for replica in built.replicas:
        if isinstance(replica.time, Estimate):
            replica = replace(replica, time=replace(replica.time, low=None, high=None))
        replicas.append(replica)
    return replace(built, replicas=tuple(replicas))


def ladder(*times: tuple[float | None, ...], last: int = 3000) -> Curve:
    """Levels too short for intervals, of 3,000 requests each, and the last one of so many."""
    requests = [3000] * (len(times) - 1) + [last]
    seen = zip(times, requests, strict=True)
    return climbing(*(opened(balance(EVEN, own, requests=n, waiting=QUIET)) for own, n in seen))


def climbing(*seen: BalanceWatch) -> Curve:
    """Users 1, 2, 4 ...; the capacity of 4,000 a second and 20 ms alone make a knee of 80 users."""
    steps = [step(2.0**n, 50 * 2.0**n, 0.02, balances=(built,)) for n, built in enumerate(seen)]
    full = [step(users, 4000.0, users / 4000) for users in (160.0, 320.0)]
    return curve(*steps, *full, think=0.0)


def test_few_answers_of_equal_replicas_differ_and_name_none_of_them() -> None:
    """Ratios of 1.5, 0.9 and 1.6: their logarithms have a mean of 0.26 and a half-width of 0.78 (t 4.3)."""
    finding = assess(facts(ladder((0.02, 0.02, 0.03), (0.02, 0.02, 0.018), (0.02, 0.02, 0.032))))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.SUSPECTED


def test_levels_that_agree_stand_for_the_interval_that_short_trials_lack() -> None:
    """Ratios of 2, 2.1 and 2.05: t on their logarithms reaches down to 1.93."""
    finding = assess(facts(ladder((0.02, 0.02, 0.04), (0.02, 0.02, 0.042), (0.02, 0.02, 0.041))))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.STRONG
    assert finding.evidence[0].low == pytest.approx(1.93, abs=0.01)


def test_the_ratio_of_several_levels_is_their_mean_and_lies_within_its_own_interval() -> None:
    """Ratios of 2 at four levels and 1.5 at the one that has 99 % of the requests.

    Their geometric mean is (2^4 x 1.5)^(1/5) = 1.888; the logarithms have a standard deviation of 0.1286, and
    t of four degrees makes 2.776 x 0.1286 / sqrt(5) = 0.160 of it: 1.61 to 2.22. Over all requests it is
    1.51. The times are geometric means, too: (40^4 x 30)^(1/5) = 37.8 ms against 20.
    """
    twice = (0.02, 0.02, 0.04)

    finding = assess(facts(ladder(twice, twice, twice, twice, (0.02, 0.02, 0.03), last=1_200_000)))

    assert isinstance(finding, Finding)
    ratio = finding.evidence[0]
    assert ratio.value == pytest.approx(24**0.2)
    assert [ratio.low, ratio.high] == pytest.approx([1.61, 2.215], abs=0.005)
    assert finding.statement.startswith("One of 3 replicas takes 1.89 times as long")
    assert "(37.8 ms, not 20.0 ms)" in finding.statement
    assert finding.impact == pytest.approx(1 - 1 / 24**0.2)


def test_times_with_intervals_make_a_ratio_of_means_over_all_requests() -> None:
    """1,500 requests of 30 ms and 3,000 of 60: (30 + 2 x 60) / 3 = 50 ms, against 20 and 20."""
    light = balance(EVEN, (0.02, 0.02, 0.03), requests=1500, waiting=QUIET)
    busy = balance(EVEN, (0.02, 0.02, 0.06), requests=3000, waiting=QUIET)

    finding = assess(facts(climbing(light, busy)))

    assert isinstance(finding, Finding)
    assert finding.evidence[0].value == pytest.approx(2.5)


def test_a_level_that_did_not_time_every_replica_counts_for_none() -> None:
    """The last one is timed at four users only, where all take 40 ms: over all levels it would seem slow."""
    answer = assess(facts(ladder((0.02, 0.02, None), (0.02, 0.02, None), (0.04, 0.04, 0.04))))

    assert isinstance(answer, Absent)
    assert "1.00 times" in answer.reason


def test_levels_beyond_the_knee_alone_tell_of_queues_and_not_of_replicas() -> None:
    built = slow()
    light = tuple(replace(s, balances=()) if s.load < 32 else s for s in built.steps)

    assert isinstance(assess(facts(replace(built, steps=light))), NotAssessed)


def test_a_replica_with_more_than_its_share_is_the_balancers_doing() -> None:
    answer = assess(facts(slow(shares=(0.2, 0.2, 0.6))))

    assert isinstance(answer, Absent)
    assert "1.80 times the mean" in answer.reason


def test_a_slow_replica_that_a_balancer_spares_is_still_slow() -> None:
    assert isinstance(assess(facts(slow(shares=(0.4, 0.4, 0.2)))), Finding)


def test_waiting_for_a_busy_core_is_its_place_not_the_replica() -> None:
    """It waits 0.33 cores at 50 x 0.34 requests per second: 19 ms each, of 30 ms that it takes longer."""
    answer = assess(facts(slow(waiting=(0.001, 0.001, 0.33))))

    assert isinstance(answer, Absent)
    assert "for a core" in answer.reason


def test_without_a_sight_of_waiting_the_place_is_not_excluded() -> None:
    finding = assess(facts(slow(waiting=None)))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.PROBABLE


def test_a_server_for_something_else_is_no_replica() -> None:
    light = balance((0.5, 0.5), (0.02, 0.05), waiting=QUIET[:2])
    full = balance((0.95, 0.05), (0.02, 0.05), waiting=QUIET[:2])

    assert isinstance(assess(facts(behind(light, full))), Absent)


def test_servers_that_are_all_asked_for_each_request_are_suspected_only() -> None:
    finding = assess(facts(slow(covered=2.0)))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.SUSPECTED


def test_times_below_the_steps_of_the_clock_are_not_assessed() -> None:
    answer = assess(facts(slow((0.0002, 0.0002, 0.0005))))

    assert isinstance(answer, NotAssessed)
    assert "1.00 ms" in answer.reason


def test_too_few_requests_are_not_assessed() -> None:
    level = balance((0.45, 0.45, 0.1), (0.02, 0.02, 0.05), requests=50)

    assert isinstance(assess(facts(behind(level, level))), NotAssessed)


def test_a_late_generator_leaves_it_open() -> None:
    built = slow()
    late = tuple(
        step(s.load, 50.0, 0.02, balances=s.balances, generator=generator(verdict="limit"))
        for s in built.steps
    )

    assert isinstance(assess(facts(curve(*late, think=0.0))), Absent)


def test_without_replicas_nothing_is_assessed() -> None:
    assert isinstance(assess(facts(curve(step(1, 5.0, 0.2)))), NotAssessed)


def test_several_kinds_of_requests_may_each_go_to_a_server_of_their_own() -> None:
    """A gateway that routes by path: nothing says that the costly kind went to all of them."""
    built = slow()
    kinds = tuple(replace(s, classes=(*s.classes, *s.classes)) for s in built.steps)

    finding = assess(facts(replace(built, steps=kinds)))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.SUSPECTED


def test_the_named_replica_is_the_slowest_over_all_levels_below_the_knee() -> None:
    """At one user alone the second one seems slower; there are three levels, and the third one is."""
    built = ladder((0.02, 0.05, 0.04), (0.02, 0.02, 0.05), (0.02, 0.02, 0.05))

    assert slowest_of(built, 3) == 2
    assert slowest_of(built, 4) is None
