"""Output of hey 0.1.5, computed from our own requests: its summary, byte for byte, and its CSV.

A request is timed from when it took a connection or started one to its last byte. How long writing it took is
not measured: it is part of the wait for the answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from loadlens_compat.logged import Request

PERCENTS = (10, 25, 50, 75, 90, 95, 99)
BUCKETS = 10
BAR = "■"
LONGEST_BAR = 40
CSV_HEAD = "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset"


@dataclass(frozen=True, slots=True)
class Part:
    """One part of the requests, in seconds."""

    average: float
    fastest: float
    slowest: float


@dataclass(frozen=True, slots=True)
class HeyFigures:
    """Everything that hey says of a load."""

    seconds: float
    ended: int  # answered or not
    times_s: Sequence[float]  # of the answered, rising
    average_s: float
    bytes: int  # of the bodies
    connecting: Part
    waiting: Part
    reading: Part
    statuses: Counter[int]
    errors: Counter[str]


def figures_of(requests: Iterable[Request], measured_s: float) -> HeyFigures:
    """Count and measure as hey does; the load lasts until its last request has ended."""
    times: list[float] = []
    parts: tuple[list[float], ...] = ([], [], [])
    statuses: Counter[int] = Counter()
    errors: Counter[str] = Counter()
    last_ns = size = 0
    for request in requests:
        last_ns = max(last_ns, request.done_ns)
        if not request.is_answered:
            errors[request.outcome.name.lower().replace("_", " ")] += 1
            continue
        times.append(request.time_ns / 1e9)
        for values, ns in zip(parts, _parts(request), strict=True):
            values.append(ns / 1e9)
        statuses[request.status] += 1
        size += request.body_bytes
    average = sum(times) / len(times) if times else float("nan")
    times.sort()
    connecting, waiting, reading = (_part(values) for values in parts)
    return HeyFigures(
        seconds=max(measured_s, last_ns / 1e9),
        ended=len(times) + errors.total(),
        times_s=times,
        average_s=average,
        bytes=size,
        connecting=connecting,
        waiting=waiting,
        reading=reading,
        statuses=statuses,
        errors=errors,
    )


def _parts(request: Request) -> tuple[int, int, int]:
    """Connecting, waiting and reading, in nanoseconds."""
    return request.connect_ns, request.wait_ns, max(0, request.done_ns - request.first_ns)


def _part(values: list[float]) -> Part:
    if not values:
        return Part(float("nan"), 0.0, 0.0)
    return Part(sum(values) / len(values), min(values), max(values))


def text(figures: HeyFigures) -> str:
    """hey's summary."""
    times = figures.times_s
    slowest, fastest = (times[-1], times[0]) if times else (0.0, 0.0)
    lines = [
        "",
        "Summary:",
        f"  Total:\t{_number(figures.seconds)} secs",
        f"  Slowest:\t{_number(slowest)} secs",
        f"  Fastest:\t{_number(fastest)} secs",
        f"  Average:\t{_number(figures.average_s)} secs",
        f"  Requests/sec:\t{_number(figures.ended / figures.seconds if figures.seconds else float('nan'))}",
        "  ",
    ]
    if figures.bytes:
        lines += [
            f"  Total data:\t{figures.bytes} bytes",
            f"  Size/request:\t{figures.bytes // len(times)} bytes",
        ]
    lines += ["", "Response time histogram:", *_histogram(times), "", ""]
    lines += ["Latency distribution:", *_latencies(times), ""]
    lines += ["Details (average, fastest, slowest):", *_details(figures), ""]
    statuses = sorted(figures.statuses.items())
    lines += ["Status code distribution:", *(f"  [{code}]\t{n} responses" for code, n in statuses), ""]
    if figures.errors:
        lines += [
            "Error distribution:",
            *(f"  [{n}]\t{words}" for words, n in sorted(figures.errors.items())),
        ]
    else:
        lines.append("")
    return "\n".join(lines) + "\n\n"


def _number(value: float) -> str:
    """Go's %4.4f."""
    return "NaN" if value != value else f"{value:4.4f}"


def _histogram(times: Sequence[float]) -> Iterator[str]:
    """Ten equal steps from the fastest to the slowest, each with what lies in it and in none before."""
    if not times:
        return
    step = (times[-1] - times[0]) / BUCKETS
    marks = [*(times[0] + step * number for number in range(BUCKETS)), times[-1]]
    counts, at = [0] * len(marks), 0
    for time in times:
        while time > marks[at] and at < BUCKETS:
            at += 1
        counts[at] += 1
    most = max(counts)
    for mark, count in zip(marks, counts, strict=True):
        bar = BAR * ((count * LONGEST_BAR + most // 2) // most)
        yield f"  {mark:4.3f} [{count}]\t|{bar}"


def _latencies(times: Sequence[float]) -> Iterator[str]:
    """The first time at or above each percentage; with few requests some have none, and say 0."""
    if not times:
        return
    marks: list[float] = []
    for place, time in enumerate(times):
        if len(marks) < len(PERCENTS) and place * 100 // len(times) >= PERCENTS[len(marks)]:
            marks.append(time)
    for place, percent in enumerate(PERCENTS):
        if place < len(marks) and marks[place] > 0:
            yield f"  {percent}%% in {_number(marks[place])} secs"
        else:
            yield f"  0%% in {_number(0)} secs"


def _details(figures: HeyFigures) -> Iterator[str]:
    yield _detail("DNS+dialup", figures.connecting)
    yield _detail(
        "DNS-lookup", Part(0.0, 0.0, 0.0) if figures.times_s else _part([])
    )  # once, before the start
    yield "  req write:\tnot measured: it is in resp wait"
    yield _detail("resp wait", figures.waiting)
    yield _detail("resp read", figures.reading)


def _detail(name: str, part: Part) -> str:
    figures = ", ".join(f"{_number(value)} secs" for value in (part.average, part.fastest, part.slowest))
    return f"  {name}:\t{figures}"


def csv(requests: Iterable[Request]) -> Iterator[str]:
    """The lines of -o csv: answered requests in the order of their ends; how long writing took is empty."""
    yield CSV_HEAD
    for request in requests:
        if request.is_answered:
            connecting, waiting, reading = (_number(ns / 1e9) for ns in _parts(request))
            whole, offset = _number(request.time_ns / 1e9), _number(request.sent_ns / 1e9)
            yield f"{whole},{connecting},{_number(0)},,{waiting},{reading},{request.status},{offset}"
