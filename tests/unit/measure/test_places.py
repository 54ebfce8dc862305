"""A service behind a lock, from its record to the finding: what its gauges show is counted from its trace."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from loadlens.model.finding import Estimate
from loadlens.whatif import diagnosis
from loadlens.whatif.diagnosis import Diagnosis
from tests.unit.measure.records import Run, Trial, record
from tests.unit.whatif import services

HOLD_S = 0.2


def run(*, trials: int = 3) -> Run:
    def service(load: services.Load, _: int) -> services.Trace:
        return services.behind_lock(load, hold_s=HOLD_S)

    return record(service, users=(1, 4, 8, 16), trials=trials, seconds=30.0)


def gauges(trial: Trial) -> list[Any]:
    """Readings of the holders of the lock and of its waiters, once a second."""
    assert trial.trace is not None
    own = json.dumps({"lock": "rows", "replica": "1", "service": "web"})
    rows = []
    for second in range(31):
        inside = sum(r.stream == 0 and r.due <= second < r.done for r in trial.trace.requests)
        for metric, value in (("lock_holders", min(1, inside)), ("lock_waiters", max(0, inside - 1))):
            rows.append((second * 1_000_000_000, "scrape", metric, own, "", float(value)))
    return rows


@cache
def report() -> Diagnosis:
    made = run()
    for trial in made.trials:
        trial.further_readings = gauges(trial)
    return diagnosis.diagnosis_of(made)


def test_places_of_a_level_are_those_of_its_trials() -> None:
    (curve,) = report().facts.curves
    (lock,) = curve.steps[-1].places

    assert lock.kind == "lock"
    assert lock.held.name == 'lock_holders{lock="rows"}'
    assert isinstance(lock.held.mean, Estimate)
    assert (lock.held.mean.point, lock.held.mean.trials) == (1.0, 3)
    assert lock.waiting is not None
    assert isinstance(lock.waiting.mean, Estimate)
    # 16 users who think 0.15 s and are answered five times a second: 0.75 think, one holds, the others wait.
    assert lock.waiting.mean.point == pytest.approx(14.25, abs=0.8)  # read at whole seconds


def test_a_lock_is_found_by_its_gauges_with_the_time_that_it_is_held() -> None:
    findings = {finding.rule: finding for finding in report().verdict.findings}

    assert "db.lock" in findings
    hold = next(e for e in findings["db.lock"].evidence if e.signal == "lock.hold")
    assert hold.value == pytest.approx(HOLD_S, rel=0.05)
    assert findings["saturation.plateau"].explained_by == "db.lock"
    assert "downstream.serialised" not in findings


def test_without_gauges_it_is_a_line_that_nobody_names() -> None:
    verdict = diagnosis.diagnosis_of(run(trials=1)).verdict

    rules = [finding.rule for finding in verdict.findings]
    assert "downstream.serialised" in rules
    assert not {"db.lock", "db.pool", "threads.pool-limit"} & set(rules)
    assert any(lack.rule == "db.lock" and "would decide" in lack.reason for lack in verdict.not_assessed)
