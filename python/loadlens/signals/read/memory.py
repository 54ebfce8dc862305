"""Memory of the services in a trial: pages that came from storage, share of the machine, heaps, limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from loadlens.model.readings import CgroupMetrics, HostMetrics, NodeMetrics, ProcMetrics
from loadlens.model.shapes import MemoryBound
from loadlens.signals.read.jvm_metrics import jvm_of
from loadlens.signals.read.resources import Process
from loadlens.signals.read.trial_series import Readings, Series, added, total


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """The measured part."""

    faults: float | None  # pages per second from storage, of all processes of the services
    halves: tuple[float, float] | None  # faults in the first half and in the second
    held: float | None  # resident memory of the services over the machine's memory
    bounds: Mapping[str, MemoryBound] = field(default_factory=dict)  # by service: the nearest
    heaps: Mapping[str, Series] = field(default_factory=dict)  # by service: bytes in use


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
    services = sorted({process.service for process in processes})
    heaps = {name: heap for name in services if (heap := _heap(readings, name)) is not None}
    bounds = {name: tuple(_bounds(readings, name, processes, heaps.get(name))) for name in services}
    return Memory(
        faults=float(part.values[-1] - part.values[0]) / (end - begin)
        if part is not None and is_rate
        else None,
        halves=None if part is None else _halves(part),
        held=None if machine is None or len(held) < len(sizes) else sum(held) / float(machine.values[-1]),
        bounds={name: min(own, key=lambda bound: bound.left_bytes) for name, own in bounds.items() if own},
        heaps=heaps,
    )


def _heap(readings: Readings, service: str) -> Series | None:
    """Return the heap in use of all processes of a service whose runtime reports it."""
    jvm = jvm_of(readings, service).heap()
    return jvm if jvm is not None else total(readings.of(NodeMetrics.heap_used_bytes, service=service))


def _bounds(
    readings: Readings, service: str, processes: Sequence[Process], heap: Series | None
) -> Iterator[MemoryBound]:
    """Yield the limits that the memory of a service can meet, with what was left at the last reading.

    Pages of files in a control group make room: what its processes have resident counts.
    """
    resident = added(
        [
            process.series[ProcMetrics.rss_bytes]
            for process in processes
            if process.service == service and ProcMetrics.rss_bytes in process.series
        ]
    )
    groups = readings.of(CgroupMetrics.memory_limit_bytes, service=service)
    if groups and resident is not None and resident.values.size:
        limit = sum(float(group.values[-1]) for group in groups)
        yield MemoryBound("control group", limit, limit - float(resident.values[-1]))
    node = readings.of(NodeMetrics.heap_limit_bytes, service=service)
    most = jvm_of(readings, service).heap_limit_bytes() or sum(float(each.values[-1]) for each in node)
    if most and heap is not None and heap.values.size:
        yield MemoryBound("heap", most, most - float(heap.values[-1]))
    whole = readings.one(HostMetrics.memory_total_bytes)
    available = readings.one(HostMetrics.memory_available_bytes)
    if whole is not None and available is not None:
        yield MemoryBound("machine", float(whole.values[-1]), float(available.values[-1]))


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
