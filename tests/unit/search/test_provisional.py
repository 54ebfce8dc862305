"""Judgements while a search goes on: whether the answer is certain, and the line for the user."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loadlens.model.finding import Estimate, Figure, Undecided
from loadlens.search.provisional import Judgement, is_certain, is_settled


def capacity(point: float, low: float | None, high: float | None) -> Estimate:
    return Estimate("capacity", "1/s", point, low, high, 3, 500, "by hand")


SURE = Judgement(
    cause="db.lock",
    claims=frozenset({"db.lock", "saturation.plateau"}),
    suspected=frozenset(),
    capacity=capacity(100.0, 95.0, 105.0),
    line="",
)


def test_two_judgements_that_agree_are_certain_and_one_is_not() -> None:
    assert is_certain([SURE, SURE])
    assert is_certain([replace(SURE, cause="db.pool"), SURE, SURE])
    assert not is_certain([SURE])
    assert not is_certain([])


@pytest.mark.parametrize(
    "change",
    [
        {"cause": "db.pool"},
        {"cause": None},  # that throughput stops is no cause
        {"claims": SURE.claims | {"pause.periodic"}},
        {"suspected": frozenset({"mixture.slow-path"})},
        {"is_unsteady": True},
    ],
)
def test_another_cause_a_new_finding_or_a_suspicion_is_not_certain(change: dict[str, object]) -> None:
    changed = replace(SURE, **change)  # type: ignore[arg-type]

    assert not is_certain([SURE, changed])
    assert not is_certain([replace(SURE, cause=None), replace(SURE, cause=None)])


@pytest.mark.parametrize(
    ("before", "now", "agree"),
    [
        (capacity(100.0, 95.0, 105.0), capacity(104.0, 99.0, 109.0), True),
        (capacity(100.0, 95.0, 105.0), capacity(106.0, 99.0, 109.0), False),  # outside the first
        (capacity(100.0, 80.0, 120.0), capacity(106.0, 101.0, 111.0), False),  # outside the second
        (capacity(100.0, 80.0, 120.0), capacity(100.0, 84.0, 115.0), False),  # 31 % wide, 30 are allowed
        (capacity(100.0, 80.0, 120.0), capacity(100.0, 85.0, 115.0), True),
        (capacity(100.0, 95.0, None), capacity(100.0, 95.0, 105.0), False),  # a lower bound
        (Undecided("capacity", "1/s", "not reached"), capacity(100.0, 95.0, 105.0), False),
    ],
)
def test_each_capacity_must_lie_in_the_narrow_interval_of_the_other(
    before: Figure, now: Figure, agree: bool
) -> None:
    assert is_certain([replace(SURE, capacity=before), replace(SURE, capacity=now)]) is agree


def test_where_requests_wait_is_certain_after_three_judgements_and_samples_alone_do_not_count() -> None:
    where = replace(SURE, cause="downstream.serialised", claims=frozenset({"downstream.serialised"}))
    sampled = replace(where, is_sampled=True)

    assert is_certain([where, sampled, sampled])
    assert not is_certain([where, sampled])
    assert not is_certain([SURE, sampled, sampled])
    assert not is_certain([where, replace(where, capacity=capacity(120.0, 115.0, 125.0)), where])


@pytest.mark.parametrize("before", [None, "downstream.serialised", "threads.pool-limit"])
def test_a_cause_that_samples_of_threads_show_is_certain(before: str | None) -> None:
    unread = replace(SURE, cause=before, claims=frozenset({"saturation.plateau"}))
    sampled = replace(SURE, is_sampled=True)

    assert is_certain([unread, sampled])
    assert not is_certain([unread, SURE])
    assert not is_certain([replace(unread, is_sampled=True), sampled])
    assert not is_certain([unread, replace(sampled, suspected=frozenset({"pause.periodic"}))])


def test_that_requests_wait_somewhere_is_not_certain_as_it_does_not_say_for_what() -> None:
    somewhere = replace(SURE, cause="downstream.serialised")

    assert not is_certain([somewhere, somewhere])


def test_findings_are_settled_if_there_are_none_or_the_same_as_before() -> None:
    nothing = replace(SURE, cause=None, claims=frozenset())
    healthy = replace(SURE, cause=None, claims=frozenset({"no-finding.healthy"}))
    suspicion = replace(nothing, suspected=frozenset({"pause.periodic"}))

    assert is_settled([nothing])
    assert is_settled([SURE, healthy])
    assert is_settled([SURE, SURE])
    assert is_settled([replace(nothing, suspected=frozenset({"no-finding.healthy"}))])
    assert not is_settled([])
    assert not is_settled([SURE])
    assert not is_settled([nothing, SURE])
    assert not is_settled([suspicion, suspicion])
