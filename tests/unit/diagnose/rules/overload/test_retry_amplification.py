"""A surplus in step with the load, as against visits at a constant rate and fan-out by design."""

from __future__ import annotations

import numpy as np
import pytest

from loadlens import diagnose
from loadlens.diagnose.rules.overload.retry_amplification import assess
from loadlens.model.facts import Facts
from loadlens.model.finding import Absent, Finding, Grade, NotAssessed
from loadlens.model.quality import Count, Counted
from tests.unit.diagnose.build import curve, facts, step

SENT = (120, 900, 1_900, 3_800, 7_600, 7_700, 7_500)


def counted(
    share: float,
    *,
    visits_per_s: float = 0.0,
    sent: tuple[int, ...] = SENT,
    seed: int = 1,
    failed: float | None = 1.0,  # for each that is asked again
) -> Facts:
    """Trials of 5 s; each request is asked again with this chance, and another client visits now and then."""
    random = np.random.default_rng(seed)
    trials = []
    for n in sent:
        whole, rest = divmod(share, 1)
        again = n * int(whole) + random.binomial(n, rest)
        errors = None if failed is None else failed * again
        trials.append(Counted(5.0, n, n, 5, float(n + again + round(5 * visits_per_s)), errors))
    built = facts(curve(step(1, 100.0, 0.01)))
    return Facts(built.cores, built.curves, counts=(Count("web", tuple(trials)),))


@pytest.mark.parametrize("share", [0.04, 0.10, 0.25, 1.5])
def test_the_share_of_retries_is_claimed_with_its_interval(share: float) -> None:
    answer = assess(counted(share))

    assert isinstance(answer, Finding)
    assert answer.grade is Grade.PROBABLE
    shown = next(e for e in answer.evidence if e.signal == "excess.share")
    assert shown.value == pytest.approx(share, rel=0.1)
    assert shown.low is not None
    assert shown.high is not None
    assert shown.low < share < shown.high
    assert answer.impact == pytest.approx(share / (1 + share), rel=0.1)
    assert len(answer.statement) <= 90
    assert all(len(e.chip) <= 32 for e in answer.evidence)


@pytest.mark.parametrize(
    ("failed", "grade"), [(0.85, Grade.PROBABLE), (0.75, Grade.SUSPECTED), (None, Grade.SUSPECTED)]
)
def test_what_is_asked_again_without_failures_is_a_suspicion(failed: float | None, grade: Grade) -> None:
    """A gateway that asks twice for three requests in ten, as after a miss in a cache."""
    answer = assess(counted(0.3, failed=failed))

    assert isinstance(answer, Finding)
    assert answer.grade is grade


def test_a_surplus_of_the_largest_trial_alone_is_none() -> None:
    sent = (1_000, 2_000, 3_000, 4_000, 5_000, 5_000, 50_000)
    trials = [Counted(5.0, n, n, 0, float(n), 2_000.0) for n in sent]
    trials[-1] = Counted(5.0, 50_000, 50_000, 0, 51_000.0, 2_000.0)  # 2 % more

    answer = assess(Facts(4, (), counts=(Count("web", tuple(trials)),)))

    assert isinstance(answer, Absent)


def test_retries_of_a_ladder_whose_largest_level_dwarfs_the_others_are_found() -> None:
    answer = assess(counted(0.1, sent=(300, 600, 1_200, 2_400, 5_000, 50_000)))

    assert isinstance(answer, Finding)
    assert answer.grade is Grade.PROBABLE


def test_the_interval_of_the_share_holds_it_where_one_trial_dwarfs_the_others() -> None:
    covered = 0
    for seed in range(100):
        answer = assess(counted(0.1, sent=(300, 600, 1_200, 2_400, 5_000, 50_000), seed=seed))
        assert isinstance(answer, Finding)
        shown = next(e for e in answer.evidence if e.signal == "excess.share")
        assert shown.low is not None
        assert shown.high is not None
        covered += shown.low < 0.1 < shown.high

    assert covered >= 90  # of 95 in a hundred; nine tenths and less by chance once in thirty times


def test_five_trials_leave_open_what_the_others_say_without_the_largest() -> None:
    answer = assess(counted(0.1, sent=SENT[:5]))

    assert isinstance(answer, Finding)
    assert answer.grade is Grade.SUSPECTED


def test_a_surplus_of_the_whole_record_is_folded_under_them() -> None:
    retries = assess(counted(0.10))
    assert isinstance(retries, Finding)
    surplus = Finding("accounting.excess", Grade.STRONG, 0.1, "web", "100 more", "", (), (), "", "")

    folded = diagnose.fold([retries, surplus])

    assert [f.explained_by for f in folded] == [None, "retry.amplification"]


def test_visits_beside_retries_are_split_off() -> None:
    answer = assess(counted(0.10, visits_per_s=4.0))

    assert isinstance(answer, Finding)
    shown = next(e for e in answer.evidence if e.signal == "excess.share")
    assert shown.value == pytest.approx(0.10, rel=0.15)


def test_visits_at_a_constant_rate_are_no_retries() -> None:
    answer = assess(counted(0.0, visits_per_s=5.0))

    assert isinstance(answer, Absent)
    assert "counted" in answer.reason


@pytest.mark.parametrize("share", [1.0, 2.0])
def test_several_requests_by_design_are_a_whole_number(share: float) -> None:
    answer = assess(counted(share))

    assert isinstance(answer, Absent)
    assert "whole number" in answer.reason


@pytest.mark.parametrize(("share", "fires"), [(0.02, True), (0.005, False)])
def test_one_percent_is_the_least(share: float, fires: bool) -> None:
    assert isinstance(assess(counted(share)), Finding if fires else Absent)


def test_few_trials_or_one_load_decide_nothing() -> None:
    assert isinstance(assess(counted(0.1, sent=SENT[:4])), NotAssessed)
    assert isinstance(assess(counted(0.1, sent=(3_000,) * 6)), NotAssessed)


def test_without_a_counter_nothing_is_assessed() -> None:
    answer = assess(facts(curve(step(1, 100.0, 0.01))))

    assert isinstance(answer, NotAssessed)
    assert "--metrics" in answer.reason


def test_chance_finds_none_where_nobody_asks_again() -> None:
    """Requests under way at the edges scatter the counts by a few."""
    random = np.random.default_rng(5)
    wrong = 0
    for _ in range(200):
        trials = [Counted(5.0, n, n + 4, 5, float(n + random.integers(0, 5))) for n in SENT]
        built = Facts(4, (), counts=(Count("web", tuple(trials)),))
        wrong += isinstance(assess(built), Finding)

    assert wrong == 0


def test_requests_that_may_have_arrived_are_no_surplus() -> None:
    """One in ten is given up by the client; the service counted each once."""
    trials = tuple(Counted(5.0, n - n // 10, n, 5, float(n)) for n in SENT)

    assert isinstance(assess(Facts(4, (), counts=(Count("web", trials),))), Absent)
