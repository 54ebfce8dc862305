"""Calls by the program and port they go to: rates and times by Little's law, from readings of the kernel."""

from __future__ import annotations

import json

import pytest

from loadlens.measure import whole_run
from loadlens.model.finding import Estimate
from tests.unit.measure.records import record
from tests.unit.whatif import services

HELD = {"shard:1": 3.0, "shard:2": 0.5}  # calls under way
EACH_S = {"shard:1": 30.0, "shard:2": 10.0}  # calls per second


def service(load: services.Load, _: int) -> services.Trace:
    return services.behind_lock(load, hold_s=0.02)


def test_calls_are_parts_by_their_port_with_the_time_of_each() -> None:
    made = record(service, users=(2,), trials=3)
    for trial in made.trials:
        for second in range(-1, 31):
            for to, held in HELD.items():
                labels, load = json.dumps({"to": to}), float(second >= 0)
                for metric, value in (
                    ("calls", EACH_S[to] * max(0, second)),
                    ("calls_under_way", held * load),
                ):
                    trial.further_readings.append((second * 10**9, "tcp", metric, labels, "", value))
    (built,) = whole_run.facts(made).curves

    (split,) = built.steps[0].splits
    load_per_s = built.steps[0].throughput
    assert isinstance(load_per_s, Estimate)
    assert built.steps[0].probes

    made_by = {calls.to: calls.per_request for calls in built.steps[0].calls}
    assert made_by == {to: pytest.approx(each / load_per_s.point, rel=0.02) for to, each in EACH_S.items()}
    assert split.is_of_calls
    for part in split.parts:
        assert isinstance(part.rate, Estimate)
        assert isinstance(part.mean, Estimate)
        assert part.rate.point == pytest.approx(EACH_S[part.value])
        assert part.mean.point == pytest.approx(HELD[part.value] / EACH_S[part.value])  # 100 and 50 ms
