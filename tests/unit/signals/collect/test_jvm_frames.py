"""Frames of a JVM: from a dump that is written by hand, and of a real one whose source is known."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from loadlens.model.stacks import Frame
from loadlens.signals.collect.threads import NotRead, jvm_frames

DUMP = """\
2026-11-26 02:30:00
Full thread dump OpenJDK 64-Bit Server VM (17.0.15+6 mixed mode, sharing):

"http-nio-8080-exec-1" #31 daemon prio=5 os_prio=0 cpu=1.2ms tid=0x00007f01 nid=0x2a waiting [0x1]
   java.lang.Thread.State: TIMED_WAITING (sleeping)
\tat java.lang.Thread.sleep(java.base@17.0.15/Native Method)
\tat com.acme.shop.db.Orders.query(Orders.java:41)
\t- locked <0x00000000e0> (a java.lang.Object)
\tat com.acme.shop.App$$Lambda$3/0x00007f00c0001000.run(Unknown Source)
\tat org.apache.tomcat.util.net.NioEndpoint.doRun(NioEndpoint.java:1800)

"waiter" #32 prio=5 os_prio=0 cpu=0.1ms elapsed=5.6s tid=0x00007f02 nid=43 waiting for monitor entry [0x1]
   java.lang.Thread.State: BLOCKED (on object monitor)
\tat com.acme.shop.App.waits(App.java:6)
\t- waiting to lock <0x00000000e0> (a java.lang.Object)

"computes" #33 prio=5 os_prio=0 cpu=9.1ms elapsed=5.6s tid=0x00007f04 nid=45 runnable [0x1]
   java.lang.Thread.State: RUNNABLE
\tat com.acme.shop.App.ranks(App.java:18)
\tat java.util.Arrays.sort(java.base@17.0.15/Arrays.java:7)

"reads" #34 prio=5 os_prio=0 cpu=0.1ms elapsed=5.6s tid=0x00007f05 nid=46 runnable [0x1]
   java.lang.Thread.State: RUNNABLE
\tat sun.nio.ch.SocketDispatcher.read0(java.base@17.0.15/Native Method)
\tat com.acme.shop.App.asks(App.java:20)

"initialises" #35 prio=5 os_prio=0 cpu=0.1ms elapsed=5.6s tid=0x00007f06 nid=47 waiting on condition [0x1]
   java.lang.Thread.State: RUNNABLE
\tat com.acme.shop.App.first(App.java:22)
\t- waiting on the Class initialization monitor for com.acme.shop.Rates

"ForkJoinPool-1-worker-1" #36 [48] daemon prio=5 os_prio=0 cpu=3.1ms tid=0x00007f07 [0x00007f08]
   Carrying virtual thread #29
\tat jdk.internal.vm.Continuation.run(java.base@21.0.1/Continuation.java:248)
   Mounted virtual thread #29
\tat com.acme.shop.App.ranks(App.java:18)

"GC Thread#0" os_prio=0 cpu=3.09ms elapsed=5.67s tid=0x00007f03 nid=0x2c runnable

