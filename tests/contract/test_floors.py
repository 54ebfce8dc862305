"""The floors of the house: a module imports only from lower floors and from its own folder."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "python" / "loadlens"
FLOORS: dict[str, int] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["loadlens"]["floors"]
SOURCES = sorted(PACKAGE.rglob("*.py"))


def part_of(path: Path) -> str:
    """The top-level part of the house that a file belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_parts(path: Path) -> set[tuple[str, int]]:
    """(part, line) of everything of Loadlens that a file imports, however late."""
    found = set()
    inside = path.relative_to(PACKAGE.parent).with_suffix("").parts
    package = inside[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(filter(None, [base, node.module or ""]))
            names = [f"{module}.{alias.name}" for alias in node.names] if module == "loadlens" else [module]
        for name in names:
            parts = name.split(".")
            if parts[0] == "loadlens" and len(parts) > 1 and not parts[1].startswith("__"):
                found.add((parts[1], node.lineno))
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_imports_only_from_lower_floors_and_its_own_folder(path: Path) -> None:
    part = part_of(path)
    if part in {"__init__", "__main__"}:
        return
    floor = FLOORS[part]

    wrong = [
        f"line {line}: {name} [{FLOORS.get(name, 2)}]"
        for name, line in imported_parts(path)
        if name != part and name != "_engine" and FLOORS[name] >= floor
    ]

    assert not wrong, f"{part} [{floor}] must not import {wrong}"


def test_every_part_of_the_house_has_a_floor_and_every_floor_a_part() -> None:
    parts = {part_of(path) for path in SOURCES} - {"__init__", "__main__"}

    assert parts <= set(FLOORS)


def test_only_the_engine_module_imports_the_compiled_one() -> None:
    importers = {
        part_of(path)
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text()))
        if (
            isinstance(node, ast.ImportFrom)
            and (
                node.module == "loadlens._engine"
                or (node.module == "loadlens" and "_engine" in {a.name for a in node.names})
            )
        )
        or (isinstance(node, ast.Import) and any(a.name == "loadlens._engine" for a in node.names))
    }

    assert importers <= {"engine"}
