"""Neighbours and hypervisors, and work that the service has done elsewhere."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loadlens import diagnose
from loadlens.diagnose.rules.processor.host_interference import assess
from loadlens.model.facts import Curve
from loadlens.model.finding import Absent, Finding, Grade, NotAssessed
from loadlens.model.quality import OwnCores, Quality
from tests.unit.diagnose.build import curve, estimate, facts, generator, process, step


def beside(
    *others: float, waiting: float = 0.3, rates: tuple[float, ...] = (40.0, 80.0, 100.0), **more: Any
) -> Curve:
    """A service that wants a core, and what other programs use at 1, 8 and 64 users."""
    steps = [
        step(n, rate, n / rate, other_cores=used, processes=(process(0.5, waiting=waiting, hot=8),), **more)
        for n, rate, used in zip((1, 8, 64), rates, others, strict=False)
    ]
    return curve(*steps, think=0.0, cores_allotted=2.0)


def test_a_neighbour_on_the_services_core_is_found() -> None:
    # It does less the more the service does: no part of it. The level at which most was lost speaks.
    finding = assess(facts(beside(0.9, 0.6, 0.5), cores=2))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.STRONG
    assert finding.statement == "Other programs use 0.90 of 2 cores while the service waits for one"
    assert finding.impact == pytest.approx(0.9 / 1.4)


@pytest.mark.parametrize(("used", "is_found"), [(0.21, True), (0.19, False)])
def test_a_tenth_of_the_machine_decides(used: float, is_found: bool) -> None:
    assert isinstance(assess(facts(beside(used, used), cores=2)), Finding) is is_found


@pytest.mark.parametrize(("waiting", "is_found"), [(0.026, True), (0.024, False)])
def test_a_service_that_never_waits_is_not_hindered(waiting: float, is_found: bool) -> None:
    # 5 % of the 0.5 cores that it runs; requests are under way for hardly longer
    built = beside(0.9, 0.9, waiting=waiting, in_flight=estimate(0.45, unit="requests"))

    assert isinstance(assess(facts(built, cores=2)), Finding) is is_found


@pytest.mark.parametrize(("used", "is_found"), [(0.89, True), (0.91, False)])
def test_threads_that_fill_the_services_own_core_wait_for_each_other(used: float, is_found: bool) -> None:
    """Of its one core it lacks 0.11 or 0.09; a program is busy on the other one all the time."""
    full = (process(used, waiting=6.0, hot=8),)
    built = replace(beside(1.0, 1.0, 1.0), cores_allotted=1.0, shares_cores=False)
    steps = tuple(replace(level, processes=full) for level in built.steps)

    assert isinstance(assess(facts(replace(built, steps=steps), cores=2)), Finding) is is_found


@pytest.mark.parametrize(("lab", "is_found"), [(0.1, True), (0.45, False)])
def test_what_the_generator_took_was_not_taken_by_others(lab: float, is_found: bool) -> None:
    """Of its one core the service uses half; others are busy elsewhere."""
    built = replace(beside(0.9, 0.9, generator=generator(cpu_cores=lab)), cores_allotted=1.0)

    assert isinstance(assess(facts(built, cores=2)), Finding) is is_found


@pytest.mark.parametrize(("busy", "is_found"), [(0.9, True), (0.6, False)])
def test_others_on_cores_where_none_of_ours_may_run_take_nothing(busy: float, is_found: bool) -> None:
    """Generator and service are held to one core, of which 0.5 are the service's and 0.1 our own."""
    own = Quality(own_cores=OwnCores(1, busy, 0.1))
    built = replace(beside(0.9, 0.9, quality=own), cores_allotted=1.0)

    assert isinstance(assess(facts(built, cores=1)), Finding) is is_found


@pytest.mark.parametrize(
    ("at_the_top", "waiting", "explains"),
    [
        (0.5, 1.2, True),
        (0.05, 1.2, False),  # only lighter levels lost something
        (0.5, 0.3, False),  # it computes, or waits to, for 0.8 of 2 cores: it waits for something else
    ],
)
def test_only_what_the_highest_level_lacked_explains_others(
    at_the_top: float, waiting: float, explains: bool
) -> None:
    built = beside(0.9, 0.9, at_the_top, waiting=waiting)

    finding = assess(facts(built, cores=2))

    assert isinstance(finding, Finding)
    assert finding.explains_others is explains


