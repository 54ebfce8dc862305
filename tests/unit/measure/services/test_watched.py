"""Facts about connections and refusals, from records of services with known settings."""

from __future__ import annotations

from typing import Any

import pytest

from loadlens.diagnose.rules.network import http_keepalive_limit
from loadlens.diagnose.rules.overload import ratelimit_active
from loadlens.measure import whole_run
from loadlens.model.facts import Facts
from loadlens.model.finding import Estimate, Finding
from tests.unit.measure.records import Run, record
from tests.unit.measure.requests.test_connections import OPEN, SERVER, connection
from tests.unit.whatif import services


def test_a_bucket_is_found_with_its_rate_and_burst() -> None:
    run = record(lambda load, _: services.limited(load), users=(1, 16, 32), seconds=9.0)

    facts = whole_run.facts(run)

    (curve,) = facts.curves
    # one user asks 6 times a second, 16 of them 100 times, 32 twice as often
    assert [len(step.refusals) for step in curve.steps] == [0, 1, 1]
    top = curve.steps[-1].refusals[0]
    assert isinstance(top.rate, Estimate)
    assert top.rate.point == pytest.approx(40.0, rel=0.02)
    assert isinstance(top.burst, Estimate)
    assert top.burst.point == pytest.approx(15.0, abs=3.0)  # users come one after the other
    assert dict(curve.steps[0].statuses).keys() == {200}
    assert dict(curve.steps[-1].statuses).keys() == {200, 429}
    assert isinstance(ratelimit_active.assess(facts), Finding)


def few(trials: list[Any], closed: int, limit: int) -> None:
    """Let each trial have connections that the service closed, and one that is open."""
    for trial in trials:
        own = [connection(i, limit, SERVER, age=0.1 + 0.01 * i) for i in range(closed)]
        trial.connected = [*own, connection(closed, 3, OPEN, took=1.01)]


def known_of(run: Run) -> Facts:
    return whole_run.facts(run)


def test_connections_of_all_trials_are_taken_together() -> None:
    run = record(lambda load, _: services.fair_threads(load, work_s=0.01), users=(1, 4), seconds=6.0)
    few(run.trials, closed=5, limit=7)  # fewer than 10 a trial, 15 a case

    facts = known_of(run)

    watch = facts.curves[0].steps[0].connections
    assert watch is not None
    assert (watch.opened, watch.closed_by_server, watch.closed_by_client) == (18, 15, 0)
    assert (watch.connects, watch.resent, watch.reuses) == (18, 3, False)  # the plan says: new ones
    assert watch.closed is not None
    assert (watch.closed.count, watch.closed.requests, watch.closed.same_requests) == (15, 7, 1.0)
    assert watch.closed.age_s == pytest.approx(0.12)
    assert isinstance(watch.connect, Estimate)
    assert watch.connect.point == pytest.approx((5 * 0.001 + 1.01) / 6)


def test_facts_have_no_connections_where_none_were_recorded() -> None:
    run = record(lambda load, _: services.fair_threads(load, work_s=0.01), users=(1,), seconds=6.0)

    facts = known_of(run)

    assert facts.curves[0].steps[0].connections is None
    assert not isinstance(http_keepalive_limit.assess(facts), Finding)


def test_a_baseline_step_gives_the_time_of_a_request_on_an_unloaded_service() -> None:
    run = record(lambda load, _: services.fair_threads(load, work_s=0.01), users=(1, 4), seconds=6.0)
    run.study["cases"][0]["purpose"] = "look"

    facts = known_of(run)

    (unloaded,) = facts.unloaded
    assert unloaded.request == "POST /orders"
    assert isinstance(unloaded.response.mean, Estimate)
    assert unloaded.response.mean.point == pytest.approx(
        0.0105, rel=0.05
    )  # 10 ms of work and half one to answer
    assert [step.load for step in facts.curves[0].steps] == [4.0]
