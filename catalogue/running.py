"""Starts the servers of a setup with their environment, and ends everything afterwards."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from catalogue.family import Environment, Front, Setup, Tier
from catalogue.parts import PING, WORK
from loadlens.errors import TestbedError
from loadlens.model.topology import Limits
from loadlens.testbed.placement import Placement

ROOT = Path(__file__).parent.parent
HOST = "127.0.0.1"
STARTS_WITHIN_S = 20.0
ENDS_WITHIN_S = 5.0
ANSWERS_WITHIN_S = 5.0
FIRST_PORT = 20_000  # first local port of a network of its own: below the ports of its servers


_TRIED = {  # the least environment that shows whether this machine supports a feature
    "control groups": Environment(quota_cores=0.5),
    "memory groups": Environment(memory_bytes=32 << 20),
    "networks": Environment(ports=1),
}
REQUESTS_METRIC = {
    "plain": "http_request_duration_seconds_count",
    "micrometer": "http_server_requests_seconds_count",
}


class CannotRun(Exception):
    """This machine lacks what a setup needs."""


@dataclass(frozen=True, slots=True)
class Service:
    """A running setup."""

    work_url: str
    ping_url: str
    metrics_url: str | None
    requests_metric: str  # name of the counter of requests
    pids: tuple[int, ...]  # of the servers, without the front
    hellos: tuple[Mapping[str, Any], ...]  # line that each server printed when it was ready
    neighbours: tuple[int, ...]  # pids of programs that keep cores busy
    folder: Path  # where servers write their files
    servers: tuple[subprocess.Popen[str], ...]
    network: int | None = None  # pid of a process in the service's network; None: the machine's network

    def lasted(self) -> list[dict[str, Any]]:
        """Return the durations of holds, waits and pauses that each server recorded so far."""
        return [_durations(server) for server in self.servers]

    @property
    def enter(self) -> tuple[str, ...]:
        """Prefix of a command that has to run in the service's network."""
        return _enter(self.network)


def program() -> Path:
    """Return the path of the specimen program, which `make catalogue` and `make test` build."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    path = target / "release" / "loadlens-specimen"
    if not path.exists():
        raise CannotRun(f"{path} is missing: cargo build --release -p loadlens-specimen")
    return path


@contextlib.contextmanager
def running(setup: Setup, tier: Tier = "C") -> Iterator[Service]:
    """Start a setup; when the block ends, end all processes and remove all files.

    Args:
        setup: The setup to start.
        tier: Servers expose metrics in tier C only.

    Raises:
        CannotRun: This machine lacks something that the setup needs.
    """
    with contextlib.ExitStack() as stack:
        # Not a file system in memory: some specimens wait for a disk.
        folder = Path(tempfile.mkdtemp(prefix="loadlens-specimen-", dir="/var/tmp"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        doors = _control_group(setup.environment, stack)
        network = _network(setup.environment, stack)
        enter = _enter(network)
        hellos: list[dict[str, Any]] = []
        servers: list[subprocess.Popen[str]] = []
        for settings in setup.servers:
            whole = _filled(settings, [hello["port"] for hello in hellos], folder)
            if tier == "C":
                whole["metrics"] = _dialect(settings)
            command = [*enter, str(program()), json.dumps(whole)]
            server, hello = _begun(_within(doors, command), stack)
            hellos.append(json.loads(hello))
            servers.append(server)
        entry = hellos[-1]["port"]
        if setup.front is not None:
            entry = _front(setup.front, hellos, folder, enter, stack)
        neighbours = (_neighbour(setup.environment, stack),) if setup.environment.neighbour_cores else ()
        if network is not None and setup.environment.ports is not None:  # not earlier: servers need ports too
            _leave_ports(network, setup.environment.ports)
        metrics = None if setup.metrics_from is None else hellos[setup.metrics_from].get("metrics_port")
        dialect = _dialect(setup.servers[setup.metrics_from or 0])
        yield Service(
            work_url=f"http://{HOST}:{entry}{WORK}",
            ping_url=f"http://{HOST}:{entry}{PING}",
            metrics_url=None if metrics is None else f"http://{HOST}:{metrics}/metrics",
            requests_metric=REQUESTS_METRIC[dialect],
            pids=tuple(pid for hello in hellos for pid in hello["pids"]),
            hellos=tuple(hellos),
            neighbours=neighbours,
            folder=folder,
            servers=tuple(servers),
            network=network,
        )


def others_busy(seconds: float = 1.0) -> float:
    """Return the proportion of CPU time that other programs use while this one sleeps."""
    before = _ticks()
    time.sleep(seconds)
    idle, total = (now - then for now, then in zip(_ticks(), before, strict=True))
    return 1 - idle / total if total else 0.0


def _ticks() -> tuple[int, int]:
    """Return idle ticks (including I/O wait) and total ticks of all processors since boot."""
    ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return ticks[3] + ticks[4], sum(ticks)


def lacks(wants: Sequence[str]) -> str | None:
    """Return why this machine cannot run a setup that wants these; None if it can."""
    if "two processors" in wants and not {0, 1} <= os.sched_getaffinity(0):
        return "needs processors 0 and 1"
    for want, environment in _TRIED.items():
        if want in wants:
            with contextlib.ExitStack() as stack:
                try:
                    _control_group(environment, stack)
                    _network(environment, stack)
                except CannotRun as fault:
                    return str(fault)
    return None


def _dialect(settings: Mapping[str, Any]) -> str:
    """Return the vocabulary of a server's metrics: it follows the seed, so that no rule relies on one."""
    return "micrometer" if settings["seed"] % 2 else "plain"


