"""Times that generators report for a service of known times.

Two kinds of service: one whose answers take 10 ms or 200 ms in a fixed rotation, and one that takes 2 ms but
freezes for a second in every ten. What is true follows from that by hand; what each generator printed is
shown next to it. Closed loops are shown too: they cannot see a freeze as users with a rate of their own do.
"""

from __future__ import annotations

import math
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benches.cost import ALLOWANCE_S, Pace, shown, shown_files
from benches.generators import CannotDo, Generator, ReportedTimes, Scene
from benches.generators.loadlens import LOADLENS
from benches.generators.oha import OHA, command_uncorrected
from benches.measuring import GENERATOR_CPU, SERVER_CPU, origin, run, taken_s
from benches.results import Claim, Results
from benches.works import Work

FREEZE_S, PERIOD_S = 1.0, 10.0
SERVICE_S = 0.002
RATE = 1000.0
SECONDS = 10  # one freeze
SERVER = "the server's own log"
OHA_UNCORRECTED = replace(OHA, name="oha, uncorrected", command=command_uncorrected)


@dataclass(frozen=True, slots=True)
class Truth:
    """True response times, in seconds; None where the quantile falls on a jump and either side is true."""

    p50_s: float
    p99_s: float | None
    p999_s: float
    max_s: float


@dataclass(frozen=True, slots=True)
class Case:
    """A service of known times and the load that it is given."""

    work: Work
    title: str
    arguments: tuple[str, ...]  # of the origin
    truth: Truth


def steady_quantile(share: float) -> float:
    """Response time that a share of steadily arriving requests stays within, in the freeze service.

    Requests that arrive in the freeze wait for its end and then for their service; those that arrive less
    than a service time before it are answered at its end. So for a time t beyond the service time, the
    arrivals that last longer than t fill FREEZE + 2 SERVICE - t seconds of each period.
    """
    beyond = (1 - share) * PERIOD_S
    affected = FREEZE_S + SERVICE_S
    return SERVICE_S if beyond >= affected else FREEZE_S + 2 * SERVICE_S - beyond


def _cases() -> list[Case]:
    edge: tuple[str, ...] = ("--root", "/mix?ms=10:99,200:1")
    clear: tuple[str, ...] = ("--root", "/mix?ms=10:49,200:1")
    freeze: tuple[str, ...] = ("--root", f"/delay/{SERVICE_S * 1e3:g}", "--freeze-ms", f"{FREEZE_S * 1e3:g}")
    freeze += ("--freeze-every-ms", f"{PERIOD_S * 1e3:g}", "--freeze-first-ms", f"{PERIOD_S * 400:g}")
    # Exactly 1 % is slow, so the 99th percentile lies on the jump from 10 to 200.
    at_edge, at_clear = Truth(0.010, None, 0.200, 0.200), Truth(0.010, 0.200, 0.200, 0.200)
    most = FREEZE_S + SERVICE_S
    # Ten users meet one freeze once each: ten slow ones of some forty thousand, below one in a thousand.
    lived = Truth(SERVICE_S, SERVICE_S, SERVICE_S, most)
    steady = Truth(SERVICE_S, steady_quantile(0.99), steady_quantile(0.999), most)

    def opened(name: str, places: int) -> Work:
        return Work(name, places, rate=RATE)

    return [
        Case(Work("mix-1-closed", 20), "99 % 10 ms, 1 % 200 ms; 20 users", edge, at_edge),
        Case(opened("mix-1-open", 1000), "99 % 10 ms, 1 % 200 ms; 1,000/s", edge, at_edge),
        Case(Work("mix-2-closed", 20), "98 % 10 ms, 2 % 200 ms; 20 users", clear, at_clear),
        Case(opened("mix-2-open", 1000), "98 % 10 ms, 2 % 200 ms; 1,000/s", clear, at_clear),
        Case(Work("freeze-closed", 10), "2 ms, frozen 1 s in 10 s; 10 users", freeze, lived),
        Case(opened("freeze-open", 2000), "2 ms, frozen 1 s in 10 s; 1,000/s", freeze, steady),
    ]


