"""Verbs that need the extra `lab`, and the line that says so where it is not installed."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib.util import find_spec
from typing import Any, Final

from loadlens.errors import UsageError

# Packages of the extra `lab` of pyproject.toml, as they are imported.
PACKAGES: Final = ("jinja2", "numpy", "pg8000", "polars", "prometheus_client", "scipy", "vl_convert")
INSTALL: Final = "pip install 'loadlens[lab]'"


def needing_lab(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command of a verb with a check that its packages are installed."""

    @wraps(command)
    def checked(**given: Any) -> None:
        if any(find_spec(name) is None for name in PACKAGES):
            raise UsageError(f"{command.__name__} needs more packages: {INSTALL}")
        command(**given)

    return checked
