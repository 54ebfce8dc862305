"""Facts of a record, all that a rule may see: estimates and counts, without the names of the study.

Labels are for printing only. No rule compares one with a word of its own; a test renames them all and the
findings stay the same. Rates are per second, times in seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from loadlens.model.finding import Estimate, Figure, NotMeasured
from loadlens.model.quality import Count, Quality
from loadlens.model.readings import CgroupMetrics, HostMetrics, ProcMetrics, Signal, TcpMetrics
from loadlens.model.shapes import (
    AnswerSize,
    FailedAtOnce,
    HandleGrowth,
    LetThrough,
    MemoryGrowth,
    SlowBursts,
    Slowdown,
    SlowPath,
    Spacing,
    SparedRequests,
    StandstillWatch,
    TimerPile,
)
from loadlens.model.stacks import SourceLine

MOST_OF_WORK = 2 / 3  # of a process: the thread that does it leaves little to collectors and compilers
_NO_TRANSFER = NotMeasured("last_byte", "no such time was recorded")


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
    inside: Figure  # mean as the server measured it; its `metric` is what the server calls it
    transfer: Figure = _NO_TRANSFER  # mean, from the first byte of the answer to the last
    answers: tuple[AnswerSize, ...] = ()  # successes by size; none: not each request is known
    is_varied: bool = False  # they may ask for different things: a template is filled in for each


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
    rows: int | None = None  # rows of a thinned log, which the count is estimated from; None: counted


@dataclass(frozen=True, slots=True)
class ProbeWatch:
    """A thin stream of cheap requests next to the load."""

    label: str
    request: str
    response: Times
    idle_s: float | None  # its time on an idle service
    delayed: Figure  # share held up by more than 1 ms and a twentieth of the costliest work
    count: int
    fresh_connections: bool  # a new connection each: it lands on a process at random
    is_late: bool  # the generator sent it too late to trust it
    spared: SparedRequests | None = None  # as of the step's load; none where there are several probes, too


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
    busiest_thread: float | None = None  # share of its CPU time that its busiest thread used
    busiest_occupied: float | None = None  # cores that this thread used or waited for
    service: str = ""  # a label: processes of one service have the same
    program: str = ""  # a label
    is_called: bool = False  # by the service, and no process of it
    descriptors: float | None = None  # the most that were open in any trial
    descriptor_limit: float | None = None  # that it may have open

    @property
    def cores(self) -> float:
        """Cores used; 0 when not measured."""
        return self.cpu.point if isinstance(self.cpu, Estimate) else 0.0

    @property
    def is_one_thread(self) -> bool | None:
        """True if one thread does its work: twice as much as all others together; none: not read."""
        return None if self.busiest_thread is None else self.busiest_thread >= MOST_OF_WORK


@dataclass(frozen=True, slots=True)
class GeneratorWatch:
    """The load generator on trial."""

    verdict: str  # "kept_up", "late", "starved", "limit", "stood_still" or "unknown": the worst of the trials
    busy: float | None  # busiest thread, share of a core, worst trial
    lag_p99_s: float | None
    lag_limit_s: float | None
    cpu_cores: float | None
    waiting: float | None = None  # share of the time for which a thread had no core to run on, worst
    stood_still: float | None = None  # share of the measured part in which a thread did not run at all, worst


@dataclass(frozen=True, slots=True)
class ClosedWatch:
    """Connections that the service closed while the client would have gone on."""

    count: int
    requests: int  # the number that most of them had answered
    same_requests: float  # share of them that had answered just so many
    age_s: float  # median, from when they stood
    same_age: float  # share of them within a tenth of it


@dataclass(frozen=True, slots=True)
class ConnectionWatch:
    """Connections of the load, over whole trials."""

    opened: int
    closed_by_server: int
    answered: int  # requests, on all of them
    closed_by_client: int = 0
    closed_by_error: int = 0
    reuses: bool = True  # whether the client keeps connections as long as it may
    closed: ClosedWatch | None = None  # none: the service closed too few to say more
    connect: Figure | None = None  # mean time until one stood
    first: Figure | None = None  # mean time of first requests from sent, connecting included
    other: Figure | None = None  # and of those that were not the first
    connects: int | None = None  # tries to connect, of load and probes
    resent: int | None = None  # of these, how many took as long as a lost one that is sent again
    lasting: int = 0  # connections that lived all the time, in the trial with the fewest
    served: int = 0  # of these, with an answer; likewise
    best_over_worst: Figure | None = None  # requests of their best served tenth over the worst
    evenness: float | None = None  # Jain's index of their requests: 1 all alike; of the worst trial


@dataclass(frozen=True, slots=True)
class RefusalWatch:
    """Answers of one status that turn requests away, from the begin of the load on."""

    status: int  # 429 or 503
    share: Figure  # of the requests
    rate: Figure  # successes per second between the first refusal and the last
    burst: Figure  # successes beyond that rate until the first refusal
    dispersion: float  # variance over mean of the successes of an interval, worst trial; chance: 1
    offered_per_s: float  # requests that ended per second, refused or not


@dataclass(frozen=True, slots=True)
class StuckWatch:
    """Requests of the load without an answer at the end, far longer than any answer took."""

    counts: tuple[int, ...]  # in each trial
    age_s: float  # of the youngest of them; 0: there are none
    longest_s: float  # that an answer took
    answered_since: int  # sent after the oldest of them and answered; of the trial with the fewest


@dataclass(frozen=True, slots=True)
class Jam:
    """A standstill that ended in failures of most requests that were open."""

    failed: int  # at once, at its end
    seconds: float  # without any answer of the load


@dataclass(frozen=True, slots=True)
class PortsWatch:
    """Local ports of the machine towards the one address where they are scarcest."""

    to: str  # a label: address and port
    is_load: bool  # whether the load goes there: then they are the generator's
    taken: float  # the most at a look; what has rested long enough to be used again left out
    there: float
    rests_s: float  # a port whose connection was ended from here, before the next one may have it

    @property
    def share(self) -> float:
        """Of those that there are."""
        return self.taken / self.there if self.there else 0.0


@dataclass(frozen=True, slots=True)
class KernelWatch:
    """TCP at the service's ports and on the whole machine, as the kernel counts it, over whole trials."""

    # the most connections that waited to be accepted, and how many may
    accept_queue: Annotated[float | None, Signal(TcpMetrics.accept_queue, "highest")]
    accept_queue_bound: Annotated[float | None, Signal(TcpMetrics.accept_queue_bound, "highest")]
    listen_drops: Annotated[float | None, Signal(TcpMetrics.listen_drops, "growth", "sum")]
    # segments, those that ask for a connection included, and those alone
    retransmitted: Annotated[float | None, Signal(TcpMetrics.segments_retransmitted, "growth", "sum")]
    retransmitted_syn: Annotated[float | None, Signal(TcpMetrics.syn_retransmitted, "growth", "sum")]
    # connections that programs of the machine asked for, and for how long they were counted
    begun: Annotated[float | None, Signal(TcpMetrics.connects_begun, "growth", "sum")] = None
    begun_s: Annotated[float, Signal(TcpMetrics.connects_begun, "seconds", "sum")] = 0.0
    ports: PortsWatch | None = None
    # connections that waited to be accepted at the median look
    unaccepted: Annotated[float | None, Signal(TcpMetrics.accept_queue, "median")] = None


