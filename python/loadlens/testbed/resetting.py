"""Putting data back before a trial: files are removed, a command or SQL is run, and the outcome verified.

Files are removed inside the testbed's own folders only.
"""

from __future__ import annotations

import glob
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from loadlens.errors import TestbedError
from loadlens.model.topology import Reset
from loadlens.testbed.commands import COMMAND_WITHIN_S, arguments
from loadlens.testbed.keeper import Keeper
from loadlens.testbed.replica_names import Names
from loadlens.testbed.replicas import Replica, Surroundings


def replica_for(reset: Reset, replicas: Mapping[str, tuple[Replica, ...]]) -> Replica:
    """The replica in whose folder and environment the data are put back.

    Args:
        replicas: Those that run, by service.

    Raises:
        TestbedError: None of them fits.
    """
    needs_sql = reset.sql is not None or reset.verify_sql is not None
    named = [reset.service] if reset.service else list(replicas)
    fitting = [name for name in named if name in replicas and (not needs_sql or replicas[name][0].layout.sql)]
    if not fitting:
        what = "a database for its SQL" if needs_sql else "a service that runs"
        raise TestbedError(
            f"the reset needs {what}, got {reset.service or 'none'}",
            where="reset.service",
            hint="service: a service with use: postgres" if needs_sql else "the name of a service",
        )
    return replicas[fitting[0]][0]


def put_back(reset: Reset, replica: Replica, keeper: Keeper, around: Surroundings) -> tuple[Path, ...]:
    """Remove files, run the command and verify; return the removed paths.

    Raises:
        TestbedError: A step failed; the trial that would follow must not count.
    """

    def step(name: str, argv: tuple[str, ...]) -> str:
        return _run_step(f"{replica.name}.reset.{name}", argv, replica, keeper, around.logs)

    folder = replica.command.cwd
    removed = remove_files(reset.files, replica.names, allowed=(around.scratch, folder), base=folder)
    if reset.run is not None:
        step("run", arguments(reset.run, replica.names, where="reset.run"))
    if reset.sql is not None:
        step("sql", (*replica.layout.sql, reset.sql))
    if reset.verify is not None:
        step("verify", arguments(reset.verify, replica.names, where="reset.verify"))
    if reset.verify_sql is not None:
        answer = step("verify_sql", (*replica.layout.sql, reset.verify_sql))
        if answer.strip() not in ("t", "true", "1"):
            raise TestbedError(
                f"after the reset the data are not as expected: {reset.verify_sql!r} "
                f"answered {answer.strip()[:200]!r}",
                where="reset.verify_sql",
                hint="write a query that returns true, such as select count(*) = 0 from items",
            )
    return removed


def _run_step(label: str, argv: tuple[str, ...], replica: Replica, keeper: Keeper, logs: Path) -> str:
    """Run one command to its end in the replica's folder and environment, and return its output."""
    log = logs / f"{label}.log"
    before = log.stat().st_size if log.exists() else 0  # output of earlier trials
    keeper.run(label, replace(replica.command, argv=argv, log=log), within_s=COMMAND_WITHIN_S)
    with log.open("rb") as output:
        output.seek(before)
        return output.read().decode(errors="replace")


def remove_files(
    patterns: Iterable[str], names: Names, *, allowed: tuple[Path, ...], base: Path
) -> tuple[Path, ...]:
    """Remove files and folders, and return the removed paths.

    Args:
        patterns: Paths or shell patterns with names, relative to `base`. A pattern may match
            nothing: the file is then absent, as wanted.
        allowed: Folders below which files may be removed.

    Raises:
        TestbedError: A path leads outside, or cannot be removed.
    """
    removed = []
    for pattern in patterns:
        filled = names.fill(pattern, where="reset.files")
        pattern_here = str(Path(glob.escape(str(base))) / filled)
        for match in sorted(glob.glob(pattern_here, include_hidden=True)):
            path = Path(match)
            place = path.parent.resolve() / path.name  # a link is removed, not its target
            if not any(place.is_relative_to(folder.resolve()) and place != folder for folder in allowed):
                raise TestbedError(
                    f"reset would remove {place}, outside the scratch and the service's folder",
                    where="reset.files",
                    hint="use $scratch/...",
                )
            try:
                if place.is_dir() and not place.is_symlink():
                    shutil.rmtree(place)
                else:
                    place.unlink()
            except OSError as error:
                raise TestbedError(
                    f"reset cannot remove {place}: {error.strerror}", where="reset.files"
                ) from error
            removed.append(place)
    return tuple(removed)
