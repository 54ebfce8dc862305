"""Frozen types read back from JSON: what is accepted, what is ignored, and how a fault is named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import pytest

from loadlens.model.plain import Unreadable, read
from loadlens.model.result import EngineResult
from loadlens.model.workload import Closed, Open, Think
from tests import records


@dataclass(frozen=True, slots=True)
class Part:
    name: str
    size: float = 1.0


@dataclass(frozen=True, slots=True)
class Whole:
    parts: tuple[Part, ...]
    kind: Literal["a", "b"] = "a"
    params: tuple[tuple[str, str | int | bool], ...] = ()
    counts: Mapping[str, int] | None = None
    load: Closed | Open | None = None


def test_lists_mappings_and_parts_become_tuples_pairs_and_types() -> None:
    content = {
        "parts": [{"name": "x", "size": 2}, {"name": "y"}],
        "params": {"workers": 4, "log": "off", "fast": True},
        "counts": {"200": 7},
        "load": {"kind": "closed", "users": 5, "think": {"kind": "fixed", "ns": 10}},
    }

    assert read(Whole, content) == Whole(
        (Part("x", 2.0), Part("y")),
        params=(("workers", 4), ("log", "off"), ("fast", True)),
        counts={"200": 7},
        load=Closed(5, Think("fixed", ns=10)),
    )


def test_keys_of_a_later_version_are_ignored() -> None:
    assert read(Part, {"name": "x", "colour": "red"}) == Part("x")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({}, "parts: is missing"),
        ({"parts": 7}, "parts: a list is expected, not '7'"),
        ({"parts": [{"name": "x"}, {"name": 7}]}, "parts[1].name: a text is expected, not '7'"),
        ({"parts": [{"name": "x", "size": True}]}, "parts[0].size: a number is expected, not 'True'"),
        ({"parts": [], "kind": "c"}, "kind: one of ['a', 'b'] is expected, not 'c'"),
        ({"parts": [], "counts": {"200": 1.5}}, "counts.200: a whole number is expected, not '1.5'"),
        ({"parts": [], "load": {"kind": "tidal"}}, "load: `kind` closed or open is expected"),
        ([], "an object is expected, not '[]'"),
    ],
)
def test_a_fault_says_where_it_is_and_what_was_expected(content: Any, words: str) -> None:
    with pytest.raises(Unreadable) as raised:
        read(Whole, content)

    assert str(raised.value).startswith(words)


def test_a_load_of_another_program_has_no_streams_of_ours() -> None:
    driven = records.engine_result() | {"driver": {"name": "siege", "tells_requests": False}}

    result = EngineResult.from_json(driven)

    assert result.streams == ()
    assert result.external is not None
    assert result.external.requests.answered == 100
