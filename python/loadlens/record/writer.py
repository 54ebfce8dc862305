"""Writing a record: one writer for the run, one per trial. While a trial runs, files are only appended to."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from loadlens import temporary
from loadlens.credentials import Hiding, forms_of
from loadlens.errors import RecordError
from loadlens.model.study import PlannedTrial, Study
from loadlens.model.trial import CONNECTION, SAMPLE, TrialStatus
from loadlens.record import disk, effective_study, layout, readings, sample_rows
from loadlens.record.study_text import without_credentials


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment on both clocks: what passes after it counts on the one that cannot be set."""

    unix_ns: int
    monotonic_ns: int

    @classmethod
    def now(cls) -> Moment:
        """Return this moment."""
        return cls(time.time_ns(), time.monotonic_ns())


@dataclass(frozen=True, slots=True)
class TrialEnd:
    """Facts about a trial that ended: the content of trial.json without the digests."""

    status: TrialStatus
    reasons: tuple[str, ...]  # why it is not complete; empty if it is
    engine: Mapping[str, Any] | None  # the result of the engine; None: the load never began
    t0_unix_ns: int | None
    t0_monotonic_ns: int | None
    services: tuple[Mapping[str, Any], ...] = ()  # {service, replica, pid, ports, command}
    placement: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)  # differences from environment.json
    idle: Mapping[str, Any] = field(
        default_factory=dict
    )  # idle brackets: times of the readings before and after the load
    leaks: tuple[str, ...] = ()  # descriptions of what the testbed left behind
    notes: tuple[str, ...] = ()
    began_unix_ns: int = 0
    ended_unix_ns: int = 0

    @classmethod
    def of(
        cls,
        result: Mapping[str, Any] | None,
        status: TrialStatus,
        reasons: tuple[str, ...],
        began: Moment,
        **facts: Any,
    ) -> TrialEnd:
        """Return the end of a trial that ended just now; `facts` are further fields."""
        t0_unix_ns, t0_monotonic_ns = (
            None if result is None else result[name] for name in ("t0_unix_ns", "t0_monotonic_ns")
        )
        return cls(
            status,
            reasons,
            result,
            t0_unix_ns,
            t0_monotonic_ns,
            began_unix_ns=began.unix_ns,
            ended_unix_ns=began.unix_ns + time.monotonic_ns() - began.monotonic_ns,
            **facts,
        )

    @property
    def cut(self) -> tuple[str, ...]:
        """The live files that the engine could not write to their end, each with the reason."""
        beginnings = tuple(f"{name} ends early: " for name in layout.OF_ENGINE)
        given = () if self.engine is None else self.engine["reasons"]
        return tuple(reason for reason in given if reason.startswith(beginnings))

    def as_cut(self) -> TrialEnd:
        """Return this end with the files that end early as its first reasons; it is not complete then."""
        cut = self.cut
        if not cut:
            return self
        status = TrialStatus.ABORTED if self.status is TrialStatus.COMPLETE else self.status
        reasons, notes = ([words for words in of if words not in cut] for of in (self.reasons, self.notes))
        return replace(self, status=status, reasons=(*cut, *reasons), notes=tuple(notes))


