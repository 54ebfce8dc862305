"""The study file as a record keeps it: every literal credential is replaced, everything else is as read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from loadlens.credentials import HIDDEN, Hiding

_READ_AGAIN: Final = frozenset(("report", "claims", "objectives"))  # from the record, by the analysis
_BODIES: Final = frozenset(("json", "body"))
_FACTORS: Final = frozenset(("factors", "hold_out"))
_PARAM: Final = re.compile(r"\$([A-Za-z_]\w*)")


@dataclass(frozen=True, slots=True)
class _Scalar:
    """A value of the file: its place in the text, the keys that it is below, its anchor."""

    begin: int
    end: int
    value: str
    keys: tuple[str, ...]
    anchor: int  # its number; 0: none
    is_alias: bool = False
    is_item: bool = False  # of a list

    @property
    def is_kept(self) -> bool:
        """True for names that results are found by, and for what is read again from the record."""
        if not self.keys or self.keys[0] in _READ_AGAIN:
            return True
        is_named = self.keys[-1] == "name" or self.keys[-2:-1] == ("extract",)
        return is_named and not _BODIES.intersection(self.keys)

    def is_secret(self, hiding: Hiding) -> bool:
        """True if the key says that the value is a credential."""
        if self.is_kept:
            return False
        *above, key = self.keys
        if self.is_item and above and above[-1] in _FACTORS:
            return False  # the names of levels
        if above and above[-1] == "headers":
            return hiding.is_header(key)
        return hiding.is_field(key)


def without_credentials(text: str, hiding: Hiding) -> str:
    """Return the text of a study, which can be read as YAML, without its literal credentials."""
    scalars = list(_scalars(text))
    secret = [each for each in scalars if each.is_secret(hiding)]
    anchors = {each.anchor for each in secret if each.is_alias}
    params = {name for each in secret for name in _PARAM.findall(each.value)}
    parts, last = [], 0
    for each in scalars:
        if each.is_alias:
            continue
        is_param = len(each.keys) > 1 and each.keys[-1] in params and each.keys[-2] != "headers"
        is_secret = each in secret or is_param or (each.anchor != 0 and each.anchor in anchors)
        is_secret = is_secret or each.value in hiding.values
        value = _hidden(each.value, hiding) if is_secret else hiding.echo(each.value)
        if each.is_kept or value == each.value:
            continue
        written = text[each.begin : each.end]
        # The lines of what follows stay the same.
        anchor = re.match(r"&\S+(?=\s)", written)
        new = (
            ("" if anchor is None else f"{anchor[0]} ")
            + json.dumps(value, ensure_ascii=False)
            + "\n" * written.count("\n")
        )
        parts += [_without_comments(text[last : each.begin], hiding), new]
        last = each.end
    return "".join((*parts, _without_comments(text[last:], hiding)))


def _hidden(value: str, hiding: Hiding) -> str:
    """Hide a value; one that only puts a param behind its scheme stays, as the param is hidden itself."""
    is_filled = "{{" in value or re.fullmatch(r"(\w+ )?\$\w+", value)
    return hiding.echo(value) if is_filled or not value else HIDDEN


def _without_comments(text: str, hiding: Hiding) -> str:
    """Hide credentials in the comments of a text; everything else in it is read as values."""
    return re.sub(r"(?m)(?<!\S)#.*", lambda comment: hiding.echo(comment[0]), text)


def _scalars(text: str) -> Iterator[_Scalar]:
    from loadlens.yaml_events import events  # loads the engine

    keys: list[str] = []  # of the mappings that are open
    opened: list[bool] = []  # of each open collection: true for a mapping
    is_key = False
    anchored: dict[int, str] = {}
    for event in events(text):
        if event.anchor and event.kind == "scalar":
            anchored[event.anchor] = event.text
        match event.kind:
            case "map" | "list":
                opened.append(event.kind == "map")
                is_key = opened[-1]
            case "end":
                opened.pop()
                is_key = bool(opened) and opened[-1]
                if is_key and keys:
                    keys.pop()
            case "scalar" | "alias" if is_key:
                keys.append(event.text if event.kind == "scalar" else anchored.get(event.anchor, ""))
                is_key = False
            case "scalar" | "alias":
                yield _Scalar(
                    begin=event.begin,
                    end=event.end,
                    value=event.text,
                    keys=tuple(key for key in keys if key != "<<"),
                    anchor=event.anchor,
                    is_alias=event.kind == "alias",
                    is_item=bool(opened) and not opened[-1],
                )
                if opened and opened[-1]:
                    keys.pop()
                    is_key = True
