"""TCP at the services' ports: full accept queues, connections by state; resets of the machine.

Sockets are asked for by netlink (sock_diag(7)): listeners at each tick, which is cheap, and connections as
often as a count may cost a fiftieth of a core: the kernel walks all connections of the machine for it.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

from loadlens.monitors.reading import NO_LABELS, Metric, Row, labels
from loadlens.monitors.scene import Scene

METRICS: Final = (
    Metric("accept_queue", "", "gauge", "connections that the service has not accepted yet"),
    Metric("accept_queue_bound", "", "gauge", "how many there may be: the listener's backlog, or somaxconn"),
    Metric(
        "listen_drops",
        "",
        "counter",
        "segments of new connections that the listener threw away, most often because its queue was full",
    ),
    Metric("connections", "", "gauge", "connections on the service's side by `state`, TIME_WAIT included"),
    Metric("count_s", "s", "gauge", "how long the count of connections took"),
    Metric("segments_sent", "", "counter", "of the machine"),
    Metric("segments_retransmitted", "", "counter", "of the machine"),
    Metric("syn_retransmitted", "", "counter", "of these, those that ask for a connection, or grant it"),
    Metric("retransmit_timeouts", "", "counter", "times that an acknowledgement did not come in time"),
    Metric("resets_sent", "", "counter", "connections refused or cut with RST by this machine"),
    Metric("resets_received", "", "counter", "connections that stood and were reset, by either side"),
    Metric("connects_failed", "", "counter", "connections that were never made"),
    Metric(
        "syn_cookies_sent", "", "counter", "answers without a place in the queue of half-open connections"
    ),
    Metric("queue_full_drops", "", "counter", "half-open connections dropped because their queue was full"),
)
_MACHINE: Final = {  # metric -> file, group and name
    "segments_sent": ("snmp", "Tcp", "OutSegs"),
    "segments_retransmitted": ("snmp", "Tcp", "RetransSegs"),
    "syn_retransmitted": ("netstat", "TcpExt", "TCPSynRetrans"),
    "retransmit_timeouts": ("netstat", "TcpExt", "TCPTimeouts"),
    "resets_sent": ("snmp", "Tcp", "OutRsts"),
    "resets_received": ("snmp", "Tcp", "EstabResets"),
    "connects_failed": ("snmp", "Tcp", "AttemptFails"),
    "syn_cookies_sent": ("netstat", "TcpExt", "SyncookiesSent"),
    "queue_full_drops": ("netstat", "TcpExt", "TCPReqQFullDrop"),
}
_STATES: Final = {
    1: "established",
    2: "syn_sent",
    3: "syn_received",
    4: "fin_wait_1",
    5: "fin_wait_2",
    6: "time_wait",
    7: "close",
    8: "close_wait",
    9: "last_ack",
    11: "closing",
    12: "syn_received",
}
_LISTEN: Final = 10
_SHARE: Final = 0.02  # of a core, for counting connections

# linux/netlink.h, linux/sock_diag.h, linux/inet_diag.h
_SOCK_DIAG: Final = 4
_BY_FAMILY: Final = 20
_REQUEST_DUMP: Final = 0x301
_ERROR, _DONE = 2, 3
_BYTECODE: Final = 1
_MEMORY: Final = 7  # attribute with the socket's memory figures
_DROPS: Final = 8  # place among them
_JUMP, _PORT_IS = 1, 11
_HEADER: Final = struct.Struct("=IHHII")
_QUERY: Final = struct.Struct("=BBBBI48s")
_QUEUES: Final = struct.Struct("=II")
_ATTRIBUTE: Final = struct.Struct("=HH")
_OPERATION: Final = struct.Struct("=BBH")
_PORT_AT, _QUEUES_AT, _ATTRIBUTES_AT = 4, 56, 72


@dataclass(frozen=True, slots=True)
class Port:
    """A port that a replica listens on."""

    service: str
    replica: int
    name: str
    port: int


@dataclass(frozen=True, slots=True)
class Ports:
    """What the tcp monitor is asked for."""

    monitor: ClassVar[str] = "tcp"
    ports: tuple[Port, ...]


def wanted(scene: Scene) -> Ports | None:
    """Every port of every replica on this machine."""
    found = tuple(
        Port(p.service, p.replica, name, port)
        for p in scene.replicas
        if p.is_here
        for name, port in (p.ports or {}).items()
    )
    return Ports(found) if found else None


class _Listener(NamedTuple):
    port: int
    waiting: int
    bound: int
    drops: int


class TcpMonitor:
    """The monitor."""

    name = "tcp"

    def __init__(self, proc: str = "/proc") -> None:
        self._net = Path(proc, "net")
        self._labels: dict[int, Mapping[str, str | int]] = {}
        self._next_count_ns = 0
        self._why: str | None = None

    def open(self, spec: Mapping[str, Any]) -> None:
        """Take the ports of the spec."""
        ports = [Port(**port) for port in spec["ports"]]
        self._labels = {p.port: {"service": p.service, "replica": p.replica, "port": p.name} for p in ports}

    def tick(self, now_ns: int, *, last: bool) -> Iterable[Row]:
        """Listeners and the machine's counters; connections when it is time to."""
        yield from self._machine()
        if self._why is not None:
            return
        try:
            yield from self._listeners()
            if last or now_ns >= self._next_count_ns:
                yield from self._connections(now_ns)
        except OSError as error:
            self._why = f"the kernel does not tell about sockets (sock_diag): {error.strerror}"
            yield Row("missed", labels(why=self._why), "", None)

    def close(self) -> None:
        """Nothing is kept open."""

    def _machine(self) -> Iterator[Row]:
        counts = {name: _paired(self._net / name) for name in ("snmp", "netstat")}
        for metric, (file, group, name) in _MACHINE.items():
            yield Row(metric, NO_LABELS, "", counts[file].get((group, name)))

    def _listeners(self) -> Iterator[Row]:
        by_port: dict[int, list[_Listener]] = {}
        for message in _dump(tuple(self._labels), states=1 << _LISTEN, attributes=1 << (_MEMORY - 1)):
            listener = _listener(message)
            by_port.setdefault(listener.port, []).append(listener)
        for port, own in by_port.items():  # several where processes share a port, each with its own queue
            text = labels(**self._labels[port])
            yield Row("accept_queue", text, "", sum(one.waiting for one in own))
            yield Row("accept_queue_bound", text, "", sum(one.bound for one in own))
            yield Row("listen_drops", text, "", sum(one.drops for one in own))

    def _connections(self, now_ns: int) -> Iterator[Row]:
        began = time.monotonic()
        counts: Counter[tuple[int, str]] = Counter()
        every = sum(1 << state for state in _STATES)
        for message in _dump(tuple(self._labels), states=every):
            state = _STATES.get(message[1])
            if state is not None:
                counts[_port(message), state] += 1
        took = time.monotonic() - began
        self._next_count_ns = now_ns + int(took / _SHARE * 1e9)
        for port, own in self._labels.items():
            present = {state: counts[port, state] for state in _STATES.values()}
            for state, count in present.items():
                if count or state in ("established", "time_wait"):
                    yield Row("connections", labels(**own, state=state), "", count)
        yield Row("count_s", NO_LABELS, "s", took)


