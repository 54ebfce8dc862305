"""The vocabulary that the study file is described in: kinds of values, blocks of keys, lists, named things.

A shape reads a node into the type that the engine and the testbed use, noting every fault with its line,
and says of itself what it accepts, as JSON Schema and in words. `keys_*.py` hold the file's shape in these
terms; so the checks, the schema and the reference page cannot disagree. A file is read once as it stands,
where what holds a `$name` is OPEN, and once for each case, with its values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from loadlens.study.definition import Faults, Place
from loadlens.study.parse import placeholders
from loadlens.study.tree import Leaf, Node, Row, Tree
from loadlens.units import UnitError, shown

if TYPE_CHECKING:
    from loadlens.study.parse.case_values import CaseValues

MISSING: Final = object()  # what a shape gives for a node that it noted a fault for
OPEN: Final = object()  # what it gives for one that holds names, until they are filled
Schema = dict[str, Any]
Fields = dict[str, Any]
NAME_SCHEMA: Final[Schema] = {"$ref": "#/$defs/name"}


@dataclass(frozen=True, slots=True)
class At:
    """Position of the reader in the file, and its context."""

    file: str
    folder: str  # that files are seen from
    names: placeholders.Names
    faults: Faults
    key: str = ""
    case: CaseValues | None = None  # none: the file is read as it stands

    @property
    def name(self) -> str:
        """The last key of the path."""
        return self.key.rpartition(".")[2]

    def place(self, line: int) -> Place:
        """This key path on a line."""
        return Place(self.file, line, self.key)

    def below(self, *keys: str) -> At:
        """The same for a key below."""
        return replace(self, key=".".join((self.key, *keys) if self.key else keys))

    def item(self, index: int) -> At:
        """The same for an item of a list."""
        return replace(self, key=f"{self.key}[{index}]")

    def of(self, node: Tree, key: str) -> At:
        """The same for a key of a mapping, wherever in the file it stands."""
        return replace(self, key=node.origins[key]) if key in node.origins else self.below(key)

    def fault(self, line: int, message: str, hint: str | None = None) -> object:
        """Note a fault here; gives MISSING, so that a reader can return it."""
        self.faults.add(message, self.place(line), hint)
        return MISSING

    def fault_of(self, node: Tree, key: str, message: str, hint: str | None = None) -> object:
        """Note a fault of a key of a mapping."""
        return self.of(node, key).fault(node.items[key].line, message, hint)


class Shape(Protocol):
    """Values allowed at a place of the file."""

    @property
    def words(self) -> str:
        """For the reference: `duration`, `list of texts`."""

    def read(self, node: Node, at: At) -> Any:
        """The value; MISSING after noting faults, OPEN while names in it are not filled."""

    def schema(self) -> Schema:
        """JSON Schema of it."""


# --------------------------------------------------------------------------------------------------- values


@dataclass(frozen=True, slots=True)
class Value:
    """A value that may hold `$names`.

    Args:
        words: For the reference.
        convert: The filled value -> what the key means; raises UnitError.
        accepts: JSON Schema of the values without names.
        is_nested: Whether lists and mappings are values of this kind too.
        is_nothing_allowed: Whether null is a value of this kind.
        is_text: Whether it is taken as written: `1.10` stays `1.10`.
        is_testbed: Whether names of the testbed (`$port`) may stand in it.
        is_fixed: Whether it stands as it is: a dollar is a dollar.
    """

    words: str
    convert: Callable[[Any], Any]
    accepts: Schema
    is_nested: bool = False
    is_nothing_allowed: bool = False
    is_text: bool = False
    is_testbed: bool = False
    is_fixed: bool = False

    def read(self, node: Node, at: At) -> Any:
        if not self.is_nested and not isinstance(node, Leaf):
            return at.fault(node.line, f"wanted a {self.words}, got {_kind(node)}", "one value, not several")
        if isinstance(node, Leaf) and node.value is None and not self.is_nothing_allowed:
            return at.fault(node.line, f"wanted a {self.words}, got nothing", "a value, or remove the key")
        names: set[str] = set()
        content = self._content(node, at, names)
        if names and at.case is None:
            return OPEN
        if at.case is not None and not self.is_testbed and any(n[1:] not in at.case.values for n in names):
            return MISSING  # noted already
        try:
            return self.convert(content)
        except UnitError as error:
            origin = f" (from {', '.join(sorted(names))} in {at.case.scope})" if names and at.case else ""
            return at.fault(node.line, error.message + origin, error.example)

    def _content(self, node: Node, at: At, names: set[str]) -> Any:
        """The plain content, the names in it filled if there is a case, and noted."""
        if isinstance(node, Row):
            return [self._content(item, at.item(i), names) for i, item in enumerate(node.items)]
        if isinstance(node, Tree):
            return {key: self._content(item, at.below(key), names) for key, item in node.items.items()}
        value = node.written if self.is_text and node.value is not None else node.value
        if not isinstance(value, str) or self.is_fixed:
            return value
        pieces = placeholders.split(value, at.names.services)
        open_names = [piece.text for piece in pieces if isinstance(piece, placeholders.Name)]
        names.update(f"${name}" for name in open_names)
        place = at.place(node.line)
        if at.case is not None:
            return placeholders.filled(pieces, at.case, at.faults, place, is_testbed=self.is_testbed)
        for name in open_names:
            placeholders.check(name, at.names, at.faults, place, is_testbed=self.is_testbed)
        return "" if open_names or not pieces else pieces[0]

    def schema(self) -> Schema:
        if self.is_fixed or self.accepts == {} or self.accepts == {"$ref": "#/$defs/text"}:
            return dict(self.accepts)
        return {"anyOf": [self.accepts, NAME_SCHEMA]}


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
            return only if only is MISSING or only is OPEN else (only,)
        if len(node.items) < self.at_least:
            return at.fault(node.line, "the list is empty", f"at least {self.at_least}")
        read = [self.item.read(item, at.item(index)) for index, item in enumerate(node.items)]
        return OPEN if _has_open(read) else tuple(part for part in read if part is not MISSING)

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
        return self.block.read(
            Tree(node.line, {self.key: node}, {self.key: node.line}, {self.key: at.key}), at
        )

    def schema(self) -> Schema:
        return {"anyOf": [self.block.keys[self.key].shape.schema(), self.block.schema()]}


@dataclass(frozen=True, slots=True)
class OrText:
    """A block, or one text that says the same."""

    block: Block
    text: Value

    @property
    def words(self) -> str:
        return f"{self.text.words}, or {self.block.words}"

    def read(self, node: Node, at: At) -> Any:
        return self.block.read(node, at) if isinstance(node, Tree) else self.text.read(node, at)

    def schema(self) -> Schema:
        return {"anyOf": [self.text.schema(), self.block.schema()]}


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
            below, line = at.of(node, name), node.key_lines[name]
            if name.lower() in self.reserved:
                meaning = self.reserved[name.lower()]
                below.fault(line, f"{name} is {meaning}", f"another name for this {self.what}")
            elif not self.form.pattern.fullmatch(name):
                below.fault(line, f"{shown(name)} cannot name a {self.what}", self.form.words)
            else:
                read[name] = self.item.read(item, below)
        if _has_open(read.values()):
            return OPEN
        return {name: part for name, part in read.items() if part is not MISSING}

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
    field: str | None = None  # of what the block becomes; none: as the key


@dataclass(frozen=True, slots=True)
class Block:
    """A mapping with the keys below and no others.

    Args:
        what: `service`, `load`: for messages and as the name in the schema.
        make: The type that takes the fields that were given, or a function of them, of the node and of
            its place, which may note faults.
        keys: The keys.
        refused: Keys of the format that cannot be run yet, and what there is instead.
        check: Faults that lie in no single value and in no name; called once for a file.
        is_of_case: Whether it is made of filled values only.
        example: A whole one, for a message; none: its first keys.
    """

    what: str
    make: type | Callable[[Fields, Tree, At], Any]
    keys: Mapping[str, Key]
    doc: str
    refused: Mapping[str, str] = field(default_factory=dict)
    check: Callable[[Tree, At], None] | None = None
    is_of_case: bool = False
    example: str = ""

    @property
    def words(self) -> str:
        return f"[{self.what}](#{self.what.replace(' ', '-')})"

    def read(self, node: Node, at: At) -> Any:
        if not isinstance(node, Tree):
            article = "an" if self.what[0] in "aeiou" else "a"
            example = self.example or f"a mapping with: {', '.join(list(self.keys)[:4])} ..."
            return at.fault(node.line, f"wanted {article} {self.what}, got {_kind(node)}", example)
        fields = self.fields(node, at)
        if any(key.required and (key.field or name) not in fields for name, key in self.keys.items()):
            return MISSING
        if _has_open(fields.values()) or (self.is_of_case and at.case is None):
            return OPEN
        return self.make(**fields) if isinstance(self.make, type) else self.make(fields, node, at)

    def fields(self, node: Tree, at: At) -> Fields:
        """Return the values of the keys that stand there, by their fields, without those that have faults."""
        fields: Fields = {}
        for name, item in node.items.items():
            line, below = node.key_lines[name], at.of(node, name)
            if name in self.refused:
                message = f"{name} is not supported yet; supported: {self.refused[name]}"
                below.fault(line, message, "remove it")
            elif name in self.keys and (part := self.keys[name].shape.read(item, below)) is not MISSING:
                fields[self.keys[name].field or name] = part
        if self.check is not None and at.case is None:
            self.check(node, at)
        for name, key in self.keys.items():
            if key.required and name not in node.items:
                at.fault(node.line, f"{self.what} without {name}", f"{name}: {key.doc}")
        return fields

    def value(self, node: Tree, at: At, name: str, default: Any = None) -> Any:
        """Return the value of one key; the default where it does not stand, or has a fault."""
        if name not in node.items:
            return default
        value = self.keys[name].shape.read(node.items[name], at.of(node, name))
        return default if value is MISSING else value

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


def _has_open(parts: Iterable[Any]) -> bool:
    return any(part is OPEN for part in parts)


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
