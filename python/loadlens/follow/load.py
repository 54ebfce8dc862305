"""The load of one trial over time: a point per second and stream, and totals, from counters and histograms.

The same columns come from the live files, look by look, and from a sealed trial at once. Counts of points add
up to the totals, and the totals to the accounting of the trial.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from loadlens.estimate import within_trial
from loadlens.estimate.interval import Interval
from loadlens.estimate.interval_counts import counts_from_histograms
from loadlens.measure.source import StepPlan, StreamPlan, streams_of
from loadlens.model.counters import Counters, GeneratorCounters, StreamCounters
from loadlens.model.result import EngineResult, StreamResult
from loadlens.model.trial import FIRST_OF_KIND, MOST_KINDS, Outcome
from loadlens.model.workload import Closed, Plan
from loadlens.present import load_text, quotes, words

if TYPE_CHECKING:
    from loadlens.measure.source import HistogramRow

POINT_S: Final = 1.0
QUANTILES: Final[Mapping[str, float]] = {"p50_s": 0.5, "p95_s": 0.95, "p99_s": 0.99}
CONFIDENCE: Final = 0.95
KINDS_SKIPPED: Final = (
    *("service", "first_byte", "last_byte", "lag", "connect", "tls"),
    *("group_response", "group_service"),
)
EDGE_S: Final = 1e-6  # that times of one moment may differ by
Row = StreamCounters | GeneratorCounters
COUNTS: Final = (  # of a stream, as trial.json has them
    *("due", "issued", "dropped", "waiting", "answered", "ok"),
    *("unexpected_status", "check_failed", "failed", "in_flight"),
)
BAD_ANSWERS: Final = ("unexpected_status", "check_failed")


def fewest(p: float) -> int:
    """Return the requests from which on a quantile has an interval that is closed on its far side."""
    return math.ceil(math.log((1 - CONFIDENCE) / 2) / math.log(max(p, 1 - p)))


NEEDS: Final[Mapping[str, int]] = {name: fewest(p) for name, p in QUANTILES.items()}


@dataclass(slots=True)
class Columns:
    """Values by name, one for each point."""

    values: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))

    def add(self, **point: Any) -> None:
        """Append a value to each column."""
        for name, value in point.items():
            self.values[name].append(value)

    def since(self, first: int) -> dict[str, list[Any]]:
        """Return the columns from a point on."""
        return {name: values[first:] for name, values in self.values.items()}


@dataclass(slots=True)
class _Failure:
    """Failures of one kind in one stream."""

    count: int = 0
    first_s: float = math.inf
    last_s: float = -math.inf
    samples: list[dict[str, Any]] = field(default_factory=list)


@dataclass(slots=True)
class _Stream:
    """One stream: columns, totals, and what the open point holds so far."""

    plan: StreamPlan
    words: str
    changes: str  # what of it can be changed while it runs
    columns: Columns = field(default_factory=Columns)
    failure_columns: dict[str, list[int]] = field(default_factory=dict)
    totals: Counter[str] = field(default_factory=Counter)
    failed_by: Counter[str] = field(default_factory=Counter)
    status: Counter[str] = field(default_factory=Counter)
    failures: dict[str, _Failure] = field(default_factory=dict)
    in_flight: int = 0
    waiting: int = 0
    rows: list[StreamCounters] = field(default_factory=list)  # of the open point

    def take(self, row: StreamCounters) -> None:
        """Count an interval."""
        self.rows.append(row)
        for name in ("due", "issued", "dropped", "answered", "ok", *BAD_ANSWERS):
            self.totals[name] += getattr(row, name)
        self.failed_by.update(row.failed)
        self.status.update(row.status)
        self.in_flight, self.waiting = row.in_flight, row.waiting
        bad = {**row.failed, **{name: getattr(row, name) for name in BAD_ANSWERS}}
        for kind, count in bad.items():
            if count:
                failure = self.failures.setdefault(kind, _Failure())
                failure.count += count
                failure.first_s = min(failure.first_s, row.start_s)
                failure.last_s = max(failure.last_s, row.end_s)

    def close(self, length_s: float, histograms: Sequence[HistogramRow], number: int) -> None:
        """End the open point.

        Args:
            length_s: Of the point.
            histograms: Response times of the stream in it.
            number: Points before it.
        """
        rows, self.rows = self.rows, []
        failed: Counter[str] = Counter()
        for row in rows:
            failed.update(row.failed)
        bad = sum(row.unexpected_status + row.check_failed for row in rows) + failed.total()
        self.columns.add(
            due_per_s=sum(row.due for row in rows) / length_s,
            sent_per_s=sum(row.issued for row in rows) / length_s,
            answered_per_s=sum(row.answered for row in rows) / length_s,
            ok_per_s=sum(row.ok for row in rows) / length_s,
            bad_per_s=bad / length_s,
            in_flight=sum(row.in_flight_integral_s for row in rows) / length_s,
            **_response_times(histograms),
        )
        kinds = dict(failed)
        for name in BAD_ANSWERS:
            if count := sum(getattr(row, name) for row in rows):
                kinds[name] = count
        for kind in kinds:
            self.failure_columns.setdefault(kind, [0] * number)
        for kind, column in self.failure_columns.items():
            column.append(kinds.get(kind, 0))

    def count(self, result: EngineResult | None) -> dict[str, Any]:
        """Return the totals: those of the result once there is one, else the sums of the intervals."""
        sealed = _result_of(result, self.plan.name)
        if sealed is not None:
            counts = sealed.requests
            totals = {name: getattr(counts, name) for name in COUNTS}
            law, holds = sealed.law, sealed.law_holds
        else:
            totals = {name: self.totals[name] for name in ("due", "issued", "dropped", "answered", "ok")}
            totals |= {name: self.totals[name] for name in BAD_ANSWERS}
            totals |= {"waiting": self.waiting, "failed": self.failed_by.total()}
            totals["in_flight"] = self.in_flight
            law, holds = _law(totals)
        return {
            **totals,
            "failed_by": dict(self.failed_by),
            "status": dict(self.status),
            "law": law,
            "holds": holds,
        }


class Intervals:
    """Rows of counters by interval, as they come; the last line of an interval is that of the generator."""

    def __init__(self) -> None:
        self._torn: dict[float, list[Row]] = defaultdict(list)  # by start

    def whole(self, counters: Counters, *, is_end: bool = False) -> Iterator[list[Row]]:
        """Yield the rows of each interval that is whole now, or of all at the end, in order of time."""
        for row in counters.intervals:
            self._torn[row.start_s].append(row)
        for start_s, rows in sorted(self._torn.items()):
            if not is_end and not any(isinstance(row, GeneratorCounters) for row in rows):
                return
            del self._torn[start_s]
            yield rows


class LoadOverTime:
    """Columns of all streams of a trial, which grow by `take`."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.axis = Columns()
        self.generator = Columns()
        self.result: EngineResult | None = None
        self._streams = {
            stream.name: _Stream(
                stream,
                load_text.size(planned.workload),
                "users" if isinstance(planned.workload, Closed) else "rate_per_s",
            )
            for stream, planned in zip(streams_of(plan), plan.streams, strict=True)
        }
        self._by_tag = {stream.plan.tag: stream for stream in self._streams.values()}
        self._samples: Counter[tuple[str, str, int, int]] = Counter()
        self._open_s = 0.0  # length of the open point
        self._start_s = 0.0
        self._phase = ""
        self._own: list[GeneratorCounters] = []  # of the open point
        self._intervals = Intervals()
        self._histograms: list[HistogramRow] = []  # that belong to no point yet

    @property
    def skipped(self) -> list[tuple[str, str]]:
        """(stream, kind) of histograms that no column needs."""
        return [(tag, kind) for tag in self._by_tag for kind in KINDS_SKIPPED]

    @property
    def names(self) -> list[str]:
        """Names of the streams that are the load; the others are probes."""
        return [name for name, stream in self._streams.items() if not stream.plan.is_probe]

    @property
    def size(self) -> int:
        """Number of points."""
        return len(self.axis.values["start_s"])

    @property
    def has_failures(self) -> bool:
        """True if a request did not end as expected."""
        return any(stream.failures for stream in self._streams.values())

    @property
    def elapsed_s(self) -> float:
        """End of the last interval."""
        return self._start_s + self._open_s

    @property
    def phase(self) -> str:
        """Phase of the last interval."""
        return self._phase

    def take(self, counters: Counters, histograms: Iterable[HistogramRow], *, is_end: bool = False) -> None:
        """Learn what was counted in further intervals.

        Args:
            counters: Rows of all streams and of the generator, in order.
            histograms: Of the same intervals; those of a later one are kept for later.
            is_end: No more will come: the open point is closed.
        """
        self._histograms += [row for row in histograms if row.kind == "response"]
        for rows in self._intervals.whole(counters, is_end=is_end):
            first = rows[0]
            if self._open_s and (first.phase != self._phase or self._open_s >= POINT_S - EDGE_S):
                self._close()
            if not self._open_s:
                self._start_s, self._phase = first.start_s, first.phase
            self._open_s = first.end_s - self._start_s
            for row in rows:
                if isinstance(row, GeneratorCounters):
                    self._own.append(row)
                elif (stream := self._streams.get(row.stream)) is not None:
                    stream.take(row)
        if self._open_s and (is_end or self._open_s >= POINT_S - EDGE_S):
            self._close()

    def _close(self) -> None:
        end_s, number = self._start_s + self._open_s, self.size
        inside = [row for row in self._histograms if row.start_s < end_s - EDGE_S]
        self._histograms = [row for row in self._histograms if row.start_s >= end_s - EDGE_S]
        self.axis.add(start_s=self._start_s, length_s=self._open_s, phase=self._phase)
        for tag, stream in self._by_tag.items():
            stream.close(self._open_s, [row for row in inside if row.stream == tag], number)
        self.generator.add(
            busy=_busiest(self._own, self._open_s),
            lag_p99_s=max((row.lag_p99_s for row in self._own if row.lag_p99_s is not None), default=None),
            stalled_s=max((stall for row in self._own for stall in row.stalled_s), default=None),
        )
        self._own, self._start_s, self._open_s = [], end_s, 0.0

    def take_bad(self, rows: np.ndarray[Any, Any]) -> None:
        """Keep the first requests of each kind of failure, status and step."""
        streams = list(self._streams.values())
        for row in rows:
            outcome, number = int(row["outcome"]), int(row["stream"])
            if outcome >= Outcome.IN_FLIGHT or number >= len(streams):
                continue
            kind, stream = Outcome(outcome).name.lower(), streams[number]
            key = (stream.plan.name, kind, int(row["status"]), int(row["step"]))
            is_new = key not in self._samples
            if self._samples[key] >= FIRST_OF_KIND or (is_new and len(self._samples) >= MOST_KINDS):
                continue
            self._samples[key] += 1
            step = _step(stream.plan, int(row["step"]))
            connection = int(row["connection"])
            stream.failures.setdefault(kind, _Failure()).samples.append(
                {
                    "at_s": int(row["done_ns"]) / 1e9,
                    "step": step.name,
                    "request": step.request,
                    "status": int(row["status"]) or None,
                    "user": int(row["user"]),
                    "connection": None if connection == 0xFFFFFFFF else connection,
                    "words": None,
                }
            )

    def whole(self, first: int = 0) -> dict[str, Any]:
        """Return the columns from a point on, and everything about the streams."""
        return {
            "points": self.axis.since(first),
            "streams": [
                {
                    "name": stream.plan.name,
                    "role": "probe" if stream.plan.is_probe else "load",
                    "load": stream.words,
                    "changes": stream.changes,
                    "steps": [{"name": step.name, "request": step.request} for step in stream.plan.steps],
                    **self._stream_since(stream, first),
                }
                for stream in self._streams.values()
            ],
            "generator": {
                "threads": self.plan.threads,
                **self.generator.since(first),
            },
            "needs": dict(NEEDS),
            "failures": self.failures(),
        }

    def since(self, first: int) -> dict[str, Any]:
        """Return the columns from a point on, with totals and failures."""
        return {
            "points": self.axis.since(first),
            "streams": [self._stream_since(stream, first) for stream in self._streams.values()],
            "generator": self.generator.since(first),
            "failures": self.failures(),
        }

    def _stream_since(self, stream: _Stream, first: int) -> dict[str, Any]:
        return {
            "name": stream.plan.name,
            **stream.columns.since(first),
            "failures": {kind: column[first:] for kind, column in stream.failure_columns.items()},
            "totals": stream.count(self.result),
        }

    def failures(self) -> list[dict[str, Any]]:
        """Return each kind of failure of each stream with samples, the most frequent first."""
        kinds = [
            {
                "stream": stream.plan.name,
                "kind": kind,
                "words": words.OUTCOMES[Outcome[kind.upper()]],
                "count": failure.count,
                "first_s": failure.first_s,
                "last_s": failure.last_s,
                "samples": [*failure.samples, *self._answers(stream.plan.name, kind)],
            }
            for stream in self._streams.values()
            for kind, failure in stream.failures.items()
            if failure.count
        ]
        return sorted(kinds, key=lambda kind: -kind["count"])

    def _answers(self, name: str, kind: str) -> list[dict[str, Any]]:
        """Return messages of failures and beginnings of answers, which a trial has once it is sealed."""
        stream = _result_of(self.result, name)
        if stream is None:
            return []
        nothing: dict[str, Any] = {"at_s": None, "step": None, "request": None, "status": None, "user": None}
        nothing["connection"] = None
        error = stream.errors.get(kind)
        samples = [] if error is None else [{**nothing, "words": words.plain(text)} for text in error.samples]
        if kind in BAD_ANSWERS:
            samples += [
                {**nothing, "at_s": answer.at_s, "step": answer.step, "status": answer.status}
                | {"words": quotes.quote(answer.body) or words.plain(answer.head.splitlines()[0])}
                for answer in stream.failing_answers
                if answer.head
            ]
        return samples


