"""A load that another program makes: started, watched, ended in order, and what it told as a result of ours.

The program is a process of a keeper, as services are: nothing of it outlives the lab, however that ends.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from loadlens import engine
from loadlens.engine import Result
from loadlens.errors import EngineError, ExitCode, PlanError, TestbedError, UsageError
from loadlens.model.study import Study
from loadlens.model.trial import Outcome
from loadlens.model.workload import Plan
from loadlens.record import argument_without_secrets
from loadlens.run.external import (
    Driver,
    Printed,
    Request,
    Told,
    how_to_install,
    missing,
    result_of,
)
from loadlens.run.interrupts import Interrupts
from loadlens.run.single_load import HitDone, recorded
from loadlens.testbed.keeper import Command, Keeper, Standing

if TYPE_CHECKING:
    from loadlens.record import TrialWriter

NAME = "driver"  # of its process at the keeper
POLL_S = 0.05
GRACE_S = 10.0  # beyond its duration and one time-out, and after it was asked to end
LAST_CHARACTERS = 300  # of what a program said before it gave up
VERSION_S = 20.0
NOT_KNOWN = 0xFFFFFFFF  # of a sample's user, connection and bytes on the wire
NEVER = -1  # of a sample's times
_PROXIES = ("http_proxy", "https_proxy", "all_proxy")  # would send the load elsewhere


@dataclass(frozen=True, slots=True)
class Driven:
    """What came of one load."""

    result: Result  # of the engine's shape, with `driver`
    told: Told

    def samples(self) -> Iterator[tuple[int, ...]]:
        """Rows of the sample log (docs/reference/record.md), of a program that tells single requests."""
        for seq, one in enumerate(self.told.requests or ()):
            sent = round(one.sent_s * 1e9)
            yield (
                seq,
                NEVER,
                sent,
                NEVER,
                sent + round(one.seconds * 1e9),
                NOT_KNOWN,
                NOT_KNOWN,
                NOT_KNOWN,
                min(one.body_bytes, NOT_KNOWN),
                0,
                one.status,
                int(_outcome(one)),
                0,
                0,
                0,
            )


def _outcome(one: Request) -> Outcome:
    if one.is_failed:
        return Outcome.UNCLASSED
    return Outcome.OK if 200 <= one.status < 400 else Outcome.UNEXPECTED_STATUS


# --- before anything starts -------------------------------------------------------------------------------


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
        words = "; ".join(fault.words for fault in faults)
        raise UsageError(words, where="--driver", hint="our own engine: without --driver")


def demand(study: Study) -> None:
    """See that every program is there that a case names as its driver.

    Raises:
        TestbedError: Some are missing; all are named, with the commands that install them.
    """
    lacking = missing(study)
    if not lacking:
        return
    names = ", ".join(driver.program for driver in lacking)
    verb = "is" if len(lacking) == 1 else "are"
    wanting = [case for case in study.cases if case.driver in {driver.name for driver in lacking}]
    where = ", ".join(dict.fromkeys(f"experiments.{case.experiment}.load.driver" for case in wanting))
    raise TestbedError(f"{names} {verb} not installed", where=where, hint=how_to_install(lacking))


@cache
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
    first = lines[0] if lines else ""
    for behind in (" Copyright", " <", " from /"):
        first = first.partition(behind)[0]
    return first.removeprefix("This is ").strip()


# --- one load ---------------------------------------------------------------------------------------------


class Hired:
    """A program that is about to make one load; a context manager that leaves nothing of it behind."""

    def __init__(self, driver: Driver, plan: Plan, *, marker: str) -> None:
        """Nothing of it runs before `drive`.

        Args:
            driver: Is installed.
            plan: One that it can do.
            marker: The run's id, on every process as LOADLENS_RUN.
        """
        self._driver = driver
        self._plan = plan
        self._version = version(driver)
        self._folder = Path(tempfile.mkdtemp(prefix="loadlens-"))
        try:
            secret_values = tuple(_secrets_of(plan))
            self._keeper = Keeper(marker=marker, scratch=(self._folder,), secret_values=secret_values)
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise

    @property
    def name(self) -> str:
        """Of the program."""
        return self._driver.name

    @property
    def mark(self) -> str:
        """The environment entry that every process of it carries."""
        return self._keeper.mark(NAME)

    @property
    def keeper_pid(self) -> int:
        """The process that starts and ends it."""
        return self._keeper.pid

    def drive(
        self,
        *,
        stop: threading.Event | None = None,
        watch: Callable[[], bool] | None = None,
        on_started: Callable[[int, int], None] | None = None,
        on_turn: Callable[[], None] | None = None,
    ) -> Driven:
        """Let it make the load.

        Args:
            stop: When set, it is asked to end.
            watch: Asked at each turn; true asks it to end, because the load has no sense any more.
            on_started: Told once when it was started: CLOCK_MONOTONIC and since 1970, both in ns.
            on_turn: Called at each turn.

        Raises:
            EngineError: It gave up, did not end, or printed what it should not.
            TestbedError: It could not be started.
        """
        plan, words = self._plan, self._driver.command(self._plan, self._folder)
        command = [argument_without_secrets(word.replace(f"{self._folder}/", "")) for word in words]
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
        if on_started is not None:
            on_started(began_ns, began_unix_ns)
        turn = _Turn(plan, began_ns, stop, watch, on_turn)
        standing = self._ended(turn, shown)
        said = log.read_text(errors="replace")
        if standing.status and not turn.was_asked:
            last = " ".join(said.strip()[-LAST_CHARACTERS:].split())
            raise EngineError(f"{self._driver.name} gave up with {standing.status}: {last}", where=shown)
        try:
            told = self._driver.read(Printed(said, self._folder), plan)
        except (ValueError, KeyError, TypeError) as fault:
            raise EngineError(f"cannot read what {self._driver.name} printed: {fault}", where=shown) from None
        return Driven(self._result(told, standing, command, began_ns, began_unix_ns, turn.was_asked), told)

    def _ended(self, turn: _Turn, shown: str) -> Standing:
        """Wait for its end, or bring it about."""
        try:
            while True:
                standing = self._keeper.standing()[NAME]
                if standing.status is not None:
                    break
                if turn.is_time_to_ask():
                    self._keeper.signal(NAME, signal.SIGINT)
                if turn.is_over_time():
                    raise EngineError(f"{self._driver.name} did not end", where=shown)
                time.sleep(POLL_S)
        finally:
            self._keeper.end(NAME)  # a load leaves nothing running
        until = time.monotonic() + 1
        while not standing.drained and time.monotonic() < until:  # its last words may be in the pipe
            time.sleep(0.005)
            standing = self._keeper.standing()[NAME]
        return standing

    def _result(
        self,
        told: Told,
        standing: Standing,
        command: list[str],
        began_ns: int,
        began_unix_ns: int,
        was_asked: bool,
    ) -> Result:
        ended_ns = standing.ended_ns or time.monotonic_ns()
        if told.began_unix_s is not None:
            t0_ns = began_ns + round(told.began_unix_s * 1e9) - began_unix_ns
        else:
            t0_ns = max(began_ns, ended_ns - round(told.seconds * 1e9))
        result = result_of(
            told,
            stopped=was_asked,
            began_unix_ns=began_unix_ns + t0_ns - began_ns,
            began_monotonic_ns=t0_ns,
            cpu_s=standing.cpu_s,
        )
        result["driver"] = {
            "name": self._driver.name,
            "version": self._version,
            "command": command,
            "ran_s": (ended_ns - began_ns) / 1e9,
            "tells_begin": told.began_unix_s is not None,
            "tells_requests": told.requests is not None,
            "rounding_s": {} if told.times is None else dict(told.times.rounding),
        }
        return result

    def close(self) -> None:
        """End what still runs and remove its files; more than once is fine."""
        self._keeper.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Turn:
    """What is looked at while a program runs: who wants its end, and whether it takes too long."""

    def __init__(
        self,
        plan: Plan,
        began_ns: int,
        stop: threading.Event | None,
        watch: Callable[[], bool] | None,
        on_turn: Callable[[], None] | None,
    ) -> None:
        self._stop, self._watch, self._on_turn = stop, watch, on_turn
        self._began_s = began_ns / 1e9
        slowest_s = plan.streams[0].timeout_ns / 1e9 + GRACE_S
        self._limit_s = float("inf") if plan.duration_ns is None else plan.duration_ns / 1e9 + slowest_s
        self._asked_at: float | None = None

    @property
    def was_asked(self) -> bool:
        """Whether it was asked to end."""
        return self._asked_at is not None

    def is_time_to_ask(self) -> bool:
        """Whether to ask it to end now; once."""
        if self._on_turn is not None:
            self._on_turn()
        wanted = (self._stop is not None and self._stop.is_set()) or (
            self._watch is not None and self._watch()
        )
        if not wanted or self._asked_at is not None:
            return False
        self._asked_at = time.monotonic()
        return True

    def is_over_time(self) -> bool:
        """Whether it should have ended long ago."""
        now = time.monotonic()
        return now - self._began_s > self._limit_s or (
            self._asked_at is not None and now - self._asked_at > GRACE_S
        )


def _secrets_of(plan: Plan) -> Iterator[str]:
    """Literal credentials in the headers of a load, which nothing that is kept may show."""
    for stream in plan.streams:
        for step in (step for scenario in stream.scenarios for step in scenario.steps):
            for name, value in step.headers:
                if argument_without_secrets(header := f"{name}: {value}") != header:
                    yield value


def _environment() -> dict[str, str]:
    """Ours, without proxies that the load would be sent through."""
    return {name: value for name, value in os.environ.items() if name.lower() not in _PROXIES}


# --- `hit` ------------------------------------------------------------------------------------------------


def run_driven(plan: Plan, driver: Driver, *, out: Path | None = None) -> HitDone:
    """Let another program make a load; Ctrl-C asks it to end.

    Args:
        plan: One stream named `load`.
        driver: Who makes it.
        out: A folder for the record that does not exist yet; none: nothing is written.

    Raises:
        TestbedError, UsageError, PlanError: See `check`.
        EngineError: It gave up, did not end, or printed what it should not.
        RecordError: `out` holds something, or cannot be written.
    """
    check(plan, driver)
    with Interrupts() as interrupts:

        def make(kept: TrialWriter, marker: str) -> Result:
            with Hired(driver, plan, marker=marker) as hired:
                made = hired.drive(
                    stop=interrupts.event,
                    on_started=lambda mono, unix: kept.started(t0_monotonic_ns=mono, t0_unix_ns=unix),
                )
            if made.told.requests is not None:
                kept.write_samples(made.samples())
            return made.result

        if out is not None:
            result = recorded(plan, out, make, driver=driver.name)
        else:
            with Hired(driver, plan, marker=f"hit-{secrets.token_hex(4)}") as hired:
                result = hired.drive(stop=interrupts.event).result
        return HitDone(result, out, interrupts.code or ExitCode.OK)
