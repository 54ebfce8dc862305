"""A run predicts once: before the first held-out trial, with all other trials complete."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from loadlens.errors import RecordError
from loadlens.model.trial import TrialStatus
from loadlens.record import RunRecord, open_run, resume_run
from loadlens.run.study_runner import run_study
from tests import tiny


class Oracle:
    """Knows nothing, and notes what it was asked and what it could see."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.seen: list[tuple[str, TrialStatus]] = []

    def __call__(self, record: RunRecord, slugs: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
        self.asked.append(list(slugs))
        self.seen = [(trial.case.slug, trial.status) for trial in record.trials]
        return {slug: {"case": slug, "undecided": "no model", "predicted": []} for slug in slugs}


def study_with_held_out(folder: Path) -> Path:
    path = tiny.write_study(folder, trials=1)
    path.write_text(path.read_text() + "    hold_out: {users: [3, 4]}\n")
    return path


def test_held_out_cases_are_foretold_once_when_all_others_are_complete(tmp_path: Path) -> None:
    oracle = Oracle()

    path = run_study(
        tiny.planned(study_with_held_out(tmp_path / "study")),
        tmp_path / "run",
        cache=tmp_path / "cache",
        predict=oracle,
    )

    record = open_run(path)
    held = [case["slug"] for case in record.study["cases"] if case["held_out"]]
    assert oracle.asked == [held]
    assert len(oracle.seen) == 2
    assert {status for _, status in oracle.seen} == {TrialStatus.COMPLETE}
    assert list(record.predictions) == held
    names = [event["event"] for event in record.events()]
    first = next(
        i for i, e in enumerate(record.events()) if e["event"] == "trial_started" and e["case"] in held
    )
    assert [i for i, name in enumerate(names) if name == "predicted"] == [first - 2, first - 1]
    assert record.damage == ()


def test_a_case_that_has_begun_is_not_foretold_any_more(tmp_path: Path) -> None:
    file = study_with_held_out(tmp_path / "study")
    run_study(tiny.planned(file), tmp_path / "run", cache=tmp_path / "cache")
    oracle = Oracle()

    run_study(tiny.planned(file), tmp_path / "run", resume=True, cache=tmp_path / "cache", predict=oracle)

    assert oracle.asked == []
    assert open_run(tmp_path / "run").predictions == {}


def test_a_study_that_holds_nothing_out_asks_nobody(tmp_path: Path) -> None:
    oracle = Oracle()
    file = tiny.write_study(tmp_path / "study", trials=1, users="[1]")

    run_study(tiny.planned(file), tmp_path / "run", cache=tmp_path / "cache", predict=oracle)

    assert oracle.asked == []


def test_a_prediction_is_written_once(tmp_path: Path) -> None:
    file = study_with_held_out(tmp_path / "study")
    run_study(tiny.planned(file), tmp_path / "run", cache=tmp_path / "cache", predict=Oracle())
    record = open_run(tmp_path / "run")
    slug = next(iter(record.predictions))
    study = tiny.planned(file)

    with (
        resume_run(tmp_path / "run", study, _trials(study)) as writer,
        pytest.raises(RecordError, match="predicted once, before it runs"),
    ):
        writer.predict(slug, {"case": slug})


def _trials(study: Any) -> Any:
    from loadlens.study import plan

    return plan.order(study)
