"""Counters of a JVM: from a file written by hand, and of a real one, compared with `jstat` and its beans."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from loadlens.model.readings import JvmMetrics
from loadlens.model.topology import Service
from loadlens.signals.collect import jvm
from loadlens.signals.collect.jvm import JvmMonitor, Jvms, parse
from loadlens.signals.collect.scene import Root, Running, Scene
from tests.unit.signals.collect.test_monitor import read, unlisted, value, values

COUNTERS: Mapping[str, int | str] = {
    "sun.os.hrt.frequency": 1_000_000,  # ticks per second
    "sun.gc.policy.name": "Copy:MSC",
    "sun.gc.collector.0.name": "Serial young collection pauses",
    "sun.gc.collector.0.invocations": 11,
    "sun.gc.collector.0.time": 2_500_000,
    "sun.gc.collector.1.name": "Serial full collection pauses",
    "sun.gc.collector.1.invocations": 3,
    "sun.gc.collector.1.time": 750_000,
    "sun.gc.generation.0.name": "new",
    "sun.gc.generation.0.capacity": 30,
    "sun.gc.generation.0.maxCapacity": 60,
    "sun.gc.generation.0.space.0.name": "eden",
    "sun.gc.generation.0.space.0.used": 21,
    "sun.gc.generation.0.space.1.name": "s0",
    "sun.gc.generation.0.space.1.used": 0,
    "sun.gc.generation.1.name": "old",
    "sun.gc.generation.1.capacity": 70,
    "sun.gc.generation.1.maxCapacity": 140,
    "sun.gc.generation.1.space.0.name": "old",
    "sun.gc.generation.1.space.0.used": 69,
    "sun.rt.safepoints": 17,
    "sun.rt.safepointTime": 3_300_000,
    "java.threads.live": 23,
    "java.ci.totalTime": 1_250_000,
    "sun.other.number": 5,
}
OWN: Mapping[str, str | int] = {"service": "api", "replica": 2, "pid": 4711}


def file_of(counters: Mapping[str, int | str], end: str = "<", *, major: int = 2) -> bytes:
    """A file as a JVM of this byte order writes it: HotSpot's perfMemory.hpp and perfData.hpp."""
    entries = b""
    for name, content in counters.items():
        key = name.encode() + b"\0"
        key += b"\0" * (-(20 + len(key)) % 8)
        data = struct.pack(f"{end}q", content) if isinstance(content, int) else content.encode() + b"\0\0\0"
        items, kind = (0, b"J") if isinstance(content, int) else (len(data), b"B")
        data += b"\0" * (-len(data) % 8)
        length, data_at = 20 + len(key) + len(data), 20 + len(key)
        entries += struct.pack(f"{end}iiicBBBi", length, 20, items, kind, 1, 1, 1, data_at) + key + data
    head = b"\xca\xfe\xc0\xc0" + bytes([end == "<", major, 0, 1])
    used = 32 + len(entries)
    return head + struct.pack(f"{end}iiqii", used, 0, 77, 32, len(counters)) + entries + b"\0" * 64


@pytest.mark.parametrize("end", ["<", ">"], ids=["little-endian", "big-endian"])
def test_counters_are_read_in_either_byte_order(end: str) -> None:
    counters = parse(file_of(COUNTERS, end))

    assert counters == {name: each for name, each in COUNTERS.items() if name != "sun.other.number"}


def test_readings_are_times_in_seconds_spaces_in_bytes_and_what_may_be() -> None:
    rows = list(jvm.rows(parse(file_of(COUNTERS)), OWN))

    assert unlisted(rows, [m for m in vars(JvmMetrics).values() if hasattr(m, "unit")]) == set()
    assert value(rows, "collections", kind="young", name="Serial young collection pauses", pid="4711") == 11
    assert value(rows, "collection_s", kind="young") == 2.5
    assert value(rows, "collections", kind="full") == 3
    assert value(rows, "collection_s", kind="full") == 0.75
    assert value(rows, "heap_bytes", area="heap", id="eden") == 21
    assert value(rows, "heap_bytes", id="s0") == 0
    assert value(rows, "heap_bytes", id="old") == 69
    assert value(rows, "heap_capacity_bytes") == 30 + 70
    assert value(rows, "heap_most_bytes", area="heap") == 60 + 140
    assert value(rows, "old_generation_most_bytes") == 140
    assert value(rows, "safepoints") == 17
    assert value(rows, "at_safepoint_s") == 3.3
    assert value(rows, "live_threads") == 23
    assert value(rows, "compiling_s") == 1.25


