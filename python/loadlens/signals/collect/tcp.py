"""TCP at the services' ports: full accept queues, connections by state and what is said on them; resets; and
how many local ports connections to others have taken.

Sockets are asked for by netlink (sock_diag(7)): listeners at each tick, which is cheap, and connections as
often as a count may cost a fiftieth of a core: the kernel walks all connections of the machine for it. So it
does for ports, which are counted as often as that costs as much again.
"""

from __future__ import annotations

import ipaddress
import socket
import struct
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, Final, NamedTuple

from loadlens.machine import sock_diag
from loadlens.model.readings import MonitorMetrics, TcpMetrics
from loadlens.signals.collect import kernel_numbers
from loadlens.signals.collect.monitor import NO_LABELS, Monitor, Row, labels, reading
from loadlens.signals.collect.scene import Scene

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
_EVERY: Final = sum(1 << state for state in _STATES)
_ESTABLISHED, _LISTEN = 1, 10
_SHARE: Final = 0.02  # of a core, for counting connections
_FULLEST: Final = 3  # addresses whose ports are reported
_TIME_WAIT_S: Final = 60.0  # TCP_TIMEWAIT_LEN of linux/tcp.h
_REUSE_AFTER_MS: Final = 1_000  # before Linux 6.14, which has a setting for it

# linux/inet_diag.h
_BYTECODE: Final = 1
_MEMORY: Final = 7  # attribute with the socket's memory figures
_DROPS: Final = 8  # place among them
_INFO: Final = 2  # attribute with tcp_info
_JUMP, _PORT_FROM, _PORT_TO, _PORT_IS, _OTHER_PORT_IS = 1, 2, 3, 11, 12
_QUERY: Final = struct.Struct("=BBBBI48s")
_QUEUES: Final = struct.Struct("=II")
_ATTRIBUTE: Final = struct.Struct("=HH")
_OPERATION: Final = struct.Struct("=BBH")
_TIME_WAIT: Final = 6
_ENDS: Final = struct.Struct("!2xH16s16s")  # the other's port, our address and theirs
_PORT_AT, _COOKIE_AT, _QUEUES_AT, _ATTRIBUTES_AT = 4, 44, 56, 72
_EXPIRES_AT: Final = 52
_MAPPED: Final = bytes(10) + b"\xff\xff"  # before an address of IPv4 that a socket of IPv6 speaks to
_U32: Final = struct.Struct("=I")
_U64: Final = struct.Struct("=Q")
# in tcp_info of linux/tcp.h
_SENT_AGO_AT, _CAME_AGO_AT, _DATA_IN_AT, _DATA_OUT_AT = 44, 52, 152, 156
_SEGMENT_AT, _UNACKNOWLEDGED_AT, _WINDOW_AT, _UNSENT_AT = 16, 24, 80, 144
_ARRIVED_AT, _SENT_AT, _SENT_AGAIN_AT, _THEIR_WINDOW_AT = 120, 200, 208, 228  # bytes


@dataclass(frozen=True, slots=True)
class Port:
    """A port that a replica listens on."""

    service: str
    replica: int
    name: str
    port: int
    is_called: bool = False  # by the service: only what is said there is counted


@dataclass(frozen=True, slots=True)
class Ports:
    """Settings of the tcp monitor."""

    monitor: ClassVar[str] = "tcp"
    ports: tuple[Port, ...]


def wanted(scene: Scene) -> Ports | None:
    """Every port of every replica on this machine, and of what it calls."""
    ports = tuple(
        Port(p.service, p.replica, name, port, p.is_called)
        for p in scene.replicas
        if p.is_here
        for name, port in (p.ports or {}).items()
    )
    return Ports(ports) if ports else None


class _Listener(NamedTuple):
    port: int
    waiting: int
    bound: int
    drops: int


class _Talk(NamedTuple):
    """Segments on one connection, from the service's side."""

    port: int
    cookie: bytes  # of its own for as long as it lives
    came_ago_s: float  # since the last data in
    sent_ago_s: float
    data_in: int  # segments
    data_out: int
    holds_back: bool

    def is_busy(self, out_per_in: float) -> bool:
        """Return true if a request is being worked on.

        An answer and the next request may fall into one step of the kernel's timer; then the counts of
        segments say whether the last answer is missing.

        Args:
            out_per_in: Segments of the answers over those of the requests, where no answer is missing.
        """
        if self.came_ago_s != self.sent_ago_s:
            return self.came_ago_s < self.sent_ago_s
        missing = abs(self.data_out - out_per_in * (self.data_in - 1))
        return missing < abs(self.data_out - out_per_in * self.data_in)