def _response_times(histograms: Sequence[HistogramRow]) -> dict[str, Any]:
    """Return requests and quantiles of a point, by the calculator of every other medium."""
    observed, censored = (
        [
            (0, row.values.astype(np.int64), row.counts.astype(np.int64))
            for row in histograms
            if row.klass == name
        ]
        for name in ("ok", "censored")
    )
    if not observed and not censored:
        return {"count": 0, **dict.fromkeys(QUANTILES)}
    counts = counts_from_histograms(1, observed, censored)
    number = counts.observed + counts.censored
    times: dict[str, Any] = {"count": number}
    for name, p in QUANTILES.items():
        estimate = within_trial.quantile(counts, p) if number >= NEEDS[name] else None
        times[name] = estimate.point if isinstance(estimate, Interval) else None
    return times


def _busiest(rows: Sequence[GeneratorCounters], length_s: float) -> float | None:
    """Return the busy share of the busiest thread of a point."""
    threads = max((len(row.busy) for row in rows), default=0)
    shares = [
        sum(row.busy[thread] * row.length_s for row in rows if thread < len(row.busy)) / length_s
        for thread in range(threads)
    ]
    return max(shares, default=None)


def _law(totals: Mapping[str, int]) -> tuple[str, bool]:
    """Return the law of counting in words, and whether it holds."""
    due, issued, dropped, waiting = (totals[name] for name in ("due", "issued", "dropped", "waiting"))
    answered, failed, in_flight = (totals[name] for name in ("answered", "failed", "in_flight"))
    text = (
        f"due {due:,} = issued {issued:,} + dropped {dropped:,} + waiting {waiting:,}; "
        f"issued {issued:,} = answered {answered:,} + failed {failed:,} + in flight {in_flight:,}"
    )
    return text, due == issued + dropped + waiting and issued == answered + failed + in_flight


def _result_of(result: EngineResult | None, name: str) -> StreamResult | None:
    streams = () if result is None else result.streams
    return next((stream for stream in streams if stream.name == name), None)


def _step(stream: StreamPlan, index: int) -> StepPlan:
    return stream.steps[index] if index < len(stream.steps) else StepPlan(index, "", "", "")
