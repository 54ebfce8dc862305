"""The record: what is written is read again, and what was never finished or was damaged says so."""

from __future__ import annotations

import base64
import json
import os
import random
import shutil
import struct
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadlens.errors import RecordError
from loadlens.model.counters import Counters
from loadlens.model.result import Driver
from loadlens.model.study import PlannedTrial
from loadlens.model.trial import SAMPLE, TrialStatus
from loadlens.model.workload import Scenario, Step
from loadlens.record import (
    RunWriter,
    TrialEnd,
    TrialRecord,
    create_run,
    disk,
    histogram_log,
    latest_run,
    layout,
    new_run_path,
    open_run,
    open_trial,
    reader,
    resume_run,
    sample_rows,
)
from tests import records
from tests.oracles import histogram_log as second_reading

T0 = 5_000


def end(status: TrialStatus = TrialStatus.COMPLETE, **changes: object) -> TrialEnd:
    facts = {"reasons": (), "engine": records.engine_result(), "t0_unix_ns": 9, "t0_monotonic_ns": T0}
    return TrialEnd(status, **(facts | changes))  # type: ignore[arg-type]


def begin(path: Path, planned: tuple[PlannedTrial, ...] | None = None) -> RunWriter:
    study = records.study()
    return create_run(path, study, planned or records.trials(study), {"cores": 2})


