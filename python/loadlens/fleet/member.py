"""One node during a trial, as the controller has it: calls to its agent, and what came of them.

Calls never block for longer than their own timeout. A node that leaves a beat without an answer for
`LOST_AFTER_S` is lost. That time is counted in turns of the controller, so a controller that was itself
suspended does not blame its nodes.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from distributed import Client

from loadlens import errors
from loadlens.engine import Progress
from loadlens.errors import EngineError, LoadlensError, PlanError
from loadlens.fleet.agent import Agent
from loadlens.fleet.clock import EXCHANGES, Exchange, Offset, offset_of
from loadlens.fleet.cluster import Node
from loadlens.fleet.growth import add
from loadlens.fleet.messages import Do, Is
from loadlens.model.workload import Share

BEAT_S: Final = 0.25  # between beats, at least
BEATS_PER_S: Final = 1000  # of all nodes: a beat costs the controller half a millisecond
IN_FLIGHT: Final = 256  # calls of all nodes: they wait here, not where they would look like silence of a node
LEASE_S: Final = 10.0  # of an agent that is not called, at least
TURN_OF_ALL_S: Final = 0.1  # for each node, in which the controller comes round to it again
GONE: Final = (OSError, TimeoutError, RuntimeError)  # raised by Dask for calls to a worker that is gone
ALL: Final = Share()
LOST_AFTER_S: Final = 1.0
SILENT_AFTER_S: Final = 1.25  # of the engine's process, after a beat: an answer comes back with the next one
BEGIN_S: Final = 30.0  # until its first answer, on a node whose cores are taken
TURN_AT_MOST_S: Final = 0.2  # of a longer turn the controller itself was the cause
CLOCK_S: Final = 2.0  # of a comparison of clocks
CALL_S: Final = 5.0  # of a call without load
RENEW_S: Final = 1.5  # while one node is silent, the engine's processes on others hear no beat
BLOCK: Final = 4 << 20  # bytes of a file per call

# The life of a node in a trial; the last five are its end.
State = Literal["new", "prepared", "armed", "complete", "stopped", "refused", "failed", "lost"]


class NodeLost(Exception):
    """A node did not answer; the text says how."""


@dataclass(slots=True)
class Member:
    """A node that takes part in a trial."""

    node: Node
    client: Client
    agent: Any  # proxy of an `Agent`
    folder: str  # on the node
    beat_s: float = BEAT_S
    slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(IN_FLIGHT))  # of all members
    share: Share = ALL
    before: Offset | None = None
    after: Offset | None = None
    round_trip_ns: int = 0  # the longest
    state: State = "new"
    reasons: list[str] = field(default_factory=list)
    notes: tuple[str, ...] = ()
    progress: Progress | None = None
    refusal: Mapping[str, Any] | None = None
    copies: Path | None = None  # folder here for the live files of the node; none: before the start
    _beats: list[_Beat] = field(default_factory=list)
    _beat_due_s: float = 0.0
    _has_answered: bool = False  # the engine's process
    _silent_s: float = 0.0  # since then
    _answered_s: float | None = None  # when the node answered a call

    @property
    def is_over(self) -> bool:
        """True if no more comes from the engine's process."""
        return self.state in ("complete", "stopped", "refused", "failed", "lost")

    @property
    def is_gone(self) -> bool:
        """True if the node or the engine's process on it broke down."""
        return self.state in ("lost", "failed")

    # --- calls without load -----------------------------------------------------------------------------

    def call(self, method: str, *given: object, timeout_s: float = CALL_S) -> Any:
        """Call a method of the agent and return its result.

        Raises:
            NodeLost: None came in time.
        """
        try:
            return getattr(self.agent, method)(*given).result(timeout=timeout_s)
        except GONE as fault:
            raise NodeLost(f"node {self.node.name} {_silence(fault)}") from None

    def renew(self) -> None:
        """Begin with a new process of the engine; the old one is ended.

        Messages to the old one that are on their way are awaited, and those that still wait are not sent:
        calls may overtake each other, and a start must not reach the new process.

        Raises:
            NodeLost: The node does not answer.
        """
        until_s = time.monotonic() + RENEW_S
        for beat in self._beats:
            beat.is_void = True
        if wait([beat.future for beat in self._beats if beat.is_sent], timeout=RENEW_S).not_done:
            raise NodeLost(f"node {self.node.name} did not answer")
        self._beats.clear()
        self.call("start_child", timeout_s=max(until_s - time.monotonic(), 0.0))
        self.state, self.reasons, self.progress, self.refusal = "new", [], None, None
        self._has_answered, self._silent_s, self._answered_s = False, 0.0, None

    def keep(self) -> None:
        """Renew the lease of the agent; no answer is awaited."""
        with contextlib.suppress(RuntimeError):  # it is gone, as the next call will say
            self.agent.clock()

    def release(self) -> None:
        """End what is on the node.

        Raises:
            NodeLost: The node does not answer; what is there ends by itself.
        """
        self.call("close")

    def send_files(self, files: Mapping[str, str]) -> None:
        """Send what the node lacks of the plan's files, given their paths by digest.

        Raises:
            NodeLost: The node does not answer.
            EngineError: A file cannot be read, or changed since the plan was made.
        """
        for digest in self.call("lacking", list(files)):
            try:
                with open(files[digest], "rb") as file:
                    block, following = file.read(BLOCK), file.read(BLOCK)
                    while True:
                        is_last = not following
                        self.call("store", digest, block, is_last)
                        if is_last:
                            break
                        block, following = following, file.read(BLOCK)
            except (OSError, ValueError) as fault:
                what = f"{files[digest]} cannot be sent to node {self.node.name}: {fault}"
                raise EngineError(what) from None

    def measure_clock(self) -> Offset:
        """Exchange readings of both clocks.

        Raises:
            NodeLost: The node does not answer, or a clock jumped.
        """

        async def burst() -> list[Exchange]:  # on the loop of the connection: no threads in between
            exchanges = []
            for _ in range(EXCHANGES):
                sent_ns = time.monotonic_ns()
                received_ns, answered_ns = await self.agent.clock()
                exchanges.append(Exchange(sent_ns, received_ns, answered_ns, time.monotonic_ns()))
            return exchanges

        try:
            exchanges = self.client.sync(burst, callback_timeout=CLOCK_S)
            self.round_trip_ns = max(each.round_trip_ns for each in exchanges)
            return offset_of(exchanges)
        except (*GONE, ValueError) as fault:
            raise NodeLost(f"node {self.node.name}: no comparison of clocks: {_words(fault)}") from None

    def fetch(self, folder: Path) -> None:
        """Copy what the engine has written on the node into a folder; what came with beats is continued.

        Raises:
            NodeLost: The node does not answer.
        """
        folder.mkdir(parents=True, exist_ok=True)
        for name, size in self.call("files"):
            with open(folder / Path(name).name, "ab") as file:
                while file.tell() < size:
                    at = file.tell()
                    block = self.call("read", name, at, BLOCK)
                    if not block:
                        break
                    file.write(block)

    # --- the load ---------------------------------------------------------------------------------------

    def tell(self, message: Mapping[str, Any]) -> None:
        """Send a message to the engine's process; it is a beat, and its answer is read by `turn`."""
        self._beat_due_s = time.monotonic() + self.beat_s
        beat = _Beat()
        loop = self.client.loop.asyncio_loop
        beat.future = asyncio.run_coroutine_threadsafe(self._sent(beat, message), loop)
        self._beats.append(beat)

    async def _sent(self, beat: _Beat, message: Mapping[str, Any]) -> Mapping[str, Any]:
        """Call the agent once a slot is free; a call that is not answered frees its slot again."""
        async with self.slots:
            beat.is_sent = True  # before `is_void` is read, and `renew` sets that before it reads this
            if beat.is_void:
                return {"said": [], "fault": None}
            call = asyncio.ensure_future(self.agent.beat(message))
            await asyncio.wait([call], timeout=LOST_AFTER_S)
        answer: Mapping[str, Any] = await call
        return answer

    def turn(self, passed_s: float) -> None:
        """Read answers, and send a beat if one is due.

        Args:
            passed_s: Since the last turn.
        """
        if self.is_over:
            return
        for beat in [each for each in self._beats if each.future.done()]:
            self._beats.remove(beat)
            try:
                answer = beat.future.result(timeout=CALL_S)
            except GONE as fault:
                self.lose(_words(fault))
                return
            for line in answer["said"]:
                self._hear(json.loads(line))
            self._mind_silence(is_silent=not answer["said"])
            if answer["fault"] is not None and not self.is_over:
                self.fail(answer["fault"])
        for beat in self._beats:
            beat.silent_s += min(passed_s, TURN_AT_MOST_S) if beat.is_sent else 0.0
            if beat.silent_s > LOST_AFTER_S:
                self.lose(f"did not answer for {LOST_AFTER_S:g} s")
                return
        if time.monotonic() >= self._beat_due_s and not self._beats and not self.is_over:
            self.tell({"do": Do.BEAT})

    def _mind_silence(self, *, is_silent: bool) -> None:
        """Give the engine's process up if it is suspended: its pipe takes beats, and nothing comes back.

        Only time between calls that the node answered counts: calls that were sent late do not look like it.
        """
        now_s = time.monotonic()
        passed_s, self._answered_s = now_s - (self._answered_s or now_s), now_s
        self._silent_s += min(passed_s, self.beat_s + TURN_AT_MOST_S) if is_silent else 0.0
        limit_s = SILENT_AFTER_S + self.beat_s if self._has_answered else BEGIN_S
        if self._silent_s > limit_s and not self.is_over:
            self.fail(f"the engine's process did not answer for {limit_s:g} s")

    def lose(self, why: str) -> None:
        """Give the node up."""
        self.state = "lost"
        self.reasons.append(why)

    def fail(self, why: str) -> None:
        """Note that the engine's process did not end in order."""
        self.state = "failed"
        self.reasons.append(why)

    def error(self) -> LoadlensError:
        """Return what the engine on the node refused, as the error that it would be here."""
        refusal = self.refusal or {}
        message = f"node {self.node.name}: {refusal.get('what')}"
        kind = getattr(errors, str(refusal.get("kind")), EngineError)
        if kind is PlanError:
            return PlanError(message, [tuple(each) for each in refusal["faults"]])
        error: LoadlensError = kind(message, hint=refusal.get("hint"))
        return error

    def _hear(self, message: Mapping[str, Any]) -> None:
        self._has_answered, self._silent_s = True, 0.0
        match message["is"]:
            case Is.PREPARED:
                self.state, self.notes = "prepared", tuple(message["notes"])
            case Is.ARMED:
                self.state = "armed"
            case Is.PROGRESS:
                self.progress = message["progress"]
                if self.copies is not None:
                    for piece in message["grown"]:
                        add(self.copies, piece)
            case Is.ENDED:
                self.progress = message["progress"]
                self.reasons += message["reasons"]
                self.state = "stopped" if message["reasons"] else "complete"
            case Is.REFUSED:
                self.state, self.refusal = "refused", message
                self.reasons.append(message["what"])
            case Is.FAILED:
                self.fail(message["what"])


