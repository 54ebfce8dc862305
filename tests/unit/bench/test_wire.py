"""When packets passed the loopback device, by the kernel's stamps."""

from __future__ import annotations

import os
import socket
import time

import pytest
from benches.wire import arrivals_ns

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root may see packets")


def test_every_packet_with_bytes_is_stamped_between_the_calls_that_sent_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with arrivals_ns(port) as times, socket.create_connection(("127.0.0.1", port)) as client:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            peer, _ = server.accept()
            calls = []
            for _ in range(20):
                before = time.time_ns()
                client.sendall(b"some bytes")
                calls.append((before, time.time_ns()))
                time.sleep(0.001)
            peer.sendall(
                b"an answer, which is not for the port"
            )  # neither are handshake and acknowledgements
            client.recv(100)
            peer.close()
    assert len(times) == 20
    for seen, (before, after) in zip(sorted(times), calls, strict=True):
        assert before <= seen <= after