@dataclass(slots=True)
class _Answers:
    """Requests and answers at one port so far, as far as they were seen."""

    requests: int = 0
    answers: int = 0
    answer_s: float = 0.0
    in_use: int = 0  # connections with new data, or busy
    busy: int = 0  # connections on which a request is being worked on
    out_per_in: float = 1.0  # segments, where all is answered
    seen: dict[bytes, _Talk] = field(default_factory=dict)  # connections that stand, by cookie

    def take(self, talks: Sequence[_Talk]) -> None:
        """Count what is new since the last look."""
        self.in_use = self.busy = 0
        answered = [talk for talk in talks if talk.came_ago_s > talk.sent_ago_s]
        if came := sum(talk.data_in for talk in answered):
            self.out_per_in = sum(talk.data_out for talk in answered) / came
        for talk in talks:
            is_busy = talk.is_busy(self.out_per_in)
            self.busy += is_busy
            before = self.seen.get(talk.cookie)
            more = talk.data_in - (0 if before is None else before.data_in)
            self.requests += more
            self.in_use += more > 0 or is_busy
            has_answered = talk.data_out > (0 if before is None else before.data_out)
            if has_answered and not is_busy:
                self.answers += 1
                self.answer_s += max(0.0, talk.came_ago_s - talk.sent_ago_s)
        self.seen = {talk.cookie: talk for talk in talks}


class TcpMonitor(Monitor):
    """The monitor."""

    name = "tcp"
    settings = Ports

    def __init__(self, proc: str = "/proc") -> None:
        self._proc = proc
        self._settings = Path(proc, "sys/net/ipv4")
        self._labels: dict[int, Mapping[str, str | int]] = {}
        self._called: dict[int, str] = {}  # ports of what the service calls, and labels
        self._next_count_ns = self._next_ports_ns = 0
        self._answers: dict[int, _Answers] = {}
        self._why: str | None = None

    def open(self, spec: Ports) -> None:
        """Take the ports of the spec."""
        self._labels = {
            p.port: {"service": p.service, "replica": p.replica, "port": p.name}
            for p in spec.ports
            if not p.is_called
        }
        self._called = {
            p.port: labels(to=f"{p.service}:{p.port}")
            for p in spec.ports
            if p.is_called and p.port not in self._labels
        }

    def tick(self, now_ns: int, *, last: bool) -> Iterable[Row]:
        """Listeners and the machine's counters; connections when it is time to."""
        yield from kernel_numbers.rows(self.name, self._proc)
        if self._why is not None:
            return
        try:
            yield from self._listeners()
            if last or now_ns >= self._next_count_ns:
                yield from self._connections(now_ns)
            if last or now_ns >= self._next_ports_ns:
                yield from self._taken(now_ns)
        except OSError as error:
            self._why = f"the kernel does not report sockets (sock_diag): {error.strerror}"
            yield reading(MonitorMetrics.missed, labels(why=self._why), None)

    def _listeners(self) -> Iterator[Row]:
        by_port: dict[int, list[_Listener]] = {}
        if not self._labels:
            return
        wanted = _bytecode(tuple(self._labels))
        for message in _dump(wanted, states=1 << _LISTEN, attributes=1 << (_MEMORY - 1)):
            listener = _listener(message)
            by_port.setdefault(listener.port, []).append(listener)
        for port, own in by_port.items():  # several where processes share a port, each with its own queue
            text = labels(**self._labels[port])
            yield reading(TcpMetrics.accept_queue, text, sum(listener.waiting for listener in own))
            yield reading(TcpMetrics.accept_queue_bound, text, sum(listener.bound for listener in own))
            yield reading(TcpMetrics.listen_drops, text, sum(listener.drops for listener in own))

    def _connections(self, now_ns: int) -> Iterator[Row]:
        began = time.monotonic()
        counts: Counter[tuple[int, str]] = Counter()
        ports = (*self._labels, *self._called)
        talks: dict[int, list[_Talk]] = {port: [] for port in ports}
        for message in _dump(_bytecode(ports), states=_EVERY, attributes=1 << (_INFO - 1)):
            state = _STATES.get(message[1])
            if state is not None:
                counts[_port(message), state] += 1
            talk = _talk(message) if state == "established" else None
            if talk is not None:
                talks[talk.port].append(talk)
        asking = Counter(_holding_back(tuple(self._called)))
        took = time.monotonic() - began
        self._next_count_ns = now_ns + int(took / _SHARE * 1e9)
        for port, own in self._labels.items():
            present = {state: counts[port, state] for state in _STATES.values()}
            for state, count in present.items():
                if count or state in ("established", "time_wait"):
                    yield reading(TcpMetrics.connections, labels(**own, state=state), count)
            yield from self._spoken(port, labels(**own), talks[port])
        for port, text in self._called.items():
            calls = self._answers.setdefault(port, _Answers())
            calls.take(talks[port])
            yield reading(TcpMetrics.calls, text, calls.requests)
            yield reading(TcpMetrics.calls_under_way, text, calls.busy)
            yield reading(TcpMetrics.call_connections, text, calls.in_use)
            held = sum(talk.holds_back for talk in talks[port]) + asking[port]
            yield reading(TcpMetrics.calls_held_back, text, held)
        yield reading(TcpMetrics.count_s, NO_LABELS, took)

    def _spoken(self, port: int, text: str, talks: Sequence[_Talk]) -> Iterator[Row]:
        answers = self._answers.setdefault(port, _Answers())
        answers.take(talks)
        yield reading(TcpMetrics.requests_in, text, answers.requests)
        yield reading(TcpMetrics.busy, text, answers.busy)
        yield reading(TcpMetrics.answers_seen, text, answers.answers)
        yield reading(TcpMetrics.answer_s, text, round(answers.answer_s, 6))

    def _taken(self, now_ns: int) -> Iterator[Row]:
        """Count the taken ports: a new connection needs one that is free towards its address and port."""
        began = time.monotonic()
        span = _numbers(self._settings / "ip_local_port_range")
        if len(span) != 2:
            return
        low, high = span
        near, far = self._rests_s(is_near=True), self._rests_s(is_near=False)
        counts: Counter[_Way] = Counter()
        for message in _dump(_bytecode_of_range(low, high), states=_EVERY):
            way = _way(message)
            if not _is_free_again(message, near if way.is_near else far):
                counts[way] += 1
        most: dict[str, tuple[int, float]] = {}
        for way, count in counts.most_common():  # of several local addresses the fullest counts
            if len(most) < _FULLEST:
                most.setdefault(way.to, (count, near if way.is_near else far))
        self._next_ports_ns = now_ns + int((time.monotonic() - began) / _SHARE * 1e9)
        yield reading(TcpMetrics.ports_there, NO_LABELS, high - low + 1)
        for to, (count, rests_s) in most.items():
            yield reading(TcpMetrics.ports_taken, labels(to=to), count)
            yield reading(TcpMetrics.port_rests_s, labels(to=to), rests_s)
        if not most:
            yield reading(TcpMetrics.ports_taken, NO_LABELS, 0)
            yield reading(TcpMetrics.port_rests_s, NO_LABELS, far)

    def _rests_s(self, *, is_near: bool) -> float:
        """Return how long TIME_WAIT keeps a port from its next connection (tcp_twsk_unique of the kernel)."""
        reuse = next(iter(_numbers(self._settings / "tcp_tw_reuse")), 0)
        stamps = next(iter(_numbers(self._settings / "tcp_timestamps")), 1)
        if not stamps or not (reuse == 1 or (reuse == 2 and is_near)):
            return _TIME_WAIT_S
        return next(iter(_numbers(self._settings / "tcp_tw_reuse_delay")), _REUSE_AFTER_MS) / 1e3


