"""Ctrl-C, SIGTERM, SIGHUP and SIGXCPU: the first ends the run in order, the second at once.

The first only sets a flag, so that it never interrupts the engine, the sealing of a trial or the end of
services. While the lab merely waits (for a build or a starting service), inside `allowed()`, the first raises
`Stopped`. The second exits immediately: the keeper ends the services when its pipe closes, and the record
stays readable up to its last complete chunk.
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

_CODES = {
    signal.SIGINT: ExitCode.INTERRUPTED,
    signal.SIGTERM: ExitCode.TERMINATED,
    signal.SIGHUP: ExitCode.HUNG_UP,
    signal.SIGXCPU: ExitCode.CPU_LIMIT,
}
_SHOW_CURSOR = "\x1b[?25h"


class Stopped(KeyboardInterrupt):
    """The run was interrupted; finished trials stay."""

    def __init__(self, code: ExitCode) -> None:
        super().__init__()
        self.code = code


class Interrupts:
    """Handles these signals while entered; outside the main thread, only `stop` has an effect.

    A signal that was ignored before stays ignored: SIGHUP under `nohup`, SIGINT in a job that a script began
    with `&`.

    Args:
        has_tables: Polars is used meanwhile. If it is loaded under our handlers, it hears Ctrl-C first and
            raises KeyboardInterrupt wherever it computes; so it is loaded before they are set.
    """

    def __init__(self, *, has_tables: bool = True) -> None:
        self._has_tables = has_tables
        self.event = threading.Event()
        self.code: ExitCode | None = None
        self._is_news = True
        self._allowed = 0
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if self._has_tables:
            import polars  # noqa: F401
        if threading.current_thread() is threading.main_thread():
            handled = [number for number in _CODES if signal.getsignal(number) is not signal.SIG_IGN]
            self._before = {number: signal.signal(number, self._on_signal) for number in handled}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

    @property
    def is_set(self) -> bool:
        """True if the run was interrupted."""
        return self.event.is_set()

    def stop(self) -> None:
        """Interrupt the run from within the program."""
        self.code = self.code or ExitCode.INTERRUPTED
        self.event.set()

    def is_news(self) -> bool:
        """True once after an interrupt: the first caller reports it to the user.

        The handler must not print, because it may have interrupted a print.
        """
        news = self._is_news and self.is_set
        self._is_news = not news and self._is_news
        return news

    def check(self) -> None:
        """Raise `Stopped` if the run was interrupted."""
        if self.is_set:
            raise Stopped(self.code or ExitCode.INTERRUPTED)

    @contextmanager
    def allowed(self) -> Iterator[None]:
        """Allow interrupts to raise `Stopped` inside the block, or before it if one is pending."""
        self._allowed += 1
        try:
            self.check()  # after the increment: an earlier check would miss an interrupt in between
            yield
        finally:
            self._allowed -= 1

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        code = _CODES[signal.Signals(number)]
        if self.is_set:
            if number == signal.SIGXCPU:  # the kernel repeats it with every second of CPU time
                return
            # stderr may be in the middle of a line and its buffer locked: write to the descriptor.
            if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
                os.write(2, f"{_SHOW_CURSOR}\n".encode())
            os._exit(int(code))
        self.code = code
        self.event.set()
        if self._allowed:
            raise Stopped(code)
