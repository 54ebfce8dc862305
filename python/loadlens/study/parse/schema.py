"""The vocabulary that the study file is described in: kinds of values, blocks of keys, lists, named things.

A shape reads nodes into the parts of `model.definition`, noting every fault with its line, and says of
itself what it accepts, as JSON Schema and in words. `keys.py` holds the file's shape in these terms; so
the checks, the schema and the reference page cannot disagree.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from loadlens.study.definition import Faults, Later, Place
from loadlens.study.parse import placeholders as names
from loadlens.study.parse.yaml_tree import Leaf, Node, Row, Tree
from loadlens.units import UnitError, shown

MISSING: Final = object()  # what a shape gives for a node that it noted a fault for
Schema = dict[str, Any]
NAME_SCHEMA: Final[Schema] = {"$ref": "#/$defs/name"}


@dataclass(frozen=True, slots=True)
class At:
    """Position of the reader in the file, and its context."""

    file: str
    names: names.Names
    faults: Faults
    key: str = ""

    def place(self, line: int) -> Place:
        """This key path on a line."""
        return Place(self.file, line, self.key)

    def below(self, key: str) -> At:
        """The same for a key below."""
        return replace(self, key=f"{self.key}.{key}" if self.key else key)

    def item(self, index: int) -> At:
        """The same for an item of a list."""
        return replace(self, key=f"{self.key}[{index}]")

    def fault(self, line: int, message: str, hint: str | None = None) -> object:
        """Note a fault here; gives MISSING, so that a reader can return it."""
        self.faults.add(message, self.place(line), hint)
        return MISSING


class Shape(Protocol):
    """Values allowed at a place of the file."""

    @property
    def words(self) -> str:
        """For the reference: `duration`, `list of texts`."""

    def read(self, node: Node, at: At) -> Any:
        """The part, or MISSING after noting faults."""

    def schema(self) -> Schema:
        """JSON Schema of it."""


# --------------------------------------------------------------------------------------------------- values


@dataclass(frozen=True, slots=True)
class Value:
    """A value that may hold `$names`: read as a Later.

    Args:
        words: For the reference.
        convert: The filled value -> what the key means; raises UnitError.
        accepts: JSON Schema of the values without names.
        is_nested: Whether lists and mappings are values of this kind too.
        is_nothing_allowed: Whether null is a value of this kind.
        is_text: Whether it is taken as written: `1.10` stays `1.10`.
        is_testbed: Whether names of the testbed (`$port`) may stand in it.
    """

    words: str
    convert: Callable[[Any], Any]
    accepts: Schema
    is_nested: bool = False
    is_nothing_allowed: bool = False
    is_text: bool = False
    is_testbed: bool = False

    def read(self, node: Node, at: At) -> Any:
        if not self.is_nested and not isinstance(node, Leaf):
            return at.fault(node.line, f"wanted a {self.words}, got {_kind(node)}", "one value, not several")
        if isinstance(node, Leaf) and node.value is None and not self.is_nothing_allowed:
            return at.fault(node.line, f"wanted a {self.words}, got nothing", "a value, or remove the key")
        written, has_names = self._with_names(node, at)
        later = Later(written, at.place(node.line), self.convert, self.is_testbed)
        if not has_names:
            try:
                self.convert(written)
            except UnitError as error:
                return at.fault(node.line, error.message, error.example)
        return later

    def _with_names(self, node: Node, at: At) -> tuple[Any, bool]:
        """The content with its texts split at names, and whether there is any name."""
        if isinstance(node, Leaf):
            value = node.written if self.is_text and node.value is not None else node.value
            if not isinstance(value, str):
                return value, False
            text = names.parse(value, at.names.services)
            if isinstance(text, str):
                return text, False
            names.check(text, at.names, at.faults, at.place(node.line), is_testbed=self.is_testbed)
            return text, True
        if isinstance(node, Row):
            parts = [self._with_names(item, at.item(i)) for i, item in enumerate(node.items)]
            return [part for part, _ in parts], any(named for _, named in parts)
        fields = {key: self._with_names(item, at.below(key)) for key, item in node.items.items()}
        return {key: part for key, (part, _) in fields.items()}, any(named for _, named in fields.values())

    def schema(self) -> Schema:
        if self.accepts == {} or self.accepts == {"$ref": "#/$defs/text"}:
            return dict(self.accepts)
        return {"anyOf": [self.accepts, NAME_SCHEMA]}


@dataclass(frozen=True, slots=True)
class Fixed:
    """A value that stands as it is, without `$names`: read as what it means."""

    words: str
    convert: Callable[[Any], Any]
    accepts: Schema

    def read(self, node: Node, at: At) -> Any:
        if not isinstance(node, Leaf):
            return at.fault(node.line, f"wanted a {self.words}, got {_kind(node)}", "one value, not several")
        if node.value is None:
            return at.fault(node.line, f"wanted a {self.words}, got nothing", "a value, or remove the key")
        try:
            return self.convert(node.value)
        except UnitError as error:
            return at.fault(node.line, error.message, error.example)

    def schema(self) -> Schema:
        return dict(self.accepts)


@dataclass(frozen=True, slots=True)
class Label:
    """A level or another word that is compared as written: `5` and `0.50` keep their text."""

    words: str = "level"

    def read(self, node: Node, at: At) -> Any:
        if not isinstance(node, Leaf) or not node.written:
            return at.fault(node.line, f"wanted a {self.words}, got {_kind(node)}", "write it as in factors")
        return node.written

    def schema(self) -> Schema:
        return {"type": ["string", "number", "boolean"]}


# ------------------------------------------------------------------------------------------------ containers


@dataclass(frozen=True, slots=True)
class Many:
    """A list; where `or_one`, a single item stands for a list of one."""

    item: Shape
    or_one: bool = False
    at_least: int = 0

    @property
    def words(self) -> str:
        return f"{self.item.words}, or a list" if self.or_one else f"list: {self.item.words}"

    def read(self, node: Node, at: At) -> Any:
        if not isinstance(node, Row):
            if not self.or_one:
                hint = "write it as a list: [a, b]"
                return at.fault(node.line, f"wanted a list, got {_kind(node)}", hint)
            only = self.item.read(node, at)
            return MISSING if only is MISSING else (only,)
        if len(node.items) < self.at_least:
            return at.fault(node.line, "the list is empty", f"at least {self.at_least}")
        read = [self.item.read(item, at.item(index)) for index, item in enumerate(node.items)]
        return tuple(part for part in read if part is not MISSING)

    def schema(self) -> Schema:
        listed: Schema = {"type": "array", "items": self.item.schema()}
        if self.at_least:
            listed["minItems"] = self.at_least
        return {"anyOf": [self.item.schema(), listed]} if self.or_one else listed


@dataclass(frozen=True, slots=True)
class Short:
    """A block, or the value of one of its keys alone."""

    block: Block
    key: str

    @property
    def words(self) -> str:
        return f"{self.block.keys[self.key].shape.words}, or {self.block.words}"

    def read(self, node: Node, at: At) -> Any:
        if isinstance(node, Tree):
            return self.block.read(node, at)
        key = self.block.keys[self.key]
        part = key.shape.read(node, at)
        if part is MISSING:
            return MISSING
        return self.block.make(place=at.place(node.line), **{key.field or self.key: part})

    def schema(self) -> Schema:
        return {"anyOf": [self.block.keys[self.key].shape.schema(), self.block.schema()]}


@dataclass(frozen=True, slots=True)
class Form:
    """Pattern for names of a kind."""

    pattern: re.Pattern[str]
    words: str


PLAIN: Final = Form(re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}"), "letters, digits and _, a letter first")
DASHED: Final = Form(re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}"), "letters, digits, _ and -, a letter first")
ANY: Final = Form(re.compile(r"[^\x00-\x1f\x7f]{1,200}"), "printable characters, at most 200")


@dataclass(frozen=True, slots=True)
class Named:
    """A mapping from names that the author chooses.

    Args:
        item: What each name stands for.
        what: `service`, `factor`: for messages.
        form: What the names look like.
        reserved: Names with another meaning (in lower case), and which.
    """

    item: Shape
    what: str
    form: Form = DASHED
    reserved: Mapping[str, str] = field(default_factory=dict)
    at_least: int = 0

    @property
    def words(self) -> str:
        return f"mapping: {self.what} name -> {self.item.words}"

    def read(self, node: Node, at: At) -> Any:
        if not isinstance(node, Tree):
            hint = f"{self.what.upper()}: ..."
            return at.fault(node.line, f"wanted a mapping of {self.what} names, got {_kind(node)}", hint)
        if len(node.items) < self.at_least:
            return at.fault(node.line, f"there is no {self.what} here", f"name at least {self.at_least}")
        read: dict[str, Any] = {}
        for name, item in node.items.items():
            below = at.below(name)
            if self._is_usable(name, node.key_lines[name], below):
                read[name] = self.item.read(item, below)
        return {name: part for name, part in read.items() if part is not MISSING}

    def _is_usable(self, name: str, line: int, at: At) -> bool:
        if name.lower() in self.reserved:
            at.fault(line, f"{name} is {self.reserved[name.lower()]}", f"another name for this {self.what}")
            return False
        if not self.form.pattern.fullmatch(name):
            at.fault(line, f"{shown(name)} cannot name a {self.what}", f"{self.form.words}")
            return False
        return True

    def schema(self) -> Schema:
        mapping: Schema = {"type": "object", "additionalProperties": self.item.schema()}
        if self.form is not ANY:
            mapping["propertyNames"] = {"pattern": f"^{self.form.pattern.pattern}$"}
        if self.at_least:
            mapping["minProperties"] = self.at_least
        return mapping


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a block."""

    shape: Shape
    doc: str
    default: str = ""
    required: bool = False
    field: str | None = None  # the field of the part; none: as the key


