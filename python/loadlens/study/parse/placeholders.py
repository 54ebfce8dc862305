"""`$names` in the values of a study file: which there are, and how a text splits into them.

`$name` is a param or a factor, `$$` a dollar. In what the testbed runs there are also `$host`, `$port`,
`$port.NAME`, `$scratch`, `$replica` and `$SERVICE.url`, `.host`, `.port`. A dollar before anything else
(`$1`, `${X}`) is itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from loadlens.study.definition import Faults, Name, Place, Text
from loadlens.study.parse.yaml_tree import Leaf, Node, Tree

TESTBED_NAMES: Final = ("host", "port", "scratch", "replica")
SERVICE_ATTRIBUTES: Final = ("url", "host", "port")

_NAME: Final = re.compile(r"\$(\$|[A-Za-z_][A-Za-z0-9_]*)")
_ATTRIBUTE: Final = re.compile(r"\.([A-Za-z_][A-Za-z0-9_]*)")


@dataclass(slots=True)
class Names:
    """The names that a file gives a meaning to, and those that it uses."""

    given: frozenset[str]  # params, factors, and what named levels bind
    services: frozenset[str]
    calibrated: frozenset[str] = frozenset()  # known once the run has begun: in what the testbed runs only
    used: set[str] = field(default_factory=set)


def names_of(tree: Tree) -> Names:
    """The names of a file, gathered before it is checked and so from any tree."""
    given: set[str] = set(_keys(tree, "params")) | set(_keys(tree, "quick", "params"))
    for experiments in (_at(tree, "experiments"), _at(tree, "quick", "experiments")):
        for experiment in experiments.items.values() if isinstance(experiments, Tree) else ():
            for factors in (_at(experiment, "factors"), _at(experiment, "hold_out")):
                given |= _bound_by(factors)
    services = _at(tree, "services")
    calibrated = {
        str(gives.value)
        for service in (services.items.values() if isinstance(services, Tree) else ())
        for part in (service, *_items(_at(service, "variants")))
        if isinstance(gives := _at(part, "calibrate", "gives"), Leaf)
    }
    return Names(frozenset(given - {"where"}), frozenset(_keys(tree, "services")), frozenset(calibrated))


def _items(node: Node | None) -> tuple[Node, ...]:
    return tuple(node.items.values()) if isinstance(node, Tree) else ()


def _bound_by(factors: Node | None) -> set[str]:
    if not isinstance(factors, Tree):
        return set()
    names = set(factors.items)
    for factor, levels in factors.items.items():
        if isinstance(levels, Tree) and factor != "where":
            names.update(*(level.items for level in levels.items.values() if isinstance(level, Tree)))
    return names


def _at(node: Node | None, *keys: str) -> Node | None:
    for key in keys:
        node = node.items.get(key) if isinstance(node, Tree) else None
    return node


def _keys(node: Node, *keys: str) -> tuple[str, ...]:
    node_there = _at(node, *keys)
    return tuple(node_there.items) if isinstance(node_there, Tree) else ()


def raw_names(tree: Node, *keys: str) -> tuple[str, ...]:
    """The keys of a mapping in the file, whatever they hold; empty when there is none."""
    return _keys(tree, *keys)


def parse(text: str, services: frozenset[str]) -> str | Text:
    """Split a text at its names; plain text when there is none."""
    pieces: list[str | Name] = []
    position = 0
    while (placeholder := _NAME.search(text, position)) is not None:
        pieces.append(text[position : placeholder.start()])
        position = placeholder.end()
        name = placeholder[1]
        if name == "$":
            pieces.append("$")
            continue
        # A dot belongs to the name only where it can: `$users.db` is the param users and a file ending.
        attribute = _ATTRIBUTE.match(text, position) if name == "port" or name in services else None
        if attribute is not None:
            name = f"{name}.{attribute[1]}"
            position = attribute.end()
        pieces.append(Name(name))
    pieces.append(text[position:])
    return _joined(pieces)


def _joined(pieces: list[str | Name]) -> str | Text:
    """Neighbouring literals as one, empty ones left out."""
    joined: list[str | Name] = []
    for piece in pieces:
        if isinstance(piece, str) and joined and isinstance(joined[-1], str):
            joined[-1] += piece
        elif piece != "":
            joined.append(piece)
    if all(isinstance(piece, str) for piece in joined):
        return "".join(piece for piece in joined if isinstance(piece, str))
    return Text(tuple(joined))


def check(text: Text, names: Names, faults: Faults, place: Place, *, is_testbed: bool) -> None:
    """Note names that mean nothing here, and remember the others as used."""
    for piece in text.pieces:
        if isinstance(piece, Name):
            _check_name(piece.text, names, faults, place, is_testbed=is_testbed)


def _check_name(name: str, names: Names, faults: Faults, place: Place, *, is_testbed: bool) -> None:
    base, _, attribute = name.partition(".")
    if not attribute and name in names.given:
        names.used.add(name)
        return
    if not attribute and name in names.calibrated:
        names.used.add(name)
        if not is_testbed:
            message = f"${name} is calibrated when the study runs: only what the testbed runs knows it"
            faults.add(message, place, "use it under services or reset")
        return
    if base in names.services or base in TESTBED_NAMES:
        if not is_testbed:
            message = f"${name} is known to the testbed only, when services run"
            faults.add(message, place, "use it under services or reset")
        elif base in names.services and attribute not in SERVICE_ATTRIBUTES:
            forms = ", ".join(f"${base}.{each}" for each in SERVICE_ATTRIBUTES)
            faults.add(f"${name} is not a name of service {base}", place, f"one of {forms}")
        return
    candidates = sorted(names.given | ({*TESTBED_NAMES, *names.calibrated} if is_testbed else set()))
    near = nearest(name, candidates)
    hint = f"did you mean ${near}?" if near else "add it to params, or write $$ for a dollar"
    faults.add(f"unknown name ${name}", place, hint)


def nearest(written: str, names: Sequence[str]) -> str | None:
    """The names word within two edits (insert, delete, change, swap neighbours), the closest first."""
    best: tuple[int, str] | None = None
    for word in names:
        if abs(len(word) - len(written)) > 2 or len(written) > 80:
            continue
        edits = _edits(written.lower(), word.lower())
        if edits <= 2 and edits < max(len(word), len(written)) and (best is None or edits < best[0]):
            best = (edits, word)
    return None if best is None else best[1]


def _edits(a: str, b: str) -> int:
    """Optimal string alignment distance (Damerau 1964, without edits inside a swap)."""
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, char in enumerate(a, 1):
        row, before, above = [i], row, before
        for j, other in enumerate(b, 1):
            cost = min(row[j - 1] + 1, before[j] + 1, before[j - 1] + (char != other))
            if i > 1 and j > 1 and char == b[j - 2] and a[i - 2] == other:
                cost = min(cost, above[j - 2] + 1)
            row.append(cost)
    return row[-1]


def did_you_mean(written: str, names: Sequence[str]) -> str:
    """A hint: the nearest word as a question, or the words that there are."""
    near = nearest(written, names)
    if near is not None:
        return f"did you mean {near}?"
    return f"one of {', '.join(names)}" if names else "remove it, there is none to name"
