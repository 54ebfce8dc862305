"""Services of a setup, started and watched until they are asked no more."""

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

from catalogue.family import Around, Front, Setup, Tier
from catalogue.parts import PING, WORK
from loadlens.errors import TestbedError
from loadlens.model.topology import Limits
from loadlens.testbed.placement import Placement

ROOT = Path(__file__).parent.parent
HOST = "127.0.0.1"
STARTS_WITHIN_S = 20.0
ENDS_WITHIN_S = 5.0
ANSWERS_WITHIN_S = 5.0
FIRST_PORT = 20_000  # where local ports of a network of its own begin: below those that servers got


_TRIED = {  # by what is wanted
    "control groups": Around(quota_cores=0.5),
    "memory groups": Around(memory_bytes=32 << 20),
    "networks": Around(ports=1),
}
REQUESTS_METRIC = {
    "plain": "http_request_duration_seconds_count",
    "micrometer": "http_server_requests_seconds_count",
}


class CannotRun(Exception):
    """This machine lacks what a setup needs."""


@dataclass(frozen=True, slots=True)
class Service:
    """A setup that runs."""

    work_url: str
    ping_url: str
    metrics_url: str | None
    requests_metric: str  # the counter of requests among them
    pids: tuple[int, ...]  # that serve, fronts left out
    hellos: tuple[Mapping[str, Any], ...]  # what each server said of itself
    neighbours: tuple[int, ...]  # processes that compute beside it
    folder: Path  # where servers write their files
    servers: tuple[subprocess.Popen[str], ...]
    network: int | None = None  # a process in the network where it is; none: the machine's

    def lasted(self) -> list[dict[str, Any]]:
        """How long holds, waits and pauses of each server really were so far."""
        return [_asked(server) for server in self.servers]

    @property
    def enter(self) -> tuple[str, ...]:
        """What goes before a command that asks it."""
        return _enter(self.network)


def program() -> Path:
    """The specimen program; built by `make catalogue` and `make test`."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    path = target / "release" / "loadlens-specimen"
    if not path.exists():
        raise CannotRun(f"{path} is missing: cargo build --release -p loadlens-specimen")
    return path


@contextlib.contextmanager
def running(setup: Setup, tier: Tier = "C") -> Iterator[Service]:
    """Start a setup; everything ends and is removed with the block.

    Args:
        setup: What to start.
        tier: Servers tell metrics in tier C only.

    Raises:
        CannotRun: Something that the setup needs is not to be had here.
    """
    with contextlib.ExitStack() as stack:
        # Not a memory file system: some specimens wait for a disk.
        folder = Path(tempfile.mkdtemp(prefix="loadlens-specimen-", dir="/var/tmp"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        doors = _control_group(setup.around, stack)
        network = _network(setup.around, stack)
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
        neighbours = (_neighbour(setup.around, stack),) if setup.around.neighbour_cores else ()
        if network is not None and setup.around.ports is not None:  # now that servers have theirs
            _leave_ports(network, setup.around.ports)
        told = None if setup.told_by is None else hellos[setup.told_by].get("metrics_port")
        dialect = _dialect(setup.servers[setup.told_by or 0])
        yield Service(
            work_url=f"http://{HOST}:{entry}{WORK}",
            ping_url=f"http://{HOST}:{entry}{PING}",
            metrics_url=None if told is None else f"http://{HOST}:{told}/metrics",
            requests_metric=REQUESTS_METRIC[dialect],
            pids=tuple(pid for hello in hellos for pid in hello["pids"]),
            hellos=tuple(hellos),
            neighbours=neighbours,
            folder=folder,
            servers=tuple(servers),
            network=network,
        )


def others_busy(seconds: float = 1.0) -> float:
    """Share of the processors' time that is used while we only wait."""
    before = _ticks()
    time.sleep(seconds)
    idle, total = (now - then for now, then in zip(_ticks(), before, strict=True))
    return 1 - idle / total if total else 0.0


