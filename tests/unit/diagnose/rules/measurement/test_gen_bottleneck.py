"""The generator as the limit, and a generator that is late because the service took the cores."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loadlens.diagnose.rules.measurement.gen_bottleneck import assess
from loadlens.model.facts import ProcessWatch
from loadlens.model.finding import Absent, Finding, Grade, NotAssessed
from tests.unit.diagnose.build import UNWATCHED, curve, facts, generator, process, step


def flat(busy: float, lag: float, *, server_cores: float = 0.5):  # type: ignore[no-untyped-def]
    watch = generator(verdict="limit", busy=busy, lag_p99_s=lag)
    return [
        step(n, 20_000.0, n / 20_000, generator=watch, processes=(process(server_cores),))
        for n in (50, 100, 200)
    ]


def test_a_busy_generator_on_a_plateau_is_the_limit() -> None:
    finding = assess(facts(curve(*flat(0.97, 0.004), think=0.0)))

    assert isinstance(finding, Finding)
    assert finding.statement == "20,000 /s is a lower bound: the generator works 97 % of the time"


def test_a_generator_without_a_core_is_late_though_it_is_not_busy() -> None:
    starved = generator(verdict="starved", busy=0.22, lag_p99_s=0.0118, waiting=0.61)
    steps = [step(n, 900.0, n / 900, generator=starved, processes=(process(0.2),)) for n in (8, 16, 32)]

    finding = assess(facts(curve(*steps, think=0.0)))

    # 10 % of the median at 32 users is 3.6 ms: 11.8 ms are beyond.
    assert isinstance(finding, Finding)
    assert finding.statement == "900 /s is a lower bound: the generator sends 11.8 ms late at p99"
    assert finding.evidence[0].signal == "generator.lag"
    assert "61 %" in finding.explanation
    assert "core of its own" in finding.advice


def test_lateness_is_not_blamed_where_business_decided() -> None:
    finding = assess(facts(curve(*flat(0.97, 0.0002), think=0.0)))

    assert isinstance(finding, Finding)
    assert finding.evidence[0].signal == "generator.busy"
    assert "late" not in finding.statement


def test_throughput_that_still_grows_is_not_held_by_the_generator() -> None:
    late = generator(verdict="starved", busy=0.3, lag_p99_s=0.02)
    steps = [step(n, 100.0 * n, 0.01, generator=late, processes=(process(0.2),)) for n in (1, 2, 4)]

    assert isinstance(assess(facts(curve(*steps, think=0.0))), Absent)


def test_a_service_that_fills_its_cores_is_the_limit_itself() -> None:
    assert isinstance(assess(facts(curve(*flat(0.97, 0.004, server_cores=3.9), think=0.0))), Absent)


def test_a_lag_far_below_the_response_time_is_no_limit() -> None:
    assert isinstance(assess(facts(curve(*flat(0.3, 0.0002), think=0.0))), Absent)


def test_unrecorded_health_is_not_assessed() -> None:
    unknown = generator(busy=None, verdict="unknown")

    assert isinstance(assess(facts(curve(step(1, 5.0, 0.2, generator=unknown)))), NotAssessed)


def late(busy: float, waiting: float | None) -> Finding:
    """8 ms late at p99 where 10 % of the median are 3.6 ms."""
    watch = generator(verdict="late", busy=busy, lag_p99_s=0.008, waiting=waiting)
    steps = [step(n, 900.0, n / 900, generator=watch, processes=(process(0.2),)) for n in (8, 16, 32)]
    finding = assess(facts(curve(*steps, think=0.0)))
    assert isinstance(finding, Finding)
    return finding


@pytest.mark.parametrize(
    ("busy", "waiting", "grade"),
    [
        (0.22, 0.29, Grade.STRONG),  # 0.51 of the time it has something to do
        (0.22, 0.27, Grade.SUSPECTED),  # 0.49
        (0.05, 0.03, Grade.SUSPECTED),  # the machine stood still now and then
        (0.22, None, Grade.SUSPECTED),
    ],
)
def test_a_late_generator_with_nothing_to_do_is_suspected_at_most(
    busy: float, waiting: float | None, grade: Grade
) -> None:
    finding = late(busy, waiting)

    assert finding.grade is grade
    assert ("may be a lower bound" in finding.statement) is (grade is Grade.SUSPECTED)
    assert finding.impact == (0.0 if grade is Grade.SUSPECTED else 1.0)


@pytest.mark.parametrize(
    ("offered", "lag", "kind"),
    [
        (20_000.0, 0.0002, Absent),  # sent in time, and answered
        (22_000.0, 0.0002, Finding),  # 0.91 of it
        (20_000.0, 0.004, Finding),  # answered, and sent late: times hold waiting of the generator
    ],
)
def test_a_busy_generator_that_sent_a_rate_in_time_held_nothing_up(
    offered: float, lag: float, kind: type
) -> None:
    level = step(
        offered, 20_000.0, 0.002, generator=generator(busy=0.9, lag_p99_s=lag), processes=(process(0.5),)
    )

    assert isinstance(assess(facts(curve(level, is_closed=False))), kind)


@pytest.mark.parametrize(
    ("cores", "hot", "kind"),
    [(0.98, 1, Absent), (0.8, 1, Finding), (0.98, 4, Finding)],  # of four cores
)
def test_one_thread_that_computes_all_the_time_is_a_full_service(cores: float, hot: int, kind: type) -> None:
    watch = generator(verdict="limit", busy=0.97, lag_p99_s=0.004)
    server = (process(cores, hot=hot),)
    steps = [step(n, 20_000.0, n / 20_000, generator=watch, processes=server) for n in (50, 100, 200)]

    answer = assess(facts(curve(*steps, think=0.0)))

    assert isinstance(answer, kind)


def test_a_thread_that_waits_for_its_core_is_not_full() -> None:
    """It ran half of the time, and waited for a core for the rest: the generator's core is full."""
    watch = generator(verdict="limit", busy=0.97, lag_p99_s=0.004)
    server = (process(0.5, waiting=0.45),)
    steps = [step(n, 20_000.0, n / 20_000, generator=watch, processes=server) for n in (50, 100, 200)]

    assert isinstance(assess(facts(curve(*steps, think=0.0))), Finding)


