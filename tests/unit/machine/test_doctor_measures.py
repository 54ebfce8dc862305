"""The checks of doctor follow from the facts about the machine."""

from __future__ import annotations

import os
from typing import Any

import pytest

from loadlens import doctor
from loadlens.errors import EngineError
from loadlens.machine import cpu_time, inventory
from loadlens.model.study import Study
from loadlens.model.workload import Closed, Connection, Open
from tests import records
from tests.calm import where_calm

GOOD: dict[str, Any] = {
    "cores_allowed": 8,
    "clocksource": "tsc",
    "governor": "performance",
    "ephemeral_ports": [32768, 60999],
    "listen_backlog": 4096,
    "max_descriptors": [1024, 4096],
}


def states(monkeypatch: pytest.MonkeyPatch, study: Study | None = None, **facts: object) -> dict[str, str]:
    """State of each check on a machine with these facts, nothing else running on it."""
    ticks = iter([[0] * 8, [0, 0, 0, 100, 0, 0, 0, 0]])  # the fourth is idle
    monkeypatch.setattr(inventory, "facts", lambda: GOOD | facts)
    monkeypatch.setattr(inventory, "limits", lambda: {"cpu_cores": None, "memory_bytes": None})
    monkeypatch.setattr(doctor, "WATCH_S", 0.0)
    monkeypatch.setattr(cpu_time, "_ticks", lambda: next(ticks))
    return {check.name: check.state for check in doctor.of_machine(study)}


def test_a_good_machine_has_nothing_against_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(states(monkeypatch).values()) == {"ok"}


@pytest.mark.parametrize(
    ("facts", "name", "state"),
    [
        ({"cores_allowed": 1}, "cores", "bad"),
        ({"cores_allowed": 2}, "cores", "caution"),
        ({"clocksource": "hpet"}, "clock", "bad"),
        ({"clocksource": None}, "clock", "unknown"),
        ({"governor": "powersave"}, "frequency", "caution"),
        ({"governor": None}, "frequency", "unknown"),
        ({"ephemeral_ports": [32768, 40000]}, "local ports", "caution"),
        ({"listen_backlog": 128}, "listen queue", "caution"),
    ],
)
def test_each_fault_is_seen_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, facts: dict[str, Any], name: str, state: str
) -> None:
    seen = states(monkeypatch, **facts)

    assert {n: s for n, s in seen.items() if s != "ok"} == {name: state}


def test_descriptors_are_counted_against_the_widest_case(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = records.study([records.case(), records.case("wide", workload=Open(10.0, max_in_flight=961))])
    pooled = records.study([records.case(workload=Closed(users=5000), connection=Connection(pool=50))])

    # 961 connections and 64 files of our own are 1025, one more than allowed
    assert states(monkeypatch, wide)["descriptors"] == "bad"
    assert states(monkeypatch, pooled)["descriptors"] == "ok"


def test_cases_that_need_more_cores_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert states(monkeypatch, records.study([records.case(needs_cores=16)]))["cases"] == "caution"


def test_the_machine_can_be_read_here() -> None:
    facts = inventory.facts()

    assert facts["cores"] == os.cpu_count()
    assert facts["kernel"] == os.uname().release
    assert facts["memory_bytes"] > 0


@where_calm
def test_the_generator_is_driven_against_a_server_that_does_nothing() -> None:
    made = doctor.measure(seconds=0.3)

    assert (made.one_thread.threads, made.all_threads.threads) == (1, len(os.sched_getaffinity(0)))
    for ceiling in (made.one_thread, made.all_threads):
        # A core cannot do more than it has time for, at what a request costs it.
        assert 0 < ceiling.requests_per_s < 1.2 * ceiling.threads / ceiling.cpu_per_request_s
    assert [late.rate_per_s for late in made.lateness] == [1_000.0, 10_000.0]
    assert all(0 < late.p50_s <= late.p90_s <= late.p99_s for late in made.lateness)
    assert 0 < made.timer.late_p50_s <= made.timer.late_p99_s <= made.timer.late_max_s


def tried(monkeypatch: pytest.MonkeyPatch, *counts: int) -> list[float]:
    """Let each try in turn answer so many requests in its measured part; gives how long each one lasted."""
    lengths: list[float] = []
    left = iter(counts)

    def against(workload: object, own: object, servers: object, seconds: float) -> dict[str, Any]:
        lengths.append(seconds)
        count = next(left)
        ends = {"due": 5000, "issued": 295, "answered": 295}
        stream = {
            "requests": ends,
            "lag_s": {"max": 0.1 if count else None},
            "response_time_s": {"count": count},
        }
        return {
            "streams": [stream],
            "generator": {"reasons": ["a thread did not run"]},
            "which": len(lengths),
        }

    monkeypatch.setattr(doctor, "_against_nothing", against)
    return lengths


def test_a_generator_without_a_core_is_measured_again_and_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = tried(monkeypatch, 0, 7)

    made = doctor._patiently(Closed(users=1), (0,), (0,), 0.5)

    assert (made["which"], lengths) == (2, [0.5, 2.0])


def test_a_generator_that_never_runs_says_what_was_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = tried(monkeypatch, 0, 0, 0)

    with pytest.raises(EngineError) as raised:
        doctor._patiently(Closed(users=1), (0,), (0,), 2.0)

    assert lengths == [2.0, 8.0, 10.0]
    assert "295 of 5000 due requests left" in raised.value.message
    assert "a thread did not run" in raised.value.message
    assert raised.value.hint


def test_a_quantile_that_is_undecided_is_read_off_the_histogram() -> None:
    undecided = {"value": None}
    times = {"p99": undecided, "count": 10, "max": 9.0, "histogram": [[1.0, 5], [2.0, 4], [3.0, 1]]}

    assert doctor._quantile(times, "p99", 0.5) == 1.0
    assert doctor._quantile(times, "p99", 0.9) == 2.0
    assert doctor._quantile(times, "p99", 0.99) == 3.0
