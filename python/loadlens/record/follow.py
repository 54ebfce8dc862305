"""Reading a record while another process writes it: each look returns what was added since the last one."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from loadlens.errors import RecordError
from loadlens.growing_file import GrowingFile
from loadlens.model.counters import Counters
from loadlens.model.plain import Unreadable
from loadlens.model.trial import SAMPLE
from loadlens.record import disk, effective_study, histogram_log, layout
from loadlens.record.reader import TrialRecord, open_trial, read_plan

if TYPE_CHECKING:
    import numpy as np

    from loadlens.model.workload import Plan

MOST_KNOWN: Final = 10_000  # series whose names are kept: labels may differ in every request
_READING: Final = re.compile(rb'\{"t":(\d+),((?:"source":"([^"\\]*)",)?.+),"value":([^,{}]+)\}')


class Reading(NamedTuple):
    """A series of a monitor; `labels` is a JSON object as text."""

    source: str
    metric: str
    labels: str
    unit: str


class FollowedEvents:
    """The events of a run, from the first on."""

    def __init__(self, run: Path) -> None:
        self._file = GrowingFile(run / layout.EVENTS)
        self._first = b""  # line, with the time at which the record was made

    @property
    def is_replaced(self) -> bool:
        """True if the file is another one than that which was read."""
        begins = GrowingFile(self._file.path).read(len(self._first))
        return bool(begins) and begins != self._first

    @property
    def has_new(self) -> bool:
        """True if there are events since the last look."""
        return bool(self._file.read(1))

    def new(self) -> list[dict[str, Any]]:
        """Return the events since the last look; damaged lines are left out.

        Raises:
            RecordError: The record is newer than this Loadlens reads.
        """
        lines = self._file.lines()
        self._first = self._first or lines[: lines.find(b"\n") + 1]
        rows = [row for line in lines.splitlines() if (row := disk.checked_row(line))]
        for row in rows:
            if "schema_version" in row:
                layout.refuse_newer(row["schema_version"], self._file.path)
        return rows


class FollowedLoad:
    """Files that an engine appends to: of a whole trial, or of one machine of a fleet.

    Args:
        live: Folder.
        samples: Name of the file with rows of requests.
    """

    def __init__(self, live: Path, samples: str = layout.SAMPLES_BIN) -> None:
        self._counters = GrowingFile(live / layout.COUNTERS)
        self._intervals = GrowingFile(live / layout.INTERVALS)
        self._samples = GrowingFile(live / samples)

    def take(
        self, but: Collection[tuple[str, str]] = ()
    ) -> tuple[Counters, list[histogram_log.IntervalHistogram]]:
        """Return counters and histograms since the last look, without those of (stream, kind) in `but`.

        The counters are read first: those of an interval are written after its histograms.
        """
        counters = self.counters()
        return counters, self.intervals(but)

    def counters(self) -> Counters:
        """Return the rows of counters.jsonl since the last look; a damaged line is left out."""
        rows = []
        for line in self._counters.lines().splitlines():
            try:
                row = json.loads(line)
            except ValueError:
                continue
            if isinstance(row, dict) and "start_s" in row:
                rows.append(row)
        try:
            return Counters.from_rows(rows)
        except Unreadable as fault:
            raise RecordError(f"damaged: {fault}", where=str(self._counters.path)) from None

    def intervals(self, but: Collection[tuple[str, str]] = ()) -> list[histogram_log.IntervalHistogram]:
        """Return all histograms since the last look; those of (stream, kind) in `but` are left out.

        Those of an interval are written before its counters: what is read of those has its histograms here.
        """
        histograms: list[histogram_log.IntervalHistogram] = []
        while lines := self._intervals.lines():
            memory = os.memfd_create("intervals")  # the engine's decoder reads a file
            with open(memory, "wb") as file:
                file.write(lines)
                file.flush()
                histograms += histogram_log.read(Path(f"/proc/self/fd/{memory}"), but)
        return histograms

    def bad_samples(self, *, is_wanted: bool) -> Iterator[np.ndarray[Any, Any]]:
        """Yield the rows of requests that did not end as expected, since the last look.

        Args:
            is_wanted: False passes over them, at the cost of a few bytes.
        """
        import numpy as np

        for payload in self._samples.chunks(SAMPLE, is_wanted=is_wanted):
            rows = np.frombuffer(payload, dtype=np.dtype(list(SAMPLE.fields)))
            yield rows[rows["outcome"] != 0]


@dataclass(slots=True)
class FollowedTrial:
    """The live files of a trial that is not sealed yet."""

    folder: Path
    t0_monotonic_ns: int | None = None
    t0_unix_ns: int | None = None
    load: FollowedLoad = field(init=False)
    _readings: GrowingFile = field(init=False)
    _known: dict[bytes, Reading] = field(default_factory=dict)

    def __post_init__(self) -> None:
        live = self.folder / layout.LIVE
        self.load = FollowedLoad(live)
        self._readings = GrowingFile(live / layout.READINGS_JSONL)

    def plan(self) -> Plan:
        """Return the plan of the load.

        Raises:
            RecordError: It is not written yet, or damaged.
        """
        return read_plan(self.folder / layout.PLAN)

    def nodes(self) -> dict[str, FollowedLoad]:
        """Return what each machine of a fleet has sent so far, by name; empty: one machine makes the load.

        The folders of all machines are made before the load begins.
        """
        live = self.folder / layout.LIVE
        return {
            name: FollowedLoad(live / layout.NODES / name, layout.FAILURES_BIN)
            for name in layout.nodes_in(live)
        }

    @property
    def is_sealed(self) -> bool:
        """True once `trial.json` is written: from then on `open_trial` reads the trial."""
        return (self.folder / layout.TRIAL).exists()

    def started(self) -> bool:
        """True once the load began and its start time is known."""
        if self.t0_monotonic_ns is None:
            try:
                start = disk.read_json(self.folder / layout.LIVE / layout.START)
            except RecordError:
                return False
            self.t0_monotonic_ns, self.t0_unix_ns = start.get("t0_monotonic_ns"), start.get("t0_unix_ns")
        return self.t0_monotonic_ns is not None

    def readings(
        self, sources: Collection[str] | None = None
    ) -> Iterator[tuple[Reading, float, float | None]]:
        """Yield series, seconds since t0 and value of the readings since the last look.

        Args:
            sources: Readings of others are left out; none: no reading is.
        """
        if self.t0_monotonic_ns is None:
            return
        wanted = None if sources is None else {source.encode() for source in sources}
        for line in self._readings.lines().splitlines():
            parts = _READING.fullmatch(line)
            if parts is None:
                continue
            at, key, source, value = parts.groups()
            if wanted is not None and source is not None and source not in wanted:
                continue  # before the labels are read
            reading = self._known.get(key) or self._learn(key)
            if reading is not None and (sources is None or reading.source in sources):
                seconds = (int(at) - self.t0_monotonic_ns) / 1e9
                yield reading, seconds, None if value == b"null" else float(value)

    def _learn(self, key: bytes) -> Reading | None:
        try:
            row = json.loads(b"{" + key + b"}")
        except ValueError:
            return None
        labels = json.dumps(row.get("labels", {}), sort_keys=True)
        source, metric, unit = (str(row.get(name, "")) for name in ("source", "metric", "unit"))
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()  # series that go on are read again
        self._known[key] = reading = Reading(source, metric, labels, unit)
        return reading


def sealed_readings(trial: TrialRecord) -> Iterator[tuple[Reading, list[float], list[float | None]]]:
    """Yield each series of a trial with its seconds and values, in order of time."""
    table = trial.readings()
    keys = ["source", "metric", "labels", "unit"]
    for names, part in table.sort("time_ns", maintain_order=True).group_by(keys, maintain_order=True):
        seconds = (part["time_ns"] / 1e9).to_list()
        yield Reading(*(str(name or "") for name in names)), seconds, part["value"].to_list()


def bad_samples(trial: TrialRecord) -> np.ndarray[Any, Any]:
    """Return the rows of a sealed trial's requests that did not end as expected, in the engine's order."""
    import polars as pl

    columns = ["seq", "due_ns", "done_ns", "user", "connection", "step", "status", "outcome", "stream"]
    return trial.samples(columns).filter(pl.col("outcome") != 0).to_numpy(structured=True)


def live_trial(run: Path, case: str, trial: str) -> FollowedTrial:
    """Follow a trial by the names that its events use."""
    return FollowedTrial(run / layout.TRIALS / case / trial)


# --- the process that writes ---------------------------------------------------------------------------


def writer_of(run: Path, last: int | None = None) -> int | None:
    """Return the process that holds the lock of a record on this machine; none: no process writes it.

    Args:
        run: Folder of the record.
        last: The process that was returned last. While it has the folder open, it is the answer: to list all
            locks the kernel waits for every core (some 15 ms), and the generator is late by it.
    """
    if last is not None and _has_open(last, run):
        return last
    try:
        inode = str(run.stat().st_ino)
        locks = Path("/proc/locks").read_text()
    except OSError:
        return None
    for line in locks.splitlines():
        words = line.split()
        if len(words) >= 6 and words[1] == "FLOCK" and words[5].rpartition(":")[2] == inode:
            pid = int(words[4])
            if pid > 0 and _has_open(pid, run):  # other disks number their files alike
                return pid
    return None


def interrupt_writer(run: Path) -> bool:
    """Send SIGINT to the process that writes a record.

    Returns:
        False: there is none, or it belongs to another user.
    """
    pid = writer_of(run)
    if pid is None:
        return False
    try:
        process = os.pidfd_open(pid)  # from here on the number cannot become another process
    except OSError:
        return False
    try:
        if writer_of(run) != pid:
            return False
        signal.pidfd_send_signal(process, signal.SIGINT)
    except OSError:
        return False
    finally:
        os.close(process)
    return True


def _has_open(pid: int, folder: Path) -> bool:
    """True if a process has a folder open."""
    try:
        wanted = folder.stat()
        entries = list(os.scandir(f"/proc/{pid}/fd"))
    except OSError:
        return False
    for entry in entries:
        try:
            about = entry.stat()
        except OSError:
            continue
        if (about.st_dev, about.st_ino) == (wanted.st_dev, wanted.st_ino):
            return True
    return False


# --- parts of a run that need not be opened whole ----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PlanOfRun:
    """The study as planned so far, and facts about the start of the run."""

    study: Mapping[str, Any]
    environment: Mapping[str, Any]


def read_plan_of_run(run: Path) -> PlanOfRun:
    """Return the plan of a run without a look at its trials.

    Raises:
        RecordError: A file is missing or damaged, or newer than this Loadlens reads.
    """
    path = run / layout.EFFECTIVE
    study = effective_study.read_effective(disk.read_bytes(path), path)
    return PlanOfRun(study, disk.read_json(run / layout.ENVIRONMENT))


def sealed_trial(run: Path, case: str, trial: str) -> TrialRecord:
    """Open a sealed trial by the names that its events use.

    Raises:
        RecordError: It is not sealed, or damaged.
    """
    return open_trial(run / layout.TRIALS / case / trial)


def block_of(trial: str) -> int | None:
    """Return the block that a trial's folder is named after; none for other names."""
    place = layout.parse_trial_folder_name(trial)
    return None if place is None else place[0]
