"""Driving a specimen for about a second with the engine, and what is seen of it."""

from __future__ import annotations

import contextlib
import ctypes
import re
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from catalogue.parts import PING, WORK
from catalogue.running import Service

from loadlens import engine
from loadlens.model.workload import (
    Closed,
    Connection,
    Open,
    Plan,
    Scenario,
    Step,
    Stream,
    Target,
)

PROBES_PER_S = 60.0
CLONE_NEWNET = 0x4000_0000  # of linux/sched.h
CPUCLOCK_SCHED = 2  # of linux/posix-timers_types.h


@dataclass(frozen=True, slots=True)
class Observation:
    """Counts of the generator and of the kernel for one load."""

    result: dict[str, Any]
    cpu_s: float  # of all processes that serve
    busiest_cpu_s: float  # of the one that used most

    @property
    def load(self) -> dict[str, Any]:
        """The stream that asks for work."""
        stream: dict[str, Any] = self.result["streams"][0]
        return stream

    @property
    def ok(self) -> int:
        """Successes of the whole run."""
        return int(self.load["requests"]["ok"])

    @property
    def answered(self) -> int:
        """Answers of the whole run."""
        return int(self.load["requests"]["answered"])

    @property
    def in_flight(self) -> int:
        """Requests without an answer at the end of the drain."""
        return int(self.load["requests"]["in_flight"])

    @property
    def elapsed_s(self) -> float:
        """From the start to the end of the drain."""
        return float(self.result["elapsed_s"])

    @property
    def rate(self) -> float:
        """Successes per second of the measured part."""
        return float(self.load["throughput_rps"]["value"])

    @property
    def mean_s(self) -> float:
        """Mean response time of successes."""
        return float(self.load["response_time_s"]["mean"]["value"])

    @property
    def max_s(self) -> float:
        """The longest response time."""
        return float(self.load["response_time_s"]["max"])

    @property
    def demand_s(self) -> float:
        """Processor time of the busiest process per answer: its inverse is what it can do on its own core."""
        return self.busiest_cpu_s / self.answered

    @property
    def probe_mean_s(self) -> float:
        """Mean response time of the cheap path under load; a bound where the last waited longest."""
        mean = self.result["streams"][1]["response_time_s"]["mean"]
        return float(mean["low"] if mean["value"] is None else mean["value"])

    def status(self, code: int) -> int:
        """Answers of a status."""
        return int(self.load["status"].get(str(code), 0))

    def longer_than(self, seconds: float) -> int:
        """Successes that took longer; those up to a twentieth of a decade shorter may be among them."""
        bins = self.load["response_time_s"]["histogram"]
        return sum(count for upper, count in bins if upper > seconds)

    @property
    def counted(self) -> int:
        """Successes of the measured part."""
        return int(self.load["response_time_s"]["count"])


def drive(
    service: Service,
    *,
    users: int | None = None,
    rate: float | None = None,
    seconds: float = 0.8,
    requests: int | None = None,
    probed: bool = False,
) -> Observation:
    """Send work by users without think time or at a constant rate; if `probed`, probes of the cheap path too.

    With a number of requests all of them are in the measured part, however long they take.
    """
    workload: Closed | Open = Open(rate_per_s=rate, max_in_flight=4_000, requests=requests)
    if users is not None:
        workload = Closed(users=users, requests=requests)
    streams = [_stream("work", "load", service, WORK, workload)]
    if probed:
        streams.append(
            _stream("cheap", "probe", service, PING, Open(rate_per_s=PROBES_PER_S, arrivals="poisson"))
        )
    plan = Plan(
        seed=1,
        streams=tuple(streams),
        threads=1,
        duration_ns=int(seconds * 1e9) if requests is None else None,
        drain_ns=3_000_000_000,
    )
    before = [cpu_s([pid]) for pid in service.pids]
    run = engine.Run(plan)
    run.start()
    assert run.wait(30.0)
    used = [cpu_s([pid]) - begin for pid, begin in zip(service.pids, before, strict=True)]
    return Observation(run.result(), sum(used), max(used))


def _enter(network: int) -> None:
    """Of the thread that calls alone (setns(2))."""
    if ctypes.CDLL(None, use_errno=True).setns(network, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")


@contextlib.contextmanager
def inside(service: Service) -> Iterator[None]:
    """This thread, and those that it starts, in the network of a service."""
    with open("/proc/self/ns/net") as own, open(f"/proc/{service.network or 'self'}/ns/net") as its:
        _enter(its.fileno())
        try:
            yield
        finally:
            _enter(own.fileno())


def _stream(name: str, role: Any, service: Service, path: str, workload: Closed | Open) -> Stream:
    place = urlsplit(service.work_url)
    assert place.hostname is not None
    assert place.port is not None
    step = Step(name, "GET", path, expect=(200,))
    return Stream(
        name,
        role,
        Target(place.hostname, place.port, place.netloc),
        (Scenario(name, 1.0, (step,)),),
        workload,
        Connection(),
        10_000_000_000,
    )


def cpu_s(pids: Sequence[int]) -> float:
    """Processor time of processes so far, ended threads included (clock_getcpuclockid(3))."""
    return sum(time.clock_gettime_ns(~pid << 3 | CPUCLOCK_SCHED) for pid in pids) / 1e9


def resident_bytes(service: Service) -> int:
    """Memory of the processes that serve."""
    return sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 for pid in service.pids)


def stored_bytes(service: Service) -> int:
    """Bytes that the serving processes have written to the device so far."""
    counters = [Path(f"/proc/{pid}/io").read_text() for pid in service.pids]
    return sum(
        int(line.split()[1])
        for text in counters
        for line in text.splitlines()
        if line.startswith("write_bytes")
    )


def metric_sum(service: Service, server: int, pattern: str) -> float:
    """Sum of a server's own metric over its statuses; the pattern fits every naming scheme."""
    port = service.hellos[server]["metrics_port"]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        page = answer.read().decode()
    samples = re.findall(pattern + r"\S* (\S+)$", page, re.MULTILINE)
    assert samples, page
    return sum(map(float, samples))


def counted(service: Service, server: int, path: str) -> float:
    """Requests for a path that a server answered."""
    return metric_sum(service, server, rf'_count\{{\w+="{path}"')


def handled_s(service: Service, server: int, path: str) -> float:
    """Time that its handlers of a path took, together."""
    return metric_sum(service, server, rf'_sum\{{\w+="{path}"')
