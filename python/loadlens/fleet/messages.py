"""Names of the messages between a controller and the engine's process on a node."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

RESULT: Final = "result.json"  # of the engine on a node, next to its live files


class Do(StrEnum):
    """Messages to the engine's process; each is also a beat."""

    PREPARE = "prepare"  # plan: JSON, its record folder on the node
    START = "start"  # at_ns: on the node's monotonic clock
    BEAT = "beat"
    STOP = "stop"  # why


class Is(StrEnum):
    """Messages from the engine's process."""

    ALIVE = "alive"  # to a beat before the start
    PREPARED = "prepared"  # notes
    REFUSED = "refused"  # kind, what, hint, faults
    ARMED = "armed"  # threads wait for the start
    PROGRESS = "progress"  # progress: of the engine; grown: pieces of its live files
    ENDED = "ended"  # progress, reasons; the result is on disk
    FAILED = "failed"  # what
