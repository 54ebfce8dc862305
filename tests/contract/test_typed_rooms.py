"""Rooms after the record work on types: string keys and loose mappings in them may only become fewer."""

from __future__ import annotations

import ast
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ALLOWED: dict[str, dict[str, int]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["loadlens"][
    "untyped"
]
LOOSE = ("dict[str, Any]", "Mapping[str, Any]")


@dataclass(frozen=True)
class Count:
    """String keys that are read or written, and mappings whose values may be anything."""

    keys: int
    mappings: int


def count_of(source: str) -> Count:
    keys = mappings = 0
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Subscript(slice=ast.Constant(value=str())):
                keys += 1
            case ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(value=str()), *_]):
                keys += 1
            case ast.Name(id="Json"):
                mappings += 1
            case ast.Subscript() if ast.unparse(node) in LOOSE:
                mappings += 1
    return Count(keys, mappings)


@pytest.mark.parametrize("room", ALLOWED)
def test_string_keys_and_loose_mappings_of_a_room_become_only_fewer(room: str) -> None:
    counts = [count_of(path.read_text()) for path in (ROOT / "python/loadlens" / room).rglob("*.py")]

    keys, mappings = sum(count.keys for count in counts), sum(count.mappings for count in counts)

    allowed = ALLOWED[room]
    assert keys <= allowed["keys"], f"{keys} string keys: give what they read a type in model/"
    assert mappings <= allowed["mappings"], f"{mappings} loose mappings: give them a type in model/"


def test_keys_and_mappings_are_counted_as_a_reader_would() -> None:
    source = "def f(a: Json, b: dict[str, Any]):\n    return a['x']['y'], b.get('z', 0), b[0], b.get(a)\n"

    assert count_of(source) == Count(keys=3, mappings=2)