def without_a_core(waiting: float, response: float = 0.001, *, server: ProcessWatch | None = None) -> object:
    """Sent in time, as a wake-up that is due counts; throughput still grows."""
    watch = generator(verdict="starved", busy=0.12, lag_p99_s=1e-4, waiting=waiting)
    own = (process(0.4, hot=8) if server is None else server,)
    steps = [step(n, n / response, response, generator=watch, processes=own) for n in (4, 8, 16)]
    return assess(facts(curve(*steps, think=0.0)))


@pytest.mark.parametrize(
    ("waiting", "response", "kind"),
    [(0.26, 0.001, Finding), (0.24, 0.001, Absent), (0.48, 0.029, Finding), (0.48, 0.031, Absent)],
)
def test_a_generator_without_a_core_reads_answers_late(waiting: float, response: float, kind: type) -> None:
    """3 ms without a core are a tenth of 30 ms."""
    assert isinstance(without_a_core(waiting, response), kind)


def test_the_time_without_a_core_is_said() -> None:
    finding = without_a_core(0.48)

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.STRONG
    assert finding.statement == "16,000 /s is a lower bound: the generator has no core 48 % of the time"
    assert finding.evidence[0].signal == "generator.starved"


def test_a_service_that_fills_its_cores_starves_the_generator_itself() -> None:
    assert isinstance(without_a_core(0.48, server=process(3.9, hot=8)), Absent)


def test_a_service_whose_cpu_was_not_read_is_not_excluded() -> None:
    blind = replace(process(0.4), cpu=UNWATCHED)

    finding = without_a_core(0.48, server=blind)

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.PROBABLE


def test_a_level_at_which_nothing_succeeds_says_nothing_of_the_generator() -> None:
    late = generator(verdict="limit", busy=0.2, lag_p99_s=0.5, waiting=0.9)
    served = [step(n, 200.0, n / 200, processes=(process(0.2),)) for n in (4, 8, 16)]
    failing = replace(step(64, 1.0, 0.1, generator=late), throughput_trials=(0.0,))

    assert isinstance(assess(facts(curve(*served, failing, think=0.0))), Absent)
