"""Asking for a diagnosis, as a user would, and reading what it says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from catalogue.family import Around, Tier
from catalogue.running import ROOT, Service

PATIENCE = 1.5  # times the budget, and the rest
REST_S = 60.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What a diagnosis said."""

    said: Mapping[str, Any]  # the JSON of `explain --json`; empty: it gave none
    failure: str | None  # why there is none
    seconds: float


def ask(service: Service, tier: Tier, around: Around, *, budget_s: float, seed: int, record: Path) -> Answer:
    """Run `loadlens explain` over a service with what the tier allows it to see; its record stays."""
    command = ["explain", service.work_url, "--probe", service.ping_url, "--json"]
    command += ["--budget", f"{budget_s:g}s", "--seed", str(seed), "--out", str(record)]
    if tier != "A":
        command += [word for hello in service.hellos for word in ("--pid", str(hello["pid"]))]
    if tier == "C" and service.metrics_url is not None:
        command += ["--metrics", service.metrics_url, "--requests", service.requests_metric]
    began = time.monotonic()
    try:
        done = _run(command, around, PATIENCE * budget_s + REST_S, service.enter)
    except subprocess.TimeoutExpired:
        return Answer({}, f"no answer within {PATIENCE * budget_s + REST_S:.0f} s", time.monotonic() - began)
    seconds = time.monotonic() - began
    try:
        said = json.loads(done.stdout)
    except json.JSONDecodeError:
        why = " ".join(done.stderr.split()) or "nothing was said"
        return Answer({}, f"exit {done.returncode}: {why[:200]}", seconds)
    failure = None if done.returncode == 0 else f"exit {done.returncode}"
    return Answer(said, failure, seconds)


def _run(
    command: list[str], around: Around, limit_s: float, enter: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    place: list[str] = []
    if around.generator_cpus:
        place = ["taskset", "-c", ",".join(map(str, around.generator_cpus))]
    path = os.pathsep.join([str(ROOT / "python"), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run(
        [*enter, *place, sys.executable, "-m", "loadlens", *command],
        capture_output=True,
        text=True,
        timeout=limit_s,
        env={**os.environ, "PYTHONPATH": path},
        check=False,
    )


def is_there() -> bool:
    """Whether there is anything to ask."""
    return _run(["explain", "--help"], Around(), REST_S).returncode == 0
