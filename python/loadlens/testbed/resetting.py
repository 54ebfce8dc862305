"""Removing files before a trial, inside the testbed's own folders only."""

from __future__ import annotations

import glob
import shutil
from collections.abc import Iterable
from pathlib import Path

from loadlens.errors import TestbedError
from loadlens.testbed.names import Names


def remove_files(
    patterns: Iterable[str], names: Names, *, allowed: tuple[Path, ...], base: Path
) -> tuple[Path, ...]:
    """Remove files and folders; what was removed.

    Args:
        patterns: Paths or shell patterns with names, relative to `base`. One that matches nothing is fine:
            what is asked for is that the file is not there.
        allowed: Folders below which files may be removed.

    Raises:
        TestbedError: A path leads outside, or cannot be removed.
    """
    removed = []
    for pattern in patterns:
        filled = names.fill(pattern, where="reset.files")
        for found in sorted(glob.glob(str(base / filled), include_hidden=True)):
            path = Path(found)
            place = path.parent.resolve() / path.name  # a link is removed, not what it points at
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
