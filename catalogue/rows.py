"""Diagnoses on disk: one JSON object a line, so that a run that is broken off goes on where it was.

What was measured stays in a record (`keeping.py`), so that today's rules can judge it: what they say is in a
file of its own, and counts as long as it is about the latest measurement of its task.
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
from catalogue.family import Known, Tier
from catalogue.running import ROOT

FOLDER: Final = Path(__file__).parent / "results"
SUBJECT: Final = ("crates", "python/loadlens")  # what a diagnosis depends on

Row = dict[str, Any]
Key = tuple[object, ...]
Side = Literal["flawed", "twin", "mended"]
Split = Literal["development", "hold-out"]
# Thresholds may be tuned on the first, and are judged on the second, which nobody looks at meanwhile.
FIRST_SEED: Final[Mapping[Split, int]] = {"development": 1, "hold-out": 10_001}


@dataclass(frozen=True, slots=True)
class Task:
    """One service that is to be diagnosed."""

    family: str
    seed: int
    side: Side
    tier: Tier
    budget_s: float

    @property
    def known(self) -> Known:
        """What is started, and what is true of it."""
        known: Known | None = getattr(FAMILIES[self.family].drawn(self.seed), self.side)
        assert known is not None
        return known

    @property
    def key(self) -> Key:
        """What makes it the same task."""
        return self.family, self.seed, self.side, self.tier, self.budget_s

    @property
    def name(self) -> str:
        """The key as the name of a folder: `db-lock-1-twin-C-30s`."""
        return f"{self.family}-{self.seed}-{self.side}-{self.tier}-{self.budget_s:g}s"

    @property
    def place(self) -> str:
        """What people call it: `db-lock/1/twin`."""
        return f"{self.family}/{self.seed}/{self.side}"


def tasks(
    families: Sequence[str], split: Split, seeds: int, tier: Tier, budget_s: float, *, twins: bool
) -> Iterator[Task]:
    """Seed by seed through all families, each with its twin, so that a run that ends early is balanced.

    Those with a remedy, which serve to check what was predicted of it, come after all others of a seed.
    """
    for seed in range(FIRST_SEED[split], FIRST_SEED[split] + seeds):
        for name in mixed(families):
            yield Task(name, seed, "flawed", tier, budget_s)
            if twins and FAMILIES[name].drawn(seed).twin is not None:
                yield Task(name, seed, "twin", tier, budget_s)
        for name in mixed(families):
            if twins and FAMILIES[name].drawn(seed).mended is not None:
                yield Task(name, seed, "mended", tier, budget_s)


def mixed(families: Sequence[str]) -> list[str]:
    """Each kind of family spread evenly over the whole, in its own order."""
    of_kind: dict[str, list[str]] = {}
    for name in families:
        of_kind.setdefault(FAMILIES[name].kind, []).append(name)
    place = {name: (at + 0.5) / len(same) for same in of_kind.values() for at, name in enumerate(same)}
    return sorted(families, key=place.__getitem__)


def split_of(seed: int) -> Split:
    """Which seeds it belongs to."""
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
    """What is kept of a diagnosis.

    Args:
        task: What was diagnosed.
        answer: What was said.
        subject: The commit that measured and said it.
        others_busy: Share of the processors that others used before it began.
        began: When, which tells one measurement of a task from the next.
        lasted: How long its holds, waits and pauses really were, by server; none: nobody asked.
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
        "said": kept(answer.said),
    }


def task_of(found: Mapping[str, Any]) -> Task:
    """What a row is the result of."""
    return Task(found["family"], found["seed"], found["side"], found["tier"], found["budget_s"])


def kept(said: Mapping[str, Any]) -> dict[str, Any]:
    """What of an answer is held against the truth; nothing: there was none."""
    if not said:
        return {}
    return {
        "limit": said.get("limit"),
        "stopped": said.get("stopped_because"),
        "capacity": _figure(said.get("capacity")),
        "brings": said.get("brings"),
        "findings": [_finding(one) for one in said.get("findings", ())],
        "absent": [one["rule"] for one in said.get("absent", ())],
        "not_assessed": [one["rule"] for one in said.get("not_assessed", ())],
    }


def _figure(told: Any) -> Any:
    return (
        {key: told.get(key) for key in ("point", "low", "high", "unit")}
        if isinstance(told, Mapping)
        else None
    )


def _finding(told: Mapping[str, Any]) -> dict[str, Any]:
    evidence = [
        {key: part.get(key) for key in ("signal", "value", "low", "high")}
        for part in told.get("evidence") or ()
        if part.get("value") is not None
    ]
    predictions = [
        {
            "what": one["what"],
            "remedy": one.get("remedy") or "",
            "before": _figure(one["before"]),
            "after": _figure(one["after"]),
        }
        for one in told.get("predictions") or ()
    ]
    names = ("rule", "grade", "statement", "explained_by")
    return {**{key: told.get(key) for key in names}, "evidence": evidence, "predictions": predictions}


# --- files -----------------------------------------------------------------------------------------------


def file_of(split: Split, folder: Path = FOLDER) -> Path:
    """Where the diagnoses of a split are."""
    return folder / f"{split}.jsonl"


def judged_file_of(split: Split, folder: Path = FOLDER) -> Path:
    """Where the same stand as rules judged them again."""
    return folder / f"{split}-judged.jsonl"


def read(file: Path) -> list[Row]:
    """All whole lines; the last diagnosis of a task counts, and families that are gone do not."""
    if not file.exists():
        return []
    found = []
    for line in file.read_text().splitlines():
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:
            continue  # broken off while it was written
    return list({task_of(one).key: one for one in found if one["family"] in FAMILIES}.values())


def append(file: Path, found: Row) -> None:
    """Keep one more."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as data:
        data.write(_line(found))


def replace(file: Path, found: Iterable[Row]) -> None:
    """Write these in place of older ones of the same tasks; all others stay."""
    rows = {task_of(one).key: one for one in [*read(file), *found]}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(map(_line, rows.values())))


def _line(found: Row) -> str:
    return json.dumps(found, sort_keys=True) + "\n"


def latest(split: Split, folder: Path = FOLDER) -> list[Row]:
    """Each task as it was diagnosed last, by the rules that judged that measurement last."""
    measured = {task_of(one).key: one for one in read(file_of(split, folder))}
    judged = {task_of(one).key: one for one in read(judged_file_of(split, folder))}
    current = {key: one for key, one in judged.items() if key not in measured or _same(one, measured[key])}
    return list((measured | current).values())


def _same(judged: Row, measured: Row) -> bool:
    return bool(judged["began"] == measured.get("began"))


def of_latest_budget(found: Sequence[Row]) -> list[Row]:
    """Of each tier the rows of the budget that was run last: answers of other budgets are others."""
    budget = {one["tier"]: one["budget_s"] for one in sorted(found, key=lambda one: one.get("began") or "")}
    return [one for one in found if one["budget_s"] == budget[one["tier"]]]


def subject() -> str:
    """The commit that is asked, and whether it was changed since."""
    commit = _git("rev-parse", "--short=8", "HEAD")
    return commit + ("+changes" if _git("status", "--porcelain", "--untracked-files=no", *SUBJECT) else "")


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()
