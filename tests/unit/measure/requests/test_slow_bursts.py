"""Bursts of slow requests of a record, trial by trial, where requests do not wait for each other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loadlens.measure import whole_run
from tests.unit.measure.records import record
from tests.unit.whatif import services

USUAL_S, LONGER_S, EVERY_S, LASTS_S = 0.02, 0.3, 2.0, 0.05


def expiring(load: services.Load, _: int) -> services.Trace:
    """A service that makes those wait that come within 50 ms of each second second; slower with 8 users."""
    trace = services.behind_lock(load, hold_s=USUAL_S)
    usual_s = USUAL_S if load.users < 8 else 2 * USUAL_S
    asked = [
        request._replace(done=request.due + usual_s + (LONGER_S if request.due % EVERY_S < LASTS_S else 0.0))
        for request in trace.requests
    ]
    return replace(trace, requests=asked)


def test_bursts_begin_when_something_expires() -> None:
    (curve,) = whole_run.facts(record(expiring, users=(1, 4, 8), trials=2)).curves

    assert {bursts.load for bursts in curve.slow_bursts} <= {1, 4}  # with 8 users requests wait
    assert curve.slow_bursts
    for bursts in curve.slow_bursts:
        assert bursts.usual_s == pytest.approx(USUAL_S)
        assert bursts.longer_s == pytest.approx(LONGER_S)
        assert all(at % EVERY_S < LASTS_S for at in bursts.begin_s)