def _filled(value: Any, ports: Sequence[int], folder: Path) -> Any:
    """Replace `@0` and `@folder` in settings with the port and the path."""
    if isinstance(value, Mapping):
        return {key: _filled(item, ports, folder) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, ports, folder) for item in value]
    if value == "@folder":
        return str(folder)
    if isinstance(value, str) and value.startswith("@"):
        return ports[int(value[1:])]
    return value


def _control_group(environment: Environment, stack: contextlib.ExitStack) -> tuple[Path, ...]:
    limits = Limits(
        cpu=environment.quota_cores,
        period_s=environment.quota_period_s,
        memory_bytes=environment.memory_bytes,
    )
    placement = Placement()
    try:
        place = placement.place("specimen", limits, where="environment")
    except TestbedError as fault:
        raise CannotRun(fault.message) from fault
    stack.callback(placement.remove)  # runs after the processes have ended: those callbacks are added later
    return place.doors


def _within(doors: Sequence[Path], command: list[str]) -> list[str]:
    """Wrap a command so that it joins the control groups before it allocates memory."""
    joins = "".join(f"echo $$ > {shlex.quote(str(door))} && " for door in doors)
    return ["sh", "-c", f'{joins}exec "$0" "$@"', *command] if doors else command


def _network(environment: Environment, stack: contextlib.ExitStack) -> int | None:
    """Start a process that holds a network with only loopback until the block ends; return its pid."""
    if environment.ports is None:
        return None
    missing = [name for name in ("unshare", "nsenter", "ip") if shutil.which(name) is None]
    if missing:
        raise CannotRun(f"cannot make a network namespace: {' and '.join(missing)} not installed")
    hold = "ip link set lo up && echo $$ && exec cat"
    try:
        pid: int = _started(["unshare", "--net", "sh", "-c", hold], stack, int)
    except CannotRun as fault:
        raise CannotRun(f"cannot make a network namespace: {fault} (needs root)") from fault
    return pid


def _enter(network: int | None) -> tuple[str, ...]:
    return () if network is None else ("nsenter", "--target", str(network), "--net", "--")


def _leave_ports(network: int, ports: int) -> None:
    """Narrow the range of a network's local ports."""
    span = f"{FIRST_PORT} {FIRST_PORT + ports - 1}"
    write = f"echo {span} > /proc/sys/net/ipv4/ip_local_port_range"
    subprocess.run([*_enter(network), "sh", "-c", write], check=True)


def _front(
    front: Front,
    hellos: Sequence[Mapping[str, Any]],
    folder: Path,
    enter: Sequence[str],
    stack: contextlib.ExitStack,
) -> int:
    settings = {
        "listen": f"{HOST}:0",
        "control": f"{HOST}:0",
        "upstreams": [f"{HOST}:{hellos[turn]['port']}" for turn in front.turns],
        "faults": front.faults,
    }
    file = folder / "front.json"
    file.write_text(json.dumps(settings))
    command = [*enter, sys.executable, "-m", "loadlens.testbed.proxy_process", str(file)]
    port: int = _started(command, stack, _first_number)  # the port of the proxy is the first number it prints
    return port


def _first_number(line: str) -> int:
    return int(next(word for word in line.replace(",", " ").split() if word.isdecimal()))


def _neighbour(environment: Environment, stack: contextlib.ExitStack) -> int:
    command = [str(program()), "burn", str(environment.neighbour_cores)]
    if environment.neighbour_cpus:
        command = ["taskset", "-c", ",".join(map(str, environment.neighbour_cpus)), *command]
    pid: int = _started(command, stack, json.loads)["pid"]
    return pid


def _started(command: list[str], stack: contextlib.ExitStack, read: Callable[[str], Any]) -> Any:
    return read(_begun(command, stack)[1])


def _begun(command: list[str], stack: contextlib.ExitStack) -> tuple[subprocess.Popen[str], str]:
    """Start a program that prints one line when it is ready, and ends when its standard input closes."""
    path = os.pathsep.join([str(ROOT / "python"), *filter(None, [os.environ.get("PYTHONPATH")])])
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
    )
    stack.callback(_end, process)
    line = _line_of(process, STARTS_WITHIN_S)
    if not line:
        raise CannotRun(f"{Path(command[0]).name} did not start: exit {process.poll()}")
    return process, line


def _durations(server: subprocess.Popen[str]) -> dict[str, Any]:
    assert server.stdin is not None
    try:
        print(file=server.stdin, flush=True)
    except BrokenPipeError:
        raise CannotRun(f"a server ended too early: exit {server.poll()}") from None
    line = _line_of(server, ANSWERS_WITHIN_S)
    if not line:
        raise CannotRun(f"a server did not report its durations: exit {server.poll()}")
    durations: dict[str, Any] = json.loads(line)
    return durations


def _line_of(process: subprocess.Popen[str], within_s: float) -> str:
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], within_s)
    return process.stdout.readline() if ready else ""


def _end(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    try:
        process.wait(ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()