def _dump(ports: Sequence[int], *, states: int, attributes: int = 0) -> Iterator[bytes]:
    """The sockets with one of these local ports, each as the kernel describes it.

    Raises:
        OSError: The kernel does not answer such questions, or not us.
    """
    code = _bytecode(ports)
    attribute = _ATTRIBUTE.pack(_ATTRIBUTE.size + len(code), _BYTECODE) + code
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _SOCK_DIAG) as link:
        link.settimeout(2.0)
        for family in (socket.AF_INET, socket.AF_INET6):
            body = _QUERY.pack(family, socket.IPPROTO_TCP, attributes, 0, states, bytes(48)) + attribute
            link.send(_HEADER.pack(_HEADER.size + len(body), _BY_FAMILY, _REQUEST_DUMP, 1, 0) + body)
            yield from _answers(link)


def _answers(link: socket.socket) -> Iterator[bytes]:
    while True:
        received = link.recv(1 << 17)
        at = 0
        while at + _HEADER.size <= len(received):
            length, kind, *_ = _HEADER.unpack_from(received, at)
            body = received[at + _HEADER.size : at + length]
            if kind == _DONE:
                return
            if kind == _ERROR:
                number = -struct.unpack_from("=i", body)[0]
                raise OSError(number, os.strerror(number))
            yield body
            at += (length + 3) & ~3


def _bytecode(ports: Sequence[int]) -> bytes:
    """A program for the kernel that takes sockets whose local port is one of these.

    For each port: if it is this one go on, otherwise to the next; then jump to the end, which means taken.
    Behind the end means left out.
    """
    code = b""
    for number, port in enumerate(reversed(ports)):
        is_last = number == 0
        left = len(code)
        hit = b"" if is_last else _OPERATION.pack(_JUMP, 4, 4 + left)
        miss = 8 + len(hit) + (4 if is_last else 0)
        code = _OPERATION.pack(_PORT_IS, 8, miss) + _OPERATION.pack(0, 0, port) + hit + code
    return code


def _port(message: bytes) -> int:
    return int.from_bytes(message[_PORT_AT : _PORT_AT + 2], "big")


def _listener(message: bytes) -> _Listener:
    waiting, bound = _QUEUES.unpack_from(message, _QUEUES_AT)
    drops, at = 0, _ATTRIBUTES_AT
    while at + _ATTRIBUTE.size <= len(message):
        length, kind = _ATTRIBUTE.unpack_from(message, at)
        if kind == _MEMORY and length >= _ATTRIBUTE.size + 4 * (_DROPS + 1):
            drops = struct.unpack_from("=I", message, at + _ATTRIBUTE.size + 4 * _DROPS)[0]
        at += max(4, (length + 3) & ~3)
    return _Listener(_port(message), waiting, bound, drops)


def _paired(path: Path) -> dict[tuple[str, str], int]:
    """Counters of files in which a line of names is followed by a line of values."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return {}
    counts: dict[tuple[str, str], int] = {}
    for names, values in zip(lines[::2], lines[1::2], strict=False):
        group, _, rest = names.partition(":")
        for name, value in zip(rest.split(), values.partition(":")[2].split(), strict=False):
            counts[group, name] = int(value)
    return counts
