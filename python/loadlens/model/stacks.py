"""Stacks of a service's threads as they were sampled, and the evidence in them on its code."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final, Literal

SEPARATOR: Final = "\t"
LANGUAGES: Final = (
    "only that of Python, the JVM, Node, Go, the BEAM, and native programs with debug information is read"
)
CLIENT: Final = "a client"  # at the other end of a connection that a service has accepted
TASKS_FROM: Final = 1 << 32  # numbers of tasks, beyond those of all threads of a system
COMMAND_LINE, ENVIRONMENT = "on its command line", "in its environment"
CLOSING: Final = re.compile(  # a line by which connections are not used again
    r"connection[\"':=,>\s]{1,6}([\w:.]+\([\"'])?close\b|(?<!no)(?<!no_)(?<!so_)(?<!tcp_)(?<!set)(?<!disable)"
    r"(?<!disable_)keep_?-?alive(?!Timeout)\w*\W{1,6}(false|off|no(?![\w-])|0s?(?![\w.])|none)\b"
    r"|(disable|no)_?keep_?alives?\W{1,6}true|force_?close\W{1,6}true|option forceclose|--no-keepalive"
    r"|protocol_version\W{1,6}http/1\.0|(?<!gzip_)http_version\W{1,6}1\.0\b|keep_?alive_?requests\W{1,6}1\b",
    re.IGNORECASE,
)
MAIN: Final = "<module>"  # function of code that is in none

# What a thread waits for, by the system call that it is in; empty if it runs.
Wait = Literal[
    "",
    "lock",
    "interpreter",  # the lock under which the threads of an interpreter take turns
    "timer",
    "socket",
    "events",  # on any of many sockets, as an event loop waits
    "connections",
    "storage",
    "file lock",
    "process",
    "other",
]


@dataclass(frozen=True, slots=True)
class Frame:
    """A function that a thread is in."""

    function: str
    module: str  # of Python; the class of a JVM
    file: str
    line: int  # 0: not known
    is_own: bool = False  # code of the service; false: of a library, or of the language itself

    @property
    def name(self) -> str:
        """Name with the module: `requests.api.get`."""
        return f"{self.module}.{self.function}" if self.module else self.function

    @property
    def text(self) -> str:
        """One line, as a record keeps it."""
        own = "own" if self.is_own else ""
        return SEPARATOR.join((self.function, self.module, self.file, str(self.line), own))

    @staticmethod
    def of(text: str) -> Frame:
        """Return the frame of a line; raise ValueError if it is none."""
        function, module, file, line, own = text.split(SEPARATOR)
        return Frame(function, module, file, int(line), own == "own")


Stack = tuple[Frame, ...]  # outermost first


@dataclass(frozen=True, slots=True)
class ThreadSample:
    """One thread at one moment."""

    time_s: float  # since t0
    pid: int
    process: str
    tid: int
    thread: str
    is_running: bool  # or ready to
    wait: Wait
    stack: Stack  # empty: not read
    to: str = ""  # other end of the connection, or the epoll, that it waits for; empty: not known

    @property
    def is_task(self) -> bool:
        """True for a task that awaits something, and is on no thread."""
        return self.tid >= TASKS_FROM


def plural_of(samples: Sequence[ThreadSample]) -> str:
    """Return the word for most of some samples: `threads` or `tasks`."""
    return "tasks" if 2 * sum(sample.is_task for sample in samples) > len(samples) else "threads"


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of the service's own code."""

    file: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class SamplingFailure:
    """Attempts in vain to read the frames of a process, with the reason."""

    process: str
    why: str
    count: int


@dataclass(frozen=True, slots=True)
class StackSamples:
    """All samples of one trial."""

    load: float  # users, or offered requests per second
    is_closed: bool
    begin_s: float  # of the measured part, since t0; samples before 0 are of the service without load
    end_s: float
    samples: tuple[ThreadSample, ...]
    lines: tuple[SourceLine, ...]
    failures: tuple[SamplingFailure, ...]
    cores: float | None  # CPU time of the sampling per second
    settings: tuple[
        SourceLine, ...
    ] = ()  # lines that may set a limit; 0: the command line, or the environment

    @property
    def own_files(self) -> set[str]:
        """Files of the service's own code in which threads were."""
        return {frame.file for sample in self.samples for frame in sample.stack if frame.is_own}


def short_name(file: str, files: Collection[str]) -> str:
    """Return as many of the last parts of a file's path as distinguish it from other files."""
    parts = PurePosixPath(file).parts
    ends = ("/".join(parts[-length:]) for length in range(1, len(parts)))
    return next((end for end in ends if sum(f"/{other}".endswith(f"/{end}") for other in files) == 1), file)


@dataclass(frozen=True, slots=True)
class CodePlace:
    """A place in the service's own code where threads were at the highest level."""

    kind: Literal["computes", "works", "holds"]  # on a CPU; at work at all; the others, where most wait
    file: str
    line: int
    last_line: int  # of the same function; equal to `line` for a single line
    function: str
    call: str  # function of a library that it is in; empty: none
    caller: str  # own function that called it, with file and line; empty: none
    path: tuple[str, ...]  # own functions that lead there, likewise, outermost first; the caller is the last
    source: str  # text of the line; empty: not read
    samples: int
    of_samples: int
    text: str  # for people


@dataclass(frozen=True, slots=True)
class SettingPlace:
    """A line that may set the number that limits the service."""

    number: str  # as it stands there
    file: str
    line: int  # 0: the file is the command line, or the environment
    source: str
    text: str  # for people


@dataclass(frozen=True, slots=True)
class CodeEvidence:
    """Evidence on the service's code in the samples of a record."""

    places: tuple[CodePlace, ...] = ()
    why_none: str = ""  # why no line is named; empty: one is, or there is no limit to explain
    cost: str = ""  # of the sampling
    settings: tuple[SettingPlace, ...] = ()  # where the number that limits may be set

    @property
    def lines(self) -> tuple[str, ...]:
        """Each place with its line of source and what leads there below it; else why none is named."""
        named = [
            (
                place.text,
                f"> {place.source}" if place.source else "",
                f"through {', '.join(place.path[:-1])}" if place.path[:-1] else "",
            )
            for place in self.places
        ]
        return tuple(line for lines in named for line in lines if line) or self._none

    @property
    def sentence(self) -> str:
        """The same in one line."""
        named = [f"{place.text}, “{place.source}”" if place.source else place.text for place in self.places]
        return "; ".join(named or self._none)

    @property
    def setting_lines(self) -> tuple[str, ...]:
        """Each line that may set the number that limits, with its text below it."""
        return tuple(line for place in self.settings for line in (place.text, f"> {place.source}"))

    @property
    def _none(self) -> tuple[str, ...]:
        return (f"no line: {self.why_none}",) if self.why_none else ()
