"""Frozen dataclasses read back from JSON: the field types say what is expected under each key.

Keys without a field are ignored, so that a later version may add some; a missing key takes the field's
default. A tuple of pairs may be written as a mapping; the key `kind` selects one of several dataclasses.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

T = TypeVar("T")
Reader = Callable[[Any], Any]
_PLAIN: dict[Any, tuple[tuple[type, ...], str]] = {
    int: ((int,), "a whole number"),
    float: ((int, float), "a number"),
    str: ((str,), "a text"),
    bool: ((bool,), "true or false"),
}


class Unreadable(ValueError):
    """A value of another type than expected: `streams[0].timeout_ns: a whole number is expected, not 'x'`."""

    def __init__(self, what: str, where: str = "") -> None:
        super().__init__(f"{where}: {what}" if where else what)
        self.what = what
        self.where = where

    def under(self, name: str) -> Unreadable:
        """The same fault, seen from the object around."""
        dot = "." if self.where and not self.where.startswith("[") else ""
        return Unreadable(self.what, f"{name}{dot}{self.where}")


def read(kind: type[T], content: object) -> T:
    """Read a value of a type from plain data, as `json.loads` gives it.

    Raises:
        Unreadable: A key is missing or holds something else; the message says which.
    """
    value: T = _reader(kind)(content)
    return value


def _reader(kind: Any) -> Reader:
    return _made(kind)


@cache
def _made(kind: Any) -> Reader:
    if kind in _PLAIN:
        return _plain(kind)
    if kind in (Any, object):
        return _as_it_is
    if is_dataclass(kind) and isinstance(kind, type):
        return _dataclass(kind)
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _union(args)
    if origin is Literal:
        return _one_of(args)
    if origin is tuple:
        return _tuple(args)
    if origin in (dict, Mapping):
        return _mapping(args[1])
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _enumeration(kind)
    raise TypeError(f"no reader for {kind}")


def _as_it_is(content: Any) -> Any:
    return content


def _expected(what: str, content: object) -> Unreadable:
    return Unreadable(f"{what} is expected, not {str(content)[:40]!r}")


def _plain(kind: Any) -> Reader:
    accepted, what = _PLAIN[kind]

    def of_kind(content: Any) -> Any:
        if type(content) is kind:
            return content
        if type(content) not in accepted:
            raise _expected(what, content)
        return kind(content)

    return of_kind


def _enumeration(kind: type[Enum]) -> Reader:
    def member(content: Any) -> Any:
        try:
            return kind(content)
        except ValueError:
            raise _expected(f"one of {[each.value for each in kind]}", content) from None

    return member


def _one_of(allowed: tuple[Any, ...]) -> Reader:
    def one(content: Any) -> Any:
        if content not in allowed:
            raise _expected(f"one of {list(allowed)}", content)
        return content

    return one


def _union(kinds: tuple[Any, ...]) -> Reader:
    is_optional = types.NoneType in kinds
    others = [kind for kind in kinds if kind is not types.NoneType]
    classes = [kind for kind in others if isinstance(kind, type) and is_dataclass(kind)]
    by_kind = {kind.__name__.lower(): _reader(kind) for kind in classes}
    if len(others) == 1:
        inner = _reader(others[0])
    elif len(by_kind) == len(others):

        def inner(content: Any) -> Any:
            reader = by_kind.get(str(content.get("kind"))) if isinstance(content, Mapping) else None
            if reader is None:
                raise _expected(f"`kind` {' or '.join(by_kind)}", content)
            return reader(content)

    else:
        accepted = tuple(each for kind in others for each in _PLAIN[kind][0])

        def inner(content: Any) -> Any:
            if type(content) not in accepted:
                raise _expected("a text or a number", content)
            return content

    return (lambda content: None if content is None else inner(content)) if is_optional else inner


def _tuple(args: tuple[Any, ...]) -> Reader:
    if args[-1] is not Ellipsis:
        readers = [_reader(kind) for kind in args]

        def row(content: Any) -> Any:
            if not isinstance(content, (list, tuple)) or len(content) != len(readers):
                raise _expected(f"a list of {len(readers)}", content)
            return tuple([reader(item) for reader, item in zip(readers, content, strict=True)])

        return row
    item_reader = _reader(args[0])
    holds_pairs = get_origin(args[0]) is tuple and len(get_args(args[0])) == 2

    def items(content: Any) -> Any:
        if holds_pairs and isinstance(content, Mapping):
            content = list(content.items())
        if not isinstance(content, (list, tuple)):
            raise _expected("a list", content)
        values: list[Any] = []
        for item in content:
            try:
                values.append(item_reader(item))
            except Unreadable as fault:
                raise fault.under(f"[{len(values)}]") from None
        return tuple(values)

    return items


def _mapping(kind: Any) -> Reader:
    item_reader = _reader(kind)

    def mapping(content: Any) -> Any:
        if not isinstance(content, Mapping):
            raise _expected("an object", content)
        values = {}
        for name, item in content.items():
            try:
                values[str(name)] = item_reader(item)
            except Unreadable as fault:
                raise fault.under(str(name)) from None
        return values

    return mapping


def _dataclass(kind: type[Any]) -> Reader:
    hints = typing.get_type_hints(kind)
    # Made when first needed: a type may hold itself.
    read_fields = [
        (field.name, hints[field.name], field.default is MISSING and field.default_factory is MISSING)
        for field in fields(kind)
        if field.init
    ]
    readers: list[tuple[str, Reader, bool]] = []

    def instance(content: Any) -> Any:
        if not isinstance(content, Mapping):
            raise _expected("an object", content)
        if not readers:
            readers.extend((name, _reader(hint), is_needed) for name, hint, is_needed in read_fields)
        values = {}
        for name, reader, is_needed in readers:
            if name in content:
                try:
                    values[name] = reader(content[name])
                except Unreadable as fault:
                    raise fault.under(name) from None
            elif is_needed:
                raise Unreadable("is missing", name)
        return kind(**values)

    return instance
