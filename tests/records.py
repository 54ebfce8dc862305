"""Records made by hand from the documented format: an engine in a hundred lines, without the engine.

Nothing here uses the code under test to write a live file, so that a reader is compared with the page
(docs/reference/record.md) and not with itself.
"""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from loadlens.model.plain import read
from loadlens.model.recorded import PlannedCase
from loadlens.model.study import Case, Level, PlannedTrial, Study
from loadlens.model.topology import Entry
from loadlens.model.workload import Closed, Connection, Plan, Scenario, Step, Stream, Target

STUDY_TEXT = "schema: 1\nstudy: sketch\n"


def case(slug: str = "alone-users-1", *, users: int = 1, **changes: Any) -> Case:
    """One case of one request to an outside address."""
    settings: dict[str, Any] = {
        "name": slug.replace("-", " "),
        "slug": slug,
        "experiment": "alone",
        "levels": (Level("users", str(users), (("users", users),)),),
        "params": (("users", users),),
        "services": (),
        "entry": Entry(url="http://127.0.0.1:9"),
        "scenarios": (Scenario("look", 1.0, (Step("look", "GET", "/"),)),),
        "workload": Closed(users=users),
        "connection": Connection(),
        "timeout_ns": 1_000_000_000,
        "warmup_ns": 0,
        "duration_ns": 1_000_000_000,
        "probes": (),
        "fresh": "trial",
        "reset": None,
        "trials": 2,
    }
    return Case(**(settings | changes))


def planned_case(slug: str = "rush", **content: object) -> PlannedCase:
    """A case as a record keeps it."""
    load = {"scenarios": (), "workload": {"kind": "closed", "users": 1}, "connection": {}}
    return read(PlannedCase, {"slug": slug, **load, **content})


def study(cases: Sequence[Case] | None = None, **changes: Any) -> Study:
    """A study of these cases."""
    settings: dict[str, Any] = {
        "name": "sketch",
        "question": "does it add up?",
        "folder": "/nowhere/sketch",
        "text": STUDY_TEXT,
        "params": (("users", 1),),
        "cases": tuple(cases) if cases is not None else (case(),),
        "order_by": "blocks",
        "seed": 1,
    }
    return Study(**(settings | changes))


def trials(of: Study) -> tuple[PlannedTrial, ...]:
    """Blocks in order, cases in the order of the study."""
    blocks = max(c.trials for c in of.cases)
    pairs = [(block, c) for block in range(1, blocks + 1) for c in of.cases if block <= c.trials]
    return tuple(PlannedTrial(c, block, i + 1, seed=100 + i) for i, (block, c) in enumerate(pairs))


def plan(headers: tuple[tuple[str, str], ...] = ()) -> Plan:
    """A plan of one stream."""
    scenario = Scenario("look", 1.0, (Step("look", "GET", "/", headers=headers),))
    stream = Stream("load", "load", Target("127.0.0.1", 9, "127.0.0.1:9"), (scenario,), Closed(users=1))
    return Plan(seed=7, streams=(stream,), duration_ns=1_000_000_000)


# --- live files --------------------------------------------------------------------------------------

SAMPLE_ROW = struct.Struct("<QqqqqIIIIHHBBBB")
CONNECTION_ROW_OF_1 = struct.Struct("<IIqqqIBBBBQ")
CONNECTION_ROW_OF_2 = struct.Struct("<IIqqqIBBBBQq")
CONNECTION_ROW = struct.Struct("<IIqqqIBBBBQqQ")


def sample(seq: int, **changes: int) -> tuple[int, ...]:
    """A request that was answered after a millisecond, ten milliseconds after the one before."""
    due = seq * 10_000_000
    row = {
        "seq": seq,
        "due": due,
        "sent": due + 5_000,
        "first": due + 900_000,
        "done": due + 1_000_000,
        "user": 0,
        "connection": 0,
        "wire": 120,
        "body": 20,
        "step": 0,
        "status": 200,
        "outcome": 0,
        "stream": 0,
        "thinned": 0,
        "flags": 0,
    }
    return tuple((row | changes).values())


