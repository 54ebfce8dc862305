"""Limits of the machine are distinguished from other faults, whichever library met them."""

from __future__ import annotations

import errno

import pytest

from loadlens.errors import ExitCode, limit_met


@pytest.mark.parametrize(
    ("fault", "what"),
    [
        (OSError(errno.EMFILE, "Too many open files"), "open files"),
        (BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"), "processes or threads"),
        (RuntimeError("can't start new thread"), "processes or threads"),
        (MemoryError(), "memory"),
        (OSError("Resource temporarily unavailable (os error 11)"), "processes or threads"),
        (BaseException('Os { code: 24, kind: Uncategorized, message: "Too many" }'), "open files"),
    ],
)
def test_a_limit_is_named_with_what_to_try(fault: BaseException, what: str) -> None:
    limit = limit_met(fault)

    assert limit is not None
    assert limit.message == f"this machine gives no more {what}"
    assert limit.hint
    assert limit.code is ExitCode.INVALID


@pytest.mark.parametrize(
    "fault",
    [OSError(errno.ENOENT, "No such file"), RuntimeError("another"), OSError("no number"), KeyError(24)],
)
def test_other_faults_are_no_limits(fault: BaseException) -> None:
    assert limit_met(fault) is None
