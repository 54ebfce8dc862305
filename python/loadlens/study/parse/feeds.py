"""The feeds of one case: opened once for the whole study, their columns checked where templates use them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from loadlens.model.workload import FEED_FORMATS, Closed, Feed, Open
from loadlens.study.definition import Place
from loadlens.study.tree import Tree

if TYPE_CHECKING:
    from loadlens.study.parse.schema import At, Fields, Shape


class OpenFeed(Protocol):
    """A feed that has been read and checked."""

    def digest(self) -> str: ...
    def fault(self, column: str, in_header: bool, is_raw: bool) -> str | None: ...


class Templates(Protocol):
    """Checks of templates, patterns and feeds by the engine; `loadlens.engine` implements them."""

    def check_template(
        self, text: str, names: Sequence[str] = (), feeds: Sequence[str] = ()
    ) -> str | None: ...
    def columns_of(
        self, text: str, names: Sequence[str], feeds: Sequence[str]
    ) -> list[tuple[str, str, bool]]: ...
    def check_pattern(self, text: str, group: int | None = None) -> str | None: ...
    def open_feed(self, path: Path, format: str) -> OpenFeed: ...


class FeedFiles:
    """The feed files of a study, each read once however many cases use it."""

    def __init__(self, templates: Templates | None) -> None:
        self.templates = templates
        self.used: set[str] = set()  # names of feeds that any case uses
        self._opened: dict[tuple[Path, str], OpenFeed | str] = {}
        self._faults: dict[tuple[Path, str, str, bool, bool], str | None] = {}

    def open(self, path: Path, format: str) -> OpenFeed | str:
        """The feed, or what is wrong with it."""
        key = (path, format)
        if key not in self._opened and self.templates is not None:
            try:
                self._opened[key] = self.templates.open_feed(path, format)
            except ValueError as fault:
                self._opened[key] = str(fault)
        return self._opened[key]

    def fault(self, path: Path, format: str, column: str, *, in_header: bool, is_raw: bool) -> str | None:
        """Return the objection to using a column."""
        key = (path, format, column, in_header, is_raw)
        if key not in self._faults:
            opened = self.open(path, format)
            self._faults[key] = None if isinstance(opened, str) else opened.fault(column, in_header, is_raw)
        return self._faults[key]


@dataclass(slots=True)
class Feeds:
    """The feeds that one case may use, and those that it does."""

    nodes: Tree  # as the study has them
    shape: Shape  # that each of them is read by
    files: FeedFiles
    _made: dict[str, Feed | None] = field(default_factory=dict)
    _streams: dict[str, dict[str, Place]] = field(default_factory=dict)  # feed -> streams, where each uses it

    @property
    def made(self) -> tuple[Feed, ...]:
        """The feeds that the case uses, in the order of the study."""
        return tuple(feed for name in self.nodes.items if (feed := self._made.get(name)) is not None)

    def check(self, text: str, at: At, line: int, *, in_header: bool) -> str | None:
        """The fault of a template, if there is one; notes the columns that it uses."""
        templates, names = self.files.templates, list(self.nodes.items)
        assert at.case is not None, "templates are checked case by case"
        extracted = at.case.extracted
        if templates is None or "{{" not in text:
            return None
        fault = templates.check_template(text, extracted, names)
        if fault is not None:
            return fault
        for name, column, is_raw in templates.columns_of(text, extracted, names):
            self.files.used.add(name)
            self._streams.setdefault(name, {}).setdefault(at.case.stream, at.place(line))
            if name not in self._made:
                made = self.shape.read(self.nodes.items[name], replace(at, key=f"feeds.{name}"))
                self._made[name] = made if isinstance(made, Feed) else None
            feed = self._made[name]
            # A whole URL may stand raw at the start of a path, so it is judged when it is sent.
            is_part = is_raw and not text.lstrip("{ ").startswith("raw")
            if feed is not None and fault is None:
                path = Path(feed.path)
                fault = self.files.fault(path, feed.format, column, in_header=in_header, is_raw=is_part)
        return fault

    def check_streams(self, workloads: Mapping[str, Closed | Open], at: At) -> None:
        """Faults of feeds that do not suit the streams that use them."""
        for name, streams in self._streams.items():
            feed = self._made.get(name)
            if feed is None:
                continue
            if feed.pick == "unique" and len(streams) > 1:
                message = f"feed {name} is unique and used by {' and '.join(streams)}"
                at.faults.add(message, list(streams.values())[1], "pick: shared, or a file for each")
            for stream, place in streams.items():
                if feed.pick == "user" and isinstance(workloads.get(stream), Open):
                    message = (
                        f"feed {name} has a record for each user, and an open load has no users that stay"
                    )
                    at.faults.add(message, place, "pick: shared, or users instead of a rate")


def feed(fields: Fields, node: Tree, at: At) -> Feed | None:
    """A feed whose file is there and can be read."""
    assert at.case is not None, "feeds are read case by case"
    path = Path(at.folder) / fields["file"]
    format: Any = fields.get("format") or FEED_FORMATS.get(path.suffix.lower())
    if format is None:
        message = f"the ending of {path.name!r} does not say how it is written"
        hint = f"format: csv, or a file that ends in {', '.join(FEED_FORMATS)}"
        at.fault_of(node, "file", message, hint)
        return None
    if not path.is_file():
        at.fault_of(node, "file", f"there is no file {path.name!r}", f"make {path}")
        return None
    opened = at.case.feeds.files.open(path, format)
    if isinstance(opened, str):
        at.fault_of(node, "file", opened, "fix the file, or set another format")
        return None
    pick = fields.get("pick", "shared")
    end: Any = "stop" if pick == "unique" else fields.get("end", "loop")
    if pick in ("random", "user") and end == "stop":
        at.fault(node.line, f"pick {pick} and end stop contradict each other", "end: loop")
    return Feed(at.name, str(path), opened.digest(), format, pick, end)
