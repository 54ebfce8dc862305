"""Ctrl-C and SIGTERM: the first ends things in order, the second at once.

The first only sets a flag, so that nothing is torn while the engine runs, a trial is sealed or services are
ended. Where the lab merely waits for others (a build, a service that starts) the first raises `Stopped`,
inside `allowed()`. After the second nothing of ours runs any more: the keeper ends the services when its
pipe closes, and the record opens to its last whole chunk.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Self

from loadlens.errors import ExitCode

_CODES = {signal.SIGINT: ExitCode.INTERRUPTED, signal.SIGTERM: ExitCode.TERMINATED}
_SHOW_CURSOR = "\x1b[?25h"


class Stopped(KeyboardInterrupt):
    """A person or a system asked the run to end; what was done stays."""

    def __init__(self, code: ExitCode) -> None:
        super().__init__()
        self.code = code


class Interrupts:
    """Takes over SIGINT and SIGTERM while it is entered; outside the main thread it only waits for `stop`."""

    def __init__(self) -> None:
        self.event = threading.Event()
        self.code: ExitCode | None = None
        self._is_news = True
        self._allowed = 0
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._heard) for number in _CODES}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

    @property
    def is_set(self) -> bool:
        """Whether somebody asked for the end."""
        return self.event.is_set()

    def stop(self) -> None:
        """Ask for the end from within the program."""
        self.code = self.code or ExitCode.INTERRUPTED
        self.event.set()

    def is_news(self) -> bool:
        """Whether somebody asked for the end, once: whoever asks first tells the person that it was heard.

        A handler must not print: it may have interrupted a print.
        """
        news = self._is_news and self.is_set
        self._is_news = not news and self._is_news
        return news

    def check(self) -> None:
        """Raise Stopped when somebody asked for the end."""
        if self.is_set:
            raise Stopped(self.code or ExitCode.INTERRUPTED)

    @contextmanager
    def allowed(self) -> Iterator[None]:
        """A part that may be broken off anywhere: raises Stopped in it, or before it if already asked."""
        self._allowed += 1
        try:
            self.check()  # not before: who asked between the two would wait for the end of the part
            yield
        finally:
            self._allowed -= 1

    def _heard(self, number: int, _frame: FrameType | None) -> None:
        code = _CODES[signal.Signals(number)]
        if self.is_set:
            # stderr may be in the middle of a line and its buffer locked: write to the descriptor.
            if sys.stderr.isatty():
                os.write(2, f"{_SHOW_CURSOR}\n".encode())
            os._exit(int(code))
        self.code = code
        self.event.set()
        if self._allowed:
            raise Stopped(code)
