"""The load of a trial as cumulative series, added up by interval: the one calculator of all exports."""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from loadlens.model.counters import Cell, GeneratorCounters, StreamCounters
from loadlens.model.workload import Plan, Step, Stream
from loadlens.record import IntervalHistogram, Reading

NS: Final = 1_000_000_000
SCALE: Final = 5  # of exponential histograms: bounds grow by 2 ** (1/32), 2.2 %
_DECADE: Final = (1.0, 1.25, 1.6, 2.0, 2.5, 3.15, 4.0, 5.0, 6.3, 8.0)  # ISO 3, series R10
# Upper bounds of explicit buckets in seconds, from 10 µs to 100 s, both included.
BOUNDS_S: Final = (*(float(f"{part}e{exponent}") for exponent in range(-5, 2) for part in _DECADE), 100.0)
_BOUNDS_NS: Final = tuple(round(bound * NS) for bound in BOUNDS_S)

MOST_READINGS: Final = 600  # series of monitors in a trial; further ones are left out

CLASSES: Final = ("ok", "unexpected_status", "check_failed", "failed", "censored")  # of histograms

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Family:
    """A metric: its name as OpenTelemetry spells it."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    unit: str  # UCUM
    what: str


DURATION: Final = Family(
    "http.client.request.duration", "histogram", "s", "From sending a request to the end of its response."
)
RESPONSE: Final = Family(
    "loadlens.response.duration", "histogram", "s", "From when a request was due to the end of its response."
)
LAG: Final = Family(
    "loadlens.lag",
    "histogram",
    "s",
    "Lateness of the generator: from due to sent, without waiting for connections.",
)
DUE: Final = Family("loadlens.requests.due", "counter", "{request}", "Requests that the workload scheduled.")
ISSUED: Final = Family(
    "loadlens.requests.issued", "counter", "{request}", "Requests sent, or begun to connect."
)
DROPPED: Final = Family("loadlens.requests.dropped", "counter", "{request}", "Requests due and never issued.")
ENDED: Final = Family(
    "loadlens.requests.ended",
    "counter",
    "{request}",
    "Requests that ended; error.type says how, absent: as expected.",
)
RESPONSES: Final = Family("loadlens.responses", "counter", "{response}", "Responses by status.")
OPENED: Final = Family("loadlens.connections.opened", "counter", "{connection}", "Connections opened.")
CLOSED: Final = Family(
    "loadlens.connections.closed", "counter", "{connection}", "Connections closed, and by which side."
)
BYTES: Final = Family("loadlens.network.io", "counter", "By", "HTTP bytes, after decryption.")
IN_FLIGHT: Final = Family(
    "loadlens.requests.in_flight", "gauge", "{request}", "Requests issued and not ended."
)
WAITING: Final = Family("loadlens.requests.waiting", "gauge", "{request}", "Requests due and not issued.")
BUSY: Final = Family("loadlens.generator.busy", "gauge", "1", "Share of the time in which a thread was busy.")
STALLED: Final = Family("loadlens.generator.stalled", "counter", "s", "Time for which a thread did not run.")
READING: Final = Family(
    "loadlens.reading",
    "gauge",
    "",
    "A reading of a monitor, as read; loadlens.unit is its unit. Counters are totals, not rates.",
)
FIGURE: Final = Family(
    "loadlens.figure",
    "gauge",
    "",
    "A figure of the result; loadlens.unit is its unit, loadlens.bound value, low or high.",
)


@dataclass(slots=True)
class Distribution:
    """A cumulative histogram of durations."""

    count: int = 0
    sum_s: float = 0.0
    explicit: list[int] = field(
        default_factory=lambda: [0] * (len(BOUNDS_S) + 1)
    )  # not cumulative over bounds
    exponential: dict[int, int] = field(default_factory=dict)  # (base^i, base^(i+1)] by i
    zero: int = 0  # durations of 0

    def add(self, values_ns: Iterable[int], counts: Iterable[int]) -> None:
        """Add the buckets of an HDR histogram, each by its upper end."""
        for value, count in zip(values_ns, counts, strict=True):
            self.count += count
            self.explicit[bisect_left(_BOUNDS_NS, value)] += count
            if value <= 0:
                self.zero += count
            else:
                place = math.ceil(math.log2(value / NS) * (1 << SCALE)) - 1
                self.exponential[place] = self.exponential.get(place, 0) + count

    def copy(self) -> Distribution:
        """Return the same, which later values do not change."""
        return Distribution(self.count, self.sum_s, list(self.explicit), dict(self.exponential), self.zero)


Value = float | Distribution


@dataclass(frozen=True, slots=True)
class Point:
    """The value of a series at the end of an interval."""

    family: Family
    labels: Labels
    value: Value


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Series of a trial at one time; cumulative values count from the start of the trial."""

    start_ns: int  # since 1970
    time_ns: int  # since 1970
    points: tuple[Point, ...]


