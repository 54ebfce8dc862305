"""YAML 1.2 text -> a tree of nodes with lines; nothing of its meaning.

Only plain content can be written: no tags, one document, keys once, keys as text. Anchors, aliases and
merge keys (`<<`) work; size, depth and what aliases expand to are bounded, so that no file of a few
hundred bytes takes the memory of the machine. Scalars follow the core schema (YAML 1.2.2, 10.3.2).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from loadlens.study.definition import Faults, Place
from loadlens.study.tree import Leaf, Node, Row, Tree
from loadlens.units import UnitError, scalar, shown
from loadlens.yaml_events import Event, YamlFault, events

MOST_BYTES: Final = 1 << 18
MOST_NODES: Final = 100_000  # after every alias is expanded
DEEPEST: Final = 40


class _Broken(Exception):
    """The text cannot be read on from here."""

    def __init__(self, message: str, line: int, hint: str | None = None) -> None:
        super().__init__(message)
        self.message, self.line, self.hint = message, line, hint


def load(
    raw: bytes, file: str, faults: Faults, most_bytes: int = MOST_BYTES, most_nodes: int = MOST_NODES
) -> Node | None:
    """The tree of a file; none when it cannot be read to its end. What is wrong is noted in `faults`."""
    if len(raw) > most_bytes:
        faults.add(
            f"the file has more than {most_bytes:,} bytes",
            Place(file, 1),
            "keep bodies and data in files of their own: file: body.json",
        )
        return None
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in raw[:2]:  # with a mark or without
        faults.add("the file is UTF-16", Place(file, 1), "save the file as UTF-8")
        return None
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        faults.add(f"byte {error.start} is not UTF-8", Place(file, line), "save the file as UTF-8")
        return None
    try:
        tree = _Composer(text, file, faults).compose()
        _check_expansion(tree, most_nodes)
    except (_Broken, YamlFault) as broken:
        faults.add(broken.message, Place(file, broken.line), broken.hint)
        return None
    return tree


class _Composer:
    """Events of the parser -> nodes."""

    def __init__(self, text: str, file: str, faults: Faults) -> None:
        self._events = events(text)
        self._file = file
        self._faults = faults
        self._anchors: dict[int, Node | None] = {}  # none: still open, so an alias to it would not end
        self._depth = 0
        self._merged_keys = 0

    def compose(self) -> Node:
        """The only document of the file."""
        tree: Node | None = None
        for event in self._events:
            if tree is not None:
                hint = "one study, one file: remove the `---`"
                raise _Broken("a second document begins here", event.line, hint)
            tree = self._node(next(self._events))
        if tree is None:
            raise _Broken(
                "the file is empty", 1, "entry: http://127.0.0.1:8080, and load: {users: [1, 4, 16]}"
            )
        return tree

    def _node(self, event: Event) -> Node:
        if event.kind == "alias":
            node = self._anchors[event.anchor]
            if node is None:
                raise _Broken("an alias stands inside what it names", event.line)
            return node
        if event.tag is not None:
            message = f"tags are not used in a study file, got {shown(event.tag)}"
            hint = "remove the tag; quote a value to make it text"
            self._faults.add(message, Place(self._file, event.line), hint)
        self._anchors[event.anchor] = None
        if event.kind == "scalar":
            node = self._leaf(event)
        else:
            self._depth += 1
            if self._depth > DEEPEST:
                raise _Broken(f"nested more than {DEEPEST} deep", event.line)
            node = self._tree(event.line) if event.kind == "map" else self._row(event.line)
            self._depth -= 1
        self._anchors[event.anchor] = node
        return node

    def _leaf(self, event: Event) -> Leaf:
        written, line = event.text, event.line
        if "\0" in written:
            self._faults.add("text with a NUL", Place(self._file, line))
            return Leaf("", "", line)
        if event.style != "plain":
            return Leaf(written, written, line)
        try:
            return Leaf(scalar(written), written, line)
        except UnitError as error:
            self._faults.add(error.message, Place(self._file, line), f"write {error.example}")
            return Leaf(0, written, line)

    def _rest(self) -> Iterator[Event]:
        """The events up to the end of a mapping or list."""
        while (event := next(self._events)).kind != "end":
            yield event

    def _row(self, line: int) -> Row:
        return Row(line, [self._node(event) for event in self._rest()])

    def _tree(self, line: int) -> Tree:
        tree = Tree(line)
        merged: list[tuple[Node, int]] = []
        for event in self._rest():
            key_line = event.line
            key = self._key(event)
            value_event = next(self._events)
            value = self._node(value_event)
            if value_event.kind != "alias":
                value.line = key_line  # a block begins where it is named, not at its first key
            if key == "<<" and event.style == "plain":
                merged.append((value, key_line))
            elif key in tree.items:
                message = f"key {shown(key)} stands twice, first on line {tree.key_lines[key]}"
                self._faults.add(message, Place(self._file, key_line), "keep one of them")
            else:
                tree.items[key] = value
                tree.key_lines[key] = key_line
        for value, key_line in merged:
            self._merge(tree, value, key_line)
        return tree

    def _key(self, event: Event) -> str:
        node = self._node(event)
        if isinstance(node, Leaf) and node.written:
            return node.written
        kind = "empty" if isinstance(node, Leaf) else ("a mapping" if isinstance(node, Tree) else "a list")
        hint = 'quote templates and names: "{{uuid}}"'
        raise _Broken(f"a key is text, this one is {kind}", event.line, hint)

    def _merge(self, tree: Tree, value: Node, line: int) -> None:
        """Take over the keys of a mapping, or of each in a list, that `tree` does not have itself."""
        for source in value.items if isinstance(value, Row) else [value]:
            if not isinstance(source, Tree):
                hint = "name an anchor of a mapping: <<: *matrix"
                self._faults.add("`<<` merges mappings only", Place(self._file, line), hint)
                continue
            self._merged_keys += len(source.items)
            if self._merged_keys > MOST_NODES:
                raise _Broken(f"merge keys take over more than {MOST_NODES:,} keys", line)
            for key, node in source.items.items():
                if key not in tree.items:
                    tree.items[key] = node
                    tree.key_lines[key] = source.key_lines[key]


def _check_expansion(tree: Node, most: int) -> None:
    """Refuse a tree that is small as written and huge once its aliases are followed."""
    sizes: dict[int, int] = {}

    def size(node: Node) -> int:
        if isinstance(node, Leaf):
            return 1
        if id(node) not in sizes:
            children = node.items.values() if isinstance(node, Tree) else node.items
            sizes[id(node)] = 1 + sum(size(child) for child in children)
            if sizes[id(node)] > most:
                message = f"aliases expand to more than {most:,} values"
                raise _Broken(message, node.line, "refer to each anchor fewer times")
        return sizes[id(node)]

    size(tree)
