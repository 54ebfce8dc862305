"""Calls that TCP keeps back; by Little's law connections over throughput is the time of each request."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loadlens import diagnose
from loadlens.diagnose.rules.network.tcp_calls_held import assess
from loadlens.model.facts import CallsWatch, Curve, Facts, Step
from loadlens.model.finding import Absent, Figure, Finding, Grade, NotAssessed, NotMeasured
from tests.unit.diagnose.build import curve, estimate, facts, found, step
from tests.unit.diagnose.waiting import gauge, waiting

LOADS = (1, 4, 16)


def calling(back: Figure | None, *, to: str = "quotes:8081") -> CallsWatch:
    return CallsWatch(to, gauge(f"calls to {to}", 2.0), 1.0, 4.0, held_back=back)


def kept(built: Step, seconds: float, *, to: str = "quotes:8081") -> Step:
    """A level on which a call waits so long in each request, besides the calls that it has."""
    back = estimate(seconds * built.throughput_trials[0], unit="connections")
    return replace(built, calls=(*built.calls, calling(back, to=to)))


def ladder(takes_s: float, *held_s: float, trials: int = 3) -> Facts:
    """Users without a pause, whose requests take as long at each level; so much of it is a wait for TCP."""
    levels = [step(users, users / takes_s, takes_s, trials=trials) for users in LOADS]
    return facts(curve(*(kept(level, held) for level, held in zip(levels, held_s, strict=True)), think=0.0))


def test_calls_that_are_kept_back_at_each_level_are_what_requests_wait_for() -> None:
    answer = found(assess(ladder(0.06, 0.04, 0.04, 0.04)))

    assert answer.grade is Grade.STRONG
    assert answer.statement == "Calls to quotes:8081 wait 40.0 ms of each request for TCP's acknowledgement"
    assert answer.impact == pytest.approx(40 / 60)
    assert answer.curves == ("k=1",)
    assert "40.0 ms of the 60.0 ms that a request takes at 1 user" in answer.explanation
    assert "TCP_NODELAY" in answer.advice
    assert all(len(each.chip) <= 32 for each in answer.evidence)


def test_the_lightest_level_is_shown() -> None:
    """One user with 60 ms makes 16.7 requests per second, and each waits for 40 ms: 0.667 at a time."""
    held, share, levels = found(assess(ladder(0.06, 0.04, 0.04, 0.04))).evidence

    assert held.value == pytest.approx(0.04)
    assert held.text.startswith("on 0.667 connections at a time a small piece waits")
    assert "at 1 user: 40.0 ms of each request (limit 5.00 ms)" in held.text
    assert share.chip == "67 % of a request"
    assert levels.text.startswith("seen at 3 levels of load")


def test_the_times_and_names_of_another_service_give_the_same_share() -> None:
    built = facts(curve(*(kept(step(n, n / 0.6, 0.6), 0.4, to="ж:1") for n in LOADS), think=0.0))

    answer = found(assess(built))

    assert answer.grade is Grade.STRONG
    assert answer.statement == "Calls to ж:1 wait 400 ms of each request for TCP's acknowledgement"
    assert answer.impact == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("takes_s", "held_s", "reason"),
    [
        (0.006, 0.004, "4.00 ms"),  # two thirds of a request, and no delay of an acknowledgement
        (0.1, 0.019, "19.0 ms"),  # less than a fifth of a request
        (0.06, 0.0, "for 0 ms"),  # nothing is kept back
    ],
)
def test_calls_that_wait_too_briefly_do_not_limit(takes_s: float, held_s: float, reason: str) -> None:
    answer = assess(ladder(takes_s, held_s, held_s, held_s))

    assert isinstance(answer, Absent)
    assert reason in answer.reason


@pytest.mark.parametrize(("takes_s", "held_s"), [(0.006, 0.0055), (0.1, 0.021)])
def test_just_beyond_either_limit_they_are_found(takes_s: float, held_s: float) -> None:
    assert found(assess(ladder(takes_s, held_s, held_s, held_s))).impact == pytest.approx(held_s / takes_s)


@pytest.mark.parametrize(
    ("held_s", "grade"),
    [
        ((0.0, 0.0, 0.04), Grade.SUSPECTED),
        ((0.04, 0.0, 0.0), Grade.SUSPECTED),
        ((0.0, 0.04, 0.04), Grade.STRONG),
    ],
)
def test_one_level_of_several_leaves_it_suspected(held_s: tuple[float, ...], grade: Grade) -> None:
    assert found(assess(ladder(0.06, *held_s))).grade is grade


def test_two_programs_that_are_kept_back_at_one_level_each_are_not_two_levels_of_one() -> None:
    light, heavy = (step(users, users / 0.06, 0.06) for users in (1, 16))
    built = facts(curve(kept(light, 0.04), kept(heavy, 0.04, to="stock:9000"), think=0.0))

    assert found(assess(built)).grade is Grade.SUSPECTED


def test_fewer_trials_than_three_cap_the_grade() -> None:
    assert found(assess(ladder(0.06, 0.04, 0.04, 0.04, trials=2))).grade is Grade.PROBABLE


def test_of_two_programs_the_one_that_keeps_requests_longer_is_named() -> None:
    levels = [step(users, users / 0.1, 0.1) for users in LOADS]
    both = [kept(kept(level, 0.03), 0.05, to="stock:9000") for level in levels]

    answer = found(assess(facts(curve(*both, think=0.0))))

    assert "stock:9000" in answer.statement
    assert answer.impact == pytest.approx(0.5)


def on_threads(held_s: float) -> Curve:
    """8 threads, each of which a request holds for 30 ms: 267/s, whatever it does meanwhile."""
    built = waiting(0.03, base_s=0.0, size=8, coupling=1.0, exports="threads")
    return replace(built, steps=tuple(kept(level, held_s) for level in built.steps))


@pytest.mark.parametrize(("held_s", "is_cause"), [(0.02, True), (0.01, False)])
def test_full_threads_come_of_calls_that_are_kept_back_for_half_of_a_request(
    held_s: float, is_cause: bool
) -> None:
    findings = {each.rule: each for each in diagnose.assess(facts(on_threads(held_s))).findings}

    assert findings["tcp.calls-held"].explains_others is is_cause
    assert findings["tcp.calls-held"].explained_by is None
    assert findings["threads.pool-limit"].explained_by == ("tcp.calls-held" if is_cause else None)
    assert findings["saturation.plateau"].explained_by is not None


@pytest.mark.parametrize("back", [None, NotMeasured("held back", "not read")])
def test_without_the_kernels_view_it_is_not_assessed(back: Figure | None) -> None:
    level = step(16, 267, 0.06)

    assert isinstance(assess(facts(curve(level))), NotAssessed)
    assert isinstance(assess(facts(curve(replace(level, calls=(calling(back),))))), NotAssessed)


def test_a_level_at_which_no_request_ended_says_nothing() -> None:
    stuck = replace(kept(step(16, 267, 0.06), 0.04), completed_trials=(0.0, 0.0, 0.0))

    assert isinstance(assess(facts(curve(stuck))), NotAssessed)
    assert isinstance(assess(facts(curve(kept(step(1, 16, 0.06), 0.04), stuck))), Finding)