@dataclass(slots=True)
class _Beat:
    """A call that waits for its answer."""

    future: Future[Mapping[str, Any]] = field(init=False)
    is_sent: bool = False
    is_void: bool = False  # for a process that is given up: not to be sent any more
    silent_s: float = 0.0


def enlist(client: Client, node: Node, of: int = 1) -> Member:
    """Place an agent on a node.

    Args:
        client: Connected to its cluster.
        node: Where.
        of: Number of nodes: the controller comes round to each the later, the more there are.

    Raises:
        NodeLost: The node does not take it.
    """
    future = client.submit(
        Agent,
        max(LEASE_S, TURN_OF_ALL_S * of),
        actor=True,
        workers=[node.address],
        allow_other_workers=False,
        pure=False,
        retries=0,
    )
    try:
        agent = future.result(timeout=CALL_S)
        folder = agent.folder().result(timeout=CALL_S)
    except GONE as fault:
        future.cancel()
        raise NodeLost(f"node {node.name} {_silence(fault)}") from None
    return Member(node, client, agent, folder, max(BEAT_S, of / BEATS_PER_S))


def _silence(fault: BaseException) -> str:
    return "did not answer" if isinstance(fault, TimeoutError) else f"does not answer: {_words(fault)}"


def _words(fault: BaseException) -> str:
    if "Actor" in str(fault):  # Dask's words for it
        return "its Dask worker is gone"
    return (str(fault) or type(fault).__name__).splitlines()[0]
