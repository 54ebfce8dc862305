"""`$names` in the values of a study file: which there are, how a text splits into them, what fills them.

`$name` is a param or a factor, `$$` a dollar. In what the testbed runs there are also `$host`, `$port`,
`$port.NAME`, `$scratch`, `$replica` and `$SERVICE.url`, `.host`, `.port`. A dollar before anything else
(`$1`, `${X}`) is itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from loadlens.errors import nearest
from loadlens.model.topology import Scalar
from loadlens.study.definition import Faults, Place
from loadlens.study.tree import Leaf, Node, Row, Tree, at, items_at

if TYPE_CHECKING:
    from loadlens.study.parse.case_values import CaseValues

TESTBED_NAMES: Final = ("host", "port", "scratch", "replica")
SERVICE_ATTRIBUTES: Final = ("url", "host", "port")

_NAME: Final = re.compile(r"\$(\$|[A-Za-z_][A-Za-z0-9_]*)")
_ATTRIBUTE: Final = re.compile(r"\.([A-Za-z_][A-Za-z0-9_]*)")


@dataclass(frozen=True, slots=True)
class Name:
    """One `$name` in a text, without its dollar: `users`, `port.http`, `api.url`."""

    text: str


@dataclass(slots=True)
class Names:
    """The names that a file gives a meaning to, and those that it uses."""

    given: frozenset[str]  # params, factors, and what named levels bind
    services: frozenset[str]
    calibrated: frozenset[str] = frozenset()  # known once the run has begun: in what the testbed runs only
    used: set[str] = field(default_factory=set)
    # What claims and published figures speak of: experiment -> factor or param -> levels, and steps; no steps
    # while the name of one is open.
    levels: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    steps: tuple[str, ...] = ()


def names_of(tree: Tree) -> Names:
    """The names of a file, gathered before it is checked and so from any tree."""
    given: set[str] = set(items_at(tree, "params")) | set(items_at(tree, "quick", "params"))
    for experiments in (items_at(tree, "experiments"), items_at(tree, "quick", "experiments")):
        for experiment in experiments.values():
            for factors in (items_at(experiment, "factors"), items_at(experiment, "hold_out")):
                given |= _bound_by(factors)
    services = items_at(tree, "services")
    names = Names(frozenset(given - {"where"}), frozenset(services), frozenset(calibrated_in(tree)))
    names.levels = {name: _levels(tree, each) for name, each in items_at(tree, "experiments").items()}
    steps = list(_steps(tree))
    names.steps = () if any(split(step, names.services) != [step] for step in steps) else tuple(steps)
    return names


def _levels(tree: Tree, experiment: Node) -> dict[str, tuple[str, ...]]:
    """Return the levels of each factor, the held-out ones included, and the values of params."""
    params = {name: (str(n.value),) for name, n in items_at(tree, "params").items() if isinstance(n, Leaf)}
    levels = {name: tuple(level_lines(node)) for name, node in items_at(experiment, "factors").items()}
    for name, node in items_at(experiment, "hold_out").items():
        if name != "where":
            levels[name] = (*levels.get(name, params.get(name, ())), *level_lines(node))
    return params | levels


def level_lines(levels: Node | None) -> dict[str, int]:
    """Return the names of a factor's levels and their lines."""
    if isinstance(levels, Row):
        return {item.written: item.line for item in levels.items if isinstance(item, Leaf)}
    return dict(levels.key_lines) if isinstance(levels, Tree) else {}


def _steps(tree: Tree) -> Iterator[str]:
    """Every name that results can speak of: of steps in scenarios and probes."""
    for name, items in items_at(tree, "scenarios").items():
        yield from (name_of(step) or name for step in steps_in(items))
    for owner in (tree, *items_at(tree, "experiments").values()):
        yield from (name_of(probe) or name for name, probe in items_at(owner, "probes").items())


def steps_in(scenario: Node) -> Iterator[Tree]:
    """The steps of a scenario without its groups, in order."""
    for item in scenario.items if isinstance(scenario, Row) else (scenario,):
        if "steps" in items_at(item):
            yield from steps_in(items_at(item)["steps"])
        elif isinstance(item, Tree):
            yield item


def name_of(step: Node) -> str | None:
    """The name that a step or probe has of its own, as written."""
    name = at(step, "name")
    return name.written if isinstance(name, Leaf) else None


def literal(node: Node | None, services: frozenset[str]) -> str | None:
    """The text of a value in which no name is open; none for any other."""
    if not isinstance(node, Leaf) or node.value is None:
        return None
    pieces = split(node.written, services) or [""]
    return pieces[0] if isinstance(pieces[0], str) and len(pieces) == 1 else None


