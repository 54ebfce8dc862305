"""Connection to a Dask cluster, and its workers as nodes: their names, and that all run the same Loadlens.

Membership, transport and TLS are Dask's. Off loopback only encrypted connections are used: any program that
reaches a Dask scheduler can run code on its workers.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import math
import os
import re
import resource
import socket
import ssl
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final
from urllib.parse import urlsplit

from distributed import Client, Future, LocalCluster, Security, rpc

from loadlens import temporary
from loadlens.errors import EngineError, TestbedError, TooLargeError, UsageError, limit_met
from loadlens.fleet import agent, ssh
from loadlens.fleet.place import Place

CONNECT_S: Final = 5.0
ANSWER_S: Final = 10.0  # of a node that is asked who it is
ASK_S: Final = 0.1  # for each node, to ask all of them
FILES: Final = 30  # open at once by a scheduler here, and its client
FILES_A_NODE: Final = 10
MOST_NODES: Final = 1500  # at 1,000 beats/s each has one every 1.5 s; its engine stops after 2 s without
JOIN_S: Final = 120.0  # until as many nodes have joined as are wanted
SAY_S: Final = 2.0  # until that is said to be waited for
WAITING_PER_WORKER: Final = 10  # tasks: Dask's `adapt` takes each for 0.5 s, and gives a worker 5 s of work
Say = Callable[[str], None]
# Workers on this machine share its terminal, and Ctrl-C there is for the controller.
DEAF: Final = """
import signal

