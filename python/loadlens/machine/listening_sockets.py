"""Listening sockets and the processes that hold them, from /proc."""

from __future__ import annotations

import ipaddress
import itertools
import os
import re
import socket
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_LISTEN = "0A"  # state in /proc/net/tcp
_PROC = Path("/proc")
_WITH_VALUE = (  # options of `java` whose value is the next word
    *("-cp", "-classpath", "--class-path", "-p", "--module-path", "--upgrade-module-path"),
    *("--add-modules", "--limit-modules", "--add-reads", "--add-exports", "--add-opens", "--patch-module"),
    *("--enable-native-access", "--source"),
)
# Programs that pass connections on to a service elsewhere: in a container, on another machine.
FORWARDERS: Final = frozenset(
    {
        "docker-proxy",
        "rootlessport",
        "rootlesskit",
        "slirp4netns",
        "pasta",
        "pasta.avx2",
        "gvproxy",
        "ssh",
        "sshd",
        "kubectl",
        "socat",
        "cloudflared",
    }
)
# Programs in front of a service, which pass requests on to it and have no code of it.
PROXIES: Final = frozenset(
    {"nginx", "haproxy", "envoy", "traefik", "caddy", "apache2", "httpd", "lighttpd", "varnishd", "h2o"}
)

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class Socket:
    """A listening socket."""

    inode: str
    address: Address
    port: int
    user: int  # id of the user who opened it


@dataclass(frozen=True, slots=True)
class Process:
    """A process, by what a person knows it."""

    pid: int
    name: str


@dataclass(frozen=True, slots=True)
class Listening:
    """Processes that listen on an address, as far as they are visible.

    `processes` leaves out those whose ancestor listens too, and ancestors of this program: it is one of the
    children that would be watched with them.
    """

    processes: tuple[Process, ...] = ()
    is_open: bool = False  # a socket listens there
    hidden_users: tuple[int, ...] = ()  # owners of sockets whose process this user may not see
    forwarder: Process | None = None  # it passes connections on to a service that was not found


def listening_on(addresses: Collection[Address], port: int) -> Listening:
    """Return the processes that listen on a port; behind the port proxy of a container, its processes."""
    sockets = _at(_sockets(_PROC / "net"), addresses, port)
    if not sockets or not any(map(_is_own, addresses)):
        return _elsewhere(addresses, port)
    pids = _all_pids()
    holders = _holders(pids, {each.inode for each in sockets})
    seen = {inode for held in holders.values() for inode in held}
    hidden = tuple(sorted({each.user for each in sockets if each.inode not in seen}))
    processes = _heads(holders)
    forwarder = next((each for each in processes if each.name in FORWARDERS), None)
    if forwarder is not None:
        processes = _behind(forwarder.pid, pids)
    return Listening(processes, True, hidden, None if processes else forwarder)


def listening_for(caller: int, address: Address, port: int) -> tuple[Process, ...]:
    """Return the processes that listen where a process is connected to; empty: none is seen on this machine.

    The address is one of the caller's network: its loopback may be that of a container.
    """
    net = _PROC / str(caller) / "net"
    if not _is_own_network(caller) and (address.is_loopback or _has_address(net, str(address))):
        return holders_of({each.inode: each.user for each in _at(_sockets(net), [address], port)})
    seen = listening_on({address}, port)
    return (*seen.processes, *(head for user in seen.hidden_users for head in _only_head(user)))


def holders_of(users: Mapping[str, int]) -> tuple[Process, ...]:
    """Return the processes that hold sockets, without those whose ancestor holds one too.

    A socket whose process is not visible belongs to the one process of its owner that started all others of
    his, if there is one.

    Args:
        users: Owner by inode.
    """
    holders = _holders(_all_pids(), users)
    visible = {inode for held in holders.values() for inode in held}
    hidden = {user for inode, user in users.items() if inode not in visible}
    return (*_heads(holders), *(head for user in sorted(hidden) for head in _only_head(user)))


def is_on_this_machine(address: Address) -> bool:
    """True for an address of this machine, or of a network namespace on it that is visible: a container."""
    return _is_own(address) or _members_of(str(address), _all_pids()) != []


