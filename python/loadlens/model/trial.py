"""One trial as the record keeps it, and the codes of its outcomes (docs/reference/record.md)."""

from __future__ import annotations

from enum import IntEnum, StrEnum


class TrialStatus(StrEnum):
    """Status of a trial."""

    COMPLETE = "complete"
    ABORTED = "aborted"  # ended early, by a person or by a crash
    EXPLORATORY = "exploratory"  # its load was changed while it ran
    INVALID = "invalid"  # ran, but a gate says that its figures must not be used


class Outcome(IntEnum):
    """Outcome of one request; the same codes as the engine's, which classes every failure."""

    OK = 0
    UNEXPECTED_STATUS = 1
    CHECK_FAILED = 2
    RESOLVE = 10
    REFUSED = 11
    CONNECT_TIMEOUT = 12
    CONNECT_FAILED = 13
    RESET = 14
    CLOSED_BEFORE_RESPONSE = 15
    CLOSED_ON_REUSE = 16
    TRUNCATED = 17
    MALFORMED = 18
    TIMEOUT = 19
    LIMIT = 20
    TLS = 21
    OWN_DESCRIPTORS = 22
    OWN_PORTS = 23
    OWN_MEMORY = 24
    TLS_TIMEOUT = 25
    UNCLASSED = 29  # a failure that another program, which made the load, names by words of its own
    IN_FLIGHT = 30
    WAITING = 31
    DROPPED = 32
