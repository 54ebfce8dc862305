"""Reasons why a trial must not count."""

from __future__ import annotations

import pytest

from loadlens.model.result import EngineResult
from loadlens.model.trial import TrialStatus
from loadlens.run import trial_faults
from tests.unit.report.write.hit_result import result


@pytest.mark.parametrize(
    ("verdict", "status"),
    [
        ("kept_up", TrialStatus.COMPLETE),
        ("starved", TrialStatus.COMPLETE),
        ("limit", TrialStatus.COMPLETE),  # a true lower bound
        ("stood_still", TrialStatus.INVALID),
    ],
)
def test_a_trial_is_invalid_if_its_generator_stood_still(verdict: str, status: TrialStatus) -> None:
    made = result()
    made["generator"] |= {"verdict": verdict, "reasons": ["how long", "what else"]}

    given, reasons = trial_faults.verdict(EngineResult.from_json(made))

    assert given is status
    assert reasons == (("how long",) if status is TrialStatus.INVALID else ())
