"""Watch whether the machine let us run while a test judged times and rates.

What the host gives to others meanwhile, a thread that wakes late, or processors that others use while we
wait, is no fault of what is tested: such a check goes before the other tests where the system allows it, and
one that fails then, or breaks for want of a figure, is made once more, at most twice, when no other test runs
and others have left the processors alone or some seconds have passed. A command that was refused is never run
again. On a quiet machine a failure is one at once. Only slow tests may be judged so; each repeat is
counted, and the number is printed at the end of a run.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import ParamSpec, Self

import pytest
from benches.measuring import Host
from catalogue.running import others_busy

from loadlens.errors import ExitCode

TRIES = 3
MOST_LATE_S = 0.05  # of a thread that only sleeps: turns of the kernel's scheduler are shorter
MOST_OTHERS = 0.2  # of the processors, used by others behind a check that failed
FIRST_NICE = -10  # of a check and of the processes that it starts
LONGEST_WAIT_S = 20.0  # for others to leave the processors alone
CALM_LOOKS = 3  # in a row, of half a second each
_LOOK_S = 0.005
Given = ParamSpec("Given")
REPEATED: list[str] = []  # why each check of the running test was made again; tests/conftest.py counts them


class Turns:
    """Lets the slow tests of several processes run side by side, or one of them alone.

    Two files that are there anyway are locked: the process that wants to be alone keeps the door, so that no
    further test begins, and waits until those that run have ended.
    """

    def __init__(self) -> None:
        self._door, self._room = (
            os.open(Path(__file__).with_name(name), os.O_RDONLY) for name in ("conftest.py", "calm.py")
        )
        self._is_beside = False

    @contextlib.contextmanager
    def beside_others(self) -> Iterator[None]:
        """Run a test while others run."""
        self._enter(fcntl.LOCK_SH)
        self._is_beside = True
        try:
            yield
        finally:
            self._is_beside = False
            fcntl.flock(self._room, fcntl.LOCK_UN)

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Run a part of a test while no other runs that is `beside_others`."""
        fcntl.flock(self._room, fcntl.LOCK_UN)
        self._enter(fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._room, fcntl.LOCK_SH if self._is_beside else fcntl.LOCK_UN)

    def _enter(self, kind: int) -> None:
        fcntl.flock(self._door, fcntl.LOCK_EX)
        try:
            fcntl.flock(self._room, kind)
        finally:
            fcntl.flock(self._door, fcntl.LOCK_UN)


TURNS = Turns()


class Machine:
    """Watches it while it is entered."""

    def __enter__(self) -> Self:
        self._host, self._late_s, self._ends = Host(), 0.0, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ends.set()
        self._thread.join()
        self._why_not = self._host.why_not()

    def why_not(self) -> str | None:
        """Return why times that were taken while it was watched do not count; none: they do."""
        late = f"a thread woke {self._late_s:.3f} s late" if self._late_s > MOST_LATE_S else None
        return self._why_not or late

    def _watch(self) -> None:
        before = time.monotonic()
        while not self._ends.wait(_LOOK_S):
            now = time.monotonic()
            self._late_s, before = max(self._late_s, now - before - _LOOK_S), now


def calmly(check: Callable[[], None], *, why: Callable[[], str | None] = lambda: None) -> None:
    """Make a check; again where it failed or broke while the machine was not calm.

    Args:
        check: What may fail.
        why: Says after a failure why what it measured does not count, besides what is watched here.
    """
    with contextlib.ExitStack() as turn:
        for left in reversed(range(TRIES)):
            try:
                with Machine() as machine, _before_others():
                    check()
                return
            except Exception as fault:
                why_not = (machine.why_not() or _others() or why()) if left else None
                if why_not is None:
                    raise
                if left == TRIES - 1:
                    turn.enter_context(TURNS.alone())
                first_line = str(fault).partition("\n")[0][:200]
                REPEATED.append(f"{why_not} ({type(fault).__name__}: {first_line})")
                print(f"made again: {REPEATED[-1]}")  # shown with a failure
                _wait_for_calm()


def assert_ran(done: subprocess.CompletedProcess[str]) -> None:
    """Fail unless a command exited 0; for good if it was refused, which no calm machine changes."""
    _assert_ended(done, ExitCode.OK)


def assert_counted(done: subprocess.CompletedProcess[str]) -> None:
    """The same, but let a load that lacked a processor pass: its times do not count, what it counted does."""
    _assert_ended(done, ExitCode.OK, ExitCode.INVALID)


def _assert_ended(done: subprocess.CompletedProcess[str], *codes: ExitCode) -> None:
    if done.returncode == ExitCode.USAGE:
        pytest.fail(f"refused: {done.stderr}")  # no Exception: `calmly` lets it through
    assert done.returncode in codes, done.stderr


@contextlib.contextmanager
def _before_others() -> Iterator[None]:
    """Run with a high priority, which processes and threads that are started meanwhile keep (nice(2))."""
    own = os.getpriority(os.PRIO_PROCESS, 0)
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, min(own, FIRST_NICE))
    try:
        yield
    finally:
        os.setpriority(os.PRIO_PROCESS, 0, own)


def _wait_for_calm() -> None:
    """Wait until others leave the processors alone: the other tests would disturb a repeat made at once."""
    end, calm = time.monotonic() + LONGEST_WAIT_S, 0
    while calm < CALM_LOOKS and time.monotonic() < end:
        calm = 0 if _others() else calm + 1


def _others() -> str | None:
    """Return why a check that has just failed may have lacked processors; none: no other uses them."""
    share = others_busy(0.5)
    return f"others use {share:.0%} of the processors" if share > MOST_OTHERS else None


def where_calm(test: Callable[Given, None]) -> Callable[Given, None]:
    """A slow test as such a check, made again with the folder and the server that it was given."""

    @pytest.mark.slow
    @functools.wraps(test)
    def made(*given: Given.args, **named: Given.kwargs) -> None:
        calmly(lambda: test(*given, **named))

    return made
