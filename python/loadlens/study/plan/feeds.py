"""The feeds of one case: opened once for the whole study, their columns checked where templates use them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from loadlens.model.workload import FEED_FORMATS, Closed, Feed, Open
from loadlens.study.definition import FeedPart, Place
from loadlens.study.plan.fill import Filler


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


class Feeds:
    """The feeds that one case may use, and those that it does.

    Args:
        parts: As the study has them.
        folder: What their files are seen from.
        fill: Fills the names of the case.
        files: The files of the study.
    """

    def __init__(self, parts: Mapping[str, FeedPart], folder: str, fill: Filler, files: FeedFiles) -> None:
        self._parts = parts
        self._folder = Path(folder)
        self._fill = fill
        self._files = files
        self._made: dict[str, Feed | None] = {}
        self._streams: dict[str, dict[str, Place]] = {}  # feed -> streams that use it, and where first

    @property
    def names(self) -> list[str]:
        """Return the names that templates may start with, before the dot."""
        return list(self._parts)

    @property
    def made(self) -> tuple[Feed, ...]:
        """The feeds that the case uses, in the order of the study."""
        return tuple(feed for name in self._parts if (feed := self._made.get(name)) is not None)

    def check(
        self, text: str, extracted: Sequence[str], place: Place, stream: str, *, in_header: bool
    ) -> str | None:
        """The fault of a template, if there is one; notes the columns that it uses."""
        templates = self._files.templates
        if templates is None or "{{" not in text:
            return None
        fault = templates.check_template(text, extracted, self.names)
        if fault is not None:
            return fault
        for name, column, is_raw in templates.columns_of(text, extracted, self.names):
            feed = self._used(name, stream, place)
            # A whole URL may stand raw at the start of a path, so it is judged when it is sent.
            is_part = is_raw and not text.lstrip("{ ").startswith("raw")
            if feed is not None and fault is None:
                path = Path(feed.path)
                fault = self._files.fault(path, feed.format, column, in_header=in_header, is_raw=is_part)
        return fault

    def check_pattern(self, text: str, group: int | None) -> str | None:
        """The fault of a regular expression of which a group is wanted."""
        templates = self._files.templates
        return None if templates is None else templates.check_pattern(text, group)

    def check_streams(self, workloads: Mapping[str, Closed | Open]) -> None:
        """Faults of feeds that do not suit the streams that use them."""
        for name, streams in self._streams.items():
            feed = self._made.get(name)
            if feed is None:
                continue
            if feed.pick == "unique" and len(streams) > 1:
                message = f"feed {name} is unique and used by {' and '.join(streams)}"
                self._fill.fault(message, list(streams.values())[1], "pick: shared, or a file for each")
            for stream, place in streams.items():
                workload = workloads[stream]
                if feed.pick == "user" and isinstance(workload, Open):
                    message = (
                        f"feed {name} has a record for each user, and an open load has no users that stay"
                    )
                    self._fill.fault(message, place, "pick: shared, or users instead of a rate")

    def _used(self, name: str, stream: str, place: Place) -> Feed | None:
        self._files.used.add(name)
        self._streams.setdefault(name, {}).setdefault(stream, place)
        if name not in self._made:
            self._made[name] = self._make(name, self._parts[name])
        return self._made[name]

    def _make(self, name: str, part: FeedPart) -> Feed | None:
        fill = self._fill
        path = self._folder / fill.value(part.file, "")
        by_ending: Any = FEED_FORMATS.get(path.suffix.lower())
        written = fill.optional(part.format)
        if written is None and by_ending is None:
            hint = f"format: csv, or a file that ends in {', '.join(FEED_FORMATS)}"
            fill.fault(f"the ending of {path.name!r} does not say how it is written", part.file.place, hint)
            return None
        format = written or by_ending
        if not path.is_file():
            fill.fault(f"there is no file {path.name!r}", part.file.place, f"make {path}")
            return None
        opened = self._files.open(path, format)
        if isinstance(opened, str):
            fill.fault(opened, part.file.place, "fix the file, or set another format")
            return None
        pick: Any = fill.value(part.pick, "shared")
        end: Any = "stop" if pick == "unique" else fill.value(part.end, "loop")
        if pick in ("random", "user") and end == "stop":
            fill.fault(f"pick {pick} and end stop contradict each other", part.place, "end: loop")
        return Feed(name, str(path), opened.digest(), format, pick, end)