CASES = _cases()


def measure_all(
    results: Results,
    set_number: int,
    cases: Sequence[Case],
    peers: Sequence[Generator],
    rounds: int,
    seconds: int,
    program: Path,
) -> None:
    """Run every generator on every service, and add the times that it reports to the results."""
    peers = [peer for peer in peers if peer.read is not None]
    if OHA in peers:
        peers.append(OHA_UNCORRECTED)
    pairs = [(case, peer) for case in cases for peer in peers if _can(peer, case)]
    pace = Pace(len(pairs) * rounds, seconds + 1.5)
    for _ in range(rounds):
        for case, peer in pairs:
            claims = _tell(case, peer, set_number, results, seconds, program)
            results.claims += claims
            results.write()
            claimed = f"p99 {_ms(claims[0].p99_s)}" if claims else "nothing"
            true = _ms(case.truth.p99_s) if case.truth.p99_s is not None else "10 or 200 ms"
            print(f"{case.work.name} {peer.name}: {claimed}, true {true}; {pace.step(1)}", file=sys.stderr)


def _can(peer: Generator, case: Case) -> bool:
    if peer is OHA_UNCORRECTED and case.work.rate is None:
        return False  # the same as oha
    with tempfile.TemporaryDirectory() as folder:
        try:
            peer.command(case.work, Scene(0, 1, Path(folder), Path()))
        except CannotDo as why:
            print(f"skipped {peer.name} for {case.work.name}: {why}", file=sys.stderr)
            return False
    return True


def _tell(
    case: Case, peer: Generator, set_number: int, results: Results, seconds: int, program: Path
) -> list[Claim]:
    """Run one generator on one service and read what it prints; for ours, add the server's log."""
    logs = ("--log-rows", "500000") if peer is LOADLENS else ()
    with (
        tempfile.TemporaryDirectory(prefix="loadlens-bench-") as folder,
        origin(program, SERVER_CPU, *case.arguments, *logs) as server,
    ):
        scene = Scene(server.port, seconds, Path(folder), program, tells_times=True)
        command = peer.command(case.work, scene)
        results.command(case.work.name, peer.name, shown(command, scene), shown_files(scene))
        ended = run(command, GENERATOR_CPU, limit_s=3 * seconds + ALLOWANCE_S)
        if ended.fault is not None:
            print(f"{case.work.name}: {peer.name} {ended.fault}", file=sys.stderr)
            return []
        assert peer.read is not None
        try:
            reported = peer.read(ended.stdout, Path(folder))
        except (AssertionError, KeyError, ValueError) as fault:
            print(f"{case.work.name}: {peer.name} printed something else: {fault!r:.300}", file=sys.stderr)
            return []
        claims = [_claim(case, peer.name, set_number, reported)]
        if logs:
            claims.append(_claim(case, SERVER, set_number, times_by_log(server.log())))
    return claims


def times_by_log(log: Mapping[str, Any]) -> ReportedTimes:
    """Service times from whole request to whole answer; a freeze is not in them."""
    taken = taken_s(log)

    def quantile(share: float) -> float:
        return taken[min(len(taken) - 1, max(0, math.ceil(share * len(taken)) - 1))]

    return ReportedTimes(quantile(0.5), quantile(0.99), quantile(0.999), taken[-1])


def _claim(case: Case, name: str, set_number: int, reported: ReportedTimes) -> Claim:
    return Claim(
        case.work.name,
        name,
        set_number,
        reported.p50_s,
        reported.p99_s,
        reported.p999_s,
        reported.max_s,
        reported.note,
    )


def _ms(value: float | None) -> str:
    return "unsaid" if value is None else f"{value * 1e3:.1f} ms"