@dataclass(frozen=True, slots=True)
class QuotaWatch:
    """A control group that bounds the CPU time of a service's processes."""

    label: str
    cores: float | None  # that they may use; none: not read
    period_s: float | None  # in which the quota may be used
    used: Figure  # cores, by the processes in it
    throttled: Figure  # share of the periods in which they wanted to run and were stopped
    held_back: Figure  # cores: time in which its CPUs were held back, per second
    service: str = ""  # a label, as that of its processes


@dataclass(frozen=True, slots=True)
class ReplicaWatch:
    """One of several replicas that do the same work."""

    label: str
    requests: int  # in the measured part of all trials
    share: Figure  # of the requests of all replicas
    time: Figure  # mean seconds of a request there, its waiting there included
    waiting: Figure  # cores that its processes wanted and did not get


@dataclass(frozen=True, slots=True)
class BalanceWatch:
    """Spread of requests over replicas."""

    label: str
    source: Literal["log", "sockets"]  # a balancer's log, or what the kernel saw at their ports
    replicas: tuple[ReplicaWatch, ...]
    covered: float | None  # requests that they got for each one of the load and the probes


@dataclass(frozen=True, slots=True)
class StorageWatch:
    """Reads and writes of the services, and the machine's storage meanwhile."""

    # bytes per second that went to storage and came from it, of all processes of the services, and by which
    # files grew that they write at the end: logs
    written: Annotated[Figure, Signal(ProcMetrics.write_bytes, "rate", "sum", "storage.written", "bytes/s")]
    read: Annotated[Figure, Signal(ProcMetrics.read_bytes, "rate", "sum", "storage.read", "bytes/s")]
    appended: Annotated[
        Figure, Signal(ProcMetrics.appended_bytes, "rate", "sum", "storage.appended", "bytes/s")
    ]
    # pages per second that had to come from storage
    major_faults: Annotated[Figure, Signal(ProcMetrics.major_faults, "rate", "sum", "faults.major", "1/s")]
    device: str  # a label: the device that was busy most
    device_busy: Figure  # share of the time with a request under way there
    device_written: Figure  # bytes per second, of all programs
    # shares of the time in which some task of the machine waited for storage, and in which all did
    waiting: Annotated[
        Figure, Signal(HostMetrics.pressure_io_some_s, "share of time", "most", "pressure.io", "share")
    ]
    stalled: Annotated[
        Figure, Signal(HostMetrics.pressure_io_full_s, "share of time", "most", "pressure.io", "share")
    ]
    blocked: Figure  # in which some thread of the services slept in the kernel, as who waits for storage does
    blocked_threads: Figure  # how many did, mean over the looks
    stored: tuple[int, int] | None  # looks that found a file changed which they write elsewhere, of so many


