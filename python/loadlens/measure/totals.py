"""What a load came to as a whole: how long it took, how many answers came, how many bytes with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from loadlens.estimate.interval import Interval
from loadlens.measure.case import CaseMeasures
from loadlens.measure.source import Json
from loadlens.model.finding import Figure, NotMeasured

UNITS: Final[Mapping[str, str]] = {
    "load.elapsed": "s",
    "load.answers": "requests",
    "load.time_per_answer": "s",
    "load.received_bytes": "bytes",
    "load.received_rate": "bytes/s",
}
_OF_BYTES = ("load.received_bytes", "load.received_rate")
_ANSWERED = ("ok", "unexpected_status", "check_failed")


def figure_of(case: CaseMeasures, metric: str) -> Figure:
    """One of `UNITS` over the trials of a case, from the engine's own count of the load."""
    engines = [trial.source.engine for trial in case.usable if trial.source.engine]
    if not engines:
        return NotMeasured(metric, case.why_nothing())
    if any(float(engine.get("warmup_s") or 0.0) for engine in engines):
        return NotMeasured(metric, "it is counted over the whole load, which has a warm-up")
    found = list(_values(engines, metric))
    if len(found) < len(engines):
        if case.teller is not None and case.teller.stream["bytes"]["in_wire"] is None:
            return case.teller.not_told(metric, "how many bytes came, heads included")
        return NotMeasured(metric, "no answer came")
    counts = [_answers(engine) for engine in engines]
    intervals = [
        Interval(value, None, None, float(count), "count of a trial")
        for value, count in zip(found, counts, strict=True)
    ]
    return case.figure(metric, UNITS[metric], intervals, counts)


def _values(engines: list[Json], metric: str) -> Iterator[float]:
    for engine in engines:
        answers, elapsed_s = _answers(engine), float(engine["measured_s"])
        received = _load(engine)["bytes"]["in_wire"]
        if not answers or not elapsed_s or (received is None and metric in _OF_BYTES):
            continue
        yield {
            "load.elapsed": elapsed_s,
            "load.answers": float(answers),
            "load.time_per_answer": elapsed_s / answers,
            "load.received_bytes": float(received or 0),
            "load.received_rate": float(received or 0) / elapsed_s,
        }[metric]


def _answers(engine: Json) -> int:
    requests = _load(engine)["requests"]
    if any(requests[kind] is None for kind in _ANSWERED):
        return int(requests["answered"])  # another program, which does not say which of them were as expected
    return sum(int(requests[kind]) for kind in _ANSWERED)


def _load(engine: Json) -> Json:
    stream: Json = next(stream for stream in engine["streams"] if stream["role"] == "load")
    return stream