JNI global refs: 15, weak refs: 0
"""


def test_a_dump_is_read_with_its_lines_and_the_package_of_the_service_is_its_own_code() -> None:
    threads = jvm_frames.parse(DUMP, "com.acme.shop.")

    assert threads.names[42] == "http-nio-8080-exec-1"
    assert threads.names[44] == "GC Thread#0"
    assert threads.waits == {42: "timer", 43: "lock", 47: "lock"}
    # stopped by the dump alone; what a native method waits for is not said
    assert threads.running == {42: False, 43: False, 45: True, 48: True}
    assert threads.stacks.keys() == {42, 43, 45, 46, 47, 48}
    assert [frame.line for frame in threads.stacks[48]] == [18]
    assert threads.stacks[42][-2:] == (
        Frame("query", "com.acme.shop.db.Orders", "com/acme/shop/db/Orders.java", 41, is_own=True),
        Frame("sleep", "java.lang.Thread", "java/lang/Native Method", 0),
    )
    assert [frame.is_own for frame in threads.stacks[42]] == [False, False, True, False]
    assert threads.stacks[43] == (
        Frame("waits", "com.acme.shop.App", "com/acme/shop/App.java", 6, is_own=True),
    )


@pytest.mark.parametrize(
    ("command", "own"),
    [
        (("java", "-Xmx1g", "-cp", "a.jar:b.jar", "com.acme.Main", "x.y.Z"), "com.acme."),
        (("java", "--add-opens", "a/b=ALL-UNNAMED", "-m", "shop/com.acme.web.Main"), "com.acme.web."),
        (("java", "Main"), ""),
        (("java", "-version"), None),
        (("java", "-jar", "gone.jar"), None),
        (("java", "-jar", "plain.jar"), "com.acme."),
        (("java", "-jar", "spring.jar"), "com.acme.shop."),
        (("java", "-jar", "spring.war"), "com.acme.shop."),
        (("java", "src/App.java"), ""),
    ],
)
def test_own_code_is_the_package_of_the_main_class(
    command: tuple[str, ...], own: str | None, tmp_path: Path
) -> None:
    for name, manifest in {
        "plain.jar": "Manifest-Version: 1.0\r\nMain-Class: com.acme.Ma\r\n in\r\n",
        "spring.jar": "Main-Class: org.springframework.boot.loader.launch.JarLauncher\r\n"
        "Start-Class: com.acme.shop.Application\r\n",
        "spring.war": "Start-Class: com.acme.shop.Application\r\n",
    }.items():
        with zipfile.ZipFile(tmp_path / name, "w") as jar:
            jar.writestr("META-INF/MANIFEST.MF", manifest)

    assert jvm_frames.own_package(command, tmp_path) == own


SOURCE = """\
package com.acme.shop;

import java.util.concurrent.locks.ReentrantLock;

public class App {
    static final ReentrantLock lock = new ReentrantLock();
    static double x;

    static void sleeps() throws Exception {
        Thread.sleep(60000);
    }

    static void waits() {
        lock.lock();
    }

    static void computes() {
        while (true) x += Math.sqrt(x + 1);
    }

    public static void main(String[] arguments) throws Exception {
        lock.lock();
        new Thread(App::waits, "waits").start();
        new Thread(App::computes, "computes").start();
        System.out.println("ready");
        sleeps();
    }
}
"""


@pytest.fixture(scope="module")
def jvm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    if shutil.which("javac") is None:
        pytest.skip("no JDK here")
    folder = tmp_path_factory.mktemp("jvm")
    source = folder / "src/com/acme/shop/App.java"
    source.parent.mkdir(parents=True)
    source.write_text(SOURCE)
    subprocess.run(["javac", "-d", str(folder), str(source)], check=True)
    process = subprocess.Popen(
        ["java", "-cp", ".", "com.acme.shop.App"], cwd=folder, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process.pid
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow
def test_threads_of_a_real_jvm_are_at_the_lines_that_their_source_says(jvm: int) -> None:
    reader = jvm_frames.reader_of(jvm)
    assert reader is not None
    wanted = {"main": "Thread.sleep(60000);", "waits": "lock.lock();", "computes": "while (true)"}

    for _ in range(100):  # until each thread has come to its line
        threads = reader.read()
        own = {
            threads.names[tid]: next(frame for frame in reversed(stack) if frame.is_own)
            for tid, stack in threads.stacks.items()
            if any(frame.is_own for frame in stack)
        }
        if own.keys() == wanted.keys():
            break
        time.sleep(0.05)

    for name, frame in own.items():
        text = SOURCE.splitlines()[frame.line - 1].strip()
        assert text.startswith(wanted[name])
        assert any(path.is_file() and path.read_text() == SOURCE for path in reader.sources(frame))
    tids = {int(path.name) for path in Path(f"/proc/{jvm}/task").iterdir()}
    assert threads.names.keys() <= tids


@pytest.mark.slow
def test_asking_a_jvm_leaves_no_file_behind(jvm: int) -> None:
    reader = jvm_frames.reader_of(jvm)
    assert reader is not None
    reader.read()

    folders = (Path(f"/proc/{jvm}/cwd"), Path("/tmp"))
    assert [path for folder in folders for path in folder.glob(f".attach_pid{jvm}")] == []


def test_a_process_that_would_die_of_the_question_is_not_asked() -> None:
    process = subprocess.Popen(["sleep", "60"])  # takes no SIGQUIT, as a JVM with -Xrs
    try:
        with pytest.raises(NotRead, match="SIGQUIT"):
            jvm_frames.JvmReader(process.pid).read()
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()


def test_other_processes_are_no_jvm() -> None:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        assert jvm_frames.reader_of(process.pid) is None
    finally:
        process.kill()
        process.wait()
