"""Conditions of `make studies` on structure and counts, on a record that an earlier version wrote."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from loadlens.model.report import Report
from loadlens.model.study import Study
from loadlens.model.topology import Limits
from loadlens.model.trial import TrialStatus
from loadlens.record import open_run
from loadlens.report import build
from loadlens.study import parse, plan
from tests.scripts import loaded

ROOT = Path(__file__).parents[3]
RECORD = ROOT / "tests" / "data" / "records" / "version-1"


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    return loaded("tools/studies.py")


@pytest.fixture
def planned(tmp_path: Path) -> Study:
    shutil.copy(RECORD / "study.yaml", tmp_path / "study.yaml")
    return plan.plan(parse.read(tmp_path / "study.yaml"))


def test_a_trial_without_a_whole_attempt_is_named_with_its_reason(tool: ModuleType, planned: Study) -> None:
    faults, words = tool.look(planned, open_run(RECORD))

    # 2 cases x 2 blocks; the second block of the first case was cut off by a kill
    assert faults == []
    assert words.splitlines()[0] == "3 of 4 trials valid, nothing published"
    assert "invalid: alone users=1: not sealed: the lab ended before the trial did" in words


def test_a_case_that_was_never_tried_is_a_fault(tool: ModuleType, planned: Study) -> None:
    more = replace(planned, cases=(*planned.cases, replace(planned.cases[0], slug="forgotten")))

    faults, _ = tool.look(more, open_run(RECORD))

    assert faults == ["never tried: forgotten", "never tried: forgotten"]


def test_an_invalid_trial_without_a_reason_and_a_run_without_a_valid_one_are_faults(
    tool: ModuleType, planned: Study
) -> None:
    record = open_run(RECORD)
    for trial in record.trials:
        trial.status, trial.reasons = TrialStatus.INVALID, ()

    faults, _ = tool.look(planned, record)

    assert sum("without a reason" in fault for fault in faults) == 4
    assert "no valid trial of 4" in faults


def test_books_that_do_not_balance_are_a_fault(tool: ModuleType) -> None:
    report: Report = build.report(open_run(RECORD))
    broken = replace(report.accounting[0], state="bad", explained_by="2 not explained")

    assert tool.broken_books(report) == []
    assert tool.broken_books(replace(report, accounting=(broken,))) == [
        f"the books of {broken.source} do not balance: 2 not explained"
    ]
    assert tool.broken_books(replace(report, accounting=())) == ["no source counted a request"]


def test_the_studies_that_are_shipped_are_found_and_planned(tool: ModuleType) -> None:
    found = sorted(path.parent.name for path in tool.STUDIES.glob("*/study.yaml"))

    assert {"balance", "items", "register"} <= set(found)


def test_a_limit_that_this_machine_cannot_hold_is_named(tool: ModuleType, planned: Study) -> None:
    case = planned.cases[0]
    tied = tuple(replace(service, limits=Limits(cpus=(9_999,))) for service in case.services)
    limited = replace(planned, cases=(replace(case, services=tied),))

    assert tool.what_cannot_be_held(planned) == ""
    assert "9999" in tool.what_cannot_be_held(limited)
