"""One part of several is full: by labels of the service's metrics, by the times of requests, by both."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loadlens import diagnose
from loadlens.diagnose.rules.replicas import part_full
from loadlens.measure import figures
from loadlens.model.facts import Curve, LabelSplit, RequestClass, Step
from loadlens.model.finding import Absent, Estimate, Finding, Grade, NotAssessed, NotMeasured, Undecided
from tests.unit.diagnose import parts
from tests.unit.diagnose.build import estimate, facts, times
from tests.unit.diagnose.parts import HOLD_S, MOST_PER_S, QUICK_S, SHARE, USERS, hill, hills, one_full
from tests.unit.diagnose.waiting import waiting


def assessed(built: Curve) -> Finding:
    answer = part_full.assess(facts(built))
    assert isinstance(answer, Finding), answer
    return answer


def silence(built: Curve) -> str:
    answer = part_full.assess(facts(built))
    assert isinstance(answer, Absent), answer
    return answer.reason


def with_splits(built: Curve, **changed: Any) -> Curve:
    """Other splits at every level: `make` gets the load and the rate."""
    make = changed["make"]
    steps = tuple(
        replace(level, splits=(make(level.load, level.throughput_trials[0]),)) for level in built.steps
    )
    return replace(built, steps=steps)


def test_the_value_of_a_label_that_slows_down_alone_is_named_with_its_share() -> None:
    finding = assessed(one_full())

    # 32 users at 200/s: R = 160 ms, so the hot quarter takes (160 - 7.5) / 0.25 = 610 ms of 640.
    assert finding.grade is Grade.PROBABLE  # how long answers were under way was not timed
    expected = 'upstream="b" is full at 50.0 /s: 25 % of the requests, 95 % of their time'
    assert finding.statement == expected
    values = {e.signal: e.value for e in finding.evidence}
    assert values["part.grown"] == pytest.approx(0.61)
    assert values["part.others"] == pytest.approx(QUICK_S)
    # What all wait is R - R1 = 160 - 12.5 ms, the hot ones (610 - 20) / 4 of it.
    assert values["part.waiting"] == pytest.approx(1.0)
    assert "takes 610 ms at 32 users, 20.0 ms at 1 user; the others take 10.0 ms" in finding.explanation


@pytest.mark.parametrize("unknown", ["shift", "weight"])
def test_hills_whose_distance_or_share_is_undecided_name_no_part(unknown: str) -> None:
    levels = hills().parted
    figure: dict[str, Any] = {unknown: Undecided(unknown, "s", "too few requests")}
    top = replace(levels[-1], **figure)

    assert silence(
        replace(one_full(labels=False), slow_paths=(replace(hills(), parted=(*levels[:-1], top)),))
    )


@pytest.mark.parametrize(("others_s", "is_part"), [(HOLD_S, True), (QUICK_S / 2, False)])
def test_a_part_with_most_of_the_requests_has_others_like_it(others_s: float, is_part: bool) -> None:
    """Of five shards one gets 88 %; what is much quicker than that may be refusals."""

    def splits(load: float, rate: float) -> LabelSplit:
        hot_s = HOLD_S if load == 1 else load / rate
        return parts.split((0.88 * rate, hot_s), *[(0.03 * rate, others_s)] * 4)

    built = with_splits(one_full(share=0.88), make=splits)

    if is_part:
        assert assessed(built).statement.startswith('upstream="b" is full at ')
    else:
        assert silence(built)


def test_values_that_are_rare_without_load_are_judged_together() -> None:
    def few(load: float, rate: float) -> LabelSplit:
        (split,) = next(level for level in one_full().steps if level.load == load).splits
        if load > 1:
            return split
        own = tuple(
            replace(part, rate=replace(part.rate, samples=part.rate.samples if number == 0 else 2))
            for number, part in enumerate(split.parts)
            if isinstance(part.rate, Estimate)
        )
        return replace(split, parts=own)

    assert assessed(with_splits(one_full(), make=few)).statement == assessed(one_full()).statement


def test_it_explains_the_plateau_and_the_line_that_no_gauge_names() -> None:
    verdict = diagnose.assess(facts(one_full()))

    folded = {finding.rule: finding.explained_by for finding in verdict.findings}
    assert folded == {"part.full": None, "saturation.plateau": "part.full"}


def test_things_that_the_load_asks_for_are_parts_though_clients_choose_them() -> None:
    """Each value is a kind of request of the load, as a label of the service that is a path would be."""

    def by_path(level: Step, *, is_of_load: bool) -> Step:
        (split,) = level.splits
        kinds = tuple(
            replace(level.classes[0], label=p.value, rate=p.rate, response=times(figures.point(p.mean)))
            for p in split.parts
        )
        own = replace(split, label="request", is_of_load=is_of_load)
        return replace(level, splits=(own,), classes=kinds)

    built = one_full()
    of_load, of_service = (
        replace(built, steps=tuple(by_path(level, is_of_load=each) for level in built.steps))
        for each in (True, False)
    )

    assert assessed(of_load).statement.startswith("b is full at 50.0 /s")
    assert silence(of_service)


def test_several_values_that_slow_down_are_all_named() -> None:
    def make(load: float, rate: float) -> LabelSplit:
        hot = parts.rates(load)[1]
        half = (rate * SHARE / 2, hot)
        return parts.split(half, half, (rate * (1 - SHARE), QUICK_S))

    finding = assessed(with_splits(one_full(), make=make))

    assert 'Full as well: upstream="a".' in finding.explanation
    assert "25 % of the requests" in finding.statement


def test_hills_of_which_one_grows_with_the_users_are_a_part_without_a_name() -> None:
    finding = assessed(one_full(labels=False, times=True))

    assert finding.statement == "25 % of POST /b wait for a part that is full at 50.0 /s; the others do not"
    assert finding.unknown == ("which part: no label of a metric has this share",)


def test_what_only_a_queue_makes_slow_is_not_in_the_time_without_load() -> None:
    """Slow paths are looked for at the same levels, where the queue looks like one of the last."""
    weight, shift = estimate(SHARE, unit="share"), estimate(0.5)
    path = replace(hills(), levels=hills().parted, weight=replace(weight, samples=9_000), shift=shift)
    built = replace(one_full(labels=False), slow_paths=(path,))

    assert assessed(built).impact == pytest.approx(assessed(one_full(labels=False, times=True)).impact)


def test_a_counter_names_the_part_by_its_share() -> None:
    finding = assessed(one_full(timed=False, times=True))

    assert "has this share" not in finding.explanation  # four have a quarter each
    uneven = assessed(one_full(timed=False, times=True, share=0.4))
    assert 'upstream="b" of calls_seconds has this share.' in uneven.explanation


def test_names_do_not_count() -> None:
    def make(load: float, rate: float) -> LabelSplit:
        whole = parts.split((rate * SHARE, parts.rates(load)[1]), (rate * (1 - SHARE), QUICK_S))
        named = zip(("ж", "ü"), whole.parts, strict=True)
        return LabelSplit("x", "y", tuple(replace(part, value=value) for value, part in named))

    finding = assessed(with_splits(one_full(), make=make))

    assert finding.grade is Grade.PROBABLE
    assert finding.impact == pytest.approx(assessed(one_full()).impact)


# --- near misses ------------------------------------------------------------------------------------------


def test_values_that_all_slow_down_are_no_part_of_several() -> None:
    def make(load: float, rate: float) -> LabelSplit:
        each = (rate / 3, parts.rates(load)[1])
        return parts.split(each, each, each)

    assert "slows down alone" in silence(with_splits(one_full(), make=make))


def test_a_value_that_is_slower_at_any_load_is_not_full() -> None:
    def make(_: float, rate: float) -> LabelSplit:
        return parts.split((rate / 3, 0.3), (rate / 3, QUICK_S), (rate / 3, QUICK_S))

    assert "slows down alone" in silence(with_splits(one_full(), make=make))


def test_what_clients_ask_for_is_no_part() -> None:
    """A path that gets all of the load, next to the probe's."""

    def make(load: float, rate: float) -> LabelSplit:
        return parts.split((rate, load / rate), (5.0, 0.001))

    assert "slows down alone" in silence(with_splits(one_full(), make=make))


