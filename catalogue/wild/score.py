"""Explain services of this folder with their URL alone, and compare the answers with what is wrong with them.

`RIGHT` says which rules name a kind of flaw. A rule in `PARTLY` says where requests wait, and not for what: it is
neither right nor wrong, and so is one that `besides` of a service lists. Any other cause that is at least probable and
that no other finding explains is false.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from catalogue.family import ABOUT_THE_MEASUREMENT, LIMITS_OF_THE_MACHINE
from catalogue.wild.serve import HERE, CannotServe, Service, running

RESULTS: Final = HERE / "results"
LIMIT_S: Final = 200.0
PORT: Final = 18_400
NEAR: Final = 0.10  # of the true capacity
SHOWN: Final = ("probable", "strong", "confirmed")
RIGHT: Final[Mapping[str, frozenset[str]]] = {
    kind: frozenset(rules.split())
    for kind, rules in {
        "event-loop-blocked": "eventloop.blocked eventloop.waits loop.multipass",
        "gil": "cpu.one-core",
        "cpu": "cpu.saturated cpu.one-core",
        "thread-pool": "threads.pool-limit outside.handler-wait calls.at-once",
        "connection-pool": "db.pool db.pool-timeouts calls.at-once places.lost requests.stuck",
        "lock": "db.lock calls.at-once requests.stuck",
        "lock-retrograde": "retrograde.throughput db.lock",
        "database-lock": "db.lock db.lock-timeouts",
        "database-query": "cpu.saturated drift.data-growth",
        "downstream": "downstream.full downstream.slow",
        "rate-limit-rejects": "ratelimit.active",
        "rate-limit-delays": "ratelimit.active",
        "shedding": "requests.in-flight-limit shed.overload",
        "memory-leak": "drift.leak drift.handles",
        "data-growth": "drift.data-growth drift.leak",
        "gc": "gc.stops pause.periodic pause.aperiodic memory.pressure",
        "logging": "logging.per-request",
        "disk": "disk.bound",
        "descriptors": "descriptors.exhausted drift.handles ports.exhausted accept.drops",
        "accept-queue": "accept.drops",
        "keepalive": "http.keepalive-limit http.no-reuse",
        "tcp-delay": "tcp.timer-mode tcp.calls-held",
        "retries": "retry.amplification retry.calls",
        "timeouts": "timeouts.cliff",
        "deadlock": "requests.stuck",
        "cache": "cache.misses slow.periodic mixture.slow-path warmup.incomplete",
        "skew": "lb.imbalance backend.slow-one part.full",
        "slow-path": "mixture.slow-path",
        "answers-changed": "answers.changed failure.misclassified",
        "quota": "cgroup.throttled ratelimit.active",
        "tls": "http.no-reuse",
        "network": "network.bound",
    }.items()
}
PARTLY: Final = frozenset({"downstream.serialised", "retrograde.throughput", "timeouts.cliff", "hol.correlation"})
NO_CAUSE: Final = LIMITS_OF_THE_MACHINE | ABOUT_THE_MEASUREMENT | {"accounting.explained", "scaling.workers"}


@dataclass(frozen=True, slots=True)
class Verdict:
    """One answer next to the truth."""

    name: str
    variant: str
    kind: str
    seconds: float
    answer: str  # first sentence, or why there is none
    limit: str | None
    causes: tuple[str, ...]  # at least probable, and explained by no other
    is_named: bool  # a cause that is right
    is_first: bool  # and it is the answer
    is_partly: bool  # no cause is right, and one says where requests wait
    false: tuple[str, ...]
    capacity: float | None  # as claimed, over the true one
    is_line_named: bool | None  # none: no single line is the flaw


def explain(urls: Iterable[str]) -> tuple[dict[str, Any], str]:
    """Return the JSON of `explain URL...`, or an empty one and what was said instead."""
    command = [sys.executable, "-m", "loadlens", "explain", *urls, "--json"]
    path = os.pathsep.join([str(HERE.parent.parent / "python"), *filter(None, [os.environ.get("PYTHONPATH")])])
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=LIMIT_S, env={**os.environ, "PYTHONPATH": path}, check=False
        )
        answer: dict[str, Any] = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        return {}, f"no answer within {LIMIT_S:.0f} s"
    except json.JSONDecodeError:
        return {}, " ".join(done.stderr.split())[:200] or f"exit {done.returncode}"
    return answer, ""


def judged(each: Service, variant: str, answer: Mapping[str, Any], fault: str, seconds: float) -> Verdict:
    """Compare an answer with what is wrong with a service."""
    about, flawed = each.about, variant == "flawed"
    right = frozenset().union(*(RIGHT[kind] for kind in (about["kind"], *about.get("also", ())))) if flawed else frozenset()
    causes = tuple(
        finding["rule"]
        for finding in answer.get("findings", ())
        if finding["grade"] in SHOWN and finding["explained_by"] is None and finding["rule"] not in NO_CAUSE - right
    )
    besides = frozenset(about.get("besides", {}))
    named = [rule for rule in causes if rule in right]
    partly = [rule for rule in causes if rule in PARTLY]
    claimed, true = (answer.get("capacity") or {}).get("point"), (about["capacity"] or {}).get("rate")
    return Verdict(
        name=each.name,
        variant=variant,
        kind=about["kind"],
        seconds=round(seconds, 1),
        answer=fault or str(answer.get("answer", "")),
        limit=answer.get("limit"),
        causes=causes,
        is_named=bool(named),
        is_first=answer.get("limit") in right,
        is_partly=flawed and not named and bool(partly),
        false=tuple(rule for rule in causes if rule not in right | besides and not (flawed and rule in PARTLY)),
        capacity=claimed / true if flawed and claimed and true else None,
        is_line_named=_names_line(each, answer) if flawed and about["line"] else None,
    )


def _names_line(each: Service, answer: Mapping[str, Any]) -> bool:
    """Return true if the file and the number of the line that is the flaw stand in the answer."""
    where = each.about["line"]
    lines = (each.folder / where["file"]).read_text().splitlines()
    number = next(n for n, line in enumerate(lines, 1) if line.strip() == where["text"].strip())
    return f"{Path(where['file']).name}:{number}" in json.dumps(answer)


def score(which: Iterable[Service], variants: Sequence[str], results: Path) -> list[Verdict]:
    """Explain each variant of each service; those with a result are not explained again."""
    results.parent.mkdir(parents=True, exist_ok=True)
    lines = results.read_text().splitlines() if results.exists() else []
    verdicts = [Verdict(**{**json.loads(line), "causes": tuple(json.loads(line)["causes"])}) for line in lines]
    known = {(verdict.name, verdict.variant) for verdict in verdicts}
    for each in which:
        for variant in variants:
            if (each.name, variant) in known:
                continue
            began = time.monotonic()
            try:
                with running(each.name, variant, PORT) as service:
                    began = time.monotonic()
                    answer, fault = explain(f"http://127.0.0.1:{PORT}{path}" for path in service.paths)
            except CannotServe as error:
                answer, fault = {}, " ".join(str(error).split())[:200]
            verdict = judged(each, variant, answer, fault, time.monotonic() - began)
            verdicts.append(verdict)
            with results.open("a") as file:
                file.write(json.dumps(asdict(verdict)) + "\n")
            print(line_of(verdict), flush=True)
    return verdicts


def line_of(verdict: Verdict) -> str:
    """Return one line: the truth, whether it was named, and the answer."""
    word = "named" if verdict.is_first else "found" if verdict.is_named else "partly" if verdict.is_partly else "missed"
    if verdict.variant != "flawed" or not RIGHT[verdict.kind]:
        word = "clean"
    if verdict.false:
        word = f"FALSE {', '.join(verdict.false)}"
    capacity = "" if verdict.capacity is None else f", capacity x{verdict.capacity:.2f}"
    return f"{verdict.name}/{verdict.variant} ({verdict.kind}): {word}{capacity} [{verdict.seconds:.0f} s] {verdict.answer[:110]}"


def table(verdicts: Sequence[Verdict]) -> str:
    """Return shares with their 95 % intervals (Wilson 1927)."""
    flawed = [verdict for verdict in verdicts if verdict.variant == "flawed" and RIGHT[verdict.kind]]
    spared = [verdict for verdict in verdicts if verdict.variant != "flawed"]
    claims = sum(len(verdict.causes) for verdict in verdicts)
    false = sum(len(verdict.false) for verdict in verdicts)
    with_line = [verdict for verdict in flawed if verdict.is_line_named is not None]
    with_capacity = [verdict for verdict in flawed if verdict.capacity is not None]
    near = sum(abs(verdict.capacity - 1) <= NEAR for verdict in with_capacity if verdict.capacity is not None)
    rows = [
        ("the flaw is the answer", sum(verdict.is_first for verdict in flawed), len(flawed)),
        ("the flaw is among the findings", sum(verdict.is_named for verdict in flawed), len(flawed)),
        ("only where requests wait is named", sum(verdict.is_partly for verdict in flawed), len(flawed)),
        ("causes that are true", claims - false, claims),
        ("mended and healthy services that are accused", sum(bool(v.false) for v in spared), len(spared)),
        ("capacity within 10 %", near, len(with_capacity)),
        ("the line is named", sum(bool(verdict.is_line_named) for verdict in with_line), len(with_line)),
    ]
    return "\n".join(f"{what:<46} {part:>3} of {whole:<3} {_interval(part, whole)}" for what, part, whole in rows)


def _interval(part: int, whole: int) -> str:
    if not whole:
        return ""
    z, share = 1.96, part / whole
    middle = (share + z * z / (2 * whole)) / (1 + z * z / whole)
    half = z * math.sqrt(share * (1 - share) / whole + z * z / (4 * whole * whole)) / (1 + z * z / whole)
    return f"{share:.2f} ({max(0.0, middle - half):.2f} to {min(1.0, middle + half):.2f})"
