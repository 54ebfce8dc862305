"""What this machine can be trusted with (`doctor`): what stands in the way, how punctual the generator is.

`of_machine` reads and watches the machine for a second; `punctuality` drives the engine against a server of
our own that does nothing, so that all lateness is the generator's or the machine's.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from loadlens import engine, machine
from loadlens.errors import EngineError
from loadlens.model.study import Study
from loadlens.model.workload import Closed, Connection, Open, Plan, Scenario, Step, Stream, Target

State = Literal["ok", "caution", "bad", "unknown"]

WATCH_S = 1.0
OWN_DESCRIPTORS = 64  # the lab's own files, beside one for each connection
BUSY_SHARE = 0.05  # of all CPUs, by others, above which small effects drown
STEAL_SHARE = 0.01
FEW_PORTS = 20_000
TIME_WAIT_S = 60.0  # how long Linux keeps a local port after we closed first
RATE_PER_S = 1_000.0
PUNCTUAL_S = 0.0001  # lateness of the 99th percentile that needs no mention
ENDS_WITHIN_S = 10.0  # beyond the measured part
SLOW_CLOCKS = ("hpet", "acpi_pm", "jiffies", "refined-jiffies")


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at."""

    name: str
    state: State
    words: str  # what was seen, with numbers
    advice: str = ""  # one thing to do; empty when it is ok


