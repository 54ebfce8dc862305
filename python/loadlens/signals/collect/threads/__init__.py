"""Threads of a process: their states from the kernel, their frames from a reader of each language."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from loadlens.model.stacks import Frame, Stack, Wait

NOT_PERMITTED: Final = "not permitted"


class NotRead(Exception):
    """The frames could not be read; the text says why."""


@dataclass(frozen=True, slots=True)
class Threads:
    """All threads of a process that run code of its language."""

    stacks: Mapping[int, Stack] = field(default_factory=dict)  # by thread id of the system
    names: Mapping[int, str] = field(default_factory=dict)  # as the language knows them
    waits: Mapping[int, Wait] = field(default_factory=dict)  # where the language knows better than the kernel
    running: Mapping[int, bool] = field(default_factory=dict)  # at the moment of the frames, if it is known


class Reader(Protocol):
    """Reads the threads of one process."""

    def read(self) -> Threads:
        """Return the frames of every thread; raise NotRead if they cannot be read."""

    def sources(self, frame: Frame) -> Iterator[Path]:
        """Yield where the source of a frame may be, as this machine sees it."""