@dataclass(frozen=True, slots=True)
class MemoryWatch:
    """Pages of memory that the services did not find, and how short of memory they and the machine were."""

    faults: tuple[float, ...]  # pages that a request fetched from storage, of each trial in order
    later: float | None  # faults in the second halves of measured parts over those in the first
    # pages per second, of the machine, read again after they had been dropped, and brought back from swap
    again: Annotated[
        Figure, Signal(HostMetrics.memory_refaults, "rate", "most", "memory.refaults", "pages/s")
    ]
    swapped_in: Annotated[
        Figure, Signal(HostMetrics.memory_swapped_in, "rate", "most", "memory.swapped_in", "pages/s")
    ]
    # shares of the time in which some task of the machine waited for memory, and some thread of the services
    waiting: Annotated[
        Figure, Signal(HostMetrics.pressure_memory_some_s, "rate", "most", "pressure.memory", "share")
    ]
    own_waiting: Annotated[
        Figure, Signal(CgroupMetrics.memory_pressure_some_s, "rate", "most", "pressure.memory", "share")
    ]
    # how often per second a control group of the services met its bound, and the smallest of these bounds
    at_bound: Annotated[
        Figure, Signal(CgroupMetrics.memory_at_limit, "rate", "most", "memory.at_bound", "1/s")
    ]
    bound_bytes: Annotated[float | None, Signal(CgroupMetrics.memory_limit_bytes, "last", "least")]
    held: float | None  # resident memory of the services over the machine's memory


@dataclass(frozen=True, slots=True)
class CollectorWatch:
    """The garbage collector of one replica, of its process that is stopped longest."""

    label: str
    stopped: Figure  # share of the time in which a collection stops the service
    full: Figure  # the same, of collections of the whole heap alone
    pauses: Figure  # per second
    kept_bytes: float | None = None  # the least in use after collections, in any trial; none: not known
    most_bytes: float | None = None  # that this may have: of a JVM its old generation, else the heap

    @property
    def filled(self) -> float | None:
        """Share of the heap that collections cannot free; none: not known."""
        return self.kept_bytes / self.most_bytes if self.kept_bytes and self.most_bytes else None