class TrialWriter:
    """One trial's folder, from its plan to its seal."""

    def __init__(self, path: Path, identity: Mapping[str, Any], hiding: Hiding) -> None:
        disk.make_folder(path)
        self._hiding = hiding
        self.path = path
        self.live = path / layout.LIVE
        self.logs = path / layout.LOGS
        self._identity = dict(identity)
        disk.make_folder(self.live)
        disk.make_folder(self.logs)

    @property
    def name(self) -> dict[str, str]:
        """Name of the trial in events: its case and its folder."""
        return {"case": self.path.parent.name, "trial": self.path.name}

    @property
    def readings(self) -> Path:
        """File to which monitors append their JSON lines."""
        return self.live / layout.READINGS_JSONL

    def write_plan(self, plan_json: str) -> None:
        """Write the engine's plan without literal credentials."""
        content = self._hiding.content(json.loads(plan_json))
        content.pop("record", None)
        disk.write_whole(self.path / layout.PLAN, (disk.as_json(content) + "\n").encode())

    def write_answers(self, content: Mapping[str, Any]) -> None:
        """Write the answers of a Prometheus server, or the reason why there are none."""
        whole = {"schema_version": layout.SCHEMA_VERSION, **content}
        disk.write_whole(self.path / layout.PROMQL, (disk.as_json(whole) + "\n").encode())

    def started(self, *, t0_monotonic_ns: int, t0_unix_ns: int) -> None:
        """Write the start time, so that a trial that is never sealed can be read too."""
        content = {
            "schema_version": layout.SCHEMA_VERSION,
            "t0_monotonic_ns": t0_monotonic_ns,
            "t0_unix_ns": t0_unix_ns,
        }
        disk.write_whole(self.live / layout.START, disk.as_json(content).encode())

    def write_samples(self, samples: Iterable[Sequence[int]]) -> None:
        """Write single requests reported by another program; fields as in docs/reference/record.md."""
        sample_rows.write_live(self.live / layout.SAMPLES_BIN, samples, SAMPLE)

    def keep_logs(self, folder: Path) -> None:
        """Copy the logs, so far, of services that outlive this trial."""
        for path in sorted(p for p in folder.rglob("*") if p.is_file()):
            kept = self.logs / path.relative_to(folder)
            with disk.touching("write", kept):
                kept.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, kept)

    def seal(self, end: TrialEnd) -> None:
        """Convert the live files to the final ones; trial.json, written last, makes the trial count.

        Nothing may append to the live files any more. If a write fails, the live files stay and the trial
        opens as aborted, with the reason. If the engine could not write a live file to its end, the trial is
        sealed as aborted with what there is.

        Raises:
            RecordError: A file could not be written, now or by the engine.
        """
        try:
            self._seal(end.as_cut())
        except RecordError as fault:
            with suppress(RecordError):  # the disk may be full for this file, too
                disk.write_whole(self.live / layout.UNSEALED, f"{fault.message}".encode())
            raise
        if end.cut:
            raise RecordError("; ".join(end.cut), where=str(self.path), hint=disk.FREE_SPACE)

    def _seal(self, end: TrialEnd) -> None:
        self._write_tables(end.t0_monotonic_ns)
        version = layout.SCHEMA_VERSION
        counters_head = {"schema_version": version, "file": "counters"}
        for live, kept in {(self.live, self.path), *self._machines()}:
            _copy_with_head(
                live, kept, layout.INTERVALS, layout.HLOG_VERSION_LINE.format(version=version) + "\n"
            )
            _copy_with_head(live, kept, layout.COUNTERS, disk.as_json(counters_head) + "\n")
        digests = {}
        for path in sorted(p for p in self.path.rglob("*") if p.is_file() and self.live not in p.parents):
            disk.sync(path)
            digests[str(path.relative_to(self.path))] = {
                "sha256": disk.digest_of_file(path),
                "bytes": path.stat().st_size,
            }
        disk.sync(self.path)
        engine = end.engine or {}
        content = {
            "schema_version": _trial_version(engine),
            **self._identity,
            **self._hiding.content(json.loads(json.dumps(asdict(end), allow_nan=False))),
            "digests": digests,
        }
        content["self_sha256"] = disk.digest_of_bytes(disk.as_json(content).encode())
        text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
        disk.write_whole(self.path / layout.TRIAL, text.encode(), durable=True)
        disk.remove_tree(self.live)

    def _write_tables(self, t0_monotonic_ns: int | None) -> None:
        machines = self._machines()
        if not sample_rows.can_write_parquet():
            _copy(self.live, self.path, layout.READINGS_JSONL)
            for live, kept in machines:
                _copy(live, kept, layout.SAMPLES_BIN)
                _copy(live, kept, layout.CONNECTIONS_BIN)
            return
        for name, sealed, form in (
            (layout.SAMPLES_BIN, layout.SAMPLES, SAMPLE),
            (layout.CONNECTIONS_BIN, layout.CONNECTIONS, CONNECTION),
        ):
            sample_rows.seal([(live / name, kept / sealed) for live, kept in machines], form)
        read = readings.batches(self.readings, t0_monotonic_ns)
        sample_rows.write_parquet(self.path / layout.READINGS, read, readings.schema())

    def _machines(self) -> list[tuple[Path, Path]]:
        """Return the live folder, and the one to keep, of each machine that made the load."""
        pairs = [
            (self.live / layout.NODES / name, self.path / layout.NODES / name)
            for name in layout.nodes_in(self.live)
        ]
        for _, kept in pairs:
            with disk.touching("make the folder", kept):
                kept.mkdir(parents=True, exist_ok=True)
        return pairs or [(self.live, self.path)]


