"""YAML 1.2 text -> a tree of nodes with lines; nothing of the study's meaning.

Only plain content can be written: no tags, one document, keys once, keys as text. Anchors, aliases and
merge keys (`<<`) work; size, depth and what aliases expand to are bounded, so that no file of a few
hundred bytes takes the memory of the machine. Scalars follow the core schema (YAML 1.2.2, 10.3.2).
Reading takes time, so a text with very many keys that its format does not have is left at that point.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, Final, Protocol

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, ReusedAnchorWarning, YAMLError, YAMLStreamError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)
from ruamel.yaml.reader import ReaderError

from loadlens.study.definition import Faults, Place
from loadlens.study.tree import Leaf, Node, Row, Tree
from loadlens.units import UnitError, scalar, shown

MOST_BYTES: Final = 1 << 18  # some seconds to read at worst
MOST_NODES: Final = 100_000  # after every alias is expanded
DEEPEST: Final = 40
MOST_UNKNOWN: Final = 100  # keys that the format does not have

_QUOTE_HINT: Final = (
    'quote text that holds `: ` or `#`, or begins with `{`: "{{uuid}}"; '
    "or add a `:` that is missing in the line above"
)


class Format(Protocol):
    """The keys that a place of the text may have, as far as they are fixed."""

    def has(self, key: str) -> bool:
        """False if a mapping at this place has no such key."""

    def below(self, key: str | None) -> Format | None:
        """The format below a key, or of an item of a list; none: nothing is known of it."""


class _Broken(Exception):
    """The text cannot be read on from here."""

    def __init__(self, message: str, line: int, hint: str | None = None) -> None:
        super().__init__(message)
        self.message, self.line, self.hint = message, line, hint


def load(raw: bytes, file: str, faults: Faults, format: Format | None = None) -> Node | None:
    """The tree of a file; none when it cannot be read to its end. What is wrong is noted in `faults`.

    A text with MOST_UNKNOWN keys that `format` does not have is read up to there.
    """
    if len(raw) > MOST_BYTES:
        faults.add(
            f"the file has more than {MOST_BYTES:,} bytes",
            Place(file, 1),
            "keep bodies and data in files of their own: file: body.json",
        )
        return None
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        faults.add("the file is UTF-16", Place(file, 1), "save the file as UTF-8")
        return None
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        faults.add(f"byte {error.start} is not UTF-8", Place(file, line), "save the file as UTF-8")
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ReusedAnchorWarning)
            tree = _Composer(text, file, faults).compose(format)
        _check_expansion(tree)
    except _Broken as broken:
        faults.add(broken.message, Place(file, broken.line), broken.hint)
        return None
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark is not None else 1
        problem = _one_line(error.problem or error.context)
        hint = "indent with spaces" if "'\\t'" in problem else _QUOTE_HINT
        hint = "close each { and [" if "<stream end>" in problem else hint
        faults.add(f"not YAML: {problem}", Place(file, line), hint)
        return None
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        message = f"not YAML: character U+{ord(text[error.position]):04X} may not stand in a file"
        faults.add(message, Place(file, line), "remove it")
        return None
    except (YAMLError, YAMLStreamError) as error:
        faults.add(f"not YAML: {_one_line(error)}", Place(file, 1), _QUOTE_HINT)
        return None
    return tree


class _Composer:
    """Events of the parser -> nodes."""

    def __init__(self, text: str, file: str, faults: Faults) -> None:
        self._events: Iterator[Event] = iter(YAML(typ="safe", pure=True).parse(text))
        self._file = file
        self._faults = faults
        self._anchors: dict[str, Node | None] = {}  # none: still open, so an alias to it would not end
        self._depth = 0
        self._merged_keys = 0
        self._unknown_keys = 0

    def compose(self, format: Format | None) -> Node:
        """The only document of the file."""
        tree: Node | None = None
        for event in self._events:
            line = event.start_mark.line + 1
            if isinstance(event, DocumentStartEvent):
                if tree is not None:
                    raise _Broken(
                        "a second document begins here", line, "one study, one file: remove the `---`"
                    )
                tree = self._node(next(self._events), format)
                if self._unknown_keys >= MOST_UNKNOWN:
                    break
        if tree is None:
            raise _Broken(
                "the file is empty", 1, "entry: http://127.0.0.1:8080, and load: {users: [1, 4, 16]}"
            )
        return tree

    def _node(self, event: Any, format: Format | None = None) -> Node:
        line = event.start_mark.line + 1
        if isinstance(event, AliasEvent):
            return self._alias(str(event.anchor), line)
        if event.tag is not None:
            message = f"tags are not used in a study file, got {shown(str(event.tag))}"
            self._faults.add(
                message, Place(self._file, line), "remove the tag; quote a value to make it text"
            )
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        if isinstance(event, ScalarEvent):
            node: Node = self._leaf(event, line)
        else:
            self._depth += 1
            if self._depth > DEEPEST:
                raise _Broken(f"nested more than {DEEPEST} deep", line)
            is_tree = isinstance(event, MappingStartEvent)
            node = self._tree(line, format) if is_tree else self._row(event, line, format)
            self._depth -= 1
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _alias(self, anchor: str, line: int) -> Node:
        if anchor not in self._anchors:
            listed = ", ".join(f"&{name}" for name in self._anchors) or "none"
            raise _Broken(f"*{anchor} names no anchor above it", line, f"anchors above: {listed}")
        node = self._anchors[anchor]
        if node is None:
            raise _Broken(f"*{anchor} stands inside what it names", line)
        return node

    def _leaf(self, event: ScalarEvent, line: int) -> Leaf:
        written = event.value
        if "\0" in written or any("\ud800" <= char <= "\udfff" for char in written):
            self._faults.add("text with a NUL or half a surrogate pair", Place(self._file, line))
            return Leaf("", "", line)
        if event.style is not None:
            return Leaf(written, written, line)
        try:
            return Leaf(scalar(written), written, line)
        except UnitError as error:
            self._faults.add(error.message, Place(self._file, line), f"write {error.example}")
            return Leaf(0, written, line)

    def _rest(self, end: type[Event]) -> Iterator[Event]:
        """The events up to the end of a mapping or list, or to where enough is read."""
        while self._unknown_keys < MOST_UNKNOWN and not isinstance(event := next(self._events), end):
            yield event

    def _row(self, start: Event, line: int, format: Format | None) -> Row:
        assert isinstance(start, SequenceStartEvent)
        row = Row(line)
        of_items = format and format.below(None)
        for event in self._rest(SequenceEndEvent):
            row.items.append(self._node(event, of_items))
        return row

    def _tree(self, line: int, format: Format | None) -> Tree:
        tree = Tree(line)
        merged: list[tuple[Node, int]] = []
        for event in self._rest(MappingEndEvent):
            key_line = event.start_mark.line + 1
            key = self._key(event, key_line)
            value_event = next(self._events)
            value = self._node(value_event, format and format.below(key))
            if not isinstance(value_event, AliasEvent):
                value.line = key_line  # a block begins where it is named, not at its first key
            is_quoted = isinstance(event, ScalarEvent) and event.style is not None
            if key == "<<" and not is_quoted:
                merged.append((value, key_line))
            elif key in tree.items:
                message = f"key {shown(key)} stands twice, first on line {tree.key_lines[key]}"
                self._faults.add(message, Place(self._file, key_line), "keep one of them")
            else:
                tree.items[key] = value
                tree.key_lines[key] = key_line
                if format is not None and not format.has(key):
                    self._note_unknown(key_line)
        for value, key_line in merged:
            self._merge(tree, value, key_line)
        return tree

    def _note_unknown(self, line: int) -> None:
        self._unknown_keys += 1
        if self._unknown_keys == MOST_UNKNOWN:
            message = f"{MOST_UNKNOWN} unknown keys: the file is read up to here"
            hint = "loadlens init URL, which writes a study to start from"
            self._faults.add(message, Place(self._file, line), hint)

    def _key(self, event: Event, line: int) -> str:
        node = self._node(event)
        if isinstance(node, Leaf) and node.written:
            return node.written
        kind = "empty" if isinstance(node, Leaf) else ("a mapping" if isinstance(node, Tree) else "a list")
        raise _Broken(f"a key is text, this one is {kind}", line, 'quote templates and names: "{{uuid}}"')

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


def _check_expansion(tree: Node) -> None:
    """Refuse a tree that is small as written and huge once its aliases are followed."""
    sizes: dict[int, int] = {}

    def size(node: Node) -> int:
        if isinstance(node, Leaf):
            return 1
        if id(node) not in sizes:
            children = node.items.values() if isinstance(node, Tree) else node.items
            sizes[id(node)] = 1 + sum(size(child) for child in children)
            if sizes[id(node)] > MOST_NODES:
                message = f"aliases expand to more than {MOST_NODES:,} values"
                raise _Broken(message, node.line, "refer to each anchor fewer times")
        return sizes[id(node)]

    size(tree)


def _one_line(text: object) -> str:
    return " ".join(str(text).split())[:200]
