"""`$names` -> values. A name that is a whole value keeps its type; in a text it becomes text.

In what the testbed runs, its own names stay open and every other dollar is doubled, so that what the
testbed sees is unambiguous: `$port` is its name, `$$` a dollar.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, TypeVar

from loadlens.model.topology import Scalar
from loadlens.study.definition import Faults, Later, Name, Place, Text
from loadlens.units import UnitError

T = TypeVar("T")


class Filler:
    """Fills values of one case; notes what does not fit.

    Args:
        values: Every name that has a value here.
        faults: Where faults go.
        scope: The experiment, for messages.
        calibrated: Names that get their values when the study runs.
    """

    def __init__(
        self, values: Mapping[str, Scalar], faults: Faults, scope: str, calibrated: Collection[str] = ()
    ) -> None:
        self._values = values
        self._open = (*_TESTBED_NAMES, *calibrated)
        self._faults = faults
        self._scope = scope
        self.used: set[str] = set()  # names that were looked up

    def value(self, later: Later[T] | None, default: T) -> T:
        """The filled value; the default when there is none, and as a stand-in after a fault."""
        if later is None:
            return default
        try:
            return later.convert(self._filled(later.written, later))
        except UnitError as error:
            self._faults.add(error.message + self._origin(later), later.place, error.example)
            return default

    def optional(self, later: Later[T] | None) -> T | None:
        """The filled value, or none when the study says nothing."""
        return None if later is None else self.value(later, None)

    def fault(self, message: str, place: Place, hint: str | None = None) -> None:
        """Note a fault of what the filled values mean together."""
        self._faults.add(message, place, hint)

    def _origin(self, later: Later[Any]) -> str:
        """Name the placeholders whose value does not fit."""
        names = sorted(set(_names_in(later.written)))
        return f" (from {', '.join(f'${name}' for name in names)} in {self._scope})" if names else ""

    def _filled(self, written: Any, later: Later[Any]) -> Any:
        if isinstance(written, Text):
            whole = written.whole_name
            if whole is not None and whole.text in self._values and not later.is_testbed:
                self.used.add(whole.text)
                return self._values[whole.text]
            return "".join(self._piece(piece, later) for piece in written.pieces)
        if isinstance(written, str):
            return self._literal(written, later)
        if isinstance(written, list):
            return [self._filled(item, later) for item in written]
        if isinstance(written, dict):
            return {key: self._filled(item, later) for key, item in written.items()}
        return written

    def _piece(self, piece: str | Name, later: Later[Any]) -> str:
        if isinstance(piece, str):
            return self._literal(piece, later)
        if piece.text in self._values:
            self.used.add(piece.text)
            return self._literal(as_text(self._values[piece.text]), later)
        if not later.is_testbed:
            hint = f"add it to params, or to the factors of {self._scope}"
            self._faults.add(f"${piece.text} has no value in {self._scope}", later.place, hint)
        elif "." not in piece.text and piece.text not in self._open:
            hint = f"add it to params: services run in every experiment, {self._scope} too"
            self._faults.add(f"${piece.text} has no value in {self._scope}", later.place, hint)
        return f"${piece.text}"

    def _literal(self, text: str, later: Later[Any]) -> str:
        return text.replace("$", "$$") if later.is_testbed else text


_TESTBED_NAMES = ("host", "port", "scratch", "replica")


def as_text(value: Scalar) -> str:
    """A value inside a text: truth values as YAML writes them, whole floats without a point."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _names_in(written: Any) -> list[str]:
    if isinstance(written, Text):
        return [piece.text for piece in written.pieces if isinstance(piece, Name)]
    if isinstance(written, list):
        return [name for item in written for name in _names_in(item)]
    if isinstance(written, dict):
        return [name for item in written.values() for name in _names_in(item)]
    return []