def test_generations_that_share_the_heap_may_have_it_once() -> None:
    shared = {**COUNTERS, "sun.gc.policy.name": "GarbageFirst", "sun.gc.generation.0.maxCapacity": 140}

    rows = list(jvm.rows(parse(file_of(shared)), OWN))

    assert value(rows, "heap_most_bytes") == 140
    assert values(rows, "old_generation_most_bytes") == []


def test_what_a_jvm_does_not_count_has_no_row() -> None:
    few = {name: COUNTERS[name] for name in ("java.threads.live", "sun.rt.safepointTime")}

    rows = list(jvm.rows(parse(file_of({**few, "sun.rt.safepoints": -1})), OWN))

    assert {row.metric for row in rows} == {"live_threads"}  # ticks without their frequency are no time


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xca\xfe\xc0\xc0",
        b"no counters at all" * 10,
        file_of(COUNTERS, major=3),
        file_of(COUNTERS)[:7] + b"\0" + file_of(COUNTERS)[8:],
    ],
    ids=["empty", "cut off", "another file", "another version", "not ready"],
)
def test_a_file_that_is_none_of_a_jvm_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"counters|version|start"):
        parse(content)


def test_a_file_that_was_cut_gives_the_counters_before_the_cut() -> None:
    whole = file_of(COUNTERS)

    counters = parse(whole[: len(whole) // 2])

    assert counters
    assert counters.items() < parse(whole).items()


def test_an_entry_that_points_outside_itself_is_left_out() -> None:
    whole = bytearray(file_of({"sun.rt.safepoints": 1, "java.threads.live": 2}))
    struct.pack_into("<i", whole, 32 + 16, 10_000)  # offset of the data of the first entry

    assert parse(bytes(whole)) == {"java.threads.live": 2}


@pytest.mark.parametrize("kind", ["link", "folder", "pipe"])
def test_only_a_regular_file_of_the_process_is_opened(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "hsperfdata_user"
    folder.mkdir()
    file = folder / str(os.getpid())
    if kind == "link":
        (tmp_path / "elsewhere").write_bytes(file_of(COUNTERS))
        file.symlink_to(tmp_path / "elsewhere")
    elif kind == "folder":
        file.mkdir()
    else:
        os.mkfifo(file)
    monkeypatch.setattr(jvm, "PLACE", f"/proc/{{pid}}/root{tmp_path}")

    rows = read(opened(os.getpid()))

    assert rows == []  # not a JVM


def test_a_file_under_the_pid_of_the_process_makes_it_a_jvm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hsperfdata_user").mkdir()
    (tmp_path / "hsperfdata_user" / str(os.getpid())).write_bytes(file_of(COUNTERS))
    monkeypatch.setattr(jvm, "PLACE", f"/proc/{{pid}}/root{tmp_path}")
    defined = Service("api")
    scene = Scene((Running("api", 2, os.getpid(), defined=defined),), {})

    asked = jvm.wanted(scene)
    monitor = opened(os.getpid())
    before = value(read(monitor), "live_threads")
    (tmp_path / "hsperfdata_user" / str(os.getpid())).write_bytes(b"gone wrong")
    after = read(monitor)

    assert asked == Jvms((Root("api", 2, os.getpid()),))
    assert before == 23
    assert [row.metric for row in after] == ["missed"]
    assert "no file of a JVM's counters" in after[0].labels
    assert read(monitor) == []  # said once


def opened(pid: int) -> JvmMonitor:
    monitor = JvmMonitor()
    monitor.open(Jvms((Root("api", 1, pid),)))
    return monitor


# --- a real JVM ---------------------------------------------------------------------------------------------

SOURCE = """\
import java.lang.management.*;

public class Busy {
    static byte[][] kept = new byte[40][];

    public static void main(String[] arguments) throws Exception {
        for (int n = 0; n < 2000; n++) kept[n % 40] = new byte[500_000];
        System.gc();
        System.gc();
        long count = 0, millis = 0;
        for (GarbageCollectorMXBean bean : ManagementFactory.getGarbageCollectorMXBeans()) {
            count += bean.getCollectionCount();
            millis += bean.getCollectionTime();
        }
        System.out.println(count + " " + millis + " " + ManagementFactory.getThreadMXBean().getThreadCount());
        System.in.read();
    }
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("javac") is None or shutil.which("jstat") is None:
        pytest.skip("no JDK here")
    folder = tmp_path_factory.mktemp("busy")
    (folder / "Busy.java").write_text(SOURCE)
    subprocess.run(["javac", "Busy.java"], cwd=folder, check=True)
    return folder


@pytest.fixture
def jvm_of(program: Path) -> Iterator[list[subprocess.Popen[str]]]:
    """Processes to end after the test."""
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


def begin(started: list[subprocess.Popen[str]], program: Path, *command: str) -> list[int]:
    """Start it and return what its beans say once it has done its work: collections, ms, threads."""
    process = subprocess.Popen(
        [*command, "-cp", str(program), "Busy"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    started.append(process)
    assert process.stdout is not None
    return [int(word) for word in process.stdout.readline().split()]


def jstat(table: str, pid: int) -> dict[str, float]:
    """Numbers of one table that `jstat` prints, by the heads of its columns."""
    printed = subprocess.run(["jstat", table, str(pid)], check=True, capture_output=True, text=True).stdout
    columns = zip(*(line.split() for line in printed.splitlines()), strict=True)
    return {name: float(text) for name, text in columns if text != "-"}


@pytest.mark.slow
@pytest.mark.parametrize("collector", ["Serial", "Parallel", "G1"])
def test_a_real_jvm_is_read_as_jstat_and_its_beans_read_it(
    collector: str, program: Path, jvm_of: list[subprocess.Popen[str]]
) -> None:
    count, millis, threads = begin(jvm_of, program, "java", f"-XX:+Use{collector}GC", "-Xmx128m")
    pid = jvm_of[0].pid

    rows = read(opened(pid))

    stat = jstat("-gc", pid) | jstat("-gccapacity", pid)
    assert stat["FGC"] >= 2  # the two calls, and what the small heap needs
    assert value(rows, "collections", kind="young") == stat["YGC"]
    assert value(rows, "collections", kind="full") == stat["FGC"]
    assert value(rows, "collection_s", kind="young") == pytest.approx(stat["YGCT"], abs=0.0006)  # its digits
    assert value(rows, "collection_s", kind="full") == pytest.approx(stat["FGCT"], abs=0.0006)
    assert value(rows, "heap_bytes", id="old") / 1024 == pytest.approx(stat["OU"], abs=0.06)
    assert value(rows, "heap_capacity_bytes") / 1024 == pytest.approx(stat["NGC"] + stat["OGC"], abs=0.1)
    most = stat["OGCMX"] + (stat["NGCMX"] if collector != "G1" else 0)  # there each may have all of it
    assert value(rows, "heap_most_bytes") / 1024 == pytest.approx(most, abs=0.1)
    assert most == pytest.approx(128 << 10, rel=0.01)
    times = [value(rows, "collection_s", kind=kind) for kind in ("young", "full")]
    assert sum(stat[name] for name in ("YGC", "FGC")) == count
    assert 1000 * sum(times) == pytest.approx(millis, abs=2 * count + 1)  # beans add up whole milliseconds
    assert sum(times) <= value(rows, "at_safepoint_s")
    assert value(rows, "live_threads") >= threads
    assert value(rows, "compiling_s") > 0


@pytest.mark.slow
def test_a_jvm_in_a_container_is_found_by_the_pid_that_it_has_there(
    program: Path, jvm_of: list[subprocess.Popen[str]]
) -> None:
    inside = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c"]
    own_tmp = 'mount -t tmpfs none "$1" && '
    if subprocess.run(
        [*inside, f"{own_tmp} true", "sh", "/tmp"], capture_output=True, check=False
    ).returncode:
        pytest.skip("no namespaces here")
    elsewhere = program.parent / "mounted"
    elsewhere.mkdir(exist_ok=True)
    script = f'cp "$2"/Busy.class /var/tmp/ 2>/dev/null; {own_tmp} mkdir -p "$2" && '
    script += 'mv /var/tmp/Busy.class "$2"/ && exec java -XX:+UseSerialGC -Xmx64m -cp "$2" Busy'
    process = subprocess.Popen(
        [*inside, script, "sh", "/tmp", str(program)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    jvm_of.append(process)
    assert process.stdout is not None
    count = int(process.stdout.readline().split()[0])

    rows = read(opened(process.pid))  # `unshare` itself; the JVM is its child, with pid 1 inside

    assert sum(values(rows, "collections")) == count


@pytest.mark.slow
def test_a_jvm_without_counters_is_said_to_have_none(
    program: Path, jvm_of: list[subprocess.Popen[str]]
) -> None:
    begin(jvm_of, program, "java", "-XX:-UsePerfData", "-Xmx64m")

    (row,) = read(opened(jvm_of[0].pid))

    assert row.metric == "missed"
    assert "UsePerfData" in row.labels
