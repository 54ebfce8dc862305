"""Lines of a service's files, command lines and environment that may set its limits.

A line counts if a number stands in it next to a word of a limit or a time, or if it has connections closed.
Lines that may hold a secret are left out.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from loadlens.credentials import Hiding
from loadlens.model.stacks import CLOSING, COMMAND_LINE, ENVIRONMENT, SourceLine

MOST_FILES: Final = 1000
MOST_FOLDERS: Final = 1000
MOST_NAMES: Final = 2000  # in a folder: more are data
LONGEST_READ: Final = 1000  # characters of a line
MOST_BYTES: Final = 10_000_000
MOST_LINES: Final = 1000
LARGEST_FILE: Final = 200_000  # bytes
LONGEST_LINE: Final = 200
DEEPEST: Final = 6  # folders
_FILE: Final = re.compile(
    r"(Dockerfile|Procfile|Makefile|(?!package-lock\.).+\.(py|[mc]?js|ts|java|kt|scala|clj|go|rs|exs?|erl|rb|php|cs"
    r"|c|cc|cpp|h|sh|env|ya?ml|toml|ini|cfg|conf|config|properties|xml|json|hcl|service))"
)
_NOT_OWN: Final = re.compile(
    r"\..*|node_modules|(site|dist)-packages|v?env|vendor|deps|target|_?build|dist|out|obj|__pycache__|tests?"
)
_WORD: Final = re.compile(
    r"max|limit|size|pool|worker|thread|conn|concurr|parallel|simultan|semaphore|permit|slot|capacity|executor|"
    r"queue|backlog|in_?flight|rate|rps|qps|per_?(s|m)|quota|burst|heap|xmx|old.space|nofile|ulimit|"
    r"_?s\b\s*[:=(]|listen|accept|somaxconn|points|channel|chan\b|reservoir|bandwidth|"
    r"\bplaces\b|pacer|throttl|processes|instances|max_children|^-[a-z] \d|^-X",
    re.IGNORECASE,
)
_TIME: Final = re.compile(
    r"time_?out|deadline|duration|millis|sec(ond)?s\b|\d ?m?s\b|_ms\b|within|patience", re.IGNORECASE
)
_NUMBER: Final = re.compile(r"(?<![\w.])\d")
_SECRET: Final = re.compile(
    r"pass(w|phrase|\b)|pwd|secret|credential|signature|bearer|\bauth\b|basic_?auth|x-auth|log_?in\b|cookie|"
    r"key\b|api_?key|tokens?\W{0,3}[\"'=:\[]|:[^/\s]\S*@",
    re.IGNORECASE,
)
_CODED: Final = re.compile(
    r"""(["'`])(?!\d+(?:\.\d+)?m?s\1)(?=[^"'`\s]*\d)(?=[^"'`\s]*[a-z])[^"'`\s]{6,}\1""", re.IGNORECASE
)
# Lines that only say a time, or close connections, may hold any text: what is quoted in them is left out.
_QUOTED: Final = re.compile(r"""(["'`])([^"'`]*)\1""")
_KEPT: Final = re.compile(r"connection|close|http/1\.[01]|[\d._]+ ?m?s?", re.IGNORECASE)
_HIDING: Final = Hiding()
_REMARK: Final = re.compile(r"//|/\*|\*|--|%|;|\"\"\"|#(?!\[|define)")
_NUMBERED: Final = re.compile(r"\w+=\d+(\.\d+)?[kmg]?", re.IGNORECASE)  # a variable that is a number
_HOMES: Final = (
    Path("/"),
    Path("/tmp"),
    Path("/root"),
    Path("/home"),
    Path("/usr"),
    Path("/etc"),
    Path("/var"),
)


def lines(pids: Iterable[int], own: Iterable[Path], hide: Iterable[str] = ()) -> Iterator[SourceLine]:
    """Yield the lines of some processes that may set a limit.

    Args:
        pids: Of the service.
        own: Files of its code.
        hide: Words of lines that are left out.
    """
    pids, files, hidden = list(pids), sorted(set(own)), tuple(map(str.casefold, hide))
    written = (line for line in _written(_files(pids, files)) if not _REMARK.match(line.text))
    may_limit = (
        replace(line, text=_without_texts(line.text)[:LONGEST_LINE])
        for line in itertools.chain(_spoken(pids), written)
        if _may_limit(line.text) and not _is_secret(line.text, hidden)
    )
    yield from itertools.islice(may_limit, MOST_LINES)


def _may_limit(text: str) -> bool:
    has_time = _NUMBER.search(text) is not None and _TIME.search(text) is not None
    return _is_of_places(text) or has_time or CLOSING.search(text) is not None


def _is_of_places(text: str) -> bool:
    return _NUMBER.search(text) is not None and _WORD.search(text) is not None


def _without_texts(text: str) -> str:
    """Return a line without quoted texts that may be codes; if it sets no number of places, without any."""
    if _is_of_places(text):
        return _CODED.sub('"..."', text)
    return _QUOTED.sub(lambda quoted: quoted[0] if _KEPT.fullmatch(quoted[2]) else '"..."', text)


def _is_secret(text: str, hidden: Iterable[str]) -> bool:
    if any(name in text.casefold() for name in hidden):
        return True
    return _SECRET.search(text) is not None or _HIDING.text(text) != text


def _spoken(pids: Iterable[int]) -> Iterator[SourceLine]:
    """Yield each option of the command lines, and each variable of the environments."""
    seen: set[tuple[str, str]] = set()
    for pid in pids:
        for name, what in (("cmdline", COMMAND_LINE), ("environ", ENVIRONMENT)):
            try:
                words = Path(f"/proc/{pid}/{name}").read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue
            if what == ENVIRONMENT:
                texts = [word for word in words if _NUMBERED.fullmatch(word)]
            else:  # `--threads 4` is two words
                texts = [f"{word} {value}" for word, value in itertools.pairwise(words) if word[:1] == "-"]
            for text in texts:
                if len(text) <= LONGEST_LINE and (what, text) not in seen:
                    seen.add((what, text))
                    yield SourceLine(what, 0, text)


def _files(pids: Iterable[int], own: Iterable[Path]) -> Iterator[tuple[Path, int]]:
    """Yield the text files next to the code, and below the folders that the processes run in; with sizes."""
    seen: set[tuple[int, int]] = set()
    next_to = (path for folder in dict.fromkeys(file.parent for file in own) for path in _below(folder, 0))
    below = (path for folder in dict.fromkeys(_folders(pids)) for path in _below(folder, DEEPEST))
    for path in itertools.chain(own, next_to, below):
        try:
            about = path.stat()
        except OSError:
            continue
        if stat.S_ISREG(about.st_mode) and (about.st_dev, about.st_ino) not in seen:
            seen.add((about.st_dev, about.st_ino))
            yield path, about.st_size
            if len(seen) >= MOST_FILES:
                return


def _folders(pids: Iterable[int]) -> Iterator[Path]:
    """Yield the folder of each process, as it is seen from here."""
    for pid in pids:
        with contextlib.suppress(OSError):
            is_apart = os.readlink(f"/proc/{pid}/ns/mnt") != os.readlink("/proc/self/ns/mnt")
            yield Path(f"/proc/{pid}/cwd" if is_apart else os.readlink(f"/proc/{pid}/cwd"))


def _below(top: Path, deepest: int) -> Iterator[Path]:
    """Yield the text files of a folder and of those below it, unless it is one of the system or of a user."""
    home = _own_name(top)
    if home in _HOMES or home.parent == Path("/home"):
        return
    for looked, (folder, below, names) in enumerate(os.walk(top)):
        depth = len(Path(folder).relative_to(top).parts)
        below[:] = sorted(name for name in below if depth < deepest and not _NOT_OWN.fullmatch(name))
        if looked >= MOST_FOLDERS:
            return
        if len(names) <= MOST_NAMES:
            yield from (Path(folder, name) for name in sorted(names) if _FILE.fullmatch(name))


def _own_name(path: Path) -> Path:
    """Return a path as the process itself names it: without the way through `/proc`."""
    parts = path.parts
    if parts[1:2] != ("proc",) or parts[3:4] not in (("root",), ("cwd",)):
        return path
    top = "/" if parts[3] == "root" else os.readlink(Path(*parts[:4]))
    return Path(top, *parts[4:])


def _written(files: Iterable[tuple[Path, int]]) -> Iterator[SourceLine]:
    left = MOST_BYTES
    for path, size in files:
        if size > min(left, LARGEST_FILE):
            continue
        left -= size
        try:
            name, text = str(_own_name(path)), path.read_text(errors="replace")
        except OSError:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if len(line) <= LONGEST_READ:
                yield SourceLine(name, number, line.strip())
