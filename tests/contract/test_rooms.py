"""The rooms of the house: a module imports only its own room and the rooms that the table allows."""

from __future__ import annotations

import ast
import tomllib
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "python"
ROOMS: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["loadlens"][
    "rooms"
]
FILES = sorted([*(SOURCE / "loadlens").rglob("*.py"), *(SOURCE / "loadlens_compat").rglob("*.py")])
MOST_FILES = 22  # in a folder; a larger one needs rooms of its own
COMPAT = "loadlens_compat"


def room_of(module: str) -> str | None:
    """Name the room of a dotted module; `None` for the package itself and the compiled engine."""
    package, _, rest = module.partition(".")
    if package == COMPAT:
        return "compat"
    room = rest.partition(".")[0]
    return room if package == "loadlens" and room and not room.startswith("_") else None


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


def imported_rooms(path: Path) -> set[tuple[str, int]]:
    """Return (room, line) of everything of Loadlens that a file imports, at the top or inside a function."""
    modules: list[tuple[str, int]] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            modules += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: import by full name"
            is_package = node.module in ("loadlens", COMPAT)
            names = [f"{node.module}.{alias.name}" for alias in node.names] if is_package else [node.module]
            modules += [(name or "", node.lineno) for name in names]
    return {(room, line) for name, line in modules if (room := room_of(name)) is not None}


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_a_module_imports_only_the_rooms_that_the_table_allows(path: Path) -> None:
    room = room_of(module_of(path))
    if room is None:
        return

    wrong = [
        f"line {line}: {other}"
        for other, line in imported_rooms(path)
        if other != room and other not in ROOMS[room]
    ]

    assert not wrong, f"{room} may import {ROOMS[room]}, not {wrong}"


def test_every_allowed_import_is_used_and_every_room_exists() -> None:
    used: dict[str, set[str]] = {room: set() for room in ROOMS}
    for path in FILES:
        room = room_of(module_of(path))
        if room is not None:
            used[room] |= {other for other, _ in imported_rooms(path)} - {room}

    assert {room: set(allowed) for room, allowed in ROOMS.items()} == used


def test_a_room_lists_only_rooms_above_it() -> None:
    order = list(ROOMS)

    upwards = [
        (room, other)
        for room, allowed in ROOMS.items()
        for other in allowed
        if order.index(other) > order.index(room)
    ]

    assert upwards == []


def test_no_folder_holds_more_files_than_a_reader_can_scan() -> None:
    counts = Counter(path.parent for path in FILES if path.name != "__init__.py")

    assert {str(folder): n for folder, n in counts.items() if n > MOST_FILES} == {}


def test_only_the_engine_module_imports_the_compiled_one() -> None:
    importers = {
        room_of(module_of(path))
        for path in FILES
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
