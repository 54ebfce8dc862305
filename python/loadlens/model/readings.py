"""Every metric that a monitor reads: its name in the record, its unit, and what it is.

Monitors write these metrics, readers of the record and the fields of the facts refer to them, and
`make docs` prints them. A name is spelt here and nowhere else.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Final, Literal


@dataclass(frozen=True, slots=True)
class Metric:
    """One series of a monitor, or several that differ in their labels."""

    unit: str
    kind: Literal[
        "counter", "gauge", "event"
    ]  # a counter only grows: take differences; an event has a row each
    what: str
    source: str = ""  # where it is read, if that is not the same for all metrics of the monitor
    key: str = ""  # its name there, if the source is a file of names and numbers
    monitor: str = ""  # from the table
    name: str = ""  # from the attribute


@dataclass(frozen=True, slots=True)
class Signal:
    """Source of a field of the facts, as in `Annotated[Figure, Signal(...)]`.

    A field that is a `Figure` takes a rate over the measured part and has the name and the unit of a figure;
    a field that is a number takes one over the whole trial. Of several processes, groups or trials, `join`
    makes one value; a sum of processes is unknown where one of them was not read.
    """

    metric: Metric
    take: Literal["rate", "share of time", "highest", "median", "growth", "seconds", "last"]
    join: Literal["most", "least", "sum"] = "most"
    figure: str = ""
    unit: str = ""


class _Label:
    """Value of the label with the attribute's name; empty where a series does not have it."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, labels: Labels, owner: type) -> str:
        return labels.get(self._name, "")


class Labels(dict[str, str]):
    """Labels of a series: those that our monitors write as attributes; a service's own may be any."""

    service, replica = _Label(), _Label()
    pid, process, tid, thread = _Label(), _Label(), _Label(), _Label()
    cpu, device = _Label(), _Label()
    port, to = _Label(), _Label()
    state, wait, kind = _Label(), _Label(), _Label()
    backend, path, status = _Label(), _Label(), _Label()
    from_s, to_s = _Label(), _Label()
    why = _Label()
    stack, frames = _Label(), _Label()  # of a thread's code
    file, line, text = _Label(), _Label(), _Label()
    area, id = _Label(), _Label()  # of a JVM's memory
    name, trace, parent = _Label(), _Label(), _Label()  # of a span

    @staticmethod
    def of(text: str) -> Labels:
        """Labels from their JSON text, as a record keeps them."""
        return Labels({name: str(value) for name, value in json.loads(text or "{}").items()})


class Table:
    """The metrics of one monitor: each attribute is a metric of that name."""

    def __init_subclass__(cls, monitor: str) -> None:
        metrics = {name: metric for name, metric in vars(cls).items() if isinstance(metric, Metric)}
        for name, metric in metrics.items():
            setattr(cls, name, replace(metric, monitor=monitor, name=name))
        METRICS[monitor] = tuple(getattr(cls, name) for name in metrics)


METRICS: Final[dict[str, tuple[Metric, ...]]] = {}  # by monitor


