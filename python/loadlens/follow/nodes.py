"""The load of a fleet over time: intervals of its machines, summed, and a row per machine.

All machines use the same grid of intervals, but a machine whose collector is behind makes fewer cuts. Sums
are cut where the slowest machine cuts, and every interval of a machine goes to exactly one sum: no request is
lost or counted twice.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from loadlens.follow.load import BAD_ANSWERS, EDGE_S, POINT_S, Intervals, Row
from loadlens.model.counters import Cell, Counters, GeneratorCounters, StreamCounters
from loadlens.model.result import EngineResult, Node
from loadlens.record import FollowedLoad, IntervalHistogram

if TYPE_CHECKING:
    import numpy as np

WAIT_S: Final = 5.0  # that a machine may be behind another; what comes later goes to the next sum
_ADDED: Final = (
    *("due", "issued", "dropped", "skipped", "answered", "ok", *BAD_ANSWERS, "in_flight_integral_s"),
    *("opened", "closed_by_client", "closed_by_server", "closed_by_error", "bytes_out", "bytes_in_wire"),
)
_STATES: Final = ("in_flight", "waiting")


@dataclass(slots=True)
class _Machine:
    """The intervals of one machine."""

    load: FollowedLoad
    intervals: Intervals = field(default_factory=Intervals)
    waiting: deque[list[Row]] = field(default_factory=deque)  # intervals that are in no sum yet
    last: deque[list[Row]] = field(default_factory=deque)  # intervals of the last second
    end_s: float = 0.0
    totals: Counter[str] = field(default_factory=Counter)  # of the streams that are the load
    states: dict[tuple[str, str], int] = field(default_factory=dict)  # by stream and name, in the last sum


class NodesOverTime:
    """The machines of a fleet, followed by `take`.

    Args:
        loads: What each has sent, by name.
        streams: Names of the streams that are the load; the others are probes.
    """

    def __init__(self, loads: Mapping[str, FollowedLoad], streams: Sequence[str]) -> None:
        self._machines = {name: _Machine(load) for name, load in loads.items()}
        self._streams = frozenset(streams)
        self._reached_s = 0.0

    def take(self, but: Collection[tuple[str, str]] = ()) -> tuple[Counters, list[IntervalHistogram]]:
        """Return sums of the intervals that came since the last call from all machines, and the histograms.

        Args:
            but: (stream, kind) of histograms to leave out.
        """
        histograms: list[IntervalHistogram] = []
        for machine in self._machines.values():
            counters, own = machine.load.take(but)
            histograms += own
            for rows in machine.intervals.whole(counters):
                self._note(machine, rows)
        newest_s = max(machine.end_s for machine in self._machines.values())
        awaited = [each for each in self._machines.values() if each.end_s > newest_s - WAIT_S]
        slowest = min(awaited, key=lambda machine: (machine.end_s, len(machine.waiting)))
        streams: list[StreamCounters] = []
        generator: list[GeneratorCounters] = []
        for end_s, phase in [(rows[0].end_s, rows[0].phase) for rows in slowest.waiting]:
            parts = {name: _until(each, end_s) for name, each in self._machines.items()}
            bounds = {"start_s": self._reached_s, "length_s": end_s - self._reached_s, "phase": phase}
            streams += self._added(parts, bounds)
            generator.append(_generators([_own(each) for each in parts.values()], bounds))
            self._reached_s = end_s
        return Counters(tuple(streams), tuple(generator)), histograms

    def bad_samples(self, *, is_wanted: bool) -> Iterator[np.ndarray[Any, Any]]:
        """Yield the rows of failed requests that came since the last look, of all machines.

        Args:
            is_wanted: False leaves them for the next look: they may come before the sums that count them.
        """
        if is_wanted:
            for machine in self._machines.values():
                yield from machine.load.bad_samples(is_wanted=True)

    def rows(self) -> list[dict[str, Any]]:
        """Return each machine with its counts so far, and its rate and lateness in the last second."""
        return [
            _row(
                name,
                {count: machine.totals[count] for count in ("due", "ok", "bad")},
                per_s=_per_s(machine, self._streams),
                late_s=max(_lateness(machine), default=None),
                busy=max((busy for row in _own(machine.last) for busy in row.busy), default=None),
            )
            for name, machine in self._machines.items()
        ]

    def _note(self, machine: _Machine, rows: list[Row]) -> None:
        machine.waiting.append(rows)
        machine.end_s = rows[0].end_s
        machine.last.append(rows)
        while machine.last[0][0].start_s < machine.end_s - POINT_S - EDGE_S and len(machine.last) > 1:
            machine.last.popleft()
        for row in rows:
            if isinstance(row, StreamCounters) and row.stream in self._streams:
                bad = sum(row.failed.values()) + row.unexpected_status + row.check_failed
                machine.totals.update({"due": row.due, "ok": row.ok, "bad": bad})

    def _added(
        self, parts: Mapping[str, Sequence[list[Row]]], bounds: Mapping[str, Any]
    ) -> list[StreamCounters]:
        """Return one row per stream: counts of all machines, and their states at its end."""
        counts: dict[str, Counter[str]] = {}
        failed: dict[str, Counter[str]] = {}
        status: dict[str, Counter[str]] = {}
        cells: dict[str, dict[str, Cell]] = {}
        for name, intervals in parts.items():
            for row in (row for rows in intervals for row in rows if isinstance(row, StreamCounters)):
                own = counts.setdefault(row.stream, Counter())
                for count in _ADDED:
                    own[count] += getattr(row, count) or 0
                failed.setdefault(row.stream, Counter()).update(row.failed)
                status.setdefault(row.stream, Counter()).update(row.status)
                of_stream = cells.setdefault(row.stream, {})
                for step, cell in row.cells.items():
                    of_stream[step] = of_stream.get(step, Cell()) + cell
                for state in _STATES:
                    self._machines[name].states[row.stream, state] = getattr(row, state)
        rows = []
        for stream, own in counts.items():
            states = {
                state: sum(each.states.get((stream, state), 0) for each in self._machines.values())
                for state in _STATES
            }
            fields: dict[str, Any] = {**bounds, **own, **states, "cells": cells[stream]}
            rows.append(StreamCounters(stream=stream, failed=failed[stream], status=status[stream], **fields))
        return rows


def sealed_rows(result: EngineResult | None) -> list[dict[str, Any]]:
    """Return each machine of a trial that has ended with its counts, its rate and its lateness under load."""
    if result is None:
        return []
    streams = {stream.name for stream in result.streams if stream.role == "load"}
    return [_sealed_row(node, streams) for node in result.nodes]


def _sealed_row(node: Node, streams: Set[str]) -> dict[str, Any]:
    loads = [stream for stream in node.streams if stream.name in streams]
    bad = [each.unexpected_status + each.check_failed for each in loads]
    rates = [each.throughput_rps.value for each in loads if each.throughput_rps.value is not None]
    generator = node.generator
    return _row(
        node.name,
        {"due": sum(each.due for each in loads), "ok": sum(each.ok for each in loads)}
        | {"bad": sum(each.failed for each in loads) + sum(bad)},
        per_s=sum(rates) if rates else None,
        late_s=None if generator is None else generator.lag_p99_s,
        busy=None if generator is None else generator.busy,
    )


def _row(
    name: str, counts: Mapping[str, int], *, per_s: float | None, late_s: float | None, busy: float | None
) -> dict[str, Any]:
    return {"name": name, **counts, "per_s": per_s, "late_s": late_s, "busy": busy}


def _until(machine: _Machine, end_s: float) -> list[list[Row]]:
    """Take the intervals of a machine that end by a time."""
    taken = []
    while machine.waiting and machine.waiting[0][0].end_s <= end_s + EDGE_S:
        taken.append(machine.waiting.popleft())
    return taken


def _generators(machines: Sequence[list[GeneratorCounters]], bounds: Mapping[str, Any]) -> GeneratorCounters:
    """Return the generators of all machines as one: its threads are the threads of all, in order.

    Args:
        machines: The intervals of each in the sum.
        bounds: Of the sum.
    """
    stalled_s: list[float] = []
    busy: list[float] = []
    for rows in machines:
        seconds = sum(row.length_s for row in rows) or math.inf  # a phase may begin and end at once
        stalled_s += [sum(stalls) for stalls in zip(*(row.stalled_s for row in rows), strict=False)]
        shares = zip(*([share * row.length_s for share in row.busy] for row in rows), strict=False)
        busy += [sum(parts) / seconds for parts in shares]
    late = [row.lag_p99_s for rows in machines for row in rows if row.lag_p99_s is not None]
    return GeneratorCounters(
        **bounds, stalled_s=tuple(stalled_s), busy=tuple(busy), lag_p99_s=max(late, default=None)
    )


def _own(intervals: Sequence[list[Row]] | deque[list[Row]]) -> list[GeneratorCounters]:
    return [row for rows in intervals for row in rows if isinstance(row, GeneratorCounters)]


def _lateness(machine: _Machine) -> list[float]:
    return [row.lag_p99_s for row in _own(machine.last) if row.lag_p99_s is not None]


def _per_s(machine: _Machine, streams: frozenset[str]) -> float | None:
    """Return requests per second that were answered as expected; none before the first interval."""
    if not machine.last:
        return None
    seconds = machine.end_s - machine.last[0][0].start_s
    rows = (row for each in machine.last for row in each if isinstance(row, StreamCounters))
    ok = sum(row.ok for row in rows if row.stream in streams)
    return ok / seconds if seconds else None
