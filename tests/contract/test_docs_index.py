"""The front page of the documentation links every page, and no link of the entry pages is dead."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
ENTRIES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/index.md")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


def linked_from(page: Path) -> set[Path]:
    """Return the files that a page links, links to other sites left out."""
    targets = LINK.findall(page.read_text(encoding="utf-8"))
    return {(page.parent / target).resolve() for target in targets if "://" not in target}


def test_every_page_is_linked_from_the_front_page() -> None:
    pages = {path for path in DOCS.rglob("*.md") if path.parent.name != "adr"} - {DOCS / "index.md"}

    assert sorted(pages - linked_from(DOCS / "index.md")) == []


@pytest.mark.parametrize("name", [*ENTRIES, *(f"docs/adr/{p.name}" for p in (DOCS / "adr").glob("*.md"))])
def test_links_lead_somewhere(name: str) -> None:
    dead = [path for path in linked_from(ROOT / name) if not path.exists()]

    assert dead == []
