"""Names of the testbed in commands, environment and paths, such as `$host`, `$port.metrics` and `$db.url`.

The longest known name after the `$` that ends at a word boundary wins, so that `$scratch/x.db` and
`$replica.jsonl` mean what they seem to mean; `$$` is a dollar. `{{env NAME}}` takes a value from the caller's
environment and is allowed in `env:` only, where no process list shows it.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping

from loadlens.errors import TestbedError
from loadlens.model.topology import Scalar
from loadlens.study.parse.placeholders import as_text

_SECRET = re.compile(r"\{\{\s*env\s+([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
_WORD = re.compile(r"[A-Za-z0-9_]+(?:[.-][A-Za-z0-9_]+)*")


class Names:
    """Value of each name."""

    def __init__(self, values: Mapping[str, Scalar]) -> None:
        self._values = {name: as_text(value) for name, value in values.items()}

    def with_values(self, values: Mapping[str, Scalar]) -> Names:
        """Return the same names and some more; the new ones win."""
        return Names({**self._values, **values})

    def knows_all(self, text: str) -> bool:
        """True if every name in a text has a value; secrets are ignored."""
        try:
            self._fill(_SECRET.sub("", text), "")
        except TestbedError:
            return False
        return True

    def fill(self, text: str, *, where: str) -> str:
        """Return the text with every name replaced.

        Raises:
            TestbedError: A name is unknown.
        """
        if _SECRET.search(text):
            raise TestbedError(
                f"{{{{env ...}}}} in {text!r} would show in the process list",
                where=where,
                hint="put it under env: and let the service read the variable",
            )
        return self._fill(text, where)

    def fill_environment(self, text: str, *, where: str) -> tuple[str, tuple[str, ...]]:
        """Return the value of a variable, and the secrets in it, which must not be written anywhere."""
        secrets: list[str] = []
        filled, last = "", 0
        for match in _SECRET.finditer(text):
            value = os.environ.get(match[1])
            if value is None:
                raise TestbedError(
                    f"the environment has no variable {match[1]}", where=where, hint=f"export {match[1]}=..."
                )
            secrets.append(value)
            filled += self._fill(text[last : match.start()], where) + value
            last = match.end()
        return filled + self._fill(text[last:], where), tuple(secrets)

    def _fill(self, text: str, where: str) -> str:
        pieces, position = [], 0
        while (dollar := text.find("$", position)) >= 0:
            pieces.append(text[position:dollar])
            if text[dollar + 1 : dollar + 2] == "$":
                pieces.append("$")
                position = dollar + 2
                continue
            name = self._name_at(text, dollar + 1)
            if name is None:
                raise self._unknown(text, dollar + 1, where)
            pieces.append(self._values[name])
            position = dollar + 1 + len(name)
        return "".join(pieces) + text[position:]

    def _name_at(self, text: str, start: int) -> str | None:
        """Return the longest known name at this position that ends at a word boundary."""
        fitting = [
            name
            for name in self._values
            if text.startswith(name, start) and not re.match(r"\w", text[start + len(name) :])
        ]
        return max(fitting, key=len, default=None)

    def _unknown(self, text: str, start: int, where: str) -> TestbedError:
        word = _WORD.match(text, start)
        if word is None:
            return TestbedError(f"a single $ in {text!r}", where=where, hint="write $$ for a dollar")
        near = difflib.get_close_matches(word[0], self._values, n=1)
        return TestbedError(
            f"unknown name ${word[0]} in {text!r}",
            where=where,
            hint=f"did you mean ${near[0]}?" if near else f"known: {', '.join(sorted(self._values))}",
        )
