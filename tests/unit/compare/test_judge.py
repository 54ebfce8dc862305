"""The verdict on two versions whose difference is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from loadlens.compare.judge import Rules, compared
from loadlens.estimate.looks import LOOKS
from loadlens.model.comparison import Comparison, Effect
from loadlens.model.finding import Estimate
from tests.unit.compare.arms import PER_S, SECONDS, TYPICAL_S, arms

MARGIN = Rules(0.03)


def headline(answer: Comparison) -> Effect:
    (effect,) = [effect for effect in answer.effects if effect.is_headline]
    return effect


def ratio_of(effect: Effect) -> Estimate:
    assert isinstance(effect.ratio, Estimate)
    return effect.ratio


@pytest.mark.parametrize(
    ("ratio", "verdict", "is_missed"), [(1.3, "slower", True), (1 / 1.3, "faster", False)]
)
def test_a_clear_change_has_a_direction_and_only_a_slower_version_is_missed(
    ratio: float, verdict: str, is_missed: bool
) -> None:
    answer = compared(arms(ratio), MARGIN)

    assert (answer.verdict, answer.is_missed, answer.is_decided) == (verdict, is_missed, True)
    assert answer.sentence.startswith(f"{verdict.capitalize()} by more than 3.0 %: p50 of response time of B")
    assert ratio_of(headline(answer)).point == pytest.approx(ratio, rel=0.01)
    assert answer.decides == ""


def test_the_interval_of_an_effect_is_students_on_the_logs_of_its_pairs() -> None:
    effect = headline(compared(arms(1.05), MARGIN))

    ratio = ratio_of(effect)
    before, after = (np.log([getattr(pair, name) for pair in effect.pairs]) for name in ("before", "after"))
    ends = stats.ttest_rel(after, before).confidence_interval(ratio.confidence)  # scipy's own paired test
    assert (ratio.low, ratio.high) == pytest.approx(tuple(np.exp(np.array(ends))))


def test_equal_versions_are_equivalent_within_a_margin_that_the_pairs_decide() -> None:
    answer = compared(arms(), Rules(0.10))

    assert answer.verdict == "equivalent"
    assert answer.sentence.startswith("Equivalent within 10 %")
    assert headline(answer).change == "same"
    assert not answer.is_missed


def test_versions_that_scatter_by_more_than_the_margin_are_undecided_and_more_pairs_are_named() -> None:
    answer = compared(arms(spread=0.02), MARGIN)

    assert (answer.verdict, answer.is_missed, answer.is_decided) == ("undecided", False, False)
    assert "more pair" in answer.decides


def test_two_pairs_have_no_interval_and_one_more_is_asked_for() -> None:
    answer = compared(arms(1.3, pairs=2), MARGIN)

    assert answer.verdict == "undecided"
    assert answer.decides == "at least 1 more pair"


def test_a_second_version_that_fails_more_is_failing_however_fast_it_is() -> None:
    answer = compared(arms(0.5, failing=0.25), MARGIN)

    # a quarter of 20/s over the six measured seconds of five trials fails, by hand
    ended = round(PER_S * SECONDS * 2 / 3) * 5
    assert (answer.verdict, answer.is_missed) == ("failing", True)
    assert answer.sentence.startswith("Failing: B fails more often than A")
    assert answer.failures == (f"A 0 of {ended:,}, B {ended // 4:,} of {ended:,} requests",)


def test_the_last_look_that_was_reached_is_judged_with_its_part_of_the_error() -> None:
    answer = compared(arms(pairs=6), Rules(0.03, LOOKS))

    # two pairs of thirteen since the look before: 2/13 of 5 %
    alone = compared(arms(pairs=5), Rules(0.03, error=0.05 * 2 / 13))
    assert answer.pairs == 5
    assert [effect.ratio for effect in answer.effects] == [effect.ratio for effect in alone.effects]
    # the headline alone, or divided by Holm among all metrics: never below that of one test
    assert ratio_of(headline(answer)).confidence >= 1 - 0.05 * 2 / 13


@pytest.mark.parametrize(("is_open", "metric"), [(True, "response_time.p50"), (False, "throughput")])
def test_the_headline_follows_from_who_waits(is_open: bool, metric: str) -> None:
    answer = compared(arms(is_open=is_open), MARGIN)

    assert headline(answer).metric == metric
    assert answer.effects[0].is_headline


def test_a_pair_with_an_invalid_trial_is_left_out_and_named() -> None:
    answer = compared(arms(lost=2), MARGIN)

    assert answer.pairs == 3
    assert len(headline(answer).pairs) == 3
    assert "2 trials of B not used: the generator stood still" in answer.cautions


def test_trials_that_were_not_run_in_pairs_are_compared_by_welch() -> None:
    effect = headline(compared(arms(1.3, is_paired=False), MARGIN))

    assert effect.pairs == ()
    assert "Welch" in ratio_of(effect).method
    assert isinstance(effect.before, Estimate)
    assert effect.before.point == pytest.approx(TYPICAL_S, rel=0.02)
