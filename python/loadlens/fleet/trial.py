"""One trial of a fleet: divide the plan, prepare every node, start all at one moment, watch, merge.

The contract is that of `run.engine_trial.run_trial`. A node lost before the start leaves its share to others.
One lost later ends the load of all, because a load whose shape changed in the middle answers no question.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NoReturn

from loadlens import engine, temporary
from loadlens.engine import Result
from loadlens.errors import EngineError, ExitCode, PlanError
from loadlens.fleet import agent, ceiling, division, files, progress
from loadlens.fleet.clock import Line
from loadlens.fleet.cluster import Fleet, Node
from loadlens.fleet.member import IN_FLIGHT, LEASE_S, Member, NodeLost, enlist
from loadlens.fleet.messages import RESULT, Do
from loadlens.load_control import LoadControl, Refused, WantedChange
from loadlens.model.workload import Plan, RecordTo, shares_of
from loadlens.run.engine_trial import GRACE_S, Listener, Start, time_to_end_s, time_to_stop_s
from loadlens.run.interrupts import Stopped

TURN_S: Final = 0.05
LISTEN_S: Final = 0.1
PREPARE_S: Final = 60.0  # to read feeds and resolve names
AHEAD_S: Final = 1.0  # of the start, at least
TELL_S: Final = 0.002  # for each node, to reach all of them
ROUND_TRIPS: Final = 5  # of the slowest node, that the start lies ahead at least
TOO_CLOSE_S: Final = 0.15  # to the start: a node lost now counts as lost under load
AT_ONCE: Final = 8  # nodes that are called at a time
NODES: Final = "nodes"
SUMS: Final = "sums.bin"  # of a node, which the engine merges
NS: Final = 1e9


def run_trial(
    fleet: Fleet,
    plan: Plan,
    listener: Listener | None = None,
    *,
    record: RecordTo | None = None,
    start: Start | None = None,
    controlled: Path | None = None,
) -> Result:
    """Run a plan on all nodes of a fleet to its end, or until the listener ends it.

    Args:
        fleet: Where.
        plan: The load of all nodes together.
        listener: Receives the events of the load; none by default.
        record: Where the merged live files go, an existing folder; those of each node go to `nodes/NAME` in
            it. None writes nothing.
        start: None; a load with a script cannot be divided.
        controlled: Folder of a record; changes of the load are refused by name.

    Returns:
        The result of all nodes as that of one engine, with `nodes` (docs/reference/record.md); status
        `stopped` if it ended early, with the reason if a node was lost.

    Raises:
        PlanError: The engine refuses the plan; the node is named.
        TooLargeError: A node's share is beyond its ceiling.
        EngineError: No load could be made, or nothing of it is left.
    """
    if start is not None:
        raise PlanError("a load with a script runs on one machine alone")
    if fleet.is_insecure:
        files.refuse_keys(plan)
    listener = listener or Listener()
    fleet.refresh()
    with ExitStack() as held:
        if record is None:
            record = RecordTo(str(held.enter_context(temporary.folder("fleet"))), max_sample_rows=0)
        control = LoadControl(controlled)
        held.callback(control.close)
        trial = Trial(fleet, plan, listener, record, control)
        held.callback(trial.close)
        trial.gather()
        trial.start()
        trial.watch()
        return trial.result()


class Trial:
    """Steps of one trial, in order: gather, start, watch, result, close."""

    def __init__(
        self, fleet: Fleet, plan: Plan, listener: Listener, record: RecordTo, control: LoadControl
    ) -> None:
        self._fleet, self._plan, self._listener = fleet, plan, listener
        self._record, self._control = record, control
        self._members: list[Member] = []  # who take part
        self._slots = asyncio.Semaphore(IN_FLIGHT)
        self.reasons: list[str] = []  # of an early end
        self._broken: list[Member] = []  # who caused it
        self._is_stopping = self._wants_stop = False
        self._notes = [f"the node at {address} did not answer and takes no part" for address in fleet.silent]
        if fleet.is_insecure:
            self._notes.append("connections to the fleet are not encrypted (--insecure-fleet)")
        self._t0_ns = 0  # here
        self._turned_s = self._listened_s = time.monotonic()
        self._is_announced = False

    # --- before the start -------------------------------------------------------------------------------

    def gather(self) -> None:
        """Place an agent on every node, compare clocks, and send files."""
        wanted = files.files_of(self._plan)

        def place(node: Node) -> Member:
            member = enlist(self._fleet.client, node, len(self._fleet.nodes))
            member.slots = self._slots
            self._members.append(member)
            member.send_files(wanted)
            return member

        self._without_lost(self._fleet.nodes, place)
        self._without_lost(self._members, _measure_before, at_once=AT_ONCE if len(self._members) > 16 else 1)
        order = [node.name for node in self._fleet.nodes]
        self._members.sort(key=lambda member: order.index(member.node.name))

    def start(self) -> None:
        """Prepare all nodes and set the moment of the start; divide again while nodes are lost before it."""
        while True:
            self._divide()
            divided = len(self._members)
            self._renew()
            if len(self._members) == divided and self._prepare() and self._arm():
                return

    def _renew(self) -> None:
        """Start the engine's processes anew; those that run get beats while others start."""
        with ThreadPoolExecutor(AT_ONCE) as pool:
            begun = {member.node.name: pool.submit(member.renew) for member in self._members}
            while not all(future.done() for future in begun.values()):
                self._turn([m for m in self._members if _has_worked(begun[m.node.name])])
        self._keep(self._members, [*begun.values()])

    def _divide(self) -> None:
        if not self._members:
            what = "; ".join(("the fleet has no node left", *self._notes))
            raise EngineError(what, where=self._fleet.where)
        weights = [self._fleet.weights.get(member.node.name, 1) for member in self._members]
        parts = division.carrying(self._plan, weights)
        for index, member in enumerate(self._members):
            if index not in parts:
                self._notes.append(f"node {member.node.name} takes no part: there is no user for it")
        self._try([m for i, m in enumerate(self._members) if i not in parts], Member.release)
        self._members = [self._members[index] for index in parts]
        weights = [weights[index] for index in parts]
        ceiling.refuse_beyond([m.node for m in self._members], weights, ceiling.requests_per_s(self._plan))
        for member, share in zip(self._members, shares_of(weights), strict=True):
            member.share = share

    def _prepare(self) -> bool:
        """Hand out the shares; false: a node was lost."""
        for member in self._members:
            rows = self._record.max_sample_rows
            own = replace(
                files.placed(self._plan, f"{member.folder}/{agent.FILES}"),
                share=member.share,
                record=RecordTo(
                    f"{member.folder}/{agent.LIVE}",
                    None if rows is None else round(rows * member.share.weight),
                    sums=True,
                ),
            )
            member.tell({"do": Do.PREPARE, "plan": own.to_json()})
        self._until(lambda: all(m.is_over or m.state == "prepared" for m in self._members), PREPARE_S)
        for member in self._members:
            if member.state == "refused":
                raise member.error()
            if member.state == "new":
                member.lose(f"was not prepared within {PREPARE_S:g} s")
        notes = [f"{member.node.name}: {note}" for member in self._members for note in member.notes]
        if self._drop_lost():
            return False
        if notes or self._notes:
            self._listener.warned([*notes, *self._notes])
        return True

    def _arm(self) -> bool:
        """Set the moment of the start on every node's clock; false: a node was lost before it."""
        round_trip_s = max(member.round_trip_ns for member in self._members) / NS
        ahead_s = max(AHEAD_S, ROUND_TRIPS * round_trip_s) + TELL_S * len(self._members)
        self._t0_ns = time.monotonic_ns() + round(ahead_s * NS)
        for member in self._members:
            assert member.before is not None
            member.tell({"do": Do.START, "at_ns": Line(member.before).on_node(self._t0_ns)})

        def left_s() -> float:
            return (self._t0_ns - time.monotonic_ns()) / NS

        self._until(lambda: left_s() < 0 or any(m.is_over for m in self._members), left_s() + GRACE_S)
        over = [member for member in self._members if member.is_over]
        if over and all(member.is_gone for member in over) and left_s() > TOO_CLOSE_S:
            return not self._drop_lost()
        return True

    def _drop_lost(self) -> bool:
        lost = [member for member in self._members if member.is_gone]
        for member in lost:
            self._leave_out(f"node {member.node.name} was lost before the start: {member.reasons[-1]}")
        self._members = [member for member in self._members if member not in lost]
        # An engine that is suspended does not end by itself.
        self._try([member for member in lost if member.state == "failed"], Member.release)
        return bool(lost)

    def _leave_out(self, why: str) -> None:
        self._notes.append(f"{why}; the others have its share")

    # --- under load -------------------------------------------------------------------------------------

    def watch(self) -> None:
        """Follow the load to its end; a lost node ends that of all."""
        slowest_s, ends_s = time_to_stop_s(self._plan), self._t0_ns / NS + time_to_end_s(self._plan)
        stopped_s: float | None = None
        while not all(member.is_over for member in self._members):
            self._turn()
            now_s = time.monotonic()
            if stopped_s is None and (why := self._why_stop(now_s > ends_s)) is not None:
                stopped_s = now_s
                self._stop(why)
            if stopped_s is not None and now_s - stopped_s > slowest_s:
                for member in self._members:
                    if not member.is_over:
                        member.lose(f"its load did not end within {slowest_s:.0f} s of the stop")
        self._why_stop(False)  # of nodes that ended last

    def _why_stop(self, is_late: bool) -> str | None:
        """Return why the load must end now, and keep which nodes broke down."""
        for member in self._members:
            if member in self._broken:
                continue
            if member.state in ("lost", "failed", "refused"):
                self._broken.append(member)
                self.reasons.append(_how_broken(member, self._t0_ns))
            elif member.state == "stopped" and not self._is_stopping:
                self._broken.append(member)
                self.reasons.append(f"node {member.node.name} stopped: {member.reasons[-1]}")
        if self.reasons:
            return self.reasons[0]
        if is_late:
            return "the load did not end when its plan did"
        return "on request" if self._wants_stop else None

    def _stop(self, why: str) -> None:
        self._is_stopping = True
        for member in self._members:
            if not member.is_over:
                member.tell({"do": Do.STOP, "why": why})

    def _turn(self, members: Sequence[Member] | None = None) -> None:
        """Sleep a moment, read what nodes have sent, all or some, and let the listener see it."""
        time.sleep(TURN_S)
        now_s = time.monotonic()
        passed_s, self._turned_s = now_s - self._turned_s, now_s
        for member in self._members if members is None else members:
            member.turn(passed_s)
        if now_s - self._listened_s < LISTEN_S:
            return
        self._listened_s = now_s
        self._control.serve(_refuse_change)
        parts = [member.progress for member in self._members if member.progress is not None]
        has_begun = self._t0_ns and time.monotonic_ns() >= self._t0_ns
        if has_begun:
            self._announce()
        is_whole = has_begun and len(parts) == len(self._members)
        if self._listener.must_stop(progress.total(parts, self._t0_ns) if is_whole else None):
            self._wants_stop = True
            if not has_begun:
                raise Stopped(ExitCode.INTERRUPTED)

    def _folder_of(self, member: Member) -> Path:
        """Return the folder of what a node has written."""
        return Path(self._record.dir) / NODES / member.node.name

    def _announce(self) -> None:
        if not self._is_announced:
            self._is_announced = True
            for member in self._members:  # a page that follows the load sees by these who makes it
                member.copies = self._folder_of(member)
                member.copies.mkdir(parents=True, exist_ok=True)
            self._listener.started(self._t0_ns, _unix_ns(self._t0_ns))

    def _until(self, is_reached: Callable[[], bool], timeout_s: float) -> None:
        until_s = time.monotonic() + timeout_s
        while not is_reached() and time.monotonic() < until_s:
            self._turn()

    # --- afterwards -------------------------------------------------------------------------------------

    def result(self) -> Result:
        """Fetch what the nodes have written, merge it, and describe every node."""
        self._announce()
        out = Path(self._record.dir)
        reachable = [member for member in self._members if member.state != "lost"]
        self._try(reachable, _measure_after)
        for member in self._try(reachable, lambda member: member.fetch(self._folder_of(member))):
            if member not in self._broken:  # lost with counts that were not sent yet
                member.state = "lost"
                self._broken.append(member)
                self.reasons.append(f"{member.reasons[-1]} after its load, and its counts did not come")
        folders = [self._folder_of(member) for member in self._members]
        for member, folder in zip(self._members, folders, strict=True):
            if member.state == "lost" and not (folder / SUMS).exists():
                shutil.rmtree(folder, ignore_errors=True)  # beginnings of files, which the merge lacks
        own = [_own_result(folder) for folder in folders]
        present = [folder for folder in folders if (folder / SUMS).exists()]
        if not present:
            raise EngineError("; ".join(self.reasons) or "no node sent a result")
        threads = sum(each["generator"]["threads"] or 0 for each in own if each is not None)
        whole = replace(self._plan, threads=threads or None, record=self._record)
        merged = engine.merge(whole, present, out)
        merged["t0_monotonic_ns"], merged["t0_unix_ns"] = self._t0_ns, _unix_ns(self._t0_ns)
        merged["reasons"] = [*self.reasons, *merged.get("reasons", ()), *self._notes]
        if self._broken:
            merged["status"] = "incomplete"
        merged[NODES] = [
            _described(member, each, self._t0_ns) for member, each in zip(self._members, own, strict=True)
        ]
        return merged

    def close(self) -> None:
        """End what is left on the nodes; one that does not answer ends by itself."""
        self._try([m for m in self._members if m.state != "lost"], Member.release)

    def _without_lost(self, each: Sequence[Any], do: Callable[[Any], Any], at_once: int = AT_ONCE) -> None:
        """Do something with nodes or members; those that are lost by it take no part.

        It may take as long as it needs: agents are kept meanwhile.
        """
        with ThreadPoolExecutor(at_once) as pool:
            done = [pool.submit(do, member) for member in each]
            while wait(done, timeout=LEASE_S / 4).not_done:
                for member in list(self._members):
                    member.keep()
        self._keep(each, done)

    def _keep(self, each: Sequence[Any], done: Sequence[Future[Any]]) -> None:
        """Leave out the nodes, or members, of which something was lost."""
        for node, future in zip(each, done, strict=True):
            try:
                future.result()
            except NodeLost as fault:
                name = (node.node if isinstance(node, Member) else node).name
                self._leave_out(str(fault))
                self._members = [member for member in self._members if member.node.name != name]

    def _try(self, members: Sequence[Member], do: Callable[[Member], object]) -> list[Member]:
        """Do something with members as far as they answer; return the others, each with the reason."""

        def attempt(member: Member) -> bool:
            try:
                do(member)
            except NodeLost as fault:
                member.reasons.append(str(fault))
                return False
            return True

        with ThreadPoolExecutor(AT_ONCE) as pool:
            done = list(pool.map(attempt, members))
        return [member for member, is_done in zip(members, done, strict=True) if not is_done]