@dataclass(frozen=True, slots=True)
class ReceivedWatch:
    """Answers of the load as they came in."""

    bytes_per_s: Figure  # heads and bodies, as they came over the connection
    waited: Figure  # mean seconds until an answer's first byte
    coming: Figure  # from there to its last


@dataclass(frozen=True, slots=True)
class Gauge:
    """One number that a service reports about itself."""

    name: str  # as it is exported, with its labels: for printing only
    mean: Figure  # of its readings in the measured part
    highest: float  # of them, in any trial
    before: float | None = None  # the lowest reading before the load of a trial


@dataclass(frozen=True, slots=True)
class CallsWatch:
    """Calls of the service to another program of this machine, as the kernel saw them there."""

    to: str  # name and port
    under_way: Gauge  # at a time
    per_request: float  # segments with data for each request of the load that ended: one for a short call
    connections: float | None  # the most that were in use between two looks; none: not read
    held_back: Figure | None = None  # connections on which a small piece waits to be sent; none: not read


@dataclass(frozen=True, slots=True)
class ConcurrencyLimit:
    """A resource that requests hold for a while, as the service reports it: threads, a pool, a lock."""

    kind: Literal["lock", "pool", "threads", "requests", "unknown"]  # as its names have it
    held: Gauge
    waiting: Gauge | None = None  # who wants a place and has none
    bound: Gauge | None = None  # places that there may be
    present: Gauge | None = None  # places that there are, held or not
    held_is_at_most: bool = False  # whether `held` may count others, too
    # of the service; of its threads in one further trial; by the titles of a database's processes; or calls
    # that the kernel saw
    seen_in: Literal["gauges", "stacks", "titles", "sockets"] = "gauges"
    service: str = ""  # a label, as that of its processes, where they are known
    program: str = ""  # likewise; of its threads with the file where they wait: `python app.py`
    command: str = ""  # of a database, for printing: that waits for the lock, or that connections execute
    resting: Gauge | None = None  # of those who hold it: in a transaction, and the database waits for them
    held_alone: Gauge | None = None  # with one user


@dataclass(frozen=True, slots=True)
class Crowd:
    """Threads or tasks of the service that wait at one line of its code under load, by samples."""

    waiting: float  # at once, on average
    at_work: float  # with them
    line: str  # for printing: `store.py:17`
    plural: str = "threads"  # or `tasks`
    is_for_place: bool = False  # whether most of them wait for a lock, or for a place in a pool
    limiter: str = ""  # function of a library that limits a rate, in which most of them wait; empty: none
    is_for_threads: bool = False  # whether most are threads that wait for others of them


@dataclass(frozen=True, slots=True)
class Logging:
    """Threads or tasks of the service that are in a library which logs, called by own code."""

    inside: float  # at once, on average
    at_work: float  # with them
    function: str  # of the library
    line: str  # of own code that most call it from, for printing: `store.py:17`
    plural: str = "threads"  # or `tasks`


@dataclass(frozen=True, slots=True)
class Handshakes:
    """CPU time that goes to the begin of TLS connections, by samples of the threads of a service."""

    share: float  # of the samples on a CPU
    function: str  # of the library


@dataclass(frozen=True, slots=True)
class Locked:
    """Threads of the service that wait for a lock in its own code while nothing is asked of it."""

    threads: int
    places: tuple[str, ...]  # for printing: `at both() bank.py:42`, those with most first


@dataclass(frozen=True, slots=True)
class LoopWatch:
    """The event loops of a process that are in requests under load, by samples of their threads."""

    process: str  # for printing only
    count: int  # loops
    held: Estimate  # share of the moments at which one is in a request
    waiting: Estimate  # share of these at which it waits there
    others: Estimate | None  # other threads of the process at work, at once; none: no frames were read
    call: str  # in which it waits most: function of a library, or of what kind; empty: none with a frame
    line: str  # of the service's own code there: `search() store.py:17`; empty: no frames were read


@dataclass(frozen=True, slots=True)
class LabelPart:
    """Requests or calls that a metric of the service counts under one value of a label."""

    value: str  # for printing only
    rate: Figure  # per second
    mean: Figure  # seconds of each; not measured: the metric only counts


