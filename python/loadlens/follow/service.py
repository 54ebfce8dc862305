"""Readings of monitors over time, in topics: what the service and the machine did under the load.

A counter becomes its growth per second, a gauge its last reading, in steps of one second since t0 (longer in
long trials). Of a topic the series that reached most are shown, at most `MOST_SHOWN` of all topics together.
"""

from __future__ import annotations

import json
import math
import re
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from loadlens.model.readings import (
    METRICS,
    BeamMetrics,
    CgroupMetrics,
    HostMetrics,
    JvmMetrics,
    Metric,
    NodeMetrics,
    PostgresMetrics,
    ProcMetrics,
    ScrapeMetrics,
    TcpMetrics,
)
from loadlens.record import Reading
from loadlens.signals.read.metric_names import is_accumulated, meaning_of

MOST_SHOWN: Final = 50
MOST_OF_TOPIC: Final = 8
MOST_KEPT: Final = 600  # series of a trial in memory
MOST_PASSED_OVER: Final = 10_000  # further series that are remembered by name, of each sort
MOST_STEPS: Final = 3600
DIGITS: Final = 6  # significant ones; a chart shows three
NEWEST_OF: Final = 3  # steps: not every reading comes in each second
NAN: Final = math.nan


@dataclass(frozen=True, slots=True)
class Topic:
    """Series that answer one question about the service."""

    id: str
    title: str
    metrics: tuple[Metric, ...] = ()
    brief: str = ""  # where one series must do: name of the highest of its first metric
    words: frozenset[str] = frozenset()  # of names that services export


TOPICS: Final = (
    Topic("cpu", "CPU per thread", (ProcMetrics.thread_run_s,), "busiest thread"),
    Topic(
        "run_queue",
        "Waiting for a CPU",
        (
            ProcMetrics.thread_runq_wait_s,
            CgroupMetrics.cpu_throttled_s,
            CgroupMetrics.cpu_pressure_some_s,
            HostMetrics.pressure_cpu_some_s,
            BeamMetrics.run_queue_mean,
        ),
        "waits for a CPU",
    ),
    Topic(
        "accept_queue",
        "Accept queue",
        (TcpMetrics.accept_queue, TcpMetrics.listen_drops),
        "accept queue",
    ),
    Topic("connections", "Connections", (TcpMetrics.busy, TcpMetrics.connections)),
    Topic(
        "memory",
        "Memory",
        (
            ProcMetrics.rss_bytes,
            CgroupMetrics.memory_bytes,
            CgroupMetrics.memory_limit_bytes,
            NodeMetrics.heap_used_bytes,
            JvmMetrics.heap_bytes,
            JvmMetrics.heap_most_bytes,
            BeamMetrics.memory_bytes,
        ),
        "largest process",
        frozenset({"heap", "memory"}),
    ),
    Topic("pools", "Pools and places"),
    Topic(
        "gc",
        "Garbage collection and event loop",
        (
            NodeMetrics.gc_s,
            NodeMetrics.gc_pauses,
            NodeMetrics.loop_active_s,
            NodeMetrics.loop_lag_max_s,
            JvmMetrics.collection_s,
            JvmMetrics.collections,
            BeamMetrics.gc_runs,
            BeamMetrics.schedulers_busy_s,
        ),
        words=frozenset({"gc"}),
    ),
    Topic(
        "database",
        "Database",
        (
            PostgresMetrics.connections,
            PostgresMetrics.locks_waited_for,
            PostgresMetrics.longest_lock_wait_s,
            PostgresMetrics.longest_transaction_s,
        ),
    ),
    Topic(
        "machine",
        "The whole machine",
        (
            HostMetrics.cpu_user_s,
            HostMetrics.cpu_system_s,
            HostMetrics.cpu_softirq_s,
            HostMetrics.cpu_steal_s,
            HostMetrics.disk_busy_s,
            HostMetrics.memory_available_bytes,
        ),
    ),
)
_OF_METRIC: Final[Mapping[tuple[str, str], tuple[Topic, Metric]]] = {
    (metric.monitor, metric.name): (topic, metric) for topic in TOPICS for metric in topic.metrics
}
_SCRAPE: Final = next(monitor for monitor, metrics in METRICS.items() if ScrapeMetrics.scrapes in metrics)
SOURCES: Final = frozenset({_SCRAPE, *(monitor for monitor, _ in _OF_METRIC)})  # readings with a topic
_OWN_OF_SCRAPE: Final = frozenset(metric.name for metric in METRICS[_SCRAPE])
_NOT_NAMED: Final = frozenset({"pid", "process"})  # labels that say less than the others
_UNITS_OVER_TIME: Final = {"s": "share", "": "1/s", "bytes": "bytes/s"}


@dataclass(frozen=True, slots=True)
class Course:
    """The last values of one series, one per step."""

    name: str
    unit: str
    values: tuple[float | None, ...]

    @property
    def newest(self) -> float | None:
        """Newest value of the last `NEWEST_OF` steps; none: the series has ended."""
        return next((value for value in reversed(self.values[-NEWEST_OF:]) if value is not None), None)


