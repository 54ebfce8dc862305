"""Diagnoses on disk: one JSON object per line, so that an interrupted run continues where it stopped.

The measurement stays in a record (`keeping.py`), so that later rules can judge it again. Their answers are in
a separate file, and count as long as they are about the latest measurement of their task.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from catalogue.asking import Answer
from catalogue.families import FAMILIES
from catalogue.family import Specimen, Tier
from catalogue.running import ROOT

FOLDER: Final = Path(__file__).parent / "results"
SUBJECT: Final = ("crates", "python/loadlens")  # what a diagnosis depends on

Row = dict[str, Any]
Key = tuple[object, ...]
Side = Literal["flawed", "twin", "repaired"]
Split = Literal["development", "hold-out"]
# Thresholds may be tuned on development seeds. Hold-out seeds only judge them, and are not looked at before.
FIRST_SEED: Final[Mapping[Split, int]] = {"development": 1, "hold-out": 10_001}


@dataclass(frozen=True, slots=True)
class Task:
    """One service to diagnose."""

    family: str
    seed: int
    side: Side
    tier: Tier
    budget_s: float

    @property
    def specimen(self) -> Specimen:
        """The service to start, with its ground truth."""
        specimen: Specimen | None = getattr(FAMILIES[self.family].drawn(self.seed), self.side)
        assert specimen is not None
        return specimen

    @property
    def key(self) -> Key:
        """Identity: two rows with one key are of the same task."""
        return self.family, self.seed, self.side, self.tier, self.budget_s

    @property
    def name(self) -> str:
        """The key as a folder name: `db-lock-1-twin-C-30s`."""
        return f"{self.family}-{self.seed}-{self.side}-{self.tier}-{self.budget_s:g}s"

    @property
    def place(self) -> str:
        """Name in messages and tables: `db-lock/1/twin`."""
        return f"{self.family}/{self.seed}/{self.side}"


def tasks(
    families: Sequence[str], split: Split, seeds: int, tier: Tier, budget_s: float, *, twins: bool
) -> Iterator[Task]:
    """Yield tasks seed by seed through all families, so that a run that ends early is balanced.

    Each specimen is followed by its twin. Repaired services only check predictions of fixes, and come after
    all others of a seed.
    """
    for seed in range(FIRST_SEED[split], FIRST_SEED[split] + seeds):
        for name in mixed(families):
            yield Task(name, seed, "flawed", tier, budget_s)
            if twins and FAMILIES[name].drawn(seed).twin is not None:
                yield Task(name, seed, "twin", tier, budget_s)
        for name in mixed(families):
            if twins and FAMILIES[name].drawn(seed).repaired is not None:
                yield Task(name, seed, "repaired", tier, budget_s)


def mixed(families: Sequence[str]) -> list[str]:
    """Return the families with each kind spread evenly, in its own order."""
    of_kind: dict[str, list[str]] = {}
    for name in families:
        of_kind.setdefault(FAMILIES[name].kind, []).append(name)
    place = {name: (at + 0.5) / len(same) for same in of_kind.values() for at, name in enumerate(same)}
    return sorted(families, key=place.__getitem__)


def split_of(seed: int) -> Split:
    """Return the split that a seed belongs to."""
    return "hold-out" if seed >= FIRST_SEED["hold-out"] else "development"


def row(
    task: Task,
    answer: Answer,
    *,
    subject: str,
    others_busy: float,
    began: str,
    lasted: Sequence[Mapping[str, Any]] | None = None,
) -> Row:
    """Return the stored form of a diagnosis.

    Args:
        task: The service that was diagnosed.
        answer: The diagnosis.
        subject: The commit that measured and diagnosed.
        others_busy: Share of the processors that other programs used before it began.
        began: Start time; it distinguishes two measurements of one task.
        lasted: Actual durations of holds, waits and pauses, by server; None: not recorded.
    """
    return {
        "family": task.family,
        "seed": task.seed,
        "side": task.side,
        "tier": task.tier,
        "budget_s": task.budget_s,
        "subject": subject,
        "began": began,
        "others_busy": round(others_busy, 3),
        "lasted": lasted,
        "seconds": round(answer.seconds, 1),
        "failure": answer.failure,
        "said": scored(answer.explanation),
    }


def task_of(row: Mapping[str, Any]) -> Task:
    """Return the task that a row is the result of."""
    return Task(row["family"], row["seed"], row["side"], row["tier"], row["budget_s"])


def scored(explanation: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of an answer that are compared with the truth; empty if there was none."""
    if not explanation:
        return {}
    return {
        "limit": explanation.get("limit"),
        "stopped": explanation.get("stopped_because"),
        "capacity": _figure(explanation.get("capacity")),
        "brings": explanation.get("brings"),
        "findings": [_finding(finding) for finding in explanation.get("findings", ())],
        "absent": [absent["rule"] for absent in explanation.get("absent", ())],
        "not_assessed": [skipped["rule"] for skipped in explanation.get("not_assessed", ())],
    }


