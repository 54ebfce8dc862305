"""The search of a rate that meets objectives, on queues whose answer is known by formula."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from loadlens.model.finding import Estimate, Figure, Undecided
from loadlens.model.rates import RateAnswer, RateTrial
from loadlens.model.study import Objective
from loadlens.search import rates
from loadlens.search.rates import FRESH, Range, answer_of, bracket_of, next_of, verdict

P99_BELOW = Objective("response_time.p99", None, below=0.05)
SERVED_PER_S = 500.0
# M/M/1: response times are exponential with rate mu - lambda, so p99 = ln(100) / (mu - lambda).
ANSWER_PER_S = SERVED_PER_S - math.log(100) / 0.05
SPAN = Range(ceiling_per_s=SERVED_PER_S, is_capacity=True, cap_per_s=20_000.0)
TRIAL_S = 8.0


def p99_of(rate_per_s: float) -> float:
    return math.log(100) / (SERVED_PER_S - rate_per_s) if rate_per_s < SERVED_PER_S else math.inf


def trial(rate_per_s: float, p99_s: float, *, spread: float, is_fresh: bool = False) -> RateTrial:
    """A trial with this estimate and an interval of two spreads (of its logarithm) on either side."""
    p99: Figure = Undecided("response_time.p99", "s", "no end")
    if p99_s < math.inf:
        low, high = p99_s * math.exp(-1.96 * spread), p99_s * math.exp(1.96 * spread)
        p99 = Estimate("response_time.p99", "s", p99_s, low, high, 1, 1000, "by hand")
    rate = min(rate_per_s, SERVED_PER_S)
    served = Estimate("throughput", "1/s", rate, 0.98 * rate, 1.02 * rate, 1, 1000, "by hand")
    return verdict(rate_per_s, is_fresh, [(P99_BELOW, p99)], served, TRIAL_S)


def searched(
    p99: Callable[[float], float], rng: np.random.Generator, *, spread: float, within_s: float = 120.0
) -> tuple[RateAnswer, float]:
    """The answer and the seconds that it took."""
    seen: list[RateTrial] = []
    used_s = 0.0
    while (wanted := next_of(seen, SPAN, within_s - used_s, lambda _: TRIAL_S)) is not None:
        noise = math.exp(spread * rng.standard_normal())
        p99_s = p99(wanted.rate_per_s) * noise
        seen.append(trial(wanted.rate_per_s, p99_s, spread=spread, is_fresh=wanted.is_fresh))
        used_s += TRIAL_S
    return answer_of(seen, [P99_BELOW], SPAN), used_s


@pytest.mark.parametrize("spread", [0.02, 0.1, 0.3])
def test_a_confirmed_rate_is_hardly_ever_above_the_true_one(spread: float) -> None:
    rng = np.random.default_rng(7)
    runs = [searched(p99_of, rng, spread=spread)[0] for _ in range(1_000)]
    confirmed = [run.low_per_s for run in runs if run.low_per_s is not None]

    # 2^-5 for each rate above the true one that is put to the test, and rarely more than one is
    assert sum(rate > ANSWER_PER_S for rate in confirmed) / len(runs) <= 0.05
    # p99 moves with 1 / (500 - rate): a spread of 2 % of p99 is 0.5 % of the rate
    assert len(confirmed) >= (900 if spread == 0.02 else 300)


def test_without_noise_the_answer_is_within_the_step_of_the_search() -> None:
    answer, used_s = searched(p99_of, np.random.default_rng(1), spread=1e-6)

    assert answer.low_per_s is not None
    assert answer.high_per_s is not None
    assert answer.low_per_s <= ANSWER_PER_S <= answer.high_per_s
    assert answer.high_per_s <= 1.0601 * answer.low_per_s
    assert used_s <= 120.0
    assert answer.confirmed_by == FRESH


def test_the_search_is_shorter_than_a_ramp_in_steps_of_its_precision() -> None:
    used = [searched(p99_of, np.random.default_rng(seed), spread=0.02)[1] for seed in range(100)]
    steps = math.log(ANSWER_PER_S / (rates.LEAST_SHARE * SERVED_PER_S)) / math.log(rates.NARROW)

    assert np.mean(used) < 0.25 * steps * TRIAL_S


def test_the_budget_is_kept() -> None:
    for within_s in (10.0, 30.0, 55.0, 90.0):
        _, used_s = searched(p99_of, np.random.default_rng(2), spread=0.1, within_s=within_s)
        assert used_s <= within_s


def test_a_bound_that_nothing_meets_is_missed_at_the_lowest_rate() -> None:
    answer, _ = searched(lambda _: 0.2, np.random.default_rng(1), spread=0.05, within_s=200.0)

    assert answer.low_per_s is None
    assert answer.sentence.startswith("No rate meets p99 of response time < 50.0 ms: missed already at ")


def test_a_bound_that_everything_meets_ends_at_the_capacity() -> None:
    answer, _ = searched(
        lambda rate: 0.001 if rate <= SERVED_PER_S else math.inf, np.random.default_rng(1), spread=0.05
    )

    assert answer.low_per_s == SERVED_PER_S
    assert "users without pauses reach 500 /s" in answer.sentence


def test_a_service_that_gets_worse_is_not_confirmed_where_it_was_good_once() -> None:
    seen = [trial(300.0, 0.02, spread=0.1), trial(300.0, 0.08, spread=0.1, is_fresh=True)]
    wanted = next_of(seen, SPAN, 100.0, lambda _: TRIAL_S)

    assert bracket_of(seen).met is None
    assert wanted is not None
    assert wanted.rate_per_s == pytest.approx(270.0)


def test_a_service_that_falls_behind_misses_whatever_its_answers_took() -> None:
    fine = Estimate("response_time.p99", "s", 0.01, 0.009, 0.011, 1, 1000, "by hand")
    behind = Estimate("throughput", "1/s", 450.0, 445.0, 455.0, 1, 1000, "by hand")

    judged = verdict(500.0, False, [(P99_BELOW, fine)], behind, TRIAL_S)

    assert (judged.is_met, judged.state) == (False, "bad")
    assert "falls behind: 450 /s succeed" in judged.words


def test_failures_are_bounded_where_no_objective_does() -> None:
    own = Objective("failed.share", None, below=0.1)

    assert rates.with_failures([P99_BELOW])[1:] == (rates.FAILURES,)
    assert rates.with_failures([P99_BELOW, own]) == (P99_BELOW, own)


@pytest.mark.parametrize(
    ("objective", "rate", "seconds"),
    [
        (P99_BELOW, 100.0, 15.0),  # 1,500 requests: fifteen are above p99
        (Objective("response_time.p50", None, below=1.0), 5.0, 6.0),  # 30 requests
        (rates.FAILURES, 40.0, 10.0),  # 400 without a failure: at most 1 % (rule of three)
        (P99_BELOW, 1.0, 20.0),  # 220 s over eleven trials
        (P99_BELOW, 10_000.0, 4.0),
    ],
)
def test_a_trial_is_long_enough_for_its_objective(objective: Objective, rate: float, seconds: float) -> None:
    assert rates.measured_s(rate, [objective], 220.0) == pytest.approx(seconds)