@dataclass(slots=True, eq=False)
class _Series:
    """One series in steps of time."""

    topic: Topic
    reading: Reading
    is_counter: bool
    what: str
    values: array[float] = field(default_factory=lambda: array("d"))
    last: tuple[float, float] | None = None  # of a counter: the reading that ended the last step
    newest: tuple[float, float] | None = None
    height: float = 0.0  # the most that was reached
    is_of_lab: bool = field(init=False)  # of a program of the lab, such as the generator

    def __post_init__(self) -> None:
        self.is_of_lab = str(json.loads(self.reading.labels).get("service", "")).startswith("(")

    @property
    def unit(self) -> str:
        """Unit of the values."""
        return _UNITS_OVER_TIME.get(self.reading.unit, "1/s") if self.is_counter else self.reading.unit

    def put(self, step: int, seconds: float, value: float) -> None:
        """Take a reading; a later one of the same step replaces it."""
        if self.is_counter:
            if self.newest is not None and step >= len(self.values):
                self.last = self.newest
            self.newest = (seconds, value)
            before, self_ = self.last, value
            if before is None or seconds <= before[0] or self_ < before[1]:
                return
            value = (self_ - before[1]) / (seconds - before[0])
        if step < 0:
            return
        while len(self.values) <= step:
            self.values.append(NAN)
        self.values[step] = float(f"{value:.{DIGITS}g}")
        self.height = max(self.height, abs(value))

    def halve(self) -> None:
        """Make steps twice as long: of a gauge the later value, of a counter the mean."""
        pairs = [self.values[at : at + 2] for at in range(0, len(self.values), 2)]
        self.values = array("d", (_joined(pair, is_counter=self.is_counter) for pair in pairs))


class ServiceOverTime:
    """Columns of all series of a trial, which grow by `take`."""

    def __init__(self) -> None:
        self.length_s = 1.0
        self.version = 0  # grows when columns must be drawn anew
        self._series: dict[Reading, _Series] = {}
        self._dropped: set[Reading] = set()  # beyond `MOST_KEPT`
        self._without_topic: set[Reading] = set()
        self._shown: tuple[tuple[Topic, str, tuple[_Series, ...], int], ...] = ()
        self._steps = 0

    @property
    def size(self) -> int:
        """Number of whole steps."""
        return max(0, self._steps)

    def take(self, reading: Reading, seconds: float, value: float | None) -> None:
        """Learn one reading, `seconds` since t0."""
        series = self._series.get(reading) or self._learn(reading)
        if series is None or value is None:
            return
        step = math.floor(seconds / self.length_s)
        while step >= MOST_STEPS:
            self._halve()
            step = math.floor(seconds / self.length_s)
        self._steps = max(self._steps, step)
        series.put(step, seconds, value)

    def end(self) -> None:
        """No more will come: the last step is whole too."""
        self._steps += 1

    def choose(self) -> None:
        """Choose the series to show; another choice than before raises `version`."""
        before = {series for _, _, shown, _ in self._shown for series in shown}
        chosen = []
        left = MOST_SHOWN
        for topic in TOPICS:
            units: dict[str, list[_Series]] = {}
            for series in self._series.values():
                if series.topic is topic and series.values:
                    units.setdefault(series.unit, []).append(series)
            for unit, every in units.items():
                # The service's own come first. What is shown stays, until another series is twice as high.
                ranked = sorted(
                    every,
                    key=lambda series: (series.is_of_lab, -series.height * (1 + (series in before))),
                )
                # what never was anything else than 0 says nothing, unless all did
                ranked = [series for series in ranked if series.height] or ranked[:1]
                shown = ranked[: min(MOST_OF_TOPIC, left)]
                left -= len(shown)
                if shown:
                    in_order = sorted(shown, key=lambda series: (series.is_of_lab, series.reading))
                    chosen.append((topic, unit, tuple(in_order), len(every) - len(shown)))
        if [entry[2] for entry in chosen] != [entry[2] for entry in self._shown]:
            self.version += 1
        self._shown = tuple(chosen)

    def whole(self) -> dict[str, Any]:
        """Return all columns and what they are."""
        topics = []
        for topic, unit, series, left_out in self._shown:
            named = _names([each.reading for each in series])
            topics.append(
                {
                    "id": topic.id,
                    "title": topic.title,
                    "unit": unit,
                    "left_out": left_out,
                    "series": [
                        {
                            "name": name,
                            "what": each.what,
                            "unit": unit,
                            "labels": json.loads(each.reading.labels),
                            "values": self._values(each, 0),
                        }
                        for name, each in zip(named, series, strict=True)
                    ],
                }
            )
        return {
            "start_s": self._starts(0),
            "length_s": self.length_s,
            "topics": topics,
            "left_out": len(self._dropped),
        }

    def since(self, first: int) -> dict[str, Any]:
        """Return the columns from a step on."""
        return {
            "start_s": self._starts(first),
            "topics": [
                {"id": topic.id, "series": [{"values": self._values(each, first)} for each in series]}
                for topic, _, series, _ in self._shown
            ],
        }

    def leading(self, steps: int) -> list[Course]:
        """Return few series of the service in the last steps: of some topics the highest, of others all."""
        first = max(0, self.size - steps)
        courses = []
        for topic in TOPICS:
            if topic.brief:
                of_topic = self._by_metric(topic, first)
                courses += sorted(of_topic, key=lambda course: -(course.newest or 0.0))[:1]
        for topic, unit, shown, _ in self._shown:
            if not topic.brief and topic.id != "machine":
                names = _names([each.reading for each in shown])
                courses += [
                    Course(name, unit, tuple(self._values(each, first)))
                    for name, each in zip(names, shown, strict=True)
                ]
        return courses

    def _by_metric(self, topic: Topic, first: int) -> list[Course]:
        """Return the service's own series of the first metric of a topic that was read, from a step on."""
        for metric in topic.metrics:
            name = topic.brief if metric is topic.metrics[0] else metric.name.replace("_", " ")
            courses = [
                Course(name, each.unit, tuple(self._values(each, first)))
                for reading, each in self._series.items()
                if (reading.source, reading.metric) == (metric.monitor, metric.name) and not each.is_of_lab
            ]
            if courses:
                return courses
        return []

    def _starts(self, first: int) -> list[float]:
        return [step * self.length_s for step in range(first, self.size)]

    def _values(self, series: _Series, first: int) -> list[float | None]:
        values = [None if math.isnan(value) else value for value in series.values[first : self.size]]
        return values + [None] * (self.size - first - len(values))

    def _learn(self, reading: Reading) -> _Series | None:
        """Return a new series; none if it is not kept. Labels may differ in every request."""
        if (
            reading.source not in SOURCES
            or reading in self._dropped
            or reading in self._without_topic
            or (len(self._series) >= MOST_KEPT and len(self._dropped) >= MOST_PASSED_OVER)
        ):
            return None
        series = _topic_of(reading)
        if series is not None and len(self._series) < MOST_KEPT:
            self._series[reading] = series
            return series
        passed_over = self._without_topic if series is None else self._dropped
        if len(passed_over) < MOST_PASSED_OVER:
            passed_over.add(reading)
        return None

    def _halve(self) -> None:
        for series in self._series.values():
            series.halve()
        self.length_s *= 2
        self._steps //= 2
        self.version += 1


