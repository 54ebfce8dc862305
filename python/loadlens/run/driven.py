"""A load that another program makes: started, ended in order, and what it told as a result of ours."""

from __future__ import annotations

import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadlens import engine
from loadlens.errors import EngineError, ExitCode, PlanError, TestbedError, UsageError
from loadlens.interop.drivers import Driver, Printed, result_of
from loadlens.model.workload import Plan
from loadlens.run.interrupts import Interrupts

POLL_S = 0.05
GRACE_S = 10.0  # beyond its duration and one time-out, and after it was asked to end
LAST_CHARACTERS = 300  # of what a program said before it gave up
VERSION_S = 20.0


@dataclass(frozen=True, slots=True)
class Driven:
    """What came of one load."""

    result: dict[str, Any]  # with `driver`: name, version, command
    exit_code: ExitCode


def check(plan: Plan, driver: Driver) -> None:
    """Raise unless the driver is there and can do all of the plan; nothing is started.

    Raises:
        TestbedError: It is not installed.
        UsageError, PlanError: It, or anybody, cannot do what is asked; everything is named.
    """
    if shutil.which(driver.program) is None:
        raise TestbedError(f"{driver.program} is not installed", where="--driver", hint=driver.install)
    wrong = engine.validate(plan.to_json())
    if wrong:
        raise PlanError("; ".join(f"{fault.where}: {fault.what}" for fault in wrong))
    faults = driver.faults(plan)
    if faults:
        raise UsageError("; ".join(faults), where="--driver", hint="our own engine: without --driver")


def run_driven(plan: Plan, driver: Driver) -> Driven:
    """Let another program make a load; Ctrl-C asks it to end.

    Raises:
        TestbedError, UsageError: See `check`.
        EngineError: It gave up, did not end, or printed what it should not.
    """
    check(plan, driver)
    with tempfile.TemporaryDirectory(prefix="loadlens-") as name, Interrupts() as interrupts:
        folder = Path(name)
        command = driver.command(plan, folder)
        began_unix_ns, began_monotonic_ns = time.time_ns(), time.monotonic_ns()
        stdout, status, stderr = _ended(command, folder, plan, interrupts)
        if status and not interrupts.is_set:
            said = " ".join((stderr.strip() or stdout.strip())[-LAST_CHARACTERS:].split())
            raise EngineError(f"{driver.name} gave up with {status}: {said}", where=" ".join(command))
        try:
            told = driver.read(Printed(stdout, folder), plan)
        except (ValueError, KeyError) as fault:
            raise EngineError(
                f"cannot read what {driver.name} printed: {fault}", where=" ".join(command)
            ) from None
        shown = [word.replace(f"{folder}/", "") for word in command]
        result = result_of(
            told,
            stopped=interrupts.is_set,
            began_unix_ns=began_unix_ns,
            began_monotonic_ns=began_monotonic_ns,
        )
        result["driver"] = {"name": driver.name, "version": version(driver), "command": shown}
        return Driven(result, interrupts.code or ExitCode.OK)


def _ended(command: list[str], folder: Path, plan: Plan, interrupts: Interrupts) -> tuple[str, int, str]:
    """Run it to its end, or to ours; files and not pipes, which would hold it up."""
    out, err = folder / "stdout", folder / "stderr"
    slowest_s = plan.streams[0].timeout_ns / 1e9 + GRACE_S
    limit_s = float("inf") if plan.duration_ns is None else plan.duration_ns / 1e9 + slowest_s
    with out.open("wb") as to_out, err.open("wb") as to_err:
        # A session of its own: Ctrl-C reaches it through us, once.
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=to_out, stderr=to_err, start_new_session=True
        )
        began = time.monotonic()
        asked_at: float | None = None
        try:
            while process.poll() is None:
                now = time.monotonic()
                if interrupts.is_set and asked_at is None:
                    process.send_signal(signal.SIGINT)
                    asked_at = now
                if now - began > limit_s or (asked_at is not None and now - asked_at > GRACE_S):
                    raise EngineError(f"{command[0]} did not end", where=" ".join(command))
                time.sleep(POLL_S)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    return out.read_text(errors="replace"), process.returncode, err.read_text(errors="replace")


def version(driver: Driver) -> str:
    """The first line of what it says of its version; empty when it says none."""
    if not driver.version:
        return ""
    try:
        done = subprocess.run(
            driver.version, capture_output=True, text=True, timeout=VERSION_S, check=False, errors="replace"
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = (done.stdout + done.stderr).strip().splitlines()
    return (
        lines[0].partition(" Copyright")[0].partition(" <")[0].removeprefix("This is ").strip()
        if lines
        else ""
    )