@dataclass(frozen=True, slots=True)
class LabelSplit:
    """One metric of the service by the values of one label; metrics with many values are left out."""

    metric: str  # for printing only, as the label
    label: str
    parts: tuple[LabelPart, ...]
    is_of_steps: bool = False  # each value is a step of the same requests
    is_of_calls: bool = False  # that the kernel saw; each value is the program and port they go to
    is_of_load: bool = False  # requests of the load that ask for the same kind of thing; each value is a path


@dataclass(frozen=True, slots=True)
class LookUps:
    """Look-ups in one cache of the services, as they count them."""

    service: str  # a label
    name: str  # for printing
    hits: float  # per second
    misses: float  # per second
    samples: int  # look-ups

    @property
    def missed(self) -> float:
        """Share of the look-ups that miss."""
        return self.misses / (self.hits + self.misses)


@dataclass(frozen=True, slots=True)
class SpanPart:
    """Spans of one name under requests of one kind; times in seconds per request.

    At each moment the time of a request belongs to the innermost spans under way, in equal parts if there
    are several. So the own times of all parts add up to the time of the request.
    """

    name: str  # for printing, with the service if it is not the one that took the request
    kind: Literal["server", "client", "inside"]
    calls: Figure  # of it, per request
    own: Figure  # without what is inside it
    slow_own: Figure  # the same, of the slowest tenth of the requests
    whole: Figure  # with what is inside it
    beneath: Figure  # of that, in spans of what it called; 0 where those were not seen
    in_a_row: float  # the most calls of one request one after another, under one span; mean over requests
    failed: float  # share of them that say that they failed
    answered: float  # share under which a span of what it called was seen
    is_elsewhere: bool  # in another service than the one that took the request


@dataclass(frozen=True, slots=True)
class SpanRequests:
    """Requests that begin with the same span, as the service's own traces show them."""

    name: str  # for printing
    requests: int  # traces
    time: Figure  # mean of that span
    slow: Figure  # mean of the slowest tenth
    parts: tuple[SpanPart, ...]  # the one with most time of its own first
    one_in: int  # traces of which one was kept

    def part(self, like: SpanPart) -> SpanPart | None:
        """Return the part of the same name and kind."""
        return next((part for part in self.parts if (part.name, part.kind) == (like.name, like.kind)), None)


class Speaking:
    """Words of the service itself, from its log or its answers."""

    __slots__ = ()
    log_signs: tuple[LogSign, ...]

    def sign(self, kind: str) -> LogSign | None:
        """Return what it says of a kind of failure."""
        return next((sign for sign in self.log_signs if sign.kind == kind), None)