@dataclass(frozen=True, slots=True)
class Block:
    """A mapping with the keys below and no others.

    Args:
        what: `service`, `load`: for messages and as the name in the schema.
        make: The part it becomes; called with `place` and the fields that were given.
        keys: The keys.
        refused: Keys of the format that cannot be run yet, and what there is instead.
        check: Faults that lie in no single value: gets the keys that stand there and the node.
    """

    what: str
    make: Callable[..., Any]
    keys: Mapping[str, Key]
    doc: str
    refused: Mapping[str, str] = field(default_factory=dict)
    check: Callable[[Tree, At], None] | None = None

    @property
    def words(self) -> str:
        return f"[{self.what}](#{self.what.replace(' ', '-')})"

    def read(self, node: Node, at: At) -> Any:
        if not isinstance(node, Tree):
            first = ", ".join(list(self.keys)[:4])
            return at.fault(
                node.line, f"wanted a {self.what}, got {_kind(node)}", f"a mapping with: {first} ..."
            )
        fields: dict[str, Any] = {}
        for name, item in node.items.items():
            line, below = node.key_lines[name], at.below(name)
            if name in self.refused:
                below.fault(
                    line, f"{name} is not supported yet; supported: {self.refused[name]}", "remove it"
                )
            elif name not in self.keys:
                allowed = [*self.keys, *self.refused]
                below.fault(line, f"unknown key {shown(name)}", names.did_you_mean(name, allowed))
            elif (part := self.keys[name].shape.read(item, below)) is not MISSING:
                fields[self.keys[name].field or name] = part
        if self.check is not None:
            self.check(node, at)
        return self._made(fields, node, at)

    def _made(self, fields: dict[str, Any], node: Tree, at: At) -> Any:
        is_whole = True
        for name, key in self.keys.items():
            if not key.required or (key.field or name) in fields:
                continue
            is_whole = False
            if name not in node.items:
                at.fault(node.line, f"{self.what} without {name}", f"{name}: {key.doc}")
        return self.make(place=at.place(node.line), **fields) if is_whole else MISSING

    def schema(self) -> Schema:
        return {"$ref": f"#/$defs/{self.what.replace(' ', '_')}"}

    def definition(self) -> Schema:
        """The schema of the block itself, which `schema` refers to."""
        properties = {
            name: {**_annotated(key.shape.schema()), "description": key.doc}
            for name, key in self.keys.items()
        }
        required = [name for name, key in self.keys.items() if key.required]
        content: Schema = {
            "type": "object",
            "description": self.doc,
            "properties": properties,
            "additionalProperties": False,
        }
        return content | ({"required": required} if required else {})


def _annotated(schema: Schema) -> Schema:
    """A reference that may have a description next to it in every version of JSON Schema."""
    return {"allOf": [schema]} if "$ref" in schema else schema


def _kind(node: Node) -> str:
    """Describe a value in words."""
    if isinstance(node, Row):
        return "a list"
    if isinstance(node, Tree):
        return "a mapping"
    return shown(node.value)
