"""A study that grows while it runs: what joined it stands in the record, whenever the lab ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from loadlens.errors import RecordError
from loadlens.model.study import Case
from loadlens.record import RunWriter, create_run, disk, layout, open_run
from tests import records

ONE, TWO = records.case(), records.case("alone-users-2", users=2)


@pytest.fixture
def writer(tmp_path: Path) -> RunWriter:
    return create_run(tmp_path / "run", records.study(()), (), {"cores": 2})


def grow(writer: RunWriter, *cases: Case) -> None:
    study = records.study(cases)
    writer.extend(study, records.trials(study))


def slugs(path: Path) -> list[str]:
    return [case["slug"] for case in open_run(path).study["cases"]]


def test_cases_that_join_are_part_of_the_study(writer: RunWriter) -> None:
    with writer:
        grow(writer, ONE)
        grow(writer, ONE, TWO)
        planned = records.trials(records.study((ONE, TWO)))
        assert writer.trial(planned[1]).path.parent.name == "alone-users-2"

    record = open_run(writer.path)
    assert slugs(writer.path) == ["alone-users-1", "alone-users-2"]
    assert record.damage == ()
    assert len(record.unfinished()) == 4  # two blocks of each
    assert [event["event"] for event in record.events()] == ["created", "extended", "extended"]


def test_an_end_between_the_event_and_the_file_leaves_the_study_as_it_was(
    writer: RunWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    with writer:
        grow(writer, ONE)

        def ends(what: str, path: Path) -> None:
            if path.name == layout.EFFECTIVE:
                raise OSError(28, "no space")

        monkeypatch.setattr(disk, "before", ends)
        with pytest.raises(RecordError, match="No space"):
            grow(writer, ONE, TWO)
        monkeypatch.undo()

    assert slugs(writer.path) == ["alone-users-1"]
    assert open_run(writer.path).damage == ()


def test_a_study_that_no_event_announced_is_damaged(writer: RunWriter) -> None:
    with writer:
        grow(writer, ONE)
    path = writer.path / layout.EFFECTIVE

    path.write_text(path.read_text().replace("does it add up?", "does it add down?"))

    assert any(layout.EFFECTIVE in fault for fault in open_run(writer.path).damage)
