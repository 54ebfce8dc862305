"""The search of a rate that meets objectives, on queues whose answer is known by formula."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from benches import rate_search
from benches.rate_search import TRIAL_S, Queue

from loadlens.model.finding import Estimate
from loadlens.model.rates import RateAnswer, RateTrial
from loadlens.model.study import Objective
from loadlens.search import rates
from loadlens.search.rates import FRESH, bracket_of, next_of, verdict

MM1 = rate_search.mm1()  # 500/s, p99 below 50 ms
P99_BELOW, SERVED_PER_S, ANSWER_PER_S = MM1.below, MM1.served_per_s, MM1.answer_per_s


def trial(rate_per_s: float, p99_s: float, *, spread: float, is_fresh: bool = False) -> RateTrial:
    return rate_search.trial(MM1, rate_per_s, p99_s, spread=spread, is_fresh=is_fresh)


def searched(
    p99: Callable[[float], float], rng: np.random.Generator, *, spread: float, within_s: float = 120.0
) -> tuple[RateAnswer, float]:
    """The answer for a law of p99, and the seconds that it took."""
    queue = replace(MM1, p99_s=p99)
    answer, trials = rate_search.searched(queue, rng, spread=spread, within_s=within_s)
    return answer, trials * TRIAL_S


@pytest.fixture(scope="module", params=[0, 1, 4], ids=["M/M/1", "M/D/1", "M/D/4"])
def queue(request: pytest.FixtureRequest) -> Queue:
    """Queues whose p99 is a formula: the wait of M/D/c is that of Franx (2001)."""
    return rate_search.mdc(request.param) if request.param else MM1


@pytest.mark.parametrize("spread", [0.02, 0.1, 0.3])
def test_a_confirmed_rate_is_hardly_ever_above_the_true_one(queue: Queue, spread: float) -> None:
    searches = 1_000 if queue.name == "M/M/1" else 300
    capacity = rate_search.summary(queue, "capacity", spread, searches)

    # 2^-5 for each rate above the true one that is put to the test, and rarely more than one is
    assert capacity.beyond <= 0.05
    assert capacity.claims >= 0.9
    # the search is longer than a bisection, which does not confirm, and at no spread as long as 24 trials
    assert capacity.trials <= 24


def test_a_ramp_and_a_bisection_claim_too_much_where_trials_differ() -> None:
    queue = rate_search.mdc(4)
    beyond = {name: rate_search.summary(queue, name, 0.1, 300).beyond for name in rate_search.METHODS}

    assert beyond["capacity"] <= 0.05
    assert beyond["ramp"] > 0.1
    assert beyond["bisection"] > 0.1


def test_the_page_has_the_table_that_the_search_gives() -> None:
    """One row of it: what is claimed does not depend on the machine."""
    made = rate_search.row(rate_search.mdc(1), 0.1, "ramp")

    assert made in rate_search.PAGE.read_text(encoding="utf-8")


def test_without_noise_the_answer_is_within_the_step_of_the_search() -> None:
    answer, used_s = searched(MM1.p99_s, np.random.default_rng(1), spread=1e-6)

    assert answer.low_per_s is not None
    assert answer.high_per_s is not None
    assert answer.low_per_s <= ANSWER_PER_S <= answer.high_per_s
    assert answer.high_per_s <= 1.0601 * answer.low_per_s
    assert used_s <= 120.0
    assert answer.confirmed_by == FRESH


def test_the_search_is_shorter_than_a_ramp_in_steps_of_its_precision() -> None:
    used = [searched(MM1.p99_s, np.random.default_rng(seed), spread=0.02)[1] for seed in range(100)]
    steps = math.log(ANSWER_PER_S / (rates.LEAST_SHARE * SERVED_PER_S)) / math.log(rates.NARROW)

    assert np.mean(used) < 0.25 * steps * TRIAL_S


def test_the_budget_is_kept() -> None:
    for within_s in (10.0, 30.0, 55.0, 90.0):
        _, used_s = searched(MM1.p99_s, np.random.default_rng(2), spread=0.1, within_s=within_s)
        assert used_s <= within_s


def test_a_bound_that_nothing_meets_is_missed_at_the_lowest_rate() -> None:
    answer, _ = searched(lambda _: 0.2, np.random.default_rng(1), spread=0.05, within_s=200.0)

    assert answer.low_per_s is None
    assert answer.sentence.startswith("No rate meets p99 of response time < 50.0 ms: missed already at ")
    assert answer.row.state == "bad"


def test_a_search_that_ends_above_light_loads_does_not_say_that_no_rate_meets_a_bound() -> None:
    seen = [trial(300.0, 0.02, spread=0.1), trial(300.0, 0.2, spread=0.1), trial(480.0, 0.2, spread=0.1)]
    one_rate = rates.answer_of([seen[1]], [P99_BELOW], MM1.span())
    two_trials = rates.answer_of(seen, [P99_BELOW], MM1.span())

    # half of the capacity was tried: half of it may be enough
    assert one_rate.sentence.startswith(
        "Undecided: no rate met p99 of response time < 50.0 ms in every trial"
    )
    assert "at 300 /s, the lowest tried, 1 of 2 did, and one did not: p99" in two_trials.sentence
    assert "would try and confirm a lower rate" in two_trials.next
    assert {one_rate.row.state, two_trials.row.state} == {"unknown"}


def test_a_bound_that_everything_meets_ends_at_the_capacity() -> None:
    answer, _ = searched(
        lambda rate: 0.001 if rate <= SERVED_PER_S else math.inf, np.random.default_rng(1), spread=0.05
    )

    assert answer.low_per_s == SERVED_PER_S
    assert "users without pauses reach 500 /s" in answer.sentence


def test_a_service_that_gets_worse_is_not_confirmed_where_it_was_good_once() -> None:
    seen = [trial(300.0, 0.02, spread=0.1), trial(300.0, 0.08, spread=0.1, is_fresh=True)]
    wanted = next_of(seen, MM1.span(), 100.0, lambda _: TRIAL_S)

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
