"""Prometheus: names and labels of its data model, the text format, and remote write.

Remote write is protobuf in a Snappy block. Both are written out here, because a handful of fields and blocks
without compression need less code than the packages that could do it.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Final

from loadlens.export.tally import BOUNDS_S, SCALE, Distribution, Family, Labels, Snapshot

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
REMOTE_WRITE_HEADERS: Final = {
    "Content-Type": "application/x-protobuf",
    "Content-Encoding": "snappy",
    "X-Prometheus-Remote-Write-Version": "0.1.0",
}
_UNITS: Final = {"s": "_seconds", "By": "_bytes", "1": "_ratio"}
_JOB: Final = ("job", "loadlens")
_BOUNDS: Final = tuple(f"{bound:.10g}" for bound in BOUNDS_S)


def name_of(family: Family) -> str:
    """Return the name that OpenTelemetry's rules give a metric in Prometheus."""
    unit = _UNITS.get(family.unit, "")
    total = "_total" if family.kind == "counter" else ""
    return _identifier(family.name) + unit + total


def _identifier(name: str) -> str:
    return re.sub(r"\W", "_", name, flags=re.ASCII)


def _named(labels: Labels, *more: tuple[str, str]) -> list[tuple[str, str]]:
    """Return labels, each name once; a taken one of a reading begins with `exported_`, as in a scrape."""
    named = dict(more)
    for name, value in labels:
        key = _identifier(name)
        named["exported_" + key if key in named else key] = value
    return sorted(named.items())


# --- text format -------------------------------------------------------------------------------------


def as_text(snapshots: Iterable[Snapshot]) -> str:
    """Return the newest value of every series in the text format, version 0.0.4."""
    newest = {
        (point.family, point.labels): point.value for snapshot in snapshots for point in snapshot.points
    }
    by_family: dict[Family, list[str]] = {}
    for (family, labels), value in newest.items():
        lines = by_family.setdefault(family, [])
        name = name_of(family)
        if not isinstance(value, Distribution):
            lines.append(f"{name}{_braced(_named(labels))} {_number(value)}")
            continue
        for bound, count in zip((*_BOUNDS, "+Inf"), accumulate(value.explicit), strict=True):
            lines.append(f"{name}_bucket{_braced(_named(labels, ('le', bound)))} {count}")
        lines.append(f"{name}_sum{_braced(_named(labels))} {_number(value.sum_s)}")
        lines.append(f"{name}_count{_braced(_named(labels))} {value.count}")
    text = []
    for family, lines in by_family.items():
        text += [f"# HELP {name_of(family)} {family.what}", f"# TYPE {name_of(family)} {family.kind}", *lines]
    return "".join(f"{line}\n" for line in text)


def _braced(labels: Iterable[tuple[str, str]]) -> str:
    escaped = (f'{name}="{value.translate(_ESCAPES)}"' for name, value in labels)
    return "{" + ",".join(escaped) + "}"


_ESCAPES: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


def _number(value: float) -> str:
    return repr(value) if math.isfinite(value) else "NaN"


# --- remote write ------------------------------------------------------------------------------------

Series = dict[tuple[tuple[str, str], ...], list[bytes]]  # labels -> encoded samples or histograms


