"""Slow requests at equal distances of time are found, apart from those by chance and by number."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from loadlens.diagnose.rules.latency.slow_periodic import assess
from loadlens.model.facts import Curve
from loadlens.model.finding import Absent, Finding, Grade, NotAssessed
from loadlens.model.shapes import SlowBursts
from tests.unit.diagnose.build import curve, facts, generator, step


def bursts(load: float, *begin_s: float, longer_s: float = 0.3) -> SlowBursts:
    """A tenth of 400 requests, 80 ms each otherwise."""
    end_s = tuple(begin + longer_s for begin in begin_s)
    return SlowBursts("a", "GET /a", load, begin_s, end_s, longer_s, 40, 400, 0.08)


def beating(*trials: SlowBursts) -> Curve:
    """Trials of 10 s with one, four and sixteen users."""
    return replace(curve(step(1, 12.0, 0.08), step(4, 50.0, 0.08), step(16, 200.0, 0.08)), slow_bursts=trials)


EVERY_3 = (bursts(1, 1.0, 4.0, 7.0), bursts(4, 0.5, 3.5, 6.5), bursts(16, 2.0, 5.0, 8.0))


def test_bursts_at_equal_distances_whatever_the_load_are_found() -> None:
    finding = assess(facts(beating(*EVERY_3)))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.PROBABLE
    assert finding.statement == "Every 3.00 s requests take 300 ms longer: 10 % of them"


def test_a_lifetime_that_begins_at_the_end_of_a_burst_is_as_regular() -> None:
    """2 s after the last was filled, which takes 0.05, 0.5 and 1 s: the distances are 2.05, 2.5 and 3 s."""
    trials = [
        bursts(load, 1.0, 3.0 + longer, 5.0 + 2 * longer, longer_s=longer)
        for load, longer in ((1, 0.05), (4, 0.5), (16, 1.0))
    ]

    assert isinstance(assess(facts(beating(*trials))), Finding)


def test_bursts_that_last_longer_under_more_load_come_later_and_alike_at_each_level() -> None:
    """Filled again in 0.3 s for one user and in 0.6 s for four, at the next request of one."""
    trials = (bursts(1, 0.0, 1.3, 2.6, 3.9), bursts(4, 0.0, 2.0, 4.0, 6.0, longer_s=0.6))

    assert isinstance(assess(facts(beating(*trials))), Finding)


def test_bursts_of_any_length_after_which_a_lifetime_begins_are_found() -> None:
    """They last 0.1 to 0.9 s in one trial, and each begins 1 s after the end of the one before."""
    trials = []
    for load, lengths in ((1, (0.1, 0.3, 0.9, 0.2)), (4, (0.8, 0.2, 0.5, 0.9))):
        begin, begins, ends = 0.0, [], []
        for length in lengths:
            begins.append(begin)
            ends.append(begin + length)
            begin += length + 1.0
        trials.append(replace(bursts(load, *begins), end_s=tuple(ends)))

    assert isinstance(assess(facts(beating(*trials))), Finding)


@pytest.mark.parametrize(
    "trials",
    [
        # once in 240 requests: 20 s, 5 s and 1.25 s at 12, 48 and 192 of them a second
        (bursts(4, 0.0, 5.0, 10.0), bursts(16, 0.0, 1.25, 2.5, 3.75)),
        (bursts(4, 0.0, 3.0, 6.0, 9.0), bursts(16, 0.0, 0.75, 1.5, 2.25)),  # the same, 3 of each
        (bursts(4, 0.0, 3.0, 6.0, 9.0), bursts(4, 0.0, 3.0, 6.0, 9.0)),  # one load only
        (bursts(1, 0.0, 1.0, 5.0), bursts(4, 0.0, 0.4, 6.0), bursts(16, 0.0, 2.4, 3.0)),  # by chance
        tuple(replace(each, longer_s=0.05) for each in EVERY_3),  # 1.7 % of the time
        EVERY_3[:2],  # four distances
    ],
    ids=["by number", "by number, each level alike", "one load", "by chance", "short", "few"],
)
def test_other_bursts_are_not_called_regular(trials: tuple[SlowBursts, ...]) -> None:
    assert isinstance(assess(facts(beating(*trials))), Absent)


def of_all(**bent: Any) -> Curve:
    built = beating(*EVERY_3)
    return replace(built, steps=tuple(replace(each, **bent) for each in built.steps))


def test_a_late_generator_removes_it_and_other_programs_leave_it_open() -> None:
    disturbed = assess(facts(of_all(other_cores=3.9)))

    assert isinstance(assess(facts(of_all(generator=generator(verdict="limit")))), Absent)
    assert isinstance(disturbed, Finding)
    (others,) = (each for each in disturbed.counter if each.rival == "other programs")
    assert others.ruled_out is None


def test_a_period_of_scrapes_is_suspected() -> None:
    """Every 5 s; every 5.2 s no scraper comes."""

    def every(seconds: float) -> Finding:
        trials = [bursts(load, *(1.0 + seconds * n for n in range(4))) for load in (1, 4)]
        finding = assess(facts(beating(*trials)))
        assert isinstance(finding, Finding)
        return finding

    assert every(5.0).grade is Grade.SUSPECTED
    assert every(5.2).grade is Grade.PROBABLE


def test_what_stops_all_once_in_so_many_requests_is_not_of_time() -> None:
    """1 s for each 100 requests of 5 ms: 0.5, 0.25 and 0.125 s of service in between, by hand."""
    trials = [
        bursts(users, *((1.0 + 0.5 / users) * n for n in range(4)), longer_s=1.0) for users in (1, 2, 4)
    ]

    assert isinstance(assess(facts(beating(*trials))), Absent)


def test_bursts_at_random_are_hardly_ever_alike() -> None:
    """0.6 bursts a second in three trials of 5 s, 300 times: at most 1 % keep a distance."""
    random = np.random.default_rng(7)

    def trial(load: float) -> SlowBursts:
        return bursts(load, *np.sort(random.uniform(0.0, 5.0, random.poisson(3.0))), longer_s=0.1)

    answers = [assess(facts(beating(*(trial(load) for load in (1, 4, 16))))) for _ in range(300)]

    assert sum(isinstance(answer, Finding) for answer in answers) <= 3


def test_without_bursts_it_is_silent_and_without_trials_not_assessed() -> None:
    assert isinstance(assess(facts(beating())), Absent)
    assert isinstance(assess(facts()), NotAssessed)
