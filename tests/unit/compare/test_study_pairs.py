"""A study in two versions of its services: same cases and schedules, folders of two worktrees."""

from __future__ import annotations

from pathlib import Path

import pytest

from loadlens.cli.compare.options import CompareFlags, study_of
from loadlens.compare.study_pairs import _planned, both_versions
from loadlens.errors import UsageError
from loadlens.model.study import Study
from loadlens.study import parse, plan

STUDY = """\
services:
  web: {dir: %s, start: "serve --port $port"}
entry: web
load: {users: [1, 4], duration: 20s}
"""


def planned(folder: Path, home: str = "app") -> Study:
    folder.mkdir(parents=True)
    (folder / home).mkdir(parents=True, exist_ok=True)
    (folder / "study.yaml").write_text(STUDY % home)
    return plan.plan(parse.read(folder))


def test_each_case_is_there_twice_with_its_service_in_each_worktree(tmp_path: Path) -> None:
    study = planned(tmp_path / "repo" / "load", "../app")

    both = both_versions(study, tmp_path / "repo", [tmp_path / "1", tmp_path / "2"])

    assert [(case.levels[-1].name, case.levels[0].name, case.services[0].dir) for case in both.cases] == [
        ("A", "1", str(tmp_path / "1" / "app")),
        ("B", "1", str(tmp_path / "2" / "app")),
        ("A", "4", str(tmp_path / "1" / "app")),
        ("B", "4", str(tmp_path / "2" / "app")),
    ]
    assert len({case.slug for case in both.cases}) == 4


def test_both_versions_of_a_case_have_one_schedule(tmp_path: Path) -> None:
    both = both_versions(planned(tmp_path / "repo"), tmp_path / "repo", [tmp_path / "1", tmp_path / "2"])

    seeds = [_planned(both, case, block, 1).seed for block in (1, 2) for case in both.cases]

    assert seeds[0::2] == seeds[1::2]
    assert len(set(seeds)) == 4  # two cases in two pairs


def test_a_study_of_something_elsewhere_has_no_revisions(tmp_path: Path) -> None:
    study = planned(tmp_path / "repo", str(tmp_path / "elsewhere"))

    with pytest.raises(UsageError, match="starts nothing in this repository"):
        both_versions(study, tmp_path / "repo", [tmp_path / "1", tmp_path / "2"])


def test_a_study_has_its_own_load_and_two_revisions(tmp_path: Path) -> None:
    planned(tmp_path / "repo")
    path = str(tmp_path / "repo")

    assert study_of(CompareFlags((path,), revisions=("main", "HEAD"))) == Path(path)
    assert study_of(CompareFlags(("http://127.0.0.1:8080/",), revisions=("main", "HEAD"))) is None
    with pytest.raises(UsageError, match="defines its own load"):
        study_of(CompareFlags((path,), revisions=("main", "HEAD"), rate="5"))
    with pytest.raises(UsageError, match="1 revision"):
        study_of(CompareFlags((path,), revisions=("main",)))
