"""Totals of a whole load: the figures of ab's page, computed from it by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loadlens.model.finding import Estimate, Figure, NotMeasured
from loadlens.model.report import PublishedRow
from loadlens.report import build
from tests.unit.measure import records
from tests.unit.whatif import services

# as ab prints it: 0.602 s, 100 requests, 16100 bytes, 6.016 ms across all, 26.13 KiB/s
PRINTED = {
    "load.elapsed": ("0.602", "s"),
    "load.answers": ("100", "requests"),
    "load.time_per_answer": ("6.016", "ms"),
    "load.received_bytes": ("16100", "bytes"),
    "load.received_rate": ("26.13", "KiB/s"),
}


def rows(monkeypatch: pytest.MonkeyPatch, *, warmup_share: float) -> dict[str, PublishedRow]:
    """ab's page as published figures of a load that was just like it."""
    original = records.Trial._stream_result

    def as_ab_saw(trial: records.Trial, index: int) -> dict[str, Any]:
        made = original(trial, index)
        made["requests"] |= {"ok": 90, "unexpected_status": 7, "check_failed": 3, "failed": 5}
        return made | {"bytes": {"out": 0, "in_wire": 16100, "in_body": 0}}

    def of_trial(trial: records.Trial) -> dict[str, Any]:
        return whole(trial) | {"measured_s": 0.602}

    whole = records.Trial._result
    monkeypatch.setattr(records, "WARMUP_SHARE", warmup_share)
    monkeypatch.setattr(records.Trial, "_stream_result", as_ab_saw)
    monkeypatch.setattr(records.Trial, "_result", of_trial)
    run = records.record(lambda load, _: services.fair_threads(load, cores=1), users=(5,), trials=1)
    published = [
        {"experiment": "rush", "users": "5", "step": "order", "metric": metric, "side": "client"}
        | {"value": value, "unit": unit, "note": ""}
        for metric, (value, unit) in PRINTED.items()
    ]
    study = run.study | {"published": {"file": "p.csv", "cores": None, "rows": published}}
    section = build.report(replace(run, study=study)).published
    assert section is not None
    return {row.metric.partition(" ")[0]: row for row in section.rows}


def point(figure: Figure) -> float:
    assert isinstance(figure, Estimate)
    return figure.point


def test_ours_is_what_ab_prints_in_the_same_base_units(monkeypatch: pytest.MonkeyPatch) -> None:
    totals_of = rows(monkeypatch, warmup_share=0.0)

    assert point(totals_of["load.elapsed"].measured) == 0.602
    assert point(totals_of["load.answers"].measured) == 100  # whatever the status; without an answer none
    for metric, row in totals_of.items():
        assert point(row.measured) == pytest.approx(row.published, rel=0.01), metric
    assert totals_of["load.received_rate"].unit == "bytes/s"
    assert totals_of["load.received_rate"].published == pytest.approx(26.13 * 1024)


def test_of_a_load_with_a_warm_up_the_whole_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    totals_of = rows(monkeypatch, warmup_share=0.25)

    assert isinstance(totals_of["load.answers"].measured, NotMeasured)
    assert "warm-up" in totals_of["load.answers"].measured.reason
