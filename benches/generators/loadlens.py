"""Our engine, every statistic on, through its own door (`drive.py`), and the command line around it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from benches.generators.base import CannotDo, Generator, ReportedTimes, Scene, asked
from benches.measuring import GENERATOR_CPU, Counted, run
from benches.works import Work

DRIVE = Path(__file__).parent.parent / "drive.py"
SECOND_NS = 1_000_000_000
RANDOM_BODY = '{"a":{{int 1 100}},"b":{{int 1 100}}}'
JSON_TYPE = ["Content-Type", "application/json"]


def command(work: Work, scene: Scene) -> list[str]:
    path = scene.file(f"plan-{work.name}.json", json.dumps(plan(work, scene)))
    return [sys.executable, "-S", str(DRIVE), path]


def drive(plan_document: dict[str, Any], scene: Scene, limit_s: float) -> dict[str, Any]:
    """Run the engine on a plan, on the generator's core; its result.

    Raises:
        RuntimeError: It did not end, or not well.
    """
    command = [sys.executable, "-S", str(DRIVE), scene.file("driven.json", json.dumps(plan_document))]
    ended = run(command, GENERATOR_CPU, limit_s=limit_s)
    if ended.fault is not None:
        raise RuntimeError(f"the engine {ended.fault}")
    result: dict[str, Any] = json.loads(ended.stdout)
    return result


def plan(work: Work, scene: Scene) -> dict[str, Any]:
    """One stream: a user for each connection, or a rate with as many places as connections."""
    return {
        "schema_version": 1,
        "seed": 1,
        "threads": 1,
        "cpus": [scene.cpu],
        "duration_ns": scene.seconds * SECOND_NS,
        "drain_ns": 0 if work.rate is None else 2 * SECOND_NS,
        "streams": [
            {
                "name": "load",
                "role": "load",
                "target": _target(work, scene),
                "scenarios": [{"name": "scenario", "weight": 1.0, "steps": steps(work)}],
                "workload": _workload(work),
                "connection": {"reuse": {"kind": "new" if work.is_fresh else "keep"}},
                "timeout_ns": 10 * SECOND_NS,
            }
        ],
    }


def steps(work: Work) -> list[dict[str, Any]]:
    """The steps of one iteration."""
    if work.kind == "get":
        return [{"name": "step", "method": "GET", "path": "/"}]
    body = {"kind": "text", "text": RANDOM_BODY}
    if work.kind == "post":
        return [{"name": "step", "method": "POST", "path": "/", "headers": [JSON_TYPE], "body": body}]
    item = "/items/{{id}}"
    taken = {"name": "id", "from": {"kind": "json", "path": "data.id"}}
    sent = {"headers": [JSON_TYPE], "body": body}
    return [
        {"name": "create", "method": "POST", "path": "/items", "expect": [201], "extract": [taken], **sent},
        {"name": "get", "method": "GET", "path": item},
        {"name": "update", "method": "PUT", "path": item, **sent},
        {"name": "list", "method": "GET", "path": "/items"},
        {"name": "delete", "method": "DELETE", "path": item, "expect": [204]},
    ]


def _target(work: Work, scene: Scene) -> dict[str, Any]:
    authority = scene.host(work).partition("://")[2]
    target: dict[str, Any] = {"host": "127.0.0.1", "port": int(authority.partition(":")[2])}
    secured = {"tls": {"insecure": True}} if work.is_tls else {}
    return {**target, "authority": authority, **secured}


def _workload(work: Work) -> dict[str, Any]:
    if work.rate is None:
        return {"kind": "closed", "users": work.connections}
    return {
        "kind": "open",
        "rate_per_s": work.rate,
        "arrivals": "constant",
        "max_in_flight": work.connections,
        "overflow": "queue",
    }


def read(text: str, folder: Path) -> ReportedTimes:
    """From the result of the engine."""
    times = json.loads(text)["streams"][0]["response_time_s"]
    return ReportedTimes(times["p50"]["value"], times["p99"]["value"], times["p999"]["value"], times["max"])


def counted(text: str) -> Counted:
    """All its requests, from the result of the engine."""
    streams = [stream["requests"] for stream in json.loads(text)["streams"]]
    return Counted(*(sum(stream[name] for stream in streams) for name in ("issued", "answered", "in_flight")))


def hit_command(work: Work, scene: Scene) -> list[str]:
    command = [sys.executable, "-m", "loadlens", "hit", scene.url(work), "-c", str(work.connections)]
    command += ["-d", f"{scene.seconds}s", "-t", "1", "-q", "--json"]
    if work.kind == "flow":
        raise CannotDo("`hit` knows one request; a flow is a study")
    if work.is_tls:
        command.append("--insecure")
    if work.is_fresh:
        command += ["--connection", "new"]
    if work.rate is not None:
        command += ["-r", f"{work.rate:g}"]
    if work.kind == "post":
        command += ["-m", "POST", "-H", "Content-Type: application/json", "-b", RANDOM_BODY]
    return command


def read_hit(text: str, folder: Path) -> ReportedTimes:
    """From `--json`."""
    times = json.loads(text)["response_time_s"]
    return ReportedTimes(times["p50"]["value"], times["p99"]["value"], times["p999"]["value"], times["max"])


def _why_missing() -> str | None:
    checked = subprocess.run([sys.executable, "-S", str(DRIVE)], capture_output=True, text=True, check=False)
    return None if checked.returncode == 0 else checked.stderr.strip().splitlines()[-1]


def _version() -> str:
    return asked(sys.executable, "-S", str(DRIVE))


LOADLENS = Generator("loadlens", command, _why_missing, _version, read, counted, has_random_body=True)
HIT = Generator("loadlens-hit", hit_command, _why_missing, _version, read_hit, has_random_body=True)
