"""One load of which every request is kept for a moment: for layouts that list requests.

Loads neither numpy nor polars: a request is one place in a few plain arrays.
"""

from __future__ import annotations

import tempfile
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from loadlens import temporary
from loadlens.engine import Progress
from loadlens.errors import EngineError
from loadlens.model.trial import CONNECTION, SAMPLE, Outcome
from loadlens.model.workload import Plan, RecordTo
from loadlens.record import layout, sample_rows
from loadlens.run.single_load import HitDone, run_hit

MOST_REQUESTS = 5_000_000  # some 60 bytes each in memory, twice as many on the disk while it runs
ANSWERED = frozenset({Outcome.OK, Outcome.UNEXPECTED_STATUS, Outcome.CHECK_FAILED})
_NOT_ENDED = frozenset({Outcome.IN_FLIGHT, Outcome.WAITING, Outcome.DROPPED})
_FIRST_OF_CONNECTION = 1
_BY_SERVER = 2


class Request(NamedTuple):
    """One request that ended; times in nanoseconds."""

    sent_ns: int  # since the load began: it took a connection or started one
    connect_ns: int  # until its connection stood, TLS included; 0 on one that stood before
    first_ns: int  # first byte of the answer, since the load began; -1: none came
    done_ns: int  # last byte, or the failure, since the load began
    body_bytes: int
    status: int  # 0: no answer
    outcome: Outcome

    @property
    def is_answered(self) -> bool:
        """True if the answer was complete."""
        return self.outcome in ANSWERED

    @property
    def time_ns(self) -> int:
        """From sent to done, connecting included."""
        return self.done_ns - self.sent_ns

    @property
    def wait_ns(self) -> int:
        """From when it could leave to the first byte of the answer; 0 when none came."""
        return 0 if self.first_ns < 0 else max(0, self.first_ns - self.sent_ns - self.connect_ns)


class RequestLog:
    """Every request that ended, in the order of their ends.

    Args:
        folder: Where the engine wrote its live files.
    """

    def __init__(self, folder: Path) -> None:
        stands = _ConnectTimes(folder)
        self.closed_by_server = stands.closed_by_server  # connections that had carried an answer
        ended: list[array[int]] = [array("q") for _ in range(6)]
        outcomes: array[int] = array("B")
        for row in sample_rows.tuples(folder / layout.SAMPLES_BIN, SAMPLE):
            _, _, sent, first, done, _, connection, _, body, _, status, outcome, _, _, flags = row
            if outcome in _NOT_ENDED:
                continue
            is_first = flags & _FIRST_OF_CONNECTION
            outcomes.append(outcome)
            fields = (sent, stands.of(connection) if is_first else 0, first, done, body, status)
            for column, value in zip(ended, fields, strict=True):
                column.append(value)
        order = sorted(range(len(outcomes)), key=ended[3].__getitem__)
        self._columns = [array("q", map(column.__getitem__, order)) for column in ended]
        self._outcomes = array("B", map(outcomes.__getitem__, order))

    def __len__(self) -> int:
        return len(self._outcomes)

    def __iter__(self) -> Iterator[Request]:
        for *fields, outcome in zip(*self._columns, self._outcomes, strict=True):
            sent, connect, first, done, body, status = fields
            yield Request(sent, connect, first, done, body, status, Outcome(outcome))


class _ConnectTimes:
    """Connect time of each connection, and the number closed by the server after an answer."""

    def __init__(self, folder: Path) -> None:
        self._times: array[int] = array("q")
        self.closed_by_server = 0
        for row in sample_rows.tuples(folder / layout.CONNECTIONS_BIN, CONNECTION):
            number, _, opened, established, _, requests, closed_by, *_ = row
            if number >= len(self._times):
                self._times.frombytes(bytes(8 * (number + 1024 - len(self._times))))
            self._times[number] = max(0, established - opened)
            self.closed_by_server += closed_by == _BY_SERVER and requests > 0

    def of(self, number: int) -> int:
        return self._times[number] if number < len(self._times) else 0


@dataclass(frozen=True, slots=True)
class Logged:
    """Outcome of a load, and its requests."""

    done: HitDone
    log: RequestLog


def run_logged(
    plan: Plan,
    *,
    on_progress: Callable[[Progress], None] | None = None,
    on_caution: Callable[[str], None] | None = None,
) -> Logged:
    """Run one load and read back every request of it; Ctrl-C ends it early.

    Args:
        plan: One stream named `load`, of at most MOST_REQUESTS requests.
        on_progress: Receives the engine's progress about ten times per second.
        on_caution: Receives warnings before the start.

    Raises:
        PlanError, EngineError: The engine refuses the plan or cannot carry it, or its log is not whole.
    """
    with temporary.folder("requests") as folder:
        kept = RecordTo(str(folder), max_sample_rows=None)
        done = run_hit(replace(plan, record=kept), on_progress=on_progress, on_caution=on_caution)
        log = RequestLog(folder)
    requests = done.result["streams"][0]["requests"]
    ended = requests["answered"] + requests["failed"]
    if len(log) != ended:
        raise EngineError(
            f"only {len(log)} of {ended} requests were written to {tempfile.gettempdir()}",
            hint="more room there, or TMPDIR=DIR",
        )
    return Logged(done, log)
