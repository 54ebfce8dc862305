"""Checks of this machine (`doctor`): sources of distortion, and the accuracy of the generator.

`of_machine` reads and watches the machine for a second; `measure` drives the engine against a server of our
own that does nothing, so that all lateness is the generator's or the machine's. Run as a program this is
that server.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from loadlens import engine, testbed
from loadlens.errors import EngineError
from loadlens.machine import calibration, cpu_time, inventory
from loadlens.machine.calibration import Calibration, Ceiling, Lateness, Limit, Timer
from loadlens.model.study import Study
from loadlens.model.workload import (
    Closed,
    Open,
    Plan,
    Scenario,
    Step,
    Stream,
    Target,
)
from loadlens.run import cautions, external
from loadlens.testbed import remains

State = Literal["ok", "caution", "bad", "unknown"]

WATCH_S = 1.0
OWN_DESCRIPTORS = 64  # the lab's own files, besides one per connection
BUSY_SHARE = 0.05  # of all CPUs, by others, above which small effects drown
STEAL_SHARE = 0.01
FEW_PORTS = 20_000
TIME_WAIT_S = 60.0  # how long Linux keeps a local port after we closed first
RATES_PER_S = (1_000.0, 10_000.0)
MEASURE_S = 2.0
CONNECTIONS_PER_THREAD = 64
WORKS_ALL_THE_TIME = 0.9  # busy from which on a thread, not its server, is the limit
WAITS_FOR_OTHERS = 0.05  # share of the time without a core from which on others are the limit
SLEEPS = 500
PUNCTUAL_S = 0.0001  # lateness of the 99th percentile that needs no mention
ENDS_WITHIN_S = 10.0  # beyond the measured part
TRIES = 3  # on a busy machine a thread may have no core for as long as the measured part lasts
LONGER = 4.0  # each try than the one before
LONGEST_TRY_S = 10.0
NOISE = ("other load", "steal")  # checks whose cautions mean that others change the figures
SLOW_CLOCKS = ("hpet", "acpi_pm", "jiffies", "refined-jiffies")


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at."""

    name: str
    state: State
    words: str  # what was seen, with numbers
    advice: str = ""  # one thing to do; empty when it is ok


def of_machine(study: Study | None = None) -> tuple[Check, ...]:
    """Everything that can be seen without load; with a study, also what that asks for."""
    facts = inventory.facts()
    checks = [
        _cores(facts, inventory.limits()),
        _clock(facts),
        _governor(facts),
        _ports(facts),
        _backlog(facts),
        *_background(WATCH_S),
        *_remains(),
    ]
    return tuple(checks + _study_checks(study, facts) if study is not None else checks)


def untrusted(checks: Sequence[Check]) -> tuple[str, ...]:
    """Return why verdicts on this machine cannot be trusted: bad checks, and cores that others use."""
    return tuple(
        check.words
        for check in checks
        if check.state == "bad" or (check.name in NOISE and check.state == "caution")
    )


def _remains() -> list[Check]:
    left = [remains.in_words(each) for each in remains.find()]
    return [Check("left behind", "caution", words, "loadlens doctor --clean") for words in left]


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
    """Measure the CPU use of other programs while the lab only waits."""
    use = cpu_time.use_within(seconds)
    if use is None:
        yield Check("other load", "unknown", "/proc/stat cannot be read")
        return
    words = f"others use {100 * use.busy:.1f} % of the CPUs"
    if use.busy > BUSY_SHARE:
        yield Check("other load", "caution", words, "see who: top; or run when it is quiet")
    else:
        yield Check("other load", "ok", words)
    words = f"the host takes {100 * use.stolen:.1f} % of the CPU time away"
    if use.stolen > STEAL_SHARE:
        yield Check("steal", "caution", words, "a guest with cores of its own, or more trials")
    else:
        yield Check("steal", "ok", words)


def _study_checks(study: Study, facts: Mapping[str, Any]) -> list[Check]:
    """Check the needs of the study against the machine."""
    checks = [_programs(study), *([made] if (made := _drivers(study)) is not None else [])]
    wanted = max((cautions.connections_of(case.workload, case.connection) for case in study.cases), default=0)
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


def missing_programs(study: Study) -> tuple[testbed.Missing, ...]:
    """Every program that the services of any case need and this machine lacks: `run` would refuse for it."""
    services = dict.fromkeys(service for case in study.cases for service in case.services)
    return testbed.missing(services, Path(study.folder))


def _drivers(study: Study) -> Check | None:
    """The programs that are to make loads; none where our engine makes them all."""
    names = dict.fromkeys(case.driver for case in study.cases if case.driver is not None)
    lacking = external.missing(study)
    if lacking:
        words = f"missing: {', '.join(driver.name for driver in lacking)}"
        return Check("drivers", "bad", words, external.how_to_install(lacking))
    return Check("drivers", "ok", f"nothing is missing of {', '.join(names)}") if names else None


def _programs(study: Study) -> Check:
    lacking = missing_programs(study)
    if lacking:
        return Check(
            "programs", "bad", f"missing: {testbed.in_words(lacking)}", testbed.how_to_install(lacking)
        )
    services = dict.fromkeys(service.name for case in study.cases for service in case.services)
    if not services:
        return Check("programs", "ok", "the study starts nothing here")
    return Check("programs", "ok", f"nothing is missing for {', '.join(services)}")


