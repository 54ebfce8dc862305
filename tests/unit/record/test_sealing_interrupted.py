"""Tables are written whole although Polars gives up on SIGINT by itself."""

from __future__ import annotations

import signal

import pytest

from loadlens.record.writer import _to_its_end


class Interrupted:
    """Gives up once, as Polars does."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, _t0: int | None) -> None:
        self.calls += 1
        if self.calls == 1:
            raise KeyboardInterrupt


def test_when_a_handler_took_the_signal_the_tables_are_written_once_more() -> None:
    write = Interrupted()
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        _to_its_end(write, None)
    finally:
        signal.signal(signal.SIGINT, before)

    assert write.calls == 2


def test_when_nobody_took_it_the_interrupt_is_the_callers() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            _to_its_end(Interrupted(), None)
    finally:
        signal.signal(signal.SIGINT, before)
