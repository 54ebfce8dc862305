"""Machine and software of a run, and their changes during the run."""

from __future__ import annotations

import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from loadlens.machine import inventory

ASK_WITHIN_S = 10.0


def of_machine(study_folder: Path | None = None) -> dict[str, Any]:
    """Return the facts that stay the same through a run; the command is as typed, if one was.

    Args:
        study_folder: Its version control state is included.
    """
    from loadlens import __version__, engine
    from loadlens.machine import calibration

    made = calibration.of_this_machine()
    return {
        "machine": inventory.facts(),
        "limits": inventory.limits(),
        "software": {
            "loadlens": __version__,
            "engine": engine.version(),
            "python": platform.python_version(),
            "python_implementation": platform.python_implementation(),
            "libc": " ".join(platform.libc_ver()).strip() or None,
        },
        "calibration": None if made is None else asdict(made),
        "study_folder": None if study_folder is None else _versioned(study_folder),
        "command": _command(sys.argv),
    }


def _command(typed: Sequence[str]) -> list[str]:
    """Return the command as typed, `loadlens` for `python -m loadlens`; empty where Python calls a verb."""
    program = Path(typed[0])
    name = program.parent.name if program.name == "__main__.py" else program.name
    return ["loadlens", *typed[1:]] if name == "loadlens" else []


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """Return every difference between two environments: `machine.governor` -> [before, now]."""
    changed: dict[str, Any] = {}
    for group in ("machine", "limits", "software"):
        was, is_now = before.get(group) or {}, now.get(group) or {}
        for name in sorted({*was, *is_now}):
            if was.get(name) != is_now.get(name):
                changed[f"{group}.{name}"] = [was.get(name), is_now.get(name)]
    return changed


def changing() -> dict[str, Any]:
    """Return the facts that may change between trials, under the same keys as in `of_machine`."""
    return {"machine": inventory.changing_facts(), "limits": inventory.limits()}


def _versioned(folder: Path) -> dict[str, Any]:
    """Return the study's folder, its commit, and the files that differ from the commit."""
    commit = _git(folder, "rev-parse", "HEAD")
    changed = _git(folder, "status", "--porcelain", "--", ".") if commit else None
    return {
        "path": str(folder),
        "commit": commit or None,
        "changed_files": None if changed is None else [line[3:] for line in changed.splitlines()][:50],
    }


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            timeout=ASK_WITHIN_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.rstrip("\n") if done.returncode == 0 else None
