"""Activity of processes, compared with what the kernel reports to a process itself and with psutil."""

from __future__ import annotations

import json
import mmap
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from loadlens.model import plain
from loadlens.model.readings import METRICS
from loadlens.signals.collect.proc import Processes, ProcMonitor
from tests.unit.signals.collect.test_monitor import read, unlisted, value, values

FORKS_ON_SIGNAL = """
import os, signal, sys, time
def fork(number, frame):
    if os.fork() == 0:
        between = os.getpid()
        if sys.argv[1] == "orphan" and os.fork() != 0:
            os._exit(0)
        if sys.argv[1] == "orphan":
            os.setsid()
            while os.path.exists(f"/proc/{between}"):  # then there are two to read
                time.sleep(0.001)
        os.write(1, b"%d\\n" % os.getpid())  # a print may be what the signal interrupted
        time.sleep(60)
signal.signal(signal.SIGUSR1, fork)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
print("up", flush=True)
while True:
    time.sleep(60)
"""

SPAWNS = """
import os, sys, time
print("up", flush=True)
sys.stdin.readline()
opens = [(os.POSIX_SPAWN_OPEN, 0, sys.argv[1], os.O_RDONLY, 0)]
child = os.posix_spawn(sys.executable, [sys.executable, "-c", ""], {}, file_actions=opens)
os.waitpid(child, 0)
print("spawned", flush=True)
time.sleep(60)
"""

RESTS = """
import sys, threading
event = threading.Event()
for _ in range(2):
    threading.Thread(target=event.wait, daemon=True).start()
kept = [b"x" * 10_000_000, open("/dev/null"), open("/dev/null")]
print("up", flush=True)
sys.stdin.read()
"""


def watching(*processes: dict[str, object]) -> ProcMonitor:
    monitor = ProcMonitor()
    monitor.open(plain.read(Processes, {"processes": processes}))
    return monitor


def this_process() -> ProcMonitor:
    return watching({"service": "self", "replica": 1, "pid": os.getpid(), "tree": False})


