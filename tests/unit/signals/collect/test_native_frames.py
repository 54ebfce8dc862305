"""Samples of perf of a real program, whose source says where it is, and what perf says where it refuses."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from loadlens.machine.listening_sockets import with_descendants
from loadlens.model.stacks import Frame
from loadlens.signals.collect.threads import NotRead, native_frames
from tests.end_to_end.testbed_cases import is_alive, still_there
from tests.unit.signals.collect.test_monitor import read
from tests.unit.signals.collect.test_stacks import opened, places

SOURCE = """\
#include <unistd.h>
static volatile unsigned long sum;
static void spin(void) {
    for (;;) sum = sum * 33 + 1; // computes
}
int main(void) {
    write(1, "ready\\n", 6);
    spin();
}
"""


@pytest.mark.skipif(not (shutil.which("perf") and shutil.which("cc")), reason="no perf or no compiler here")
def test_a_native_program_is_at_the_line_that_computes(tmp_path: Path) -> None:
    source, program = tmp_path / "spin.c", tmp_path / "spin"
    source.write_text(SOURCE)
    subprocess.run(["cc", "-O1", "-g", "-o", program, source], check=True)
    process = subprocess.Popen([program], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        monitor = opened(process.pid)
        rows = []
        for _ in range(20):
            rows += read(monitor)
            time.sleep(0.02)
        rows += read(monitor, last=True)
    finally:
        process.kill()
        process.wait()

    (seen,) = places(rows, process.pid).values()
    (line,) = (n for n, text in enumerate(SOURCE.splitlines(), 1) if text.endswith("// computes"))
    assert (line, "", True) in seen


@pytest.mark.skipif(shutil.which("perf") is None, reason="no perf here")
def test_perf_ends_when_the_monitors_are_killed() -> None:
    code = (
        "import sys, time; from loadlens.signals.collect.threads.native_frames import NativeProfiler\n"
        "NativeProfiler(int(sys.argv[1])).begin(); print('ready', flush=True); time.sleep(60)"
    )
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    monitors = subprocess.Popen([sys.executable, "-c", code, str(busy.pid)], stdout=subprocess.PIPE)
    try:
        assert monitors.stdout is not None
        is_ready = monitors.stdout.readline() == b"ready\n"
        started = with_descendants([monitors.pid]) - {monitors.pid}
        monitors.kill()
        monitors.communicate()
        left = still_there(lambda: [pid for pid in started if is_alive(pid)], within_s=3.0)
    finally:
        busy.kill()  # with it perf ends in any case
        busy.wait()

    assert is_ready
    assert started
    assert left == []


def test_frames_outside_of_the_program_keep_their_names_and_unknown_ones_are_left_out() -> None:
    text = """\
  815  4497.553370136:
\t          17247 core::hash (/srv/gone)
\te8ff8148c88948fa [unknown] ([unknown])

  815  4497.563370136:
\t          91a39 __libc_read (/usr/lib/libc.so.6)
\t            270 work(int, char) (/srv/gone)
"""

    profile = native_frames.parse(text, Path("/srv/gone"))

    assert profile.only_running
    assert profile.stacks[815] == [
        (4497553370136, (Frame("core::hash", "gone", "", 0),)),
        (
            4497563370136,
            (Frame("work(int, char)", "gone", "", 0), Frame("__libc_read", "libc.so.6", "", 0)),
        ),
    ]


@pytest.mark.parametrize(
    ("complaint", "why"),
    [
        ("Access to performance monitoring is limited: adjust perf_event_paranoid", "perf is not permitted"),
        ("\nfailed to mmap\n", "perf: failed to mmap"),
    ],
)
def test_what_perf_refuses_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, complaint: str, why: str
) -> None:
    program = tmp_path / "perf"
    program.write_text(f"#!{sys.executable}\nimport sys\nsys.exit({complaint!r})\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(NotRead, match=f"^{why}$"):
        native_frames.NativeProfiler(1).begin()


def test_a_machine_without_perf_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")

    with pytest.raises(NotRead, match=r"^perf is not installed$"):
        native_frames.NativeProfiler(1).begin()
