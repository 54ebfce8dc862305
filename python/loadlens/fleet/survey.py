"""Survey of a fleet before it makes loads: what each machine can do, its clock, and its path to a service.

A machine is measured by its own `loadlens doctor`, in a process of its own, which keeps the result there; so
later loads know its ceiling. Nodes on one host are one machine and are measured once.
"""

from __future__ import annotations

import json
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from loadlens.errors import EngineError, reason_of
from loadlens.fleet.cluster import Fleet, Node
from loadlens.fleet.member import GONE, NodeLost, enlist
from loadlens.machine import inventory
from loadlens.model.result import MOST_CLOCK_ERROR_S

LOOK_S: Final = 120.0  # `doctor` measures for some 20 s, longer on a busy machine
PATH_S: Final = 3.0  # of a connection to the service
CONNECTS: Final = 5
FEW_DESCRIPTORS: Final = 1024
OF_SERVICES: Final = ("cores", "listen queue")  # of `doctor`; services are elsewhere


@dataclass(frozen=True, slots=True)
class Problem:
    """Fault of a node, and the remedy."""

    state: Literal["caution", "bad"]
    words: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Surveyed:
    """A node as it was found; None: not known."""

    node: Node
    problems: tuple[Problem, ...]
    calibration: Mapping[str, Any] | None = None  # as `loadlens doctor --json` has it
    local_ports: int | None = None
    descriptors: int | None = None
    clock_error_s: float | None = None
    round_trip_s: float | None = None  # the longest of a burst
    connect_s: float | None = None  # to the service, the shortest of some

    @property
    def is_fit(self) -> bool:
        """True unless a problem keeps the node from making loads."""
        return all(problem.state != "bad" for problem in self.problems)


def survey(fleet: Fleet, target: tuple[str, int] | None = None, *, measures: bool = True) -> list[Surveyed]:
    """Look at every node.

    Args:
        fleet: Where.
        target: Host and port of a service, to which every node connects.
        measures: Loads each machine for some 20 s; false: only looks.
    """
    clocks = [_clock(fleet, node) for node in fleet.nodes]  # before nodes are busy
    paths = [_asked(fleet, node, connected, *target) for node in fleet.nodes] if target else []
    connects = [_answer(path, PATH_S * CONNECTS + PATH_S) for path in paths]
    first = {node.host: node for node in reversed(fleet.nodes)}
    looks = {host: _asked(fleet, node, looked, measures) for host, node in first.items()}
    seen = {host: _answer(look, LOOK_S + PATH_S) for host, look in looks.items()}
    return [
        _surveyed(node, seen[node.host], clocks[number], connects[number] if target else None, target)
        for number, node in enumerate(fleet.nodes)
    ]


def looked(measures: bool) -> dict[str, Any]:
    """Run `loadlens doctor` on this machine; its JSON, or `fault`: why there is none."""
    command = [sys.executable, "-P", "-m", "loadlens", "doctor", "--json"]
    command += [] if measures else ["--no-measure"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=LOOK_S, cwd="/", stdin=subprocess.DEVNULL
        )
        content: dict[str, Any] = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        return {"fault": f"loadlens doctor did not end within {LOOK_S:g} s"}
    except ValueError:
        lines = done.stderr.strip().splitlines()
        return {"fault": f"loadlens doctor ended with {done.returncode}: {lines[-1] if lines else 'no word'}"}
    ports = inventory.facts()["ephemeral_ports"]
    return content | {
        "descriptors": resource.getrlimit(resource.RLIMIT_NOFILE)[1],
        "local_ports": None if ports is None else ports[1] - ports[0] + 1,
    }


def connected(host: str, port: int) -> dict[str, Any]:
    """Connect from this machine some times; the shortest time in seconds, or `fault`."""
    times = []
    try:
        for _ in range(CONNECTS):
            began_s = time.perf_counter()
            socket.create_connection((host, port), PATH_S).close()
            times.append(time.perf_counter() - began_s)
    except UnicodeError:  # a name that no resolver is asked for
        return {"fault": "no name of a host"}
    except OSError as fault:
        return {"fault": reason_of(fault)}
    return {"connect_s": min(times)}


def _asked(fleet: Fleet, node: Node, function: Any, *given: object) -> Any:
    return fleet.client.submit(
        function, *given, workers=[node.address], allow_other_workers=False, pure=False, retries=0
    )


def _answer(future: Any, timeout_s: float) -> Mapping[str, Any]:
    try:
        answer: Mapping[str, Any] = future.result(timeout=timeout_s)
    except (*GONE, EngineError):
        future.cancel()
        return {"fault": "the node did not answer"}
    return answer


def _clock(fleet: Fleet, node: Node) -> tuple[float, float] | str:
    """Return the error of the clock and the longest round trip, in seconds; or why there is none."""
    try:
        member = enlist(fleet.client, node)
        try:
            offset = member.measure_clock()
            return offset.error_ns / 1e9, member.round_trip_ns / 1e9
        finally:
            member.release()
    except NodeLost as fault:
        return str(fault)


def _surveyed(
    node: Node,
    seen: Mapping[str, Any],
    clock: tuple[float, float] | str,
    path: Mapping[str, Any] | None,
    target: tuple[str, int] | None,
) -> Surveyed:
    """Put together what was seen of a node."""
    checks = [check for check in seen.get("checks", ()) if check["name"] not in OF_SERVICES]
    problems = [
        Problem(check["state"], check["words"], check["advice"])
        for check in checks
        if check["state"] in ("caution", "bad")
    ]
    problems += [Problem("bad", seen[key]) for key in ("fault", "calibration_fault") if seen.get(key)]
    descriptors = seen.get("descriptors")
    if descriptors is not None and descriptors < FEW_DESCRIPTORS:
        words = f"at most {descriptors} open files, one for each connection"
        problems.append(Problem("caution", words, "ulimit -Hn 65536, before dask worker"))
    if isinstance(clock, str):
        problems.append(Problem("bad", clock))
    elif clock[0] > MOST_CLOCK_ERROR_S:
        words = f"its clock is known to {clock[0]:.2f} s only, at most {MOST_CLOCK_ERROR_S} s"
        problems.append(Problem("bad", words, "a node nearer to this machine"))
    if path is not None and target is not None and "fault" in path:
        words = f"no connection to {target[0]}:{target[1]}: {path['fault']}"
        problems.append(Problem("bad", words, "the service's address as the nodes see it"))
    return Surveyed(
        node,
        tuple(problems),
        calibration=seen.get("calibration"),
        local_ports=seen.get("local_ports"),
        descriptors=descriptors,
        clock_error_s=None if isinstance(clock, str) else clock[0],
        round_trip_s=None if isinstance(clock, str) else clock[1],
        connect_s=None if path is None else path.get("connect_s"),
    )
