"""Notes keys that the format does not have, before anything else is judged.

A key that was clearly meant as another is then read as that one, so that its absence, and what that
would break, is no second fault. The file is refused in any case.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from loadlens.errors import did_you_mean, nearest
from loadlens.study.definition import Faults
from loadlens.study.parse.keys_load import Item
from loadlens.study.parse.schema import At, Block, Many, Named, OrText, Shape, Short
from loadlens.study.tree import Node, Row, Tree
from loadlens.units import shown

# Words of other tools: whose, and what they are here (the first that the block has).
FOREIGN: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "vus": ("k6", ("users",)),
    "target": ("Artillery", ("entry",)),
    "baseUrl": ("Gatling", ("entry",)),
    "url": ("k6", ("entry", "get")),
    "host": ("Locust", ("entry",)),
    "arrivalRate": ("Artillery", ("rate",)),
    "rps": ("k6", ("rate",)),
    "maxVUs": ("k6", ("max_in_flight",)),
    "spawn_rate": ("Locust", ("ramp",)),
    "wait_time": ("Locust", ("think",)),
    "sleep": ("k6", ("think",)),
    "thresholds": ("k6", ("objectives",)),
    "flow": ("Artillery", ("scenarios",)),
    "capture": ("Artillery", ("extract",)),
    "checks": ("k6", ("check",)),
    "matrix": ("GitHub Actions", ("factors",)),
    "strategy": ("GitHub Actions", ("factors",)),
    "depends_on": ("Docker Compose", ("after",)),
    "healthcheck": ("Docker Compose", ("ready",)),
    "command": ("Docker Compose", ("start",)),
    "environment": ("Docker Compose", ("env",)),
    "working_dir": ("Docker Compose", ("dir",)),
    "scale": ("Docker Compose", ("replicas",)),
}
MOST_NAMED: Final = 10
# Ours take another form of value than the word in FOREIGN: it cannot be read in their place.
_OTHER_FORM: Final = ("thresholds", "healthcheck", "strategy", "flow", "capture", "checks", "spawn_rate")


def note(shape: Shape, node: Node | None, at: At) -> int:
    """Note the unknown keys in a node and below, read each as what it was meant for, and return their number.

    The first ones are named, the rest counted.
    """
    unknown = Faults()
    _note(shape, node, replace(at, faults=unknown))
    at.faults.take(unknown, most=MOST_NAMED, rest="more unknown keys")
    return len(unknown)


def _note(shape: Shape, node: Node | None, at: At) -> None:
    if isinstance(shape, Many):
        items = node.items if isinstance(node, Row) else ()
        for index, item in enumerate(items):
            _note(shape.item, item, at.item(index))
        if isinstance(node, Tree):
            _note(shape.item, node, at)
    elif isinstance(shape, Short | OrText):
        _note(shape.block, node, at)
    elif isinstance(shape, Item):
        _note(shape.block_of(node), node, at)
    elif isinstance(node, Tree) and isinstance(shape, Named):
        for name, item in node.items.items():
            _note(shape.item, item, at.of(node, name))
    elif isinstance(node, Tree) and isinstance(shape, Block):
        for name in [name for name in node.items if name not in {**shape.keys, **shape.refused}]:
            _note_key(shape, node, name, at)
        for name, item in node.items.items():
            if name in shape.keys:
                _note(shape.keys[name].shape, item, at.of(node, name))


def _note_key(block: Block, node: Tree, name: str, at: At) -> None:
    if len(at.faults) >= MOST_NAMED:  # to look for similar keys takes time
        at.of(node, name).fault(node.key_lines[name], f"unknown key {shown(name)}")
        return
    tool, words = FOREIGN.get(name, ("", ()))
    allowed = [*block.keys, *block.refused]
    foreign = next((word for word in words if word in block.keys), None)
    meant = foreign or nearest(name, allowed)
    hint = f"{tool} calls it {name}; here: {foreign}" if foreign else did_you_mean(name, allowed)
    at.of(node, name).fault(node.key_lines[name], f"unknown key {shown(name)}", hint)
    if meant is not None and meant not in node.items and (not foreign or name not in _OTHER_FORM):
        node.origins[meant] = at.of(node, name).key
        node.items[meant], node.key_lines[meant] = node.items.pop(name), node.key_lines[name]