def _dump(code: bytes, *, states: int, attributes: int = 0) -> Iterator[bytes]:
    """The sockets that a program takes, each as the kernel describes it.

    Raises:
        OSError: The kernel does not answer such questions, or not us.
    """
    attribute = _ATTRIBUTE.pack(_ATTRIBUTE.size + len(code), _BYTECODE) + code
    families = (socket.AF_INET, socket.AF_INET6)
    heads = (_QUERY.pack(each, socket.IPPROTO_TCP, attributes, 0, states, bytes(48)) for each in families)
    return sock_diag.dump(*(head + attribute for head in heads))


def _holding_back(ports: Sequence[int]) -> Iterator[int]:
    """The port of each connection to one of these on which its user's side holds back a small piece."""
    if ports:
        code = _bytecode(ports, _OTHER_PORT_IS)
        for message in _dump(code, states=1 << _ESTABLISHED, attributes=1 << (_INFO - 1)):
            way = _way(message)
            is_here = way.is_near or way.own == way.other
            if is_here and _holds_back(_attribute(message, _INFO)):
                yield _ENDS.unpack_from(message, _PORT_AT)[0]


def _holds_back(info: bytes) -> bool:
    """True if less than a segment waits to be sent, for nothing but an acknowledgement (RFC 896).

    Both windows have room for it, and what was sent before was not acknowledged yet.
    """
    if len(info) < _UNSENT_AT + _U32.size:
        return False
    segment, unacknowledged, window, unsent = (
        _U32.unpack_from(info, at)[0] for at in (_SEGMENT_AT, _UNACKNOWLEDGED_AT, _WINDOW_AT, _UNSENT_AT)
    )
    if len(info) >= _THEIR_WINDOW_AT + _U32.size:
        arrived, sent, again = (
            _U64.unpack_from(info, at)[0] for at in (_ARRIVED_AT, _SENT_AT, _SENT_AGAIN_AT)
        )
        if sent - again - arrived + unsent > _U32.unpack_from(info, _THEIR_WINDOW_AT)[0]:
            return False
    return bool(0 < unsent < segment and 0 < unacknowledged < window)


