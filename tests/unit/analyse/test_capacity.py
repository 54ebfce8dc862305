"""The capacity of a curve: which levels are trials of it, and how far it may be off."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from loadlens.findings.common.curves import Capacity, capacity_of, plateau_figure
from loadlens.model.facts import Curve, Step
from loadlens.model.finding import Estimate
from tests.unit.findings.build import curve, generator, process, step

SECONDS = 20  # that a trial of `build.step` lasts
CALM: dict[str, Any] = {
    "steal_mean": 0.0,
    "others_mean": 0.0,
    "generator": generator(cpu_cores=0.0),
    "processes": (process(0.2),),
}


def level(users: float, *rates: float, **more: Any) -> Step:
    """Trials of one server of which all users but one wait."""
    mean = sum(rates) / len(rates)
    built: dict[str, Any] = {"throughput_trials": rates, **CALM, **more}
    return step(users, mean, users / mean, trials=len(rates), **built)


def full(*levels: Step) -> Curve:
    return curve(*levels, think=0.0)


def capacity(built: Curve) -> Estimate:
    found = capacity_of(built)
    assert isinstance(found, Capacity)
    figure = plateau_figure(built, found)
    assert isinstance(figure, Estimate)
    return figure


def test_levels_at_the_knee_are_left_out_where_others_lie_beyond_it() -> None:
    """One user alone keeps a server busy but for the way to it: 98 is no trial of 100."""
    found = capacity(full(level(1, 98.0, 98.0, 98.0), level(2, 100.0), level(4, 100.0), level(8, 100.0)))

    assert (found.point, found.trials) == (pytest.approx(100.0), 3)


def off(half: float, point: float) -> float:
    """Beside the percent that every capacity has."""
    return math.hypot(half, 0.01 * point)


def test_trials_that_agree_leave_one_percent_for_the_next_start() -> None:
    found = capacity(full(level(1, 100.0), level(2, 100.0), level(4, 100.0), level(8, 100.0)))

    assert (found.low, found.high) == (pytest.approx(99.0, rel=1e-4), pytest.approx(101.0, rel=1e-4))


def test_a_count_is_known_to_one_request_at_the_edge_of_a_trial() -> None:
    """2/s over 20 s: one request is 0.05/s."""
    found = capacity(full(*(level(users, 2.0, issued=2 * SECONDS) for users in (1, 2, 4, 8))))

    half = off(1 / SECONDS, 2.0)
    assert (found.low, found.high) == (pytest.approx(2.0 - half), pytest.approx(2.0 + half))


def test_trials_that_differ_give_students_t_on_their_logarithms() -> None:
    rates = (90.0, 100.0, 105.0)

    found = capacity(full(level(1, 98.0), level(4, 98.0), level(8, *rates)))

    logs = np.log([98.0, *rates])
    half = stats.t.ppf(0.975, 3) * logs.std(ddof=1) / 2
    gain = sum(rates) / 3 / 98 - 1  # of the last doubling
    point = math.exp(logs.mean())
    assert found.low == pytest.approx(point - off(point - math.exp(logs.mean() - half), point))
    above = point + off(math.exp(logs.mean() + half) - point, point)
    assert found.high == pytest.approx(above * (1 + gain))


def test_two_trials_have_the_ends_of_both() -> None:
    """Each is known to 2 %: 98 from 96.04 on, 100 up to 102; the doubling brought 100 / 98."""
    found = capacity(full(level(1, 95.0), level(4, 98.0), level(8, 100.0)))

    assert found.point == pytest.approx(99.0)
    assert found.low == pytest.approx(99 - off(99 - 98 * 0.98, 99))
    assert found.high == pytest.approx((99 + off(102 - 99, 99)) * (100 / 98))


def test_a_curve_that_still_bends_may_bring_as_much_again() -> None:
    """N / (N + 1) of 100: the last doubling, 16 / 17 over 8 / 9, leaves just 1 / 16 to the limit."""
    found = capacity(full(*(level(n, *[100 * n / (n + 1)] * 3) for n in (1, 2, 4, 8, 16))))

    top, doubling = 100 * 16 / 17, (16 / 17) / (8 / 9)
    assert doubling * top == pytest.approx(100.0, rel=0.005)
    assert found.high is not None
    assert found.high > 100.0 > found.point


def test_time_that_the_host_took_may_have_been_the_services() -> None:
    """A tenth of the time gone: what remained was nine tenths."""
    found = capacity(full(*(level(n, 90.0, steal_mean=0.1) for n in (1, 2, 4, 8))))

    assert found.high == pytest.approx(90 * 1.01 / 0.9, rel=1e-4)
    assert found.low == pytest.approx(90 * 0.99, rel=1e-4)


@pytest.mark.parametrize(
    ("waiting", "others", "allotted", "more"),
    [
        (0.5, 0.2, 4.0, 0.10),  # 2 cores are used, 0.2 were taken from it: a tenth more
        (0.05, 0.2, 4.0, 0.025),  # it wanted no more than it waited for
        (0.5, 0.2, 2.1, 0.05),  # and could use no more than its own cores
        (0.5, 0.0, 4.0, 0.0),  # its threads waited for each other
    ],
)
def test_cores_that_others_used_may_have_been_the_services(
    waiting: float, others: float, allotted: float, more: float
) -> None:
    busy = {"processes": (process(2.0, waiting=waiting),), "others_mean": others}

    found = capacity(
        curve(*(level(n, 90.0, **busy) for n in (1, 2, 4, 8)), think=0.0, cores_allotted=allotted)
    )

    assert found.high == pytest.approx(90 * 1.01 * (1 + more), rel=1e-4)


def test_what_was_taken_is_shared_by_all_that_are_at_work_at_once() -> None:
    """Ten places for 0.1 s each: a fifth of a core that they waited for is a fiftieth of their time."""
    busy = {"processes": (process(0.1, waiting=0.2),), "others_mean": 0.5}
    levels = [step(1, 10.0, 0.1, **{**CALM, **busy})]
    levels += [level(n, 100.0, **busy) for n in (10, 20, 40, 80)]

    found = capacity(full(*levels))

    assert found.high == pytest.approx(100 * 1.01 * 1.02, rel=1e-4)


def test_requests_that_are_refused_bear_their_part_of_it() -> None:
    """One request in ten succeeds, and one tenth of what was waited for was its."""
    busy = {"processes": (process(0.1, waiting=0.2),), "others_mean": 0.5, "completed_trials": (1000.0,)}

    found = capacity(full(*(level(n, 100.0, **busy) for n in (1, 2, 4, 8))))

    assert found.high == pytest.approx(100 * 1.01 * 1.02, rel=1e-4)


def test_a_generator_on_cores_of_its_own_takes_nothing() -> None:
    busy = {"processes": (process(2.0, waiting=0.5),), "generator": generator(cpu_cores=0.3)}
    levels = [level(n, 90.0, **busy) for n in (1, 2, 4, 8)]

    apart, together = (capacity(curve(*levels, think=0.0, shares_cores=one)) for one in (False, True))

    assert apart.high == pytest.approx(90 * 1.01, rel=1e-4)
    assert together.high == pytest.approx(90 * 1.01 * 1.15, rel=1e-4)


def test_intervals_hold_the_capacity_nineteen_times_in_twenty_and_stay_narrow() -> None:
    """Five trials of two seconds with 1 % noise, of a service whose starts differ by 0.5 % either way."""
    random, inside, widths = np.random.default_rng(7), 0, []
    for _ in range(300):
        own = 80.0 * math.exp(0.005 * random.normal())
        rates = [
            math.floor(2 * own * math.exp(0.01 * random.normal()) + random.uniform()) / 2 for _ in range(5)
        ]
        issued = {"issued": round(2 * rates[0])}
        found = capacity(
            full(
                level(1, rates[0], **issued),
                level(2, rates[1], **issued),
                level(4, rates[2], **issued),
                level(8, *rates[3:], issued=round(2 * sum(rates[3:]))),
            )
        )
        assert found.low is not None
        assert found.high is not None
        inside += found.low <= 80.0 <= found.high
        widths.append((found.high - found.low) / found.point)

    assert 0.94 <= inside / 300 <= 0.995
    assert np.median(widths) < 0.04