def _figure(figure: Any) -> Any:
    return (
        {key: figure.get(key) for key in ("point", "low", "high", "unit")}
        if isinstance(figure, Mapping)
        else None
    )


def _finding(finding: Mapping[str, Any]) -> dict[str, Any]:
    evidence = [
        {key: part.get(key) for key in ("signal", "value", "low", "high")}
        for part in finding.get("evidence") or ()
        if part.get("value") is not None
    ]
    predictions = [
        {
            "what": prediction["what"],
            "remedy": prediction.get("remedy") or "",
            "before": _figure(prediction["before"]),
            "after": _figure(prediction["after"]),
        }
        for prediction in finding.get("predictions") or ()
    ]
    names = ("rule", "grade", "statement", "explained_by")
    return {**{key: finding.get(key) for key in names}, "evidence": evidence, "predictions": predictions}


# --- files -----------------------------------------------------------------------------------------------


def file_of(split: Split, folder: Path = FOLDER) -> Path:
    """Return the file of a split's diagnoses."""
    return folder / f"{split}.jsonl"


def judged_file_of(split: Split, folder: Path = FOLDER) -> Path:
    """Return the file of a split's diagnoses as later rules judged them again."""
    return folder / f"{split}-judged.jsonl"


def read(file: Path) -> list[Row]:
    """Return the last row of each task; skip incomplete lines and families that no longer exist."""
    if not file.exists():
        return []
    rows = []
    for line in file.read_text().splitlines():
        try:
            rows.append(parse(line))
        except json.JSONDecodeError:
            continue  # interrupted while it was written
    return list(_by_task(row for row in rows if row["family"] in FAMILIES).values())


def parse(line: str) -> Row:
    """Return a stored row; the repaired side had another name in rows of earlier commits."""
    row: Row = json.loads(line)
    return row if row["side"] in ("flawed", "twin") else row | {"side": "repaired"}


def append(file: Path, row: Row) -> None:
    """Add a row at the end of the file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as data:
        data.write(_line(row))


def replace(file: Path, newer: Iterable[Row]) -> None:
    """Replace older rows of the same tasks; keep all others."""
    rows = _by_task([*read(file), *newer])
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(map(_line, rows.values())))


def _by_task(rows: Iterable[Row]) -> dict[Key, Row]:
    return {task_of(row).key: row for row in rows}


def _line(row: Row) -> str:
    return json.dumps(row, sort_keys=True) + "\n"


def latest(split: Split, folder: Path = FOLDER) -> list[Row]:
    """Return the last diagnosis of each task, as judged last if that was the same measurement."""
    measured = _by_task(read(file_of(split, folder)))
    judged = _by_task(read(judged_file_of(split, folder)))
    current = {key: row for key, row in judged.items() if key not in measured or _same(row, measured[key])}
    return list((measured | current).values())


def _same(judged: Row, measured: Row) -> bool:
    return bool(judged["began"] == measured.get("began"))


def of_latest_budget(rows: Sequence[Row]) -> list[Row]:
    """Return the rows with the budget used last in their tier: different budgets are not comparable."""
    budget = {row["tier"]: row["budget_s"] for row in sorted(rows, key=lambda row: row.get("began") or "")}
    return [row for row in rows if row["budget_s"] == budget[row["tier"]]]


def subject() -> str:
    """Return the commit that diagnoses, marked if files were changed since."""
    commit = _git("rev-parse", "--short=8", "HEAD")
    return commit + ("+changes" if _git("status", "--porcelain", "--untracked-files=no", *SUBJECT) else "")


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()