def test_one_of_two_kinds_of_request_is_no_part_and_a_part_that_both_meet_is_one() -> None:
    """Half of the load is of another kind: quick at any load in the first case, met by the full part too."""

    def of_two(built: Curve, *, is_spared: bool) -> Curve:
        def kinds(level: Step) -> tuple[RequestClass, ...]:
            rate, mean_s = level.throughput_trials[0], level.load / level.throughput_trials[0]
            means = (2 * mean_s - QUICK_S, QUICK_S) if is_spared else (mean_s, mean_s)
            return tuple(
                RequestClass(
                    label,
                    request,
                    estimate(rate / 2, unit="1/s"),
                    times(each),
                    times(each),
                    NotMeasured("", ""),
                )
                for label, request, each in zip("bc", ("GET /b", "GET /c"), means, strict=True)
            )

        return replace(built, steps=tuple(replace(level, classes=kinds(level)) for level in built.steps))

    def make(load: float, rate: float) -> LabelSplit:
        return parts.split((rate / 2, 2 * load / rate - QUICK_S), (rate / 2, QUICK_S))

    built = with_splits(one_full(), make=make)

    assert "slows down alone" in silence(of_two(built, is_spared=True))
    assert "50 % of the requests" in assessed(of_two(built, is_spared=False)).statement


