"""InfluxDB's line protocol: a line for each series and time, with times in nanoseconds.

A histogram is one line: `count`, `sum`, and a field for each bound (`le_0.01`), cumulative.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Final

from loadlens.export.tally import BOUNDS_S, Distribution, Snapshot

_KEYS: Final = str.maketrans({",": r"\,", "=": r"\=", " ": r"\ ", "\n": r"\ "})
_MEASUREMENTS: Final = str.maketrans({",": r"\,", " ": r"\ "})
_BOUNDS: Final = (*(f"le_{bound:.10g}" for bound in BOUNDS_S), "le_inf")


def lines(snapshots: Iterable[Snapshot]) -> Iterator[str]:
    """Yield lines in the order of time."""
    for snapshot in snapshots:
        for point in snapshot.points:
            tags = ",".join(f"{name.translate(_KEYS)}={_tag(value)}" for name, value in point.labels if value)
            yield (
                f"{point.family.name.translate(_MEASUREMENTS)},{tags} "
                f"{_fields(point.value, is_whole=point.family.unit.startswith('{'))} {snapshot.time_ns}\n"
            )


def _tag(value: str) -> str:
    # a backslash at the end would escape what follows
    escaped = value.translate(_KEYS)
    return f"{escaped[:-1]}/" if escaped.endswith("\\") else escaped


def _fields(value: float | Distribution, *, is_whole: bool) -> str:
    if not isinstance(value, Distribution):
        return f"value={int(value)}i" if is_whole else f"value={value!r}"
    fields = [f"count={value.count}i", f"sum={value.sum_s!r}"]
    below = 0
    for bound, count in zip(_BOUNDS, accumulate(value.explicit), strict=True):
        if count and (count != below or bound == "le_inf"):
            fields.append(f"{bound}={count}i")
        below = count
    return ",".join(fields)
