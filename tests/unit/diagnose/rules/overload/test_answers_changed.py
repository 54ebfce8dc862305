"""Successes that are other answers, answers that only become cheaper, and what looks like either."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loadlens import diagnose
from loadlens.diagnose.rules.overload.answers_changed import assess
from loadlens.estimate.interval import Insufficient
from loadlens.measure.curve import capacity_of
from loadlens.model.facts import Curve, Facts, Step
from loadlens.model.finding import Absent, Finding, Grade, NotAssessed
from loadlens.model.shapes import AnswerSize, TimerLevel, TimerPile
from tests.unit.diagnose.build import curve, estimate, step


def size(place: int, count: int, took_s: float = 0.08, body: str = "") -> AnswerSize:
    """A class of sizes; 36 is 2,048 to 2,559 bytes, 6 is 12 and 13 bytes (four classes to an octave)."""
    smallest = 2 ** (place // 4 + 2) + (place % 4) * 2 ** (place // 4)
    return AnswerSize(place, count, smallest, smallest, took_s, body)


PAGE = size(36, 60, body="<ul><li>tea")
BUSY = size(6, 1_500, 0.001, '{"ok":false}')


def level(users: float, rate: float, *answers: AnswerSize, response: float = 0.08, **more: Any) -> Step:
    built = step(users, rate, response, **more)
    return replace(built, classes=tuple(replace(each, answers=answers) for each in built.classes))


def soft(*others: AnswerSize, light: tuple[AnswerSize, ...] = (PAGE,)) -> Curve:
    """Six places of 80 ms: of 20 users the others get another answer."""
    return curve(level(1, 12.5, *light), level(5, 62, PAGE), level(20, 368, PAGE, *others), think=0.0)


def test_short_answers_with_the_status_of_success_are_named_with_both_bodies() -> None:
    finding = assess(Facts(4, (soft(BUSY),), dense=(level(1, 12.5, PAGE),)))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.STRONG
    assert finding.statement == (
        "96 % of the successes at 20 users are another answer: 12.0 B in place of 2.00 KiB"
    )
    assert 'At 1 user: "<ul><li>tea"; at 20 users: "{"ok":false}"' in finding.explanation
    assert "turn requests away with the status of success" in finding.explanation
    # 60 of 1,560 answers at 368/s
    assert "Of 368 /s at 20 users, 14.2 /s are the usual answer" in finding.explanation
    assert "At most 14.2 /s of it came, at 20 users, 1.1 under way at once" in finding.explanation  # x 80 ms


def test_few_answers_of_one_user_are_counted_together_with_those_of_the_next_levels() -> None:
    few = curve(
        level(1, 12.5, size(36, 21)), level(5, 62, size(36, 84)), level(20, 368, PAGE, BUSY), think=0.0
    )

    finding = assess(Facts(4, (few,)))

    assert isinstance(finding, Finding)
    assert "none of 105 answers at 1 to 5 users is of such a size" in [each.text for each in finding.evidence]


@pytest.mark.parametrize(
    ("most_bytes", "took_s", "is_other"),
    [(1_800, 0.008, True), (1_800, 0.0081, False), (1_900, 0.008, False)],
    ids=["a tenth of the time", "hardly more than a tenth", "of 7 % fewer bytes"],
)
def test_a_size_next_to_the_usual_one_is_another_answer_if_it_comes_far_faster(
    most_bytes: int, took_s: float, is_other: bool
) -> None:
    near = AnswerSize(35, 1_500, 1_792, most_bytes, took_s)

    assert isinstance(assess(Facts(4, (soft(near),))), Finding) is is_other


def test_no_capacity_is_given_across_the_change() -> None:
    flat = soft(BUSY)
    flat = replace(flat, steps=(*flat.steps, level(40, 370, PAGE, BUSY)))

    verdict = diagnose.assess(Facts(4, (flat,)))

    assert isinstance(capacity_of(flat), Insufficient)
    assert {"saturation.plateau", "no-finding.healthy"}.isdisjoint(f.rule for f in verdict.findings)


def test_without_a_look_afterwards_the_data_may_have_grown() -> None:
    finding = assess(Facts(4, (soft(BUSY),)))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.PROBABLE


def test_answers_that_stay_changed_have_changed_with_time() -> None:
    longer = size(50, 60)

    finding = assess(Facts(4, (soft(longer),), dense=(level(1, 12.5, longer),)))

    assert isinstance(finding, Finding)
    assert finding.statement.startswith("Answers changed with time: 24.0 KiB in place of 2.00 KiB")
    assert not isinstance(capacity_of(soft(longer)), Insufficient)  # as costly as the others


@pytest.mark.parametrize(
    "built",
    [
        soft(),
        soft(size(37, 1_500)),  # a quarter of an octave more: a longer number
        soft(size(6, 19, 0.001)),  # a few
        soft(size(6, 60), light=(*(size(place, 1) for place in range(8, 40, 2)), size(36, 20))),
    ],
    ids=["one answer", "next size", "few", "every size once"],
)
def test_answers_whose_sizes_vary_are_the_same_answers(built: Curve) -> None:
    assert isinstance(assess(Facts(4, (built,))), Absent)


def test_a_few_answers_at_the_lightest_load_are_nothing_to_compare_with() -> None:
    few = curve(level(1, 12.5, size(36, 29)), level(20, 368, PAGE, BUSY), think=0.0)

    assert isinstance(assess(Facts(4, (few,))), NotAssessed)


def cached(*, timers: int = 0) -> Curve:
    """One request alone takes 80 ms; of 16 users most share the work of one."""
    pile = TimerPile("b", "POST /b", "answer", 0.04, 60, timers, estimate(0.5), estimate(0.04), 9.0)
    piles = (replace(pile, levels=(TimerLevel(1.0, timers),)),) if timers else ()
    fast = level(16, 1_600, PAGE, response=0.01)
    return curve(level(1, 12.5, PAGE, issued=60), fast, think=0.0, timer_piles=piles)


def test_requests_that_ask_for_different_things_have_different_answers() -> None:
    """One user asks for his own record only, many for those of all: of other sizes, and faster or slower."""

    def varied(built: Curve) -> Curve:
        steps = (
            replace(level, classes=tuple(replace(each, is_varied=True) for each in level.classes))
            for level in built.steps
        )
        return replace(built, steps=tuple(steps))

    assert not isinstance(assess(Facts(4, (varied(soft(BUSY)),), dense=(level(1, 12.5, PAGE),))), Finding)
    assert not isinstance(assess(Facts(4, (varied(cached()),), dense=(level(1, 12.5, PAGE),))), Finding)


def test_work_that_requests_share_makes_them_faster_under_load_only() -> None:
    finding = assess(Facts(4, (cached(),), dense=(level(1, 12.5, PAGE),)))

    assert isinstance(finding, Finding)
    assert finding.statement == "Requests take 10.0 ms at 16 users, and 80.0 ms alone: shared work"
    assert finding.impact == pytest.approx(1 - 10 / 80)


@pytest.mark.parametrize(
    ("built", "after"),
    [
        (cached(), (level(1, 100, PAGE, response=0.01),)),
        (cached(), ()),
        (cached(timers=40), (level(1, 12.5, PAGE),)),
        (soft(), (level(1, 12.5, PAGE),)),
    ],
    ids=["cold start", "not known", "delayed acknowledgements", "as slow under load"],
)
def test_what_was_cold_or_waited_for_a_timer_shares_no_work(built: Curve, after: tuple[Step, ...]) -> None:
    assert isinstance(assess(Facts(4, (built,), dense=after)), Absent)
