"""The engine, typed. The only importer of the compiled module; docs/reference/engine-api.md is the contract.

The engine runs on threads of its own that never take the GIL; Python asks for progress and waits.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadlens.errors import EngineError, PlanError, ScriptError, TestbedError, TooLargeError, limit_met
from loadlens.model.profile import ReplayText
from loadlens.model.workload import Plan, Replay

if TYPE_CHECKING:
    from loadlens.model.result import LoadChange

try:
    from loadlens import _engine
except ImportError as fault:
    raise limit_met(fault) or EngineError(
        f"the compiled engine cannot be loaded: {fault}", hint="pip install --force-reinstall loadlens"
    ) from fault

compiled = _engine  # its arrays are read by `estimate.within_trial` and `record.histogram_log` alone
Progress = Mapping[str, Any]  # the JSON of `progress()`, docs/reference/engine-api.md
Result = dict[str, Any]  # "the result of the engine", docs/reference/record.md


@dataclass(frozen=True, slots=True)
class PlanFault:
    """One thing that the engine refuses in a plan."""

    where: str  # streams[0].scenarios[0].steps[1].path
    what: str


class Run:
    """One run of a plan.

    Args:
        plan: What to do.

    Raises:
        PlanError: The engine refuses the plan; every fault is named.
        TooLargeError: A limit of this machine stands in the way (descriptors, ports, memory).
    """

    def __init__(self, plan: Plan) -> None:
        refuse_faults(plan)
        self._run = _prepared(plan)

    def notes(self) -> list[str]:
        """Problems of this machine known before the start; the result has them too."""
        return self._run.notes()

    def start(self, at_ns: int | None = None) -> None:
        """Start the threads; returns when they run, or are ready to begin together at `at_ns`.

        Args:
            at_ns: Beginning of the load, as of `time.monotonic_ns()` on this machine; None: at once.

        Raises:
            EngineError: `at_ns` is past, or under 1 ms ahead when the threads are ready; nothing was sent.
        """
        try:
            self._run.start() if at_ns is None else self._run.start(at_ns)
        except ValueError as fault:
            raise EngineError(f"the generator cannot start: {fault}", hint="start it later") from None
        except OSError as fault:
            raise _cannot_start(fault) from fault

    def progress(self) -> Progress:
        """Return a snapshot of the run; cheap, any time."""
        content: Progress = json.loads(self._run.progress())
        return content

    def change(self, stream: str, *, rate_per_s: float | None = None, users: int | None = None) -> LoadChange:
        """Change the load of a stream while it runs; returns the change and when it takes effect.

        Args:
            stream: Its name.
            rate_per_s: Iterations per second, of an open load.
            users: Users at once, of a closed load.

        Raises:
            ValueError: It cannot be changed so; the text says why.
        """
        from loadlens.model.result import LoadChange

        old, at_ns = self._run.change(stream, rate_per_s, users)
        new = rate_per_s if rate_per_s is not None else float(users or 0)
        return LoadChange(stream, "users" if rate_per_s is None else "rate_per_s", old, new, at_ns)

    def stop(self) -> None:
        """Ask for an early, orderly end; the results so far stay."""
        self._run.stop()

    def wait(self, timeout_s: float) -> bool:
        """Wait until it has ended, at most so long; true: it has."""
        return self._run.wait(timeout_s)

    def result(self) -> Result:
        """The result; only after the end."""
        try:
            content: Result = json.loads(self._run.result())
        except (OSError, RuntimeError) as fault:
            raise EngineError(f"the engine gave no result: {fault}") from fault
        return content


@dataclass(frozen=True, slots=True)
class ScriptSpec:
    """Input of a wrk script."""

    script: str | None  # its file; none: there is none
    scheme: str
    host: str  # without brackets
    port: str | None  # of the URL, if it has one
    path: str  # the URL from its path on
    headers: tuple[tuple[str, str], ...]
    args: tuple[str, ...]  # the URL, and what follows it
    threads: int
    timeout_ns: int
    duration_ns: int


class Script:
    """A script of wrk: making it loads the file and calls `setup` and `init` for each thread.

    Args:
        asked: The script and what it is given.

    Raises:
        TestbedError: Nothing takes a connection at the address.
        ScriptError: It does not load, fails, or makes something that is no request.
    """

    def __init__(self, asked: ScriptSpec) -> None:
        try:
            self._script = _engine.Script(json.dumps(asdict(asked)))
        except ConnectionError as fault:
            raise TestbedError(str(fault), hint="start the service, or another URL") from None
        except ValueError as fault:
            raise ScriptError(str(fault)) from None

    def first_line(self) -> str | None:
        """The first line of all requests; none: the script makes each."""
        return self._script.first_line()

    def start(self, run: Run) -> None:
        """Start a run with the script on its threads; returns when they run."""
        try:
            self._script.start(run._run)
        except OSError as fault:
            raise _cannot_start(fault) from fault

    def fault(self) -> str | None:
        """Return the script's runtime errors; only after the end."""
        return self._script.fault()

    def figures(self, measured_ns: int, connections: int) -> dict[str, Any]:
        """Latencies and rates of threads as docs/reference/engine-api.md has them; only after the end."""
        content: dict[str, Any] = json.loads(self._script.figures(measured_ns, connections))
        return content

    def done(self, measured_ns: int, summary: Mapping[str, Any]) -> None:
        """Call `done`, if the script has it; only after the end.

        Raises:
            ScriptError: It fails.
        """
        try:
            self._script.done(measured_ns, json.dumps(summary))
        except ValueError as fault:
            raise ScriptError(str(fault)) from None


