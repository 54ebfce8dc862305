"""Warnings for a watched process that does not listen on the port."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

from loadlens.search import pid_check


def test_a_process_that_listens_is_the_right_one() -> None:
    with socket.create_server(("127.0.0.1", 0)) as own:
        assert pid_check.caution([os.getpid()], own.getsockname()[1]) is None


def test_a_process_whose_child_listens_is_the_right_one() -> None:
    code = (
        "import socket, sys\n"
        "own = socket.create_server(('::1', 0), family=socket.AF_INET6)\n"
        "print(own.getsockname()[1], flush=True)\nsys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        port = int(child.stdout.readline())

        assert pid_check.caution([os.getpid()], port) is None
        assert child.stdin is not None
        child.stdin.close()


def test_a_process_that_does_not_listen_there_is_named() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        with socket.create_server(("127.0.0.1", 0)) as own:
            port = own.getsockname()[1]
            warning = pid_check.caution([other.pid], port)
        assert other.stdin is not None
        other.stdin.close()

    assert warning is not None
    assert f"process {other.pid} and what it started do not listen on port {port}" in warning


def test_a_port_that_nobody_here_listens_on_says_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as own:
        port = own.getsockname()[1]

    assert pid_check.caution([os.getpid()], port) is None


def test_a_process_that_has_ended_is_named() -> None:
    with subprocess.Popen(["true"]) as other:
        pass

    assert pid_check.ended([os.getpid()]) is None
    assert pid_check.ended([os.getpid(), other.pid]) == (
        f"process {other.pid} of the service ended during the search: its log may say why"
    )
    assert not pid_check.has_ended([os.getpid(), other.pid])


def test_a_service_without_a_process_has_ended_and_one_that_is_not_known_has_not() -> None:
    with subprocess.Popen(["true"]) as other:
        pass

    assert pid_check.has_ended([other.pid])
    assert not pid_check.has_ended([])