@pytest.fixture
def forking(request: pytest.FixtureRequest) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process that forks when it gets USR1, and its mark."""
    mark = f"LOADLENS_SERVICE=test-{os.getpid()}:api"
    name, _, content = mark.partition("=")
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", FORKS_ON_SIGNAL, request.param],
        stdout=subprocess.PIPE,
        text=True,
        env={name: content},
    )
    assert process.stdout is not None
    process.stdout.readline()
    yield process, mark
    for child in [*psutil.Process(process.pid).children(recursive=True), psutil.Process(process.pid)]:
        child.kill()
    process.communicate()


def test_every_metric_of_the_table_has_a_row_and_no_other_one_has() -> None:
    rows = read(this_process(), last=True)

    assert {row.metric for row in rows} == {metric.name for metric in METRICS["proc"]}
    assert unlisted(rows, METRICS["proc"]) == set()


def test_cpu_time_lies_between_what_the_process_reads_of_itself_before_and_after() -> None:
    monitor = this_process()
    before = time.process_time()
    rows = read(monitor)
    after = time.process_time()

    run = value(rows, "run_s", service="self")
    ticks = value(rows, "cpu_user_s", service="self") + value(rows, "cpu_system_s", service="self")

    # live threads only: what threads did that ended before the first reading is not in run_s, but is in ticks
    assert run <= after
    assert before - 0.03 <= ticks <= after + 0.03  # two values in ticks of 10 ms


def test_cpu_time_of_a_busy_thread_is_counted_also_after_it_has_ended() -> None:
    monitor = this_process()
    first = value(read(monitor), "run_s", service="self")
    spent: list[float] = []

    def work() -> None:
        while time.thread_time() < 0.05:
            pass
        spent.append(time.thread_time())
        seen.wait()

    seen = threading.Event()
    thread = threading.Thread(target=work)
    thread.start()
    while not spent:
        time.sleep(0.005)
    with_thread = read(monitor)
    seen.set()
    thread.join()
    after = value(read(monitor), "run_s", service="self")

    assert value(with_thread, "thread_run_s", service="self", tid=str(thread.native_id)) >= 0.05
    assert value(with_thread, "run_s", service="self") - first >= 0.05
    assert after >= value(with_thread, "run_s", service="self")  # a counter never falls


def test_switches_and_faults_agree_with_the_kernels_own_account() -> None:
    monitor = this_process()
    start = resource.getrusage(resource.RUSAGE_SELF)
    first = read(monitor)
    with mmap.mmap(-1, 200 * mmap.PAGESIZE) as fresh:
        for page in range(200):
            fresh[page * mmap.PAGESIZE] = 1  # met for the first time
    for _ in range(50):
        time.sleep(0.0005)  # a voluntary switch, unless the time is over before the thread sleeps
    second = read(monitor)
    end = resource.getrusage(resource.RUSAGE_SELF)

    switches = value(second, "voluntary_switches", service="self") - value(
        first, "voluntary_switches", service="self"
    )
    faults = value(second, "major_faults", service="self")

    assert 40 <= switches <= end.ru_nvcsw - start.ru_nvcsw
    assert start.ru_majflt <= faults <= end.ru_majflt
    minor = [value(rows, "minor_faults", service="self") for rows in (first, second)]
    assert start.ru_minflt <= minor[0] <= minor[1] - 100
    assert minor[1] <= end.ru_minflt


def test_memory_descriptors_threads_and_io_agree_with_psutil() -> None:
    # another process, at rest: what looks at itself opens descriptors to do so
    with subprocess.Popen([sys.executable, "-c", RESTS], stdin=-1, stdout=-1) as resting:
        assert resting.stdout is not None
        resting.stdout.readline()
        rows = read(watching({"service": "api", "replica": 1, "pid": resting.pid}))
        process = psutil.Process(resting.pid)
        memory, io = process.memory_full_info(), process.io_counters()
        threads, descriptors = process.num_threads(), process.num_fds()
        allowed, _ = process.rlimit(psutil.RLIMIT_NOFILE)
        resting.kill()

    assert value(rows, "threads", service="api") == threads == 3
    assert value(rows, "descriptors", service="api") == descriptors
    assert value(rows, "descriptor_limit", service="api") == allowed
    assert value(rows, "read_bytes", service="api") == io.read_bytes
    assert value(rows, "write_bytes", service="api") == io.write_bytes
    assert value(rows, "rss_bytes", service="api") == pytest.approx(memory.rss, rel=0.05)
    assert value(rows, "pss_bytes", service="api") == pytest.approx(memory.pss, rel=0.05)


def test_the_dear_pss_is_read_every_fifth_tick_and_at_the_end() -> None:
    monitor = this_process()

    seen = [len(values(read(monitor), "pss_bytes", service="self")) for _ in range(7)]
    at_the_end = len(values(read(monitor, last=True), "pss_bytes", service="self"))

    assert seen == [1, 0, 0, 0, 0, 1, 0]
    assert at_the_end == 1


@pytest.mark.parametrize("forking", ["child", "orphan"], indirect=True)
def test_a_process_that_appears_later_is_found_by_descent_or_by_its_mark(
    forking: tuple[subprocess.Popen[str], str],
) -> None:
    process, mark = forking
    monitor = watching({"service": "api", "replica": 2, "pid": process.pid, "mark": mark})
    before = values(read(monitor), "threads", service="api")
    process.send_signal(signal.SIGUSR1)
    assert process.stdout is not None
    child = int(process.stdout.readline())
    after = read(monitor)
    os.kill(child, signal.SIGKILL)
    until = time.monotonic() + 20
    while (
        os.path.exists(f"/proc/{child}") and time.monotonic() < until
    ):  # the process that inherits it reaps it
        time.sleep(0.002)
    gone = read(monitor)

    assert before == [1]
    assert value(after, "threads", service="api", replica="2", pid=str(child)) == 1
    assert len(values(after, "threads", service="api")) == 2
    assert len(values(gone, "threads", service="api")) == 1


def test_what_the_generator_starts_is_not_the_generator() -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        rows = read(this_process())
        child.kill()

    pids = {json.loads(row.labels)["pid"] for row in rows if row.metric == "threads"}

    assert pids == {str(os.getpid())}


def test_the_monitor_counts_itself() -> None:
    rows = read(watching())

    assert value(rows, "threads", service="(monitor)", pid=str(os.getpid())) >= 1


def test_threads_that_did_not_run_yield_no_rows_until_the_end() -> None:
    release = threading.Event()
    idle = threading.Thread(target=release.wait)
    idle.start()
    monitor = this_process()
    tid = str(idle.native_id)
    ran, until = Path(f"/proc/self/task/{tid}/schedstat"), time.monotonic() + 20
    while True:  # it may run for a moment before it waits
        before = ran.read_text()
        read(monitor)
        quiet = values(read(monitor), "thread_run_s", tid=tid)
        if ran.read_text() == before or time.monotonic() > until:
            break
    at_the_end = values(read(monitor, last=True), "thread_run_s", tid=tid)
    release.set()
    idle.join()

    assert quiet == []
    assert len(at_the_end) == 1


def test_a_thread_that_cannot_be_interrupted_is_blocked_until_it_can(tmp_path: Path) -> None:
    # Who starts a program sleeps so until it runs; here its child first waits to open a pipe.
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", SPAWNS, str(pipe)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdout.readline()
    monitor = watching({"service": "api", "replica": 1, "pid": process.pid, "tree": False})
    before = value(read(monitor), "threads_blocked", service="api")
    process.stdin.write(b"\n")
    process.stdin.flush()
    until = time.monotonic() + 20
    while value(read(monitor), "threads_blocked", service="api") == 0 and time.monotonic() < until:
        time.sleep(0.01)
    meanwhile = [value(read(monitor), "threads_blocked", service="api") for _ in range(2)]
    os.close(os.open(pipe, os.O_WRONLY))
    process.stdout.readline()
    after = value(read(monitor), "threads_blocked", service="api")
    process.kill()
    process.communicate()

    assert before == 0
    assert meanwhile == [1, 1]
    assert after == 0


def test_files_that_are_written_at_their_end_are_counted_as_they_grow(tmp_path: Path) -> None:
    monitor = this_process()
    with (
        (tmp_path / "log").open("ab", buffering=0) as log,
        (tmp_path / "data").open("wb", buffering=0) as data,
    ):
        log.write(b"x" * 50)  # before the first reading
        first = value(read(monitor), "appended_bytes", service="self")
        log.write(b"x" * 300)
        data.write(b"x" * 9_000)
        second = value(read(monitor), "appended_bytes", service="self")
        log.truncate(0)
        cut = value(read(monitor), "appended_bytes", service="self")
        log.write(b"x" * 20)
        third = value(read(monitor), "appended_bytes", service="self")

    assert [second - first, cut - second, third - cut] == [300, 0, 20]


def change(file: int) -> None:
    """Write until the kernel stamps it anew: with the time of its last tick, which may be the one before."""
    before = os.fstat(file).st_mtime_ns
    while os.fstat(file).st_mtime_ns == before:
        os.pwrite(file, b"y", 0)
        time.sleep(0.001)


def test_files_that_change_elsewhere_than_at_their_end_are_counted_at_each_look(tmp_path: Path) -> None:
    """Of a process that has these files and no other: pytest writes to some of its own."""
    (tmp_path / "page").write_bytes(b"x")
    with (
        (tmp_path / "log").open("ab", buffering=0) as log,
        (tmp_path / "data").open("wb", buffering=0) as data,
        (tmp_path / "more").open("wb", buffering=0) as more,
        (tmp_path / "page").open("rb") as page,
        subprocess.Popen(
            [sys.executable, "-c", "input()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[file.fileno() for file in (log, data, more, page)],
        ) as holder,
    ):
        monitor = watching({"service": "self", "replica": 1, "pid": holder.pid, "tree": False})
        data.write(b"x" * 9_000)  # before the first reading
        changed = [value(read(monitor), "files_changed", service="self")]
        for files in ([], [data], [data, more], [log], [page]):
            for file in files:
                if file is page:  # by way of another descriptor
                    with (tmp_path / "page").open("r+b", buffering=0) as other:
                        change(other.fileno())
                else:
                    change(file.fileno())
            changed.append(value(read(monitor), "files_changed", service="self"))
        holder.kill()

    assert changed == [0, 0, 1, 2, 0, 0]


def test_a_file_that_several_processes_have_open_counts_once(tmp_path: Path) -> None:
    with (
        (tmp_path / "log").open("ab", buffering=0) as log,
        subprocess.Popen([sys.executable, "-c", "input()"], stdin=-1, pass_fds=(log.fileno(),)) as other,
    ):
        monitor = watching(
            {"service": "self", "replica": 1, "pid": os.getpid(), "tree": False},
            {"service": "other", "replica": 1, "pid": other.pid, "tree": False},
        )
        read(monitor)
        log.write(b"x" * 100)
        rows = read(monitor)
        other.kill()

    grown = [value(rows, "appended_bytes", service=name) for name in ("self", "other")]
    assert sum(grown) == 100
