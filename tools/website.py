"""Hooks of mkdocs.yml for what `make site` does besides rendering docs/.

docs/index.md is the table of contents: its heads and links become the navigation. Pages that it links outside
docs/ become pages of the site. Markdown is written for GitHub (CommonMark); what Python-Markdown reads
otherwise is rewritten here. The site also carries llms.txt, llms-full.txt and each page as Markdown.
"""

from __future__ import annotations

import os.path
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tools import docs

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
FENCE = re.compile(r" *(```+|~~~+)")
ITEM = re.compile(r" *(?:[-*+]|\d+[.)]) +(?=\S)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Make the navigation from docs/index.md."""
    sections = docs.contents()
    config.nav = [
        {"Home": "index.md"},
        *({name: [{entry.title: entry.uri} for entry in section]} for name, section in sections.items()),
    ]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that docs/index.md links outside docs/."""
    from mkdocs.structure.files import File

    for entry in (entry for section in docs.contents().values() for entry in section):
        if not entry.path.is_relative_to(docs.DOCS):
            files.append(File.generated(config, entry.uri, abs_src_path=str(entry.path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite a page for Python-Markdown, with its links as they lead within the site."""
    uris = {entry.path: entry.uri for section in docs.contents().values() for entry in section}
    source = Path(page.file.abs_src_path or "")
    text = markdown.replace("<details>", '<details markdown="1">')
    return indented(LINK.sub(lambda link: _within(link, source, page.file.src_uri, uris), text))


def _within(link: re.Match[str], source: Path, uri: str, uris: dict[Path, str]) -> str:
    """Return a link for the page at `uri`; one to a file that is not of the site becomes plain text."""
    path, _, anchor = link[3].partition("#")
    target = (source.parent / path).resolve()
    if "://" in path or not path:
        return link[0]
    if target in uris:
        path = os.path.relpath(uris[target], os.path.dirname(uri))
    elif not target.is_relative_to(docs.DOCS):
        return link[2]
    elif not source.is_relative_to(docs.DOCS):
        path = os.path.relpath(target.relative_to(docs.DOCS), os.path.dirname(uri))
    return f"{link[1]}[{link[2]}]({path}{'#' if anchor else ''}{anchor})"


def indented(text: str) -> str:
    """Indent what is nested in a list by four spaces per level, and part lists from the paragraph above.

    CommonMark counts from the text of the item (two spaces for a dash), Python-Markdown from the margin.
    """
    lines: list[str] = []
    columns: list[int] = []  # where the text of each open item begins
    fence, was_text = "", False
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip())
        item = None if fence else ITEM.match(line)
        if line.strip() and not fence:
            inside = len(columns)
            columns = [column for column in columns if indent >= column]
            if item and not inside and was_text:
                lines.append("")
        outer = columns[-1] if columns else 0
        lines.append(" " * (4 * len(columns)) + line[min(outer, indent) :] if line.strip() else "")
        if item:
            columns.append(item.end())
        if mark := FENCE.match(line):
            fence = "" if fence and line.strip() == fence else fence or mark[1]
        was_text = bool(line.strip()) and not fence and not mark
    return "\n".join(lines) + "\n"


def on_post_build(config: MkDocsConfig, **_: Any) -> None:
    """Write the pages as Markdown, and their lists for programs that read."""
    site = Path(config.site_dir)
    (site / "llms.txt").write_text(docs.llms(), encoding="utf-8")
    (site / "llms-full.txt").write_text(docs.llms_full(), encoding="utf-8")
    for entry in (entry for section in docs.contents().values() for entry in section):
        page = site / entry.uri
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(entry.path.read_text(encoding="utf-8"), encoding="utf-8")
