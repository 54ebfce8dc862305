"""Warnings before a load follow from the state of the machine."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from loadlens.machine import inventory
from loadlens.model.workload import Closed, Open
from loadlens.run import cautions
from tests.unit.report.write import hit_result

# user, nice, system, idle, iowait, irq, softirq, steal
QUIET = "cpu 0 0 0 0 0 0 0 0\n", "cpu 5 0 5 90 0 0 0 0\n"


@pytest.fixture
def roomy(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A machine of four idle cores and plenty of descriptors."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3})
    monkeypatch.setattr(inventory, "limits", lambda: {"cpu_cores": None, "memory_bytes": None})
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 4096))
    watched(monkeypatch, *QUIET)
    return monkeypatch


def watched(monkeypatch: pytest.MonkeyPatch, before: str, after: str) -> None:
    """Let /proc/stat say first the one and then the other."""
    read = iter([before, after])
    monkeypatch.setattr(Path, "read_text", lambda _: next(read))


def said(users: int = 10) -> tuple[str, ...]:
    return cautions.before([hit_result.plan(Closed(users=users))], watch_s=0.0)


def test_on_a_roomy_machine_nothing_is_said(roomy: pytest.MonkeyPatch) -> None:
    assert said() == ()


def test_other_programs_and_the_host_are_told_by_their_shares(roomy: pytest.MonkeyPatch) -> None:
    watched(roomy, "cpu 1 0 0 9 0 0 0 0\n", "cpu 41 0 20 39 0 0 0 10\n")  # of 100: 60 busy, 10 stolen

    others, host = said()

    assert "other programs use 60 % of the CPUs" in others
    assert "the host takes 10 %" in host


def test_a_quota_below_two_cores_is_told(roomy: pytest.MonkeyPatch) -> None:
    roomy.setattr(inventory, "limits", lambda: {"cpu_cores": 1.5, "memory_bytes": None})

    assert [words.partition(":")[0] for words in said()] == ["1.5 cores"]


def test_connections_near_the_hard_limit_are_told(roomy: pytest.MonkeyPatch) -> None:
    # 0.8 of 4,096 are 3,276.8, and the lab has 64 files of its own
    assert said(users=3_212) == ()
    watched(roomy, *QUIET)
    assert said(users=3_213) == ("3,213 connections, but the limit of open files is 4,096 (ulimit -Hn)",)
    watched(roomy, *QUIET)
    assert cautions.before([hit_result.plan(Open(rate_per_s=1.0, max_in_flight=4_000))], watch_s=0.0)


def test_a_machine_that_tells_nothing_is_not_accused(roomy: pytest.MonkeyPatch) -> None:
    watched(roomy, "", "")

    assert said() == ()
