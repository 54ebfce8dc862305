"""Generator and service on the same cores, and all that fills cores otherwise."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loadlens.diagnose.rules.processor.colocation_contention import assess
from loadlens.model.facts import Curve
from loadlens.model.finding import Absent, Finding, Grade, NotAssessed
from loadlens.model.quality import OwnCores, Quality
from tests.unit.diagnose.build import UNWATCHED, curve, facts, generator, process, step

FULL = OwnCores(cores=1, busy=0.99, lab=0.21)


def full(own: OwnCores | None = FULL, **more: Any) -> Curve:
    built: dict[str, Any] = {
        "processes": (process(0.75, waiting=0.4, hot=16),),
        "quality": Quality(own_cores=own),
        "other_cores": 0.01,
    }
    steps = [step(n, 3_000.0, n / 3_000, **(built | more)) for n in (8, 16, 32)]
    return curve(*steps, think=0.0)


def test_two_that_fill_the_core_they_share_are_found_with_what_the_generator_takes() -> None:
    finding = assess(facts(full(), cores=1))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.STRONG
    assert finding.statement == "Generator and service fill the core they share: the generator takes 21 %"
    assert finding.impact == pytest.approx(0.21)


def test_four_shared_cores_count_like_one() -> None:
    finding = assess(facts(full(OwnCores(4, 3.96, 0.84), processes=(process(3.0, waiting=1.6),)), cores=4))

    assert isinstance(finding, Finding)
    assert finding.statement == "Generator and service fill the 4 cores they share: the generator takes 21 %"


@pytest.mark.parametrize(
    ("own", "text"),
    [
        (OwnCores(1, 0.85, 0.21), "85 % busy"),  # something is left
        (
            OwnCores(1, 0.99, 0.09),
            "takes 9.0 % of them, and sends late without a core for 0 %",
        ),  # too little to matter
        (OwnCores(1, 0.99, 0.80), "take 19 %"),  # the kernel's network work next to a generator alone
    ],
)
def test_each_threshold_keeps_it_silent(own: OwnCores, text: str) -> None:
    answer = assess(facts(full(own), cores=1))

    assert isinstance(answer, Absent)
    assert text in answer.reason


def test_a_service_that_never_waits_for_a_core_is_not_hindered() -> None:
    answer = assess(facts(full(processes=(process(0.75, waiting=0.03),)), cores=1))

    assert isinstance(answer, Absent)
    assert "4.0 %" in answer.reason  # 0.03 / 0.75


def test_other_programs_on_the_generators_core_are_another_cause() -> None:
    answer = assess(facts(full(other_cores=0.6), cores=1))

    assert isinstance(answer, Absent)
    assert "other programs use 0.60 cores" in answer.reason


def test_some_work_of_others_leaves_it_probable() -> None:
    finding = assess(facts(full(other_cores=0.2), cores=1))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.PROBABLE


def test_cores_of_their_own_rule_it_out() -> None:
    apart = full()
    apart = curve(*apart.steps, think=0.0, shares_cores=False)

    assert isinstance(assess(facts(apart)), Absent)


def test_without_processes_or_single_cores_it_cannot_be_told() -> None:
    assert isinstance(assess(facts(full(processes=()))), NotAssessed)
    assert isinstance(assess(facts(full(None))), NotAssessed)
    assert isinstance(assess(facts()), NotAssessed)


def test_where_waiting_was_not_read_it_is_suspected_at_most() -> None:
    blind = replace(process(0.75, hot=16), waiting=UNWATCHED)

    finding = assess(facts(full(processes=(blind,)), cores=1))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.SUSPECTED


@pytest.mark.parametrize(("lab", "explains"), [(0.26, True), (0.24, False)])
def test_a_generator_that_takes_little_explains_no_full_cores(lab: float, explains: bool) -> None:
    """A third of what the others take: 0.26 next to 0.73, and not 0.24 next to 0.75."""
    finding = assess(facts(full(OwnCores(1, 0.99, lab)), cores=1))

    assert isinstance(finding, Finding)
    assert finding.explains_others is explains


def test_throughput_that_still_grows_is_not_short_of_cores() -> None:
    built = full()
    rates = (1_000.0, 1_800.0, 3_000.0)
    growing = tuple(
        replace(level, throughput_trials=(rate,) * 3) for level, rate in zip(built.steps, rates, strict=True)
    )

    answer = assess(facts(replace(built, steps=growing), cores=1))

    assert isinstance(answer, Absent)
    assert "brought +" in answer.reason


@pytest.mark.parametrize("more", [0, 1, 20])
def test_cases_in_which_nothing_is_wrong_make_the_one_at_fault_no_better(more: int) -> None:
    """21 % is at stake on one curve, however many others a study has."""
    quiet = [curve(*full(OwnCores(1, 0.3, 0.1)).steps, label=f"quiet {n}") for n in range(more)]

    finding = assess(facts(*quiet, full(), cores=1))

    assert isinstance(finding, Finding)
    assert finding.impact == pytest.approx(0.21)
    assert finding.scope == "k=1"


@pytest.mark.parametrize(
    ("lag", "waiting", "kind"), [(2e-3, 0.6, Finding), (2e-3, 0.09, Absent), (9e-4, 0.6, Absent)]
)
def test_a_light_generator_that_is_late_without_a_core_lacks_it(
    lag: float, waiting: float, kind: type
) -> None:
    """It takes a twentieth of the core; its limit is 1 ms."""
    watch = generator(verdict="starved", busy=0.2, lag_p99_s=lag, waiting=waiting)

    answer = assess(facts(full(OwnCores(1, 0.99, 0.05), generator=watch), cores=1))

    assert isinstance(answer, kind)
    if isinstance(answer, Finding):
        assert (
            answer.statement == "Generator and service fill the core they share: the generator lacks one 60 %"
        )
        assert not answer.explains_others  # the service is short of cores with or without it
