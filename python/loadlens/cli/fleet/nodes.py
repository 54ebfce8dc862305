"""`--fleet`: the machines that make a load in place of this one, for every verb that makes loads."""

from __future__ import annotations

import ipaddress
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from loadlens.errors import UsageError

if TYPE_CHECKING:
    from loadlens.model.study import FleetSize, Study
    from loadlens.model.workload import Closed, Open
    from loadlens.run.engine_trial import MakeLoad

PACKAGE: Final = "distributed"  # of the extra `fleet` of pyproject.toml, as it is imported
INSTALL: Final = "pip install 'loadlens[fleet]'"
OF_STUDY: Final = "127.0.0.1"  # where services that a study starts listen

FLEET: Final = (
    "--fleet WHERE",
    (
        "Divide the load among the workers of a Dask cluster: tcp://HOST:PORT or tls://HOST:PORT of its "
        "scheduler, the scheduler's JSON file, ssh:HOST,HOST, or local:N for N processes here. Default: this "
        "machine alone. Example: --fleet local:2"
    ),
)
INSECURE_FLEET: Final = (
    "--insecure-fleet",
    (
        "Use a fleet over connections without TLS, where any program that reaches them can run code on "
        "every node; the record says so."
    ),
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The values of both options."""

    where: str | None = None  # None: this machine makes the load
    is_insecure: bool = False


@dataclass(frozen=True, slots=True)
class Nodes:
    """The machines of a fleet, ready to make loads."""

    make_load: MakeLoad
    hosts: tuple[str, ...]

    @property
    def away(self) -> tuple[str, ...]:
        """Hosts that are not this machine."""
        return tuple(host for host in self.hosts if host != socket.gethostname())

    def refuse_loopback(self, targets: Sequence[str]) -> None:
        """Refuse loads on loopback, which machines elsewhere would send to themselves.

        Args:
            targets: Hosts of the loads.

        Raises:
            UsageError: One of them is on loopback, and not all nodes are here.
        """
        loopback = [target for target in targets if _is_loopback(target)]
        if loopback and self.away:
            raise UsageError(
                f"{loopback[0]} is another machine on each node, such as {self.away[0]}",
                where="--fleet",
                hint="the service's address as the nodes see it, or --fleet local:4",
            )


@contextmanager
def nodes_of(
    wanted: Wanted, targets: Sequence[str], size: FleetSize | None = None, *, peak_per_s: float = 0.0
) -> Iterator[Nodes | None]:
    """Connect to a fleet within the block; None: this machine makes the load.

    Args:
        wanted: The options.
        targets: Hosts that the loads go to.
        size: What the study says of its fleet.
        peak_per_s: The highest rate of any load in requests, as far as it is known; every trial looks again.

    Raises:
        UsageError: The fleet cannot be used, has no way to a target, or fewer nodes than the study wants.
        TooLargeError: A node cannot send its share.
    """
    if wanted.where is None:
        if wanted.is_insecure:
            raise UsageError("there is no fleet", where="--insecure-fleet", hint="--fleet WHERE")
        if size is not None:
            raise UsageError(
                f"the study divides its load among {size.nodes} nodes",
                where="fleet",
                hint=f"--fleet WHERE, such as --fleet local:{size.nodes}",
            )
        yield None
        return
    if find_spec(PACKAGE) is None:
        raise UsageError(f"a fleet needs more packages: {INSTALL}", where="--fleet")
    from loadlens.fleet.place import place_of

    place = place_of(wanted.where)  # refused before Dask is loaded, which takes a second
    from loadlens.fleet.ceiling import refuse_beyond
    from loadlens.fleet.cluster import connect
    from loadlens.fleet.trial import run_trial

    count, weights = (None, ()) if size is None else (size.nodes, size.weights)
    with connect(place, nodes=count, weights=weights, insecure=wanted.is_insecure, say=say) as fleet:
        nodes = Nodes(partial(run_trial, fleet), tuple(node.host for node in fleet.nodes))
        nodes.refuse_loopback(targets)
        refuse_beyond(fleet.nodes, weights, peak_per_s)
        yield nodes


def say(words: str) -> None:
    """Print a line while nodes are waited for."""
    sys.stderr.write(f"loadlens: {words}\n")


@contextmanager
def nodes_for(wanted: Wanted, study: Study) -> Iterator[MakeLoad | None]:
    """Connect to a fleet for the loads of a study within the block; None: this machine makes them.

    Raises:
        UsageError: As `nodes_of`; or another program makes a load.
    """
    drivers = [case.driver for case in study.cases if case.driver is not None]
    if wanted.where is not None and drivers:
        raise UsageError(
            f"a fleet cannot divide a load of {drivers[0]}", where="--fleet", hint="a study without `driver`"
        )
    urls = [case.entry.url for case in study.cases]
    targets = [OF_STUDY if url is None else urlsplit(url).hostname or "" for url in urls]
    peak_per_s = max((peak_of(case.workload) * case.requests for case in study.cases), default=0.0)
    with nodes_of(wanted, targets, study.fleet, peak_per_s=peak_per_s) as nodes:
        yield None if nodes is None else nodes.make_load


def peak_of(workload: Closed | Open) -> float:
    """Return the highest rate of iterations; 0: users make it, and the service decides."""
    from loadlens.model.workload import Open

    return workload.peak_per_s if isinstance(workload, Open) else 0.0


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
