"""Processes of this machine that a service calls: those that listen where its connections lead to.

Connections that others opened to the service do not count, nor do those on its standard input and output.
"""

from __future__ import annotations

import os
import socket
import struct
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from loadlens.machine import sock_diag
from loadlens.machine.listening_sockets import (
    FORWARDERS,
    PROXIES,
    Address,
    Process,
    address_of,
    holders_of,
    listening_for,
    name_of,
    sockets_of,
    with_descendants,
)

MOST: Final = 12  # processes that are watched
MOST_CORES: Final = 0.1  # that looking may use
FAMILIES_S: Final = 0.5  # for so long what a process has started is not looked for again
_FIRST: Final = 3  # descriptor after standard input and output
_ESTABLISHED, _ACCEPTS = "01", "0A"  # states in /proc/net/tcp
_LISTEN: Final = 10
_STREAM: Final = 1
# linux/unix_diag.h
_QUERY: Final = struct.Struct("=BBHIIIII")
_EVERY: Final = 0xFFFFFFFF
_SHOW: Final = 0b101  # names and peers
_MESSAGE: Final = struct.Struct("=BBBBI")
_ATTRIBUTES_AT: Final = 16
_NAME, _PEER = 0, 2


@dataclass(frozen=True, slots=True)
class _Place:
    """The other end of a connection: address and port, or the name of a socket of this machine."""

    caller: int
    address: Address | None = None
    port: int = 0
    name: bytes = b""


@dataclass(frozen=True, slots=True)
class _Tcp:
    """A socket of TCP, with the address and port of the other end."""

    inode: str
    state: str
    own_port: int
    address: Address
    port: int


@dataclass(frozen=True, slots=True)
class _Local:
    """A stream socket of the family AF_UNIX."""

    inode: str
    is_listening: bool
    name: bytes
    peer: str  # its inode