class ProcMetrics(Table, monitor="proc"):
    """Each process of the testbed."""

    cpu_user_s = Metric(
        "s",
        "counter",
        "CPU time outside the kernel, ended threads included; the kernel counts in steps of 10 ms",
        "stat",
    )
    cpu_system_s = Metric("s", "counter", "CPU time in the kernel, likewise", "stat")
    rss_bytes = Metric("bytes", "gauge", "resident memory, shared pages counted in full", "stat")
    threads = Metric("", "gauge", "threads", "stat")
    threads_blocked = Metric(
        "",
        "gauge",
        "threads that sleep in the kernel and cannot be interrupted (state D): nearly always until "
        "storage has done something, also where `/proc/pressure/io` does not count it",
        "task/*/stat",
    )
    descriptors = Metric("", "gauge", "open descriptors", "fd")
    descriptor_limit = Metric("", "gauge", "descriptors that it may have open (`ulimit -n`)", "limits")
    voluntary_switches = Metric("", "counter", "times that a thread gave up the CPU to wait", "task/*/status")
    involuntary_switches = Metric("", "counter", "times that one was put off it", "task/*/status")
    run_s = Metric(
        "s",
        "counter",
        "CPU time summed over threads, to the nanosecond; of threads that ended, what was seen of them "
        "at the last tick",
        "task/*/schedstat",
    )
    runq_wait_s = Metric(
        "s", "counter", "time that threads were ready to run and waited for a CPU", "task/*/schedstat"
    )
    read_bytes = Metric("bytes", "counter", "what came from storage, not what a cache answered", "io")
    write_bytes = Metric("bytes", "counter", "what went to storage", "io")
    appended_bytes = Metric(
        "bytes",
        "counter",
        "by which regular files grew that it writes at their end (`O_APPEND`) or as standard output, of"
        " its first 64 descriptors; a file that several processes write counts at one of them",
        "fd, fdinfo",
    )
    files_changed = Metric(
        "",
        "gauge",
        "regular files that it holds open to write elsewhere than at their end and that changed since "
        "the last tick, of its first 64 descriptors; one that several processes write counts at one of "
        "them",
        "fd, fdinfo",
    )
    minor_faults = Metric("", "counter", "page faults answered from memory", "stat")
    major_faults = Metric("", "counter", "page faults that needed storage", "stat")
    pss_bytes = Metric(
        "bytes",
        "gauge",
        "resident memory, shared pages divided by those who share them; each fifth tick and at the end",
        "smaps_rollup",
    )
    thread_run_s = Metric(
        "s",
        "counter",
        "CPU time of one thread, with the further labels `tid` and `thread`",
        "task/*/schedstat",
    )
    thread_runq_wait_s = Metric("s", "counter", "its waiting for a CPU, likewise", "task/*/schedstat")


class HostMetrics(Table, monitor="host"):
    """The whole machine."""

    cpu_user_s = Metric("s", "counter", "CPU time of programs by `cpu` (`all`, `0` …), nice included", "stat")
    cpu_system_s = Metric("s", "counter", "CPU time of the kernel for them, by `cpu`", "stat")
    cpu_idle_s = Metric("s", "counter", "time without anything to do, by `cpu`", "stat")
    cpu_iowait_s = Metric("s", "counter", "idle while a request to storage was under way, by `cpu`", "stat")
    cpu_softirq_s = Metric("s", "counter", "soft interrupts, of the network above all, by `cpu`", "stat")
    cpu_steal_s = Metric("s", "counter", "what the hypervisor gave to others, by `cpu`", "stat")
    load1 = Metric("", "gauge", "load average over a minute", "loadavg")
    memory_total_bytes = Metric("bytes", "gauge", "what the kernel may give", "meminfo", "MemTotal")
    memory_available_bytes = Metric(
        "bytes", "gauge", "what can be had without swapping", "meminfo", "MemAvailable"
    )
    memory_refaults = Metric(
        "pages",
        "counter",
        "pages that were read again after they had been dropped for want of room",
        "vmstat",
        "workingset_refault*",
    )
    memory_swapped_in = Metric("pages", "counter", "pages that came back from swap", "vmstat", "pswpin")
    pressure_cpu_some_s = Metric(
        "s", "counter", "time in which some task waited for a CPU", "pressure/cpu", "some"
    )
    pressure_io_some_s = Metric(
        "s", "counter", "time in which some task waited for storage", "pressure/io", "some"
    )
    pressure_io_full_s = Metric("s", "counter", "time in which all of them did", "pressure/io", "full")
    pressure_memory_some_s = Metric(
        "s", "counter", "time in which some task waited for memory", "pressure/memory", "some"
    )
    tcp_listen_overflows = Metric(
        "", "counter", "connections that met a full accept queue", "net/netstat", "TcpExt ListenOverflows"
    )
    tcp_listen_drops = Metric(
        "", "counter", "all that were dropped at a listener", "net/netstat", "TcpExt ListenDrops"
    )
    tcp_retransmits = Metric("", "counter", "segments sent again", "net/snmp", "Tcp RetransSegs")
    tcp_established = Metric("", "gauge", "connections that stand", "net/snmp", "Tcp CurrEstab")
    tcp_time_wait = Metric("", "gauge", "connections in TIME_WAIT", "net/sockstat")
    disk_read_bytes = Metric(
        "bytes", "counter", "read, by whole `device`; no partitions, no loop devices", "diskstats"
    )
    disk_write_bytes = Metric("bytes", "counter", "written, by `device`", "diskstats")
    disk_busy_s = Metric("s", "counter", "time with at least one request under way, by `device`", "diskstats")
    net_received_bytes = Metric("bytes", "counter", "received, by `interface`, loopback included", "net/dev")
    net_sent_bytes = Metric("bytes", "counter", "sent, by `interface`", "net/dev")


