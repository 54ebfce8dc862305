"""Credentials written as literals: found by the names next to them, and hidden in all that is kept or shown.

A value is a credential if its name says so: a header, a field of a query, form or JSON body, a variable, a
param, an option of a command. So is a password in a URL. `{{...}}` is filled in by the engine and holds none.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final
from urllib.parse import quote

HIDDEN: Final = "(hidden)"
# The longest prefix and suffix are bounded, so that no text takes quadratic time.
NAME: Final = (
    r"[\w-]{0,40}?(?:passw|passphrase|pwd|secret|token(?!s)|api[-_]?key|access[-_]?key|private[-_]?key"
    r"|signature|credential)[\w-]{0,40}"
)
_SESSION: Final = r"(?:proxy-)?authorization|(?:set-)?cookie"
HEADER: Final = rf"(?:{_SESSION}|[\w-]{{0,40}}?(?:auth|session)[\w-]{{0,40}}|{NAME})"
SHORTEST: Final = 4  # characters of a value that is looked for by itself: in the output of services
_LONG: Final = 8  # of a number, or of a part of a value
_ECHOED: Final = 6  # of a value that is looked for in words from outside
# Not looked into: names that results are found by, what is read again from the record, and words of its own.
_KEPT: Final = frozenset(("name", "slug", "levels", "report", "claims", "password_env", "token_env"))
_PAIRS: Final = frozenset(("headers", "env", "settings", "params"))  # may be lists of names and values
_VALUES: Final = frozenset(
    ("params", "binds", "env")
)  # the value of a credential may stand there under any name
# Words from outside, which may repeat a credential without its name.
_ECHOES: Final = frozenset(("samples", "reasons", "notes", "leaks", "words", "command"))
_HEADER_FLAG: Final = re.compile(r"-H(?=[\w-])|--header=")
_HOLDS_ANY: Final = re.compile(
    r"passw|passphrase|pwd|secret|token|key|signature|credential|auth|cookie|session|:/|bearer|basic",
    re.IGNORECASE,
)
_ENDS: Final = r"(?![\w-])"
_BEGINS: Final = r"(?<![\w-])"
# Filled in by the engine, a param, hidden already, or a placeholder of help.
_NO_LITERAL: Final = r"(?!\s*(?:\{\{|\$\w|\(hidden\)|NAME=VALUE|\.\.\.))"
_NOT_FILLED: Final = _NO_LITERAL + r"(?![^\n]*\{\{)"


class Hiding:
    """Names whose values are hidden, and values that are.

    Args:
        names: Further names, as `hide:` of a study and `--hide` have them.
        values: Credentials that are known, hidden wherever words come from outside.
    """

    def __init__(self, names: Iterable[str] = (), values: Iterable[str] = ()) -> None:
        self.names = tuple(names)
        own = "".join(f"|{re.escape(name)}" for name in self.names)
        self.field = field = rf"(?:{NAME}{own})"  # a pattern
        header = rf"(?:{HEADER}{own})"
        self._field = re.compile(field, re.IGNORECASE)
        self._header = re.compile(header, re.IGNORECASE)
        self._has_own = re.compile(own[1:], re.IGNORECASE) if own else None
        named = rf"(?:{_SESSION}|{field})"
        value = r"""(?:"[^"\n]*"|'[^'\n]*'|[^\s&;,'"#}\]]+)"""
        self._patterns = [
            re.compile(pattern, re.IGNORECASE | re.DOTALL)
            for pattern in (
                # Of a URL, the password; or a user that is as long as a token. As a path it has one slash.
                r"""((?<=:/)/?[^\s/:@'"]*:)([^\s/'"]+)(?=@)""",
                r"""((?<=:/)/?)([^\s/:@'"]{16,})(?=@)""",
                # JSON, also within quotes of its own.
                rf'("{named}"\s*:\s*"){_NO_LITERAL}((?:\\.|[^"\\])+)',
                rf'(\\"{named}\\"\s*:\s*\\"){_NO_LITERAL}([^"\\]+)',
                rf'("{field}"\s*:\s*)(-?\d[\d.eE+-]*)',
                # A header, to the quote that it is in or to the end of its line; then a field.
                rf"""((['"]){header}[ \t]*:[ \t]*){_NOT_FILLED}((?:(?!\2)[^\n])+)""",
                rf"({_BEGINS}(?:-H)?(?:proxy-)?authorization[ \t]*:[ \t]*){_NOT_FILLED}([^\n]+)",
                rf"({_BEGINS}(?:-H)?(?:set-)?cookie[ \t]*:[ \t]*){_NOT_FILLED}([^\n]+)",
                rf"""({_BEGINS}(?:-H)?{field}:[ \t]*){_NOT_FILLED}([^\s"'][^\n"']*)""",
                rf"({_BEGINS}{field}{_ENDS} ?= ?){_NO_LITERAL}({value})",
                rf"({_BEGINS}{field}{_ENDS} +)('[^'\n]+')",  # of SQL
                rf"({_BEGINS}--?{field}{_ENDS}[ =]){_NO_LITERAL}({value})",
                rf"(\b(?:bearer|basic) +)(?=\S*[\d_~+/=-]){_NO_LITERAL}([\w.~+/=-]{{8,}})",
            )
        ]
        self.values = tuple(sorted({v for v in values if len(v) >= SHORTEST}, key=len, reverse=True))
        self.found: set[str] = set()  # values that were hidden

    def knowing(self, values: Iterable[str]) -> Hiding:
        """Return the same with further values."""
        return Hiding(self.names, (*self.values, *values))

    def is_field(self, name: str) -> bool:
        """True if values of this name are credentials."""
        return self._field.fullmatch(name) is not None

    def is_header(self, name: str) -> bool:
        """True if headers of this name carry credentials."""
        return self._header.fullmatch(name) is not None

    def text(self, text: str) -> str:
        """Return a text without the credentials that it names."""
        if not _HOLDS_ANY.search(text) and not (self._has_own and self._has_own.search(text)):
            return text
        for pattern in self._patterns:
            text = pattern.sub(self._replaced, text)
        return text

    def echo(self, text: str) -> str:
        """Return words from outside, also without the credentials that are known by value."""
        for value in self.values:
            text = text if len(value) < _ECHOED else text.replace(value, HIDDEN)
        return self.text(text)

    def arguments(self, words: Sequence[str]) -> list[str]:
        """Return a command line; the word after an option such as `--password` is hidden too."""
        hidden: list[str] = []
        for before, word in zip(("", *words), words, strict=False):
            flag = _HEADER_FLAG.match(word)
            if before in ("-H", "--header"):
                hidden.append(self._header_line(word))
            elif flag is not None:
                hidden.append(flag[0] + self._header_line(word[flag.end() :]))
            elif before.startswith("-") and self.is_field(before.lstrip("-")) and not word.startswith("-"):
                hidden.append(self._hide(word))
            else:
                hidden.append(self.echo(word))
        return hidden

    def content(self, content: Any) -> Any:
        """Return plain data without credentials: mappings, lists and scalars as JSON has them."""
        self.found |= self.values_in(content)
        return self._walk(content, "", "")

    def values_in(self, content: Any) -> set[str]:
        """Return the literal credentials in plain data, also encoded, each at least SHORTEST long."""
        before, self.found = self.found, set()
        self._walk(content, "", "")
        values, self.found = self.found, before
        return forms_of(values)

    def _walk(self, content: Any, key: str, above: str) -> Any:
        if key in _KEPT and not (key == "name" and above == "checks"):
            return content
        if isinstance(content, Mapping):
            if (place := str(content.get("path") or content.get("name") or "")) and "equals" in content:
                content = self._check(content, place)
            if content.get("kind") == "json" and "value" in content:
                content = {**content, "value": self._body(content["value"])}
            return {name: self._under(str(name), item, key) for name, item in content.items()}
        if isinstance(content, (list, tuple)):
            if key in _PAIRS and all(_is_pair(item) for item in content):
                return [[name, self._pair(name, value, key)] for name, value in content]
            if key == "command":
                return self.arguments([str(word) for word in content])
            return [self._walk(item, key, above) for item in content]
        if isinstance(content, str):
            if key in _VALUES and content in self.found:
                return HIDDEN
            return self.echo(content) if key in _ECHOES else self.text(content)
        return content

    def _under(self, name: str, item: Any, key: str) -> Any:
        is_secret = self.is_header(name) if key == "headers" else self.is_field(name)
        if not is_secret or name in _KEPT:
            inner = name if key not in _VALUES else key
            return self._walk(item, inner, key)
        return self._hide_all(item)

    def _pair(self, name: str, value: str, key: str) -> str:
        is_secret = self.is_header(name) if key == "headers" else self.is_field(name)
        shown: str = self._hide(value) if is_secret else self._walk(value, key, "")
        return shown

    def _header_line(self, line: str) -> str:
        name, colon, value = line.partition(":")
        if not colon or not self.is_header(name.strip()):
            return self.echo(line)
        bare = value.lstrip()
        return f"{name}:{value[: len(value) - len(bare)]}{self._hide(bare)}"

    def _check(self, check: Mapping[str, Any], place: str) -> Mapping[str, Any]:
        """A check that compares a field or header of this name with a literal."""
        last = re.split(r"[.\[\]\"']+", place.rstrip("]\"'"))[-1]
        is_secret = self.is_header(place) or self.is_field(last)
        return {**check, "equals": self._hide_all(check["equals"])} if is_secret else check

    def _body(self, content: Any) -> Any:
        """Hide the fields of a JSON body that are credentials."""
        if isinstance(content, Mapping):
            return {
                name: self._hide_all(item) if self.is_field(str(name)) else self._body(item)
                for name, item in content.items()
            }
        if isinstance(content, (list, tuple)):
            return [self._body(item) for item in content]
        return self.text(content) if isinstance(content, str) else content

    def _hide_all(self, item: Any) -> Any:
        """Hide a value, or each in a list; a mapping is looked into."""
        if isinstance(item, (list, tuple)):
            return [self._hide_all(part) for part in item]
        if isinstance(item, Mapping):
            return self._body(item)
        return item if item is None or isinstance(item, bool) else self._hide(item)

    def _hide(self, value: Any) -> Any:
        text = str(value)
        if "{{" in text or text in ("", HIDDEN):
            return value
        self.found.add(text)
        return HIDDEN

    def _replaced(self, match: re.Match[str]) -> str:
        value = match[match.re.groups]
        self.found.add(value.strip("'\""))
        return f"{match[1]}{HIDDEN}"


def forms_of(values: Iterable[str]) -> set[str]:
    """Return values as they may appear in logs: whole, without their scheme, encoded for a URL, in Base64."""
    forms: set[str] = set()
    for value in values:
        scheme, _, bare = value.partition(" ")
        for form in {value, bare.strip() if scheme.lower() in ("bearer", "basic", "token") else value}:
            forms |= {form, quote(form, safe=""), base64.b64encode(form.encode()).decode()}
        forms |= {part for part in re.split(r"[;,=\s]+", value) if len(part) >= _LONG}  # of a cookie
    return {form for form in forms if len(form) >= (_LONG if form.isdecimal() else SHORTEST)}


def names_in(words: Sequence[str]) -> tuple[str, ...]:
    """Return the names that `--hide` has on a command line, which may not be readable otherwise."""
    after = [word for before, word in pairwise(words) if before == "--hide"]
    joined = [word.partition("=")[2] for word in words if word.startswith("--hide=")]
    return tuple(name for text in (*after, *joined) for name in text.split(",") if name)


def _is_pair(item: Any) -> bool:
    return isinstance(item, (list, tuple)) and len(item) == 2 and all(isinstance(part, str) for part in item)
