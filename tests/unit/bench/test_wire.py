"""When packets passed the loopback device, by the kernel's stamps."""

from __future__ import annotations

import os
import socket
import struct
import threading
import time

import pytest
from benches.wire import arrivals_ns

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root may see packets")


def retransmitted(connection: socket.socket) -> int:
    """Segments that the kernel sent again: tcpi_total_retrans of linux/tcp.h."""
    (count,) = struct.unpack_from(
        "I", connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104), 8 + 23 * 4
    )
    return int(count)


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
            sent_again = retransmitted(client)  # a probe of the stream's end, where the machine stalls
            peer.close()
    assert len(times) == 20 + sent_again
    for before, after in calls:
        assert any(before <= seen <= after for seen in times)


def test_reading_ends_though_other_programs_are_never_silent() -> None:
    has_ended = threading.Event()

    def chatter() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
            own.bind(("127.0.0.1", 0))
            for _ in range(2_000):
                own.sendto(b"any", own.getsockname())
                if has_ended.wait(0.01):
                    return

    other = threading.Thread(target=chatter)
    other.start()
    with arrivals_ns(1):
        pass
    is_talking = other.is_alive()
    has_ended.set()
    other.join()

    assert is_talking
