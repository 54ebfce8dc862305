"""Commands that a page may begin: a study again, or the rest of one, as the command of its record says."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Final

from loadlens.cli.options import filled
from loadlens.cli.run import RunOptions, command_of
from loadlens.credentials import HIDDEN
from loadlens.errors import UsageError
from loadlens.record import PlanOfRun, new_run_path, read_plan_of_run

FAILS_WITHIN_S: Final = 3.0  # a refusal comes sooner
# Signals are blocked in the server: what it begins must not inherit that.
UNBLOCKED: Final = (
    "import os, signal, sys; signal.pthread_sigmask(signal.SIG_SETMASK, ()); "
    "os.execv(sys.executable, [sys.executable, '-m', *sys.argv[1:]])"
)


def command(record: Path, *, is_resumed: bool) -> tuple[list[str], Path]:
    """Return the command that begins a study again, or goes on with it, and the record that it writes.

    Raises:
        UsageError: The command of the record cannot be given again.
    """
    held = read_plan_of_run(record)
    given, folder = _options(held)
    out = record if is_resumed else new_run_path(record.parent, str(held.study["name"]))
    typed = Path(given.study)
    study = folder / typed.name if typed.suffix in (".yaml", ".yml") else folder
    given = replace(given, study=study, resume=is_resumed, out=(), ui=False, quiet=True)
    return command_of(given, out, ()), out


def _options(held: PlanOfRun) -> tuple[RunOptions, Path]:
    from typer.main import get_command

    from loadlens.cli import app

    words = [str(word) for word in held.environment.get("command") or ()]
    folder = (held.environment.get("study_folder") or {}).get("path")
    if words[1:2] != ["run"] or folder is None:
        raise UsageError("the record is not one of a study file", hint="the command that made it, in a shell")
    if any(HIDDEN in word for word in words):
        raise UsageError("the command holds a credential, which no record keeps", hint="run it in a shell")
    if "-" in words:
        raise UsageError("the study came from standard input", hint="a study file")
    run = get_command(app).commands["run"]  # type: ignore[attr-defined]
    context = run.make_context("run", words[2:], resilient_parsing=True)
    return filled(RunOptions, context.params), Path(str(folder))


def begin(record: Path, *, is_resumed: bool) -> Path:
    """Begin a study again, or go on with it, in a process that outlives the server; return its record.

    Raises:
        UsageError: The command cannot be given again, or refuses at once.
    """
    words, out = command(record, is_resumed=is_resumed)
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [sys.executable, "-c", UNBLOCKED, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
        )
        try:
            code = process.wait(FAILS_WITHIN_S)
        except subprocess.TimeoutExpired:
            return out
        if code:
            errors.seek(0)
            lines = errors.read().decode(errors="replace").strip().splitlines()
            raise UsageError(lines[0].removeprefix("loadlens: ") if lines else f"it ended with status {code}")
    return out
