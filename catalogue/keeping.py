"""Records of diagnoses, so that what was measured once can be judged by any later rule.

One folder for each task, a record as any other (`loadlens explain FOLDER` reads it), and beside it what the
record does not say: who measured, beside how much other work, how it ended.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from catalogue.families import FAMILIES
from catalogue.rows import Row, Task, task_of

RECORDS: Final = Path(__file__).parent / "records"


@dataclass(frozen=True, slots=True)
class Kept:
    """A task that was measured, and where its record is."""

    task: Task
    row: Row  # of the measuring
    record: Path


def room(records: Path, task: Task) -> Path:
    """An empty place for the record of a task; what was there of an earlier time is removed."""
    records.mkdir(parents=True, exist_ok=True)
    record = records / task.name
    _note(record).unlink(missing_ok=True)
    shutil.rmtree(record, ignore_errors=True)
    return record


def note(record: Path, row: Row) -> None:
    """Write down what a record is of, when it is whole."""
    _note(record).write_text(json.dumps(row, sort_keys=True) + "\n")


def kept(records: Path) -> Iterator[Kept]:
    """All that were measured to their end, in the order of the catalogue."""
    found = [json.loads(path.read_text()) for path in records.glob("*.json")]
    known = [row for row in found if row["family"] in FAMILIES]
    order = {name: at for at, name in enumerate(FAMILIES)}
    for row in sorted(known, key=lambda row: (row["seed"], order[row["family"]], row["side"], row["tier"])):
        task = task_of(row)
        yield Kept(task, row, records / task.name)


def _note(record: Path) -> Path:
    return record.parent / f"{record.name}.json"