def _topic_of(reading: Reading) -> _Series | None:
    """Return an empty series in the topic that a reading belongs to; none if no chart shows it."""
    ours = _OF_METRIC.get((reading.source, reading.metric))
    if ours is not None:
        topic, metric = ours
        labels = json.loads(reading.labels)
        if topic.id == "machine" and labels.get("cpu", "all") != "all":
            return None
        return _Series(topic, reading, metric.kind == "counter", metric.what)
    if reading.source != _SCRAPE or reading.metric in _OWN_OF_SCRAPE:
        return None
    labels = json.loads(reading.labels)
    meaning = meaning_of(reading.metric, labels)
    if meaning is not None:
        return _Series(_topic("pools"), reading, meaning.is_growth, f"{meaning.role}, as the service says")
    name_words = set(re.split(r"[^a-z0-9]+", reading.metric.lower()))
    for topic in TOPICS:
        if topic.words & name_words and not reading.metric.endswith("_bucket"):
            is_counter = is_accumulated(reading.metric) and reading.metric.endswith(
                ("_total", "_sum", "_count")
            )
            unit = "s" if "seconds" in name_words else "bytes" if "bytes" in name_words else ""
            return _Series(topic, reading._replace(unit=unit), is_counter, "as the service says")
    return None


def _topic(name: str) -> Topic:
    return next(topic for topic in TOPICS if topic.id == name)


def _names(readings: Sequence[Reading]) -> list[str]:
    """Return a name for each series: its metric if there are several, and the labels in which they differ.

    The number of a process is a part of the name only where all else is the same.
    """
    labels = [json.loads(reading.labels) for reading in readings]
    metrics = {reading.metric for reading in readings}
    names: list[str] = []
    for reading, own in zip(readings, labels, strict=True):
        alike = [other for other, of in zip(labels, readings, strict=True) if of.metric == reading.metric]
        differing = [
            value
            for name, value in own.items()
            if name not in _NOT_NAMED and any(other.get(name) != value for other in alike)
        ]
        parts = (
            [reading.metric.removesuffix(f"_{reading.unit}").replace("_", " ")]
            if len(metrics) > 1 or not differing
            else []
        )
        names.append(" ".join([*parts, *map(str, differing)]))
    return [
        f"{name} {own['pid']}" if names.count(name) > 1 and "pid" in own else name
        for name, own in zip(names, labels, strict=True)
    ]


def _joined(pair: Sequence[float], *, is_counter: bool) -> float:
    values = [value for value in pair if not math.isnan(value)]
    if not values:
        return NAN
    return sum(values) / len(values) if is_counter else values[-1]
