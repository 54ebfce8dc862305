"""Reading another process: what cannot be read, threads that stop and go on, and tables that are cut."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from loadlens.signals.collect.threads import NotRead, memory
from loadlens.signals.collect.threads.memory import Memory, stopped, thread_of
from loadlens.signals.collect.threads.python_tasks import _lines

COMPUTES = "import sys; print(flush=True)\nwhile True: pass"


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.fixture
def computing() -> object:
    process = subprocess.Popen([sys.executable, "-c", COMPUTES], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_what_is_not_there_is_not_read() -> None:
    own = Memory(os.getpid())

    for address, size in ((0, 8), (1 << 62, 8), (1 << 63, 8), (id(own), 1 << 50)):
        with pytest.raises(NotRead):
            own.read(address, size)
    assert own.words(id(own) + 8, 1) == (id(Memory),)  # the type of an object
    own.close()
    own.close()


def test_a_thread_is_stopped_for_as_long_as_it_is_looked_at(computing: subprocess.Popen[bytes]) -> None:
    with stopped(computing.pid) as (instruction, stack):
        assert state_of(computing.pid) == "t"
        assert instruction > 0
        assert stack > 0

    assert state_of(computing.pid) in "RS"


def test_a_thread_that_stops_too_late_goes_on(
    computing: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "WITHIN_S", 0.0)

    for _ in range(3):
        with pytest.raises(NotRead, match="did not stop"), stopped(computing.pid):
            pass

    assert state_of(computing.pid) in "RS"


def test_a_thread_that_has_ended_is_not_stopped() -> None:
    process = subprocess.Popen(["true"])
    process.wait()

    with pytest.raises(NotRead), stopped(process.pid):
        pass


def test_a_thread_has_the_same_number_here_and_in_its_own_namespace() -> None:
    ends = threading.Event()
    thread = threading.Thread(target=ends.wait)
    thread.start()
    number = thread.native_id
    assert number is not None

    assert thread_of(os.getpid(), number) == number
    ends.set()
    thread.join()
    for _ in range(100):
        if not Path(f"/proc/{os.getpid()}/task/{number}").exists():
            break
        time.sleep(0.01)
    with pytest.raises(NotRead):
        thread_of(os.getpid(), number)


def test_the_table_of_lines_is_that_of_the_code() -> None:
    code = compile("a = 1\n\n\nb = (2 +\n  a)\nfor i in b:\n    a\n", "x", "exec")

    ends = list(_lines(code.co_linetable, code.co_firstlineno))

    lines = {at: line for begin, end, line in code.co_lines() for at in range(begin, end) if line}
    assert len(lines) > 10
    for at, line in lines.items():
        assert next(of for end, of in ends if at < end) == line
