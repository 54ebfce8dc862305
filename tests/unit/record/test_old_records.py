"""One record of every version that was ever written stays here and opens, also its trial cut by a kill."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from loadlens.model.trial import TrialStatus
from loadlens.record import SCHEMA_VERSION, RunRecord, open_run
from loadlens.report import build

RECORDS = Path(__file__).parents[2] / "data" / "records"


@pytest.fixture(params=sorted(p.name for p in RECORDS.iterdir()))
def record(request: pytest.FixtureRequest, tmp_path: Path) -> RunRecord:
    """A kept record in another place, away from its study."""
    return open_run(shutil.copytree(RECORDS / request.param, tmp_path / "moved"))


def test_there_is_a_record_of_every_version() -> None:
    versions = {open_run(path).study["schema_version"] for path in RECORDS.iterdir()}

    assert versions == set(range(1, SCHEMA_VERSION + 1))


def test_an_old_record_opens_whole(record: RunRecord) -> None:
    assert record.damage == ()
    assert [t.damage() for t in record.trials] == [()] * len(record.trials)


def test_its_tables_still_hold_what_was_counted(record: RunRecord) -> None:
    """60 requests of two users and 30 of one who look every 100 ms for 3 s; 24 when the lab was killed."""
    seen = [(t.case.slug, t.name, t.status.value, t.samples().height) for t in record.trials]

    assert seen == [
        ("alone-users-2", "block-1", "complete", 60),
        ("alone-users-1", "block-1", "complete", 30),
        ("alone-users-2", "block-2", "complete", 60),
        ("alone-users-1", "block-2", "aborted", 24),
    ]
    for trial in record.trials:
        answered = sum(row.answered for row in trial.counters().streams if row.stream == "load")
        in_histograms = sum(int(p.counts.sum()) for p in trial.intervals() if p.kind == "response")
        assert answered == in_histograms <= trial.samples().height
        assert trial.readings().filter(metric="requests_total").height >= 2


def test_a_report_can_be_made_of_it(record: RunRecord) -> None:
    report = build.report(record)

    assert report.study == "tiny"
    assert [t.status for t in record.trials].count(TrialStatus.COMPLETE) == 3