class RemoteWrite:
    """Encodes snapshots of a run, in order, as bodies of remote write requests.

    A series that appears is given a 0 at the time of the snapshot before: Prometheus otherwise takes its
    first value as the beginning, and `increase` would miss it. What is encoded again, since it did not
    arrive, gets the same.
    """

    def __init__(self) -> None:
        self._first: dict[tuple[tuple[str, str], ...], int] = {}  # time at which a series appeared, as sent
        # by start of a trial: time of a snapshot -> as it is sent
        self._times: dict[int, dict[int, int]] = {}

    def requests(self, snapshots: Iterable[Snapshot]) -> Iterator[tuple[bytes, bytes]]:
        """Yield pairs of bodies: the classic series; and native histograms, maybe none."""
        classic: Series = {}
        native: Series = {}
        for snapshot in snapshots:
            time_ns = self._time_of(snapshot)
            earlier_ns = (each for each in self._times[snapshot.start_ns].values() if each < time_ns)
            self._add(snapshot, time_ns, max(earlier_ns, default=snapshot.start_ns), classic, native)
            if sum(map(len, classic.values())) > _MOST_SAMPLES:
                yield _written(classic, 2), _written(native, 4)
                classic, native = {}, {}
        if classic:
            yield _written(classic, 2), _written(native, 4)

    def _time_of(self, snapshot: Snapshot) -> int:
        """Return a time in a later millisecond than all before: Prometheus keeps the first value of each."""
        times = self._times.setdefault(snapshot.start_ns, {})
        if snapshot.time_ns not in times:
            later_ns = (max(times.values(), default=0) // _MS + 1) * _MS
            times[snapshot.time_ns] = max(snapshot.time_ns, later_ns)
        return times[snapshot.time_ns]

    def _add(self, snapshot: Snapshot, time_ns: int, before_ns: int, classic: Series, native: Series) -> None:
        def add(name: str, labels: Labels, value: float, *more: tuple[str, str], from_0: bool = True) -> None:
            key = tuple(_named(labels, ("__name__", name), _JOB, *more))
            samples = classic.setdefault(key, [])
            if self._first.setdefault(key, time_ns) == time_ns and from_0:
                samples.append(_sample(0.0, before_ns))
            samples.append(_sample(value, time_ns))

        for point in snapshot.points:
            name, value = name_of(point.family), point.value
            if not isinstance(value, Distribution):
                add(name, point.labels, value, from_0=point.family.kind == "counter")
                continue
            for bound, count in zip((*_BOUNDS, "+Inf"), accumulate(value.explicit), strict=True):
                add(f"{name}_bucket", point.labels, count, ("le", bound))
            add(f"{name}_sum", point.labels, value.sum_s)
            add(f"{name}_count", point.labels, value.count)
            key = tuple(_named(point.labels, ("__name__", name), _JOB))
            histograms = native.setdefault(key, [])
            if self._first.setdefault(key, time_ns) == time_ns:
                histograms.append(_histogram(Distribution(), before_ns))
            histograms.append(_histogram(value, time_ns))


_MS: Final = 1_000_000  # ns
_MOST_SAMPLES: Final = 20_000  # of a request: about 400 kB


def _written(series: Mapping[tuple[tuple[str, str], ...], list[bytes]], field: int) -> bytes:
    """Return a WriteRequest (prometheus/prompb/remote.proto) in a Snappy block; empty without series."""
    message = bytearray()
    for labels, values in series.items():
        pairs = (_part(1, name.encode()) + _part(2, value.encode()) for name, value in labels)
        body = b"".join(_part(1, pair) for pair in pairs) + b"".join(_part(field, value) for value in values)
        message += _part(1, body)
    return snappy(bytes(message)) if series else b""


def snappy(content: bytes) -> bytes:
    """Return a Snappy block without compression: its length, then literals of 64 KiB."""
    parts = [_varint(len(content))]
    for start in range(0, len(content), 1 << 16):
        literal = content[start : start + (1 << 16)]
        parts += [b"\xf4", struct.pack("<H", len(literal) - 1), literal]
    return b"".join(parts)


def _sample(value: float, time_ns: int) -> bytes:
    return b"\x09" + struct.pack("<d", value) + b"\x10" + _varint(time_ns // 1_000_000)


def _histogram(value: Distribution, time_ns: int) -> bytes:
    """Return a native histogram: spans of neighbouring buckets, and counts as differences."""
    spans, deltas = bytearray(), bytearray()
    length, end, count = 0, 0, 0
    starts: list[tuple[int, int]] = []  # offset from the end of the span before, and length
    for place in sorted(value.exponential):
        bucket = place + 1  # Prometheus numbers a bucket by its upper bound
        if starts and bucket == end:
            length += 1
            starts[-1] = (starts[-1][0], length)
        else:
            length = 1
            starts.append((bucket - end, length))
        end = bucket + 1
        deltas += _varint(_zigzag(value.exponential[place] - count))
        count = value.exponential[place]
    for offset, length in starts:
        spans += _part(11, b"\x08" + _varint(_zigzag(offset)) + b"\x10" + _varint(length))
    return (
        b"\x08" + _varint(value.count)
        + b"\x19" + struct.pack("<d", value.sum_s)
        + b"\x20" + _varint(_zigzag(SCALE))
        + b"\x29" + struct.pack("<d", 1e-10)  # the zero bucket ends here: below a clock's tick
        + b"\x30" + _varint(value.zero)
        + bytes(spans)
        + _part(12, bytes(deltas))
        + b"\x78" + _varint(time_ns // 1_000_000)
    )  # fmt: skip


def _part(field: int, content: bytes) -> bytes:
    """Return a field of protobuf with a length."""
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)


def _zigzag(number: int) -> int:
    return number << 1 if number >= 0 else (-number << 1) - 1