def dask_setup(worker):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
"""


@dataclass(frozen=True, slots=True)
class Node:
    """One machine of a fleet, or one worker of it."""

    name: str  # unique in the fleet, fit for a folder
    address: str  # of its Dask worker
    host: str
    threads: int  # processors that it may use
    most_per_s: float | None = None  # requests that they can send; none: `loadlens doctor` did not measure it


@dataclass(slots=True)
class Fleet:
    """Nodes that make a load together."""

    client: Client
    where: str
    address: str  # of the scheduler
    may_be_insecure: bool = False  # takes connections off loopback that are not encrypted
    most: int | None = None  # nodes of a trial; none: all that are there
    weights: Mapping[str, int] = field(default_factory=dict)  # by name; empty: equal shares
    nodes: tuple[Node, ...] = ()  # by name
    silent: tuple[str, ...] = ()  # addresses that did not answer
    _described: dict[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)  # by `_process`
    _names: dict[tuple[str, str], str] = field(default_factory=dict)  # kept, by base and address
    _waiting: list[Future] = field(default_factory=list)  # tasks that keep an elastic cluster at its size

    def refresh(self) -> None:
        """Look who is there now: nodes join and leave between trials.

        Raises:
            UsageError: A node runs another Loadlens, or is reached without encryption; or there are too many.
        """
        workers = _workers(self.client)
        processes = {address: _process(address, worker) for address, worker in workers.items()}
        unknown = [address for address, process in processes.items() if process not in self._described]
        described, self.silent = _descriptions(self.client, unknown)
        descriptions = self._described | {processes[address]: about for address, about in described.items()}
        present = {
            address: descriptions[process]
            for address, process in processes.items()
            if process in descriptions
        }
        self._described = {processes[address]: about for address, about in present.items()}
        nodes = _named(present, workers, self._names)
        wanted = [node for node in nodes if not self.weights or node.name in self.weights]
        self.nodes = tuple(wanted[: self.most])
        if len(self.nodes) > MOST_NODES:
            raise UsageError(
                f"{len(self.nodes):,} nodes are more than the {MOST_NODES:,} that one machine directs",
                where=self.where,
                hint=f"fleet: {{nodes: {MOST_NODES}}} in the study",
            )
        for node in self.nodes:
            _refuse_other_version(node, present[node.address])
            if not self.may_be_insecure:
                _refuse_unencrypted(node.address)

    @property
    def is_insecure(self) -> bool:
        """True if anything is reached off loopback without encryption."""
        return any(_is_open(address) for address in (self.address, *(node.address for node in self.nodes)))

    def demand(self, nodes: int, within_s: float = JOIN_S, say: Say | None = None) -> None:
        """Wait until so many nodes are there; an elastic cluster grows to them.

        Args:
            nodes: At least.
            within_s: At most so long.
            say: Called with a line if that takes longer than a moment.

        Raises:
            UsageError: They did not join in time, or `refresh` refuses one.
        """
        began = time.monotonic()
        before = dict(self._names)
        self._ask_for(nodes)
        self.refresh()
        while len(self.nodes) < nodes and time.monotonic() < began + within_s:
            if say is not None and time.monotonic() > began + SAY_S:
                have = f"{len(self.nodes)} of {nodes} nodes of {self.where} are there"
                say(f"{have}; the others are waited for, at most {within_s:g} s")
                say = None
            time.sleep(0.2)
            self._ask_for(nodes)
            self._names = dict(before)  # else new names would depend on which node joins first
            self.refresh()
        if len(self.nodes) < nodes:
            raise UsageError(
                f"the fleet has {len(self.nodes)} of {nodes} nodes after {within_s:g} s",
                where=self.where,
                hint="start more: dask worker",
            )

    def _ask_for(self, nodes: int) -> None:
        """Have a cluster with `adapt` grow to so many nodes, and not shrink below them while it is connected.

        It counts tasks that wait. These wait for ever: no worker has what they need.
        """
        workers = _workers(self.client).values()
        threads = sum(worker["nthreads"] for worker in workers) / len(workers) if workers else 1.0
        # half a worker less, because what runs counts as well, and all is rounded up
        needed = math.ceil((nodes - 0.5) * threads * WAITING_PER_WORKER)
        first = len(self._waiting)
        self._waiting += self.client.map(
            int, range(first, needed), resources={"loadlens-fleet": 1}, pure=False, key="fleet-wants-nodes"
        )


@contextlib.contextmanager
def connect(
    where: Place,
    *,
    nodes: int | None = None,
    weights: Sequence[int] = (),
    insecure: bool = False,
    say: Say | None = None,
) -> Iterator[Fleet]:
    """Connect to a fleet within the block; clusters that are made for it end with it.

    Args:
        where: As `place_of` reads it; for TLS, Dask's configuration names certificates.
        nodes: How many make the load, the first by name; waits for them. None: all that are there.
        weights: Of the nodes in the order of their names; empty: equal shares.
        insecure: Takes connections off loopback that are not encrypted.
        say: Called with a line if nodes have to be waited for.

    Raises:
        UsageError: There is no such fleet, it is not encrypted, or a node runs another Loadlens.
    """
    _silence_logs()  # also of what an interrupt leaves behind while a cluster is made
    with contextlib.ExitStack() as held:
        address = _scheduler(where, held)
        if not insecure:
            _refuse_unencrypted(address)
        if address.startswith("tls:") and Security().get_connection_args("client")["ssl_context"] is None:
            raise UsageError(
                f"{address} needs a certificate, and Dask's configuration names none",
                hint="loadlens fleet certs DIR, which prints the variables to set",
            )
        try:
            _greet(address)
            client = held.enter_context(
                Client(address, timeout=CONNECT_S, direct_to_workers=True, connection_limit=sys.maxsize)
            )
        except (OSError, TimeoutError, ValueError) as fault:
            is_untrusted = isinstance(_cause(fault), ssl.SSLError)
            raise UsageError(
                f"no scheduler answers at {address}: {_first_line(_cause(fault))}",
                hint="certificates of one authority on all sides"
                if is_untrusted
                else "dask scheduler, on that machine",
            ) from None
        fleet = Fleet(client, where.written, address, insecure, nodes)
        fleet.demand(nodes or len(weights) or where.nodes, say=say)
        if weights:
            if len(weights) != len(fleet.nodes):
                raise UsageError(f"{len(weights)} weights for {len(fleet.nodes)} nodes", where=where.written)
            fleet.weights = {node.name: weight for node, weight in zip(fleet.nodes, weights, strict=True)}
        yield fleet


def _silence_logs() -> None:
    """Keep Dask's logs off the terminal: an error or a reason says what matters of them."""
    for name in list(logging.root.manager.loggerDict):
        if name.startswith("distributed"):
            logging.getLogger(name).setLevel(logging.CRITICAL)


