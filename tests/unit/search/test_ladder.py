"""Decisions of the ladder, on services whose capacity follows from a formula."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from loadlens.estimate.saturation import Saturation
from loadlens.model.search import Bounds
from loadlens.search import ladder
from loadlens.search.ladder import (
    Next,
    Outcome,
    Stop,
    decide,
    levels_of,
    look_think_s,
    probe_per_s,
    saturation_of,
    think_s,
)
from tests.unit.search.services import (
    Answer,
    Searched,
    Service,
    endless,
    failing_from,
    limited,
    one_server,
    pool,
    retrograde,
    search,
    several_servers,
    shedding,
)

BOUNDS = Bounds(budget_s=90.0, rate_cap_per_s=20_000.0, most_users=1024)


def saturation(outcome: Searched) -> Saturation:
    pause = outcome.seen[-1].pause_s
    estimate = saturation_of(levels_of(outcome.seen, pause), pause)
    assert isinstance(estimate, Saturation)
    return estimate


def levels(outcome: Searched) -> list[int]:
    return list(dict.fromkeys(outcome.users))


# --- the way up --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("service", "capacity", "knee"),
    [
        (one_server(0.010, 0.002), 100.0, 1.2),  # 1 / D; (D + Z) / D
        (one_server(0.020, 0.060), 50.0, 4.0),
        (several_servers(0.040, 0.010, 4), 100.0, 5.0),  # c / D; c (D + Z) / D
        (pool(8, 0.050), 160.0, 8.0),  # W / S; W
        (pool(50, 0.100), 500.0, 50.0),
    ],
    ids=["M/M/1", "M/M/1 far away", "M/M/4", "pool of 8", "pool of 50"],
)
def test_it_doubles_until_well_beyond_the_knee_and_then_only_looks_at_64_users(
    service: object, capacity: float, knee: float
) -> None:
    outcome = search(service, BOUNDS)  # type: ignore[arg-type]

    estimate, climbed = saturation(outcome), levels(outcome)
    assert outcome.stop.because == "saturated"
    if climbed[-2] < 32 and 64 / capacity <= 1:  # R = N / X: who waits longer makes the look too long
        assert climbed.pop() == 64
    assert climbed == [2**i for i in range(len(climbed))]
    assert climbed[-1] >= 1.8 * knee * 0.97  # by Little's knee, whose X is within 3 % of the formula's
    assert climbed[-2] < max(8, 4 * knee), "one level less would have done as well"
    assert climbed[-1] >= 8
    assert estimate.capacity == pytest.approx(capacity, rel=0.05)
    assert outcome.used_s <= BOUNDS.budget_s + 3


@pytest.mark.parametrize("seed", range(20))
def test_noise_of_three_percent_leads_nowhere_else(seed: int) -> None:
    outcome = search(pool(8, 0.050), BOUNDS, noise=0.03, seed=seed)

    assert outcome.stop.because == "saturated"
    assert levels(outcome)[-1] in (16, 32, 64)  # one more where noise looks like a fall
    assert saturation(outcome).capacity == pytest.approx(160.0, rel=0.05)


def test_time_away_from_the_server_moves_the_knee_and_the_ladder_goes_with_it() -> None:
    # D = 20 ms and 100 ms elsewhere: N* = (D + Z) / D = 6, where a grid up to 4 would see no end of growth.
    outcome = search(one_server(0.020, 0.100), BOUNDS)

    assert levels(outcome)[-1] >= 1.8 * 6.0 * 0.97


def test_the_first_fall_is_looked_at_twice() -> None:
    # USL with N_peak = sqrt((1 - 0.02) / 0.004) = 15.7: 16 users are the peak, 32 give less.
    outcome = search(retrograde(100.0, 0.02, 0.004), BOUNDS)

    climbed = levels(outcome)
    assert 64 in climbed, "two levels beyond the peak"
    assert 128 not in climbed
    assert outcome.stop.because == "saturated"


def test_an_endless_service_is_climbed_as_far_as_the_budget_goes_beside_the_dense_look() -> None:
    outcome = search(endless(1.0), BOUNDS)

    assert outcome.stop.because == "budget"
    assert levels(outcome)[-1] >= 8
    assert outcome.seen[-1].kind == "dense"
    assert outcome.used_s <= BOUNDS.budget_s
    assert saturation(outcome).verdict == "underdriven"


def test_slow_answers_leave_time_for_a_capacity_that_takes_hundreds_of_users() -> None:
    # D = 4 ms and 1 s elsewhere: 250/s, N* = 251 users; each level takes 11 s or more of the 90 s.
    outcome = search(one_server(0.004, 1.0), BOUNDS, is_settled=True)

    # 512 users fall behind: 250/s in place of 510/s. sqrt(64 * 512) = 181.
    assert [t.users for t in outcome.seen if t.kind == "climb"] == [1, 8, 64, 512, 181]
    assert max(t.ok_per_s for t in outcome.seen) == pytest.approx(250.0, rel=0.05)


def test_a_level_between_follows_where_slow_answers_fall_behind_the_users() -> None:
    # 1 / D = 1/s from one user on: eight users show that they wait, three (8 ** 0.5 users) where from.
    outcome = search(one_server(1.0, 0.001), BOUNDS, is_settled=True)

    assert set(levels(outcome)) == {1, 3, 8}
    assert outcome.stop.because == "saturated"


@pytest.mark.parametrize("latency_s", [0.01, 0.05, 0.2])
def test_levels_that_show_nothing_are_left_out_of_a_clear_climb_to_the_same_height(latency_s: float) -> None:
    every = search(endless(latency_s), BOUNDS)
    clear = search(endless(latency_s), BOUNDS, is_settled=True)

    assert levels(clear)[-1] >= levels(every)[-1]
    assert clear.used_s < every.used_s
    assert levels(clear)[:3] == [1, 4, 16]
    assert set(levels(clear)) <= {2**n for n in range(11)}
    assert all(high == 4 * low for low, high in pairwise(levels(clear)[:-1]))


@pytest.mark.parametrize(
    "service",
    [
        one_server(0.010, 0.002),
        one_server(0.020, 0.060),
        several_servers(0.040, 0.010, 4),
        pool(8, 0.050),
        pool(50, 0.100),
        retrograde(100.0, 0.02, 0.004),
    ],
    ids=["M/M/1", "M/M/1 far away", "M/M/4", "pool of 8", "pool of 50", "retrograde"],
)
def test_from_the_plateau_on_a_clear_climb_leaves_out_nothing(service: Service) -> None:
    every, clear = search(service, BOUNDS), search(service, BOUNDS, is_settled=True)

    assert clear.stop.because == every.stop.because == "saturated"
    estimate = saturation(clear)
    assert estimate.capacity == pytest.approx(saturation(every).capacity, rel=0.02)
    assert estimate.knee == pytest.approx(saturation(every).knee, rel=0.02)
    climbed = sorted(levels(clear))
    beyond = [users for users in climbed if estimate.plateau_from <= users < 64]
    assert beyond == [beyond[0] * 2**n for n in range(len(beyond))]


def test_a_climb_that_is_not_clear_or_has_failures_leaves_out_no_level() -> None:
    failing = failing_from(endless(0.05), 1, 0.001)

    assert levels(search(failing, BOUNDS, is_settled=True)) == levels(search(endless(0.05), BOUNDS))


@pytest.mark.parametrize(("fails_from", "climbed"), [(10, [1, 4, 16, 8, 11]), (5, [1, 4, 16, 8, 6])])
def test_below_a_level_that_did_harm_the_one_left_out_is_measured_first(
    fails_from: int, climbed: list[int]
) -> None:
    outcome = search(failing_from(endless(0.05), fails_from, 0.5), BOUNDS, is_settled=True)

    assert levels(outcome) == climbed
    assert outcome.stop.because == "harm"
    assert f"{min(users for users in climbed if users >= fails_from)} users" in outcome.stop.words


def test_no_level_left_out_lets_the_next_pass_the_rate_cap() -> None:
    bounds = Bounds(90.0, 1_000.0, 1024)

    outcome = search(endless(0.05), bounds, is_settled=True)

    assert outcome.stop.because == "rate_cap"
    assert max(trial.asked_per_s for trial in outcome.seen) <= 1_000.0
    assert levels(outcome)[-1] == levels(search(endless(0.05), bounds))[-1]


def test_so_many_users_are_enough() -> None:
    outcome = search(endless(0.05), Bounds(90.0, 20_000.0, most_users=24))

    assert outcome.stop.because == "most_users"
    assert levels(outcome) == [1, 2, 4, 8, 16, 24]


# --- bounds ------------------------------------------------------------------------------------------------


def test_no_level_is_begun_that_may_pass_the_rate_cap() -> None:
    outcome = search(endless(0.050), Bounds(90.0, 200.0, 1024))

    assert outcome.stop.because == "rate_cap"
    assert max(trial.asked_per_s for trial in outcome.seen if trial.kind == "climb") <= 200.0
    assert levels(outcome)[-1] == 8  # 160/s and a probe a second; 16 users could ask 322 times


def test_a_level_that_passes_the_rate_cap_ends_the_climb_and_not_the_search() -> None:
    def ends(_: int, wanted: Next) -> str:
        return "rate" if wanted.users == 16 else "complete"

    outcome = search(endless(0.050), BOUNDS, ends=ends)

    assert outcome.stop == Stop("rate_cap", "with 16 users it rate")
    assert levels(outcome) == [1, 2, 4, 8, 16]
    assert [trial.kind for trial in outcome.seen[-2:]] == ["climb", "dense"], "pauses would show in no other"


def test_a_first_level_that_passes_the_rate_cap_ends_the_search() -> None:
    outcome = search(endless(0.050), BOUNDS, ends=lambda number, _: "rate" if number == 1 else "complete")

    assert outcome.stop == Stop("rate_cap", "with one user it rate")
    assert len(outcome.seen) == 2


def test_a_service_faster_than_the_rate_cap_gets_users_who_pause() -> None:
    outcome = search(endless(0.000_05), Bounds(90.0, 1000.0, 1024))

    # Eight users pausing 8 ms ask 1,000 times a second at most, whatever the service does.
    assert think_s(0.000_05, 1000.0) == pytest.approx(0.008)
    assert max(trial.ok_per_s for trial in outcome.seen if trial.kind == "climb") <= 1000.0
    assert outcome.stop.because == "rate_cap"


def test_a_service_that_is_faster_once_it_is_warm_gets_users_who_pause_from_then_on() -> None:
    look = replace(LOOK, mean_s=0.000_4)  # eight times the cap's 50 us: no pause
    first = climbed(1, 12_900.0, 0.000_0775)

    before, after = (decide([look, *seen], 80.0, BOUNDS) for seen in ((), (first,)))

    assert isinstance(before, Next)
    assert isinstance(after, Next)
    assert (before.users, before.pause_s) == (1, 0.0)
    assert after.users == 1
    assert after.pause_s == pytest.approx(8 / 20_000)


def test_a_repeat_that_is_a_little_faster_does_not_begin_again() -> None:
    bounds = Bounds(90.0, 200.0, 1024)  # four times 5 ms of it: from 20 ms on users do not pause
    seen = [
        replace(LOOK, mean_s=0.0206),
        climbed(1, 48.0, 0.0205),
        climbed(2, 50.0, 0.04),
        climbed(4, 50.0, 0.08),
    ]

    assert ladder.pause_of([*seen, climbed(1, 50.0, 0.0198)], 200.0) == 0.0
    assert isinstance(again := decide([*seen, climbed(1, 50.0, 0.0198)], 40.0, bounds), Next)
    assert again.pause_s == 0.0


def test_a_service_far_below_the_rate_cap_gets_users_who_do_not_pause() -> None:
    assert think_s(0.010, 20_000.0) == 0.0


@pytest.mark.parametrize("budget_s", [15.0, 30.0, 60.0, 90.0, 300.0])
@pytest.mark.parametrize("service", [pool(8, 0.05), endless(0.4), one_server(0.3, 0.01), endless(3.0)])
def test_a_budget_is_kept_but_for_the_last_trials_own_time(service: object, budget_s: float) -> None:
    outcome = search(service, Bounds(budget_s, 20_000.0, 1024))  # type: ignore[arg-type]

    last = outcome.seen[-1] if outcome.seen else None
    slack = 0.0 if last is None else (last.mean_s or 0.0) + 2.0
    assert outcome.used_s <= budget_s + slack


def test_with_five_percent_of_the_budget_left_nothing_is_begun() -> None:
    seen = [climbed(1, 80.0, 0.012), climbed(2, 99.0, 0.02)]

    decision = decide([LOOK, *seen], 0.05 * BOUNDS.budget_s, BOUNDS)

    assert isinstance(decision, Stop)
    assert decision.because == "budget"


def test_a_saturated_ladder_is_an_answer_even_with_no_time_left() -> None:
    seen = [LOOK, climbed(1, 96.0, 0.010), climbed(2, 100.0, 0.02), climbed(4, 100.0, 0.04)]

    decision = decide(seen, 0.5, BOUNDS)

    assert isinstance(decision, Stop)
    assert decision.because == "saturated"


# --- what goes wrong ---------------------------------------------------------------------------------------


def test_failing_requests_end_the_climb_and_the_rest_of_the_time_goes_below_them() -> None:
    outcome = search(failing_from(pool(64, 0.05), 16, 0.4), BOUNDS)

    assert outcome.stop == Stop("harm", "40 % of the requests of 16 users fail")
    assert outcome.users == [1, 2, 4, 8, 16, 11, 11, 11]  # 11 is the mean of 8 and 16 by their product
    assert outcome.seen[-1].kind == "dense"


def test_levels_too_near_to_each_other_are_not_measured() -> None:
    outcome = search(failing_from(pool(1024, 0.05), 9, 0.4), BOUNDS)

    assert outcome.users == [1, 2, 4, 8, 16, 11, 8, 8]  # what lies between 8 and 11 is too near to both


def test_a_service_that_fails_where_it_served_before_is_left_alone() -> None:
    """Connections that are never given back, or a deadlock: less load does not help."""
    outcome = search(
        pool(64, 0.05), BOUNDS, ends=lambda number, wanted: "harm" if number >= 6 else "complete"
    )

    assert outcome.users == [1, 2, 4, 8, 16, 32, 23, 16]
    assert outcome.stop.because == "harm"
    assert "does not recover" in outcome.stop.words


@pytest.mark.parametrize(("ended", "is_failure"), [(12, True), (4_800, False)])
def test_a_refusal_after_a_long_wait_is_a_failure(ended: int, *, is_failure: bool) -> None:
    """Four users in 6 s: each answer takes 2 s, or 5 ms, where a success took 20 ms."""
    refused = replace(climbed(4, 0.0, None, refused_share=1.0), ended=ended, load_s=6.0)
    seen = [LOOK, climbed(1, 50.0, 0.02)]

    judged = ladder.with_vain_waits_failed(refused, seen)

    assert (judged.failed_share, judged.refused_share) == ((1.0, 0.0) if is_failure else (0.0, 1.0))


def test_before_a_broken_service_is_left_alone_its_threads_are_sampled() -> None:
    """Four users were served, and two are no more: nothing is gained by asking again."""
    broken = climbed(2, 0.0, None, failed_share=1.0)
    seen = [LOOK, climbed(1, 50.0, 0.02), climbed(4, 190.0, 0.02), broken]

    sampled = decide(seen, 60.0, BOUNDS, samples_stacks=True)
    left = decide(seen, 60.0, BOUNDS)

    assert isinstance(sampled, Next)
    assert sampled.kind == "stacks"
    assert isinstance(left, Stop)
    assert left.words.endswith("fail, and it does not recover: 4 users were served before")


def test_a_few_failures_do_not_end_it() -> None:
    outcome = search(failing_from(pool(8, 0.05), 4, 0.02), BOUNDS)

    assert outcome.stop.because == "saturated"


@pytest.mark.parametrize(("share", "kinds"), [(1.0, ["look", "look"]), (0.125, ["look", "climb"])])
def test_a_service_that_fails_alone_is_not_loaded_beyond_one_user(share: float, kinds: list[str]) -> None:
    """A look that shows a single request is followed by a longer one. Where some succeed, a level of one user
    shows how the others fail.
    """
    outcome = search(failing_from(pool(8, 0.05), 1, share), BOUNDS)

    assert outcome.stop.because == "fails_alone"
    assert [trial.kind for trial in outcome.seen] == kinds
    assert {trial.users for trial in outcome.seen} == {1}


def test_a_load_that_the_guard_ended_is_the_highest() -> None:
    outcome = search(
        pool(64, 0.05), BOUNDS, ends=lambda _, wanted: "harm" if wanted.users == 8 else "complete"
    )

    assert outcome.stop == Stop("harm", "with 8 users it harm")
    assert outcome.users == [1, 2, 4, 8, 6, 6, 6]


def test_a_step_that_could_not_be_measured_is_tried_once_more() -> None:
    once = search(pool(4, 0.05), BOUNDS, ends=lambda number, _: "broken" if number == 2 else "complete")
    always = search(
        pool(4, 0.05), BOUNDS, ends=lambda _, wanted: "broken" if wanted.users == 2 else "complete"
    )

    assert once.users[:4] == [1, 2, 2, 4]
    assert once.stop.because == "saturated"
    assert always.users == [1, 2, 2]
    assert always.stop.because == "broken"


def test_nothing_that_comes_back_is_no_answer() -> None:
    silent = Outcome("look", 1, "complete", ended=0, load_s=3.0, took_s=5.0)

    decision = decide([silent], 80.0, BOUNDS)

    assert isinstance(decision, Stop)
    assert decision.because == "no_answer"


def test_refusals_are_no_harm_and_a_service_that_refuses_all_is_left() -> None:
    some = climbed(2, 50.0, 0.01, refused_share=0.6)
    every = climbed(2, 0.0, None, refused_share=1.0)

    assert isinstance(decide([LOOK, climbed(1, 50.0, 0.01), some], 60.0, BOUNDS), Next)
    lighter = decide([LOOK, climbed(1, 50.0, 0.01), every], 60.0, BOUNDS)
    assert isinstance(lighter, Next)
    assert lighter.users == 1
    for again in (climbed(1, 50.0, 0.01), replace(every, users=1)):
        decision = decide([LOOK, climbed(1, 50.0, 0.01), every, again], 50.0, BOUNDS)
        assert isinstance(decision, Stop)
        assert decision.because == "refused"
        assert "every request of 2 users is refused" in decision.words


def test_where_a_tenth_is_refused_users_pause_and_the_ladder_begins_anew() -> None:
    # 100/s are served. No user pauses: one of two users is refused 10,000 times a second.
    outcome = search(limited(100.0, 0.010), BOUNDS)

    hasty = [trial.users for trial in outcome.seen if trial.kind == "climb" and not trial.pause_s]
    patient = [trial.users for trial in outcome.seen if trial.kind == "climb" and trial.pause_s]
    assert hasty == [1, 2]
    assert patient[:4] == [1, 2, 4, 8]
    assert {trial.pause_s for trial in outcome.seen if trial.pause_s} == {0.010}
    assert outcome.stop.because == "saturated"
    assert saturation(outcome).capacity == pytest.approx(100.0, rel=0.01)


def short_beyond(room: int, held_s: float, other_s: float = 0.0001) -> Service:
    """So many at once get a page of 2,000 bytes, the rest 10 bytes at once, and all of it is success."""

    def answer(users: int, pause_s: float) -> Answer:
        served, asked = room / held_s, users / (pause_s + held_s)
        if users <= served * (pause_s + held_s):
            return Answer(asked, held_s, body_bytes=2_000.0)
        others = (users - served * (pause_s + held_s)) / (pause_s + other_s)
        rate = served + others
        return Answer(rate, users / rate - pause_s, body_bytes=(2_000 * served + 10 * others) / rate)

    return answer


def test_answers_that_only_become_many_and_short_end_the_climb() -> None:
    # 6 places of 80 ms: the seventh user alone would get 10,000 short answers a second.
    outcome = search(short_beyond(6, 0.080), BOUNDS)

    assert outcome.stop.because == "other_answers"
    assert max(outcome.users) == 8
    assert outcome.seen[-1].kind == "dense"


def test_a_cap_that_answers_pass_which_are_far_faster_makes_users_pause() -> None:
    fast = climbed(16, 0.0, None)
    passed = replace(fast, end="rate", asked_per_s=25_000.0)
    usual = [climbed(users, 12.5 * users, 0.08) for users in (1, 4)]

    assert ladder.pause_of([LOOK, *usual, passed], 20_000.0) > 0
    # A user asks no more often than before: there are simply too many of them.
    as_before = replace(passed, asked_per_s=16 * 12.5)
    assert ladder.pause_of([LOOK, *usual, as_before], 150.0) == ladder.pause_of([LOOK, *usual], 150.0)


def test_users_who_pause_begin_with_as_many_as_asked_as_much_without() -> None:
    # 12 at once for 40 ms. 8 users are refused nothing; 16 of whom each pauses for 40 ms ask as much.
    outcome = search(shedding(12, 0.040), BOUNDS)

    hasty = [trial.users for trial in outcome.seen if trial.kind == "climb" and not trial.pause_s]
    patient = [trial.users for trial in outcome.seen if trial.kind == "climb" and trial.pause_s]
    assert hasty == [1, 2, 4, 8, 16]
    assert patient[:4] == [1, 16, 32, 64]
    assert outcome.stop.because == "saturated"
    # No longer than the others: how long their answers take is known.
    assert len({trial.load_s for trial in outcome.seen if trial.kind == "climb"}) == 1


def test_a_level_more_shows_whether_what_refuses_lets_the_same_through() -> None:
    # Users of 80 ms who pause for 10: 8 ask 89/s, 16 twice that, 92 get through; the knee is at 8.3.
    few = [climbed(users, 11.1 * users, 0.08, pause_s=0.01) for users in (1, 2, 4, 8)]
    seen = [LOOK, climbed(4, 92.0, 0.08, refused_share=0.5), *few]
    once = climbed(16, 92.0, 0.08, pause_s=0.01, refused_share=0.48)
    twice = climbed(32, 92.0, 0.08, pause_s=0.01, refused_share=0.74)

    at_last = decide([*seen, once], 200.0, BOUNDS)
    at_both = decide([*seen, once, twice], 200.0, BOUNDS)
    too_late = decide([*seen, once], 6.0, BOUNDS)

    assert isinstance(at_last, Next)
    assert at_last.users == 32
    assert isinstance(at_both, Next)
    assert at_both.users <= 32, "no higher than that"
    assert not isinstance(too_late, Next) or too_late.users != 32


@pytest.mark.parametrize("share", ["refused_share", "failed_share"])
def test_refusals_that_met_the_rate_cap_make_users_pause_and_do_not_end_it(share: str) -> None:
    """Whatever their status: a request that waits for nothing fails as fast with 500 as with 503."""
    met = climbed(2, 100.0, 0.01, **{share: 0.9})
    met = replace(met, end="rate")

    decision = decide([LOOK, climbed(1, 96.0, 0.01), met], 60.0, BOUNDS)

    assert isinstance(decision, Next)
    assert (decision.users, decision.pause_s) == (1, LOOK.mean_s)


def test_a_generator_at_its_limit_ends_the_climb() -> None:
    decision = decide([LOOK, climbed(1, 5000.0, 0.0002, is_generator_full=True)], 60.0, BOUNDS)

    assert isinstance(decision, Stop)
    assert decision.because == "generator"


# --- what makes it firmer ----------------------------------------------------------------------------------


def test_what_time_is_left_goes_to_repeats_of_the_decisive_levels_and_one_dense_look() -> None:
    outcome = search(one_server(0.010, 0.002), Bounds(200.0, 20_000.0, 1024))

    *_, top, wide = levels(outcome)
    assert outcome.users.count(top) == 3
    assert outcome.users.count(wide) == 1
    assert [trial.kind for trial in outcome.seen].count("dense") == 1
    knee = [users for users in set(outcome.users) - {top} if outcome.users.count(users) == 3]
    assert len(knee) == 1
    assert saturation(outcome).plateau_from == knee[0]
    assert outcome.used_s < 200.0, "what is known well enough is not measured on and on"


@pytest.mark.parametrize("service", [one_server(0.010, 0.002), pool(8, 0.05)], ids=["M/M/1", "pool of 8"])
def test_a_certain_answer_ends_with_the_climb_and_one_level_beyond(service: object) -> None:
    certain = search(service, BOUNDS, is_certain=True)  # type: ignore[arg-type]
    uncertain = search(service, BOUNDS)  # type: ignore[arg-type]

    climbed = levels(uncertain)
    assert certain.users == climbed[: len(certain.users)], "each level once, and the same ones"
    assert certain.users[-1] >= 3.6 * (saturation(certain).knee or 0.0), "a service may collapse there"
    assert [trial.kind for trial in certain.seen[1:]] == ["climb"] * len(certain.users)
    assert certain.stop.because == "saturated"
    assert certain.stop.words.endswith("the last trials did not change the answer")
    assert certain.used_s < uncertain.used_s <= BOUNDS.budget_s


@pytest.mark.parametrize(
    ("service", "climbed"),
    [(pool(8, 0.05), [1, 2, 4, 8, 16]), (failing_from(pool(64, 0.05), 16, 0.4), [1, 2, 4, 8, 16, 11])],
    ids=["plateau", "failures"],
)
def test_threads_are_sampled_when_the_climb_ends_and_before_anything_is_repeated(
    service: Service, climbed: list[int]
) -> None:
    seen = search(service, BOUNDS, samples_stacks=True).seen
    kinds = [trial.kind for trial in seen]

    first = kinds.index("stacks")
    assert kinds[:first] == ["look"] + ["climb"] * len(climbed)
    is_higher = any(trial.users > max(climbed) for trial in seen[first:] if trial.kind == "climb")
    assert kinds.count("stacks") == 1 + is_higher
    assert kinds[first + 1] == "climb", "a repeat"


def test_what_is_left_of_the_budget_goes_to_a_level_far_beyond_the_knee() -> None:
    # The knee is at 8 users, so that 16 show the plateau.
    outcome = search(pool(8, 0.05), replace(BOUNDS, budget_s=200.0))

    kinds = [trial.kind for trial in outcome.seen]
    assert levels(outcome) == [1, 2, 4, 8, 16, 64]
    assert kinds[-2:] == ["dense", "climb"]
    assert outcome.stop.because == "saturated"


def test_a_service_that_fails_well_beyond_its_knee_keeps_its_capacity_and_says_so() -> None:
    service = failing_from(pool(8, 0.05), 32, 0.6)

    outcome = search(service, replace(BOUNDS, budget_s=200.0))

    served = [trial for trial in outcome.seen if not trial.failed_share]
    capacity = saturation_of(levels_of(served), 0.0)
    assert outcome.stop.because == "fails_beyond"
    assert "60 % of the requests of 32 users fail" in outcome.stop.words
    assert isinstance(capacity, Saturation)
    assert capacity.capacity == pytest.approx(160.0)


def test_a_deep_fall_is_held_against_the_best_level_and_then_against_itself() -> None:
    # 160/s with 8 users, an eighth of that from 16 on: with load, or because time has passed?
    def collapsing(users: int, pause_s: float) -> Answer:
        well = pool(8, 0.05)(users, pause_s)
        return well if users < 16 else Answer(20.0, users / 20.0)

    climbed = [
        trial.users
        for trial in search(collapsing, replace(BOUNDS, budget_s=400.0)).seen
        if trial.kind == "climb"
    ]

    fallen = climbed.index(16)
    assert climbed[fallen + 1] == 8, "the best level again"
    assert climbed[fallen + 2] == 16
    assert max(climbed) == 16, "and no level that may do harm"


def test_a_service_that_does_less_well_beyond_its_knee_is_seen_twice() -> None:
    # 160/s up to 20 users, half of that from 32 on: one such level alone could be an outlier.
    def collapsing(users: int, pause_s: float) -> Answer:
        well = pool(8, 0.05)(users, pause_s)
        return well if users < 32 else Answer(80.0, users / 80.0)

    outcome = search(collapsing, replace(BOUNDS, budget_s=400.0))

    assert levels(outcome)[-2:] == [64, 128]
    assert outcome.users.count(128) == 3
    assert saturation(outcome).verdict == "retrograde"


def test_a_certain_answer_does_not_end_the_climb() -> None:
    assert search(pool(50, 0.1), BOUNDS, is_certain=True).users[-1] >= 1.8 * 50 * 0.97


def test_a_level_has_one_trial_or_three_but_not_two() -> None:
    for budget in range(40, 140, 5):
        outcome = search(pool(4, 0.05), Bounds(float(budget), 20_000.0, 1024))

        assert all(outcome.users.count(users) in (1, 3) for users in outcome.users), budget


@pytest.mark.parametrize(
    "service",
    [one_server(0.010, 0.002), pool(8, 0.05), pool(50, 0.02), endless(0.02)],
    ids=["soon full", "full with 16", "full with 128", "never full"],
)
def test_half_a_minute_holds_eight_users_and_a_dense_look_whatever_is_left_out(service: object) -> None:
    # 4.7 s for the look, four levels of 2.4 + 1.7 s, the dense one of 4.4 + 1.7 s: 27.2 s, and answers.
    outcome = search(service, Bounds(30.0, 20_000.0, 1024))  # type: ignore[arg-type]

    assert [trial.kind for trial in outcome.seen].count("dense") == 1
    assert levels(outcome)[-1] >= 8


def test_time_that_was_kept_for_the_dense_look_and_is_left_over_goes_to_the_climb() -> None:
    looked = replace(climbed(1, 20.0, 0.05), kind="dense")
    seen = [LOOK, *(climbed(n, 20.0 * n, 0.05) for n in (1, 2, 4, 8))]

    # A level of 3.75 + 0.75 s costs some 6.2 s, the dense look some 10.7 s.
    kept, left_over = decide(seen, 15.0, BOUNDS), decide([*seen, looked], 10.0, BOUNDS)

    assert isinstance(kept, Next)
    assert kept.kind == "dense"
    assert isinstance(left_over, Next)
    assert (left_over.kind, left_over.users) == ("climb", 16)


def test_trials_of_slow_services_last_several_response_times() -> None:
    fast, slow = search(pool(8, 0.01), BOUNDS), search(one_server(1.0, 0.1), BOUNDS)

    assert fast.seen[1].load_s == pytest.approx(3.75 + 0.75)  # a share of the budget and its warm-up
    assert slow.seen[1].load_s >= 8 * 1.1


def test_probes_are_twenty_a_second_or_a_twentieth_of_a_servers_time() -> None:
    cap = 20_000.0
    assert probe_per_s(0.001, cap) == 20.0
    assert probe_per_s(0.010, cap) == pytest.approx(5.0)
    assert probe_per_s(0.010, cap, dense=True) == pytest.approx(20.0)
    assert probe_per_s(0.0005, cap, dense=True) == 200.0
    assert probe_per_s(2.0, cap) == 1.0
    assert probe_per_s(None, cap) == 20.0


def test_probes_and_the_first_look_keep_a_small_rate_cap_too() -> None:
    assert probe_per_s(None, 10.0) == pytest.approx(1.0)
    assert probe_per_s(0.0001, 10.0, dense=True) == pytest.approx(3.0)
    assert look_think_s(10.0) == pytest.approx(0.2)
    assert look_think_s(20_000.0) == pytest.approx(0.02)


LOOK = Outcome("look", 1, "complete", 40.0, 40.0, 0.01, ended=5, load_s=0.2, took_s=2.0)


def climbed(users: int, ok_per_s: float, mean_s: float | None, **more: Any) -> Outcome:
    return Outcome(
        "climb", users, "complete", ok_per_s, ok_per_s, mean_s, ended=100, load_s=6.0, took_s=7.7, **more
    )


# --- stacks ----------------------------------------------------------------------------------------------


def test_stacks_are_sampled_at_the_highest_level_and_with_one_user() -> None:
    seen = search(one_server(0.02, 0.0), BOUNDS).seen
    highest = max(outcome.users for outcome in seen if outcome.kind == "climb")

    def levels(*, with_one_user: bool) -> list[int]:
        return [level.users for level in ladder.stacks_levels(seen, BOUNDS, with_one_user=with_one_user)]

    assert levels(with_one_user=False) == [highest]
    assert levels(with_one_user=True) == [highest, 1]
    assert ladder.stacks_levels(seen[:1], BOUNDS, with_one_user=True) == ()  # single requests are no level


def test_threads_are_sampled_again_where_the_climb_went_on_after_their_samples() -> None:
    seen = search(one_server(0.02, 0.0), BOUNDS).seen
    highest = max(outcome.users for outcome in seen if outcome.kind == "climb")

    def levels(*sampled: int) -> list[int]:
        return [level.users for level in ladder.unsampled(seen, BOUNDS, set(sampled), with_one_user=True)]

    assert levels() == [highest, 1]
    assert levels(highest // 2, 1) == [highest]
    assert levels(highest) == []  # the other is there for the difference to this one


def test_samples_that_failed_are_not_taken_again() -> None:
    seen = search(pool(8, 0.05), BOUNDS, samples_stacks=True).seen
    first = next(place for place, trial in enumerate(seen) if trial.kind == "stacks")
    broken = replace(seen[first], end="broken")

    after = decide([*seen[:first], broken], 40.0, BOUNDS)

    assert isinstance(after, Next)
    assert after.kind == "climb", "a repeat, as without samples"


def test_threads_are_sampled_once_every_user_has_had_an_answer() -> None:
    seen = search(one_server(0.05, 0.0), BOUNDS).seen
    (top,) = ladder.stacks_levels(seen, BOUNDS, with_one_user=False)

    assert top.warmup_s == pytest.approx(0.05 * top.users, rel=0.01)  # N = X R, one served at a time


def test_samples_take_at_most_a_sixth_of_the_budget_and_are_shortened_to_the_time_left() -> None:
    seen = search(one_server(0.02, 0.0), BOUNDS).seen
    top, _ = ladder.stacks_levels(seen, BOUNDS, with_one_user=True)
    cost = ladder.stacks_cost_s(top, seen)

    for budget in (15.0, 30.0, 90.0, 600.0):
        assert (
            ladder.kept_for_stacks_s(seen, replace(BOUNDS, budget_s=budget), with_one_user=True) <= budget / 6
        )
    assert ladder.fitted(top, seen, cost) == top
    shortened = ladder.fitted(top, seen, cost - 0.5)
    assert shortened is not None
    assert shortened.measured_s == pytest.approx(top.measured_s - 0.5)
    assert ladder.fitted(top, seen, cost - top.measured_s) is None


def test_the_level_beyond_is_marked_so_that_its_failures_do_not_end_it() -> None:
    seen = [LOOK, *(climbed(n, min(20.0 * n, 160.0), max(0.05, n / 160)) for n in (1, 2, 4, 8, 16))]

    beyond = decide(seen, 60.0, BOUNDS, is_certain=True)

    assert isinstance(beyond, Next)
    assert (beyond.users, beyond.is_beyond) == (64, True)


@pytest.mark.parametrize(("cap", "users"), [(800.0, 64), (500.0, 32)])
def test_the_level_beyond_cannot_pass_the_rate_cap(cap: float, users: int) -> None:
    """16 users ask 160/s: in proportion 64 would ask 640."""
    seen = [LOOK, *(climbed(n, min(20.0 * n, 160.0), max(0.05, n / 160)) for n in (1, 2, 4, 8, 16))]

    beyond = decide(seen, 60.0, Bounds(90.0, cap, 1024), is_certain=True)

    assert isinstance(beyond, Next)
    assert beyond.users == users


def test_a_level_beyond_that_is_refused_as_a_whole_leaves_the_capacity() -> None:
    seen = [LOOK, *(climbed(n, min(20.0 * n, 160.0), max(0.05, n / 160)) for n in (1, 2, 4, 8, 16))]
    refused = climbed(64, 0.0, 0.01, refused_share=1.0)

    lighter = decide([*seen, refused], 60.0, BOUNDS, is_certain=True)
    end = decide([*seen, refused, climbed(1, 20.0, 0.05)], 60.0, BOUNDS, is_certain=True)

    assert isinstance(lighter, Next)
    assert lighter.users == 1
    assert isinstance(end, Stop)
    assert end.because == "fails_beyond"