def _trial_version(engine: Mapping[str, Any]) -> int:
    if engine.get("nodes"):
        return layout.TRIAL_VERSION
    if engine.get("load_changes"):
        return layout.CHANGED_VERSION
    return layout.DRIVEN_VERSION if engine.get("driver") is not None else layout.SCHEMA_VERSION


def _copy(live: Path, kept: Path, name: str) -> None:
    """Copy a live file as it is; one that was never begun holds no rows."""
    source, target = live / name, kept / name
    with disk.touching("write", target):
        if source.is_file():
            shutil.copyfile(source, target)
        else:
            target.touch()


def _copy_with_head(live: Path, kept: Path, name: str, head: str) -> None:
    """Copy a live text file up to its last whole line, after a first line with the version."""
    source, target = live / name, kept / name
    with disk.touching("write", target), target.open("wb") as out:
        out.write(head.encode())
        if source.is_file():
            with source.open("rb") as lines:
                out.writelines(line for line in lines if line.endswith(b"\n"))


class RunWriter:
    """Writer of one record directory, which it locks; a context manager that releases the lock."""

    def __init__(self, path: Path, lock: disk.FolderLock, study: Mapping[str, Any], hiding: Hiding) -> None:
        self.path = path
        self.hiding = hiding  # knows the study's credentials
        self._lock = lock
        self._cases = {case["slug"]: case for case in study["cases"]}

    @property
    def id(self) -> str:
        """Name that marks every process of this run and of no other run on this machine."""
        return layout.run_id(self.path)

    def event(self, name: str, **content: Any) -> dict[str, Any]:
        """Append one line to events.jsonl and return it; `event` is its name, `unix_ns` its time."""
        row = {"event": name, "unix_ns": time.time_ns(), **self.hiding.content(content)}
        disk.append_checked_line(self.path / layout.EVENTS, row)
        return row

    def trial(self, planned: PlannedTrial) -> TrialWriter:
        """Start the next attempt at a planned trial."""
        folder = self.path / layout.TRIALS / planned.case.slug
        attempt = self.next_attempt(planned)
        identity = {
            "case": effective_study.case_summary(self._cases[planned.case.slug]),
            "block": planned.block,
            "attempt": attempt,
            "position": planned.position,
            "seed": planned.seed,
        }
        return TrialWriter(folder / layout.trial_folder_name(planned.block, attempt), identity, self.hiding)

    def predict(self, slug: str, content: Mapping[str, Any]) -> Path:
        """Write the prediction of a case before it runs; the event `predicted` keeps its time and digest.

        Raises:
            RecordError: The case was predicted or started before, or the file cannot be written.
        """
        name = layout.prediction_name(slug)
        path = self.path / name
        if path.exists() or (self.path / layout.TRIALS / slug).exists():
            raise RecordError("a case is predicted once, before it runs", where=str(path))
        with disk.touching("make the folder", path.parent):
            path.parent.mkdir(exist_ok=True)
        whole = {"schema_version": layout.SCHEMA_VERSION, "made_unix_ns": time.time_ns(), **content}
        text = json.dumps(whole, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        disk.write_whole(path, text.encode(), durable=True)
        self.event("predicted", case=slug, file=name, sha256=disk.digest_of_bytes(text.encode()))
        return path

    def next_attempt(self, planned: PlannedTrial) -> int:
        """Return the number of the next attempt at a trial, from 1."""
        folder = self.path / layout.TRIALS / planned.case.slug
        names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
        places = filter(None, map(layout.parse_trial_folder_name, names))
        return 1 + max((attempt for block, attempt in places if block == planned.block), default=0)

    def extend(self, study: Study, trials: Sequence[PlannedTrial]) -> None:
        """Extend the plan by trials that were decided after the run began.

        The event comes first: however the lab ends, the digest of the study on disk is in an event.
        """
        plain = effective_study.study_as_plain(study, trials)
        self.hiding = self.hiding.knowing(self.hiding.values_in(plain))
        effective = self.hiding.content(plain)
        text = effective_study.effective_text(effective).encode()
        self.event("extended", trials=len(trials), digests={layout.EFFECTIVE: disk.digest_of_bytes(text)})
        disk.write_whole(self.path / layout.EFFECTIVE, text)
        self._cases = {case["slug"]: case for case in effective["cases"]}

    def shared_logs(self) -> Path:
        """Create a folder for the output of services that outlive a trial (`fresh: block` or `run`)."""
        shelf = self.path / layout.LOGS
        taken = len(list(shelf.iterdir())) if shelf.is_dir() else 0
        path = shelf / f"testbed-{taken + 1}"
        disk.make_folder(path)
        return path

    def close(self) -> None:
        """Release the lock; safe to call twice."""
        self._lock.release()

    def __enter__(self) -> RunWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def write_report(run: Path, name: str, content: str) -> Path:
    """Write a rendered report into a record: REPORT_HTML, REPORT_MARKDOWN or a picture of one of them."""
    path = run / name
    with disk.touching("make the folder", path.parent):
        path.parent.mkdir(exist_ok=True)
    disk.write_whole(path, content.encode())
    return path


def report_headline(run: Path) -> str | None:
    """Return the answer of a run: the first line of its report; none: it has no report."""
    try:
        with (run / layout.REPORT_MARKDOWN).open(encoding="utf-8") as report:
            return report.readline().removeprefix("#").strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def new_run_path(runs: Path, study_name: str) -> Path:
    """Return a path for a new run that does not exist yet: `runs/register-2c90`."""
    for _ in range(64):
        path = runs / f"{study_name}-{secrets.token_hex(2)}"
        if not path.exists():
            return path
    raise RecordError(f"no free name for a run of {study_name}", where=str(runs), hint="move old runs away")


def create_run(
    path: Path,
    study: Study,
    trials: Sequence[PlannedTrial],
    environment: Mapping[str, Any],
    *,
    secrets_used: Iterable[str] = (),
) -> RunWriter:
    """Create a record directory with everything known before the first trial, and lock it.

    It appears at once with study.yaml, effective.yaml, environment.json and the first event, or not at all.

    Args:
        path: A folder that does not exist, or is empty.
        study: As planned.
        trials: Those to run.
        environment: Facts about machine and software.
        secrets_used: Values of environment variables that the requests use; they are kept nowhere.

    Raises:
        RecordError: The folder is not empty, another run was faster, or a file cannot be written.
    """
    path = Path(os.path.realpath(path))  # a link is followed, also to a folder that is not made yet
    refuse_taken(path)
    fresh = path.parent / f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.new"
    with temporary.noted(fresh, marker=path.name):
        disk.make_folder(fresh)
        lock = disk.FolderLock(fresh)
        try:
            plain = effective_study.study_as_plain(study, trials)
            hiding = _hiding_of(study, plain, secrets_used)
            effective = hiding.content(plain)
            contents = {
                layout.STUDY: without_credentials(study.text, hiding),
                layout.EFFECTIVE: effective_study.effective_text(effective),
                layout.ENVIRONMENT: json.dumps(
                    {"schema_version": layout.SCHEMA_VERSION, **hiding.content(environment)},
                    indent=1,
                    ensure_ascii=False,
                )
                + "\n",
            }
            for name, text in contents.items():
                disk.write_whole(fresh / name, text.encode())
            first = {
                "event": "created",
                "schema_version": layout.SCHEMA_VERSION,
                "unix_ns": time.time_ns(),
                "study": study.name,
                "digests": {name: disk.digest_of_bytes(text.encode()) for name, text in contents.items()},
            }
            disk.append_checked_line(fresh / layout.EVENTS, first)
            _move_into_place(fresh, path)
        except BaseException:
            lock.release()
            shutil.rmtree(fresh, ignore_errors=True)
            raise
    return RunWriter(path, lock, effective, hiding)


def _hiding_of(study: Study, plain: Mapping[str, Any], used: Iterable[str]) -> Hiding:
    hiding = Hiding(study.hide)
    return hiding.knowing({*hiding.values_in(plain), *forms_of(used)})


def _move_into_place(fresh: Path, path: Path) -> None:
    try:
        disk.before("rename", path)
        fresh.rename(path)  # an empty folder is replaced, a full one refuses
    except OSError as fault:
        if path.exists():
            raise _taken(path) from fault
        raise RecordError(f"cannot make the record: {fault.strerror}", where=str(path)) from fault


def refuse_taken(path: Path) -> None:
    """Refuse a folder for a record that is not empty."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise _taken(path)


def _taken(path: Path) -> RecordError:
    return RecordError(
        "the folder for the record already holds something",
        where=str(path),
        hint="another folder with --out; loadlens run --resume continues a study",
    )


def resume_run(
    path: Path, study: Study, trials: Sequence[PlannedTrial], *, secrets_used: Iterable[str] = ()
) -> RunWriter:
    """Open a record to continue its run, if the study is still the same.

    Raises:
        RecordError: Not a record, another run writes to it, or the plan differs; the differences are named.
    """
    path = path.absolute()
    if not path.is_dir():
        raise RecordError("there is no record", where=str(path), hint="start without --resume")
    lock = disk.FolderLock(path)
    try:
        plain = json.loads(json.dumps(effective_study.study_as_plain(study, trials)))
        hiding = _hiding_of(study, plain, secrets_used)
        before, now = hiding.content(_kept_study(path)), hiding.content(plain)
        changed = differences(before, now)
        if changed:
            raise RecordError(
                f"the study is not the one that was started: {', '.join(changed[:5])}"
                + (f" and {len(changed) - 5} more" if len(changed) > 5 else ""),
                where=str(path / layout.EFFECTIVE),
                hint="run it as a new run, without --resume",
            )
        disk.drop_torn_line(path / layout.EVENTS)
        for sealed in path.glob(f"{layout.TRIALS}/*/*/{layout.TRIAL}"):
            disk.remove_tree(sealed.parent / layout.LIVE)  # the end came between the seal and this
    except BaseException:
        lock.release()
        raise
    return RunWriter(path, lock, before, hiding)


def _kept_study(path: Path) -> dict[str, Any]:
    effective = path / layout.EFFECTIVE
    return effective_study.read_effective(disk.read_bytes(effective), effective)


def differences(before: Any, now: Any, place: str = "") -> list[str]:
    """List the differences of two plain values: `cases[3].timeout_ns 1 -> 2`."""
    if isinstance(before, dict) and isinstance(now, dict):
        pairs: list[tuple[str, Any, Any]] = [
            (f"{place}.{key}" if place else str(key), before.get(key), now.get(key))
            for key in [*before, *(key for key in now if key not in before)]
        ]
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        pairs = [(f"{place}[{i}]", a, b) for i, (a, b) in enumerate(zip(before, now, strict=True))]
    elif isinstance(before, list) and isinstance(now, list):
        return [f"{place} has {len(now)} in place of {len(before)}"]
    else:
        return [] if before == now else [f"{place} {_short(before)} -> {_short(now)}"]
    return [difference for name, a, b in pairs for difference in differences(a, b, name)]


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 40 else f"{text[:37]}..."