def _greet(address: str) -> None:
    """Raise OSError or TimeoutError unless a scheduler answers; `Client` waits for others for ever."""
    parts = urlsplit(address)
    socket.create_connection((parts.hostname or "", parts.port or 0), CONNECT_S).close()

    async def identity() -> None:
        arguments = Security().get_connection_args("client")
        async with rpc(address, connection_args=arguments, timeout=CONNECT_S) as scheduler:
            await asyncio.wait_for(scheduler.identity(), CONNECT_S)

    with ThreadPoolExecutor(1) as apart:  # a notebook has a loop of its own
        apart.submit(asyncio.run, identity()).result()


def _scheduler(place: Place, held: contextlib.ExitStack) -> str:
    """Return the address of the scheduler; a cluster that is made here ends with what holds it."""
    if place.scheduler:
        return place.scheduler
    cluster = held.enter_context(_local(place.local))
    if place.hosts:
        held.enter_context(ssh.workers(place.hosts, cluster.scheduler))
    return str(cluster.scheduler_address)


@contextlib.contextmanager
def _local(nodes: int) -> Iterator[LocalCluster]:
    """Run a scheduler, and workers on this machine, each in a process of its own."""
    os.getcwd()  # where workers begin: the error of a deleted folder is one of this process
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES + FILES_A_NODE * nodes
    if hard != resource.RLIM_INFINITY and hard < wanted:  # Dask would wait for ever
        raise TooLargeError(
            f"a fleet of local:{nodes} needs {wanted} open files, and the limit is {hard} (ulimit -Hn)",
            where="--fleet",
            hint=f"a higher limit: ulimit -n {wanted}",
        )
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    with temporary.folder("fleet") as folder:
        try:
            cluster = LocalCluster(
                n_workers=nodes,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                memory_limit=0,
                preload=[DEAF],
                local_directory=str(folder),
                # else it leaves its own in the system's folder
                scheduler_kwargs={"local_directory": str(folder)},
                dashboard_address="127.0.0.1:0",  # None means port 8787, which may be taken
                silence_logs=logging.CRITICAL,
            )
        except RuntimeError as fault:  # a worker that ended, of which Dask says no more
            why = _cause(fault)
            raise limit_met(why) or TestbedError(
                f"the nodes of local:{nodes} do not start: {_first_line(why)}",
                where="--fleet",
                hint="fewer nodes, or higher limits (ulimit -a)",
            ) from None
        with cluster:
            yield cluster


def _workers(client: Client) -> dict[str, Any]:
    try:
        return dict(client.scheduler_info(n_workers=-1)["workers"])
    except (OSError, TimeoutError) as fault:
        raise EngineError(f"the fleet's scheduler is gone: {_first_line(fault)}") from None


def _descriptions(
    client: Client, addresses: Sequence[str]
) -> tuple[dict[str, Mapping[str, Any]], tuple[str, ...]]:
    """Ask workers who they are; returns the answers by address, and who gave none."""
    asked = {
        address: client.submit(
            agent.description, workers=[address], allow_other_workers=False, pure=False, retries=0
        )
        for address in addresses
    }
    until = time.monotonic() + ANSWER_S + ASK_S * len(asked)
    answers: dict[str, Mapping[str, Any]] = {}
    for address, future in asked.items():
        try:
            answers[address] = future.result(timeout=max(until - time.monotonic(), 0.1))
        except ImportError:
            raise UsageError(
                f"the node at {address} has no Loadlens", hint="pip install 'loadlens[fleet]' there"
            ) from None
        except (OSError, TimeoutError):
            future.cancel()
        except Exception as fault:  # of any code on the node
            raise UsageError(
                f"the node at {address} cannot say what it is: {type(fault).__name__}: {_first_line(fault)}"
            ) from None
    return answers, tuple(address for address in addresses if address not in answers)


