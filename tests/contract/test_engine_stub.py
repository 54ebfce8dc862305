"""The typed stub of the compiled module says what the module has, no more and no less."""

from __future__ import annotations

import ast
from pathlib import Path

from loadlens import _engine

STUB = ast.parse((Path(_engine.__file__).parent / "_engine.pyi").read_text())


def public(names: list[str]) -> set[str]:
    return {name for name in names if not name.startswith("_")}


def test_the_stub_names_every_function_and_class_of_the_engine() -> None:
    stubbed = {node.name for node in STUB.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}

    assert public(list(stubbed)) == public(dir(_engine))


def test_the_stub_names_every_method_of_each_class() -> None:
    for node in STUB.body:
        if isinstance(node, ast.ClassDef):
            stubbed = {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
            assert public(list(stubbed)) == public(dir(getattr(_engine, node.name)))
