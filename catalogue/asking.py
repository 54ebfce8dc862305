"""Runs `loadlens explain` on a service, as a user would, and reads its JSON."""

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

from catalogue.family import Environment, Tier
from catalogue.running import ROOT, Service
from loadlens.errors import ExitCode

PATIENCE = 1.5  # time limit: this many times the budget,
REST_S = 60.0  # and this on top


@dataclass(frozen=True, slots=True)
class Answer:
    """A diagnosis, or why there is none."""

    explanation: Mapping[str, Any]  # the JSON of `explain --json`; empty: it gave none
    failure: str | None
    seconds: float


def ask(
    service: Service, tier: Tier, environment: Environment, *, budget_s: float, seed: int, record: Path
) -> Answer:
    """Run `loadlens explain` on a service, with the sources that the tier allows; the record is kept."""
    command = ["explain", service.work_url, "--probe", service.ping_url, "--json"]
    command += ["--budget", f"{budget_s:g}s", "--seed", str(seed), "--out", str(record)]
    if tier != "A":
        command += [word for hello in service.hellos for word in ("--pid", str(hello["pid"]))]
    if tier == "C" and service.metrics_url is not None:
        command += ["--metrics", service.metrics_url, "--requests", service.requests_metric]
    began = time.monotonic()
    try:
        done = _run(command, environment, PATIENCE * budget_s + REST_S, service.enter)
    except subprocess.TimeoutExpired:
        return Answer({}, f"no answer within {PATIENCE * budget_s + REST_S:.0f} s", time.monotonic() - began)
    seconds = time.monotonic() - began
    try:
        explanation = json.loads(done.stdout)
    except json.JSONDecodeError:
        why = " ".join(done.stderr.split()) or "no output"
        return Answer({}, f"exit {done.returncode}: {why[:200]}", seconds)
    # TESTBED with an answer: requests fail before there is any load.
    is_answer = done.returncode in (ExitCode.OK, ExitCode.TESTBED)
    failure = None if is_answer else f"exit {done.returncode}"
    return Answer(explanation, failure, seconds)


def _run(
    command: list[str], environment: Environment, limit_s: float, enter: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    place: list[str] = []
    if environment.generator_cpus:
        place = ["taskset", "-c", ",".join(map(str, environment.generator_cpus))]
    path = os.pathsep.join([str(ROOT / "python"), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run(
        [*enter, *place, sys.executable, "-m", "loadlens", *command],
        capture_output=True,
        text=True,
        timeout=limit_s,
        env={**os.environ, "PYTHONPATH": path},
        check=False,
    )


def has_explain() -> bool:
    """Return True if `loadlens explain` can be run."""
    return _run(["explain", "--help"], Environment(), REST_S).returncode == 0
