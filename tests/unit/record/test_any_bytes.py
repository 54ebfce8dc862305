"""Files that are nearly right: a reader gives what is in them or a fault with its place, never a traceback.

Study files of any bytes are in test_define_any_input.py. A failure names its seed, which `LOADLENS_SEED=n`
replays; `LOADLENS_INPUTS=n` looks at more.
"""

from __future__ import annotations

import json
import math
import os
import random
import shutil
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from loadlens import engine
from loadlens.errors import RecordError
from loadlens.model.trial import CONNECTION, SAMPLE
from loadlens.record import disk, histogram_log, open_run, readings, sample_rows
from loadlens.signals.collect import jvm, scrape
from loadlens.signals.collect.monitor import Row
from tests.unit.signals.collect.test_jvm import COUNTERS, OWN, file_of

RECORD = Path(__file__).parents[2] / "data" / "records" / "version-1"
SEALED = RECORD / "trials" / "alone-users-1" / "block-1"
LIVE = RECORD / "trials" / "alone-users-1" / "block-2" / "live"
WORDS = [
    b"\n", b"\r\n", b"\0", b"\xff", b"\xc3", "é".encode(), b"{", b"}", b"[", b"]", b'"', b":", b",",
    b"\\u0000", b"\\ud800", b"null", b"true", b"NaN", b"Infinity", b"-1", b"1e999", b"9" * 5000, b"[" * 2000,
    b'{"t":1,"metric":"a"}\n', b"0.250", b"Tag=", b"AAAA", b"LLS1", b"LLC2", b"LLS9",
    b"#[Loadlens schema_version: 9]\n",
]  # fmt: skip


def inputs(few: int) -> range:
    """The seeds of one test."""
    if seed := os.environ.get("LOADLENS_SEED"):
        return range(int(seed), int(seed) + 1)
    return range(int(os.environ.get("LOADLENS_INPUTS", few)))


def mutated(seed: int, content: bytes, words: list[bytes] = WORDS) -> bytes:
    """The content after one to four changes."""
    draw = random.Random(seed)
    text = bytearray(content)
    for _ in range(draw.randint(1, 4)):
        at = draw.randint(0, len(text))
        end = min(len(text), at + draw.randint(0, 16))
        match draw.randint(0, 6):
            case 0 if at < len(text):
                text[at] ^= 1 << draw.randint(0, 7)
            case 1 if at < len(text):
                text[at] = draw.randint(0, 255)
            case 2:
                del text[at:end]
            case 3:
                text[at:at] = text[at:end]
            case 4:
                del text[at:]
            case 5:
                text[at:end] = draw.choice(words)
            case _:
                text[at:at] = draw.choice(words)
    return bytes(text)


def fault_of(read: Callable[[], object], seed: int) -> RecordError | ValueError | None:
    """The expected fault of a reader, if it had one; whatever else it raises names the seed."""
    try:
        read()
    except (RecordError, ValueError) as fault:
        return fault
    except Exception as fault:
        raise AssertionError(f"LOADLENS_SEED={seed}") from fault
    return None


def check_place(fault: Exception | None, place: str, seed: int) -> None:
    """A fault of a record says where."""
    if fault is not None:
        assert isinstance(fault, RecordError), f"LOADLENS_SEED={seed}: {fault!r}"
        assert place in (fault.where or ""), f"LOADLENS_SEED={seed}: {fault}"


READERS: dict[str, tuple[Path, Callable[[Path], object]]] = {
    "samples": (
        LIVE / "samples.bin",
        lambda path: list(sample_rows.live_parts({"": path}, SAMPLE)),
    ),
    "connections": (
        LIVE / "connections.bin",
        lambda path: list(sample_rows.live_parts({"": path}, CONNECTION)),
    ),
    "readings": (LIVE / "readings.jsonl", lambda path: readings.read_live(path, None)),
    "counters": (LIVE / "counters.jsonl", disk.read_lines),
    "events": (RECORD / "events.jsonl", partial(disk.read_lines, checked=True)),
    "header": (SEALED / "trial.json", disk.read_json),
    "intervals": (SEALED / "intervals.hlog", lambda path: list(histogram_log.read(path))),
    "parquet": (
        SEALED / "samples.parquet",
        lambda path: sample_rows.read_parquet(path, sample_rows.schema(SAMPLE), SAMPLE.added),
    ),
}


@pytest.mark.parametrize("reader", READERS)
def test_any_file_of_a_record_is_read_or_its_damage_named(tmp_path: Path, reader: str) -> None:
    kept, read = READERS[reader]
    content = kept.read_bytes()[:40_000] if kept.suffix != ".parquet" else kept.read_bytes()
    path = tmp_path / kept.name

    for seed in inputs(250):
        path.write_bytes(mutated(seed, content))
        check_place(fault_of(lambda: read(path), seed), str(path), seed)


def test_a_page_that_states_another_number_of_values_is_refused(tmp_path: Path) -> None:
    """Polars aborts the process on one below zero; such a file can be made to pass its digest."""
    kept, read = READERS["parquet"]
    content = kept.read_bytes()
    path = tmp_path / kept.name
    begin = b"\x2c\x15"  # of DataPageHeader, the field 5: a struct; in it the field 1: a number of 32 bits
    heads = [at for at in range(len(content)) if content.startswith(begin + b"\x3c", at)]

    for at in heads:
        for count in (b"\x01", b"\x7f", b"\x3e", b"\x00"):  # -1, -64, 31, 0 in place of 30, in zigzag
            path.write_bytes(content[: at + 2] + count + content[at + 3 :])
            with pytest.raises(RecordError, match="damaged: not Parquet"):
                read(path)

    assert len(heads) == len(SAMPLE.fields)