class CgroupMetrics(Table, monitor="cgroup"):
    """Control groups that limit replicas."""

    cpu_periods = Metric("", "counter", "quota periods in which the replica wanted to run")
    cpu_throttled_periods = Metric(
        "", "counter", "of these, those in which it used its quota up and had to wait"
    )
    cpu_throttled_s = Metric("s", "counter", "time that its CPUs were held back, summed over CPUs")
    cpu_quota_cores = Metric("", "gauge", "cores that it may use: its quota over the period")
    cpu_period_s = Metric("s", "gauge", "the period of the quota")
    cpu_pressure_some_s = Metric(
        "s", "counter", "time in which at least one of its threads wanted a CPU and had none; version 2 only"
    )
    memory_bytes = Metric("bytes", "gauge", "memory charged to the replica")
    memory_limit_bytes = Metric("bytes", "gauge", "memory that it may have, pages of files included")
    memory_pressure_some_s = Metric(
        "s", "counter", "time in which at least one of its threads waited for memory; version 2 only"
    )
    memory_at_limit = Metric("", "counter", "how often it met its bound")
    oom_kills = Metric("", "counter", "processes that the kernel killed for it")


class ScrapeMetrics(Table, monitor="scrape"):
    """Scrapes of services; the series that a service exports have names of their own."""

    scrape_seconds = Metric("s", "gauge", "how long the service took to answer; null: it did not")
    scrapes = Metric("", "counter", "scrapes sent so far, failed ones included: they are requests too")
    missed = Metric(
        "",
        "event",
        "null: a scrape without metrics, or one that could not be sent because the last one still ran; "
        "`why` says which",
    )


class ServerTimesMetrics(Table, monitor="server_times"):
    """Response times that a service logs."""

    response_time = Metric(
        "s",
        "event",
        "one row a request, by `path` and `status`; its time is the tick at which the line was read, "
        "not when the request came",
    )
    faulty_lines = Metric(
        "", "counter", "lines so far that are not JSON or lack a key; no row while there are none"
    )


class BalancerMetrics(Table, monitor="balancer"):
    """Requests that a balancer logs."""

    requests = Metric("", "counter", "requests that it has answered, by `backend` and `status`")
    request_seconds = Metric("s", "counter", "from the first byte of the request to the last of the answer")
    backend_seconds = Metric("s", "counter", "time that the backend took")
    connect_seconds = Metric("s", "counter", "of this, time to connect to the backend")
    faulty_lines = Metric("", "counter", "lines of the log that could not be read")


