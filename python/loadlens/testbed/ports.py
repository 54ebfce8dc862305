"""Free TCP ports for the services, each handed out once on this machine.

Ports are taken from below the kernel's ephemeral range, so that no outgoing connection (the generator
opens many) takes a port between its choice and the moment the service binds it. A socket name in the abstract
namespace reserves each port against other labs; the kernel frees the name when the lab dies.
"""

from __future__ import annotations

import errno
import random
import socket

from loadlens.errors import TestbedError

HOST = "127.0.0.1"
_LOWEST = 10_000
_ATTEMPTS = 2_000


class Ports:
    """Ports held by one testbed."""

    def __init__(self) -> None:
        self._claims: dict[int, socket.socket] = {}

    def take(self) -> int:
        """Return a port without a listener that no other lab has reserved.

        Raises:
            TestbedError: No port is free.
        """
        low, high = _candidates()
        for _ in range(_ATTEMPTS):
            port = random.randrange(low, high)
            claim = _claim(port)
            if claim is None:
                continue
            if not is_free(port):
                claim.close()
                continue
            self._claims[port] = claim
            return port
        raise TestbedError(
            f"no free TCP port between {low} and {high}", hint="list the processes that hold them: ss -ltnp"
        )

    def release(self) -> None:
        """Give all ports back."""
        for claim in self._claims.values():
            claim.close()
        self._claims.clear()


def is_free(port: int) -> bool:
    """True if a service could bind the port now."""
    for address in (HOST, ""):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            # as servers do: only a listener counts, not an earlier listener's connections in TIME_WAIT
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((address, port))
            except OSError as error:
                if error.errno in (errno.EADDRINUSE, errno.EACCES):
                    return False
                raise
    return True


def _claim(port: int) -> socket.socket | None:
    """Reserve the port among all labs of this network namespace; None if another lab has it."""
    claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        claim.bind(f"\0loadlens-port-{port}")
    except OSError as error:
        claim.close()
        if error.errno != errno.EADDRINUSE:
            raise
        return None
    return claim


def _candidates() -> tuple[int, int]:
    """Return the range to choose from: below the ephemeral ports, or up to 65,535 if those begin too low."""
    try:
        with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as file:
            ephemeral = int(file.read().split()[0])
    except OSError:
        ephemeral = 32_768
    return (_LOWEST, ephemeral) if ephemeral >= _LOWEST + 1_000 else (_LOWEST, 65_536)