@pytest.mark.parametrize(("at_the_top", "explains"), [(0.12, True), (0.02, False)])
def test_what_was_stolen_at_lighter_levels_explains_nothing_of_the_highest(
    at_the_top: float, explains: bool
) -> None:
    built = beside(0.01, 0.01, steal=0.2)
    steps = (built.steps[0], replace(built.steps[1], steal=at_the_top))

    finding = assess(facts(replace(built, steps=steps)))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.PROBABLE or finding.grade is Grade.STRONG
    assert finding.explains_others is explains


@pytest.mark.parametrize(("flying", "is_found"), [(5.9, True), (6.1, False)])
def test_requests_that_wait_elsewhere_do_not_feel_a_neighbour(flying: float, is_found: bool) -> None:
    # 0.3 threads wait for a core: 5 % of 6 requests
    built = beside(0.9, 0.9, in_flight=estimate(flying, unit="requests"))

    assert isinstance(assess(facts(built, cores=2)), Finding) is is_found


def test_the_kernels_work_for_the_network_is_no_program() -> None:
    busy = Quality(soft_cores=0.15)

    assert isinstance(assess(facts(beside(0.21, 0.21, quality=busy), cores=2)), Absent)  # 0.06 of 2 are left
    assert isinstance(assess(facts(beside(0.36, 0.36, quality=busy), cores=2)), Finding)


def test_a_database_that_works_for_the_service_is_no_neighbour() -> None:
    answer = assess(facts(beside(0.01, 0.3, 0.8), cores=2))

    assert isinstance(answer, Absent)
    assert "work for the service" in answer.reason


@pytest.mark.parametrize(("at_one", "is_found"), [(0.4, False), (0.6, True)])
def test_a_database_that_is_busy_with_one_user_already_is_no_neighbour(at_one: float, is_found: bool) -> None:
    # Twice the throughput, 0.8 cores: of 0.4 at one user nothing is constant, of 0.6 it would be 0.4.
    answer = assess(facts(beside(at_one, 0.8), cores=2))

    assert isinstance(answer, Finding if is_found else Absent), answer


def test_where_throughput_hardly_differs_a_neighbour_is_suspected_at_most() -> None:
    # A database that one user fills: 0.9 of a core, whatever the load.
    finding = assess(facts(beside(0.9, 0.9, 0.9, rates=(90.0, 100.0, 100.0)), cores=2))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.SUSPECTED


def test_a_single_level_cannot_tell_a_neighbour_from_a_backend() -> None:
    finding = assess(facts(beside(0.9), cores=2))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.SUSPECTED


@pytest.mark.parametrize(("steal", "is_found"), [(0.014, True), (0.009, False)])
def test_a_hundredth_stolen_decides(steal: float, is_found: bool) -> None:
    answer = assess(facts(beside(0.01, 0.01, steal=steal)))

    assert isinstance(answer, Finding) is is_found
    if isinstance(answer, Finding):
        assert "1.4 %" in answer.statement
        assert answer.grade is Grade.SUSPECTED


@pytest.mark.parametrize(("steal", "explained_by"), [(0.03, None), (0.11, "host.interference")])
def test_a_few_hundredths_stolen_do_not_make_a_plateau(steal: float, explained_by: str | None) -> None:
    stolen = assess(facts(beside(0.01, 0.01, steal=steal)))
    assert isinstance(stolen, Finding)
    plateau = replace(
        stolen, rule="saturation.plateau", grade=Grade.STRONG, explained_by=None, curves=("k=1",)
    )

    folded = diagnose.fold([stolen, plateau])

    assert folded[1].explained_by == explained_by


def test_an_unwatched_machine_is_not_assessed() -> None:
    blind = curve(step(1, 5.0, 0.2, other_cores=None, steal=None))

    assert isinstance(assess(facts(blind)), NotAssessed)


def test_one_bad_trial_of_three_is_told_beside_the_mean() -> None:
    built = beside(0.01, 0.01, steal=0.60)
    built = replace(built, steps=tuple(replace(level, steal_mean=0.20) for level in built.steps))

    answer = assess(facts(built))

    assert isinstance(answer, Finding)
    assert answer.statement == "Other machines on this host took 20 % of its time"
    assert "60 % in the worst" in answer.explanation


def test_time_that_others_took_of_one_trial_alone_explains_no_plateau() -> None:
    built = beside(0.01, 0.01, steal=0.12)
    built = replace(built, steps=tuple(replace(level, steal_mean=0.04) for level in built.steps))

    answer = assess(facts(built))

    assert isinstance(answer, Finding)
    assert not answer.explains_others