def _ticks() -> tuple[int, int]:
    """Idle ticks, waiting for disks included, and all; of all processors since the start."""
    ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return ticks[3] + ticks[4], sum(ticks)


def lacks(wants: Sequence[str]) -> str | None:
    """What of the wanted this machine has not; none: nothing."""
    if "two processors" in wants and not {0, 1} <= os.sched_getaffinity(0):
        return "the processors 0 and 1"
    for want, around in _TRIED.items():
        if want in wants:
            with contextlib.ExitStack() as stack:
                try:
                    _control_group(around, stack)
                    _network(around, stack)
                except CannotRun as fault:
                    return str(fault)
    return None


def _dialect(settings: Mapping[str, Any]) -> str:
    """What its metrics are called: it follows the seed, so that no rule learns one vocabulary."""
    return "micrometer" if settings["seed"] % 2 else "plain"


def _filled(value: Any, ports: Sequence[int], folder: Path) -> Any:
    """Settings with ports and the folder in place of their names."""
    if isinstance(value, Mapping):
        return {key: _filled(item, ports, folder) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, ports, folder) for item in value]
    if value == "@folder":
        return str(folder)
    if isinstance(value, str) and value.startswith("@"):
        return ports[int(value[1:])]
    return value


def _control_group(around: Around, stack: contextlib.ExitStack) -> tuple[Path, ...]:
    limits = Limits(cpu=around.quota_cores, period_s=around.quota_period_s, memory_bytes=around.memory_bytes)
    placement = Placement()
    try:
        place = placement.place("specimen", limits, where="around")
    except TestbedError as fault:
        raise CannotRun(fault.message) from fault
    stack.callback(placement.remove)  # after the processes have ended, which were started later
    return place.doors


def _within(doors: Sequence[Path], command: list[str]) -> list[str]:
    """A command that is in control groups before it has pages of its own."""
    joins = "".join(f"echo $$ > {shlex.quote(str(door))} && " for door in doors)
    return ["sh", "-c", f'{joins}exec "$0" "$@"', *command] if doors else command


def _network(around: Around, stack: contextlib.ExitStack) -> int | None:
    """A network in which there is loopback alone: a process that holds it until the block ends."""
    if around.ports is None:
        return None
    missing = [name for name in ("unshare", "nsenter", "ip") if shutil.which(name) is None]
    if missing:
        raise CannotRun(f"no network of its own: there is no {' and no '.join(missing)}")
    hold = "ip link set lo up && echo $$ && exec cat"
    try:
        pid: int = _started(["unshare", "--net", "sh", "-c", hold], stack, int)
    except CannotRun as fault:
        raise CannotRun(f"no network of its own: {fault} (it needs root)") from fault
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
    port: int = _started(command, stack, _first_number)  # "passes on from port 4711, books on port 4712"
    return port


def _first_number(line: str) -> int:
    return int(next(word for word in line.replace(",", " ").split() if word.isdecimal()))


def _neighbour(around: Around, stack: contextlib.ExitStack) -> int:
    command = [str(program()), "burn", str(around.neighbour_cores)]
    if around.neighbour_cpus:
        command = ["taskset", "-c", ",".join(map(str, around.neighbour_cpus)), *command]
    pid: int = _started(command, stack, json.loads)["pid"]
    return pid


def _started(command: list[str], stack: contextlib.ExitStack, read: Callable[[str], Any]) -> Any:
    return read(_begun(command, stack)[1])


def _begun(command: list[str], stack: contextlib.ExitStack) -> tuple[subprocess.Popen[str], str]:
    """Start a program that says one line when it is ready and ends with its standard input."""
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


def _asked(server: subprocess.Popen[str]) -> dict[str, Any]:
    assert server.stdin is not None
    try:
        print(file=server.stdin, flush=True)
    except BrokenPipeError:
        raise CannotRun(f"a server ended before it was told to: exit {server.poll()}") from None
    line = _line_of(server, ANSWERS_WITHIN_S)
    if not line:
        raise CannotRun(f"a server says nothing of its books: exit {server.poll()}")
    books: dict[str, Any] = json.loads(line)
    return books


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
