"""Results of doctor are kept for the machine that they were measured on, and for no other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from loadlens.machine import calibration, inventory
from loadlens.machine.calibration import Calibration, Ceiling, Lateness, Timer


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def made() -> Calibration:
    single = Ceiling(1, 64, 100_000.0, 0.98, 9e-6, "generator")
    return Calibration(
        fingerprint=calibration.fingerprint(),
        made="2026-01-02T03:04:05+00:00",
        one_thread=single,
        all_threads=replace(single, threads=4, requests_per_s=300_000.0, limit="machine"),
        lateness=(Lateness(1_000.0, 1e-6, 2e-6, 3e-6, 4e-5, 0.02),),
        timer=Timer(1e-5, 2e-5, 3e-5, 2.5e-8),
    )


def test_a_calibration_comes_back_as_it_was_kept() -> None:
    assert calibration.of_this_machine() is None

    calibration.keep(made())

    assert calibration.of_this_machine() == made()


def test_a_machine_in_another_state_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    calibration.keep(made())

    monkeypatch.setattr(inventory, "identity", lambda: {"kernel": "another"})

    assert calibration.of_this_machine() is None


@pytest.mark.parametrize(
    "damage", ["", "{", "[]", '{"schema_version": 1}', "null", "\x00", '{"schema_version": 9}']
)
def test_a_file_that_cannot_be_read_is_no_calibration(damage: str) -> None:
    calibration.keep(made()).write_text(damage)

    assert calibration.of_this_machine() is None


def test_a_load_is_compared_with_the_ceiling_of_as_many_threads() -> None:
    single = calibration.reach(50_000.0, 1, made())
    two = calibration.reach(30_000.0, 2, made())

    assert single is not None
    assert (single.share, single.ceiling_rps, single.limit) == (0.5, 100_000.0, "generator")
    assert two is not None
    assert (two.share, two.threads, two.limit) == (0.1, 4, "machine")


def test_without_a_calibration_or_a_rate_there_is_no_share() -> None:
    assert calibration.reach(1.0, 1, None) is None
    assert calibration.reach(None, 1, made()) is None