class PostgresMetrics(Table, monitor="postgres"):
    """A PostgreSQL server."""

    connections = Metric(
        "",
        "gauge",
        "connections of clients by `state` (`active`, `idle`, `idle in transaction` …) and, if active, "
        "by `wait`: `Lock`, `IO`, `LWLock` …, or `none`, they run",
    )
    max_connections = Metric("", "gauge", "how many there may be")
    longest_transaction_s = Metric("s", "gauge", "age of the oldest open transaction")
    locks_held = Metric("", "gauge", "locks that are held")
    locks_waited_for = Metric("", "gauge", "locks that were asked for and not granted yet")
    longest_lock_wait_s = Metric("s", "gauge", "how long the first of these has been waited for")
    commits = Metric("", "counter", "transactions that were kept")
    rollbacks = Metric("", "counter", "transactions that were not")
    deadlocks = Metric("", "counter", "of these, those that were ended to break a circle")
    blocks_hit = Metric("", "counter", "blocks found in the server's own cache")
    blocks_read = Metric("", "counter", "blocks asked of the system")
    rows_returned = Metric("", "counter", "rows read by scans")
    rows_inserted = Metric("", "counter", "rows inserted")
    rows_updated = Metric("", "counter", "rows updated")
    rows_deleted = Metric("", "counter", "rows deleted")
    temporary_files = Metric("", "counter", "files made because memory for a sort or a hash was short")
    temporary_bytes = Metric("bytes", "counter", "written to them")
    log_bytes = Metric("bytes", "counter", "written to the write-ahead log")
    database_bytes = Metric("bytes", "gauge", "size of the database; read each fifth tick and at the end")


class BackendsMetrics(Table, monitor="backends"):
    """Processes of a PostgreSQL server, by their titles; ten times per second."""

    backends = Metric(
        "",
        "gauge",
        "processes that serve a connection of the services, by `state` (`idle`, `idle in transaction`, "
        "`active`, or `waiting` for a lock) and by the command that they execute (`kind`); no row for none",
        "cmdline",
    )
    backends_in_all = Metric("", "gauge", "all of them", "cmdline")
    sampling_cpu_s = Metric("s", "counter", "CPU time of the sampling")


class NodeMetrics(Table, monitor="node"):
    """A Node.js process."""

    loop_active_s = Metric("s", "counter", "time in which the event loop did something")
    loop_idle_s = Metric("s", "counter", "time in which it waited for something to do")
    loop_lag_counts = Metric(
        "",
        "counter",
        "moments, one each 20 ms, at which a timer was late by at least `from_s` and less than `to_s`",
    )
    loop_lag_sum_s = Metric("s", "counter", "lateness of all these moments added up")
    loop_lag_max_s = Metric("s", "gauge", "the worst since the sample before")
    gc_pauses = Metric("", "counter", "runs of the collector, by `kind`")
    gc_s = Metric("s", "counter", "time in them")
    gc_longest_s = Metric("s", "gauge", "the longest since the sample before")
    heap_used_bytes = Metric("bytes", "gauge", "JavaScript heap in use")
    heap_limit_bytes = Metric("bytes", "gauge", "where the process would die")
    external_bytes = Metric("bytes", "gauge", "buffers outside the heap that the collector knows of")
    held = Metric("", "gauge", "what keeps the loop alive, by `kind`: sockets, timers, requests under way")
    sampling_s = Metric("s", "counter", "time that the sampling took on this loop")


class BeamMetrics(Table, monitor="beam"):
    """An Erlang emulator."""

    schedulers = Metric("", "gauge", "schedulers online, by `kind`: normal, dirty_cpu, dirty_io")
    schedulers_busy_s = Metric(
        "s", "counter", "time in which they ran something, added up; spinning is not busy"
    )
    scheduler_busiest = Metric(
        "share", "gauge", "of the time since the sample before: the busiest normal one"
    )
    run_queue_mean = Metric("", "gauge", "processes and ports that were ready and waited: mean of ten looks")
    run_queue_max = Metric("", "gauge", "the most of the ten")
    wake_late_max_s = Metric(
        "s", "gauge", "the worst of ten times that a process woke later than it had asked for"
    )
    processes = Metric("", "gauge", "Erlang processes")
    process_limit = Metric("", "gauge", "how many there may be")
    ports = Metric("", "gauge", "sockets, files and programs that it holds open through ports")
    memory_bytes = Metric(
        "bytes",
        "gauge",
        "by `kind`: total is processes and system; atom, binary, code and ets are parts of system",
    )
    gc_runs = Metric("", "counter", "collections of single processes' heaps")
    gc_reclaimed_bytes = Metric("bytes", "counter", "what they freed")
    reductions = Metric("", "counter", "work done, in the emulator's own unit")
    io_in_bytes = Metric("bytes", "counter", "received through ports")
    io_out_bytes = Metric("bytes", "counter", "sent through ports")
    longest_queue = Metric("", "gauge", "messages in the longest queue of a process")
    sampling_s = Metric("s", "counter", "time from the beginning to the end of each sampling, added up")