@dataclass(frozen=True, slots=True)
class Step(Speaking):
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
    steal: float | None  # share of the machine's time taken by other machines, worst trial
    other_cores: float | None  # used by programs that are neither services nor Loadlens, worst trial
    generator: GeneratorWatch
    little: Literal["holds", "broken", "unknown"]
    steady: Literal["flat", "warmup", "slowdown", "no_steady", "cyclic", "unknown"]
    log_signs: tuple[LogSign, ...] = ()
    statuses: tuple[tuple[int, int], ...] = ()  # status -> answers of the load in the measured part
    stuck: StuckWatch | None = None
    jams: tuple[Jam, ...] = ()  # of all trials
    timed_out: int | None = 0  # by the client; none: what made the load does not say
    connections: ConnectionWatch | None = None
    longest_gap_s: float | None = None  # without an answer of the load, worst trial
    kernel: KernelWatch | None = None
    quotas: tuple[QuotaWatch, ...] = ()
    refusals: tuple[RefusalWatch, ...] = ()  # only where at least 1 % were, for 2 s or more
    balances: tuple[BalanceWatch, ...] = ()
    storage: StorageWatch | None = None
    memory: MemoryWatch | None = None
    collectors: tuple[CollectorWatch, ...] = ()  # where their time is known
    received: ReceivedWatch | None = None
    places: tuple[ConcurrencyLimit, ...] = ()
    numbers: tuple[Gauge, ...] = ()  # whole numbers that services export, whatever their names say
    answer_bytes: float | None = None  # of an answer of the load on the wire, mean of the trial with the most
    driver: str = ""  # a label: the program of others that made the load; empty: our engine
    quality: Quality = field(default_factory=Quality)  # how far its figures can be trusted
    standstills: tuple[StandstillWatch, ...] = ()  # each trial whose requests are known one by one
    spared: SparedRequests | None = None  # of the load in these trials; none: it stood still in none of them
    steal_mean: float | None = None  # as `steal`, of all trials
    others_mean: float | None = None  # as `other_cores`, of all trials
    splits: tuple[LabelSplit, ...] = ()  # of the services' own metrics
    look_ups: tuple[LookUps, ...] = ()  # in caches of the services; empty: none are counted
    spacing: Spacing = field(default_factory=Spacing)  # of the load's answers; no gaps: not known
    let_through: tuple[LetThrough, ...] = ()  # of each trial whose requests are known one by one
    spans: tuple[SpanRequests, ...] = ()  # those that take most time in all first
    loops: tuple[LoopWatch, ...] = ()  # of each process that has some at work; seen in one further trial
    calls: tuple[CallsWatch, ...] = ()  # to other programs, most under way first; empty: none, or not seen
    crowd: Crowd | None = None  # likewise: where most threads at work wait; none: nowhere, or not sampled
    handshakes: Handshakes | None = None  # likewise; none: less than a third of the computing
    logging: Logging | None = None  # likewise: most threads at work log; none: they do not, or not sampled
    ended_processes: tuple[EndedProcesses, ...] = ()  # in any trial

    def longest_class(self) -> RequestClass | None:
        """The class whose requests take longest here."""
        classes = [c for c in self.classes if isinstance(c.response.mean, Estimate)]
        return max(classes, key=_mean_response, default=None)

    @property
    def server_cores(self) -> float:
        """Cores used by all processes of the services under test."""
        return sum(process.cores for process in self.processes)

    @property
    def stolen(self) -> float | None:
        """Steal of all trials: one bad trial is not the level. Of the worst where no more is known."""
        return self.steal if self.steal_mean is None else self.steal_mean


def _mean_response(request_class: RequestClass) -> float:
    mean = request_class.response.mean
    return mean.point if isinstance(mean, Estimate) else 0.0


@dataclass(frozen=True, slots=True)
class LogSign:
    """Lines of a server's log, or failing answers, that say the same kind of thing."""

    # "lock", "pool": waited for in vain; "ports", "descriptors", "threads", "memory", "quota": none left;
    # "timeout"
    kind: str
    count: int
    sample: str
    source: Literal["log", "answers"] = "log"

    @property
    def text(self) -> str:
        """The same in words: where it stands, and how often."""
        if self.source == "answers":
            return f'"{self.sample}" stands in {self.count} of the answers'
        return f'the server\'s log says "{self.sample}" {self.count} times'

    @property
    def chip(self) -> str:
        """The same in short."""
        return f"{self.source}: {self.count} lines" if self.source == "log" else f"in {self.count} answers"


@dataclass(frozen=True, slots=True)
class OpenFiles:
    """Descriptors of the process that came nearest to those that it may have open."""

    label: str  # of the process
    count: float  # the most at once
    limit: float

    @property
    def share(self) -> float:
        """Part of those that it may have open."""
        return self.count / self.limit


@dataclass(frozen=True, slots=True)
class EndedProcesses:
    """Processes of one program of the service that ended while a load ran."""

    program: str  # a label
    ended: int
    begun: int  # meanwhile, of the same program


@dataclass(frozen=True, slots=True)
class EndedLevel(Speaking):
    """One level in trials that give no figures: ended because requests failed, or begun after that."""

    load: float  # users, or offered requests per second
    issued: int  # requests that ended, from the begin of the load on
    failures: tuple[FailureMode, ...]
    log_signs: tuple[LogSign, ...]
    places: tuple[ConcurrencyLimit, ...] = ()
    jams: tuple[Jam, ...] = ()
    open_files: OpenFiles | None = None  # none: not read
    ended_processes: tuple[EndedProcesses, ...] = ()

    @property
    def failed_count(self) -> int:
        """Requests that did not end as expected."""
        return sum(mode.count for mode in self.failures)


