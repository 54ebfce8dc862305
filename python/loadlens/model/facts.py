"""What a rule may see: estimates and counts of a record, without the names that its study gave them.

Labels are for printing only. No rule compares one with a word of its own; a test renames them all and the
findings stay the same. Rates are per second, times in seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from loadlens.model.finding import Estimate, Figure


@dataclass(frozen=True, slots=True)
class Times:
    """One kind of time of one class of requests; the population is the successes."""

    mean: Figure
    p50: Figure
    p99: Figure


@dataclass(frozen=True, slots=True)
class RequestClass:
    """Requests that are sent in the same way."""

    label: str  # the step's name
    request: str  # "POST /x"
    rate: Figure  # successes per second
    response: Times  # from due
    service: Times  # from sent
    inside: Figure  # mean as the server measured it


@dataclass(frozen=True, slots=True)
class FailureMode:
    """Failures of one class of requests that ended in the same way."""

    label: str  # of the class
    outcome: str  # "unexpected_status", "check_failed", "timeout" ...
    status: int  # 0: no answer
    count: int
    median_s: float | None  # time from due to the end of these
    pile: float | None  # share of them within 10 % of the median
    success_median_s: float | None  # of the same class in the same step


@dataclass(frozen=True, slots=True)
class ProbeWatch:
    """A thin stream of cheap requests beside the load."""

    label: str
    request: str
    response: Times
    idle_s: float | None  # its time on an idle service
    delayed: Figure  # share held up by more than 1 ms and a twentieth of the dearest work
    count: int
    fresh_connections: bool  # a new connection each: it lands on a process at random
    is_late: bool  # the generator sent it too late to trust it


@dataclass(frozen=True, slots=True)
class ProcessWatch:
    """One process of a service under test."""

    label: str  # "api.0 uvicorn 4711"
    cpu: Figure  # cores used
    waiting: Figure  # cores wanted and not given: run-queue wait per second
    occupied: Figure  # both together: what a process of one thread is taken up by
    hot_threads: int | None  # threads that used more than 5 % of a core
    threads: float | None
    memory_bytes: float | None

    @property
    def cores(self) -> float:
        """Cores used; 0 when not measured."""
        return self.cpu.point if isinstance(self.cpu, Estimate) else 0.0


@dataclass(frozen=True, slots=True)
class GeneratorWatch:
    """The load generator on trial."""

    verdict: str  # "kept_up", "late", "limit", "starved" or "unknown": the worst of the trials
    busy: float | None  # busiest thread, share of a core, worst trial
    lag_p99_s: float | None
    lag_limit_s: float | None
    cpu_cores: float | None


@dataclass(frozen=True, slots=True)
class ConnectionWatch:
    """Connections of the load, over whole trials."""

    opened: int
    closed_by_server: int
    answered: int  # requests, on all of them


@dataclass(frozen=True, slots=True)
class KernelWatch:
    """What the kernel saw at the service's ports, and of TCP on the whole machine, over whole trials."""

    accept_queue: float | None  # the most connections that waited to be accepted
    accept_queue_bound: float | None
    listen_drops: float | None
    retransmitted: float | None  # segments, those that ask for a connection included
    retransmitted_syn: float | None  # those alone


@dataclass(frozen=True, slots=True)
class Step:
    """One level of load on one curve, over all its valid trials."""

    label: str  # of the case
    load: float  # users, or offered requests per second
    trials: int
    throughput: Figure  # successes per second
    throughput_trials: tuple[float, ...]
    completed_trials: tuple[float, ...]  # successes and failures per second: what Little's law counts
    response: Times  # all classes together
    classes: tuple[RequestClass, ...]
    issued: int | None  # none: what made the load does not say what became of each request
    failed: Figure  # share of the issued that did not end as expected
    failed_count: int
    failures: tuple[FailureMode, ...]
    probes: tuple[ProbeWatch, ...]
    processes: tuple[ProcessWatch, ...]
    in_flight: Figure
    host_cpu: Figure  # cores busy on the whole machine
    steal: float | None  # share of the machine's time taken by other machines
    other_cores: float | None  # used by programs that belong neither to the services nor to Loadlens
    generator: GeneratorWatch
    little: Literal["holds", "broken", "unknown"]
    steady: Literal["flat", "warmup", "slowdown", "no_steady", "cyclic", "unknown"]
    log_signs: tuple[LogSign, ...] = ()
    statuses: tuple[tuple[int, int], ...] = ()  # status -> answers of the load in the measured part
    timed_out: int | None = 0  # by the client; none: what made the load does not say
    connections: ConnectionWatch | None = None
    longest_gap_s: float | None = None  # without an answer of the load, worst trial
    kernel: KernelWatch | None = None
    driver: str = ""  # a label: the program of others that made the load; empty: our engine

    def longest_class(self) -> RequestClass | None:
        """The class whose requests take longest here."""
        known = [c for c in self.classes if isinstance(c.response.mean, Estimate)]
        return max(known, key=_mean_response, default=None)

    @property
    def server_cores(self) -> float:
        """Cores used by all processes of the services under test."""
        return sum(process.cores for process in self.processes)


def _mean_response(request_class: RequestClass) -> float:
    mean = request_class.response.mean
    return mean.point if isinstance(mean, Estimate) else 0.0


@dataclass(frozen=True, slots=True)
class LogSign:
    """Lines of a server's log that say the same kind of thing."""

    kind: str  # "lock": a lock was waited for in vain
    count: int
    sample: str


@dataclass(frozen=True, slots=True)
class Curve:
    """Levels of load under the same conditions, ascending."""

    label: str  # "workers=1"
    anchor: str  # of the chart that shows it
    is_closed: bool
    think_s: float  # mean think time of a user
    steps: tuple[Step, ...]
    work: Figure  # CPU seconds of one request of the dearest class
    work_all: Figure  # CPU seconds of one request, all classes together
    dearest: str  # label of that class
    cores_allotted: float  # to the services under test
    shares_cores: bool | None  # whether generator and services may run on the same cores

    @property
    def trials(self) -> int:
        """Fewest trials of a step."""
        return min((step.trials for step in self.steps), default=0)


@dataclass(frozen=True, slots=True)
class Gate:
    """A condition without which figures must not be believed."""

    name: Literal["generator", "steady", "little", "accounting", "colocation", "interference", "counting"]
    passed: bool | None  # none: could not be looked at
    text: str


@dataclass(frozen=True, slots=True)
class Facts:
    """A record as rules see it."""

    cores: int  # of the machine
    curves: tuple[Curve, ...]
    gates: tuple[Gate, ...] = field(default=())
    dense: tuple[Step, ...] = ()  # looks for pauses: a light load and frequent probes

    def gate(self, name: str) -> Gate | None:
        """The gate of that name, if it was looked at."""
        return next((gate for gate in self.gates if gate.name == name), None)