class JvmMetrics(Table, monitor="jvm"):
    """A HotSpot JVM, as it counts in the file that `jstat` reads."""

    collections = Metric(
        "",
        "counter",
        "runs of a collector: `name` is the JVM's own, `kind` is `young`, `full` or `phases` (stops for a "
        "collection that runs alongside the service)",
        "sun.gc.collector.N.invocations",
    )
    collection_s = Metric("s", "counter", "time in them", "sun.gc.collector.N.time")
    safepoints = Metric(
        "", "counter", "times that all threads were stopped, for whatever reason", "sun.rt.safepoints"
    )
    at_safepoint_s = Metric(
        "s",
        "counter",
        "time in them; collections that stop all threads are part of it",
        "sun.rt.safepointTime",
    )
    heap_bytes = Metric(
        "bytes", "gauge", "heap in use, by space (`id`); `area` is `heap`", "sun.gc.generation.N.space.M.used"
    )
    heap_capacity_bytes = Metric(
        "bytes", "gauge", "heap that the JVM has from the system now", "sun.gc.generation.N.capacity"
    )
    heap_most_bytes = Metric("bytes", "gauge", "heap that it may have", "sun.gc.generation.N.maxCapacity")
    old_generation_most_bytes = Metric(
        "bytes",
        "gauge",
        "of it, the old generation; no row where generations share the heap",
        "sun.gc.generation.1.maxCapacity",
    )
    live_threads = Metric("", "gauge", "Java threads", "java.threads.live")
    compiling_s = Metric("s", "counter", "time of compiler threads at work", "java.ci.totalTime")


class TcpMetrics(Table, monitor="tcp"):
    """Sockets of the services, and TCP of the whole machine."""

    accept_queue = Metric("", "gauge", "connections that the service has not accepted yet")
    accept_queue_bound = Metric("", "gauge", "how many there may be: the listener's backlog, or somaxconn")
    listen_drops = Metric(
        "",
        "counter",
        "segments of new connections that the listener threw away, most often because its queue was full",
    )
    connections = Metric("", "gauge", "connections on the service's side by `state`, TIME_WAIT included")
    requests_in = Metric(
        "",
        "counter",
        "segments with data that came in on them: one for a request that fits into one; on connections "
        "that ended, what was seen at the last count",
    )
    busy = Metric("", "gauge", "connections on which data came in and none has gone out since")
    answers_seen = Metric("", "counter", "answers that were the last on their connection at a count")
    answer_s = Metric(
        "s",
        "counter",
        "their time, from the last data in to the last data out, in steps of the kernel's timer",
    )
    calls = Metric(
        "",
        "counter",
        "segments with data that came in at a port `to` of another program, or of a further port of the "
        "service",
    )
    calls_under_way = Metric(
        "", "gauge", "connections there on which data came in and none has gone out since"
    )
    call_connections = Metric(
        "", "gauge", "connections there on which data came in since the last count, or that are busy"
    )
    calls_held_back = Metric(
        "",
        "gauge",
        "of these, on which either side holds back less than a segment until an acknowledgement comes",
    )
    ports_taken = Metric(
        "",
        "gauge",
        "local ports from which no further connection to the address `to` may be opened yet; of the "
        "three addresses with the most",
    )
    port_rests_s = Metric(
        "s", "gauge", "how long such a port stays taken after our side ended the connection"
    )
    ports_there = Metric("", "gauge", "local ports that there are: net.ipv4.ip_local_port_range")
    count_s = Metric("s", "gauge", "how long the count of connections took")
    segments_sent = Metric("", "counter", "of the machine", "net/snmp", "Tcp OutSegs")
    segments_retransmitted = Metric("", "counter", "of the machine", "net/snmp", "Tcp RetransSegs")
    syn_retransmitted = Metric(
        "",
        "counter",
        "of these, those that ask for a connection, or grant it",
        "net/netstat",
        "TcpExt TCPSynRetrans",
    )
    retransmit_timeouts = Metric(
        "",
        "counter",
        "times that an acknowledgement did not come in time",
        "net/netstat",
        "TcpExt TCPTimeouts",
    )
    resets_sent = Metric(
        "", "counter", "connections refused or cut with RST by this machine", "net/snmp", "Tcp OutRsts"
    )
    resets_received = Metric(
        "", "counter", "connections that stood and were reset, by either side", "net/snmp", "Tcp EstabResets"
    )
    connects_begun = Metric(
        "",
        "counter",
        "connections that this machine asked for and had a port for",
        "net/snmp",
        "Tcp ActiveOpens",
    )
    connects_failed = Metric(
        "", "counter", "connections that were never made", "net/snmp", "Tcp AttemptFails"
    )
    syn_cookies_sent = Metric(
        "",
        "counter",
        "answers without a place in the queue of half-open connections",
        "net/netstat",
        "TcpExt SyncookiesSent",
    )
    queue_full_drops = Metric(
        "",
        "counter",
        "half-open connections dropped because their queue was full",
        "net/netstat",
        "TcpExt TCPReqQFullDrop",
    )


