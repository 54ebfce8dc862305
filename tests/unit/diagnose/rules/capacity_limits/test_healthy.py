"""Nothing limits: said only when every rule looked, every gate passed and the CPU was watched."""

from __future__ import annotations

from dataclasses import replace

from loadlens.diagnose.rules.capacity_limits.healthy import assess_after
from loadlens.model.facts import Gate
from loadlens.model.finding import Absent, Finding, Grade, NotAssessed
from tests.unit.diagnose.build import curve, estimate, facts, process, step

PASSED = (Gate("generator", True, "kept up"),)
SILENT = (Absent("other", "another rule", "nothing there"),)


def test_it_fires_when_every_rule_looked_and_stayed_silent() -> None:
    quiet = curve(*(step(n, n / 1.01, 0.01, processes=(process(0.5),)) for n in (1, 2, 4)), think=1.0)

    finding = assess_after(facts(quiet, gates=PASSED), SILENT)

    assert isinstance(finding, Finding)
    assert finding.grade >= Grade.PROBABLE
    assert "88 % of the CPU is left" in finding.statement  # 1 - 0.5 of 4 cores, by hand


def test_cores_that_the_generator_takes_are_not_left_to_the_service() -> None:
    """The service uses 0.5 of 4 cores; with all others on them 3 are used."""
    busy = estimate(3.0, unit="cores")
    steps = (step(n, n / 1.01, 0.01, processes=(process(0.5),), host_cpu=busy) for n in (1, 2, 4))

    finding = assess_after(facts(curve(*steps, think=1.0), gates=PASSED), SILENT)

    assert isinstance(finding, Finding)
    assert "25 % of the CPU is left" in finding.statement


def test_a_failed_gate_keeps_it_silent() -> None:
    quiet = curve(step(1, 1.0, 0.01, processes=(process(0.5),)), think=1.0)

    answer = assess_after(facts(quiet, gates=(Gate("counting", False, "3 requests missing"),)), SILENT)

    assert isinstance(answer, Absent)
    assert "3 requests missing" in answer.reason


def test_a_service_some_requests_of_which_fail_is_not_called_healthy() -> None:
    share = estimate(0.029, unit="share")
    waiting = replace(step(4, 4 / 1.01, 0.01, processes=(process(0.5),)), failed=share)
    quiet = curve(step(1, 1.0, 0.01, processes=(process(0.5),)), waiting, think=1.0)

    answer = assess_after(facts(quiet, gates=PASSED), SILENT)

    assert isinstance(answer, Absent)
    assert answer.reason == "2.9 % of the requests fail at n=4"


def test_without_the_services_cpu_nobody_can_call_it_healthy() -> None:
    assert isinstance(assess_after(facts(curve(step(1, 1.0, 0.01)), gates=PASSED), SILENT), NotAssessed)
