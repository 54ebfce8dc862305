"""Processes that listen on a port, against processes that do so."""

from __future__ import annotations

import ipaddress
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from loadlens.machine.listening_sockets import (
    Listening,
    is_on_this_machine,
    jvm_start,
    listening_on,
    name_of,
)

LOOPBACK = ipaddress.ip_address("127.0.0.1")
LISTEN = """
import os, socket, sys, time
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
own = socket.create_server((sys.argv[1], int(sys.argv[2])), family=family)
if sys.argv[3:] and sys.argv[3] != "fork":
    with open("/proc/self/comm", "w") as name:
        name.write(sys.argv[3])
if sys.argv[3:] == ["fork"]:
    if not os.fork():
        time.sleep(60)
print(own.getsockname()[1], flush=True)
sys.stdin.read()
if sys.argv[3:] == ["fork"]:
    os.killpg(0, 9)
"""


@contextmanager
def listener(*arguments: str, before: tuple[str, ...] = ()) -> Iterator[tuple[int, int]]:
    """Run a process that listens; yield its pid and its port."""
    command = [*before, sys.executable, "-c", LISTEN, *arguments]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield process.pid, int(process.stdout.readline())
        finally:
            process.stdin.close()


@pytest.mark.parametrize(
    ("words", "start", "is_file"),
    [
        ("java -Xmx1g -cp a.jar:b.jar com.acme.Main x.y.Z", "com.acme.Main", False),
        ("java --add-opens a/b=ALL-UNNAMED -m shop/com.acme.Main", "shop/com.acme.Main", False),
        ("java -Dport=1 -jar libs/shop-1.2.jar run", "libs/shop-1.2.jar", True),
        ("java -jar target/ROOT.war --server.port=80", "target/ROOT.war", True),
        ("java --source 21 @options App.java", "App.java", True),
        ("java -version", "", False),
    ],
)
def test_what_a_jvm_starts_is_the_first_word_that_is_no_option(words: str, start: str, is_file: bool) -> None:
    assert jvm_start(words.split()) == (start, is_file)


@pytest.mark.skipif(shutil.which("java") is None, reason="no JVM here")
def test_a_jvm_is_named_with_the_file_or_class_that_it_runs(tmp_path: Path) -> None:
    source = tmp_path / "Waiting.java"
    source.write_text(
        "public class Waiting { public static void main(String[] a) throws Exception { "
        "System.out.println(1); System.in.read(); } }"
    )
    with subprocess.Popen(
        ["java", "-XX:TieredStopAtLevel=1", str(source)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        name = name_of(process.pid)
        process.stdin.close()

    assert name == "java Waiting.java"


def pids(discovered: Listening) -> list[int]:
    return [process.pid for process in discovered.processes]


def test_the_process_that_listens_is_found_by_its_port() -> None:
    with listener("127.0.0.1", "0") as (pid, port):
        discovered = listening_on({LOOPBACK}, port)

    assert pids(discovered) == [pid]
    assert discovered.is_open
    assert discovered.hidden_users == ()
    assert discovered.processes[0].name.startswith("python")


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_a_process_that_listens_on_all_addresses_is_found(host: str) -> None:
    with listener(host, "0") as (pid, port):
        assert pids(listening_on({LOOPBACK}, port)) == [pid]


def test_of_two_processes_on_a_port_the_one_with_the_exact_address_gets_the_connections() -> None:
    with listener("127.0.0.2", "0") as (_, port), listener("127.0.0.1", str(port)) as (pid, _):
        assert pids(listening_on({LOOPBACK}, port)) == [pid]


def test_a_worker_that_inherits_the_socket_is_part_of_its_parent() -> None:
    with listener("127.0.0.1", "0", "fork") as (pid, port):
        assert pids(listening_on({LOOPBACK}, port)) == [pid]


def test_an_ancestor_of_this_program_is_not_taken_for_the_service() -> None:
    code = (
        "import ipaddress, sys; from loadlens.machine.listening_sockets import listening_on;"
        "discovered = listening_on({ipaddress.ip_address('127.0.0.1')}, int(sys.argv[1]));"
        "print(discovered.is_open, discovered.processes)"
    )
    with socket.create_server(("127.0.0.1", 0)) as own:
        port = own.getsockname()[1]
        done = subprocess.run([sys.executable, "-c", code, str(port)], capture_output=True, text=True)

    assert done.stdout.split() == ["True", "()"], done.stderr


def test_a_port_without_a_listener_is_not_open() -> None:
    with socket.create_server(("127.0.0.1", 0)) as own:
        port = own.getsockname()[1]

    assert listening_on({LOOPBACK}, port) == Listening()


def test_a_program_that_passes_connections_on_is_not_taken_for_the_service() -> None:
    with listener("127.0.0.1", "0", "kubectl") as (pid, port):
        discovered = listening_on({LOOPBACK}, port)

    assert discovered.processes == ()
    assert discovered.forwarder is not None
    assert (discovered.forwarder.pid, discovered.forwarder.name) == (pid, "kubectl")


@pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("unshare") or not shutil.which("ip"),
    reason="a network of its own needs root, unshare and ip",
)
def test_behind_the_port_proxy_of_docker_the_process_in_the_container_is_found() -> None:
    # docker-proxy has the container's address among its options; a namespace with it is the container
    in_container = (
        "unshare",
        "--net",
        "sh",
        "-c",
        'ip addr add 10.99.0.7/32 dev lo; ip link set lo up; exec "$@"',
        "x",
    )
    options = ("-proto", "tcp", "-container-ip", "10.99.0.7", "-container-port", "8099")
    with (
        listener("0.0.0.0", "8099", before=in_container) as (pid, _),
        listener("127.0.0.1", "0", "docker-proxy", *options) as (_, port),
    ):
        discovered = listening_on({LOOPBACK}, port)

    assert pids(discovered) == [pid]
    assert discovered.forwarder is None


@pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("unshare") or not shutil.which("ip"),
    reason="a network of its own needs root, unshare and ip",
)
def test_the_process_at_the_address_of_a_container_is_found_on_this_machine() -> None:
    in_container = (
        "unshare",
        "--net",
        "sh",
        "-c",
        'ip addr add 10.99.0.8/32 dev lo; ip link set lo up; exec "$@"',
        "x",
    )
    address = ipaddress.ip_address("10.99.0.8")
    with listener("0.0.0.0", "8099", before=in_container) as (pid, port):
        discovered = listening_on({address}, port)
        is_here = is_on_this_machine(address)

    assert pids(discovered) == [pid]
    assert is_here
    assert not is_on_this_machine(address)  # the container has ended


def test_an_address_of_nothing_here_is_not_on_this_machine() -> None:
    # RFC 5737: addresses of documentation, which no machine has
    assert not is_on_this_machine(ipaddress.ip_address("198.51.100.7"))
    assert is_on_this_machine(LOOPBACK)
    assert not listening_on({ipaddress.ip_address("198.51.100.7")}, 80).is_open