class StacksMetrics(Table, monitor="stacks"):
    """Threads of a service, at moments of a trial that gives no figures."""

    thread_sample = Metric(
        "",
        "event",
        "one thread at one moment: 1 if it runs or is ready to, 0 if it waits, or was woken (Go); `wait` "
        "says for what, `stack` is the number of its frames, none where they were not read; `to` is the "
        "other end of a connection, or the epoll, that a thread without frames waits for",
        "task/*/{stat,syscall,wchan}",
    )
    stack_frames = Metric(
        "",
        "event",
        "number of frames of the stack `id`; `frames` has a line for each, the outermost first: function, "
        "module, file, line, and `own` for the service's own code, separated by tabs",
    )
    setting_line = Metric(
        "",
        "event",
        "a `line` of a `file` of the service that may set a limit, with its `text`; 0: of its command line "
        "or its environment",
    )
    source_line = Metric(
        "", "event", "a `line` of a `file` that is the service's own code; `text` is the line"
    )
    stack_failures = Metric(
        "", "event", "attempts in vain to read the frames of a process up to now; `why` says the reason"
    )
    sampling_cpu_s = Metric("s", "counter", "CPU time of the sampling and of the programs that it calls")


class OtlpMetrics(Table, monitor="otlp"):
    """Spans and log lines that services send by OTLP."""

    span = Metric(
        "s",
        "event",
        "how long one span lasted; its time is when it began. `trace` and `id`, `parent` if it has one, "
        "`service`, `name` without a query, `kind` (`server`, `client`, `inside`), `path` of a request that "
        "it serves, `status` is `error` if it says so",
    )
    log_line = Metric(
        "",
        "event",
        "severity of one line from `WARN` (13) on, or 0 if it has none; `text` is the line, at most 1,000 "
        "characters, without credentials",
    )
    spans_received = Metric("", "counter", "spans that came, those of the service's start included")
    spans_kept = Metric("", "counter", "of these, rows of `span`")
    one_trace_in = Metric(
        "",
        "gauge",
        "of so many traces one is kept whole, by a hash of its id: 1, or 2, 4 ... if too many came",
    )
    lines_left_out = Metric("", "counter", "log lines beyond 100 in a second; no row while there are none")
    bodies_unread = Metric(
        "", "counter", "bodies beyond 32 MiB in a second, not looked at; no row while there are none"
    )


class MonitorMetrics(Table, monitor="monitor"):
    """The monitor process itself, and readings that failed."""

    tick_late_s = Metric("s", "gauge", "how late a tick began")
    cost_cpu_s = Metric("s", "counter", "CPU time of the monitor process")
    missed_ticks = Metric("", "counter", "ticks that were not made because the last one took too long")
    missed = Metric("", "event", "null: a tick or source that could not be read; `why` says the reason")
