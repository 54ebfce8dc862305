"""The events of a YAML 1.2 text, as the engine reads them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from loadlens import engine

_CLOSE: Final = "close each { and ["
# A part of what the parser says -> the same in short (empty: as it is), and a hint; the first that fits.
_FAULTS: Final = (
    ("tab", "a tab", "indent with spaces"),
    ("character U+", "", "remove it"),
    ("valid YAML whitespace", "a tab after a colon", "write a blank in its place"),
    ("flow mapping", "expected ',' or '}'", _CLOSE),
    ("flow sequence", "expected ',' or ']'", _CLOSE),
    ("recursion", "nested more than 250 deep", _CLOSE),
    (
        "unknown anchor",
        "an alias names no anchor above it",
        "write &NAME before the value that *NAME repeats",
    ),
    ("end of stream", "a quote is not closed", "close it"),
    ("Unicode character escape", "half a character as an escape", "write the character itself"),
    ("escape", "an unknown escape", "use single quotes, in which a backslash is a backslash"),
)
_QUOTE_HINT: Final = (
    'quote text that holds `: ` or `#`, or begins with `{`: "{{uuid}}"; '
    "or add a `:` that is missing in the line above"
)
# With anchor and tag; comments after it are not part of it, though the parser's end is after them.
_QUOTED: Final = re.compile(r"""(?:[&!]\S*\s+)*(?:'(?:[^']|'')*'|"(?:[^"\\]|\\.)*")""", re.DOTALL)


class Event(NamedTuple):
    """One event of the parser.

    Attributes:
        kind: document, map, list, scalar, alias, or end (of a map or list).
        text: Of a scalar, without its quotes and escapes.
        style: Of a scalar: plain, quoted or block; empty for anything else.
        anchor: The number of its anchor, or of the one that an alias names; 0: none.
        tag: As written, `!!` in full.
        begin: Its first character, counted from 0; anchor, tag and the `|` or `>` of a block belong to it.
        end: The character after its last one.
        line: Counted from 1.
    """

    kind: str
    text: str
    style: str
    anchor: int
    tag: str | None
    begin: int
    end: int
    line: int


class YamlFault(ValueError):
    """A text is not YAML from a line on."""

    def __init__(self, message: str, line: int, hint: str) -> None:
        super().__init__(message)
        self.message, self.line, self.hint = message, line, hint


def events(text: str) -> Iterator[Event]:
    """The events of a text, in order.

    Raises:
        YamlFault: When all events before the fault were taken.
    """
    rows, fault = engine.yaml_events(text)
    last = 0
    for event in map(Event._make, rows):
        if event.style == "block":
            event = _whole_block(event, text, last)
        elif event.style == "quoted" and (quoted := _QUOTED.match(text, event.begin, event.end)):
            event = event._replace(end=quoted.end())
        last = event.end
        yield event
    if fault is not None:
        problem, line = fault
        if "tab" in problem:  # where it is, not where the value begins that it ends
            indents = [each[: len(each) - len(each.lstrip())] for each in text.split("\n")]
            line = next((at for at, indent in enumerate(indents, 1) if at >= line and "\t" in indent), line)
        fitting = (each for each in _FAULTS if each[0] in problem)
        _, short, hint = next(fitting, ("", "", _QUOTE_HINT))
        raise YamlFault(f"not YAML: {short or problem[:200]}", min(line, text.rstrip().count("\n") + 1), hint)


def _whole_block(event: Event, text: str, last: int) -> Event:
    """A block with its header, which the parser leaves out, as far as it follows the event before.

    At the end of a text without a last line break it adds one to the value (YAML 1.2.2, 8.1.1.2).
    """
    if event.end == len(text) and not text.endswith("\n"):
        event = event._replace(text=event.text.removesuffix("\n"))
    last_line = text.rfind("\n", event.begin, event.end) + 1
    if last_line and not text[last_line : event.end].strip():  # the indentation of what follows
        event = event._replace(end=last_line)
    if event.anchor or event.tag is not None:
        return event
    before = text[last : event.begin].rstrip()
    line = before.rfind("\n") + 1
    header = re.search(r"(?<!\S)[|>]", before[line:])
    if header is None:  # nothing but the header is there
        return event
    begin = last + line + header.start()
    return event._replace(begin=begin, line=event.line - text.count("\n", begin, event.begin))
