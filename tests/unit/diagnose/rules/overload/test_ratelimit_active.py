"""A bucket of tokens: found with its rate and burst, distinguished from a service that can do no more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loadlens.diagnose.rules.overload.ratelimit_active import assess
from loadlens.model.facts import (
    Crowd,
    Curve,
    Facts,
    FailureMode,
    LogSign,
    LostWatch,
    QuotaWatch,
    ReceivedWatch,
    RefusalWatch,
    Step,
    Times,
)
from loadlens.model.finding import Absent, Estimate, Finding, Grade, NotAssessed
from loadlens.model.shapes import Standstill, StandstillWatch
from tests.unit.diagnose.build import (
    UNWATCHED,
    connections,
    curve,
    estimate,
    facts,
    process,
    step,
    times,
)

RATE, BURST = 100.0, 30.0


def burst_of(requests: float) -> Estimate:
    return Estimate("burst", "requests", requests, requests - 0.2, requests + 0.2, 3, 30, "built")


def refused_at(
    users: float,
    offered: float,
    *,
    rate: float = RATE,
    burst: float = BURST,
    dispersion: float = 0.02,
    status: int = 429,
    response: float = 0.008,
    **more: Any,
) -> Step:
    """A level of which a limiter refuses what exceeds its rate."""
    passed = min(rate, offered)
    share = 1 - passed / offered
    refusal = RefusalWatch(
        status,
        estimate(share, unit="share"),
        estimate(passed, unit="1/s", half=0.005),
        burst_of(burst),
        dispersion,
        offered,
    )
    counts = ((200, round(20 * passed)), (status, round(20 * (offered - passed))))
    return step(
        users, passed, response, refusals=(refusal,) if share >= 0.01 else (), statuses=counts, **more
    )


def limited(**more: Any) -> Curve:
    """Users who pause: 1 below the limit, 2 to 8 beyond it."""
    return curve(*[refused_at(users, 70.0 * users, **more) for users in (1, 2, 4, 8)], think=0.008)


def test_rate_and_burst_are_claimed_with_their_intervals() -> None:
    answer = assess(facts(limited()))

    assert isinstance(answer, Finding)
    assert answer.grade is Grade.STRONG
    shown = {e.signal: e for e in answer.evidence}
    rate, burst = shown["limiter.rate"], shown["limiter.burst"]
    assert rate.value == RATE
    assert rate.low == pytest.approx(99.5)
    assert rate.high == pytest.approx(100.5)
    assert burst.value == BURST
    assert (burst.low, burst.high) == (
        28.0,
        None,
    )  # an edge of an interval hides two; the bucket may hold more
    assert len(answer.statement) <= 90
    assert all(len(e.chip) <= 32 for e in answer.evidence)


def test_the_level_that_let_most_in_at_once_tells_what_the_bucket_holds_at_least() -> None:
    """Trials follow each other: the bucket was full before the first alone."""
    levels = [refused_at(2, 200.0, burst=30.0), refused_at(4, 400.0, burst=11.0)]

    answer = assess(facts(curve(*levels)))

    assert isinstance(answer, Finding)
    shown = next(e for e in answer.evidence if e.signal == "limiter.burst")
    assert (shown.value, shown.low, shown.high) == (30.0, 28.0, None)


def test_a_rate_is_known_to_one_request_at_the_end_of_a_trial() -> None:
    """In half a second one request is 2/s, however well trials agree."""
    short = replace(refused_at(2, 200.0).quality, seconds=0.5)

    answer = assess(facts(limited(quality=short)))

    assert isinstance(answer, Finding)
    rate = next(e for e in answer.evidence if e.signal == "limiter.rate")
    assert (rate.low, rate.high) == (RATE - 2, RATE + 2)


@pytest.mark.parametrize(("spread", "fires"), [(1.09, True), (1.12, False)])
def test_the_accepted_rate_must_be_the_same_at_every_level(spread: float, fires: bool) -> None:
    levels = [refused_at(2, 200.0), refused_at(4, 400.0, rate=RATE * spread)]

    assert isinstance(assess(facts(curve(*levels))), Finding if fires else Absent)


def test_a_level_hardly_refused_does_not_decide_about_the_rate() -> None:
    levels = [refused_at(2, 83.0, rate=80.0), refused_at(4, 200.0), refused_at(8, 400.0)]  # 3.6 % refused

    answer = assess(facts(curve(*levels)))

    assert isinstance(answer, Finding)
    assert answer.grade is Grade.STRONG


def test_the_curve_with_most_levels_is_named_first() -> None:
    short = replace(curve(refused_at(2, 5_000.0)), label="short")
    long = replace(limited(), label="long")

    answer = assess(facts(short, long))

    assert isinstance(answer, Finding)
    assert answer.curves == ("long", "short")


def test_one_level_alone_is_no_more_than_a_suspicion() -> None:
    answer = assess(facts(curve(step(1, 70.0, 0.008), refused_at(2, 200.0))))

    assert isinstance(answer, Finding)
    assert answer.grade is Grade.SUSPECTED


def test_a_quota_that_is_used_up_lets_nothing_in() -> None:
    refused = refused_at(1, 5.0, rate=0.0, burst=0.0, dispersion=float("inf"))
    answer = assess(facts(curve(refused, think=0.0)))

    assert isinstance(answer, Finding)
    assert answer.grade is Grade.PROBABLE
    assert answer.statement.startswith("Nothing is let in any more: 100 % get 429 at ")
    assert len(answer.statement) <= 90


@pytest.mark.parametrize(
    ("cpu", "dispersion", "grade"),
    [
        (0.2, 1.0, Grade.STRONG),  # of 4 cores: 5 %
        (3.0, 1.0, Grade.PROBABLE),  # 75 %
        (3.6, 0.1, Grade.PROBABLE),  # full, and as even as a bucket
        (3.6, 1.0, None),  # full, and by chance: it does what it can
    ],
)
def test_a_service_out_of_cpu_that_refuses_is_no_limiter(
    cpu: float, dispersion: float, grade: Grade | None
) -> None:
    answer = assess(facts(limited(processes=(process(cpu),), dispersion=dispersion)))

    assert (answer.grade if isinstance(answer, Finding) else None) is grade
    if grade is None:
        assert isinstance(answer, Absent)
        assert "90 %" in answer.reason


@pytest.mark.parametrize(("dispersion", "grade"), [(0.19, Grade.STRONG), (0.2, Grade.PROBABLE)])
def test_from_outside_evenness_tells_a_bucket_from_overload(dispersion: float, grade: Grade) -> None:
    answer = assess(facts(limited(dispersion=dispersion)))

    assert isinstance(answer, Finding)
    assert answer.grade is grade


def test_the_cpu_is_that_of_the_lightest_level() -> None:
    busy = replace(refused_at(8, 20_000.0, dispersion=1.0), processes=(process(3.9),))
    light = replace(refused_at(2, 200.0, dispersion=1.0), processes=(process(0.1),))

    answer = assess(facts(curve(light, busy)))

    assert isinstance(answer, Finding)
    assert answer.grade is Grade.STRONG


def test_a_limit_of_requests_at_once_stays_possible_where_as_many_are_under_way() -> None:
    answer = assess(facts(limited(response=0.08, burst=8.0)))  # 100/s x 80 ms = 8 under way

    assert isinstance(answer, Finding)
    assert answer.grade is Grade.SUSPECTED


@pytest.mark.parametrize(("places", "grade"), [(12, Grade.STRONG), (11, Grade.SUSPECTED)])
def test_a_bucket_lets_more_in_at_once_than_are_under_way(places: int, grade: Grade) -> None:
    """8 are under way where 2/7 are refused: of 11 places 9.3 would be taken, of 12 10.2."""
    answer = assess(facts(limited(response=0.08, burst=places + 2.0)))

    assert isinstance(answer, Finding)
    assert answer.grade is grade


@pytest.mark.parametrize(
    ("dispersion", "p99", "grade"),
    [(0.15, 0.4, Grade.STRONG), (0.3, 0.4, Grade.SUSPECTED), (0.15, 0.09, Grade.SUSPECTED)],
)
def test_successes_that_come_evenly_though_their_times_vary_are_let_in_by_a_bucket(
    dispersion: float, p99: float, grade: Grade
) -> None:
    """As many are under way as were let in at once. Times of 10 to 400 ms scatter by 0.27."""
    built = limited(response=0.08, burst=8.0, dispersion=dispersion)
    uneven = Times(estimate(0.08), estimate(0.01 if p99 > 0.1 else 0.08), estimate(p99))
    steps = tuple(replace(step, response=uneven) for step in built.steps)

    answer = assess(facts(replace(built, steps=steps)))

    assert isinstance(answer, Finding)
    assert answer.grade is grade


def test_a_shedder_that_answers_503_is_none() -> None:
    assert isinstance(assess(facts(limited(status=503))), Absent)


def test_without_refusals_it_says_how_far_it_could_see() -> None:
    answer = assess(facts(curve(step(1, 123.0, 0.008, statuses=((200, 900),)))))

    assert isinstance(answer, Absent)
    assert "123" in answer.reason


def test_refusals_that_were_too_short_to_measure_are_not_assessed() -> None:
    answer = assess(facts(curve(step(1, 50.0, 0.008, statuses=((200, 90), (429, 10))))))

    assert isinstance(answer, NotAssessed)
    assert "10 %" in answer.reason


def test_a_load_without_statuses_is_not_assessed() -> None:
    assert isinstance(assess(facts(curve(step(1, 50.0, 0.008)))), NotAssessed)


def paced(
    rate: float = 50.0, *, cpu: float = 0.02, alone: float = 0.01, trials: int = 3, **more: Any
) -> Facts:
    """A service that takes 10 ms and lets 50/s through: one user alone would ask 100/s."""
    watch = connections(8, 8_000)
    levels = []
    for users in (1, 4, 8):
        came = ReceivedWatch(estimate(5e4), estimate(users / rate), estimate(1e-4))
        built = {
            "processes": (process(cpu),),
            "connections": watch,
            "statuses": ((200, 900),),
            "received": came,
        }
        gap = {"longest_gap_s": 2 / rate, "trials": trials}
        levels.append(step(users, rate, users / rate, **{**built, **gap, **more}))
    measured = facts(curve(*levels, think=0.0))
    return replace(measured, unloaded=(replace(levels[0].classes[0], response=times(alone)),))


def test_a_limiter_that_delays_lets_less_through_than_one_after_the_other() -> None:
    answer = assess(paced())

    assert isinstance(answer, Finding)
    assert answer.grade is Grade.PROBABLE  # a place may stay taken after the answer
    shown = {e.signal: e.value for e in answer.evidence}
    assert shown["limiter.rate"] == 50.0
    assert shown["limiter.places"] == pytest.approx(0.5)
    assert answer.impact == pytest.approx(1 - 0.01 / 0.16)
    assert len(answer.statement) <= 90
    assert all(len(e.chip) <= 32 for e in answer.evidence)


@pytest.mark.parametrize(("alone", "fires"), [(0.0136, True), (0.0144, False), (0.02, False)])
def test_a_lock_lets_one_through_over_its_time(alone: float, fires: bool) -> None:
    assert isinstance(assess(paced(alone=alone)), Finding if fires else Absent)


def test_what_slows_down_only_under_load_is_no_limiter() -> None:
    built = paced()
    fast = replace(built.curves[0].steps[0], throughput=estimate(100.0), throughput_trials=(100.0,) * 3)
    later = replace(built.curves[0], steps=(fast, *built.curves[0].steps[1:]))

    assert isinstance(assess(replace(built, curves=(later,))), Absent)


def test_from_outside_a_service_may_have_more_to_do_than_it_shows() -> None:
    answer = assess(paced(processes=()))

    assert isinstance(answer, Finding)
    assert answer.grade is Grade.SUSPECTED


@pytest.mark.parametrize(
    "more",
    [
        {"cpu": 3.0},  # of 4 cores
        {"connections": connections(900, 900, limit=1)},  # each request has to be accepted
        {"quotas": (QuotaWatch("p", 0.2, 0.1, estimate(0.2), estimate(0.8), estimate(0.5)),)},
    ],
)
def test_what_holds_a_service_back_otherwise_is_no_limiter(more: dict[str, Any]) -> None:
    assert isinstance(assess(paced(**more)), Absent)


@pytest.mark.parametrize(
    ("cpu", "quotas", "grade"),
    [
        (0.049, (), Grade.PROBABLE),  # no quota is so small
        (0.05, (), Grade.SUSPECTED),
        (0.3, (QuotaWatch("p", 2.0, 0.1, estimate(0.3), estimate(0.01), estimate(0.01)),), Grade.PROBABLE),
    ],
)
def test_a_service_that_works_may_be_held_back_by_a_quota_that_nobody_could_read(
    cpu: float, quotas: tuple[QuotaWatch, ...], grade: Grade
) -> None:
    answer = assess(paced(cpu=cpu, quotas=quotas))

    assert isinstance(answer, Finding)
    assert answer.grade is grade


@pytest.mark.parametrize("more", [{"longest_gap_s": 0.5}, {"other_cores": 3.0}])
def test_what_cannot_be_ruled_out_makes_it_probable(more: dict[str, Any]) -> None:
    answer = assess(paced(**more))

    assert isinstance(answer, Finding)
    assert answer.grade is Grade.PROBABLE


def test_without_a_calm_look_a_delay_is_not_told_from_a_lock() -> None:
    assert isinstance(assess(replace(paced(), unloaded=())), Absent)


@pytest.mark.parametrize("limiter", ["golang.org/x/time/rate.(*Limiter).WaitN", ""])
def test_threads_in_a_function_that_limits_a_rate_show_it(limiter: str) -> None:
    # A request takes 200 ms alone, so a pool of ten would let as many through.
    built = paced(alone=0.2)
    *lower, top = built.curves[0].steps
    crowd = Crowd(12.2, 16.0, "send.go:38", limiter=limiter)
    watched = replace(built.curves[0], steps=(*lower, replace(top, crowd=crowd)))

    answer = assess(replace(built, curves=(watched,)))

    assert isinstance(answer, Finding if limiter else Absent)
    if isinstance(answer, Finding):
        assert answer.grade is Grade.PROBABLE
        assert answer.statement == (
            "A rate limiter lets 50.0 /s through: 12 of 16 threads wait for it at send.go:38"
        )
        assert len(answer.statement) <= 90


def test_a_bucket_a_hundred_times_as_large_gives_the_same_grade() -> None:
    levels = [
        refused_at(n, 7_000.0 * n, rate=100 * RATE, burst=100 * BURST, response=8e-5) for n in (2, 4, 8)
    ]

    answer = assess(facts(curve(*levels)))

    assert isinstance(answer, Finding)
    assert answer.grade is Grade.STRONG


def test_processes_whose_cpu_is_not_known_are_not_taken_for_idle() -> None:
    unread = replace(process(0.02), cpu=UNWATCHED, occupied=UNWATCHED)

    answer = assess(paced(processes=(unread,)))

    assert isinstance(answer, Finding)
    assert answer.grade is Grade.SUSPECTED


@pytest.mark.parametrize(("stood_s", "fires"), [(2.0, True), (3.0, False)])
def test_what_stands_still_lets_more_through_meanwhile(stood_s: float, fires: bool) -> None:
    """50/s of 10 ms are 0.5 places; without 3 s of 10 they are 0.71, as one place may give."""
    stop = Standstill(4.0, 4.0 + stood_s, False)

    answer = assess(paced(standstills=(StandstillWatch("1", 0.0, 10.0, 0.07, 0.02, 0.02, (stop,)),)))

    assert isinstance(answer, Finding if fires else Absent)


@pytest.mark.parametrize(("coming", "fires"), [(0.39, True), (0.41, False)])
def test_answers_that_take_long_to_come_are_not_held_back_by_a_limiter(coming: float, fires: bool) -> None:
    came = ReceivedWatch(estimate(5e6), estimate(0.16 * (1 - coming)), estimate(0.16 * coming))

    assert isinstance(assess(paced(received=came)), Finding if fires else Absent)


def spent(words: str = "allows 1500 an hour", took_s: float = 0.1, status: int = 503) -> Curve:
    """1,500 requests of 0.1 s were served, and from then on none."""
    mode = FailureMode("b", "unexpected_status", status, 80, took_s, 0.9, 0.1)
    signs = (LogSign("quota", 80, words, "answers"),) if words else ()
    watch = LostWatch(16, 1_500, 80, mode, 80, signs)
    levels = (step(users, 10.0 * users, 0.1, statuses=((200, 900),)) for users in (1.0, 16.0))
    return curve(*levels, lost=watch)


def test_a_quota_that_is_used_up_is_named_whatever_the_status() -> None:
    finding = assess(facts(spent()))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.PROBABLE
    assert finding.statement == "A quota is used up: after 1,500 answers all requests end with 503"
    assert "allows 1500 an hour" in finding.explanation


@pytest.mark.parametrize(
    "built",
    [spent(words=""), spent(took_s=2.0), spent(status=0), spent(status=200)],
    ids=["no words", "they wait", "no answer", "no error"],
)
def test_a_service_that_fails_for_good_without_words_of_a_quota_has_none(built: Curve) -> None:
    assert not isinstance(assess(facts(built)), Finding)
