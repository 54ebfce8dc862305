"""Reading a record, for analysis, reports and notebooks.

Nothing here changes a file. A damaged file is named and the rest stays readable: a damaged file of the run
raises when it is read, a damaged trial opens as invalid with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadlens.errors import RecordError
from loadlens.model.counters import Counters
from loadlens.model.plain import Unreadable, read
from loadlens.model.recorded import Idle, Placement, SealedFile, ServiceProcess, TrialCase
from loadlens.model.result import EngineResult
from loadlens.model.topology import Entry
from loadlens.model.trial import CONNECTION, SAMPLE, RowFormat, TrialStatus
from loadlens.model.workload import Plan
from loadlens.record import (
    disk,
    effective_study,
    histogram_log,
    layout,
    readings,
    sample_rows,
)
from loadlens.record.traces import Trace, trace_of

if TYPE_CHECKING:
    import polars as pl

SMALL_BYTES = 1 << 20  # digests of sealed files up to this size are checked when the record is opened
NOT_SEALED = "not sealed: the lab ended before the trial did"


class TrialRecord:
    """One trial, sealed or not; its files are read on demand."""

    def __init__(self, path: Path, content: Mapping[str, Any], *, sealed: bool) -> None:
        self.path = path
        self.is_sealed = sealed
        self.case = read(TrialCase, content["case"])
        self.entry = ""  # the service that the load asks, as the study says; empty: an address outside
        self.block: int = content["block"]
        self.attempt: int = content["attempt"]
        self.position: int = content["position"]
        self.seed: int = content["seed"]
        self.status = TrialStatus(content["status"])
        self.reasons: tuple[str, ...] = tuple(content["reasons"])
        self.result: EngineResult | None = _result_of(content)
        self.t0_unix_ns: int | None = content["t0_unix_ns"]
        self.t0_monotonic_ns: int | None = content["t0_monotonic_ns"]
        self.services = read(tuple[ServiceProcess, ...], content["services"])
        self.placement = read(Placement, content["placement"])
        self.environment: dict[str, Any] = dict(content["environment"])
        self.idle = read(Idle, content["idle"])
        self.leaks: tuple[str, ...] = tuple(content["leaks"])
        self.notes: tuple[str, ...] = tuple(content["notes"])
        self.began_unix_ns: int = content["began_unix_ns"]
        self.ended_unix_ns: int = content["ended_unix_ns"]
        self.digests: Mapping[str, SealedFile] = read(dict[str, SealedFile], content["digests"])

    @property
    def name(self) -> str:
        """The trial's folder name."""
        return self.path.name

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """Names of the machines whose rows it has, in the order of their threads; empty: one machine."""
        there = layout.nodes_in(self.path if self.is_sealed else self.path / layout.LIVE)
        order = [] if self.result is None else [node.name for node in self.result.nodes]
        return tuple(sorted(there, key=lambda name: order.index(name) if name in order else len(order)))

    @cached_property
    def plan(self) -> Plan:
        """The plan that the engine ran."""
        return read_plan(self._checked(layout.PLAN))

    def samples(self, columns: Sequence[str] = ()) -> pl.DataFrame:
        """Return one row per request, columns as in docs/reference/record.md, in the engine's order.

        Rows that several machines sent come machine by machine, with the name of each in the column `node`.

        Args:
            columns: Columns to read; all by default.
        """
        return self._table(layout.SAMPLES, layout.SAMPLES_BIN, SAMPLE, columns)

    def sample_parts(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Return the same rows in frames of bounded size."""
        form = SAMPLE
        as_written = self._as_written(layout.SAMPLES_BIN)
        if as_written is not None:
            for node, part in sample_rows.live_parts(as_written, form):
                yield _of_node(part, node).select(columns)
            return
        own = [name for name in columns if name != sample_rows.NODE]
        for node, path in self._sealed(layout.SAMPLES).items():
            for part in sample_rows.parquet_parts(path, sample_rows.schema(form), own):
                yield _of_node(part, node).select(columns)

    def traces(self, rows: pl.DataFrame) -> list[Trace | None]:
        """Return the trace of each row of `samples`; None for a request that was sent without one."""
        plan, t0_unix_ns = self.plan, self.t0_unix_ns
        if t0_unix_ns is None:
            return [None] * len(rows)
        traced = [
            [step.is_traced for scenario in stream.scenarios for step in scenario.steps]
            for stream in plan.streams
        ]
        if not any(map(any, traced)):
            return [None] * len(rows)
        nodes = () if self.result is None else self.result.nodes
        begins = {node.name: node.t0_unix_ns or t0_unix_ns for node in nodes}
        sent_by = rows[sample_rows.NODE].to_list() if sample_rows.NODE in rows.columns else [""] * len(rows)
        return [
            trace_of(plan.seed, begins.get(node, t0_unix_ns), stream, seq) if traced[stream][step] else None
            for (stream, step, seq), node in zip(
                rows.select("stream", "step", "seq").iter_rows(), sent_by, strict=True
            )
        ]

    def connections(self) -> pl.DataFrame:
        """Return one row per connection."""
        return self._table(layout.CONNECTIONS, layout.CONNECTIONS_BIN, CONNECTION)

    def readings(self) -> pl.DataFrame:
        """Return one row per monitor reading: time_ns, source, metric, labels (JSON text), unit, value."""
        name = layout.READINGS_JSONL
        if self.is_sealed and name not in self.digests:
            return sample_rows.read_parquet(self._checked(layout.READINGS), readings.schema())
        as_written = self._checked(name) if self.is_sealed else self.path / layout.LIVE / name
        return readings.read_live(as_written, self.t0_monotonic_ns)

    def table_file(self, table: str) -> Path | None:
        """Return the Parquet file of `samples`, `connections` or `readings`; None without a single one."""
        sealed = {"samples": layout.SAMPLES, "connections": layout.CONNECTIONS, "readings": layout.READINGS}
        name = sealed[table]
        return self._checked(name) if name in self.digests else None

    def answers(self) -> dict[str, Any]:
        """Return the answers of a Prometheus server (docs/reference/record.md); empty without queries."""
        path = self.path / layout.PROMQL
        if layout.PROMQL not in self.digests and not path.is_file():
            return {}
        content = disk.read_json(self._checked(layout.PROMQL))
        layout.version_of(content, path)
        return content

    def counters(self) -> Counters:
        """Return one row per interval and stream, and one per interval for the engine itself."""
        path = self._text_file(layout.COUNTERS)
        if path is None:
            return Counters()
        lines = disk.read_lines(path)
        if lines.damage:
            raise RecordError(f"damaged: {lines.damage[0]}", where=str(path))
        rows = list(lines.rows)
        if rows and "schema_version" in rows[0]:
            layout.version_of(rows.pop(0), path)
        try:
            return Counters.from_rows(rows)
        except Unreadable as fault:
            raise RecordError(f"damaged: {fault}", where=str(path)) from None

    def intervals(
        self, but: Collection[tuple[str, str]] = (), edges_s: Sequence[float] = ()
    ) -> list[histogram_log.IntervalHistogram]:
        """Return the histograms of each interval, or those between two edges added up.

        Args:
            but: (stream, kind) of histograms to leave out.
            edges_s: Seconds since t0, rising; none: each interval by itself.
        """
        path = self._text_file(layout.INTERVALS)
        return [] if path is None else histogram_log.read(path, but, edges_s)

    def log(self, service: str) -> str:
        """Return the kept output of a service's processes, all replicas."""
        folder = self.path / layout.LOGS
        parts = []
        for path in sorted(folder.rglob("*")) if folder.is_dir() else []:
            owner = str(path.relative_to(folder)).replace("/", ".").removesuffix(".log")
            if path.is_file() and (owner == service or owner.startswith((f"{service}.", f"{service}-"))):
                parts.append(disk.read_bytes(path).decode(errors="replace"))
        return "".join(parts)

    def damage(self, *, largest: float = math.inf) -> tuple[str, ...]:
        """Describe every file that changed since the seal; above `largest` bytes only the size is checked."""
        faults = []
        for name, sealed in self.digests.items():
            try:
                _check(self.path / name, sealed, content=sealed.bytes <= largest)
            except RecordError as fault:
                faults.append(f"{name}: {fault.message}")
        return tuple(faults)

    def _table(self, sealed: str, live: str, form: RowFormat, columns: Sequence[str] = ()) -> pl.DataFrame:
        import polars as pl

        as_written = self._as_written(live)
        if as_written is not None:
            parts = [_of_node(part, node) for node, part in sample_rows.live_parts(as_written, form)]
        else:
            own = [name for name in columns if name != sample_rows.NODE]
            parts = [
                _of_node(sample_rows.read_parquet(path, sample_rows.schema(form), form.added, own), node)
                for node, path in self._sealed(sealed).items()
            ]
        schema = sample_rows.schema(form)
        rows = pl.concat(parts) if parts else _of_node(pl.DataFrame(schema=schema), "")
        shown = columns or [*schema, *([sample_rows.NODE] if self.nodes else [])]
        return rows.select(shown)

    def _as_written(self, name: str) -> dict[str, Path] | None:
        """Return the live files by machine, or their sealed copies in a trial without Parquet; else None."""
        if not self.is_sealed:
            live = self.path / layout.LIVE
            return {node: live / place / name for node, place in self._places()}
        names = {node: str(place / name) for node, place in self._places()}
        there = {node: self._checked(each) for node, each in names.items() if each in self.digests}
        return there or None

    def _sealed(self, name: str) -> dict[str, Path]:
        """Return the sealed files of this name by machine."""
        return {node: self._checked(str(place / name)) for node, place in self._places()}

    def _places(self) -> list[tuple[str, Path]]:
        """Return the machines with their folders below that of the trial; one without a name has none."""
        return [(name, Path(layout.NODES, name)) for name in self.nodes] or [("", Path())]

    def _text_file(self, name: str) -> Path | None:
        """Return the sealed file, its digest checked, or the live one; None if the trial never wrote it."""
        if self.is_sealed:
            return self._checked(name)
        path = self.path / layout.LIVE / name
        return path if path.is_file() else None

    def _checked(self, name: str) -> Path:
        """Return a file's path after a comparison of its size and digest with those at the seal."""
        path = self.path / name
        if name in self.digests:
            _check(path, self.digests[name], content=True)
        return path


def _of_node(rows: pl.DataFrame, node: str) -> pl.DataFrame:
    """Return rows with the machine that sent them; "" is the only one."""
    import polars as pl

    return rows.with_columns(pl.lit(node, pl.String).alias(sample_rows.NODE))


def read_plan(path: Path) -> Plan:
    """Return the plan in a file.

    Raises:
        RecordError: It is missing or damaged.
    """
    content = disk.read_json(path)
    layout.version_of(content, path)
    try:
        return Plan.from_json(content)
    except (Unreadable, KeyError, TypeError, AttributeError) as fault:
        raise RecordError(f"damaged: {type(fault).__name__} {fault}", where=str(path)) from None


def _result_of(content: Mapping[str, Any]) -> EngineResult | None:
    """Return the result of the load; raise ValueError if it is damaged, or version and content disagree."""
    engine = content["engine"]
    if engine is not None and not isinstance(engine, Mapping):
        raise ValueError("`engine` is no object")
    is_driven = content.get("schema_version", layout.SCHEMA_VERSION) == layout.DRIVEN_VERSION
    if is_driven != (engine is not None and engine.get("driver") is not None):
        raise ValueError("a trial of version 2, and no other, says which program made its load")
    return None if engine is None else EngineResult.from_json(engine)


def _check(path: Path, sealed: SealedFile, *, content: bool) -> None:
    """Raise RecordError if a sealed file is gone, or has another length or another content."""
    if not path.is_file():
        raise RecordError("the file is missing", where=str(path))
    size = path.stat().st_size
    if size != sealed.bytes:
        raise RecordError(f"damaged: {size} bytes, sealed with {sealed.bytes}", where=str(path))
    if content and disk.digest_of_file(path) != sealed.sha256:
        raise RecordError("damaged: its SHA-256 is not the one it was sealed with", where=str(path))


class RunRecord:
    """A run on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._damage: list[str] = []
        self._events = self._read_events()
        self.trials: tuple[TrialRecord, ...] = tuple(self._read_trials())
        self.predictions: dict[str, dict[str, Any]] = dict(self._read_predictions())

    @property
    def id(self) -> str:
        """The run's name."""
        return self.path.name

    @property
    def damage(self) -> tuple[str, ...]:
        """Files that changed since they were written: `trials/a/block-1/trial.json: damaged: ...`."""
        return tuple(self._damage)

    @cached_property
    def study(self) -> dict[str, Any]:
        """The study as planned (effective.yaml)."""
        return effective_study.read_effective(self._undamaged(layout.EFFECTIVE), self.path / layout.EFFECTIVE)

    @cached_property
    def study_text(self) -> str:
        """The study file as it was read."""
        return self._undamaged(layout.STUDY).decode()

    @cached_property
    def environment(self) -> dict[str, Any]:
        """Machine and software at the start of the run."""
        self._undamaged(layout.ENVIRONMENT)
        content = disk.read_json(self.path / layout.ENVIRONMENT)
        layout.version_of(content, self.path / layout.ENVIRONMENT)
        return content

    def events(self, kind: str | None = None) -> list[dict[str, Any]]:
        """Return the events in order, all or those of one kind."""
        return [event for event in self._events if kind in (None, event.get("event"))]

    @cached_property
    def digest(self) -> str:
        """SHA-256 over the study as planned and every sealed trial; equal digests mean equal records."""
        paths = [self.path / layout.EFFECTIVE, *(t.path / layout.TRIAL for t in self.trials if t.is_sealed)]
        paths += [self.path / layout.prediction_name(slug) for slug in self.predictions]
        lines = [
            f"{p.relative_to(self.path)} {disk.digest_of_file(p)}\n" for p in sorted(paths) if p.is_file()
        ]
        return disk.digest_of_bytes("".join(lines).encode())

    def unfinished(self) -> list[dict[str, Any]]:
        """Return the planned trials without a complete attempt: {case, block, position, seed}."""
        done = {(t.case.slug, t.block) for t in self.trials if t.status is TrialStatus.COMPLETE}
        return [trial for trial in self.study["trials"] if (trial["case"], trial["block"]) not in done]

    @property
    def is_complete(self) -> bool:
        """True if every planned trial has a complete attempt."""
        return not self.unfinished()

    def _read_events(self) -> list[dict[str, Any]]:
        path = self.path / layout.EVENTS
        try:
            lines = disk.read_lines(path, checked=True)
        except RecordError as fault:
            self._damage.append(f"{layout.EVENTS}: {fault.message}")
            return []
        self._damage += [f"{layout.EVENTS}: {fault}" for fault in lines.damage]
        for row in lines.rows:
            if "schema_version" in row:
                layout.version_of(row, path)
        if not lines.rows or lines.rows[0].get("event") != "created":
            self._damage.append(f"{layout.EVENTS}: the first event is missing")
        return list(lines.rows)

    def _read_predictions(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the prediction of each case that the events name; add a damaged one to the damage instead."""
        for event in self._events:
            if event.get("event") != "predicted":
                continue
            path = self.path / str(event["file"])
            try:
                text = disk.read_bytes(path)
                if disk.digest_of_bytes(text) != event["sha256"]:
                    raise RecordError(
                        "damaged: its SHA-256 is not the one it was written with", where=str(path)
                    )
                content = disk.read_json(path)
                layout.version_of(content, path)
            except layout.NewerRecord:
                raise
            except RecordError as fault:
                self._damage.append(f"{event['file']}: {fault.message}")
                continue
            yield str(event["case"]), content

    def _undamaged(self, name: str) -> bytes:
        """Return the bytes of a file of the run after a comparison with the digests in the events."""
        content = disk.read_bytes(self.path / name)
        announced = [
            digest
            for number, event in enumerate(self._events)
            if (number == 0 or event.get("event") == "extended")
            and (digest := event.get("digests", {}).get(name)) is not None
        ]
        if announced and disk.digest_of_bytes(content) not in announced:
            raise RecordError(
                "damaged: its SHA-256 is not the one it was written with", where=str(self.path / name)
            )
        return content

    def _read_trials(self) -> list[TrialRecord]:
        for name in (layout.STUDY, layout.EFFECTIVE, layout.ENVIRONMENT):
            try:
                self._undamaged(name)
            except RecordError as fault:
                self._damage.append(f"{name}: {fault.message}")
        try:
            study = self.study
        except layout.NewerRecord:
            raise
        except RecordError:
            study = {"cases": [], "trials": []}  # named above
        trials = []
        for folder in sorted((self.path / layout.TRIALS).glob("*/*")):
            place = layout.parse_trial_folder_name(folder.name)
            if folder.is_dir() and place is not None:
                trial = self._read_trial(folder, _identity(study, folder.parent.name, *place))
                trial.entry = _entry(study, folder.parent.name)
                trials.append(trial)
        return sorted(trials, key=lambda trial: (trial.position, trial.attempt, str(trial.path)))

    def _read_trial(self, folder: Path, identity: dict[str, Any]) -> TrialRecord:
        if not (folder / layout.TRIAL).exists():
            return TrialRecord(folder, {**_unsealed(folder), **identity}, sealed=False)
        unknown = {**_nothing_known(), **identity}
        try:
            content, trial = _sealed(folder)
        except layout.NewerRecord:
            raise
        except RecordError as fault:
            return self._damaged_trial(folder, unknown, [f"{layout.TRIAL}: {fault.message}"])
        faults = trial.damage(largest=SMALL_BYTES)
        return self._damaged_trial(folder, content, faults) if faults else trial

    def _damaged_trial(self, folder: Path, content: Mapping[str, Any], faults: Sequence[str]) -> TrialRecord:
        place = folder.relative_to(self.path)
        self._damage += [f"{place}/{fault}" for fault in faults]
        invalid = {**content, "status": TrialStatus.INVALID, "reasons": [*content["reasons"], *faults]}
        return TrialRecord(folder, invalid, sealed=True)


def _sealed(folder: Path) -> tuple[dict[str, Any], TrialRecord]:
    """Return what a sealed trial says of itself, as it is and as a trial."""
    path = folder / layout.TRIAL
    content = _read_header(path)
    try:
        return content, TrialRecord(folder, content, sealed=True)
    except (KeyError, TypeError, ValueError) as fault:
        raise RecordError(f"damaged: {type(fault).__name__} {fault}", where=str(path)) from None


def _read_header(path: Path) -> dict[str, Any]:
    content = disk.read_json(path)
    digest = content.pop("self_sha256", None)
    if digest is None:
        # a later version may seal in another way
        layout.version_of(content, path, layout.TRIAL_VERSION)
    if digest != disk.digest_of_bytes(disk.as_json(content).encode()):
        raise RecordError("damaged: its content is not the one it was sealed with", where=str(path))
    layout.version_of(content, path, layout.TRIAL_VERSION)
    return content


def _entry(study: Mapping[str, Any], slug: str) -> str:
    """Return the service that the load of a case asks; empty for an address outside."""
    entry = next((case.get("entry") for case in study["cases"] if case["slug"] == slug), None)
    try:
        return read(Entry, entry or {}).service or ""
    except Unreadable as fault:
        raise RecordError(f"damaged: entry of {slug}: {fault}", where=layout.EFFECTIVE) from None


def _identity(study: Mapping[str, Any], slug: str, block: int, attempt: int) -> dict[str, Any]:
    """Return the plan's facts of a trial whose own header cannot be read."""
    case = next(
        (effective_study.case_summary(c) for c in study["cases"] if c["slug"] == slug),
        {"slug": slug, "name": slug},
    )
    planned: Mapping[str, Any] = next(
        (t for t in study["trials"] if t["case"] == slug and t["block"] == block), {}
    )
    return {
        "case": case,
        "block": block,
        "attempt": attempt,
        "position": planned.get("position", 0),
        "seed": planned.get("seed", 0),
    }


def _nothing_known() -> dict[str, Any]:
    return {
        "status": TrialStatus.ABORTED,
        "reasons": [],
        "engine": None,
        "t0_unix_ns": None,
        "t0_monotonic_ns": None,
        "services": [],
        "placement": {},
        "environment": {},
        "idle": {},
        "leaks": [],
        "notes": [],
        "began_unix_ns": 0,
        "ended_unix_ns": 0,
        "digests": {},
    }


def _unsealed(folder: Path) -> dict[str, Any]:
    """Return the content of a trial that was never sealed."""
    reason = _text_of(folder / layout.LIVE / layout.UNSEALED)
    content = {**_nothing_known(), "reasons": [f"not sealed: {reason}" if reason else NOT_SEALED]}
    try:
        start = disk.read_json(folder / layout.LIVE / layout.START)
    except RecordError:
        return content  # the engine never ran
    for name in ("t0_unix_ns", "t0_monotonic_ns"):
        content[name] = start[name] if isinstance(start.get(name), int) else None
    return content


def _text_of(file: Path) -> str:
    """Return the text of a file; empty if it is absent or unreadable."""
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""


def is_record(path: Path) -> bool:
    """True if a folder holds a record."""
    return any((path / name).is_file() for name in (layout.EFFECTIVE, layout.EVENTS))


def open_run(path: Path | str) -> RunRecord:
    """Open a record directory for reading; it may still be growing.

    Raises:
        RecordError: Not a record, or a newer one than this Loadlens reads.
    """
    folder = Path(path).absolute()
    if not folder.is_dir():
        raise RecordError("there is no record", where=str(folder), hint="look under runs/")
    if not is_record(folder):
        raise RecordError(
            f"not a record: neither {layout.EFFECTIVE} nor {layout.EVENTS} is in it",
            where=str(folder),
            hint="give the folder that loadlens run names at its end, such as runs/register-2c90",
        )
    return RunRecord(folder)


def open_trial(folder: Path) -> TrialRecord:
    """Open one sealed trial by itself.

    Raises:
        RecordError: It is not sealed, damaged, or newer than this Loadlens reads.
    """
    return _sealed(folder)[1]


def records_in(folder: Path, most: int) -> list[Path]:
    """Return the records in a folder, at most so many, the one with the last event first."""
    changed: list[tuple[int, Path]] = []
    for events in folder.glob(f"*/{layout.EVENTS}"):
        try:
            changed.append((events.stat().st_mtime_ns, events.parent))
        except OSError:
            continue  # removed meanwhile
    return [path for _, path in sorted(changed, reverse=True)[:most]]


def records_below(folder: Path) -> list[Path]:
    """Return the records at a folder and below, none inside another, by name.

    Raises:
        RecordError: There is none.
    """
    records = sorted(_below(folder))
    if not records:
        raise RecordError(f"no records below {folder}", hint="the folder that holds them, such as runs")
    return records


def _below(folder: Path) -> Iterator[Path]:
    if is_record(folder):
        yield folder
        return
    for place in folder.iterdir():
        if place.is_dir() and not place.is_symlink():
            yield from _below(place)


def latest_run(runs: Path, study_name: str) -> Path | None:
    """Return the last created run of a study under a folder; None without one."""
    return next(iter(runs_of(runs, study_name)), None)


def runs_of(runs: Path, study_name: str) -> list[Path]:
    """Return every run of a study under a folder, the last created first."""
    created: list[tuple[int, Path]] = []
    for events in runs.glob(f"*/{layout.EVENTS}"):
        try:
            first = next(iter(disk.read_lines(events, checked=True).rows), {})
        except RecordError:
            continue  # a folder that cannot be read is no candidate
        if first.get("study") == study_name and isinstance(first.get("unix_ns"), int):
            created.append((first["unix_ns"], events.parent))
    return [path for _, path in sorted(created, reverse=True)]
