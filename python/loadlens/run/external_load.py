"""Load made by an external tool: start, watch, orderly end, and its report as a result of the engine's shape.

The tool runs under a keeper, as services do: none of its processes outlives the lab.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from types import TracebackType
from typing import TYPE_CHECKING, Self

from loadlens import engine, temporary
from loadlens.credentials import Hiding
from loadlens.engine import Result
from loadlens.errors import EngineError, PlanError, TestbedError, UsageError
from loadlens.model.study import Study
from loadlens.model.trial import Outcome
from loadlens.model.workload import Plan
from loadlens.run.engine_trial import Listener
from loadlens.run.external import (
    Driver,
    Printed,
    Request,
    ToolReport,
    how_to_install,
    missing,
    result_of,
)
from loadlens.testbed.keeper import Command, Keeper, Standing

if TYPE_CHECKING:
    from loadlens.record import TrialWriter

NAME = "driver"  # name of the tool's process at the keeper
POLL_S = 0.05
GRACE_S = 10.0  # beyond its duration and one timeout, and after it was stopped
LAST_CHARACTERS = 300  # of a failed tool's output
VERSION_S = 20.0
NOT_KNOWN = 0xFFFFFFFF  # of a sample's user, connection and bytes on the wire
NEVER = -1  # of a sample's times
_PROXIES = ("http_proxy", "https_proxy", "all_proxy")  # would send the load elsewhere


@dataclass(frozen=True, slots=True)
class ExternalLoad:
    """Outcome of one external load."""

    result: Result  # in the engine's shape, with `driver`
    report: ToolReport

    def keep_samples(self, trial: TrialWriter) -> None:
        """Write the sample log of a trial if the tool reports single requests."""
        if self.report.requests is not None:
            trial.write_samples(self.samples())

    def samples(self) -> Iterator[tuple[int, ...]]:
        """Yield the rows of the sample log (docs/reference/record.md) if the tool reports single requests."""
        for seq, request in enumerate(self.report.requests or ()):
            sent = round(request.sent_s * 1e9)
            yield (
                seq,
                NEVER,
                sent,
                NEVER,
                sent + round(request.seconds * 1e9),
                NOT_KNOWN,
                NOT_KNOWN,
                NOT_KNOWN,
                min(request.body_bytes, NOT_KNOWN),
                0,
                request.status,
                int(_outcome(request)),
                0,
                0,
                0,
            )


def _outcome(request: Request) -> Outcome:
    if request.is_failed:
        return Outcome.UNCLASSED
    return Outcome.OK if 200 <= request.status < 400 else Outcome.UNEXPECTED_STATUS


# --- before anything starts -------------------------------------------------------------------------------


def check(plan: Plan, driver: Driver, hide: Sequence[str] = ()) -> None:
    """Check, without starting it, that the tool supports the whole plan and is installed.

    Faults of the plan come first: they are the same on a machine that has the tool.

    Raises:
        TestbedError: The tool is not installed.
        UsageError, PlanError: The tool, or every generator, cannot run the plan; every fault is named.
    """
    wrong = engine.validate(plan.to_json())
    if wrong:
        raise PlanError("; ".join(f"{fault.where}: {fault.what}" for fault in wrong))
    faults = driver.faults(plan, hide)
    if faults:
        words = "; ".join(fault.words for fault in faults)
        raise UsageError(words, where="--driver", hint="use the built-in engine: leave out --driver")
    if shutil.which(driver.name) is None:
        raise TestbedError(f"{driver.name} is not installed", where="--driver", hint=driver.install)


def demand(study: Study) -> None:
    """Check that the driver of every case is installed.

    Raises:
        TestbedError: Drivers are missing; all are named, with the commands that install them.
    """
    lacking = missing(study)
    if not lacking:
        return
    names = ", ".join(driver.name for driver in lacking)
    verb = "is" if len(lacking) == 1 else "are"
    needing = [case for case in study.cases if case.driver in {driver.name for driver in lacking}]
    where = ", ".join(dict.fromkeys(f"experiments.{case.experiment}.load.driver" for case in needing))
    raise TestbedError(f"{names} {verb} not installed", where=where, hint=how_to_install(lacking))


@cache
def version(driver: Driver) -> str:
    """Return the first line of a tool's version output; empty if it has none."""
    if not driver.version:
        return ""
    try:
        done = subprocess.run(
            driver.version, capture_output=True, text=True, timeout=VERSION_S, check=False, errors="replace"
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = (done.stdout + done.stderr).strip().splitlines()
    first = lines[0] if lines else ""
    for behind in (" Copyright", " <", " from /"):
        first = first.partition(behind)[0]
    return first.removeprefix("This is ").strip()


# --- one load ---------------------------------------------------------------------------------------------


class ExternalGenerator:
    """An external tool for one load, as a context manager that ends all its processes."""

    def __init__(self, driver: Driver, plan: Plan, *, marker: str) -> None:
        """Prepare the tool; it starts with `generate`.

        Args:
            driver: An installed tool.
            plan: A plan that the tool supports.
            marker: The run's id, on every process as LOADLENS_RUN.
        """
        self._driver = driver
        self._plan = plan
        self._version = version(driver)
        self._folder = temporary.name("loadlens")
        hiding = Hiding()
        self._hiding = hiding.knowing(hiding.values_in(json.loads(plan.to_json())))
        self._keeper = Keeper(marker=marker, scratch=(self._folder,), secret_values=self._hiding.values)
        self._folder.mkdir(mode=0o700)

    @property
    def name(self) -> str:
        """Name of the tool."""
        return self._driver.name

    @property
    def mark(self) -> str:
        """Environment entry of every process of the tool."""
        return self._keeper.mark(NAME)

    @property
    def keeper_pid(self) -> int:
        """Process that starts and ends the tool."""
        return self._keeper.pid

    def generate(self, listener: Listener) -> ExternalLoad:
        """Run the tool to its end, or until the listener ends it.

        Raises:
            EngineError: The tool failed, did not end, or its output is unreadable.
            TestbedError: The tool could not be started.
        """
        plan, words = self._plan, self._driver.command(self._plan, self._folder)
        command = self._hiding.arguments([word.replace(f"{self._folder}/", "") for word in words])
        shown = " ".join(command)
        log = self._folder / "output"
        began_unix_ns, began_ns = time.time_ns(), time.monotonic_ns()
        self._keeper.spawn(
            NAME,
            Command(
                argv=tuple(words),
                env=_environment(),
                cwd=self._folder,
                log=log,
                stop_signal=signal.SIGINT,
                cpus=plan.cpus,
            ),
        )
        listener.started(began_ns, began_unix_ns)
        standing, was_interrupted = self._await_end(listener, began_ns, shown)
        output = log.read_text(errors="replace")
        if standing.status and not was_interrupted:
            last = " ".join(output.strip()[-LAST_CHARACTERS:].split())
            raise EngineError(
                f"{self._driver.name} failed with status {standing.status}: {last}", where=shown
            )
        try:
            report = self._driver.read(Printed(output, self._folder), plan)
        except (ValueError, KeyError, TypeError) as fault:
            raise EngineError(
                f"cannot read the output of {self._driver.name}: {fault}", where=shown
            ) from None
        result = self._result(report, standing, command, began_ns, began_unix_ns, was_interrupted)
        return ExternalLoad(result, report)

    def _await_end(self, listener: Listener, began_ns: int, shown: str) -> tuple[Standing, bool]:
        """Wait for the tool to end; interrupt it when it must end early, and return whether that was so."""
        limit_s = float("inf")
        if self._plan.duration_ns is not None:
            limit_s = (self._plan.duration_ns + self._plan.streams[0].timeout_ns) / 1e9 + GRACE_S
        interrupted_s: float | None = None
        try:
            while (standing := self._keeper.standing()[NAME]).status is None:
                must_stop = listener.must_stop(None)
                now = time.monotonic()
                if must_stop and interrupted_s is None:
                    interrupted_s = now
                    self._keeper.signal(NAME, signal.SIGINT)
                is_stuck = interrupted_s is not None and now - interrupted_s > GRACE_S
                if is_stuck or now - began_ns / 1e9 > limit_s:
                    raise EngineError(f"{self._driver.name} did not end", where=shown)
                time.sleep(POLL_S)
        finally:
            self._keeper.end(NAME)  # no process may outlive the load
        until = time.monotonic() + 1
        while not standing.drained and time.monotonic() < until:  # its last output may still be in the pipe
            time.sleep(0.005)
            standing = self._keeper.standing()[NAME]
        return standing, interrupted_s is not None

    def _result(
        self,
        report: ToolReport,
        standing: Standing,
        command: list[str],
        began_ns: int,
        began_unix_ns: int,
        was_interrupted: bool,
    ) -> Result:
        ended_ns = standing.ended_ns or time.monotonic_ns()
        if report.began_s is not None:
            t0_ns = round(report.began_s * 1e9)
        else:
            t0_ns = max(began_ns, ended_ns - round(report.seconds * 1e9))
        result = result_of(
            report,
            stopped=was_interrupted,
            began_unix_ns=began_unix_ns + t0_ns - began_ns,
            began_monotonic_ns=t0_ns,
            cpu_s=standing.cpu_s,
        )
        result["driver"] = {
            "name": self._driver.name,
            "version": self._version,
            "command": command,
            "ran_s": (ended_ns - began_ns) / 1e9,
            "tells_begin": report.began_s is not None,
            "tells_requests": report.requests is not None,
            "rounding_s": {} if report.times is None else dict(report.times.rounding),
        }
        return result

    def close(self) -> None:
        """End the tool if it still runs, and remove its files; safe to call twice."""
        self._keeper.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _environment() -> dict[str, str]:
    """Return our environment without proxy settings, which would redirect the load."""
    return {name: value for name, value in os.environ.items() if name.lower() not in _PROXIES}
