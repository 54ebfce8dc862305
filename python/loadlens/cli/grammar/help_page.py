"""The help of a verb as data, and as text for the terminal: examples first, then options in groups.

The reference page and the manual pages are made from the same data (`tools/docs.py`).
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import click

from loadlens.cli.options import Example
from loadlens.present import terminal

NAMES_WIDTH: Final = 28  # columns of flags, and of examples as far as they fit
OTHER: Final = "Options"


@dataclass(frozen=True, slots=True)
class Entry:
    """Names of an option, argument or verb, and its description."""

    names: str
    text: str


@dataclass(frozen=True, slots=True)
class Section:
    """Entries under one heading."""

    title: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """The help of a verb, or of the program."""

    usage: str
    paragraphs: tuple[str, ...]
    examples: tuple[Example, ...]
    sections: tuple[Section, ...]


def page_of(command: click.Command, name: str) -> Page:
    """Return the help of a command that is called so."""
    sections: dict[str, list[Entry]] = {}
    arguments = []
    if isinstance(command, click.Group):
        for verb, child in command.commands.items():
            group = getattr(child, "rich_help_panel", None) or "Verbs"
            sections.setdefault(group, []).append(Entry(verb, paragraphs_of(child)[0]))
    for param in command.params:
        if isinstance(param, click.Option):
            if not param.hidden:
                group = getattr(param, "rich_help_panel", None) or OTHER
                sections.setdefault(group, []).append(Entry(_flags(param), param.help or ""))
        else:
            names = param.metavar or (param.name or "").upper()
            arguments.append(names)
            sections.setdefault("Arguments", []).append(Entry(names, getattr(param, "help", None) or ""))
    has_options = any(isinstance(param, click.Option) for param in command.params)
    words = ["Usage: loadlens" if isinstance(command, click.Group) else f"Usage: loadlens {name}"]
    words += ["[OPTIONS]"] if has_options else []
    words += ["VERB ..."] if isinstance(command, click.Group) else arguments
    examples: tuple[Example, ...] = getattr(command.callback, "examples", ())
    titles = sorted(sections, key=lambda title: title != "Arguments")
    return Page(
        " ".join(words),
        paragraphs_of(command),
        examples,
        tuple(Section(title, tuple(sections[title])) for title in titles),
    )


def paragraphs_of(command: click.Command) -> tuple[str, ...]:
    """Return the paragraphs of a command's description, each on one line."""
    blocks = inspect.cleandoc(command.help or "").split("\n\n")
    return tuple(" ".join(block.split()) for block in blocks if block.strip())


def _flags(param: click.Option) -> str:
    names = ", ".join(sorted((*param.opts, *param.secondary_opts), key=lambda name: name.startswith("--")))
    return f"{names} {param.metavar}" if param.metavar else names


def write(context: click.Context, formatter: click.HelpFormatter) -> None:
    """Write the help of a context's command for the terminal."""
    is_bold = context.color = terminal.has_colour()
    page = page_of(context.command, context.info_name or "")
    for line in lines(page, width=terminal.width()):
        is_heading = bool(line) and not line.startswith(" ") and line.endswith(":")
        formatter.write(f"\x1b[1m{line}\x1b[0m\n" if is_bold and is_heading else f"{line}\n")


def lines(page: Page, *, width: int) -> Iterator[str]:
    """Return the page as lines of text."""
    yield page.usage
    for paragraph in page.paragraphs:
        yield ""
        yield from textwrap.wrap(paragraph, width)
    if page.examples:
        yield from ("", "Examples:")
        examples = [(each.command, each.says) for each in page.examples]
        yield from _columns(examples, width, start=_start([first for first, _ in examples], width - 32))
    start = _start([each.names for section in page.sections for each in section.entries], NAMES_WIDTH)
    for section in page.sections:
        yield from ("", f"{section.title}:")
        yield from _columns([(each.names, each.text) for each in section.entries], width, start=start)


def _start(names: list[str], most: int) -> int:
    """Return the column of the second cells, behind all first cells that are not too long."""
    return 4 + max((len(name) for name in names if len(name) <= most), default=most)


def _columns(rows: list[tuple[str, str]], width: int, *, start: int) -> Iterator[str]:
    """Return rows of two columns; a first cell that is too long has a line of its own."""
    for first, second in rows:
        wrapped = textwrap.wrap(second, width - start, break_long_words=False, break_on_hyphens=False)
        if len(first) > start - 4:
            yield f"  {first}"
        elif wrapped:
            yield f"  {first:<{start - 2}}{wrapped.pop(0)}"
        else:
            yield f"  {first}"
        for line in wrapped:
            yield f"{'':<{start}}{line}"
