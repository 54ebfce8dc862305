"""Processes that a process calls, against processes that connect to each other."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from loadlens.machine.peers import Peers

# It listens at its first address, and connects to one for each line that it reads; a path is one of AF_UNIX.
PROGRAM = """
import os, socket, sys
def place(text):
    return (socket.AF_UNIX, text) if "/" in text else (socket.AF_INET, ("127.0.0.1", int(text)))
family, address = place(sys.argv[1])
listener = socket.socket(family)
listener.bind(address)
listener.listen()
with open("/proc/self/comm", "w") as name:
    name.write(sys.argv[2])
port = listener.getsockname()
print(port[1] if family == socket.AF_INET else port, flush=True)
kept = []
for line in sys.stdin:
    word, _, to = line.strip().partition(" ")
    if word == "fork":
        if os.fork():
            continue  # the child answers
        word = "call"
    if word == "accept":
        kept.append(listener.accept())
    if word == "call":
        family, address = place(to)
        kept.append(socket.socket(family))
        kept[-1].connect(address)
    if word == "close":
        kept.pop().close()
    print("done", flush=True)
    if word == "call" and os.getpid() != os.getpgrp():
        break
import time
time.sleep(60)
"""

ANYONES = shutil.which("python3", path="/usr/bin:/bin")  # that every user may run


@dataclass
class Program:
    process: subprocess.Popen[str]
    place: str

    @property
    def pid(self) -> int:
        return self.process.pid

    def do(self, line: str) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        self.process.stdout.readline()


class Programs:
    """Programs of a test, ended with it."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack

    def start(self, name: str, place: str = "0", user: int | None = None) -> Program:
        process = self._stack.enter_context(
            subprocess.Popen(
                [str(ANYONES) if user else sys.executable, "-c", PROGRAM, place, name],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                start_new_session=True,
                user=user,
            )
        )
        self._stack.callback(os.killpg, process.pid, 9)
        assert process.stdout is not None
        return Program(process, process.stdout.readline().strip())


@pytest.fixture
def programs() -> Iterator[Programs]:
    with ExitStack() as stack:
        yield Programs(stack)


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="loadlens-test-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def called(*pids: int) -> list[tuple[int, str]]:
    peers = Peers(pids)
    peers.look()
    return [(process.pid, process.name) for process in peers.processes.values()]


def test_a_process_that_listens_where_a_connection_leads_to_is_called(programs: Programs) -> None:
    app, database = programs.start("app"), programs.start("database")
    app.do(f"call {database.place}")

    assert called(app.pid) == [(database.pid, "database")]
    assert called(database.pid) == []  # who connects to it is not called by it


def test_a_socket_of_the_file_system_leads_to_who_listens_there(programs: Programs, folder: Path) -> None:
    app, database = programs.start("app"), programs.start("database", str(folder / "socket"))
    app.do(f"call {database.place}")
    database.do("accept")

    assert called(app.pid) == [(database.pid, "database")]
    assert called(database.pid) == []


def test_what_a_worker_calls_the_service_calls_and_what_is_called_calls_in_turn(programs: Programs) -> None:
    app, middle, last = programs.start("app"), programs.start("middle"), programs.start("last")
    app.do(f"fork {middle.place}")
    middle.do(f"call {last.place}")

    assert called(app.pid) == [(middle.pid, "middle"), (last.pid, "last")]


def test_only_what_a_proxy_itself_calls_has_the_code_of_the_service(programs: Programs) -> None:
    proxy, app, database = programs.start("nginx"), programs.start("app"), programs.start("database")
    proxy.do(f"call {app.place}")
    app.do(f"call {database.place}")
    behind_proxy, behind_app = Peers((proxy.pid,)), Peers((app.pid,))
    behind_proxy.look()
    behind_app.look()

    assert list(behind_proxy.processes) == [app.pid, database.pid]
    assert behind_proxy.has_code == {app.pid}
    assert behind_app.has_code == set()


def test_a_connection_of_a_moment_is_seen_by_a_look_in_that_moment(programs: Programs) -> None:
    app, database = programs.start("app"), programs.start("database")
    peers = Peers((app.pid,))
    peers.look()
    assert peers.processes == {}

    app.do(f"call {database.place}")
    peers.look()
    app.do("close")
    peers.look()

    assert list(peers.processes) == [database.pid]


def test_connections_that_last_10_ms_are_seen_while_it_looks(programs: Programs) -> None:
    app, database = programs.start("app"), programs.start("database")
    peers = Peers((app.pid,))

    with peers.looking():
        for _ in range(300):
            app.do(f"call {database.place}")
            time.sleep(0.01)
            app.do("close")
            if peers.processes:
                break
            time.sleep(0.02)

    assert list(peers.processes) == [database.pid]


def test_programs_that_call_each_other_are_named_once(programs: Programs) -> None:
    app, other = programs.start("app"), programs.start("other")
    app.do(f"call {other.place}")
    other.do(f"call {app.place}")

    assert called(app.pid) == [(other.pid, "other")]


@pytest.mark.skipif(os.geteuid() != 0 or ANYONES is None, reason="needs processes of two users")
def test_a_process_of_another_user_is_known_by_its_owner(
    programs: Programs, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = programs.start("app")
    folder.chmod(0o777)
    database = programs.start("database", str(folder / "socket"), user=64_321)
    by_port = programs.start("cache", user=64_322)
    app.do(f"call {database.place}")
    database.do("accept")
    app.do(f"call {by_port.place}")

    from loadlens.machine import listening_sockets

    look = listening_sockets.sockets_of

    def hidden(pid: int, first: int = 0) -> set[str] | None:
        return None if pid in (database.pid, by_port.pid) else look(pid, first)

    monkeypatch.setattr(listening_sockets, "sockets_of", hidden)
    assert sorted(called(app.pid)) == sorted([(database.pid, "database"), (by_port.pid, "cache")])
