"""A planned study as plain data (effective.yaml), and what must not reach the disk taken out."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import Any

from loadlens.model.study import Case, PlannedTrial, Study
from loadlens.record import layout

HIDDEN = "(hidden)"
SECRET_HEADERS = frozenset(
    {
        "authorization",
        "proxy-authorization",
        "cookie",
        "x-api-key",
        "api-key",
        "x-auth-token",
        "x-access-token",
    }
)
_HEADER_ARGUMENT = re.compile(
    rf"((?:{'|'.join(sorted(SECRET_HEADERS))})\s*:\s*)(?!.*\{{\{{).+", re.IGNORECASE | re.DOTALL
)
_PAIRS = frozenset({"params", "env", "binds", "where", "of", "to"})  # tuples of pairs that read as mappings
EFFECTIVE_HEAD = "# The study as planned, every name filled, in the JSON part of YAML 1.2.\n"


def study_as_plain(study: Study, trials: Sequence[PlannedTrial]) -> dict[str, Any]:
    """All that analysis needs to know of a study, as mappings, lists and scalars."""
    content = {
        field.name: _plain(getattr(study, field.name), field.name, Path(study.folder))
        for field in fields(study)
        if field.name not in ("text", "folder", "cases")
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
    """One case; `levels` maps each factor to its level's name, `binds` each factor to what the level sets."""
    content: dict[str, Any] = _plain(case, "case", folder)
    content["levels"] = {level.factor: level.name for level in case.levels}
    content["binds"] = {level.factor: dict(level.binds) for level in case.levels}
    return content


def case_summary(case: Mapping[str, Any]) -> dict[str, Any]:
    """What trial.json keeps of its case."""
    kept = ("slug", "name", "experiment", "levels", "params", "held_out", "needs_cores", "fresh")
    return {name: case[name] for name in kept}


def effective_text(content: Mapping[str, Any]) -> str:
    """effective.yaml: the JSON part of YAML 1.2, so that it reads fast and comes back exactly."""
    return EFFECTIVE_HEAD + json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def parse_effective(text: str) -> dict[str, Any]:
    """The content of effective.yaml; ValueError when it is not what `effective_text` writes."""
    content = json.loads(text.removeprefix(EFFECTIVE_HEAD))
    if not isinstance(content, dict):
        raise ValueError("a mapping is expected")
    return content


def without_secrets(content: Any) -> Any:
    """The same data with the literal values of headers that carry credentials hidden.

    A value that is filled in the engine (`{{env NAME}}`) holds no secret and stays.
    """
    if isinstance(content, Mapping):
        return {
            name: [_hide_header(pair) for pair in value] if name == "headers" else without_secrets(value)
            for name, value in content.items()
        }
    if isinstance(content, list):
        return [without_secrets(item) for item in content]
    return content


def argument_without_secrets(argument: str) -> str:
    """A command line argument, the value of a header with credentials in it hidden."""
    return _HEADER_ARGUMENT.sub(lambda found: f"{found[1]}{HIDDEN}", argument)


def _hide_header(pair: Sequence[str]) -> list[str]:
    name, value = pair
    literal = "{{" not in value
    return [name, HIDDEN if literal and name.lower() in SECRET_HEADERS else value]


def _plain(value: Any, name: str, folder: Path) -> Any:
    """Dataclasses, mappings and tuples as JSON holds them; paths below the study's folder become relative."""
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


def end_as_plain(end: Any) -> dict[str, Any]:
    """A flat dataclass of plain values as a mapping with lists in place of tuples."""
    plain: dict[str, Any] = json.loads(json.dumps(asdict(end), allow_nan=False))
    return plain
