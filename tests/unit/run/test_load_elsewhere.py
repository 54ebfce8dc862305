"""A load that other machines make: handed into a run, kept in its record, and not judged by this machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from loadlens import engine
from loadlens.engine import Result
from loadlens.errors import TooLargeError
from loadlens.model.workload import Closed, Plan
from loadlens.record import open_run
from loadlens.run.engine_trial import run_trial
from loadlens.run.single_load import run_hit
from loadlens.run.study_runner import run_study
from tests import records, tiny
from tests.unit.run.scripted_engine import ScriptedRun

TOO_MANY = 4_000_000  # connections of one address: more than there are ports


class Elsewhere:
    """Makes loads as if on machines that carry any; keeps their plans."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.plans: list[Plan] = []
        self._monkeypatch = monkeypatch

    def __call__(self, plan: Plan, *given: Any, **more: Any) -> Result:
        self.plans.append(plan)

        class Scripted(ScriptedRun):
            runs: ClassVar[list[ScriptedRun]] = []

        with self._monkeypatch.context() as patch:
            patch.setattr(engine, "Run", Scripted)
            result = run_trial(plan, *given, **more)
        return result | {"reasons": ["made elsewhere"]}


def test_a_load_that_is_made_elsewhere_may_exceed_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = records.plan()
    plan = replace(plan, streams=(replace(plan.streams[0], workload=Closed(users=TOO_MANY)),))
    elsewhere = Elsewhere(monkeypatch)

    with pytest.raises(TooLargeError):
        run_hit(plan, out=tmp_path / "here")
    done = run_hit(plan, out=tmp_path / "there", on_caution=lambda _: None, make_load=elsewhere)

    (trial,) = open_run(tmp_path / "there").trials
    assert done.result["reasons"] == ["made elsewhere"]
    assert trial.result is not None
    assert trial.result.reasons == ("made elsewhere",)
    assert trial.samples().height == 10  # rows of the scripted engine, written where the record keeps them
    assert not (tmp_path / "here").exists()


def test_trials_of_a_study_are_made_elsewhere_without_threads_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = tiny.planned(tiny.write_study(tmp_path / "study"))
    cases = tuple(replace(case, workload=Closed(users=TOO_MANY)) for case in study.cases)
    elsewhere = Elsewhere(monkeypatch)

    path = run_study(
        replace(study, cases=cases), tmp_path / "run", cache=tmp_path / "cache", make_load=elsewhere
    )

    record = open_run(path)
    assert len(elsewhere.plans) == len(record.trials) > 0
    assert {plan.threads for plan in elsewhere.plans} == {None}
    assert record.is_complete
