"""What a record keeps of a study, read back, against the study that was planned; and labels of a series."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from loadlens.model.plain import read
from loadlens.model.readings import Labels
from loadlens.model.recorded import Environment, PlannedStudy
from loadlens.record.effective_study import study_as_plain
from loadlens.study import parse, plan

STUDIES = sorted((Path(__file__).parents[3] / "studies").glob("*/study.yaml"))


@pytest.mark.parametrize("file", STUDIES, ids=lambda file: file.parent.name)
def test_a_shipped_study_is_read_back_as_it_was_planned(file: Path) -> None:
    planned = plan.plan(parse.read(file))

    study = read(PlannedStudy, json.loads(json.dumps(study_as_plain(planned, ()))))

    assert [case.slug for case in study.cases] == [case.slug for case in planned.cases]
    for case, before in zip(study.cases, planned.cases, strict=True):
        assert case.levels == {level.factor: level.name for level in before.levels}
        assert case.params == dict(before.params)
        assert case.workload == before.workload
        assert [service.scrape for service in case.services] == [s.scrape for s in before.services]
        assert case.entry_service == (before.entry.service or "")


@pytest.mark.parametrize(
    ("machine", "cores"),
    [({"cores": 8, "cores_allowed": 2}, 2), ({"cores": 8, "cores_allowed": None}, 8), (None, 1)],
)
def test_a_run_had_the_cores_that_it_was_allowed(machine: object, cores: int) -> None:
    assert read(Environment, {"machine": machine}).cores == cores


def test_a_label_that_a_series_does_not_have_is_empty() -> None:
    labels = Labels.of('{"service": "api", "replica": 2, "colour": "red"}')

    assert (labels.service, labels.replica, labels.pid) == ("api", "2", "")
    assert labels["colour"] == "red"  # of a service's own metric
