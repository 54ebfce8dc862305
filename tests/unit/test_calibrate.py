"""What the machine is said to be good for follows from its facts."""

from __future__ import annotations

import os
from typing import Any

import pytest

from loadlens import calibrate, machine
from loadlens.model.workload import Closed, Connection, Open
from tests import records

GOOD: dict[str, Any] = {
    "cores_allowed": 8,
    "clocksource": "tsc",
    "governor": "performance",
    "ephemeral_ports": [32768, 60999],
    "listen_backlog": 4096,
    "max_descriptors": [1024, 4096],
}


def states(
    monkeypatch: pytest.MonkeyPatch, study: records.Study | None = None, **facts: object
) -> dict[str, str]:
    """State of each check on a machine with these facts, nothing else running on it."""
    idle = dict.fromkeys(("user", "nice", "system", "iowait", "irq", "softirq", "steal"), 0)
    ticks = iter([idle | {"idle": 0}, idle | {"idle": 100}])
    monkeypatch.setattr(machine, "facts", lambda: GOOD | facts)
    monkeypatch.setattr(machine, "limits", lambda: {"cpu_cores": None, "memory_bytes": None})
    monkeypatch.setattr(calibrate, "WATCH_S", 0.0)
    monkeypatch.setattr(calibrate, "_cpu_ticks", lambda: next(ticks))
    return {check.name: check.state for check in calibrate.of_machine(study)}


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
    found = states(monkeypatch, **facts)

    assert {n: s for n, s in found.items() if s != "ok"} == {name: state}


def test_descriptors_are_counted_against_the_widest_case(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = records.study([records.case(), records.case("wide", workload=Open(10.0, max_in_flight=961))])
    pooled = records.study([records.case(workload=Closed(users=5000), connection=Connection(pool=50))])

    # 961 connections and 64 files of our own are 1025, one more than allowed
    assert states(monkeypatch, wide)["descriptors"] == "bad"
    assert states(monkeypatch, pooled)["descriptors"] == "ok"


def test_cases_that_need_more_cores_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert states(monkeypatch, records.study([records.case(needs_cores=16)]))["cases"] == "caution"


def test_the_machine_can_be_read_here() -> None:
    facts = machine.facts()

    assert facts["cores"] == os.cpu_count()
    assert facts["kernel"] == os.uname().release
    assert facts["memory_bytes"] > 0


def test_the_generator_is_driven_against_a_server_that_does_nothing() -> None:
    punctual = calibrate.punctuality(rate_per_s=200.0, seconds=0.5)
    most = calibrate.ceiling(connections=2, seconds=0.3)

    assert punctual.late_p99_s > 0
    assert most.requests_per_s > 200