def chunk(magic: bytes, rows: Iterable[tuple[int, ...]]) -> bytes:
    """Head and rows of one chunk."""
    form = {
        b"LLS1": SAMPLE_ROW,
        b"LLC1": CONNECTION_ROW_OF_1,
        b"LLC2": CONNECTION_ROW_OF_2,
        b"LLC3": CONNECTION_ROW,
    }[magic]
    packed = [form.pack(*row) for row in rows]
    payload = b"".join(packed)
    return struct.pack("<4sIII", magic, len(packed), zlib.crc32(payload), 0) + payload


def hashed(number: int) -> int:
    """The hash by which rows are thinned, as the page has it."""
    value = (number + 0x9E3779B97F4A7C15) % 2**64
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    return value ^ (value >> 27)


def thinned_rows(numbers: Iterable[int], bound: int) -> list[tuple[int, int]]:
    """Rows that a thread writes of requests with these numbers: number and k, which rises at the bound."""
    written: list[tuple[int, int]] = []
    kept: list[int] = []
    k = 0
    for number in numbers:
        if hashed(number) % 2**k:
            continue
        kept.append(number)
        while len(kept) > bound:
            k += 1
            kept = [each for each in kept if hashed(each) % 2**k == 0]
        if hashed(number) % 2**k == 0:
            written.append((number, k))
    return written


def leb128(number: int) -> bytes:
    """ZigZag LEB128, one byte at a time, as the HdrHistogram V2 encoding describes it."""
    left = (number << 1) ^ (number >> 63)
    out = bytearray()
    while left >= 0x80:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    out.append(left)
    return bytes(out)


def bucket_index(value: int, half_magnitude: int = 10) -> int:
    """Index in the counts array of a histogram of 3 digits and unit 1: by halving, not by formula."""
    bucket, rest = 0, value
    while rest >= 2 << half_magnitude:
        rest >>= 1
        bucket += 1
    half = 1 << half_magnitude
    return rest if bucket == 0 and rest < half else (bucket + 1) * half + (rest - half)


def bucket_upper(value: int, half_magnitude: int = 10) -> int:
    """The largest value that shares a bucket with this one."""
    shift = 0
    while value >> shift >= 2 << half_magnitude:
        shift += 1
    return (((value >> shift) + 1) << shift) - 1


def encode_histogram(counts: Mapping[int, int]) -> str:
    """Base64 of a V2 deflate histogram, unit 1, 3 digits, from value to count."""
    by_index: dict[int, int] = {}
    for value, count in counts.items():
        by_index[bucket_index(value)] = by_index.get(bucket_index(value), 0) + count
    body, at = b"", 0
    for index in sorted(by_index):
        if index > at:
            body += leb128(-(index - at))
        body += leb128(by_index[index])
        at = index + 1
    head = struct.pack(">iiiiqqd", 0x1C849313, len(body), 0, 3, 1, (1 << 63) - 1, 1.0)
    packed = zlib.compress(head + body)
    return base64.b64encode(struct.pack(">ii", 0x1C849314, len(packed)) + packed).decode()


def hlog_line(tag: str, start_s: float, length_s: float, counts: Mapping[int, int]) -> str:
    """One line of an interval log, 1.3."""
    top = max(counts, default=0) / 1e6
    return f"Tag={tag},{start_s:.3f},{length_s:.3f},{top:.3f},{encode_histogram(counts)}\n"


def counter_line(start_s: float, **changes: Any) -> dict[str, Any]:
    """One interval of the load stream."""
    row: dict[str, Any] = {"start_s": start_s, "length_s": 0.25, "phase": "measure", "stream": "load"}
    return row | {"due": 25, "issued": 25, "answered": 25, "ok": 25} | changes


def reading_line(t: int, value: float | None, metric: str = "rss_bytes", **labels: str) -> dict[str, Any]:
    """One reading as a monitor writes it."""
    return {"t": t, "source": "proc", "metric": metric, "labels": labels, "unit": "bytes", "value": value}


