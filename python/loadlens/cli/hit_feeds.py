"""Reads the feeds of `hit` (NAME=FILE[,PICK]) and checks that the request uses each of them."""

from __future__ import annotations

from collections.abc import Sequence
from errno import ENOENT
from os import strerror
from pathlib import Path
from typing import Any, Final

from loadlens.cli.options import refuse_stream, unreadable
from loadlens.errors import UsageError
from loadlens.model.workload import FEED_FORMATS, Feed, Step

PICKS = ("shared", "unique", "random", "user")

# A part of what is wrong with a feed, and what to try.
_HINTS: Final = (
    ("a quote is not closed", "close it; a quote within a cell is written twice, in a cell in quotes"),
    ("UTF-8", "save the file as UTF-8"),
    ("is empty", "a first line such as id,name"),
)


def feeds_of(texts: Sequence[str], steps: Sequence[Step]) -> tuple[Feed, ...]:
    """Read the feeds of all --feed flags.

    Raises:
        UsageError: A flag or its file cannot be read, or the request uses nothing of it.
    """
    feeds = tuple(_feed(text) for text in texts)
    names = [feed.name for feed in feeds]
    used = {name for step in steps for name in _used(step, names)}
    for feed in feeds:
        if feed.name not in used:
            raise UsageError(
                f"the request uses no value of the feed {feed.name}",
                where="--feed",
                hint=f"{{{{{feed.name}.column}}}} in the URL, a header or the body, or drop --feed",
            )
    return feeds


def _feed(text: str) -> Feed:
    from loadlens import engine

    name, _, rest = text.partition("=")
    file, comma, pick = rest.rpartition(",")
    if not comma or pick not in PICKS:
        file, pick = rest, "shared"
    path = Path(file)
    if not name or not file:
        raise UsageError(f"not a feed: {text!r}", where="--feed", hint="--feed users=users.csv")
    format: Any = FEED_FORMATS.get(path.suffix.lower())
    if format is None:
        endings = ", ".join(FEED_FORMATS)
        hint = f"a file that ends in {endings}; after a comma {', '.join(PICKS)}"
        raise UsageError(f"unknown format of {file!r}", where="--feed", hint=hint)
    refuse_stream(file, "--feed")
    if not path.exists():
        raise unreadable(file, FileNotFoundError(ENOENT, strerror(ENOENT)), "--feed")
    try:
        digest = engine.open_feed(path, format).digest()
    except ValueError as fault:
        advice = next((advice for part, advice in _HINTS if part in str(fault)), None)
        raise UsageError(str(fault), where="--feed", hint=advice) from None
    chosen: Any = pick
    end: Any = "stop" if pick == "unique" else "loop"
    return Feed(name, str(path.resolve()), digest, format, chosen, end)


def _used(step: Step, names: Sequence[str]) -> set[str]:
    """Return the feeds that the request uses; all of them if a template is invalid."""
    if not names:
        return set()
    from loadlens import engine

    texts = [step.path, *(value for _, value in step.headers), step.body.text or ""]
    if any(engine.check_template(text, (), names) is not None for text in texts):
        return set(names)
    return {name for text in texts for name, _, _ in engine.columns_of(text, (), names)}
