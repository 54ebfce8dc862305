"""ARCHITECTURE.md and CONTRIBUTING.md name what exists: rooms, crates, paths, and symbols in files."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "python" / "loadlens"
PATH = re.compile(r"`([\w.-]+/[\w./-]*|[\w.-]+\.(?:py|rs|md|toml))`")
SYMBOLS = re.compile(r"((?:`\w+`(?:,| and)? )+)of\s+`([\w/.]+\.py)`")
PLACEHOLDER = re.compile(r"NAME|ROOM|FILE|NUMBER")


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def recipes() -> str:
    """Return the recipes with each paragraph and list item on one line."""
    section = text_of("CONTRIBUTING.md").partition("\n## Recipes\n")[2].partition("\n## ")[0]
    return re.sub(r"\n +(?!\d\.)", " ", section)


def places_of(path: str, room: str = "") -> list[Path]:
    """Return what a path means: from the root, from the package, or from a room; `NAME` is any name."""
    pattern = PLACEHOLDER.sub("*", path.rstrip("/"))
    return [place for base in (ROOT, PACKAGE, PACKAGE / room) for place in base.glob(pattern)]


def test_every_path_of_the_map_exists() -> None:
    missing = []
    for line in text_of("ARCHITECTURE.md").splitlines():
        paths = PATH.findall(line)
        missing += [path for path in paths if not places_of(path, paths[0].rstrip("/"))]

    assert missing == []


def test_every_path_of_a_recipe_exists() -> None:
    missing = [path for path in PATH.findall(recipes()) if not places_of(path)]

    assert missing == []


def test_every_symbol_of_a_recipe_is_in_its_file() -> None:
    named = [
        (symbol, path)
        for symbols, path in SYMBOLS.findall(recipes())
        for symbol in re.findall(r"\w+", symbols)
        if symbol != "and"
    ]

    missing = [
        (symbol, path)
        for symbol, path in named
        if not any(
            re.search(rf"\b{symbol}\b", place.read_text(encoding="utf-8")) for place in places_of(path)
        )
    ]

    assert len(named) > 15
    assert missing == []


def test_the_map_has_a_line_for_every_room_and_every_crate() -> None:
    table = tomllib.loads(text_of("pyproject.toml"))["tool"]["loadlens"]["rooms"]
    rooms = [f"{room}.py" if (PACKAGE / f"{room}.py").exists() else f"{room}/" for room in table]
    folder = ROOT / "crates"
    crates = [path.parent.name for path in (*folder.glob("*/Cargo.toml"), *folder.glob("lab/*/Cargo.toml"))]
    lines = [line for line in text_of("ARCHITECTURE.md").splitlines() if line.startswith("- ")]

    listed = {name for line in lines for name in re.findall(r"`([^`]+)`", line.partition(": ")[0])}

    assert sorted({*rooms, *crates} - {"compat/"} - listed) == []


def test_the_map_is_one_page() -> None:
    lines = text_of("ARCHITECTURE.md").splitlines()

    assert len(lines) <= 120
    assert [line for line in lines if len(line) > 100 and not line.startswith("![")] == []