def calibrated_in(tree: Node) -> list[str]:
    """Return the names that services of a file calibrate, in any of their variants."""
    return [
        str(gives.value)
        for service in items_at(tree, "services").values()
        for part in (service, *items_at(service, "variants").values())
        if isinstance(gives := at(part, "calibrate", "gives"), Leaf)
    ]


def _bound_by(factors: Mapping[str, Node]) -> set[str]:
    names = set(factors)
    for factor, levels in factors.items():
        if factor != "where":
            names.update(*(items_at(level) for level in items_at(levels).values()))
    return names


def split(text: str, services: frozenset[str]) -> list[str | Name]:
    """Split a text at its names; `$$` is read as a dollar, and empty pieces are left out."""
    pieces: list[str | Name] = []
    literal, position = "", 0
    while (placeholder := _NAME.search(text, position)) is not None:
        literal += text[position : placeholder.start()]
        position = placeholder.end()
        name = placeholder[1]
        if name == "$":
            literal += "$"
            continue
        # A dot belongs to the name only where it can: `$users.db` is the param users and a file ending.
        attribute = _ATTRIBUTE.match(text, position) if name == "port" or name in services else None
        if attribute is not None:
            name = f"{name}.{attribute[1]}"
            position = attribute.end()
        pieces += [literal, Name(name)] if literal else [Name(name)]
        literal = ""
    literal += text[position:]
    return [*pieces, literal] if literal else pieces


def names_in(node: Node | None, services: frozenset[str]) -> list[str]:
    """Return the names in a value, without their dollars."""
    if isinstance(node, Leaf):
        pieces = split(node.value, services) if isinstance(node.value, str) else []
        return [piece.text for piece in pieces if isinstance(piece, Name)]
    items = node.items.values() if isinstance(node, Tree) else node.items if isinstance(node, Row) else ()
    return [name for item in items for name in names_in(item, services)]


def check(name: str, names: Names, faults: Faults, place: Place, *, is_testbed: bool) -> None:
    """Note a name that means nothing here, and remember others as used."""
    base, _, attribute = name.partition(".")
    if not attribute and name in names.given:
        names.used.add(name)
    elif not attribute and name in names.calibrated:
        names.used.add(name)
        if not is_testbed:
            message = f"${name} is calibrated when the study runs: only what the testbed runs knows it"
            faults.add(message, place, "use it under services or reset")
    elif base in names.services or base in TESTBED_NAMES:
        if not is_testbed:
            message = f"${name} is known to the testbed only, when services run"
            faults.add(message, place, "use it under services or reset")
        elif base in names.services and attribute not in SERVICE_ATTRIBUTES:
            forms = ", ".join(f"${base}.{each}" for each in SERVICE_ATTRIBUTES)
            faults.add(f"${name} is not a name of service {base}", place, f"one of {forms}")
    else:
        candidates = sorted(names.given | ({*TESTBED_NAMES, *names.calibrated} if is_testbed else set()))
        near = nearest(name, candidates)
        names.used.update([near] if near else [])
        hint = f"did you mean ${near}?" if near else "add it to params, or write $$ for a dollar"
        faults.add(f"unknown name ${name}", place, hint)


def filled(
    pieces: list[str | Name], case: CaseValues, faults: Faults, place: Place, *, is_testbed: bool
) -> Scalar:
    """Return a text with the values of its names. A name that is the whole text keeps its type.

    In what the testbed runs its own names stay open, and every other dollar is doubled, so that what the
    testbed sees is unambiguous: `$port` is its name, `$$` a dollar.
    """
    parts: list[str] = []
    for piece in pieces:
        text = piece
        if isinstance(piece, Name):
            if piece.text in case.values:
                case.used.add(piece.text)
                if len(pieces) == 1 and not is_testbed:
                    return case.values[piece.text]
                text = as_text(case.values[piece.text])
            else:
                is_open = "." in piece.text or piece.text in (*TESTBED_NAMES, *case.calibrated)
                if not is_testbed or not is_open:
                    hint = f"add it to params, or to the factors of {case.scope}"
                    if is_testbed:
                        hint = f"add it to params: services run in every experiment, {case.scope} too"
                    faults.add(f"${piece.text} has no value in {case.scope}", place, hint)
                parts.append(f"${piece.text}")
                continue
        assert isinstance(text, str)
        parts.append(text.replace("$", "$$") if is_testbed else text)
    return "".join(parts)


def as_text(value: Scalar) -> str:
    """A value inside a text: truth values as YAML writes them, whole floats without a point."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
