"""Memory of the services in a trial: pages that came from storage, and their share of the machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loadlens.model.readings import HostMetrics, ProcMetrics
from loadlens.signals.read.resources import Process
from loadlens.signals.read.trial_series import Readings, Series, added


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """The measured part."""

    faults: float | None  # pages per second from storage, of all processes of the services
    halves: tuple[float, float] | None  # faults in the first half and in the second
    held: float | None  # resident memory of the services over the machine's memory


def read(readings: Readings, begin: float, end: float, processes: Sequence[Process]) -> Memory | None:
    """Return memory in the measured part [begin, end], seconds since t0; none if no service was watched."""
    if not processes:
        return None
    counters = [process.series.get(ProcMetrics.major_faults) for process in processes]
    counted = [counter for counter in counters if counter is not None]
    faults = added(counted) if len(counted) == len(counters) else None
    part = None if faults is None else faults.between(begin, end)
    is_rate = part is not None and part.values.size > 1
    sizes = [_size(process) for process in processes]
    held = [size for size in sizes if size is not None]
    machine = readings.one(HostMetrics.memory_total_bytes)
    return Memory(
        faults=float(part.values[-1] - part.values[0]) / (end - begin)
        if part is not None and is_rate
        else None,
        halves=None if part is None else _halves(part),
        held=None if machine is None or len(held) < len(sizes) else sum(held) / float(machine.values[-1]),
    )


def _size(process: Process) -> float | None:
    """Return the most memory of a process, shared pages divided by their users where the kernel does that."""
    shared = process.highest(ProcMetrics.pss_bytes)
    return process.highest(ProcMetrics.rss_bytes) if shared is None else shared


def _halves(part: Series) -> tuple[float, float] | None:
    """Return the growth in halves of equal length, cut at the reading next to the middle; none of too few."""
    if part.seconds.size < 3:
        return None
    middle = (part.seconds[0] + part.seconds[-1]) / 2
    at = int(abs(part.seconds - middle).argmin())
    first, second = part.seconds[at] - part.seconds[0], part.seconds[-1] - part.seconds[at]
    rates = (
        float(part.values[at] - part.values[0]) / first,
        float(part.values[-1] - part.values[at]) / second,
    )
    half = (first + second) / 2
    return rates[0] * half, rates[1] * half
