"""Diagnoses on disk: one JSON object a line, so that a run that is broken off goes on where it was."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from catalogue.asking import Answer
from catalogue.families import FAMILIES
from catalogue.family import Known, Tier
from catalogue.running import ROOT

FOLDER: Final = Path(__file__).parent / "results"
SUBJECT: Final = ("crates", "python/loadlens")  # what a diagnosis depends on

Split = Literal["development", "hold-out"]
# Thresholds may be tuned on the first, and are judged on the second, which nobody looks at meanwhile.
FIRST_SEED: Final[Mapping[Split, int]] = {"development": 1, "hold-out": 10_001}


@dataclass(frozen=True, slots=True)
class Task:
    """One service that is to be diagnosed."""

    family: str
    seed: int
    side: Literal["flawed", "twin"]
    tier: Tier
    budget_s: float

    @property
    def known(self) -> Known:
        """What is started, and what is true of it."""
        drawn = FAMILIES[self.family].drawn(self.seed)
        known = drawn.flawed if self.side == "flawed" else drawn.twin
        assert known is not None
        return known

    @property
    def key(self) -> tuple[object, ...]:
        """What makes it the same task."""
        return self.family, self.seed, self.side, self.tier, self.budget_s


def tasks(
    families: list[str], split: Split, seeds: int, tier: Tier, budget_s: float, *, twins: bool
) -> Iterator[Task]:
    """Seed by seed through all families, so that a run that ends early has seen each of them."""
    for seed in range(FIRST_SEED[split], FIRST_SEED[split] + seeds):
        for name in families:
            yield Task(name, seed, "flawed", tier, budget_s)
            if twins and FAMILIES[name].drawn(seed).twin is not None:
                yield Task(name, seed, "twin", tier, budget_s)


def row(task: Task, answer: Answer, subject: str, others_busy: float) -> dict[str, Any]:
    """What is kept of a diagnosis; others used that share of the processors before it began."""
    said = answer.said
    kept = {
        "limit": said.get("limit"),
        "capacity": _figure(said.get("capacity")),
        "findings": [_finding(one) for one in said.get("findings", ())],
        "absent": [one["rule"] for one in said.get("absent", ())],
        "not_assessed": [one["rule"] for one in said.get("not_assessed", ())],
    }
    return {
        "family": task.family,
        "seed": task.seed,
        "side": task.side,
        "tier": task.tier,
        "budget_s": task.budget_s,
        "subject": subject,
        "others_busy": round(others_busy, 3),
        "seconds": round(answer.seconds, 1),
        "failure": answer.failure,
        "said": kept if said else {},
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
    kept = {key: told.get(key) for key in ("rule", "grade", "statement", "explained_by")}
    return {**kept, "evidence": evidence}


def file_of(split: Split, folder: Path = FOLDER) -> Path:
    """Where the diagnoses of a split are."""
    return folder / f"{split}.jsonl"


def read(file: Path) -> list[dict[str, Any]]:
    """All whole lines; the last diagnosis of a task counts, and families that are gone do not."""
    if not file.exists():
        return []
    latest: dict[tuple[object, ...], dict[str, Any]] = {}
    for line in file.read_text().splitlines():
        try:
            found = json.loads(line)
        except json.JSONDecodeError:
            continue  # broken off while it was written
        if found["family"] in FAMILIES:
            latest[tuple(found[key] for key in ("family", "seed", "side", "tier", "budget_s"))] = found
    return list(latest.values())


def subject() -> str:
    """The commit that is asked, and whether it was changed since."""
    commit = _git("rev-parse", "--short=8", "HEAD")
    return commit + ("+changes" if _git("status", "--porcelain", "--untracked-files=no", *SUBJECT) else "")


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()
