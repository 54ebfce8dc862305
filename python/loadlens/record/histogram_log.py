"""Interval histograms: an HDR histogram log, version 1.3, read by the engine's own decoder."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadlens.errors import RecordError
from loadlens.record import disk, layout

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, slots=True)
class IntervalHistogram:
    """Counts of the values seen in one interval."""

    start_s: float  # since the trial began
    length_s: float
    stream: str
    step: str  # empty: the whole stream
    klass: str  # ok, unexpected_status, check_failed, failed, censored; empty for lag, connect and tls
    kind: str  # response, service, first_byte, last_byte, lag, connect, tls
    values: np.ndarray[Any, np.dtype[np.uint64]]  # upper ends of the buckets with a count, ns, rising
    counts: np.ndarray[Any, np.dtype[np.uint64]]


def read(
    path: Path, but: Collection[tuple[str, str]] = (), edges_s: Sequence[float] = ()
) -> list[IntervalHistogram]:
    """Read all histograms of a log in order, without a torn last line; raise RecordError for a damaged line.

    Args:
        path: The log.
        but: (stream, kind) of histograms to leave out; they are not decoded.
        edges_s: Add up the histograms between two of these times, and leave out those before and after all;
            none: every histogram as it was written.
    """
    import numpy as np

    from loadlens.engine import compiled

    with disk.touching("read", path):
        _refuse_newer(path)
        try:
            asked = [list(edges_s)] if len(edges_s) else []
            lines = compiled.read_intervals(str(path), list(but), *asked)
        except ValueError as fault:
            where, _, what = str(fault).rpartition(": ")
            raise RecordError(f"damaged: {what}", where=where) from fault
    histograms = []
    for start_s, length_s, tag, values, counts in lines:
        parts = tag.split(".")
        if len(parts) != 4:
            raise RecordError(
                f"damaged: a tag stream.step.class.kind is expected, got {tag!r}", where=str(path)
            )
        stream, step, klass, kind = parts
        histograms.append(
            IntervalHistogram(
                start_s,
                length_s,
                stream,
                step,
                klass,
                kind,
                np.frombuffer(values, dtype="<u8"),
                np.frombuffer(counts, dtype="<u8"),
            )
        )
    return histograms


def _refuse_newer(path: Path) -> None:
    with path.open("rb") as file:
        for raw in file:
            if not raw.startswith(b"#") or not raw.endswith(b"\n"):
                return
            line = raw.decode("utf-8", "replace").rstrip("\n")
            if line.startswith("#[Loadlens schema_version:"):
                version = line.partition(":")[2].strip(" ]")
                layout.refuse_newer(int(version) if version.isdecimal() else version, path)