def _bytecode(ports: Sequence[int], compare: int = _PORT_IS) -> bytes:
    """A program for the kernel that takes sockets whose local port, or the other's, is one of these.

    For each port: if it is this one go on, otherwise to the next; then jump to the end, which means taken.
    Behind the end means left out.
    """
    code = b""
    for number, port in enumerate(reversed(ports)):
        is_last = number == 0
        left = len(code)
        hit = b"" if is_last else _OPERATION.pack(_JUMP, 4, 4 + left)
        miss = 8 + len(hit) + (4 if is_last else 0)
        code = _OPERATION.pack(compare, 8, miss) + _OPERATION.pack(0, 0, port) + hit + code
    return code


def _bytecode_of_range(low: int, high: int) -> bytes:
    """A program for the kernel that takes sockets whose local port is one of a range."""
    head, bound = _OPERATION.size, 2 * _OPERATION.size
    from_low = _OPERATION.pack(_PORT_FROM, bound, 2 * bound + head) + _OPERATION.pack(0, 0, low)
    return from_low + _OPERATION.pack(_PORT_TO, bound, bound + head) + _OPERATION.pack(0, 0, high)


class _Way(NamedTuple):
    """From a local address to a port elsewhere: each local port serves one connection on it."""

    own: bytes
    other: bytes
    port: int

    @property
    def is_near(self) -> bool:
        """True if it stays on this machine's loopback."""
        return _address(self.own).is_loopback or _address(self.other).is_loopback

    @property
    def to(self) -> str:
        """`127.0.0.1:8080`, `[::1]:8080`."""
        address = _address(self.other)
        return f"{address}:{self.port}" if address.version == 4 else f"[{address}]:{self.port}"


def _way(message: bytes) -> _Way:
    port, own, other = _ENDS.unpack_from(message, _PORT_AT)
    if message[0] == socket.AF_INET:
        return _Way(own[:4], other[:4], port)
    if own.startswith(_MAPPED) and other.startswith(_MAPPED):
        return _Way(own[12:], other[12:], port)
    return _Way(own, other, port)


@lru_cache(4096)
def _address(packed: bytes) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    return ipaddress.ip_address(packed)


def _is_free_again(message: bytes, rests_s: float) -> bool:
    """True if it is in TIME_WAIT for so long that the kernel gives its port to the next connection."""
    if message[1] != _TIME_WAIT:
        return False
    left_s: float = _U32.unpack_from(message, _EXPIRES_AT)[0] / 1e3
    return _TIME_WAIT_S - left_s > rests_s


def _port(message: bytes) -> int:
    return int.from_bytes(message[_PORT_AT : _PORT_AT + 2], "big")


def _listener(message: bytes) -> _Listener:
    waiting, bound = _QUEUES.unpack_from(message, _QUEUES_AT)
    memory = _attribute(message, _MEMORY)
    drops = 0
    if len(memory) >= 4 * (_DROPS + 1):
        drops = struct.unpack_from("=I", memory, 4 * _DROPS)[0]
    return _Listener(_port(message), waiting, bound, drops)


def _talk(message: bytes) -> _Talk | None:
    """None where an older kernel does not count segments with data."""
    info = _attribute(message, _INFO)
    if len(info) < _DATA_OUT_AT + _U32.size:
        return None
    sent, came, data_in, data_out = (
        _U32.unpack_from(info, at)[0] for at in (_SENT_AGO_AT, _CAME_AGO_AT, _DATA_IN_AT, _DATA_OUT_AT)
    )
    cookie = message[_COOKIE_AT : _COOKIE_AT + 8]
    return _Talk(_port(message), cookie, came / 1e3, sent / 1e3, data_in, data_out, _holds_back(info))


def _attribute(message: bytes, wanted: int) -> bytes:
    return sock_diag.attribute(message, wanted, _ATTRIBUTES_AT)


def _numbers(path: Path) -> list[int]:
    """A setting of the kernel; empty where it has none of this name."""
    try:
        return [int(word) for word in path.read_text().split()]
    except OSError:
        return []