def write_trial(writer: RunWriter, planned: PlannedTrial, *, seal: bool = True, samples: int = 100) -> Path:
    trial = writer.trial(planned)
    trial.write_plan(records.plan().to_json())
    trial.started(t0_monotonic_ns=T0, t0_unix_ns=9)
    records.write_live(trial.live, samples=samples, t0_monotonic_ns=T0)
    (trial.logs / "api.log").write_text("ready\n")
    if seal:
        trial.seal(end())
    return trial.path


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A record of two sealed trials."""
    with begin(tmp_path / "run") as writer:
        for planned in records.trials(records.study()):
            write_trial(writer, planned)
            writer.event("sealed", trial=planned.name)
    return tmp_path / "run"


# --- what is written is read again -------------------------------------------------------------------


def test_a_sealed_trial_gives_back_every_row_that_the_engine_wrote(run: Path) -> None:
    trial = open_run(run).trials[0]

    samples = trial.samples()

    assert trial.status is TrialStatus.COMPLETE
    assert samples.columns == [name for name, _ in SAMPLE.fields]
    assert samples["seq"].to_list() == list(range(100))
    assert samples["done_ns"].to_list() == [i * 10_000_000 + 1_000_000 for i in range(100)]
    assert samples["status"].unique().to_list() == [200]
    assert trial.connections().to_dicts() == [
        {
            "connection": 0,
            "user": 0,
            "opened_ns": 1_000,
            "established_ns": 2_000,
            "closed_ns": -1,
            "requests": 100,
            "closed_by": 0,
            "stream": 0,
            "outcome": 0,
            "resumed": 1,
            "bytes_in": 12_000,
            "tls_ns": 700,
            "thinned": 0,
        }
    ]


def unsealed(tmp_path: Path, name: str, *chunks: bytes) -> TrialRecord:
    """A trial that was never sealed, with these chunks in one of its live files."""
    with begin(tmp_path / "run") as writer:
        path = write_trial(writer, records.trials(records.study())[0], seal=False)
    (path / "live" / name).write_bytes(b"".join(chunks))
    return open_run(tmp_path / "run").trials[0]


@pytest.mark.parametrize(
    ("magic", "fields", "tls_ns"), [(b"LLC1", (), -1), (b"LLC2", (700,), 700)], ids=["1", "2"]
)
def test_connections_of_earlier_versions_lack_later_columns(
    magic: bytes, fields: tuple[int, ...], tls_ns: int, tmp_path: Path
) -> None:
    old = (3, 0, 1_000, 2_000, -1, 9, 0, 0, 0, 0, 12_000, *fields)

    (row,) = unsealed(tmp_path, "connections.bin", records.chunk(magic, [old])).connections().to_dicts()

    assert (row["connection"], row["bytes_in"], row["resumed"]) == (3, 12_000, 0)
    assert (row["tls_ns"], row["thinned"]) == (tls_ns, 0)


def test_rows_that_two_threads_thinned_are_read_as_a_uniform_choice(tmp_path: Path) -> None:
    quick, slow = range(1_000), range(1_000, 1_100)  # one thread did ten times as much as the other
    written = [records.thinned_rows(numbers, 50) for numbers in (quick, slow)]
    chunks = [records.chunk(b"LLS1", [records.sample(seq, thinned=k) for seq, k in rows]) for rows in written]
    probes = records.chunk(b"LLS1", [records.sample(seq, stream=1) for seq in range(9)])
    k = max(k for rows in written for _, k in rows)
    trial = unsealed(tmp_path, "samples.bin", *chunks, probes)

    rows = trial.samples(["stream", "seq", "thinned"]).rows()

    chosen = [(0, seq, k) for seq in range(1_100) if records.hashed(seq) % 2**k == 0]
    assert rows == [*chosen, *((1, seq, 0) for seq in range(9))]
    assert [row for part in trial.sample_parts(["stream", "seq", "thinned"]) for row in part.rows()] == rows
    assert k >= 4  # of 1,000 requests at most 50


def test_a_sealed_trial_gives_back_its_other_tables(run: Path) -> None:
    trial = open_run(run).trials[0]

    readings = trial.readings()
    first, second = trial.intervals()

    assert readings["time_ns"].to_list() == [-1_000, 2_000]  # before and after the trial began
    assert readings["value"].to_list() == [1.0, None]
    assert json.loads(readings["labels"][0]) == {"service": "api", "pid": "7"}
    assert [row.start_s for row in trial.counters().streams] == [0.0, 0.25]
    assert (first.stream, first.step, first.klass, first.kind) == ("load", "look", "ok", "response")
    assert dict(zip(second.values.tolist(), second.counts.tolist(), strict=True)) == {
        7: 3,
        records.bucket_upper(1_000_000): 50,
    }
    assert trial.log("api") == "ready\n"
    assert trial.plan == records.plan()


def test_the_record_keeps_the_study_as_it_was_planned(run: Path) -> None:
    record = open_run(run)

    case = record.study["cases"][0]

    assert record.study_text == records.STUDY_TEXT
    assert case["levels"] == {"users": "1"}
    assert case["params"] == {"users": 1}
    assert case["workload"] == {
        "kind": "closed",
        "users": 1,
        "think": {"kind": "none", "ns": None, "low_ns": None, "high_ns": None, "mean_ns": None},
        "ramp_ns": 0,
        "iterations": None,
        "requests": None,
        "profile": None,
        "pace": None,
    }
    assert record.environment["cores"] == 2
    assert [row["event"] for row in record.events()] == ["created", "sealed", "sealed"]
    assert record.is_complete
    assert record.damage == ()


def test_every_file_says_its_version(run: Path) -> None:
    folder = next((run / "trials").glob("*/*"))

    messages = [
        json.loads((run / "events.jsonl").read_text().splitlines()[0])["schema_version"],
        json.loads((run / "environment.json").read_text())["schema_version"],
        open_run(run).study["schema_version"],
        json.loads((folder / "trial.json").read_text())["schema_version"],
        json.loads((folder / "plan.json").read_text())["schema_version"],
        json.loads((folder / "counters.jsonl").read_text().splitlines()[0])["schema_version"],
        int((folder / "intervals.hlog").read_text().splitlines()[0].rpartition(" ")[2].rstrip("]")),
        *(int(pl.read_parquet_metadata(p)[layout.PARQUET_VERSION_KEY]) for p in folder.glob("*.parquet")),
    ]

    assert messages == [1] * 10


def test_effective_yaml_is_yaml(run: Path) -> None:
    from ruamel.yaml import YAML

    read = YAML(typ="safe", pure=True).load((run / "effective.yaml").read_text())

    assert read == open_run(run).study


def test_only_one_file_of_live_data_is_left_after_the_seal(run: Path) -> None:
    assert not list(run.rglob("live"))
    assert not list(run.rglob(".*"))


# --- never finished ----------------------------------------------------------------------------------


def test_a_file_that_the_engine_could_not_write_to_its_end_makes_the_trial_incomplete(tmp_path: Path) -> None:
    cut, feed = "samples.bin ends early: File too large (os error 27)", "feed names was used up"
    engine = records.engine_result() | {"reasons": [cut, feed]}
    with begin(tmp_path / "run") as writer:
        first, second = records.trials(records.study())[:2]
        trial = writer.trial(first)

        with pytest.raises(RecordError, match="ends early: File too large"):
            trial.seal(end(engine=engine, notes=(cut, feed)))
        writer.trial(second).seal(end(engine=engine | {"reasons": [feed]}, notes=(feed,)))

    lost, whole = open_run(tmp_path / "run").trials
    assert lost.is_sealed
    assert (lost.status, lost.reasons, lost.notes) == (TrialStatus.ABORTED, (cut,), (feed,))
    assert (whole.status, whole.reasons, whole.notes) == (TrialStatus.COMPLETE, (), (feed,))


def test_an_unsealed_trial_opens_to_its_last_whole_chunk(tmp_path: Path) -> None:
    with begin(tmp_path / "run") as writer:
        path = write_trial(writer, records.trials(records.study())[0], seal=False)
    with (path / "live/samples.bin").open("ab") as file:
        file.write(records.chunk(b"LLS1", [records.sample(100)])[:-1])  # killed within a write

    trial = open_run(tmp_path / "run").trials[0]

    assert trial.status is TrialStatus.ABORTED
    assert trial.reasons == (reader.NOT_SEALED,)
    assert trial.samples().height == 100
    assert trial.case.slug == "alone-users-1"
    assert trial.readings()["time_ns"].to_list() == [-1_000, 2_000]
    assert trial.result is None


@pytest.mark.parametrize("cut", [0, 3, 16, 40, 16 + 40 * 64 - 1, 16 + 40 * 64, 16 + 40 * 64 + 20])
def test_a_cut_anywhere_in_the_sample_log_leaves_whole_chunks(tmp_path: Path, cut: int) -> None:
    with begin(tmp_path / "run") as writer:
        path = write_trial(writer, records.trials(records.study())[0], seal=False)
    content = (path / "live/samples.bin").read_bytes()
    (path / "live/samples.bin").write_bytes(content[:cut])

    rows = open_run(tmp_path / "run").trials[0].samples().height

    assert rows == (40 if cut >= 16 + 40 * 64 else 0)


def test_a_flipped_bit_ends_the_sample_log_before_its_chunk(tmp_path: Path) -> None:
    with begin(tmp_path / "run") as writer:
        path = write_trial(writer, records.trials(records.study())[0], seal=False)
    content = bytearray((path / "live/samples.bin").read_bytes())
    content[16 + 40 * 64 + 16 + 5] ^= 1
    (path / "live/samples.bin").write_bytes(content)

    assert open_run(tmp_path / "run").trials[0].samples().height == 40


def test_a_torn_last_line_is_dropped_and_whole_lines_stay(tmp_path: Path) -> None:
    with begin(tmp_path / "run") as writer:
        path = write_trial(writer, records.trials(records.study())[0], seal=False)
    for name in ("counters.jsonl", "readings.jsonl", "intervals.hlog"):
        with (path / "live" / name).open("a") as file:
            file.write('Tag=load.look.ok.response,0.5,{"torn')

    trial = open_run(tmp_path / "run").trials[0]

    assert (len(trial.counters().streams), trial.readings().height, len(trial.intervals())) == (2, 2, 2)


def test_a_trial_killed_before_its_engine_ran_opens_empty(tmp_path: Path) -> None:
    with begin(tmp_path / "run") as writer:
        writer.trial(records.trials(records.study())[0])

    trial = open_run(tmp_path / "run").trials[0]

    assert trial.status is TrialStatus.ABORTED
    assert (trial.samples().height, trial.connections().height, trial.readings().height) == (0, 0, 0)
    assert (trial.counters(), trial.intervals(), trial.t0_unix_ns) == (Counters(), [], None)


def test_an_aborted_trial_is_kept_beside_its_next_attempt(tmp_path: Path) -> None:
    study = records.study()
    planned = records.trials(study)
    with begin(tmp_path / "run") as writer:
        write_trial(writer, planned[0], seal=False)

    with resume_run(tmp_path / "run", study, planned) as writer:
        write_trial(writer, planned[0])

    first, second = open_run(tmp_path / "run").trials
    assert (first.name, first.status, second.name, second.status) == (
        "block-1",
        TrialStatus.ABORTED,
        "block-1.2",
        TrialStatus.COMPLETE,
    )
    assert open_run(tmp_path / "run").unfinished() == [
        {"case": "alone-users-1", "block": 2, "position": 2, "seed": 101}
    ]


def test_live_files_left_by_a_kill_after_the_seal_are_swept_when_the_run_goes_on(run: Path) -> None:
    left = next((run / "trials").glob("*/*")) / "live"
    left.mkdir()
    (left / "samples.bin").write_bytes(b"LLS1")

    assert open_run(run).trials[0].samples().height == 100
    study = records.study()
    resume_run(run, study, records.trials(study)).close()

    assert not left.exists()


def test_lines_after_a_torn_event_stand_on_lines_of_their_own(run: Path) -> None:
    with (run / "events.jsonl").open("a") as file:
        file.write('{"event":"torn')
    study = records.study()

    with resume_run(run, study, records.trials(study)) as writer:
        writer.event("resumed")

    record = open_run(run)
    assert record.events()[-1]["event"] == "resumed"
    assert record.damage == ()


# --- two at once, other studies, newer records -------------------------------------------------------


def test_a_second_writer_is_refused_while_the_first_holds_the_record(tmp_path: Path) -> None:
    study = records.study()
    with begin(tmp_path / "run"), pytest.raises(RecordError, match="another run is writing"):
        resume_run(tmp_path / "run", study, records.trials(study))

    resume_run(tmp_path / "run", study, records.trials(study)).close()


def test_a_folder_that_holds_something_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("mine")

    with pytest.raises(RecordError, match="already holds something"):
        begin(tmp_path)

    assert [p.name for p in tmp_path.iterdir()] == ["note.txt"]
    assert [p.name for p in tmp_path.parent.iterdir() if p.name.endswith(".new")] == []


@pytest.mark.parametrize("is_made", [True, False])
def test_a_link_leads_to_the_record(tmp_path: Path, is_made: bool) -> None:
    target, link = tmp_path / "disk", tmp_path / "run"
    link.symlink_to(target)
    if is_made:
        target.mkdir()

    begin(link).close()

    assert link.is_symlink()
    assert open_run(link).damage == open_run(target).damage == ()


def test_of_two_runs_into_one_folder_one_is_made_and_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = threading.Barrier(2, timeout=30)
    messages: list[str] = []

    def meet(what: str, path: Path) -> None:
        if what == "rename" and path.parent == tmp_path:
            both.wait()  # each has seen that nothing is there, and has all that is to come there

    def create(path: Path) -> None:
        try:
            with begin(path):
                both.wait()  # the record stays locked until the other has been refused
                messages.append("made")
        except RecordError as fault:
            both.wait()
            messages.append(fault.message)

    monkeypatch.setattr(disk, "before", meet)
    for turn in range(10):
        runs = [threading.Thread(target=create, args=(tmp_path / str(turn),)) for _ in range(2)]
        for run in runs:
            run.start()
        for run in runs:
            run.join()
        assert sorted(messages) == ["made", "the folder for the record already holds something"]
        assert open_run(tmp_path / str(turn)).damage == ()
        messages.clear()
    assert len(list(tmp_path.iterdir())) == 10  # of those that were refused nothing stays


def test_a_changed_study_is_refused_by_the_name_of_what_changed(run: Path) -> None:
    other = records.study([records.case(timeout_ns=2_000_000_000)])

    with pytest.raises(RecordError, match=r"cases\[0\].timeout_ns 1000000000 -> 2000000000"):
        resume_run(run, other, records.trials(other))


def test_a_newer_record_is_refused_by_name(run: Path) -> None:
    path = next((run / "trials").glob("*/*")) / "trial.json"
    content = json.loads(path.read_text())
    content["schema_version"] = 5
    del content["self_sha256"]
    content["self_sha256"] = disk.digest_of_bytes(disk.as_json(content).encode())
    path.write_text(json.dumps(content))

    with pytest.raises(RecordError, match="schema version 5 is newer than 4") as fault:
        open_run(run)
    assert str(path) in str(fault.value)


@pytest.mark.parametrize("seal", [True, False])
def test_only_the_columns_that_are_asked_for_are_read(
    tmp_path: Path, seal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sample_rows, "ROWS_A_PART", 40)
    with begin(tmp_path / "run") as writer:
        write_trial(writer, records.trials(records.study())[0], seal=seal)
    trial = open_run(tmp_path / "run").trials[0]

    some = trial.samples(("done_ns", "seq"))
    parts = list(trial.sample_parts(("done_ns", "seq")))

    assert some.columns == ["done_ns", "seq"]
    assert some.rows() == trial.samples().select("done_ns", "seq").rows()
    assert not seal or [part.height for part in parts] == [40, 40, 20]
    assert [row for part in parts for row in part.rows()] == some.rows()


def test_newer_samples_are_refused_by_name(tmp_path: Path) -> None:
    with begin(tmp_path / "run") as writer:
        path = write_trial(writer, records.trials(records.study())[0], seal=False)
    (path / "live/samples.bin").write_bytes(b"LLS2" + bytes(12))

    with pytest.raises(RecordError, match="schema version 2 is newer"):
        open_run(tmp_path / "run").trials[0].samples()


def test_the_last_run_of_a_study_is_found_by_when_it_began(tmp_path: Path) -> None:
    for name in ("b", "a"):
        begin(tmp_path / name).close()
    (tmp_path / "stray").mkdir()

    assert latest_run(tmp_path, "sketch") == tmp_path / "a"
    assert latest_run(tmp_path, "other") is None


def test_a_new_run_gets_a_name_of_its_own(tmp_path: Path) -> None:
    path = new_run_path(tmp_path, "register")

    assert path.parent == tmp_path
    assert path.name.startswith("register-")
    assert len(path.name) == len("register-2c90")


# --- damage ------------------------------------------------------------------------------------------


def _flip(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "emptied": lambda c: b"",
    "cut in half": lambda c: c[: len(c) // 2],
    "short by a byte": lambda c: c[:-1],
    "a bit flipped": _flip,
    "zeroed in the middle": lambda c: c[: len(c) // 3] + bytes(len(c) // 3) + c[2 * (len(c) // 3) :],
    "noise": lambda c: random.Random(1).randbytes(len(c)),
    "longer": lambda c: c + b"\x00garbage\n",
}
KEPT = (
    "study.yaml",
    "effective.yaml",
    "environment.json",
    "events.jsonl",
    "trials/alone-users-1/block-1/trial.json",
    "trials/alone-users-1/block-1/plan.json",
    "trials/alone-users-1/block-1/samples.parquet",
    "trials/alone-users-1/block-1/connections.parquet",
    "trials/alone-users-1/block-1/readings.parquet",
    "trials/alone-users-1/block-1/intervals.hlog",
    "trials/alone-users-1/block-1/counters.jsonl",
    "trials/alone-users-1/block-1/logs/api.log",
)


def read_everything(run: Path) -> list[str]:
    """Whatever raises when every part of a record is asked for; only RecordError may."""
    record = open_run(run)
    faults = list(record.damage)
    parts: list[Callable[[], object]] = [
        lambda: record.study,
        lambda: record.study_text,
        lambda: record.environment,
    ]
    for trial in record.trials:
        parts += [trial.samples, trial.connections, trial.readings, trial.counters, trial.intervals]
        parts += [partial(getattr, trial, "plan"), partial(trial.log, "api")]
    for part in parts:
        try:
            part()
        except RecordError as fault:
            faults.append(str(fault))
    return faults


@pytest.mark.parametrize("name", KEPT)
def test_a_damaged_file_is_named_and_the_rest_stays_readable(run: Path, name: str) -> None:
    untouched = (run / name).read_bytes()

    for how, damage in DAMAGES.items():
        if name == "events.jsonl" and how in ("cut in half", "short by a byte"):
            continue  # what a kill leaves of a file that only grows: not damage, the torn line is dropped
        (run / name).write_bytes(damage(untouched))
        faults = read_everything(run)
        assert any(Path(name).name in fault for fault in faults), (how, faults)
        good = [t for t in open_run(run).trials if t.status is TrialStatus.COMPLETE]
        assert len(good) == (1 if name.startswith("trials/") else 2), how
        assert good[-1].samples().height == 100

    (run / name).unlink()
    if not name.endswith("trial.json"):  # without its header a trial is simply not sealed
        assert any(Path(name).name in fault for fault in read_everything(run))
    (run / name).write_bytes(untouched)
    assert read_everything(run) == []


def test_noise_in_any_sealed_file_never_ends_in_anything_but_a_named_fault(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with begin(run) as writer:
        write_trial(writer, records.trials(records.study())[0], samples=20)

    @settings(max_examples=150)
    @given(st.data())
    def read(data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(KEPT))
        whole = (run / name).read_bytes()
        content = bytearray(whole)
        for _ in range(data.draw(st.integers(1, 4))):
            at = data.draw(st.integers(0, len(content) - 1))
            content[at] = data.draw(st.integers(0, 255))
        (run / name).write_bytes(content)
        try:
            with suppress(RecordError):
                read_everything(run)
        finally:
            (run / name).write_bytes(whole)

    read()


# --- the disk refuses --------------------------------------------------------------------------------


class Refusal:
    """Makes the k-th operation on a file fail, once or from then on."""

    def __init__(self, at: int, *, lasting: bool) -> None:
        self.at, self.lasting, self.seen = at, lasting, 0

    def __call__(self, _what: str, path: Path) -> None:
        self.seen += 1
        if self.seen == self.at or (self.lasting and self.seen > self.at):
            raise OSError(28, "No space left on device", str(path))


def _write_two_trials(path: Path) -> None:
    study = records.study()
    with begin(path) as writer:
        for planned in records.trials(study):
            write_trial(writer, planned, samples=20)
            writer.event("sealed", block=planned.block)


@pytest.mark.parametrize("lasting", [False, True])
def test_a_full_disk_at_any_operation_never_costs_what_was_sealed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lasting: bool
) -> None:
    counting = Refusal(-1, lasting=False)
    with monkeypatch.context() as patch:
        patch.setattr(disk, "before", counting)
        _write_two_trials(tmp_path / "whole")
    assert counting.seen > 50

    for k in range(1, counting.seen + 1):
        path = tmp_path / f"run-{k}"
        with monkeypatch.context() as patch:
            patch.setattr(disk, "before", Refusal(k, lasting=lasting))
            with pytest.raises(RecordError):
                _write_two_trials(path)
        if not path.exists():
            continue  # refused before there was a record
        record = open_run(path)
        sealed = list(path.rglob("trial.json"))
        complete = [t for t in record.trials if t.status is TrialStatus.COMPLETE]
        assert len(complete) == len(sealed), k
        assert all(t.samples().height == 20 for t in complete)
        for trial in record.trials:
            assert trial.status is not TrialStatus.INVALID
        shutil.rmtree(path, ignore_errors=True)  # a Parquet writer that failed may still be closing its file


def test_a_refusal_names_the_file_and_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "before", Refusal(1, lasting=True))

    with pytest.raises(RecordError, match="No space left on device") as fault:
        begin(tmp_path / "run")

    assert "--resume" in str(fault.value)
    assert str(tmp_path) in str(fault.value)


# --- secrets -----------------------------------------------------------------------------------------


def test_literal_credentials_never_reach_the_disk(tmp_path: Path) -> None:
    headers = (("Authorization", "Bearer s3cret"), ("Cookie", "{{env COOKIE}}"), ("Accept", "*/*"))
    study = records.study(
        [records.case(scenarios=(Scenario("look", 1.0, (Step("look", "GET", "/", headers=headers),)),))]
    )
    with create_run(tmp_path / "run", study, records.trials(study), {}) as writer:
        trial = writer.trial(records.trials(study)[0])
        trial.write_plan(records.plan(headers).to_json())
        trial.seal(end())

    kept = b"".join(p.read_bytes() for p in (tmp_path / "run").rglob("*") if p.is_file())
    plan = open_run(tmp_path / "run").trials[0].plan
    assert b"s3cret" not in kept
    assert plan.streams[0].scenarios[0].steps[0].headers == (
        ("Authorization", "(hidden)"),
        ("Cookie", "{{env COOKIE}}"),
        ("Accept", "*/*"),
    )


# --- histograms --------------------------------------------------------------------------------------


@given(st.dictionaries(st.integers(0, 2**62), st.integers(1, 2**40), max_size=40))
def test_every_value_comes_back_at_the_upper_end_of_its_bucket(counts: dict[int, int]) -> None:
    expected: dict[int, int] = {}
    for value, count in counts.items():
        top = records.bucket_upper(value)
        expected[top] = expected.get(top, 0) + count

    with TemporaryDirectory() as folder:
        path = Path(folder) / "intervals.hlog"
        path.write_text(records.hlog_line("load.0.ok.response", 1.0, 0.25, counts))
        (histogram,) = histogram_log.read(path)
        (second,) = second_reading.read(path)

    assert dict(zip(histogram.values.tolist(), histogram.counts.tolist(), strict=True)) == expected
    assert (histogram.values.tolist(), histogram.counts.tolist()) == second[3:]
    assert histogram.values.dtype == np.uint64
    assert (np.diff(histogram.values.astype(np.int64)) > 0).all()


@given(st.integers(0, 2**62))
def test_a_bucket_ends_within_a_thousandth_of_its_values(value: int) -> None:
    assert 0 <= records.bucket_upper(value) - value <= value / 1000


@pytest.mark.parametrize(
    "packed",
    [
        b"",
        b"\x00" * 8,
        struct.pack(">ii", 0x1C849314, 4) + b"abcd",
        struct.pack(">ii", 0x1C849314, 99) + zlib.compress(bytes(40)),
    ],
)
def test_what_is_no_histogram_is_refused_by_name(tmp_path: Path, packed: bytes) -> None:
    path = tmp_path / "intervals.hlog"
    path.write_text(f"Tag=a.b.ok.response,0.0,1.0,1.0,{base64.b64encode(packed).decode()}\n")

    with pytest.raises(RecordError, match="damaged") as fault:
        list(histogram_log.read(path))
    assert f"{path}:1" in str(fault.value)


def test_histograms_that_are_not_wanted_are_not_even_decoded(tmp_path: Path) -> None:
    path = tmp_path / "intervals.hlog"
    lines = [records.hlog_line(f"{stream}...lag", 1.0, 0.25, {60_000: 2}) for stream in ("load", "probe")]
    path.write_text(lines[0].rpartition(",")[0] + ",AAAA\n" + lines[1])  # the first holds no histogram

    (left,) = histogram_log.read(path, but={("load", "lag"), ("probe", "connect")})

    assert (left.stream, left.kind) == ("probe", "lag")


def test_lag_belongs_to_the_stream_and_not_to_a_step(tmp_path: Path) -> None:
    path = tmp_path / "intervals.hlog"
    path.write_text(records.hlog_line("load...lag", 1.0, 0.25, {60_000: 2}))

    (lag,) = histogram_log.read(path)

    assert (lag.stream, lag.step, lag.klass, lag.kind) == ("load", "", "", "lag")
    assert (lag.start_s, lag.length_s) == (1.0, 0.25)


@pytest.fixture(autouse=True)
def _no_faults_left() -> Iterator[None]:
    yield
    assert disk.before is disk._nothing
    assert os.getcwd()


DRIVER = {"name": "siege", "version": "4", "command": ["siege"], "ran_s": 1.0, "tells_begin": False,
          "tells_requests": True, "rounding_s": {}}  # fmt: skip
DRIVEN = records.engine_result() | {"driver": DRIVER}


def resealed(path: Path, **changes: object) -> None:
    """trial.json with other content, and the digest that belongs to it."""
    content = json.loads(path.read_text()) | changes
    content.pop("self_sha256")
    content["self_sha256"] = disk.digest_of_bytes(disk.as_json(content).encode())
    path.write_text(json.dumps(content))


def test_a_trial_that_lacks_what_it_must_say_is_damaged(run: Path) -> None:
    folder = next((run / "trials").glob("*/*"))
    content = json.loads((folder / "trial.json").read_text())
    del content["status"], content["self_sha256"]
    content["self_sha256"] = disk.digest_of_bytes(disk.as_json(content).encode())
    (folder / "trial.json").write_text(json.dumps(content))

    with pytest.raises(RecordError, match="damaged: KeyError 'status'"):
        open_trial(folder)
    assert open_run(run).trials[0].reasons[-1] == "trial.json: damaged: KeyError 'status'"


def driven_run(path: Path) -> Path:
    """A record with one trial whose load another program made, which reported two requests."""
    study = records.study()
    planned = records.trials(study)[:1]
    with create_run(path, study, planned, {"cores": 2}) as writer:
        trial = writer.trial(planned[0])
        trial.write_plan(records.plan().to_json())
        trial.write_samples([records.sample(0), records.sample(1)])
        trial.seal(end(engine=DRIVEN))
    return path


def test_a_driven_trial_gives_back_what_was_told_and_an_older_reader_refuses_it(tmp_path: Path) -> None:
    path = driven_run(tmp_path / "run")

    trial = open_run(path).trials[0]

    assert trial.result is not None
    assert trial.result.driver == Driver("siege", True, "4", ("siege",), 1.0)
    assert trial.samples().rows() == [records.sample(0), records.sample(1)]
    assert (trial.counters(), trial.intervals(), trial.connections().height) == (Counters(), [], 0)
    content = json.loads((trial.path / layout.TRIAL).read_text())
    assert content["schema_version"] == 2
    with pytest.raises(layout.NewerRecord, match="schema version 2 is newer than 1"):
        layout.version_of(content, trial.path)  # what a reader of version 1 does


@pytest.mark.parametrize(
    "changes",
    [
        {"schema_version": 1},
        {"engine": records.engine_result()},
        {"engine": DRIVEN | {"driver": {"name": "siege"}}},
        {"engine": DRIVEN | {"driver": DRIVER | {"name": 7}}},
        {"engine": DRIVEN | {"streams": []}},
        {"engine": [1]},
    ],
)
def test_a_driven_trial_whose_version_or_driver_is_odd_is_damaged(
    tmp_path: Path, changes: dict[str, object]
) -> None:
    path = driven_run(tmp_path / "run")
    resealed(open_run(path).trials[0].path / layout.TRIAL, **changes)

    trial = open_run(path).trials[0]

    assert trial.status is TrialStatus.INVALID
    assert "damaged" in trial.reasons[0]


def test_a_trial_of_ours_is_version_1_as_before(run: Path) -> None:
    trial = open_run(run).trials[0]

    assert trial.result is not None
    assert trial.result.driver is None
    assert json.loads((trial.path / layout.TRIAL).read_text())["schema_version"] == 1


def test_a_trial_knows_the_service_that_its_load_asks() -> None:
    record = open_run(Path(__file__).parents[2] / "data" / "records" / "version-1")

    # By hand from its effective.yaml: `"entry": {"service": "web", ...}` in both cases; trial.json has none.
    assert {trial.entry for trial in record.trials} == {"web"}
    assert all(not hasattr(trial.case, "entry") for trial in record.trials)