def _process(address: str, worker: Mapping[str, Any]) -> tuple[str, str]:
    """Identify a worker's process, also among others on its address: Dask makes a new folder for each."""
    return address, str(worker.get("local_directory"))


def _named(
    described: Mapping[str, Mapping[str, Any]],
    workers: Mapping[str, Mapping[str, Any]],
    kept: dict[tuple[str, str], str],
) -> tuple[Node, ...]:
    """Name nodes by their worker's name if given, else by host; a number follows where several share it.

    Args:
        described: Of the workers that answered, by address.
        workers: As the scheduler has them, by address.
        kept: Names so far, by base and address. They stay while workers leave and return; a name that is free
            goes to the next worker with its base. New names are added.
    """

    def base(address: str) -> str:
        given = workers[address].get("name")
        is_given = isinstance(given, str) and "://" not in given and not given.isdigit()
        return re.sub("[^A-Za-z0-9._-]", "-", str(given) if is_given else described[address]["host"])

    def order(address: str) -> tuple[str, int, str, int]:
        number = str(workers[address].get("name"))
        parts = urlsplit(address)
        return base(address), int(number) if number.isdigit() else 0, parts.hostname or "", parts.port or 0

    keys = {address: (base(address), address) for address in sorted(described, key=order)}
    sharing = Counter(own for own, _ in keys.values())
    names = {address: kept[key] for address, key in keys.items() if key in kept}
    used = set(names.values())
    free = {name: key for key, name in kept.items() if name not in used}
    # First those that share no base: a name that is given is not another's base and number.
    for key in sorted((key for key in keys.values() if key not in kept), key=lambda key: sharing[key[0]] > 1):
        own, address = key
        left = [name for name, (other, _) in free.items() if other == own]
        if left:
            name = min(left, key=lambda each: (len(each), each))
        elif sharing[own] == 1 and own not in used:
            name = own
        else:
            first = 2 if own in used else 1
            name = next(each for number in count(first) if (each := f"{own}-{number}") not in used)
        if name in free:
            del kept[free.pop(name)]  # the absent worker gets another name when it returns
        names[address] = kept[key] = name
        used.add(name)
    nodes = []
    for address in sorted(names, key=lambda each: (base(each), len(names[each]), names[each])):
        about = described[address]
        nodes.append(Node(names[address], address, about["host"], about["threads"], about["most_per_s"]))
    return tuple(nodes)


def _refuse_other_version(node: Node, theirs: Mapping[str, Any]) -> None:
    """Raise UsageError unless the node runs what runs here."""
    ours = agent.description()
    for key, what in (("loadlens", "Loadlens"), ("distributed", "distributed")):
        if theirs[key] != ours[key]:
            raise UsageError(
                f"node {node.name} has {what} {theirs[key]}, and here is {ours[key]}",
                where=node.address,
                hint=f"pip install '{key}=={ours[key]}' there",
            )
    if theirs["engine"] != ours["engine"]:
        raise UsageError(
            f"node {node.name} has another compiled engine of Loadlens {ours['loadlens']}: "
            f"{theirs['engine'][:12]}, and here is {ours['engine'][:12]}",
            where=node.address,
            hint="pip install --force-reinstall loadlens, on both",
        )


def _is_open(address: str) -> bool:
    """True if an address is off loopback and not encrypted."""
    parts = urlsplit(address)
    host = parts.hostname or ""
    if parts.scheme in ("tls", "inproc") or host == "localhost":
        return False
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return True


def _refuse_unencrypted(address: str) -> None:
    if _is_open(address):
        raise UsageError(
            f"{address} is not encrypted: any program that reaches it can run code on every node",
            hint="tls://, or --insecure-fleet, which the record keeps",
        )


def _cause(fault: BaseException) -> BaseException:
    """Return the first of the faults that led to one."""
    while fault.__cause__ is not None:
        fault = fault.__cause__
    return fault


def _first_line(fault: BaseException) -> str:
    if isinstance(fault, TimeoutError) and not str(fault):
        return f"no answer within {CONNECT_S:g} s"
    return (str(fault) or type(fault).__name__).splitlines()[0]
