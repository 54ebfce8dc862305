"""Totals of a load: its duration, its answers and their bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from loadlens.estimate.interval import Interval
from loadlens.measure.case import CaseMeasures
from loadlens.model.finding import Figure, NotMeasured
from loadlens.model.result import EngineResult

UNITS: Final[Mapping[str, str]] = {
    "load.elapsed": "s",
    "load.answers": "requests",
    "load.time_per_answer": "s",
    "load.received_bytes": "bytes",
    "load.received_rate": "bytes/s",
}
_OF_BYTES = ("load.received_bytes", "load.received_rate")


def figure_of(case: CaseMeasures, metric: str) -> Figure:
    """One of `UNITS` over the trials of a case, from the engine's own count of the load."""
    results = [trial.source.result for trial in case.usable if trial.source.result is not None]
    if not results:
        return NotMeasured(metric, case.why_nothing())
    if any(result.warmup_s for result in results):
        return NotMeasured(metric, "it is counted over the whole load, which has a warm-up")
    values = list(_values(results, metric))
    if len(values) < len(results):
        if case.external is not None and case.external.load.bytes.in_wire is None:
            return case.external.not_reported(metric, "how many bytes came, heads included")
        return NotMeasured(metric, "no answer came")
    counts = [_answers(result) for result in results]
    intervals = [
        Interval(value, None, None, float(count), "count of a trial")
        for value, count in zip(values, counts, strict=True)
    ]
    return case.figure(metric, UNITS[metric], intervals, counts)


def _values(results: Iterable[EngineResult], metric: str) -> Iterator[float]:
    for result in results:
        answers, elapsed_s = _answers(result), result.measured_s
        load = result.external or result.load
        received = None if load is None else load.bytes.in_wire
        if not answers or not elapsed_s or (received is None and metric in _OF_BYTES):
            continue
        yield {
            "load.elapsed": elapsed_s,
            "load.answers": float(answers),
            "load.time_per_answer": elapsed_s / answers,
            "load.received_bytes": float(received or 0),
            "load.received_rate": float(received or 0) / elapsed_s,
        }[metric]


def _answers(result: EngineResult) -> int:
    if result.external is not None:
        return result.external.requests.answered
    counts = None if result.load is None else result.load.requests
    return 0 if counts is None else counts.ok + counts.unexpected_status + counts.check_failed
