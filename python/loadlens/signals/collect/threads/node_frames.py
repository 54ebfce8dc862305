"""Frames of the threads of a Node process, from CPU profiles that it takes of itself.

V8 says of each sample which functions a thread is in, by wall time: also while it waits in a call. Of a
function that calls another one it says where it begins; the line of the call is looked up in its source.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Final
from urllib.parse import unquote, urlsplit

from loadlens.model.plain import Unreadable, read
from loadlens.model.stacks import MAIN, Frame, Stack
from loadlens.signals.collect.threads import NotRead, Profile, node_inspector

INTERVAL_US: Final = 10_000
AT_MOST_MS: Final = 120_000  # then a profile that is not ended is dropped
WORKERS_MS: Final = 1_000  # that their profiles may take
_PROGRAM: Final = Path(__file__).with_name("node_profile.js")
_ROOT: Final = "(root)"
_STATES: Final = ("(idle)", "(program)", "(garbage collector)")  # in place of a function


@dataclass(frozen=True, slots=True)
class _Call:
    functionName: str  # noqa: N815
    url: str
    lineNumber: int  # noqa: N815  # of its beginning, from 0
    columnNumber: int  # noqa: N815


@dataclass(frozen=True, slots=True)
class _Tick:
    line: int
    ticks: int


@dataclass(frozen=True, slots=True)
class _Node:
    id: int
    callFrame: _Call  # noqa: N815
    children: tuple[int, ...] = ()
    positionTicks: tuple[_Tick, ...] = ()  # noqa: N815


@dataclass(frozen=True, slots=True)
class _Profile:
    nodes: tuple[_Node, ...]
    startTime: int  # noqa: N815  # µs of the monotonic clock
    samples: tuple[int, ...]
    timeDeltas: tuple[int, ...]  # noqa: N815


@dataclass(frozen=True, slots=True)
class _Thread:
    thread: str  # /proc/thread-self: PID/task/TID of its own namespace
    profile: _Profile = field(default_factory=lambda: _Profile((), 0, (), ()))


class NodeProfiler:
    """Samples the threads of one Node process that run JavaScript."""

    def __init__(self, pid: int) -> None:
        self._pid = pid

    def begin(self) -> None:
        """Begin to sample; raise NotRead if that cannot be."""
        self._run(ends=False)

    def end(self) -> Profile:
        """End, and return what was sampled; raise NotRead if it cannot be read."""
        try:
            threads = read(tuple[_Thread, ...], json.loads(self._run(ends=True)))
        except (TypeError, ValueError, Unreadable) as fault:
            raise NotRead(f"its profile cannot be read: {fault}") from None
        tids = _tids(self._pid)
        source = _source_of(self._pid)
        stacks = {
            tids[own]: tuple(_samples(thread.profile, source))
            for thread in threads
            if (own := thread.thread.rpartition("/")[2]) in tids
        }
        return Profile(stacks, {tid: "main" if tid == self._pid else "worker" for tid in stacks})

    def sources(self, frame: Frame) -> Iterator[Path]:
        """Yield where the source of a frame may be, as this machine sees it."""
        yield _path(self._pid, frame.file)

    def _run(self, *, ends: bool) -> str:
        wanted = {
            "ends": ends,
            "interval_us": INTERVAL_US,
            "at_most_ms": AT_MOST_MS,
            "workers_ms": WORKERS_MS,
        }
        return node_inspector.evaluate(self._pid, f"{_PROGRAM.read_text()}({json.dumps(wanted)})") or ""


def profiler_of(pid: int) -> NodeProfiler | None:
    """Return a profiler if a process is Node."""
    try:
        is_node = Path(os.readlink(f"/proc/{pid}/exe")).name in ("node", "nodejs")
    except OSError:
        return None
    return NodeProfiler(pid) if is_node else None


def is_library(file: str) -> bool:
    """True for packages, Node's own code, and code that is in no file."""
    return not file.startswith("/") or "/node_modules/" in file