def listeners() -> dict[str, int]:
    """The sockets that listen on this machine: inode to port."""
    return {each.inode: each.port for each in _sockets(_PROC / "net")}


def ports_of(pid: int) -> tuple[int, ...]:
    """Ports that a process or anything it started listens on, ascending; empty also where we may not look."""
    return tuple(sorted({port for own in ports_in_family(pid).values() for port in own}))


def ports_in_family(pid: int) -> dict[int, set[int]]:
    """Return the ports that a process and all that it started listen on, each of them, the process first."""
    ports = listeners()
    family = sorted(with_descendants((pid,)), key=lambda member: member != pid)
    return {
        member: {ports[inode] for inode in sockets_of(member) or () if inode in ports} for member in family
    }


def with_descendants(pids: Sequence[int]) -> set[int]:
    """Processes and all that they started."""
    parents = {int(name): _parent(name) for name in os.listdir(_PROC) if name.isdecimal()}
    family = set(pids)
    grows = True
    while grows:
        more = {pid for pid, parent in parents.items() if parent in family} - family
        family |= more
        grows = bool(more)
    return family


def sockets_of(pid: int, first: int = 0) -> set[str] | None:
    """Inodes of a process's sockets, from a descriptor on; none: we may not look."""
    inodes = set()
    try:
        for entry in (_PROC / str(pid) / "fd").iterdir():
            if int(entry.name) < first:
                continue
            try:
                target = str(entry.readlink())
            except OSError:
                continue  # closed meanwhile
            if target.startswith("socket:["):
                inodes.add(target[8:-1])
    except FileNotFoundError:
        return set()  # it ended meanwhile
    except OSError:
        return None
    return inodes


def _sockets(folder: Path) -> Iterator[Socket]:
    """Yield the listening sockets of a network namespace, from its folder `net`."""
    for name in ("tcp", "tcp6"):
        try:
            lines = (folder / name).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if fields[3] == _LISTEN:
                address, _, port = fields[1].rpartition(":")
                yield Socket(fields[9], address_of(address), int(port, 16), int(fields[7]))


def address_of(text: str) -> Address:
    """Read an address as the kernel prints it: words of 32 bits in the machine's byte order."""
    raw = bytes.fromhex(text)
    if sys.byteorder == "little":
        raw = b"".join(raw[at : at + 4][::-1] for at in range(0, len(raw), 4))
    address = ipaddress.ip_address(raw)
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _at(sockets: Iterable[Socket], addresses: Collection[Address], port: int) -> list[Socket]:
    """Return the sockets that get connections to the addresses: exact ones first, else those of all."""
    on_port = [each for each in sockets if each.port == port]
    exact = [each for each in on_port if each.address in addresses]
    return exact or [each for each in on_port if each.address.is_unspecified]


def _holders(pids: Iterable[int], inodes: Collection[str]) -> dict[int, set[str]]:
    """Return which of the processes hold which of the sockets; without those that may not be seen."""
    held = {pid: (sockets_of(pid) or set()) & set(inodes) for pid in pids}
    return {pid: own for pid, own in held.items() if own}


def _heads(holders: Iterable[int]) -> tuple[Process, ...]:
    """Return processes without those whose ancestor is among them, and without ancestors of this program."""
    own_line = set(_ancestors(os.getpid()))
    kept = {pid for pid in holders if pid not in own_line}
    return tuple(Process(pid, name_of(pid)) for pid in sorted(kept) if kept.isdisjoint(_ancestors(pid)))


def _only_head(user: int) -> tuple[Process, ...]:
    """Return the process of a user that started all others of that user; empty if there are several."""
    own = []
    for pid in _all_pids():
        try:
            if (_PROC / str(pid)).stat().st_uid == user:
                own.append(pid)
        except OSError:
            continue  # it ended
    heads = _heads(own)
    return heads if len(heads) == 1 else ()


def _is_own_network(pid: int) -> bool:
    """False for a process in another network namespace; true where that is not visible."""
    try:
        return os.readlink(_PROC / str(pid) / "ns" / "net") == os.readlink(_PROC / "self" / "ns" / "net")
    except OSError:
        return True


