"""The content of a study file as a tree of nodes with lines, and steps through it."""

from __future__ import annotations

from dataclasses import dataclass, field

from loadlens.model.topology import Scalar


@dataclass(slots=True, eq=False)
class Leaf:
    """A scalar."""

    value: Scalar | None
    written: str  # its text in the file
    line: int


@dataclass(slots=True, eq=False)
class Tree:
    """A mapping: keys as written, in order; merged keys come after own ones."""

    line: int
    items: dict[str, Node] = field(default_factory=dict)
    key_lines: dict[str, int] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)  # key paths of what stands elsewhere in the file

    def over(self, base: Tree, own_path: str, base_path: str) -> Tree:
        """Return `base` with the keys of this tree in place of its own."""
        origins = {key: base.origins.get(key, f"{base_path}{key}") for key in base.items}
        origins |= {key: self.origins.get(key, f"{own_path}{key}") for key in self.items}
        return Tree(base.line, base.items | self.items, base.key_lines | self.key_lines, origins)

    def without(self, *keys: str) -> Tree:
        """Return the tree without some keys."""
        kept = {key: node for key, node in self.items.items() if key not in keys}
        return Tree(self.line, kept, self.key_lines, self.origins)


@dataclass(slots=True, eq=False)
class Row:
    """A sequence."""

    line: int
    items: list[Node] = field(default_factory=list)


Node = Leaf | Tree | Row


def at(node: Node | None, *keys: str) -> Node | None:
    """Return the node under a path of keys; none if the path leads nowhere."""
    for key in keys:
        node = node.items.get(key) if isinstance(node, Tree) else None
    return node


def items_at(node: Node | None, *keys: str) -> dict[str, Node]:
    """Return the mapping under a path of keys; empty if there is none."""
    there = at(node, *keys)
    return there.items if isinstance(there, Tree) else {}


def row_at(node: Node | None, *keys: str) -> list[Node]:
    """Return the list under a path of keys; what stands alone is a list of one."""
    there = at(node, *keys)
    return there.items if isinstance(there, Row) else [] if there is None else [there]
