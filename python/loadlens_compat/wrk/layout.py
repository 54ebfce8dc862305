"""Output of wrk 4.1, character for character: its table, percentiles and counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

SWITCHES_AT: Final = 0.85  # from this share of the next unit on a value has that unit
_METRIC: Final = ("", "k", "M", "G", "T")
_BINARY: Final = ("", "K", "M", "G", "T")
_MICROSECONDS: Final = ("us", "ms")
_SECONDS: Final = ("s", "m")
# Classes of failures by the word that wrk has for them; whatever else failed was read and was no answer.
_CONNECT: Final = (
    "resolve",
    "refused",
    "connect_failed",
    "tls",
    "own_descriptors",
    "own_ports",
    "own_memory",
)
_TIMEOUT: Final = ("timeout", "connect_timeout", "tls_timeout")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table."""

    mean: float
    stdev: float
    max: float
    within_stdev: float | None  # percent; none: there were no values

    @classmethod
    def of(cls, figures: Mapping[str, Any]) -> Self:
        """From the engine's figures."""
        return cls(figures["mean"], figures["stdev"], figures["max"], figures["within_stdev"])


@dataclass(frozen=True, slots=True)
class WrkFigures:
    """All figures that wrk reports of a load; times in microseconds."""

    latency: Line
    rate: Line  # of a thread, answers per second
    percentiles: Sequence[tuple[float, int]]
    duration_us: int
    requests: int  # answers within the measured part, whatever their status
    bytes: int
    connect: int
    read: int
    timeout: int
    status: int  # answers with a status above 399

    def summary(self) -> dict[str, Any]:
        """Return the summary passed to a script's `done`."""
        return {
            "duration_us": self.duration_us,
            "requests": self.requests,
            "bytes": self.bytes,
            "errors": {
                "connect": self.connect,
                "read": self.read,
                "write": 0,
                "status": self.status,
                "timeout": self.timeout,
            },
        }


def figures_of(result: Mapping[str, Any], report: Mapping[str, Any]) -> WrkFigures:
    """The figures of a load.

    Args:
        result: The result of the engine.
        report: Latencies, rates and answers, as the engine's script gives them.
    """
    stream = result["streams"][0]
    failed = {name: block["count"] for name, block in stream["errors"].items()}
    connect = sum(failed.get(name, 0) for name in _CONNECT)
    timeout = sum(failed.get(name, 0) for name in _TIMEOUT)
    return WrkFigures(
        latency=Line.of(report["latency"]),
        rate=Line.of(report["requests"]),
        percentiles=[(percent, micros) for percent, micros in report["percentiles"]],
        duration_us=round(1e6 * result["measured_s"]),
        requests=report["latency"]["count"],
        bytes=report["bytes"],
        connect=connect,
        read=sum(failed.values()) - connect - timeout,
        timeout=timeout,
        status=report["statuses_above_399"],
    )


def head(url: str, *, duration_s: int, threads: int, connections: int) -> list[str]:
    """Return the lines shown while the load runs."""
    return [
        f"Running {seconds(duration_s, 0)} test @ {url}",
        f"  {threads} threads and {connections} connections",
    ]


def text(figures: WrkFigures, *, percentiles: bool) -> Iterator[str]:
    """The lines behind the head."""
    yield f"  Thread Stats{'Avg':>6}{'Stdev':>11}{'Max':>8}{'+/- Stdev':>12}"
    yield _row("Latency", figures.latency, microseconds)
    yield _row("Req/Sec", figures.rate, metric)
    if percentiles:
        yield "  Latency Distribution"
        for percent, micros in figures.percentiles:
            yield f"{percent:7.0f}%{_cell(microseconds(micros), 10)}"
    took = microseconds(figures.duration_us)
    yield f"  {figures.requests} requests in {took}, {binary(figures.bytes)}B read"
    if figures.connect or figures.read or figures.timeout:
        yield (
            f"  Socket errors: connect {figures.connect}, read {figures.read}, write 0, "
            f"timeout {figures.timeout}"
        )
    if figures.status:
        yield f"  Non-2xx or 3xx responses: {figures.status}"
    duration_s = figures.duration_us / 1e6
    per_second = figures.requests / duration_s if duration_s else 0.0
    bytes_per_s = figures.bytes / duration_s if duration_s else 0.0
    yield f"Requests/sec: {per_second:9.2f}"
    yield f"Transfer/sec: {binary(bytes_per_s):>10}B"


def _row(name: str, line: Line, shown: Callable[[float], str]) -> str:
    cells = _cell(shown(line.mean), 8) + _cell(shown(line.stdev), 10) + _cell(shown(line.max), 9)
    within = "-nan" if line.within_stdev is None else f"{line.within_stdev:.2f}"
    return f"    {name:<10}{cells}{within:>8}%"


def _cell(value: str, width: int) -> str:
    """Right-aligned so that numbers end at one column: what a unit lacks in letters are blanks behind it."""
    pad = 2 - value[-1].isalpha() - value[-2].isalpha()
    width -= pad
    return f"{value[:width]:>{width}}{' ' * pad}"


def microseconds(value: float) -> str:
    """`635.91us`, `0.89ms`, `1.00m`: of microseconds."""
    return seconds(value / 1e6, 2) if value >= 1e6 else _with_unit(value, _MICROSECONDS, 1000, 2)


def seconds(value: float, places: int) -> str:
    """`30s`, `1m`: of seconds."""
    return _with_unit(value, _SECONDS, 60, places)


def metric(value: float) -> str:
    """`56.20k`."""
    return _with_unit(value, _METRIC, 1000, 2)


def binary(value: float) -> str:
    """`17.76G`: of bytes."""
    return _with_unit(value, _BINARY, 1024, 2)


def _with_unit(value: float, units: Sequence[str], scale: int, places: int) -> str:
    at = 0
    while at + 1 < len(units) and value >= SWITCHES_AT * scale:
        value /= scale
        at += 1
    return f"{value:.{places}f}{units[at]}"
