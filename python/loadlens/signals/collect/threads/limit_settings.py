"""The lines in which a service may set its limits, of its files, its command lines and its environment.

A line counts if a number stands in it next to a word of a limit. Lines that may hold a secret are left out.
"""

from __future__ import annotations

import itertools
import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from loadlens.model.stacks import COMMAND_LINE, ENVIRONMENT, SourceLine

MOST_FILES: Final = 1000
MOST_NAMES: Final = 20_000  # of files that are looked at
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
    r"_?s\b\s*[:=(]|listen|accept|somaxconn|points|channel|chan\b|reservoir|bandwidth|^-[a-z] \d|^-X",
    re.IGNORECASE,
)
_NUMBER: Final = re.compile(r"(?<![\w.])\d")
_SECRET: Final = re.compile(
    r"passw|pass\b|pwd|secret|credential|bearer|key\b|api_?key|token\W{0,3}[\"'=:]|\w:[^/\s]\S*@",
    re.IGNORECASE,
)
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


def lines(pids: Iterable[int], own: Iterable[Path]) -> Iterator[SourceLine]:
    """Yield the lines of some processes that may set a limit.

    Args:
        pids: Of the service.
        own: Files of its code.
    """
    pids, files = list(pids), sorted({path.resolve() for path in own})
    written = (line for line in _written(_files(pids, files)) if not _REMARK.match(line.text))
    may_limit = (
        line
        for line in itertools.chain(_spoken(pids), written)
        if _NUMBER.search(line.text) and _WORD.search(line.text) and not _SECRET.search(line.text)
    )
    yield from itertools.islice(may_limit, MOST_LINES)


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


def _files(pids: Iterable[int], own: Iterable[Path]) -> Iterator[Path]:
    """Yield the text files below the folders that the processes run in, and next to their code."""
    seen: set[Path] = set()
    for path in (*own, *_below(_folders(pids, own))):
        if path not in seen:
            seen.add(path)
            yield path
            if len(seen) >= MOST_FILES:
                return


def _folders(pids: Iterable[int], own: Iterable[Path]) -> Iterator[Path]:
    for pid in pids:
        try:
            folder = Path(os.readlink(f"/proc/{pid}/cwd"))
        except OSError:
            continue
        if folder not in _HOMES and folder.parent != Path("/home"):
            yield folder
    yield from (file.parent for file in own if file.parent not in _HOMES)


def _below(folders: Iterable[Path]) -> Iterator[Path]:
    looked = 0
    for top in dict.fromkeys(folders):
        for folder, below, names in os.walk(top):
            depth = len(Path(folder).relative_to(top).parts)
            below[:] = sorted(name for name in below if depth < DEEPEST and not _NOT_OWN.fullmatch(name))
            looked += len(names)
            if looked > MOST_NAMES:
                return
            for name in sorted(names):
                if _FILE.fullmatch(name):
                    yield Path(folder, name)


def _written(files: Iterable[Path]) -> Iterator[SourceLine]:
    left = MOST_BYTES
    for path in files:
        try:
            about = path.stat()
            size = about.st_size
            if not stat.S_ISREG(about.st_mode) or size > min(left, LARGEST_FILE):
                continue
            left -= size
            text = path.read_text(errors="replace")
        except OSError:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            yield SourceLine(str(path), number, line.strip()[:LONGEST_LINE])
