"""The front page of the documentation links every page, and no link of any page is dead."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FOLDERS = [ROOT / "studies", ROOT / "examples"]  # with pages of their own
READMES = [page for folder in FOLDERS for page in folder.rglob("README.md")]
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *READMES])
LINK = re.compile(r"\]\(([^)\s]+)\)")


def links(page: Path) -> list[tuple[Path, str]]:
    """Return file and anchor of each link to a file of this repository."""
    targets = [link for link in LINK.findall(page.read_text(encoding="utf-8")) if "://" not in link]
    parts = [target.partition("#") for target in targets]
    return [((page.parent / path).resolve() if path else page, anchor) for path, _, anchor in parts]


@cache
def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def test_every_page_is_linked_from_the_front_page() -> None:
    pages = {path for path in DOCS.rglob("*.md") if path.parent.name != "adr"} - {DOCS / "index.md"}

    assert sorted(pages - {path for path, _ in links(DOCS / "index.md")}) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    dead = [
        f"{path}#{anchor}"
        for path, anchor in links(page)
        if not path.exists() or (anchor and path.suffix == ".md" and anchor not in anchors(path))
    ]

    assert dead == []