def _elsewhere(addresses: Iterable[Address], port: int) -> Listening:
    """Return the processes that listen on addresses of another network namespace of this machine."""
    for address in addresses:
        processes = () if _is_own(address) else _in_namespace(str(address), port, _all_pids())
        if processes:
            return Listening(processes, True)
    return Listening()


def _is_own(address: Address) -> bool:
    """True if this network namespace has an address."""
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((str(address), 0))
    except OSError:
        return False
    return True


def _behind(pid: int, pids: Iterable[int]) -> tuple[Process, ...]:
    """Return the processes in a container to which docker-proxy passes connections; empty if not visible."""
    try:
        words = (_PROC / str(pid) / "cmdline").read_text().split("\0")
    except OSError:
        return ()
    options = dict(itertools.pairwise(words))
    host, port = options.get("-container-ip", ""), options.get("-container-port", "")
    if not host or not port.isdecimal():
        return ()
    return _in_namespace(host, int(port), pids)


def _in_namespace(host: str, port: int, pids: Iterable[int]) -> tuple[Process, ...]:
    """Return the processes that listen on an address of another network namespace."""
    members = _members_of(host, pids)
    if not members:
        return ()
    sockets = _at(_sockets(_PROC / str(members[0]) / "net"), [ipaddress.ip_address(host)], port)
    return _heads(_holders(members, {each.inode for each in sockets}))


def _members_of(host: str, pids: Iterable[int]) -> list[int]:
    """Return the processes of the network namespace that has an address, as far as they are visible."""
    networks: dict[str, list[int]] = {}
    for pid in pids:
        try:
            networks.setdefault(os.readlink(_PROC / str(pid) / "ns" / "net"), []).append(pid)
        except OSError:
            continue
    own = os.readlink(_PROC / "self" / "ns" / "net")
    return next(
        (
            members
            for network, members in networks.items()
            if network != own and _has_address(_PROC / str(members[0]) / "net", host)
        ),
        [],
    )


def _all_pids() -> list[int]:
    return [int(name) for name in os.listdir(_PROC) if name.isdecimal()]


def _has_address(folder: Path, host: str) -> bool:
    """True if a network namespace has an address."""
    try:
        if ":" in host:
            wanted = ipaddress.ip_address(host).packed.hex()
            return any(line.startswith(wanted) for line in (folder / "if_inet6").read_text().splitlines())
        is_local = rf"\|-- {re.escape(host)}\n\s*/32 host LOCAL"
        return re.search(is_local, (folder / "fib_trie").read_text()) is not None
    except OSError:
        return False


def _ancestors(pid: int) -> Iterator[int]:
    parent = _parent(str(pid))
    while parent > 0:
        yield parent
        parent = _parent(str(parent))


def name_of(pid: int) -> str:
    """Return the name of a program, of an interpreter with what it runs: `python3 app.py`, `java Main`."""
    try:
        words = (_PROC / str(pid) / "cmdline").read_text(errors="replace").split("\0")
        name = (_PROC / str(pid) / "comm").read_text().strip()
    except OSError:
        return "?"
    if name == "java":
        start, is_file = jvm_start(words)
        main = Path(start).name if is_file else start.rpartition(".")[2]
        return f"{name} {main}".rstrip()
    script = next((word for word in words[1:] if word and not word.startswith("-")), "")
    is_script = script.endswith((".py", ".js", ".mjs", ".rb", ".php", ".ts"))
    return f"{name} {Path(script).name}" if is_script else name


def jvm_start(words: Sequence[str]) -> tuple[str, bool]:
    """Return what a command line of `java` starts, a class with its package or a file; empty: none.

    Returns:
        The word, and true if it is a file: an archive, or the source of one class.
    """
    before = ""
    for word in words[1:]:
        if word and not word.startswith(("-", "@")) and before not in _WITH_VALUE:
            return word, before == "-jar" or word.endswith(".java")
        before = word
    return "", False


def _parent(pid: str) -> int:
    try:
        return int((_PROC / pid / "stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0
