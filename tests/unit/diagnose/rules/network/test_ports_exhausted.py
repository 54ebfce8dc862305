"""Local ports that run out: by the log, by what is taken, whose they are, and not where others explain it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loadlens import diagnose
from loadlens.diagnose.rules.network.ports_exhausted import assess
from loadlens.model.facts import Curve, KernelWatch, LogSign, PortsWatch, Step
from loadlens.model.finding import Absent, Finding, Grade, NotAssessed
from tests.unit.diagnose.build import connections, curve, facts, step

THERE, RESTS_S = 28_232.0, 60.0  # as Linux has them
NO_PORT = LogSign("ports", 12, "connect: cannot assign requested address")
NO_DESCRIPTOR = LogSign("descriptors", 3, "accept: too many open files")


def level(
    rate: float,
    taken: float | None,
    *,
    opens_per_s: float = 0.0,
    there: float = THERE,
    rests_s: float = RESTS_S,
    is_load: bool = False,
    drops: float | None = 0.0,
    failed: float = 0.0,
    seconds: float = 20.0,
    **more: Any,
) -> Step:
    """Others are opened besides 50 of the load; so many ports are taken, so many requests fail."""
    ports = None if taken is None else PortsWatch("10.0.0.7:5432", is_load, taken, there, rests_s)
    begun = 50 + opens_per_s * seconds
    kernel = KernelWatch(None, None, drops, 0.0, 0.0, begun, seconds, ports)
    own = 50 + round(opens_per_s * seconds) if is_load else 50
    built = step(
        max(1.0, rate / 50), rate, 0.02, kernel=kernel, connections=connections(50, 9_999, connects=own)
    )
    return replace(built, **{"failed_count": round(failed * (built.issued or 0)), **more})


def unpooled(top: float = 480.0, taken: float = 28_200.0, **more: Any) -> Curve:
    """A connection for each request: 470/s are what 28,232 ports that rest 60 s last for."""
    return curve(
        level(40.0, 2_400.0, opens_per_s=40.0), level(top, taken, opens_per_s=top, failed=0.3, **more)
    )


def found_in(*curves: Curve) -> Finding:
    answer = assess(facts(*curves))
    assert isinstance(answer, Finding)
    return answer


def test_a_service_without_a_pool_runs_out() -> None:
    answer = found_in(unpooled())

    assert answer.grade is Grade.STRONG
    assert answer.impact == pytest.approx(0.3, abs=1e-3)
    assert answer.statement == "28,200 of 28,232 local ports to 10.0.0.7:5432 are taken, the service's"
    assert "471 /s" in answer.explanation  # 28,232 / 60
    assert "10.0.0.7:5432" in answer.advice
    assert all(len(e.chip) <= 32 for e in answer.evidence)


@pytest.mark.parametrize(("taken", "fires"), [(0.80 * THERE, True), (0.80 * THERE - 1, False)])
def test_four_fifths_of_the_ports(taken: float, fires: bool) -> None:
    assert isinstance(assess(facts(unpooled(taken=taken))), Finding if fires else Absent)


@pytest.mark.parametrize(("opens", "fires"), [(302.0, True), (300.0, False)])
def test_three_hundred_a_second_of_ports_that_rest_a_minute(opens: float, fires: bool) -> None:
    """0.64 * 28,232 / 60 = 301.1: below, so many ports are held by open connections."""
    built = curve(level(40.0, 2_400.0, opens_per_s=40.0), level(480.0, 28_000.0, opens_per_s=opens))

    assert isinstance(assess(facts(built)), Finding if fires else Absent)


@pytest.mark.parametrize(("there", "rests_s", "rate"), [(600.0, 1.0, 600.0), (64_512.0, 60.0, 1_075.0)])
def test_other_ranges_and_rests_are_the_same(there: float, rests_s: float, rate: float) -> None:
    around: dict[str, Any] = {"there": there, "rests_s": rests_s}
    built = curve(
        level(rate / 10, there / 10, opens_per_s=rate / 10, **around),
        level(rate, there, opens_per_s=rate, failed=0.3, **around),
    )

    assert found_in(built).grade is Grade.STRONG


@pytest.mark.parametrize("times", [0.1, 10.0])
def test_it_is_the_same_for_a_service_that_does_less_or_more_with_each_request(times: float) -> None:
    """So many requests for each connection: the connections are as many."""
    built = curve(
        level(40.0 * times, 2_400.0, opens_per_s=40.0), level(480.0 * times, 28_200.0, opens_per_s=480.0)
    )

    assert found_in(built).grade is Grade.STRONG


def test_names_do_not_matter() -> None:
    built = unpooled()
    steps = tuple(
        replace(s, label="x", kernel=replace(s.kernel, ports=replace(s.kernel.ports, to="[fe80::1]:1")))
        for s in built.steps
        if s.kernel is not None and s.kernel.ports is not None
    )

    renamed = found_in(replace(built, label="y", steps=steps))

    assert (renamed.grade, renamed.impact) == (found_in(built).grade, found_in(built).impact)
    assert "[fe80::1]:1" in renamed.statement


def test_a_pool_is_healthy_with_what_was_looked_at() -> None:
    answer = assess(facts(curve(level(40.0, 8.0), level(4_000.0, 32.0))))

    assert isinstance(answer, Absent)
    assert "32 of 28,232" in answer.reason


def test_ports_where_the_load_goes_are_the_generators() -> None:
    answer = found_in(unpooled(is_load=True))

    assert answer.statement.endswith("the generator's")
    assert "the generator keep" in answer.advice


@pytest.mark.parametrize(("grown", "fires"), [(241.0, True), (219.0, False)])
def test_connections_of_another_program_do_not_grow_with_requests(grown: float, fires: bool) -> None:
    """From 40/s to 480/s eleven twelfths would be new, were each request one: of 480 half of that is 220."""
    built = curve(
        level(40.0, 27_000.0, opens_per_s=480.0 - grown),
        level(480.0, 28_000.0, opens_per_s=480.0, failed=0.3),
    )

    assert isinstance(assess(facts(built)), Finding if fires else Absent)


@pytest.mark.parametrize("low", [330.0, None])
def test_without_two_levels_apart_whose_connections_they_are_is_open(low: float | None) -> None:
    steps = [level(480.0, 28_200.0, opens_per_s=480.0)]
    if low is not None:
        steps.insert(0, level(low, 20_000.0, opens_per_s=low))  # 480 is less than half as much again

    assert found_in(curve(*steps)).grade is Grade.PROBABLE


def test_it_is_open_as_well_where_no_request_succeeds() -> None:
    steps = [level(0.0, 28_200.0, opens_per_s=480.0, failed=1.0, issued=600)]

    assert found_in(curve(*steps)).grade is Grade.PROBABLE


@pytest.mark.parametrize(
    ("drops", "grade"), [(3.0, Grade.STRONG), (4.0, Grade.PROBABLE), (None, Grade.PROBABLE)]
)
def test_drops_at_the_services_own_ports_leave_it_open(drops: float | None, grade: Grade) -> None:
    assert found_in(unpooled(drops=drops)).grade is grade


def test_a_log_that_speaks_of_descriptors_alone_rules_it_out() -> None:
    answer = assess(facts(unpooled(log_signs=(NO_DESCRIPTOR,))))

    assert isinstance(answer, Absent)
    assert "too many open files" in answer.reason
    assert found_in(unpooled(log_signs=(NO_DESCRIPTOR, NO_PORT))).grade is Grade.PROBABLE


def test_the_log_is_enough_where_the_ports_are_another_networks() -> None:
    built = curve(level(40.0, 2.0), level(480.0, None, failed=0.2, drops=None, log_signs=(NO_PORT,)))

    answer = found_in(built)

    assert answer.grade is Grade.PROBABLE
    assert answer.statement == "12 connections of the service found no local port"
    assert answer.unknown == ()


def test_where_nobody_watched_nothing_is_assessed() -> None:
    assert isinstance(assess(facts(curve(step(1, 100.0, 0.01)))), NotAssessed)


def test_one_trial_is_probable() -> None:
    built = unpooled()

    assert (
        found_in(replace(built, steps=tuple(replace(s, trials=1) for s in built.steps))).grade
        is Grade.PROBABLE
    )


@pytest.mark.parametrize(
    ("failed", "taken", "explained"),
    [(0.05, 0.9, "ports.exhausted"), (0.04, 0.9, None), (0.0, 0.99, "ports.exhausted")],
)
def test_only_where_ports_are_missed_they_explain_a_plateau(
    failed: float, taken: float, explained: str | None
) -> None:
    top = level(480.0, taken * THERE, opens_per_s=480.0, failed=failed)
    answer = found_in(curve(level(40.0, 2_400.0, opens_per_s=40.0), top))
    flat = Finding("saturation.plateau", Grade.STRONG, 0.5, "k=1", "x", "", (), (), "", "", curves=("k=1",))

    folded = diagnose.fold([answer, flat])

    assert [f.explained_by for f in folded] == [None, explained]