def merge(plan: Plan, folders: Sequence[Path], out: Path) -> Result:
    """The result of machines that shared a plan, as one engine with all their threads would give it.

    A machine's file that ends before its load did counts up to there; the status is then `incomplete`, and a
    reason names the folder.

    Args:
        plan: The whole plan.
        folders: The folder that each machine recorded to, with `RecordTo.sums`, in the order of the shares.
        out: An existing folder, for the intervals of all machines together.

    Raises:
        EngineError: A file is missing or damaged; the message names it.
    """
    try:
        content: Result = json.loads(
            _engine.merge(plan.to_json(), [str(folder) for folder in folders], str(out))
        )
    except ValueError as fault:
        raise EngineError(
            f"the counts of the nodes cannot be merged: {fault}", hint="run the trial again"
        ) from None
    return content


def version() -> str:
    """The engine's version."""
    return _engine.version()


@cache
@cache
def digest() -> str:
    """SHA-256 of the compiled engine, hex: equal on machines whose engines are the same."""
    with open(_engine.__file__, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def validate(plan_json: str) -> tuple[PlanFault, ...]:
    """Every fault of a plan at once; empty: it is good."""
    return tuple(PlanFault(where, what) for where, what in _engine.validate(plan_json))


def refuse_faults(plan: Plan) -> None:
    """Raise PlanError if a plan has faults; every fault is named."""
    faults = validate(plan.to_json())
    if faults:
        raise _refusal([(fault.where, fault.what) for fault in faults])


def refuse_too_large(plan: Plan) -> None:
    """Raise TooLargeError if a limit of this machine stands in the way of a plan; starts nothing."""
    _prepared(replace(plan, record=None))


def _prepared(plan: Plan) -> _engine.Run:
    try:
        return _engine.Run(plan.to_json())
    except ValueError as fault:
        # What only the files show that a plan names: bodies, certificates, keys.
        raise _refusal(json.loads(str(fault))) from None
    except OSError as fault:
        what, _, advice = str(fault).partition("\n")
        raise TooLargeError(
            f"the generator cannot carry this load: {what}",
            hint=advice or "fewer connections, or a higher limit",
        ) from fault


def _cannot_start(fault: OSError) -> EngineError:
    limit = limit_met(fault)
    if limit is None:
        return EngineError(f"the generator cannot start: {fault}")
    return TooLargeError(f"the generator cannot start: {limit.message}", hint=limit.hint)


def _refusal(faults: Sequence[tuple[str, str]]) -> PlanError:
    lines = "; ".join(f"{where}: {what}" for where, what in faults)
    return PlanError(f"the engine refuses the plan: {lines}", faults)


def check_template(text: str, names: Sequence[str] = (), feeds: Sequence[str] = ()) -> str | None:
    """Check one template against the names and feeds that it may use; `None` if valid."""
    return _engine.check_template(text, list(names), list(feeds))


def columns_of(text: str, names: Sequence[str], feeds: Sequence[str]) -> list[tuple[str, str, bool]]:
    """The columns of feeds that a template uses, as (feed, column, whether raw); none of one with a fault."""
    return _engine.columns_of(text, list(names), list(feeds))


def open_feed(path: Path, format: str) -> _engine.FeedFile:
    """A data feed, read whole and checked.

    Args:
        path: The file.
        format: csv, tsv or jsonl.

    Raises:
        ValueError: It cannot be read, or a record is not whole; the message names file and line.
    """
    delimiter = {"csv": ",", "tsv": "\t"}.get(format)
    try:
        feed = _engine.FeedFile(str(path), format)
    except ValueError:
        if delimiter and path.is_file():  # an open quote leaves a record without its other fields
            _refuse_open_quotes(path, delimiter)
        raise
    if delimiter:
        _refuse_open_quotes(path, delimiter)
    return feed


def _refuse_open_quotes(path: Path, delimiter: str) -> None:
    """Raise ValueError if a quote of a feed is not closed: what follows it would be one cell.

    The engine reads such a file to its end without a word.
    """
    with path.open("rb") as stream:
        if not any(b'"' in block for block in iter(lambda: stream.read(1 << 20), b"")):
            return
    first = last = 1  # lines of a record
    with path.open(encoding="utf-8", errors="replace", newline="") as lines:
        reader = csv.reader(lines, delimiter=delimiter, strict=True)
        try:
            for _ in reader:
                first = last = reader.line_num + 1
        except csv.Error as fault:
            last = max(first, reader.line_num)
            if "NUL" in str(fault):  # the engine takes it
                return
            where = f"{path.name}:{first}" + (f" to line {last}" if last > first else "")
            raise ValueError(f'{where}: a quote is not closed, or stands within a cell: "a, ""b"""') from None


def yaml_events(
    text: str,
) -> tuple[list[tuple[str, str, str, int, str | None, int, int, int]], tuple[str, int] | None]:
    """The fields of `yaml_events.Event` up to the end or to the first fault; and the fault, with its line."""
    return _engine.yaml_events(text)


def check_pattern(text: str, group: int | None = None) -> str | None:
    """Check one regular expression that needs a group; `None` if valid."""
    return _engine.check_pattern(text, group)


def timer_precision(sleeps: int) -> tuple[int, int, int, int]:
    """Nanoseconds: how late sleeps of a millisecond end (p50, p99, most), and one reading of the clock."""
    return _engine.timer_precision(sleeps)


def simulate(model: Mapping[str, Any]) -> dict[str, Any]:
    """The outcome of a queueing model; the same model gives the same outcome.

    Args:
        model: As docs/explain/predictions.md describes it; plain values.

    Raises:
        EngineError: The model has faults; every one is named.
    """
    try:
        content: dict[str, Any] = json.loads(_engine.simulate(json.dumps(model, sort_keys=True)))
    except ValueError as told:
        lines = "; ".join(f"{where}: {what}" for where, what in json.loads(str(told)))
        raise EngineError(f"the model cannot be simulated: {lines}") from None
    return content


def serve_nothing(cores: Sequence[int]) -> None:
    """Serve a loopback port, a thread on each of `cores`, until standard input ends; prints the port."""
    _engine.serve_nothing(list(cores), lambda port: print(port, flush=True))  # noqa: T201 (the output of a process)


def serve_proxy(settings_json: str, ends: Sequence[int], listening: Callable[[int, int], object]) -> None:
    """Serve as a fault proxy until one of the descriptors `ends` can be read or is closed.

    Args:
        settings_json: Where it stands and what it does wrong.
        ends: Descriptors.
        listening: Called with the client port and the port of the counts, once both are bound.

    Raises:
        PlanError: The settings are bad; every fault is named.
        OSError: A port cannot be had.
    """
    try:
        _engine.serve_proxy(settings_json, list(ends), listening)
    except ValueError as told:
        lines = "; ".join(f"{where}: {what}" for where, what in json.loads(str(told)))
        raise PlanError(f"the fault proxy refuses its settings: {lines}") from None


def read_due_times(path: str, text: ReplayText) -> Replay | tuple[str, ...]:
    """Read a file of due times, or return its faults, each with file and line."""
    try:
        arrivals, last_ns, peak, digest = _engine.read_due_times(
            path, text.column, text.speed, text.from_first
        )
    except ValueError as fault:
        faults: list[str] = json.loads(str(fault))
        return tuple(faults)
    return Replay(
        path=str(Path(path).resolve()),
        digest=digest,
        arrivals=arrivals,
        last_ns=last_ns,
        peak_per_s=peak,
        column=text.column,
        speed=text.speed,
        from_first=text.from_first,
    )
