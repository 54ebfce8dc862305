"""The generator as the limit, and a generator that is late because the service took the cores."""

from __future__ import annotations

from loadlens.findings.gen_bottleneck import assess
from loadlens.model.finding import Absent, Finding, NotAssessed
from tests.unit.findings.build import curve, facts, generator, process, step


def flat(busy: float, lag: float, *, server_cores: float = 1.0):  # type: ignore[no-untyped-def]
    watch = generator(verdict="limit", busy=busy, lag_p99_s=lag)
    return [
        step(n, 20_000.0, n / 20_000, generator=watch, processes=(process(server_cores),))
        for n in (50, 100, 200)
    ]


def test_a_busy_generator_on_a_plateau_is_the_limit() -> None:
    finding = assess(facts(curve(*flat(0.97, 0.004), think=0.0)))

    assert isinstance(finding, Finding)
    assert finding.statement == "20,000 /s is a lower bound: the generator works 97 % of the time"


def test_a_service_that_fills_its_cores_is_the_limit_itself() -> None:
    assert isinstance(assess(facts(curve(*flat(0.97, 0.004, server_cores=3.9), think=0.0))), Absent)


def test_a_lag_far_below_the_response_time_is_no_limit() -> None:
    assert isinstance(assess(facts(curve(*flat(0.3, 0.0002), think=0.0))), Absent)


def test_unrecorded_health_is_not_assessed() -> None:
    unknown = generator(busy=None, verdict="unknown")

    assert isinstance(assess(facts(curve(step(1, 5.0, 0.2, generator=unknown)))), NotAssessed)