class Tally:
    """Adds up a trial.

    Args:
        plan: What the engine ran.
        t0_ns: Start of the trial since 1970.
        labels: Of every series: run, case and trial.
    """

    def __init__(self, plan: Plan, t0_ns: int, labels: Mapping[str, str]) -> None:
        self.start_ns = t0_ns
        self._labels = dict(labels)
        self._series: dict[tuple[Family, Labels], Value] = {}
        self._changed: dict[tuple[Family, Labels], None] = {}  # in order
        self._readings: dict[Reading, tuple[Family, Labels]] = {}
        self._end_s = 0.0
        self._streams = {stream.name: _Named(stream) for stream in plan.streams}
        self._by_tag = {_tag(name): named for name, named in self._streams.items()}

    def add(self, row: StreamCounters | GeneratorCounters) -> None:
        """Add what a stream, or the engine, did in an interval."""
        self._end_s = max(self._end_s, row.end_s)
        if isinstance(row, GeneratorCounters):
            for thread, stalled_s in enumerate(row.stalled_s):
                self._count(STALLED, stalled_s, {"loadlens.thread": str(thread)})
            for thread, busy in enumerate(row.busy):
                self._set(BUSY, busy, {"loadlens.thread": str(thread)})
            return
        of = {"loadlens.stream": row.stream, "loadlens.phase": row.phase}
        for family, count in ((DUE, row.due), (ISSUED, row.issued), (DROPPED, row.dropped)):
            self._count(family, count, of)
        ended = {"": row.ok, "unexpected_status": row.unexpected_status, "check_failed": row.check_failed}
        for error, count in {**ended, **row.failed}.items():
            if count or not error:
                self._count(ENDED, count, of | _error(error))
        for status, count in row.status.items():
            self._count(RESPONSES, count, of | {"http.response.status_code": status})
        self._count(OPENED, row.opened, of)
        closed = {
            "client": row.closed_by_client,
            "server": row.closed_by_server,
            "error": row.closed_by_error,
        }
        for side, count in closed.items():
            self._count(CLOSED, count, of | {"loadlens.closed_by": side})
        for direction, count in (("transmit", row.bytes_out), ("receive", row.bytes_in_wire or 0)):
            self._count(BYTES, count, of | {"network.io.direction": direction})
        self._set(IN_FLIGHT, row.in_flight, {"loadlens.stream": row.stream})
        self._set(WAITING, row.waiting, {"loadlens.stream": row.stream})
        for name, cell in row.cells.items():
            step, _, klass = name.partition(".")
            self._add_sums(row, int(step), klass, cell)

    def _add_sums(self, row: StreamCounters, step: int, klass: str, cell: Cell) -> None:
        labels = self._streams[row.stream].labels(step) | {"loadlens.phase": row.phase} | _error(klass)
        for family, sum_s in ((DURATION, cell.service_sum_s), (RESPONSE, cell.response_sum_s)):
            self._distribution(family, labels).sum_s += sum_s

    def add_histogram(self, row: IntervalHistogram, phase: str) -> None:
        """Add the durations of an interval that lies in this phase."""
        family = {"service": DURATION, "response": RESPONSE, "lag": LAG}.get(row.kind)
        named = self._by_tag.get(row.stream)
        if family is None or named is None:
            return
        labels = {"loadlens.stream": named.name, "loadlens.phase": phase}
        if row.step:
            labels |= named.labels_of_tag(row.step) | _error(row.klass)
        distribution = self._distribution(family, labels)
        values, counts = (list(map(int, numbers)) for numbers in (row.values, row.counts))
        distribution.add(values, counts)
        if family is LAG:  # no exact sum is recorded
            distribution.sum_s += sum(v * c for v, c in zip(values, counts, strict=True)) / NS

    def add_reading(self, reading: Reading, value: float) -> None:
        """Take what a monitor read; series beyond `MOST_READINGS` are left out."""
        key = self._readings.get(reading)
        if key is None:
            if len(self._readings) >= MOST_READINGS:
                return
            own = {str(name): str(of) for name, of in json.loads(reading.labels).items()}
            named = {"loadlens.monitor": reading.source, "loadlens.metric": reading.metric}
            key = self._key(READING, {**own, **named, "loadlens.unit": reading.unit})
            self._readings[reading] = key
        self._series[key] = value
        self._changed[key] = None

    def snapshot(self, *, whole: bool = False) -> Snapshot:
        """Return the series that changed since the last snapshot, or all."""
        keys = list(self._series) if whole else list(self._changed)
        self._changed.clear()
        points = []
        for family, labels in keys:
            value = self._series[family, labels]
            points.append(Point(family, labels, value.copy() if isinstance(value, Distribution) else value))
        return Snapshot(self.start_ns, self.start_ns + round(self._end_s * NS), tuple(points))

    def _count(self, family: Family, number: float, labels: Mapping[str, str]) -> None:
        key = self._key(family, labels)
        if number or key not in self._series:
            before = self._series.get(key, 0)
            assert not isinstance(before, Distribution)
            self._series[key] = before + number
            self._changed[key] = None

    def _set(self, family: Family, number: float, labels: Mapping[str, str]) -> None:
        key = self._key(family, labels)
        self._series[key] = number
        self._changed[key] = None

    def _distribution(self, family: Family, labels: Mapping[str, str]) -> Distribution:
        key = self._key(family, labels)
        distribution = self._series.setdefault(key, Distribution())
        self._changed[key] = None
        assert isinstance(distribution, Distribution)
        return distribution

    def _key(self, family: Family, labels: Mapping[str, str]) -> tuple[Family, Labels]:
        return family, tuple(sorted({**self._labels, **labels}.items()))


