"""Free ports, each handed out once."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from loadlens.errors import TestbedError
from loadlens.testbed import ports as tcp


@pytest.fixture
def ports() -> Iterator[tcp.Ports]:
    held = tcp.Ports()
    yield held
    held.release()


def test_ports_are_distinct_free_and_outside_the_ephemeral_range(ports: tcp.Ports) -> None:
    ephemeral = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])

    taken = [ports.take() for _ in range(50)]

    assert len(set(taken)) == 50
    assert all(tcp.is_free(port) for port in taken)
    assert all(port < ephemeral for port in taken) or ephemeral < 11_000


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0"])
def test_a_port_with_a_listener_is_not_free(address: str) -> None:
    with socket.create_server((address, 0)) as server:
        port = server.getsockname()[1]

        assert not tcp.is_free(port)

    assert tcp.is_free(port)


def test_a_port_that_one_holds_is_not_handed_to_another_until_it_is_released(
    ports: tcp.Ports, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = ports.take()
    monkeypatch.setattr(tcp, "_candidates", lambda: (port, port + 1))  # nothing else to choose from
    other = tcp.Ports()

    with pytest.raises(TestbedError, match="no free TCP port"):
        other.take()
    ports.release()
    again = other.take()
    other.release()

    assert again == port
