"""A fleet on one machine: 1, 2 and 4 nodes in network namespaces, nodes that are killed, the merge of 1,000.

    python -m benches.fleet [--nodes 1 2 4] [--rates 4000 20000] [--trials 3] [--seconds 4] [--delay]
    python -m benches.fleet --kills 20
    python -m benches.fleet --agents 1000
    python -m benches.fleet --merge

Needs root and the program `ip`. All namespaces have one kernel and so one clock: the offset that a fleet
measures between its nodes is its error. `--delay` adds 1 to 1.5 ms each way (benches/late_link.py). `--kills`
breaks a node at random moments of a load (`WAYS`) and compares the counts with the service's books.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import random
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, get_args
from unittest import mock

from benches.fleet_agents import LOAD_S, SimulatedAgent
from benches.measuring import ROOT, SERVER_CPU, Origin, find_origin, origin
from loadlens.engine import Result
from loadlens.errors import EngineError
from loadlens.fleet import member
from loadlens.fleet.cluster import Fleet, connect
from loadlens.fleet.member import Member, NodeLost, enlist
from loadlens.fleet.place import place_of
from loadlens.fleet.trial import Trial, run_trial
from loadlens.load_control import LoadControl
from loadlens.model.workload import Open, Plan, RecordTo, Scenario, Step, Stream, Target
from loadlens.run.engine_trial import Listener

HERE: Final = "10.77.0.1"  # of the service and the scheduler
JOIN_S: Final = 30.0
CLOCK: Final = ("clock_offset_ns",)  # the error of what is measured, since all nodes have one clock
START: Final = (*CLOCK, "start_late_ns")  # and how late the node itself was
DELAY_MS: Final = ("1", "0.5")  # each way, and jitter on top
KILL_RATE: Final = 1000.0
KILL_LENGTH_S: Final = 1.5
HEAL_S: Final = 120.0
STRAY_S: Final = 5.0  # in which no process of a load may be left
CHILD: Final = b"loadlens.fleet.child"
DISK_BYTES: Final = 16 << 20  # of a node's temporary files
NOWHERE: Final = ("lladdr", "02:00:00:00:00:01", "nud", "permanent")  # frames to it are dropped on arrival
SLOW: Final = ("root", "tbf", "rate", "256kbit", "burst", "1600", "limit", "100000")  # 3 s to pass the queue

Way = Literal[
    "worker killed",
    "worker suspended",
    "engine killed",
    "engine suspended",
    "cut off",
    "hears nothing",
    "is not heard",
    "disk full",
    "slow link",
]
WAYS: Final[tuple[Way, ...]] = get_args(Way)


def main() -> int:
    parser = argparse.ArgumentParser("python -m benches.fleet", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--rates", type=float, nargs="+", default=[4000.0, 20_000.0])
    parser.add_argument("--trials", type=int, default=3, help="of each rate and number of nodes")
    parser.add_argument("--seconds", type=float, default=4.0, help="of a trial")
    parser.add_argument("--delay", action="store_true", help="1 to 1.5 ms each way")
    parser.add_argument("--kills", type=int, metavar="MOMENTS", help="break a node at so many moments")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS, help="in which --kills breaks it")
    parser.add_argument("--seed", type=int, default=1, help="of the moments")
    parser.add_argument("--agents", type=int, metavar="NUMBER", help="direct so many simulated agents")
    parser.add_argument("--merge", action="store_true", help="merge 1,000 simulated nodes (cargo bench)")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # namespaces and disks are taken down again
    if asked.merge:
        command = ["cargo", "bench", "-p", "loadlens-engine", "--bench", "merge"]
        return subprocess.run(command, cwd=ROOT).returncode
    if asked.agents:
        return simulated(asked.agents)
    if os.geteuid() != 0:
        print("needs root: network namespaces", file=sys.stderr)
        return 2
    with origin(find_origin(), SERVER_CPU, "--address", "0.0.0.0") as server:
        if asked.kills:
            return broken(server, asked.kills, asked.seed, asked.ways)
        print(
            "| nodes | asked /s | answered /s | late p99 ms | CPU/request µs "
            "| clocks apart ms | starts apart, p99 ms | worst | director |"
        )
        print("|" + " ---: |" * 9)
        for count in asked.nodes:
            with namespaces(count, is_slow=asked.delay) as names, cluster(names) as nodes:
                for rate in asked.rates:
                    print(row(nodes.fleet, server, rate, asked.trials, asked.seconds), flush=True)
    return 0


@contextlib.contextmanager
def namespaces(count: int, *, is_slow: bool = False) -> Iterator[list[str]]:
    """Make network namespaces, each with a link to this one, which has the address `HERE`."""
    names = [f"llfleet{number}" for number in range(1, count + 1)]
    with contextlib.ExitStack() as held:
        ip("address", "add", f"{HERE}/32", "dev", "lo")
        held.callback(ip, "address", "delete", f"{HERE}/32", "dev", "lo")
        for number, name in enumerate(names, 1):
            ip("netns", "add", name)
            held.callback(ip, "netns", "delete", name)
            if is_slow:
                held.enter_context(late_link(name))
            else:
                ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name)
                held.callback(ip, "link", "delete", name)  # at once; with its namespace it goes later
            ip("address", "add", f"10.77.{number}.1/30", "dev", name)
            ip("link", "set", name, "up")
            ip("-n", name, "address", "add", f"10.77.{number}.2/30", "dev", "eth0")
            for link in ("lo", "eth0"):
                ip("-n", name, "link", "set", link, "up")
            ip("-n", name, "route", "add", "default", "via", f"10.77.{number}.1")
        yield names


@contextlib.contextmanager
def late_link(name: str) -> Iterator[None]:
    """Link a namespace with this one through a device of its name, with delay and jitter."""
    peer = f"{name}peer"
    command = [sys.executable, "-m", "benches.late_link", name, peer, *DELAY_MS]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            if process.stdout.readline() != b"ready\n":
                raise SystemExit("no TUN devices here")
            ip("link", "set", peer, "netns", name, "name", "eth0")
            yield
        finally:
            process.stdin.close()


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


def tc(*arguments: str) -> None:
    subprocess.run(["tc", *arguments], check=True)


@dataclass(slots=True)
class Cluster:
    """A scheduler, its workers by name, and the fleet that they are."""

    address: str
    folder: Path
    held: contextlib.ExitStack
    workers: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    fleet: Fleet = field(init=False)

    def start(self, name: str) -> None:
        """Start the worker of a namespace, also again; its files are on a small disk of its own."""
        disk = self.folder / name
        if name not in self.workers:
            disk.mkdir()
            mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(disk)]
            subprocess.run(mount, check=True)
            self.held.callback(subprocess.run, ["umount", "--lazy", str(disk)], check=True)
        own = ("worker", self.address, "--name", name, "--host", f"10.77.{name[-1]}.2", "--no-nanny")
        place = ("--nthreads", "1", "--local-directory", str(disk))
        self.workers[name] = self.held.enter_context(dask(*own, *place, within=name, temporary=disk))

    def strike(self, name: str, way: Way) -> None:
        """Break a node."""
        worker, number = self.workers[name].pid, name[-1]
        match way:
            case "worker killed" | "worker suspended" | "engine killed" | "engine suspended":
                for pid in [worker] if way.startswith("worker") else children(worker):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL if way.endswith("killed") else signal.SIGSTOP)
            case "cut off" | "hears nothing" | "is not heard":
                if way != "is not heard":
                    ip("neigh", "replace", f"10.77.{number}.2", "dev", name, *NOWHERE)
                if way != "hears nothing":
                    ip("-n", name, "neigh", "replace", f"10.77.{number}.1", "dev", "eth0", *NOWHERE)
            case "disk full":
                with contextlib.suppress(OSError), open(self.folder / name / "full", "wb", 0) as file:
                    while True:
                        file.write(bytes(1 << 16))
            case "slow link":
                tc("qdisc", "add", "dev", name, *SLOW)
                tc("-n", name, "qdisc", "add", "dev", "eth0", *SLOW)

    def heal(self, name: str, way: Way) -> None:
        """Undo what `strike` did, and wait until the node answers."""
        worker, number = self.workers[name], name[-1]
        match way:
            case "worker killed" | "worker suspended":
                worker.send_signal(signal.SIGCONT)
                if way == "worker killed":
                    worker.wait()
                    self.start(name)
            case "cut off" | "hears nothing" | "is not heard":
                if way != "is not heard":
                    ip("neigh", "delete", f"10.77.{number}.2", "dev", name)
                if way != "hears nothing":
                    ip("-n", name, "neigh", "delete", f"10.77.{number}.1", "dev", "eth0")
            case "disk full":
                (self.folder / name / "full").unlink()
            case "slow link":
                tc("qdisc", "delete", "dev", name, "root")
                tc("-n", name, "qdisc", "delete", "dev", "eth0", "root")
            case _:
                pass
        self.await_all()

    def await_all(self) -> None:
        """Wait until all nodes take an agent: a connection that was cut is repeated seldom.

        Raises:
            NodeLost: One did not within two minutes.
        """
        self.fleet.demand(len(self.workers))
        until = time.monotonic() + HEAL_S
        for node in self.fleet.nodes:
            while True:
                try:
                    enlist(self.fleet.client, node).release()
                    break
                except NodeLost:
                    if time.monotonic() > until:
                        raise


@contextlib.contextmanager
def scheduler(folder: Path, host: str) -> Iterator[str]:
    """Run a scheduler within the block; yields its address."""
    file = folder / "scheduler.json"
    own = ("--host", host, "--port", "0", "--scheduler-file", str(file), "--no-show")
    with dask("scheduler", *own, temporary=folder):
        until = time.monotonic() + JOIN_S
        while not (file.exists() and file.read_text().endswith("}")) and time.monotonic() < until:
            time.sleep(0.02)
        yield json.loads(file.read_text())["address"]


@contextlib.contextmanager
def cluster(names: list[str]) -> Iterator[Cluster]:
    """Run a scheduler here and a worker in each namespace."""
    with contextlib.ExitStack() as held:
        folder = Path(held.enter_context(tempfile.TemporaryDirectory()))
        running = Cluster(held.enter_context(scheduler(folder, HERE)), folder, held)
        for name in names:
            running.start(name)
        running.fleet = held.enter_context(
            connect(place_of(running.address), nodes=len(names), insecure=True)
        )
        yield running


@contextlib.contextmanager
def dask(
    *arguments: str, within: str | None = None, temporary: Path | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program of Dask within the block."""
    environment = os.environ if temporary is None else os.environ | {"TMPDIR": str(temporary)}
    inside = [] if within is None else ["ip", "netns", "exec", within]
    command = [*inside, sys.executable, "-m", "dask", *arguments, "--no-dashboard"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def plan_of(port: int, rate: float, seconds: float) -> Plan:
    """Return a plan of one open load."""
    target = Target(HERE, port, f"{HERE}:{port}")
    scenario = Scenario("get", 1.0, (Step("get", "GET", "/"),))
    stream = Stream("load", "load", target, (scenario,), Open(rate), timeout_ns=2 * 10**9)
    return Plan(seed=7, streams=(stream,), threads=1, duration_ns=round(seconds * 1e9), drain_ns=2 * 10**9)


def row(fleet: Fleet, server: Origin, rate: float, trials: int, seconds: float) -> str:
    """Return a line of the table: medians over trials, and how far apart the nodes were."""
    results, own = [], []
    for _ in range(trials):
        server.new_books()
        began = time.process_time()
        results.append(run_trial(fleet, plan_of(server.port, rate, seconds)))
        own.append((time.process_time() - began) / seconds)
        counted, requests = server.books(), results[-1]["streams"][0]["requests"]
        if requests["issued"] != counted["received"]:
            raise SystemExit(f"{requests['issued']} counted, and the service received {counted['received']}")
    streams = [result["streams"][0] for result in results]
    quantiles = [stream["lag_s"]["p99"]["value"] for stream in streams]
    starts = sorted(apart_ms(result, *START) for result in results)
    late = [quantile for quantile in quantiles if quantile is not None]  # of short loads there is none
    cells = (
        f"{len(fleet.nodes)}",
        f"{rate:,.0f}",
        f"{statistics.median(stream['requests']['answered'] for stream in streams) / seconds:,.0f}",
        f"{1e3 * statistics.median(late):.2f}" if late else "?",
        f"{statistics.median(map(cost_us, results)):.1f}",
        f"{max(apart_ms(result, *CLOCK) for result in results):.2f}",
        f"{starts[math.ceil(0.99 * trials) - 1]:.2f}",
        f"{starts[-1]:.2f}",
        f"{statistics.median(own):.1%} of a core",
    )
    return f"| {' | '.join(cells)} |"


def cost_us(result: Result) -> float:
    """Processor time of all nodes per request, in microseconds."""
    used = sum(float(node["generator"]["cpu_s"]) for node in result["nodes"])
    return used / int(result["streams"][0]["requests"]["answered"]) * 1e6


def apart_ms(result: Result, *parts: str) -> float:
    """Time between the first and the last node by these parts, in ms."""
    starts = [sum(node[part] for part in parts) / 1e6 for node in result["nodes"]]
    return float(max(starts) - min(starts))


# --- many agents ----------------------------------------------------------------------------------------


def simulated(count: int) -> int:
    """Direct a load of agents without an engine; prints what each step took; returns 1 if one was lost."""
    beats = 0
    tell = Member.tell

    def counted(self: Member, message: Mapping[str, Any]) -> None:
        nonlocal beats
        beats += 1
        tell(self, message)

    @contextlib.contextmanager
    def timed(step: str) -> Iterator[None]:
        began, worked, sent = time.monotonic(), time.process_time(), beats
        yield
        took_s, worked_s = time.monotonic() - began, time.process_time() - worked
        print(f"| {step} | {took_s:.1f} | {worked_s:.1f} | {beats - sent:,} |", flush=True)

    print("| step | s | CPU s of the director | beats |")
    print("| --- | ---: | ---: | ---: |")
    with contextlib.ExitStack() as held:
        folder = Path(held.enter_context(tempfile.TemporaryDirectory()))
        address = held.enter_context(scheduler(folder, "127.0.0.1"))
        command = [sys.executable, "-m", "benches.fleet_agents", address, str(count)]
        workers = held.enter_context(
            subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=ROOT
            )
        )
        assert workers.stdin is not None
        assert workers.stdout is not None
        held.callback(workers.stdin.close)
        with timed("agents"):
            if workers.stdout.readline() != b"ready\n":
                raise SystemExit("the agents did not start")
        held.enter_context(mock.patch.object(member, "Agent", SimulatedAgent))
        held.enter_context(mock.patch.object(Member, tell.__name__, counted))
        with timed("join"):
            fleet = held.enter_context(connect(place_of(address), nodes=count))
        plan, nowhere = plan_of(9, 1000.0, LOAD_S), RecordTo(str(folder))  # no engine sees it
        trial = Trial(fleet, plan, Listener(), nowhere, LoadControl(None))
        with timed("gather"):
            trial.gather()
        with timed("start"):
            trial.start()
        with timed("beat"):
            trial.watch()
        lost = trial.reasons
        with timed("stop"):
            trial.close()
    most_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{count:,} agents, {len(lost)} faults {lost[:3]}, {most_mib:,.0f} MiB in the director")
    return int(bool(lost))