class _Named:
    """Names of a stream and of its steps."""

    def __init__(self, stream: Stream) -> None:
        self.name = stream.name
        self._target = {
            "server.address": stream.target.host,
            "server.port": str(stream.target.port),
            "url.scheme": "https" if stream.target.tls else "http",
        }
        self._steps = [step for scenario in stream.scenarios for step in scenario.steps]
        self._by_tag: dict[str, Step] = {}
        for step in self._steps:
            self._by_tag.setdefault(_tag(step.name), step)

    def labels(self, step: int) -> dict[str, str]:
        """Return the labels of a step by its index, the same for steps of one tag."""
        return self.labels_of_tag(_tag(self._steps[step].name))

    def labels_of_tag(self, tag: str) -> dict[str, str]:
        """Return the labels of a step by its name in the interval log; of a group only its name."""
        step = self._by_tag.get(tag)
        if step is None:
            return {"loadlens.stream": self.name, "loadlens.group": tag}
        return {
            "loadlens.stream": self.name,
            "loadlens.step": step.name,
            "http.request.method": step.method,
            **self._target,
        }


def _tag(name: str) -> str:
    """Return a name as it is written in the tag of a histogram."""
    return name.translate(_IN_TAGS)


_IN_TAGS: Final = str.maketrans("., =", "____")


def _error(klass: str) -> dict[str, str]:
    return {} if klass in ("", "ok") else {"error.type": klass}
