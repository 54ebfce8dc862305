"""Durations of earlier runs, read from a record that an earlier version wrote."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from loadlens.run import past_durations
from loadlens.study.plan import PastTrial

RECORD = Path(__file__).parents[2] / "data" / "records" / "version-1"


def test_complete_trials_of_a_study_tell_their_rate_and_what_was_around_it(tmp_path: Path) -> None:
    shutil.copytree(RECORD, tmp_path / "tiny-1")

    seen = sorted(past_durations.seen(tmp_path, "tiny"), key=lambda trial: (trial.slug, trial.overhead_s))

    # of trial.json: 30, 60 and 60 requests in 3 s of load; 3.946, 3.862 and 3.997 s from beginning to end;
    # the fourth trial was cut off
    assert [(trial.slug, trial.experiment, trial.per_s) for trial in seen] == [
        ("alone-users-1", "alone", 10.0),
        ("alone-users-2", "alone", 20.0),
        ("alone-users-2", "alone", 20.0),
    ]
    assert [trial.overhead_s for trial in seen] == pytest.approx([0.946, 0.862, 0.997], abs=0.001)
    assert isinstance(seen[0], PastTrial)


def test_runs_of_other_studies_and_folders_that_are_no_record_say_nothing(tmp_path: Path) -> None:
    shutil.copytree(RECORD, tmp_path / "tiny-1")
    (tmp_path / "tiny-1" / "study.yaml").unlink()  # damaged, and still readable in its trials
    (tmp_path / "notes").mkdir()

    assert past_durations.seen(tmp_path, "other") == ()
    assert past_durations.seen(tmp_path / "nowhere", "tiny") == ()