@dataclass(slots=True)
class Peers:
    """Processes that some processes call, found at one look or another."""

    pids: Sequence[int]
    apart: int = 0  # a process that counts for none, with all that it started: the lab
    processes: dict[int, Process] = field(default_factory=dict)  # by pid, in the order found
    ports: dict[int, set[int]] = field(default_factory=dict)  # of TCP, that they are called at
    has_code: set[int] = field(default_factory=set)  # of them: the service is a proxy, and calls it
    _inodes: set[str] = field(default_factory=set)  # of sockets that were looked at
    _places: set[_Place] = field(default_factory=set)
    _families: dict[int, set[int]] = field(default_factory=dict)  # by caller: with all that it started
    _until_s: float = 0.0  # for so long these hold

    @contextmanager
    def looking(self) -> Iterator[None]:
        """Look again and again meanwhile: a connection that is made for each call is there for a moment."""
        ended = threading.Event()

        def run() -> None:
            took_s = 0.0
            while not ended.wait(took_s / MOST_CORES):
                began_s = time.thread_time()
                self.look()
                took_s = time.thread_time() - began_s

        thread = threading.Thread(target=run, name="peers", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def look(self) -> None:
        """Add what is called now, and what that calls."""
        if time.monotonic() >= self._until_s:
            self._families.clear()
            self._until_s = time.monotonic() + FAMILIES_S
        callers = [*self.pids, *self.processes]
        while callers:
            listening = []
            for place in self._new(callers):
                is_own = place.caller in self.pids or place.caller in self.has_code
                is_behind = is_own and name_of(place.caller) in PROXIES
                for process in _listening(place):
                    listening.append(process)
                    self.ports.setdefault(process.pid, set()).update({place.port} - {0})
                    if is_behind:
                        self.has_code.add(process.pid)
            if not listening:
                return
            own = with_descendants([*self.pids, *([self.apart] if self.apart else [])])
            fresh = {each.pid: each for each in listening if each.pid not in own | self.processes.keys()}
            self.processes |= dict(list(fresh.items())[: max(0, MOST - len(self.processes))])
            callers = [pid for pid in fresh if pid in self.processes]

    def _new(self, callers: Sequence[int]) -> Iterator[_Place]:
        """Yield where processes, and all that they started, have connections to that they opened since."""
        for caller in callers:
            if caller not in self._families:
                self._families[caller] = with_descendants([caller])
            inodes = {inode for pid in self._families[caller] for inode in sockets_of(pid, _FIRST) or ()}
            if inodes <= self._inodes:
                continue
            self._inodes |= inodes
            for place in (*_called_by_tcp(caller, inodes), *_called_locally(caller, inodes)):
                if place not in self._places:
                    self._places.add(place)
                    yield place


@dataclass(frozen=True, slots=True)
class Ends:
    """Sockets of processes, by which a process at the other end of one is known."""

    ports: frozenset[int]  # of TCP
    inodes: frozenset[str]
    local: Mapping[str, _Local]  # of this machine

    @staticmethod
    def of(pids: Sequence[int], apart: Iterable[int]) -> Ends:
        """Return those of processes and of all that they started, without others and what those started."""
        family = with_descendants(pids) - with_descendants(tuple(apart))
        inodes = {inode for pid in family for inode in sockets_of(pid) or ()}
        ports = {each.own_port for pid in pids for each in _tcp_sockets(pid, inodes)}
        return Ends(frozenset(ports), frozenset(inodes), _local_sockets())

    def has(self, pid: int, port: int) -> bool:
        """True if a process serves one of them; also if that is not visible.

        Args:
            pid: The process.
            port: Of its client; 0 for a socket of the file system.
        """
        if port:
            return port in self.ports
        inodes = sockets_of(pid)
        peers = [self.local[inode].peer for inode in inodes or () if inode in self.local]
        return inodes is None or any(peer in self.inodes for peer in peers)


def _called_by_tcp(pid: int, inodes: set[str]) -> Iterator[_Place]:
    own = list(_tcp_sockets(pid, inodes))
    accepting = {each.own_port for each in own if each.state == _ACCEPTS}
    for each in own:
        if each.state == _ESTABLISHED and each.own_port not in accepting:
            yield _Place(pid, each.address, each.port)


def other_ends(pid: int, inodes: Collection[str]) -> dict[str, str | None]:
    """Return where connections of a process by TCP lead to, `127.0.0.1:5432`; none: a client opened it.

    Args:
        pid: The process.
        inodes: Of its sockets; others are left out.
    """
    every = list(_tcp_sockets(pid, inodes, listening=True))
    accepting = {each.own_port for each in every if each.state == _ACCEPTS}
    return {
        each.inode: None if each.own_port in accepting else _in_words(each)
        for each in every
        if each.inode in inodes and each.state != _ACCEPTS
    }


def _in_words(connection: _Tcp) -> str:
    host = f"[{connection.address}]" if connection.address.version == 6 else f"{connection.address}"
    return f"{host}:{connection.port}"


def _tcp_sockets(pid: int, inodes: Collection[str], *, listening: bool = False) -> Iterator[_Tcp]:
    """Yield those of some sockets that are in the network of a process, or also all that listen there."""
    for name in ("tcp", "tcp6"):
        try:
            lines = Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]
        except OSError:
            continue
        for fields in map(str.split, lines):
            if fields[9] in inodes or (listening and fields[3] == _ACCEPTS):
                address, port = fields[2].split(":")
                own_port = int(fields[1].partition(":")[2], 16)
                yield _Tcp(fields[9], fields[3], own_port, address_of(address), int(port, 16))


def _called_locally(pid: int, inodes: set[str]) -> Iterator[_Place]:
    """The socket that accepts a connection has the name of the one that listens; who connects has none."""
    every = _local_sockets()
    for inode in inodes & every.keys():
        peer = every.get(every[inode].peer)
        if peer is not None and peer.name and not every[inode].name:
            yield _Place(pid, name=peer.name)


def _listening(place: _Place) -> tuple[Process, ...]:
    if place.address is not None:
        processes = listening_for(place.caller, place.address, place.port)
    else:
        named = (each for each in _local_sockets().values() if each.name == place.name and each.is_listening)
        processes = holders_of({each.inode: _owner(place.name) for each in named})
    return tuple(each for each in processes if each.name not in FORWARDERS)


def _owner(name: bytes) -> int:
    """Return the user that a socket of the file system belongs to; 0 for any other."""
    try:
        return os.stat(name).st_uid
    except (OSError, ValueError):
        return 0


def _local_sockets() -> dict[str, _Local]:
    """Return the stream sockets of AF_UNIX of this network, by inode; none where that is refused."""
    sockets = {}
    try:
        for message in sock_diag.dump(_QUERY.pack(socket.AF_UNIX, 0, 0, _EVERY, 0, _SHOW, 0, 0)):
            _, kind, state, _, inode = _MESSAGE.unpack_from(message)
            if kind == _STREAM:
                peer = sock_diag.attribute(message, _PEER, _ATTRIBUTES_AT)
                sockets[str(inode)] = _Local(
                    str(inode),
                    state == _LISTEN,
                    sock_diag.attribute(message, _NAME, _ATTRIBUTES_AT).rstrip(b"\0"),
                    str(int.from_bytes(peer, "little")) if peer else "",
                )
    except OSError:
        pass
    return sockets
