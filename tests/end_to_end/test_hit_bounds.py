"""Whatever a server sends, and however long it keeps silent: `hit` stays small and ends on time."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from benches.measuring import Origin

from tests.end_to_end.hitting import LIMIT_S, ended, spawned

CONNECTIONS = 20
BOUND_KIB = 64 * 1024 + 64 * CONNECTIONS  # the promise: 64 MiB, and 64 KiB per connection


def peak_kib(process: subprocess.Popen[str]) -> int:
    """The most memory that a process had at once, read until it ends."""
    peak, status = 0, Path(f"/proc/{process.pid}/status")
    until = time.monotonic() + LIMIT_S
    while process.poll() is None and time.monotonic() < until:
        match = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
        peak = max(peak, int(match[1]) if match else 0)  # a process that has just ended has no such line
        time.sleep(0.01)
    return peak


@pytest.mark.parametrize(
    "behaviour",
    [
        "body_endless",  # chunks without end
        "body_endless_no_length",
        "headers_endless",
        "header_endless",
        "garbage_endless",
        "interim_endless",
        "chunked_trailer_endless",
        "reset_in_body",  # as many failures as fit into the time
    ],
)
def test_memory_is_bounded_whatever_the_server_sends(server: Origin, behaviour: str) -> None:
    load = ("-c", str(CONNECTIONS), "-d", "1s", "--timeout", "500ms")
    url = f"http://127.0.0.1:{server.port}/bad/{behaviour}"
    process = spawned(url, *load)

    peak = peak_kib(process)
    result = ended(process, 3, 4)  # 4: a server that sends without end can leave the generator no core

    assert result["requests"]["ok"] == 0
    assert all(len(error["samples"]) <= 20 for error in result["errors"].values())
    assert 0 < peak < BOUND_KIB, f"{peak} KiB"


def test_a_body_of_a_gibibyte_is_counted_and_not_kept(server: Origin) -> None:
    # A server of our own: the longest body that the origin knows is 64 MiB.
    serving = """
import socket
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
listener.accept()  # the one connection before the load
peer, _ = listener.accept()
peer.recv(65536)
peer.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n" % (1 << 30))
piece = bytes(1 << 20)
for _ in range(1 << 10):
    peer.sendall(piece)
peer.recv(1)
"""
    with subprocess.Popen([sys.executable, "-c", serving], stdout=subprocess.PIPE, text=True) as giant:
        assert giant.stdout is not None
        url = f"http://127.0.0.1:{int(giant.stdout.readline())}/"
        process = spawned(url, "-c", "1", "-n", "1")

        peak = peak_kib(process)
        result = ended(process)

    assert (result["requests"]["ok"], result["bytes"]["in_body"]) == (1, 1 << 30)
    assert 0 < peak < BOUND_KIB, f"{peak} KiB"