def test_a_part_that_a_balancer_comes_to_avoid_does_not_bound_the_others() -> None:
    def make(load: float, rate: float) -> LabelSplit:
        share = SHARE * (1 if load < 16 else 0.4)
        return parts.split((rate * share, parts.rates(load)[1]), (rate * (1 - share), QUICK_S))

    assert "its share at the levels" in silence(with_splits(one_full(), make=make))


def test_a_part_with_little_of_the_waiting_is_not_the_limit() -> None:
    def make(load: float, rate: float) -> LabelSplit:
        return parts.split((rate * SHARE, 0.01 + 0.004 * load), (rate * (1 - SHARE), QUICK_S))

    assert "of the waiting" in silence(with_splits(one_full(), make=make))


def test_a_slow_path_before_a_lock_is_not_full() -> None:
    """The hills are as far apart at every load: what takes longer does not wait."""
    slow = replace(hills(), parted=tuple(hill(users, SHARE, 0.3) for users in (8, 16, 32)))
    built = replace(waiting(0.02), slow_paths=(slow,))

    assert "it takes 300 ms at 32 users, 300 ms at 8 users" in silence(built)


def test_a_share_that_grows_with_the_load_is_no_part() -> None:
    levels = tuple(hill(users, 0.01 * users, parts.rates(users)[1]) for users in (8, 16, 32))
    built = replace(one_full(labels=False), slow_paths=(replace(hills(), parted=levels),))

    assert "its share at the levels" in silence(built)


def test_requests_that_all_wait_are_no_part() -> None:
    levels = tuple(hill(users, SHARE, parts.rates(users)[1], 0.03) for users in (8, 16, 32))
    built = replace(one_full(labels=False), slow_paths=(replace(hills(), parted=levels),))

    assert "the others take 10.0 ms and 30.0 ms (limit 2 times)" in silence(built)


def test_one_level_with_two_hills_is_a_suspicion_at_most() -> None:
    built = replace(one_full(labels=False), slow_paths=(hills(loads=(32,)),))

    assert assessed(built).grade is Grade.SUSPECTED


def test_a_service_that_computes_all_the_time_is_not_waiting_for_a_part() -> None:
    assert "computes" in silence(one_full(cpu=0.97))


def test_a_full_machine_does_not_hide_what_the_others_show() -> None:
    built = one_full()
    busy = replace(built.steps[-1], host_cpu=estimate(4.0, unit="cores"), other_cores=3.0)

    assert assessed(replace(built, steps=(*built.steps[:-1], busy))).grade is Grade.PROBABLE


def test_without_labels_and_logs_nothing_can_be_said() -> None:
    answer = part_full.assess(facts(waiting(0.02)))

    assert isinstance(answer, NotAssessed)
    assert "labels" in answer.reason


def test_without_a_plateau_no_part_is_full() -> None:
    few = one_full()

    assert "no plateau" in silence(replace(few, steps=few.steps[:3]))


def test_the_bounds_of_the_built_service() -> None:
    assert pytest.approx(200.0) == MOST_PER_S
    assert parts.rates(USERS[0])[1] == pytest.approx(0.02)
