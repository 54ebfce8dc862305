"""Numbers that have a name in a file of the kernel: `source` and `key` of a metric say which is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from loadlens.model.readings import METRICS
from loadlens.signals.collect.monitor import NO_LABELS, Row, reading

_REFAULTS: Final = "workingset_refault"  # one count until 5.8, then one of files and one of the rest

Numbers = Mapping[str, float]


def rows(monitor: str, proc: str) -> Iterator[Row]:
    """Yield the named numbers of a monitor; without a value where the kernel has none of that name."""
    read: dict[str, Numbers] = {}
    for metric in METRICS[monitor]:
        if metric.key:
            if metric.source not in read:
                read[metric.source] = _PARSERS[metric.source](lines_of(f"{proc}/{metric.source}"))
            yield reading(metric, NO_LABELS, read[metric.source].get(metric.key))


def lines_of(path: str) -> list[str]:
    """Return the lines of a file of the kernel; none where it does not offer it."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().splitlines()
    except OSError:
        return []


def _sizes(lines: list[str]) -> Numbers:
    return {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines}


def _counts(lines: list[str]) -> Numbers:
    counts = {name: int(count) for name, count in map(str.split, lines)}
    again = [count for name, count in counts.items() if name.startswith(_REFAULTS)]
    return {**counts, f"{_REFAULTS}*": sum(again)} if again else counts


def _seconds(lines: list[str]) -> Numbers:
    """Time in which some or all tasks waited for a resource."""
    return {line.split()[0]: int(line.rpartition("total=")[2]) / 1e6 for line in lines}


def _paired(lines: list[str]) -> Numbers:
    """Counters of a line of names that is followed by a line of values, by `Tcp CurrEstab`."""
    counts: dict[str, float] = {}
    for names, values in zip(lines[::2], lines[1::2], strict=False):
        group, _, rest = names.partition(":")
        for name, value in zip(rest.split(), values.partition(":")[2].split(), strict=False):
            counts[f"{group} {name}"] = int(value)
    return counts


_PARSERS: Final = {
    "meminfo": _sizes,
    "vmstat": _counts,
    **dict.fromkeys(("pressure/cpu", "pressure/io", "pressure/memory"), _seconds),
    **dict.fromkeys(("net/snmp", "net/netstat"), _paired),
}