@dataclass(frozen=True, slots=True)
class LostWatch(Speaking):
    """Requests of loads that were served before, and of which not one succeeds any more."""

    load: float  # the lightest of them: users, or offered requests per second
    served: int  # successes until then, of loads of any length
    failed: int  # requests that ended since
    mode: FailureMode  # how most of one class do
    alike: int  # that end with this status, of any class
    log_signs: tuple[LogSign, ...] = ()
    since_ns: int = 0  # since 1970, when the first trial without a success began
    calls: float | None = None  # to other programs, under way at a time since; none: none before, or not seen
    crowd: Crowd | None = None  # where most threads at work wait since; none: nowhere, or not sampled


@dataclass(frozen=True, slots=True)
class AheadWatch:
    """Wait of a probe against the requests of the load that were under way when it was due."""

    probe: str  # its label
    slope: Figure  # seconds for each of them
    explained: float | None  # share of the variance of the waits
    probes: int
    ahead: float | None  # how many were under way, mean over the probes


@dataclass(frozen=True, slots=True)
class Curve:
    """Levels of load under the same conditions, ascending."""

    label: str  # "workers=1"
    anchor: str  # of the chart that shows it
    is_closed: bool
    think_s: float  # mean think time of a user
    steps: tuple[Step, ...]
    work: Figure  # CPU seconds of one request of the costliest class
    work_all: Figure  # CPU seconds of one request, all classes together
    costliest: str  # label of that class
    cores_allotted: float  # to the services under test
    shares_cores: bool | None  # whether generator and services may run on the same cores
    levels: tuple[tuple[str, str], ...] = ()  # labels: factors that stay the same on it, and their levels
    ahead: AheadWatch | None = None  # of the first probe, over all levels; none: no log of requests
    slow_paths: tuple[SlowPath, ...] = ()  # one a class whose requests are known one by one
    timer_piles: tuple[TimerPile, ...] = ()
    slow_bursts: tuple[SlowBursts, ...] = ()  # of each trial with any in which requests hardly wait
    memory: tuple[MemoryGrowth, ...] = ()  # of each service in its longest life, the most grown first
    handles: tuple[HandleGrowth, ...] = ()  # threads and open files of each service in its longest life
    slowdowns: tuple[Slowdown, ...] = ()  # one a class of a closed load
    is_here: bool = True  # whether the services run on the machine that was watched
    failed: tuple[
        FailedAtOnce, ...
    ] = ()  # of each level whose requests are known, trials ended early included
    ended: tuple[EndedLevel, ...] = ()  # ascending by load
    lost: LostWatch | None = None
    locked: Locked | None = None  # after its loads; none: no threads are, or they were not sampled
    settings: tuple[SourceLine, ...] = ()  # of the service, that may set a limit; empty: none, or not read

    @property
    def trials(self) -> int:
        """Fewest trials of a step."""
        return min((step.trials for step in self.steps), default=0)


@dataclass(frozen=True, slots=True)
class Gate:
    """A condition without which figures must not be believed."""

    name: Literal[
        "generator", "nodes", "steady", "little", "accounting", "colocation", "interference", "counting"
    ]
    passed: bool | None  # none: could not be looked at
    text: str


@dataclass(frozen=True, slots=True)
class Facts:
    """A record as rules see it."""

    cores: int  # of the machine
    curves: tuple[Curve, ...]
    gates: tuple[Gate, ...] = field(default=())
    dense: tuple[Step, ...] = ()  # looks for pauses: a light load and frequent probes
    unloaded: tuple[RequestClass, ...] = ()  # requested by one user with think time, before any load
    counts: tuple[Count, ...] = ()  # what services counted of their requests, trial by trial

    def gate(self, name: str) -> Gate | None:
        """The gate of that name, if it was looked at."""
        return next((gate for gate in self.gates if gate.name == name), None)