# --- with load ---------------------------------------------------------------------------------------


def measure(seconds: float = MEASURE_S) -> Calibration:
    """Drive the engine against a server of our own that does nothing; takes over four times `seconds`.

    With more than one core the load of one thread has a core of its own and the server has the others.

    Raises:
        EngineError: The engine or the server did not do what is asked of them.
    """
    cores = sorted(os.sched_getaffinity(0))
    first, others = cores[:1], cores[1:] or cores[:1]
    return Calibration(
        fingerprint=calibration.fingerprint(),
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        one_thread=_ceiling(first, others, seconds),
        all_threads=_ceiling(cores, cores, seconds),
        lateness=tuple(_lateness(rate, first, others, seconds) for rate in RATES_PER_S),
        timer=_timer(),
    )


def _ceiling(own: Sequence[int], servers: Sequence[int], seconds: float) -> Ceiling:
    """Measure the requests per second that engine threads on the cores `own` reach."""
    connections = CONNECTIONS_PER_THREAD * len(own)
    result = _patiently(Closed(users=connections), own, servers, seconds)
    generator, requests = result["generator"], result["streams"][0]["requests"]
    rate = result["streams"][0]["throughput_rps"]["value"]
    busy = float(generator["busy"])
    limit: Limit = "generator" if busy >= WORKS_ALL_THE_TIME else "server"
    if set(own) & set(servers):
        limit = "machine"
    elif float(generator["runq_wait"] or 0.0) > WAITS_FOR_OTHERS:
        limit = "others"  # it has a core of its own, as far as we are concerned
    return Ceiling(
        threads=int(generator["threads"]),
        connections=connections,
        requests_per_s=float(rate),
        busy=busy,
        cpu_per_request_s=float(generator["cpu_s"]) / requests["answered"],
        limit=limit,
    )


def _lateness(rate_per_s: float, own: Sequence[int], servers: Sequence[int], seconds: float) -> Lateness:
    """Measure the lateness of requests that are due on a fixed grid."""
    workload = Open(rate_per_s=rate_per_s, max_in_flight=1000)
    result = _patiently(workload, own, servers, seconds)
    lag = result["streams"][0]["lag_s"]
    return Lateness(
        rate_per_s=rate_per_s,
        p50_s=_quantile(lag, "p50", 0.5),
        p90_s=_quantile(lag, "p90", 0.9),
        p99_s=_quantile(lag, "p99", 0.99),
        max_s=float(lag["max"]),
        busy=float(result["generator"]["busy"]),
    )


def _quantile(times: Mapping[str, Any], name: str, share: float) -> float:
    """The quantile; where the engine calls it undecided, the upper end of the bin in which it was seen."""
    if times[name]["value"] is not None:
        return float(times[name]["value"])
    below, wanted = 0.0, share * times["count"]
    for upper, count in times["histogram"]:
        below += count
        if below >= wanted:
            return float(upper)
    return float(times["max"])


def _timer() -> Timer:
    late_p50, late_p99, late_max, read = engine.timer_precision(SLEEPS)
    return Timer(late_p50 / 1e9, late_p99 / 1e9, late_max / 1e9, read / 1e9)


def _patiently(
    workload: Closed | Open, own: Sequence[int], servers: Sequence[int], seconds: float
) -> dict[str, Any]:
    """The result of the first try whose measured part saw requests leave and answers come.

    Raises:
        EngineError: None did, each longer than the one before.
    """
    for attempt in range(TRIES):
        length_s = min(seconds * LONGER**attempt, max(seconds, LONGEST_TRY_S))
        result = _against_nothing(workload, own, servers, length_s)
        stream = result["streams"][0]
        if stream["lag_s"]["max"] is not None and stream["response_time_s"]["count"]:
            return result
    n, reasons = stream["requests"], "".join(f"; {reason}" for reason in result["generator"]["reasons"])
    raise EngineError(
        f"nothing came of {TRIES} tries, the last of {length_s:g} s: {n['issued']} of {n['due']} due "
        f"requests left and {n['answered']} were answered, none of them in the measured part{reasons}",
        hint="measure again when other programs leave the generator a core",
    )


def _against_nothing(
    workload: Closed | Open, own: Sequence[int], servers: Sequence[int], seconds: float
) -> dict[str, Any]:
    with _null_server(servers) as target:
        step = Step("nothing", "GET", "/")
        stream = Stream("load", "load", target, (Scenario("nothing", 1.0, (step,)),), workload)
        plan = Plan(
            seed=1,
            streams=(stream,),
            threads=len(own),
            cpus=tuple(own),
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


@contextmanager
def _null_server(cores: Sequence[int]) -> Iterator[Target]:
    """A server in a process of its own, a thread on each of `cores`; it ends when its input closes."""
    process = subprocess.Popen(
        [sys.executable, "-m", "loadlens.doctor", *map(str, cores)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    try:
        line = process.stdout.readline() if process.stdout is not None else ""
        if not line.strip().isdecimal():
            raise EngineError("the server that does nothing did not start")
        port = int(line)
        yield Target("127.0.0.1", port, f"127.0.0.1:{port}")
    finally:
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


if __name__ == "__main__":
    with suppress(BrokenPipeError):  # the process that asked for it was killed
        engine.serve_nothing([int(core) for core in sys.argv[1:]])