def _has_worked(future: Future[Any]) -> bool:
    return future.done() and future.exception() is None


def _measure_before(member: Member) -> None:
    member.before = member.measure_clock()


def _measure_after(member: Member) -> None:
    member.after = member.measure_clock()


def _refuse_change(wanted: WantedChange) -> NoReturn:
    raise Refused(
        "it is shared by a fleet. Stop it and start another at the new level, or plan levels: --stages"
    )


def _how_broken(member: Member, t0_ns: int) -> str:
    """Describe a node that did not carry its load to the end."""
    after_s = (time.monotonic_ns() - t0_ns) / NS
    when = f"about {abs(after_s):.1f} s {'after' if after_s >= 0 else 'before'} the start"
    what = {"lost": "was lost", "failed": "failed", "refused": "did not start"}[member.state]
    return f"node {member.node.name} {what} {when}: {member.reasons[0]}"


def _unix_ns(monotonic_ns: int) -> int:
    return time.time_ns() - (time.monotonic_ns() - monotonic_ns)


def _own_result(folder: Path) -> dict[str, Any] | None:
    """Read the result of one node; None: it sent none."""
    try:
        content: dict[str, Any] = json.loads((folder / RESULT).read_text())
    except (OSError, ValueError):
        return None
    return content


def _described(member: Member, own: Result | None, t0_ns: int) -> dict[str, Any]:
    """Return a node's entry in the result of the fleet."""
    assert member.before is not None
    line = Line(member.before, member.after)
    offset = line.offset_at(t0_ns)
    reasons = list(member.reasons)
    if not line.is_possible:
        reasons.append("its clock jumped during the trial")
    streams = [] if own is None else own["streams"]
    return {
        "name": member.node.name,
        "host": member.node.host,
        "share": [member.share.begin, member.share.end, member.share.of],
        "threads": None if own is None else own["generator"]["threads"],
        "t0_unix_ns": 0 if own is None else own["t0_unix_ns"],
        "clock_offset_ns": round(offset.offset_ns),
        "clock_error_ns": round(offset.error_ns),
        "clock_drift_ppm": None if member.after is None else line.drift * 1e6,
        "start_late_ns": None if own is None else own["start_late_ns"],
        "status": member.state,
        "reasons": reasons,
        "generator": None if own is None else own["generator"],
        "streams": [
            {
                "name": stream["name"],
                "due": stream["requests"]["due"],
                "ok": stream["requests"]["ok"],
                "failed": stream["requests"]["failed"],
                "unexpected_status": stream["requests"]["unexpected_status"],
                "check_failed": stream["requests"]["check_failed"],
                "throughput_rps": stream["throughput_rps"],
                "p50_s": stream["response_time_s"]["p50"],
                "p99_s": stream["response_time_s"]["p99"],
            }
            for stream in streams
        ],
    }
