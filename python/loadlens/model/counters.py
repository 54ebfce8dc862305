"""Rows of counters.jsonl: what each stream did in each interval, and how the generator fared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from loadlens.model.plain import read

Phase = Literal["warmup", "measure", "drain"]


@dataclass(frozen=True, slots=True)
class Cell:
    """Requests of one step and class that ended in an interval, with sums of their times."""

    count: int = 0
    response_sum_s: float = 0.0
    response_sumsq_s2: float = 0.0
    service_sum_s: float = 0.0
    service_sumsq_s2: float = 0.0

    def __add__(self, other: Cell) -> Cell:
        return Cell(
            self.count + other.count,
            self.response_sum_s + other.response_sum_s,
            self.response_sumsq_s2 + other.response_sumsq_s2,
            self.service_sum_s + other.service_sum_s,
            self.service_sumsq_s2 + other.service_sumsq_s2,
        )


@dataclass(frozen=True, slots=True)
class StreamCounters:
    """One stream in one interval."""

    start_s: float  # since t0
    length_s: float
    phase: Phase
    stream: str
    due: int = 0
    issued: int = 0
    dropped: int = 0
    answered: int = 0
    ok: int = 0
    unexpected_status: int = 0
    check_failed: int = 0
    skipped: int = 0
    failed: Mapping[str, int] = field(default_factory=dict)  # by class of failure
    status: Mapping[str, int] = field(default_factory=dict)
    cells: Mapping[str, Cell] = field(default_factory=dict)  # by step index and class: `0.ok`
    in_flight: int = 0  # at its end
    in_flight_integral_s: float = 0.0
    waiting: int = 0  # at its end
    max_gap_s: float | None = None  # the longest stretch without an answer
    max_gap_at_s: float | None = None
    opened: int = 0
    closed_by_client: int = 0
    closed_by_server: int = 0
    closed_by_error: int = 0
    bytes_out: int = 0
    bytes_in_wire: int | None = None  # none: an older record, which did not count them

    @property
    def end_s(self) -> float:
        """End of the interval, since t0."""
        return self.start_s + self.length_s

    def cell(self, step: int, klass: str) -> Cell:
        """Requests of a step that ended so."""
        return self.cells.get(f"{step}.{klass}", _NOTHING)

    def of_class(self, klass: str) -> list[Cell]:
        """Requests of all steps that ended so."""
        return [cell for name, cell in self.cells.items() if name.endswith(f".{klass}")]


@dataclass(frozen=True, slots=True)
class GeneratorCounters:
    """The engine itself in one interval, by thread."""

    start_s: float
    length_s: float
    phase: Phase
    stalled_s: tuple[float, ...] = ()
    busy: tuple[float, ...] = ()  # share of the time in which it did something
    lag_p99_s: float | None = None

    @property
    def end_s(self) -> float:
        """End of the interval, since t0."""
        return self.start_s + self.length_s


@dataclass(frozen=True, slots=True)
class Counters:
    """All rows of a trial, in order."""

    streams: tuple[StreamCounters, ...] = ()
    generator: tuple[GeneratorCounters, ...] = ()

    @property
    def intervals(self) -> Iterator[StreamCounters | GeneratorCounters]:
        """All rows."""
        yield from self.streams
        yield from self.generator

    def of(self, stream: str, *phases: Phase) -> list[StreamCounters]:
        """The rows of a stream in some phases."""
        return [row for row in self.streams if row.stream == stream and row.phase in phases]

    @property
    def stalls(self) -> tuple[list[float], list[float]]:
        """Begins and ends of the times in which the generator itself may have stood still, since t0."""
        stalls = [(row, max(row.stalled_s, default=0.0)) for row in self.generator]
        stalled = [(row, longest) for row, longest in stalls if longest > 0]
        return [row.start_s - longest for row, longest in stalled], [row.end_s for row, _ in stalled]

    @classmethod
    def from_rows(cls, rows: Iterable[Mapping[str, Any]]) -> Counters:
        """Read the rows of counters.jsonl.

        Raises:
            Unreadable: A row is not what docs/reference/record.md describes.
        """
        streams, generator = [], []
        for row in rows:
            if row.get("stream") is None:
                generator.append(read(GeneratorCounters, {**row.get("generator", {}), **row}))
            else:
                streams.append(read(StreamCounters, row))
        return cls(tuple(streams), tuple(generator))


_NOTHING = Cell()