def write_live(live: Path, *, samples: int = 100, t0_monotonic_ns: int = 5_000) -> None:
    """The live files of a trial with this many requests, a connection, two intervals and two readings."""
    write_live_of_engine(live, samples=samples)
    readings = [
        reading_line(t0_monotonic_ns - 1_000, 1.0, service="api", pid="7"),
        reading_line(t0_monotonic_ns + 2_000, None, service="api", pid="7"),
    ]
    write_lines(live / "readings.jsonl", readings)


def write_live_of_engine(live: Path, *, samples: int = 100, chunk_rows: int = 40) -> None:
    """What the engine leaves: chunks of samples, one of connections, histograms and counters."""
    rows = [sample(seq) for seq in range(samples)]
    starts = range(0, samples, chunk_rows)
    (live / "samples.bin").write_bytes(b"".join(chunk(b"LLS1", rows[i : i + chunk_rows]) for i in starts))
    connection = (0, 0, 1_000, 2_000, -1, samples, 0, 0, 0, 1, 12_000, 700, 0)
    (live / "connections.bin").write_bytes(chunk(b"LLC3", [connection]))
    (live / "intervals.hlog").write_text(
        "#[Histogram log format version 1.3]\n"
        + hlog_line("load.look.ok.response", 0.0, 0.25, {1_000_000: samples // 2})
        + hlog_line("load.look.ok.response", 0.25, 0.25, {1_000_000: samples - samples // 2, 7: 3})
    )
    write_lines(live / "counters.jsonl", [counter_line(0.0), counter_line(0.25)])


def write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def quantity(value: float | None = None) -> dict[str, Any]:
    """A value of the engine's result without an interval."""
    return {"value": value, "low": None, "high": None, "undecided": None, "independent_above": None}


def no_times() -> dict[str, Any]:
    """A distribution in which nothing fell."""
    empty = {name: quantity() for name in ("mean", "p50", "p75", "p90", "p95", "p99", "p999")}
    counts = {"count": 0, "censored": 0, "stdev": None, "min": None, "max": None}
    return empty | counts | {"independent": None, "method": "hac", "histogram": []}


def request_counts(**changes: int) -> dict[str, int]:
    """Counts of requests, none but those that are given."""
    names = ("due", "issued", "answered", "ok", "unexpected_status", "check_failed", "failed", "in_flight",
             "dropped", "waiting", "skipped")  # fmt: skip
    return dict.fromkeys(names, 0) | changes


def step_result(**changes: Any) -> dict[str, Any]:
    """One step of a stream's result, of which nothing was measured."""
    return {
        "name": "look", "scenario": "look", "requests": request_counts(), "throughput_rps": quantity(),
        "response_time_s": no_times(), "service_time_s": no_times(), "checks": [],
    } | changes  # fmt: skip


def stream_result(**changes: Any) -> dict[str, Any]:
    """One stream of the engine's result, of which nothing was measured."""
    return {
        "name": "load", "role": "load", "kind": "closed", "requests": request_counts(),
        "in_warmup": {"answered": 0, "failed": 0}, "after_end": {"answered": 0, "failed": 0},
        "law_holds": True, "law": "", "status": {}, "errors": {}, "throughput_rps": quantity(),
        "response_time_s": no_times(), "service_time_s": no_times(), "failed_time_s": no_times(),
        "lag_s": no_times(), "phases_s": {}, "steps": [], "groups": [], "feeds": [],
        "bytes": {"out": 0, "in_wire": 0, "in_body": 0}, "connections": None, "tls": None,
        "little": {"ratio": None, "in_flight_mean": None, "edge_bound": None, "verdict": "unknown"},
    } | changes  # fmt: skip


def engine_result(answered: int = 100, **changes: Any) -> dict[str, Any]:
    """The result of an engine whose counts add up."""
    requests = request_counts(due=answered, issued=answered, answered=answered, ok=answered)
    return {
        "schema_version": 1, "status": "complete", "reasons": [], "t0_unix_ns": 0, "t0_monotonic_ns": 0,
        "warmup_s": 0.0, "measured_s": 0.5, "elapsed_s": 0.5,
        "streams": [stream_result(requests=requests)],
        "generator": {"verdict": "kept_up", "reasons": []},
    } | changes  # fmt: skip
