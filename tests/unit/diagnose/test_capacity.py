"""The capacity of a curve: which levels are trials of it, how far it may be off, where it is a bound."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from loadlens.diagnose.capacity import GENERATOR, WAITED, Most, most_of
from loadlens.measure.curve import Capacity, capacity_of
from loadlens.model.facts import Curve, KernelWatch, Step
from loadlens.model.finding import Estimate
from loadlens.present import numbers
from tests.unit.diagnose.build import connections, curve, generator, process, step

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


def most(built: Curve) -> Most:
    highest = capacity_of(built)
    assert isinstance(highest, Capacity)
    return most_of(built, highest)


def figure_of(highest: Most) -> Estimate:
    assert isinstance(highest.figure, Estimate)
    return highest.figure


def capacity(built: Curve) -> Estimate:
    return figure_of(most(built))


def test_levels_at_the_knee_are_left_out_where_others_lie_beyond_it() -> None:
    """One user alone keeps a server busy but for the way to it: 98 is no trial of 100."""
    highest = capacity(full(level(1, 98.0, 98.0, 98.0), level(2, 100.0), level(4, 100.0), level(8, 100.0)))

    assert highest.point == pytest.approx(100.0)
    assert highest.trials == 3


def test_one_lucky_trial_is_not_the_capacity_of_six_others() -> None:
    """107 lies 7 % above the others, whose levels would be left out by their distance from the best alone."""
    levels = (level(1, 60.0), level(16, 100.0, 98.0, 99.0), level(32, 107.0), level(64, 101.0, 99.0, 100.0))

    highest = capacity(full(*levels))

    assert highest.point == pytest.approx((297 + 107 + 300) / 7, rel=1e-3)
    assert highest.trials == 7


def test_a_level_whose_trials_all_give_less_is_no_trial_of_the_capacity() -> None:
    levels = (level(1, 60.0), level(16, 107.0, 107.2, 106.8), level(32, 99.0, 99.2, 98.8))

    assert capacity(full(*levels)).point == pytest.approx(107.0, rel=1e-3)


def off(half: float, point: float) -> float:
    """In addition to the percent that every capacity has."""
    return math.hypot(half, 0.01 * point)


def test_trials_that_agree_leave_one_percent_for_the_next_start() -> None:
    highest = capacity(full(level(1, 100.0), level(2, 100.0), level(4, 100.0), level(8, 100.0)))

    assert [highest.low, highest.high] == pytest.approx([99.0, 101.0], rel=1e-4)


def test_a_count_is_known_to_one_request_at_the_edge_of_a_trial() -> None:
    """2/s over 20 s: one request is 0.05/s."""
    highest = capacity(full(*(level(users, 2.0, issued=2 * SECONDS) for users in (1, 2, 4, 8))))

    half = off(1 / SECONDS, 2.0)
    assert [highest.low, highest.high] == pytest.approx([2.0 - half, 2.0 + half])


def test_trials_that_differ_give_students_t_on_their_logarithms() -> None:
    rates = (90.0, 100.0, 105.0)

    highest = capacity(full(level(1, 98.0), level(4, 98.0), level(8, *rates)))

    logs = np.log([98.0, *rates])
    half = stats.t.ppf(0.975, 3) * logs.std(ddof=1) / 2
    gain = sum(rates) / 3 / 98 - 1  # of the last doubling
    point = math.exp(logs.mean())
    assert highest.low == pytest.approx(point - off(point - math.exp(logs.mean() - half), point))
    above = point + off(math.exp(logs.mean() + half) - point, point)
    assert highest.high == pytest.approx(above * (1 + gain))


def test_two_trials_have_the_ends_of_both() -> None:
    """Each is known to 2 %: 98 from 96.04 on, 100 up to 102; the doubling brought 100 / 98."""
    highest = capacity(full(level(1, 95.0), level(4, 98.0), level(8, 100.0)))

    assert highest.point == pytest.approx(99.0)
    assert highest.low == pytest.approx(99 - off(99 - 98 * 0.98, 99))
    assert highest.high == pytest.approx((99 + off(102 - 99, 99)) * (100 / 98))


def test_a_curve_that_still_bends_may_bring_as_much_again() -> None:
    """N / (N + 1) of 100: the last doubling, 16 / 17 over 8 / 9, leaves just 1 / 16 to the limit."""
    highest = capacity(full(*(level(n, *[100 * n / (n + 1)] * 3) for n in (1, 2, 4, 8, 16))))

    top, doubling = 100 * 16 / 17, (16 / 17) / (8 / 9)
    assert doubling * top == pytest.approx(100.0, rel=0.005)
    assert highest.high is not None
    assert highest.high > 100.0 > highest.point


def test_time_that_the_host_took_may_have_been_the_services() -> None:
    """A tenth of the time gone: what remained was nine tenths."""
    highest = capacity(full(*(level(n, 90.0, steal_mean=0.1) for n in (1, 2, 4, 8))))

    assert highest.high == pytest.approx(90 * 1.01 / 0.9, rel=1e-4)
    assert highest.low == pytest.approx(90 * 0.99, rel=1e-4)


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

    highest = capacity(
        curve(*(level(n, 90.0, **busy) for n in (1, 2, 4, 8)), think=0.0, cores_allotted=allotted)
    )

    assert highest.high == pytest.approx(90 * 1.01 * (1 + more), rel=1e-4)


def test_what_was_taken_is_shared_by_all_that_are_at_work_at_once() -> None:
    """Ten places for 0.1 s each: a fifth of a core that they waited for is a fiftieth of their time."""
    busy = {"processes": (process(0.1, waiting=0.2),), "others_mean": 0.5}
    levels = [step(1, 10.0, 0.1, **{**CALM, **busy})]
    levels += [level(n, 100.0, **busy) for n in (10, 20, 40, 80)]

    highest = capacity(full(*levels))

    assert highest.high == pytest.approx(100 * 1.01 * 1.02, rel=1e-4)


def test_requests_that_are_refused_bear_their_part_of_it() -> None:
    """One request in ten succeeds, and one tenth of what was waited for was its."""
    busy = {"processes": (process(0.1, waiting=0.2),), "others_mean": 0.5, "completed_trials": (1000.0,)}

    highest = capacity(full(*(level(n, 100.0, **busy) for n in (1, 2, 4, 8))))

    assert highest.high == pytest.approx(100 * 1.01 * 1.02, rel=1e-4)


def test_a_generator_on_cores_of_its_own_takes_nothing() -> None:
    busy = {"processes": (process(2.0, waiting=0.5),), "generator": generator(cpu_cores=0.3)}
    levels = [level(n, 90.0, **busy) for n in (1, 2, 4, 8)]

    apart, together = (capacity(curve(*levels, think=0.0, shares_cores=shares)) for shares in (False, True))

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
        highest = capacity(
            full(
                level(1, rates[0], **issued),
                level(2, rates[1], **issued),
                level(4, rates[2], **issued),
                level(8, *rates[3:], issued=round(2 * sum(rates[3:]))),
            )
        )
        assert highest.low is not None
        assert highest.high is not None
        inside += highest.low <= 80.0 <= highest.high
        widths.append((highest.high - highest.low) / highest.point)

    assert 0.94 <= inside / 300 <= 0.995
    assert np.median(widths) < 0.04


# --- a lower bound -----------------------------------------------------------------------------------------


def waiting(users: float, share: float, rate: float = 100.0, **more: Any) -> Step:
    """Three trials of which clients waited so long to ask again: so many connections of 10,000, 1 s each."""
    again = round(10_000 * share * users / rate)
    watch = connections(10_000, 10_000, connects=10_000, resent=again)
    return level(users, rate, rate, rate, connections=watch, **more)


def test_where_clients_waited_to_ask_again_it_is_at_least_the_lower_end() -> None:
    """Of three levels beyond the knee one is free of it: whether more users bring nothing is not shown."""
    highest = most(full(waiting(1, 0.0), waiting(2, 0.0), waiting(4, 0.5), waiting(8, 0.5)))

    figure = figure_of(highest)
    assert highest.bounded_by == WAITED
    assert figure.point == figure.low == pytest.approx(99.0, rel=1e-4)  # 1 % for the next start
    assert figure.high is None
    assert numbers.is_lower_bound(figure)
    assert figure.method.startswith(f"lower bound: {WAITED}; ")
    assert figure.trials == 9


@pytest.mark.parametrize(("share", "bound"), [(0.05, WAITED), (0.04, "")])
def test_below_a_twentieth_of_the_response_time_the_upper_end_allows_for_it(share: float, bound: str) -> None:
    highest = most(full(*(waiting(n, share) for n in (1, 2, 4, 8))))

    figure = figure_of(highest)
    assert highest.bounded_by == bound
    if bound:
        assert figure.high is None
    else:  # at most: the other 96 % of the users did it all
        assert figure.high == pytest.approx(100 * 1.01 / (1 - share), rel=2e-3)


def test_drops_at_a_level_that_fell_off_the_plateau_are_none_of_the_capacity() -> None:
    highest = most(full(waiting(1, 0.0), waiting(2, 0.0), waiting(4, 0.0), waiting(8, 0.5, rate=80.0)))

    figure = figure_of(highest)
    assert highest.bounded_by == ""
    assert figure.point == pytest.approx(100.0)
    assert figure.high == pytest.approx(101.0, rel=1e-3)
    assert figure.trials == 6


def test_two_full_levels_without_drops_are_enough_and_stand_alone() -> None:
    """A doubling brought nothing before any client was dropped: later levels are no trials of it."""
    free = [waiting(n, 0.0) for n in (1, 2, 4)]

    highest = most(full(*free, waiting(8, 0.5, rate=97.0)))

    figure = figure_of(highest)
    assert highest.bounded_by == ""
    assert figure.point == pytest.approx(100.0)
    assert figure.trials == 6
    assert figure.high == pytest.approx(101.0, rel=1e-3)


@pytest.mark.parametrize(("drops", "bound"), [(4.0, WAITED), (3.0, "")])
def test_drops_that_cost_nobody_knows_how_much_leave_it_open(drops: float, bound: str) -> None:
    kernel = KernelWatch(9.0, 8.0, drops, 20.0, 18.0)

    highest = most(full(*(level(n, 100.0, kernel=kernel) for n in (1, 2, 4, 8))))

    assert highest.bounded_by == bound
    assert (figure_of(highest).high is None) == bool(bound)


@pytest.mark.parametrize(("cores", "bound"), [(0.2, GENERATOR), (3.6, "")])  # of 4: the service is full, too
def test_what_the_generator_held_is_a_lower_bound(cores: float, bound: str) -> None:
    busy = {"generator": generator(verdict="limit", busy=0.95), "processes": (process(cores),)}

    highest = most(full(*(level(n, 100.0, **busy) for n in (1, 2, 4, 8))))

    assert highest.bounded_by == bound
    assert (figure_of(highest).high is None) == bool(bound)


def test_what_probes_got_belongs_to_a_lower_bound_too() -> None:
    built = full(*(waiting(n, 0.5) for n in (1, 2, 4, 8)))
    highest = capacity_of(built)
    assert isinstance(highest, Capacity)

    figure = figure_of(most_of(built, highest, besides=lambda _: 10.0))

    assert figure.low == pytest.approx(110 * 0.99, rel=1e-3)