@dataclass(frozen=True, slots=True)
class Punctuality:
    """How the generator kept due times that nothing but the machine could delay."""

    rate_per_s: float
    late_p99_s: float
    busy: float  # share of a core


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The most that was answered by a server that does nothing; the generator can do at least that."""

    requests_per_s: float
    busy: float
    is_the_generators: bool  # false: the server was the limit, the generator can do more


def of_machine(study: Study | None = None) -> tuple[Check, ...]:
    """Everything that can be seen without load; with a study, also what that asks for."""
    facts = machine.facts()
    checks = [
        _cores(facts, machine.limits()),
        _clock(facts),
        _governor(facts),
        _ports(facts),
        _backlog(facts),
        *_background(WATCH_S),
    ]
    return tuple(checks + _study_checks(study, facts) if study is not None else checks)


def _cores(facts: Mapping[str, Any], limits: Mapping[str, Any]) -> Check:
    allowed, quota = facts["cores_allowed"], limits["cpu_cores"]
    cores = min(allowed, quota) if quota is not None else allowed
    words = f"{cores:g} cores for the lab and what it starts" + (" (a quota)" if cores != allowed else "")
    if cores < 2:
        return Check("cores", "bad", words, "use at least 2: the generator and the service share one")
    if cores < 4:
        return Check(
            "cores", "caution", words, "read saturation with care: services share with the generator"
        )
    return Check("cores", "ok", words)


def _clock(facts: Mapping[str, Any]) -> Check:
    source = facts["clocksource"]
    if source is None:
        return Check("clock", "unknown", "the clock source cannot be read")
    if source in SLOW_CLOCKS:
        return Check("clock", "bad", f"clock source {source}: each reading costs microseconds", "use tsc")
    return Check("clock", "ok", f"clock source {source}")


def _governor(facts: Mapping[str, Any]) -> Check:
    governor = facts["governor"]
    if governor is None:
        return Check("frequency", "unknown", "the frequency governor cannot be read (usual in a guest)")
    if governor != "performance":
        advice = "cpupower frequency-set -g performance"
        return Check("frequency", "caution", f"governor {governor}: speed follows the load", advice)
    return Check("frequency", "ok", "governor performance")


def _ports(facts: Mapping[str, Any]) -> Check:
    span = facts["ephemeral_ports"]
    if span is None:
        return Check("local ports", "unknown", "their range cannot be read")
    count = span[1] - span[0] + 1
    words = f"{count} local ports: {count / TIME_WAIT_S:.0f} new connections/s to one address, lasting"
    if count < FEW_PORTS:
        return Check("local ports", "caution", words, "sysctl net.ipv4.ip_local_port_range='1024 65535'")
    return Check("local ports", "ok", words)


def _backlog(facts: Mapping[str, Any]) -> Check:
    backlog = facts["listen_backlog"]
    if backlog is None:
        return Check("listen queue", "unknown", "its bound cannot be read")
    if backlog < 1024:
        advice = "sysctl net.core.somaxconn=4096"
        return Check("listen queue", "caution", f"at most {backlog} connections wait to be accepted", advice)
    return Check("listen queue", "ok", f"at most {backlog} connections wait to be accepted")


def _background(seconds: float) -> Iterator[Check]:
    """What others do with the CPUs while we only wait."""
    before = _cpu_ticks()
    time.sleep(seconds)
    after = _cpu_ticks()
    if before is None or after is None:
        yield Check("other load", "unknown", "/proc/stat cannot be read")
        return
    spent = {name: after[name] - before[name] for name in after}
    total = sum(spent.values()) or 1
    busy = 1 - (spent["idle"] + spent["iowait"] + spent["steal"]) / total
    steal = spent["steal"] / total
    words = f"others use {100 * busy:.1f} % of the CPUs"
    if busy > BUSY_SHARE:
        yield Check("other load", "caution", words, "see who: top; or run when it is quiet")
    else:
        yield Check("other load", "ok", words)
    words = f"the host takes {100 * steal:.1f} % of the CPU time away"
    if steal > STEAL_SHARE:
        yield Check("steal", "caution", words, "a guest with cores of its own, or more trials")
    else:
        yield Check("steal", "ok", words)


def _cpu_ticks() -> dict[str, int] | None:
    names = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
    try:
        first = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    except OSError:
        return None
    return dict(zip(names, (int(part) for part in first[1:9]), strict=False))


def _study_checks(study: Study, facts: Mapping[str, Any]) -> list[Check]:
    """What the study asks of the machine."""
    checks = []
    wanted = max((_connections(case.workload, case.connection) for case in study.cases), default=0)
    soft, hard = facts["max_descriptors"]
    words = f"{wanted} connections at once, {soft} descriptors allowed"
    if wanted + OWN_DESCRIPTORS > soft:
        advice = f"ulimit -n {hard}" if hard > soft else "raise the limit of open files"
        checks.append(Check("descriptors", "bad", words, advice))
    else:
        checks.append(Check("descriptors", "ok", words))
    too_wide = [case.name for case in study.cases if (case.needs_cores or 0) > facts["cores_allowed"]]
    if too_wide:
        words = f"{len(too_wide)} cases need more cores than there are: {', '.join(too_wide[:3])}"
        checks.append(Check("cases", "caution", words, "they run and are shown, but are not judged"))
    return checks


def _connections(workload: Closed | Open, connection: Connection) -> int:
    most = workload.users if isinstance(workload, Closed) else workload.max_in_flight
    return most if connection.pool is None else min(most, connection.pool)


# --- with load ---------------------------------------------------------------------------------------


def punctuality(rate_per_s: float = RATE_PER_S, seconds: float = 2.0) -> Punctuality:
    """How late requests go out that are due on a fixed grid."""
    workload = Open(rate_per_s=rate_per_s, max_in_flight=100)
    result = _against_nothing(workload, seconds)
    return Punctuality(
        rate_per_s, float(result["generator"]["lag_p99_s"]), float(result["generator"]["busy"])
    )


def ceiling(connections: int = 32, seconds: float = 2.0) -> Ceiling:
    """How many requests a second one engine thread gets answered by a server that does nothing."""
    result = _against_nothing(Closed(users=connections), seconds)
    busy = float(result["generator"]["busy"])
    rate = result["streams"][0]["throughput_rps"]["value"]
    if rate is None:
        raise EngineError("the server that does nothing answered nothing")
    return Ceiling(float(rate), busy, is_the_generators=busy > 0.85)


def _against_nothing(workload: Closed | Open, seconds: float) -> dict[str, Any]:
    with _null_server() as target:
        step = Step("nothing", "GET", "/")
        stream = Stream("load", "load", target, (Scenario("nothing", 1.0, (step,)),), workload)
        plan = Plan(
            seed=1,
            streams=(stream,),
            threads=1,
            warmup_ns=200_000_000,
            duration_ns=int(seconds * 1e9),
            drain_ns=1_000_000_000,
        )
        run = engine.Run(plan)
        run.start()
        if not run.wait(seconds + ENDS_WITHIN_S):
            run.stop()
            raise EngineError(f"the engine did not end within {seconds + ENDS_WITHIN_S:g} s")
        return run.result()


# One thread, one epoll, one answer: what is left to measure is the generator and the machine.
_NULL_SERVER = """
import select, socket, sys
answer = b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok"
listener = socket.socket(fileno=int(sys.argv[1]))
poll = select.epoll()
poll.register(listener, select.EPOLLIN)
poll.register(0, select.EPOLLIN)
peers = {}
while True:
    for number, _ in poll.poll():
        peer = peers.get(number)
        if number == 0:
            sys.exit()
        if peer is None:
            accepted, _ = listener.accept()
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            poll.register(accepted, select.EPOLLIN)
            peers[accepted.fileno()] = accepted
            continue
        try:
            received = peer.recv(65536)
            if received:
                peer.sendall(answer * received.count(b"\\r\\n\\r\\n"))
        except OSError:
            received = b""
        if not received:
            poll.unregister(peer)
            peers.pop(number).close()
"""


@contextmanager
def _null_server() -> Iterator[Target]:
    """A server in a process of its own; it ends when its standard input closes."""
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener:
        os.set_inheritable(listener.fileno(), True)
        port = listener.getsockname()[1]
        process = subprocess.Popen(
            [sys.executable, "-S", "-E", "-c", _NULL_SERVER, str(listener.fileno())],
            stdin=subprocess.PIPE,
            pass_fds=(listener.fileno(),),
        )
    try:
        yield Target("127.0.0.1", port, f"127.0.0.1:{port}")
    finally:
        if process.stdin is not None:
            process.stdin.close()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