def read_all(run: Path, seed: int) -> None:
    """Everything that a record says, each part by itself."""
    record = open_run(run)
    parts: list[Callable[[], object]] = [
        lambda: record.study, lambda: record.study_text, lambda: record.environment, lambda: record.digest,
        record.events, record.unfinished,
    ]  # fmt: skip
    for trial in record.trials:
        parts += [
            trial.samples,
            trial.connections,
            trial.readings,
            trial.counters,
            trial.intervals,
            trial.damage,
        ]
        parts += [lambda trial=trial: trial.plan, lambda trial=trial: trial.log("web")]  # type: ignore[misc]
    for part in parts:
        check_place(fault_of(part, seed), str(run), seed)


def test_any_damage_to_a_record_leaves_the_rest_readable(tmp_path: Path) -> None:
    run = shutil.copytree(RECORD, tmp_path / "run")
    paths = sorted(path for path in run.rglob("*") if path.is_file())

    for seed in inputs(45):
        path = paths[seed % len(paths)]
        whole = path.read_bytes()
        path.write_bytes(mutated(seed, whole))
        check_place(fault_of(partial(read_all, run, seed), seed), str(run), seed)
        path.write_bytes(whole)


FEEDS = {
    "csv": b'id,name\n1,"a, ""b"""\n2,c\n',
    "tsv": b"id\tname\n1\ta b\n2\t\n",
    "jsonl": b'{"id": 1, "name": {"b": [1, 2]}}\n{"id": "x\\n", "name": null}\n',
}


@pytest.mark.parametrize("form", FEEDS)
def test_any_feed_is_opened_or_refused_with_its_line(tmp_path: Path, form: str) -> None:
    path = tmp_path / f"people.{form}"

    for seed in inputs(1_500):
        path.write_bytes(mutated(seed, FEEDS[form]))
        fault = fault_of(lambda: engine.open_feed(path, form).records(), seed)
        assert fault is None or "people" in str(fault), f"LOADLENS_SEED={seed}"


EXPOSITION = b"""# HELP http_requests_total The total number of requests.
# TYPE http_requests_total counter
http_requests_total{method="post",code="200"} 1027 1395066363000
http_requests_total{method="a\\"b\\\\c\\n"} +Inf
# TYPE seconds histogram
seconds_bucket{le="0.05"} 24054
seconds_bucket{le="+Inf"} 144320
seconds_sum 53423
seconds_count 144320
# TYPE rpc summary
rpc{quantile="0.5"} 4773
plain 12.47
odd{} NaN
"""
EXPOSITION_WORDS = [
    *WORDS, b"{", b"}", b'le="', b"# TYPE a histogram\n", b"# EOF\n", b'a{b="c"} 1\n', b"_bucket", b" ",
    b"+Inf", b"\\", b"# {", b"0x10", b"1_0",
]  # fmt: skip


def test_any_exposition_gives_rows_or_a_scrape_that_is_missed_and_says_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    target = scrape.ScrapeTarget("web", 0, "http://127.0.0.1:1/metrics")
    text = ""
    monkeypatch.setattr(scrape, "_get", lambda _url: text)
    scraper = scrape._Scraper(target)
    read = missed = 0

    for seed in inputs(3_000):
        text = mutated(seed, EXPOSITION, EXPOSITION_WORDS).decode(errors="replace")
        scraper.ask(time.monotonic_ns())
        scraper.wait()
        samples = list(scraper.take())
        assert {"scrape_seconds", "scrapes"} <= {row.metric for row in samples}, f"LOADLENS_SEED={seed}"
        reasons = [row for row in samples if row.metric == "missed"]
        assert len(reasons) <= 1, f"LOADLENS_SEED={seed}"
        missed += len(reasons)
        read += not reasons
    scraper.end()

    assert read > 100 or len(inputs(1)) == 1
    assert missed > 100 or len(inputs(1)) == 1


def test_any_counters_of_a_jvm_give_readings_or_are_refused() -> None:
    content = {end: file_of(COUNTERS, end) for end in "<>"}
    words = [
        *WORDS,
        b"\xff" * 4,
        b"\0" * 4,
        b"\x7f\xff\xff\xff",
        b"\x80\0\0\0",
        b"J",
        b"sun.gc.collector.0.time",
    ]
    read = refused = 0

    for seed in inputs(3_000):
        changed = mutated(seed, content["<>"[seed % 2]], words)
        rows: list[Row] = []
        fault = fault_of(lambda: rows.extend(jvm.rows(jvm.parse(changed), OWN)), seed)  # noqa: B023
        assert len(rows) < 100, f"LOADLENS_SEED={seed}"
        for row in rows:
            assert json.loads(row.labels)["pid"] == "4711", f"LOADLENS_SEED={seed}"
            assert row.value is None or 0 <= row.value < math.inf, f"LOADLENS_SEED={seed}"
        read += fault is None
        refused += fault is not None

    assert read > 100 or len(inputs(1)) == 1
    assert refused > 100 or len(inputs(1)) == 1
