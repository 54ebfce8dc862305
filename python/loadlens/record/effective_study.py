"""A planned study as plain data (effective.yaml)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from loadlens.errors import RecordError
from loadlens.model.study import Case, PlannedTrial, Study
from loadlens.model.workload import KEPT_ROWS
from loadlens.record import layout

_PAIRS = frozenset({"params", "env", "binds", "where", "of", "to"})  # tuples of pairs that read as mappings
EFFECTIVE_HEAD = "# The study as planned, every name filled, in the JSON part of YAML 1.2.\n"


def study_as_plain(study: Study, trials: Sequence[PlannedTrial]) -> dict[str, Any]:
    """Return a planned study as mappings, lists and scalars."""
    content = {
        field.name: _plain(getattr(study, field.name), field.name, Path(study.folder))
        for field in fields(study)
        if field.name not in ("text", "folder", "cases")
        and (field.name != "hide" or study.hide)
        and (field.name != "fleet" or study.fleet)
        and (field.name != "samples" or study.samples != KEPT_ROWS)
    }
    return {
        "schema_version": layout.SCHEMA_VERSION,
        **content,
        "cases": [case_as_plain(case, Path(study.folder)) for case in study.cases],
        "trials": [
            {"case": t.case.slug, "block": t.block, "position": t.position, "seed": t.seed} for t in trials
        ],
    }


def case_as_plain(case: Case, folder: Path) -> dict[str, Any]:
    """Return a case; `levels` maps each factor to its level's name, `binds` to the values that it sets."""
    content: dict[str, Any] = _plain(case, "case", folder)
    content["levels"] = {level.factor: level.name for level in case.levels}
    content["binds"] = {level.factor: dict(level.binds) for level in case.levels}
    return content


def case_summary(case: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a case that trial.json keeps."""
    kept = ("slug", "name", "experiment", "levels", "params", "held_out", "needs_cores", "fresh")
    return {name: case[name] for name in kept}


def effective_text(content: Mapping[str, Any]) -> str:
    """Return effective.yaml in the JSON part of YAML 1.2, which is read fast and without loss."""
    return EFFECTIVE_HEAD + json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def read_effective(raw: bytes, path: Path) -> dict[str, Any]:
    """Return the content of effective.yaml, of which `path` says where it is.

    Raises:
        RecordError: It is damaged, or newer than this Loadlens reads.
    """
    try:
        content = _parsed(raw.decode())
    except ValueError as fault:
        raise RecordError(f"damaged: {fault}", where=str(path)) from fault
    layout.version_of(content, path)
    return content


def _parsed(text: str) -> dict[str, Any]:
    """Return the content of effective.yaml; raise ValueError unless `effective_text` can have written it."""
    content = json.loads(text.removeprefix(EFFECTIVE_HEAD))
    if not isinstance(content, dict):
        raise ValueError("a mapping is expected")
    return content


def _plain(value: Any, name: str, folder: Path) -> Any:
    """Convert dataclasses, mappings and tuples for JSON; paths below the study's folder become relative."""
    if is_dataclass(value) and not isinstance(value, type):
        content = {f.name: _plain(getattr(value, f.name), f.name, folder) for f in fields(value)}
        kind = type(value).__name__
        return {"kind": kind.lower(), **content} if kind in ("Closed", "Open") else content
    if isinstance(value, Mapping):
        return {str(key): _plain(item, str(key), folder) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        if name in _PAIRS:
            return {key: _plain(item, key, folder) for key, item in value}
        return [_plain(item, "", folder) for item in value]
    if isinstance(value, str) and name in ("dir", "path", "file") and value.startswith(f"{folder}/"):
        return value[len(str(folder)) + 1 :]
    return value