def module_of(file: str) -> str:
    """Return the name of a package, of a module of Node, or of a file: `express`, `crypto`, `orders`."""
    if file.startswith("node:"):
        return file.removeprefix("node:").removeprefix("internal/").partition("/")[0]
    if "/node_modules/" in file:
        parts = file.rpartition("/node_modules/")[2].split("/")
        return "/".join(parts[: 2 if parts[0].startswith("@") else 1])
    return PurePosixPath(file).stem


class _Source:
    """The lines of a file, in which a call is looked up."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines()

    def line_of_call(self, begin: int, column: int, callee: str) -> int | None:
        """Return the only line of a function that calls another one by name; none if there are several."""
        name = callee.rpartition(".")[2]
        if not name.isidentifier():
            return None
        called = re.compile(rf"(?<!function )\b{name}\s*\(")
        at = [number for number, text in self._body(begin, column) if called.search(text)]
        return at[0] if len(at) == 1 else None

    def _body(self, begin: int, column: int) -> Iterator[tuple[int, str]]:
        """Yield the lines of a function from its place on, numbered from 1, up to its closing brace."""
        depth, was_open = 0, False
        for number, text in enumerate(self._lines[begin:], begin + 1):
            part = text[column:] if number == begin + 1 else text
            yield number, part
            depth += part.count("{") - part.count("}")
            was_open = was_open or "{" in part
            if was_open and depth <= 0:
                return


def _samples(profile: _Profile, source: Callable[[str], _Source | None]) -> Iterator[tuple[int, Stack]]:
    """Yield time and stack of each sample of a profile."""
    nodes = {node.id: node for node in profile.nodes}
    parents = {child: node.id for node in profile.nodes for child in node.children}

    @cache
    def stack(number: int) -> Stack:
        path = [nodes[number]]
        while (parent := parents.get(path[-1].id)) is not None:
            path.append(nodes[parent])
        path = [node for node in reversed(path) if node.callFrame.functionName != _ROOT]
        callees = [*(node.callFrame.functionName for node in path[1:]), ""]
        return tuple(_frame(node, callee, source) for node, callee in zip(path, callees, strict=True))

    time_us = profile.startTime
    for number, delta in zip(profile.samples, profile.timeDeltas, strict=True):
        time_us += delta
        yield time_us * 1000, stack(number)


def _frame(node: _Node, callee: str, source: Callable[[str], _Source | None]) -> Frame:
    call = node.callFrame
    if call.functionName in _STATES:
        return Frame(call.functionName, "", "", 0)
    file = unquote(urlsplit(call.url).path) if call.url.startswith("file:") else call.url
    is_own = not is_library(file)
    is_module = not call.functionName and call.lineNumber == call.columnNumber == 0
    name = MAIN if is_module else call.functionName or "(anonymous)"
    line = call.lineNumber + 1
    if is_own and not callee and node.positionTicks:
        line = max(node.positionTicks, key=lambda each: each.ticks).line
    elif is_own and callee and (text := source(file)) is not None:
        line = text.line_of_call(call.lineNumber, call.columnNumber, callee) or line
    return Frame(name, module_of(file), file, line, is_own)


def _source_of(pid: int) -> Callable[[str], _Source | None]:
    """Return a function that reads a file of a process once; it gives none if it cannot be read."""

    @cache
    def source(file: str) -> _Source | None:
        try:
            return _Source(_path(pid, file).read_text(encoding="utf-8", errors="replace"))
        except OSError:
            return None

    return source


def _path(pid: int, file: str) -> Path:
    return Path(f"/proc/{pid}/root") / file.lstrip("/")


def _tids(pid: int) -> dict[str, int]:
    """Return the threads of a process by their ids in its own namespace."""
    tids = {}
    try:
        for folder in Path(f"/proc/{pid}/task").iterdir():
            with open(folder / "status", encoding="utf-8", errors="replace") as status:
                line = next(line for line in status if line.startswith("NSpid:"))
            tids[line.split()[-1]] = int(folder.name)
    except (OSError, StopIteration):
        pass  # it ended meanwhile
    return tids
