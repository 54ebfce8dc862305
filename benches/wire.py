"""Times of requests on the wire: the kernel's own stamps, independent of when a process reads them."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Iterator, Sequence

_ETH_P_IP = 0x0800
_SO_TIMESTAMPNS = 35
_TIMESPEC = struct.Struct("@ll")
_ETHERNET = 14  # bytes, which loopback has too
_STAMPED_WITHIN_S = 5.0
_ROOM = 1 << 25  # bytes of the socket's buffer


@contextlib.contextmanager
def arrivals_ns(port: int) -> Iterator[list[int]]:
    """Collect, while the block runs, when each packet with bytes for `port` passed the loopback device.

    Needs the right to see packets (root); PermissionError without it. On loopback a packet passes on the
    sender's core, so the stamp holds neither the server's waking nor its queue. A request is one packet where
    it is sent at once and is smaller than the device's largest packet, as the requests of these benches are.
    """
    seen: list[int] = []
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_IP)) as tap:
        tap.bind(("lo", _ETH_P_IP))
        tap.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        tap.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _ROOM)
        tap.settimeout(0.1)
        _wait_for_stamps(tap)
        ends_ns: list[int] = []
        reader = threading.Thread(target=_read, args=(tap, port, seen, ends_ns))
        reader.start()
        try:
            yield seen
        finally:
            ends_ns.append(time.time_ns())
            reader.join()


def _wait_for_stamps(tap: socket.socket) -> None:
    """Send packets to ourselves until one is stamped as it passes.

    The kernel begins to stamp some time after it was asked (net_enable_timestamp); until then a packet has
    the time at which it was read.
    """
    until = time.monotonic() + _STAMPED_WITHIN_S
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
        own.bind(("127.0.0.1", 0))
        port = own.getsockname()[1]
        while time.monotonic() < until:
            before = time.time_ns()
            own.sendto(b"any", ("127.0.0.1", port))
            after = time.time_ns()
            while True:
                packet, notes, _, (_, _, kind, _, _) = tap.recvmsg(128, 64)
                ip = packet[_ETHERNET:]
                udp = ip[4 * (ip[0] & 15) :]
                is_own = ip[9] == socket.IPPROTO_UDP and int.from_bytes(udp[2:4]) == port
                if is_own and kind != socket.PACKET_OUTGOING:
                    break
            if before <= _stamp_ns(notes) <= after:
                return
    raise TimeoutError(f"the kernel stamped no packet within {_STAMPED_WITHIN_S:g} s")


def _stamp_ns(notes: list[tuple[int, int, bytes]]) -> int:
    seconds, nanoseconds = _TIMESPEC.unpack(notes[0][2][: _TIMESPEC.size])
    return int(seconds * 1_000_000_000 + nanoseconds)


def _read(tap: socket.socket, port: int, seen: list[int], ends_ns: Sequence[int]) -> None:
    """Read packets until one passed after the end, or none is left: other programs may never be silent."""
    while True:
        try:
            packet, notes, _, (_, _, kind, _, _) = tap.recvmsg(128, 64)
        except TimeoutError:
            if ends_ns:
                return
            continue
        if ends_ns and _stamp_ns(notes) > ends_ns[0]:
            return
        if kind != socket.PACKET_OUTGOING and _bytes_for(port, packet):
            seen.append(_stamp_ns(notes))


def _bytes_for(port: int, packet: bytes) -> int:
    """Number of TCP payload bytes that an IPv4 packet carries to `port`."""
    ip = packet[_ETHERNET:]
    header = 4 * (ip[0] & 15)
    tcp = ip[header:]
    if ip[9] != socket.IPPROTO_TCP or int.from_bytes(tcp[2:4]) != port:
        return 0
    return int.from_bytes(ip[2:4]) - header - 4 * (tcp[12] >> 4)
