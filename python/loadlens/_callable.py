"""Packages that are verbs of Python, too: `loadlens.run` holds the runner, and runs a study when called."""

from __future__ import annotations

import sys
from types import ModuleType

# As in `typing`, which a short command does not need.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from inspect import Signature
    from typing import Any


class _Verb(ModuleType):
    """A package that calls the verb of its name, and shows its help."""

    @property
    def _verb(self) -> Any:
        from loadlens.api import verbs

        return getattr(verbs, self.__name__.rpartition(".")[2])

    @property
    def __doc__(self) -> str | None:  # type: ignore[override]
        return str(self._verb.__doc__)

    @property
    def __signature__(self) -> Signature:
        import inspect

        return inspect.signature(self._verb)

    def __call__(self, *targets: object, **flags: object) -> object:
        return self._verb(*targets, **flags)


def make_callable(package: str) -> None:
    """Let a package be called like the verb that it hides in `loadlens` once it is imported."""
    sys.modules[package].__class__ = _Verb
