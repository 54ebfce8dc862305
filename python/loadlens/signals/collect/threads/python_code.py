"""Frames of Python: which code is a library's, and how a module is called."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Final

from loadlens.model.stacks import Frame

# Installed packages and the standard library, by the folders that every layout has.
_LIBRARIES: Final = re.compile(
    r"/lib(?:64)?/(?:python|pypy)\d[\d.]*(?:t|zip)?/(?:(?:site|dist)-packages/)?|/(?:site|dist)-packages/"
)


def frame_of(function: str, file: str, line: int) -> Frame:
    """Return a frame of Python."""
    return Frame(function, module_of(file), file, line, not is_library(file))


def is_library(file: str) -> bool:
    """True for packages, the standard library, and code that is in no Python file."""
    return not file.endswith(".py") or file.startswith("<") or _LIBRARIES.search(file) is not None


def module_of(file: str) -> str:
    """Return the dotted name of a module: `requests.api`."""
    within = _LIBRARIES.split(file)
    name = within[-1] if len(within) > 1 else PurePosixPath(file).name
    return name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