# --- nodes that break -----------------------------------------------------------------------------------


def broken(server: Origin, moments: int, seed: int, ways: Sequence[Way] = WAYS) -> int:
    """Break a node at random moments; prints what each came to, and returns 1 if any is wrong."""
    drawn = random.Random(seed)
    wrong = 0
    outcomes: Counter[str] = Counter()
    with namespaces(2) as names, cluster(names) as nodes:
        for number in range(1, moments + 1):
            way = drawn.choice(ways)
            after_s = drawn.uniform(0.0, KILL_LENGTH_S + 2.0)
            outcome, is_wrong = once(nodes, names[1], server, way, after_s)
            outcomes[outcome] += 1
            wrong += is_wrong
            outcome = f"WRONG: {outcome}" if is_wrong else outcome
            print(f"{number}: {way} after {after_s:.2f} s: {outcome}", flush=True)
    print(f"{sum(outcomes.values())} moments, {wrong} wrong: {dict(outcomes)}")
    return int(wrong > 0)


def once(nodes: Cluster, name: str, server: Origin, way: Way, after_s: float) -> tuple[str, bool]:
    """Make one load in which a node breaks; how it ended, and true if that is wrong."""
    server.new_books()
    struck = threading.Event()

    def strike() -> None:
        struck.set()
        nodes.strike(name, way)

    timer = threading.Timer(after_s, strike)
    timer.start()
    try:
        result: Any = run_trial(nodes.fleet, plan_of(server.port, KILL_RATE, KILL_LENGTH_S))
    except EngineError as fault:
        result, outcome = None, f"refused: {type(fault).__name__}: {fault.message}"
    timer.cancel()
    timer.join()
    until = time.monotonic() + STRAY_S
    while engines() and time.monotonic() < until:
        time.sleep(0.05)
    left = engines()
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    counted = server.books()
    if struck.is_set():
        nodes.heal(name, way)
    if result is None:
        return outcome, bool(left)
    if left:
        return f"{len(left)} engines left", True
    requests = result["streams"][0]["requests"]
    # Behind a slow link requests that have left the engine may not have reached the service.
    is_more = requests["answered" if way == "slow link" else "issued"] > counted["received"]
    if result["status"] == "complete":  # before the start, after the end, or a fault that the load outlived
        is_whole = requests["due"] == KILL_RATE * KILL_LENGTH_S
        is_less = way != "slow link" and requests["issued"] < counted["received"]
        is_wrong = is_more or is_less or not is_whole
        counts = f": {requests}, and the service {counted}" if is_wrong else ""
        return f"complete on {len(result['nodes'])} nodes{counts}", is_wrong
    is_named = any(name in reason for reason in result["reasons"])
    return f"{result['status']}, {'named' if is_named else 'not named'}", is_more or not is_named


def children(worker: int) -> list[int]:
    """Return the engine's processes below a worker."""
    return [pid for pid in engines() if f"\nPPid:\t{worker}\n" in Path(f"/proc/{pid}/status").read_text()]


def engines() -> list[int]:
    """Return the engine's processes of nodes in our namespaces that have not ended."""
    running = []
    spaces = {os.stat(path).st_ino for path in Path("/run/netns").glob("llfleet*")}
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            is_ours = entry.name.isdigit() and CHILD in (entry / "cmdline").read_bytes()
            if is_ours and os.stat(entry / "ns" / "net").st_ino in spaces:
                running.append(int(entry.name))
    return running


if __name__ == "__main__":
    sys.exit(main())
