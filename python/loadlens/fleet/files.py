"""Files that a plan names by path and digest: feeds, bodies, due times, certificates and keys."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from loadlens.errors import UsageError
from loadlens.model.workload import Plan

Part = TypeVar("Part")


def files_of(plan: Plan) -> dict[str, str]:
    """Return the path of each file by its digest."""
    paths: dict[str, str] = {}
    _collect(plan, paths)
    return paths


def placed(plan: Plan, folder: str) -> Plan:
    """Return the plan with its files in another folder, each named by its digest."""
    return _placed(plan, folder)


def refuse_keys(plan: Plan) -> None:
    """Raise UsageError if a private key would be sent."""
    for stream in plan.streams:
        tls = stream.target.tls
        if tls is not None and tls.certificate is not None:
            key = tls.key or tls.certificate
            raise UsageError(
                "a client's private key is not sent to a fleet without encryption",
                where=key.path,
                hint="tls://… as the fleet",
            )


def _collect(part: Any, paths: dict[str, str]) -> None:
    if isinstance(part, tuple):
        for each in part:
            _collect(each, paths)
    elif is_dataclass(part):
        path, digest = getattr(part, "path", None), getattr(part, "digest", None)
        if isinstance(path, str) and isinstance(digest, str):
            paths[digest] = path
        for each in fields(part):
            _collect(getattr(part, each.name), paths)


def _placed(part: Part, folder: str) -> Part:
    if isinstance(part, tuple):
        return type(part)(_placed(each, folder) for each in part)
    if not is_dataclass(part) or isinstance(part, type):
        return part
    changes = {each.name: _placed(getattr(part, each.name), folder) for each in fields(part)}
    if isinstance(getattr(part, "path", None), str) and isinstance(getattr(part, "digest", None), str):
        changes["path"] = str(Path(folder) / str(changes["digest"]))
    return replace(part, **changes)
