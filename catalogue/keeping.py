"""Keeps the records of diagnoses, so that later rules can judge them without measuring again.

Each task has a folder, which is an ordinary record (`loadlens explain FOLDER` reads it). A JSON file with the
same name holds what the record does not: the commit, how busy the machine was, how the diagnosis ended.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from catalogue.families import FAMILIES
from catalogue.rows import Row, Task, parse, task_of

RECORDS: Final = Path(__file__).parent / "records"


@dataclass(frozen=True, slots=True)
class KeptRecord:
    """A task that was measured, with its record."""

    task: Task
    row: Row  # of the measurement
    record: Path


def room(records: Path, task: Task) -> Path:
    """Return the folder for a task's record, after removing an earlier record."""
    records.mkdir(parents=True, exist_ok=True)
    record = records / task.name
    _note(record).unlink(missing_ok=True)
    shutil.rmtree(record, ignore_errors=True)
    return record


def note(record: Path, row: Row) -> None:
    """Write the row next to a finished record."""
    _note(record).write_text(json.dumps(row, sort_keys=True) + "\n")


def kept(records: Path) -> Iterator[KeptRecord]:
    """Yield every finished record, in the order of the catalogue."""
    notes = [(parse(path.read_text()), path.with_suffix("")) for path in records.glob("*.json")]
    finished = [KeptRecord(task_of(row), row, record) for row, record in notes if row["family"] in FAMILIES]
    order = {name: at for at, name in enumerate(FAMILIES)}
    yield from sorted(
        finished,
        key=lambda kept: (kept.task.seed, order[kept.task.family], kept.task.side, kept.task.tier),
    )


def _note(record: Path) -> Path:
    return record.parent / f"{record.name}.json"
