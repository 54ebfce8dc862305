"""Write a record of as many requests as wanted from a model, to see how quick and small a report of it is.

    python -m benches.large_record FOLDER [--requests 1e9] [--rate 100000]

The model is M/M/1 in its steady state: Poisson arrivals, response times exponential with a mean of 2 ms, each
drawn by itself. So the p50 is 2 ms × ln 2 and the p99 is 2 ms × ln 100. Intervals, counters and rows are laid
out as the engine would have, rows thinned to the default of a record; nothing is sent.
"""

from __future__ import annotations

import argparse
import base64
import json
import math
import struct
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from loadlens.model.study import Case, PlannedTrial, Study
from loadlens.model.topology import Entry
from loadlens.model.trial import TrialStatus
from loadlens.model.workload import KEPT_ROWS, Connection, Open, Plan, Scenario, Step, Stream, Target
from loadlens.record import Moment, TrialEnd, create_run, layout, sample_rows

MEAN_NS = 2_000_000.0
LAG_NS = 5_000  # each request leaves so long after it was due
BODY_NS = 1_000_000  # at most, from the first byte to the last
USERS = 1_000
SEQS_AT_ONCE = 1 << 22
MAGIC, DEFLATED = 0x1C849313, 0x1C849314  # HdrHistogram V2, and compressed
HALF_BITS = 10  # 2^10 counts in half a bucket: three digits


@dataclass(frozen=True, slots=True)
class Interval:
    """A stretch of the measured part, seconds since t0, and the requests that ended in it."""

    start_s: float
    length_s: float
    requests: int


def main() -> int:
    parser = argparse.ArgumentParser(
        "python -m benches.large_record", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("folder", type=Path, help="a new folder, such as /tmp/large")
    parser.add_argument("--requests", type=float, default=1e9, help="about so many (default 1e9)")
    parser.add_argument("--rate", type=float, default=100_000.0, help="requests per second (default 100,000)")
    asked = parser.parse_args()
    requests = write(asked.folder, asked.requests / asked.rate, asked.rate)
    size = sum(path.stat().st_size for path in asked.folder.rglob("*") if path.is_file())
    sys.stdout.write(f"{requests:,} requests, {size / 1e6:.0f} MB, in {asked.folder}\n")
    return 0


def write(folder: Path, seconds: float, rate: float, *, kept: int = KEPT_ROWS, seed: int = 1) -> int:
    """Write the record of one trial; return how many requests it has."""
    random = np.random.default_rng(seed)
    intervals = list(_intervals(random, seconds, rate))
    requests = sum(each.requests for each in intervals)
    case = _case(seconds, rate)
    study = Study(
        "large", "How long does a report take?", str(folder.parent), "", (), (case,), "listed", seed
    )
    planned = PlannedTrial(case, block=1, position=1, seed=seed)
    with create_run(folder, study, (planned,), {}) as writer:
        trial, began = writer.trial(planned), Moment.now()
        trial.write_plan(_plan(case, seed).to_json())
        _write_intervals(trial.live, intervals, random)
        trial.write_samples(_rows(random, requests, rate, kept))
        trial.seal(TrialEnd.of(_result(requests, seconds), TrialStatus.COMPLETE, (), began))
    return requests


def _intervals(random: np.random.Generator, seconds: float, rate: float) -> Iterator[Interval]:
    """Yield the grid of the measured part (docs/reference/record.md), a Poisson number in each interval."""
    at = 0.0
    while at < seconds:
        coarse = 2.0 ** math.ceil(math.log2(max(1.0, math.ceil(seconds / 3_600))))
        length = min(0.25 if at < 60 else coarse, seconds - at)
        yield Interval(at, length, int(random.poisson(rate * length)))
        at += length


# --- histograms and counters ------------------------------------------------------------------------------


def _write_intervals(live: Path, intervals: list[Interval], random: np.random.Generator) -> None:
    edges = _bucket_edges(round(40 * MEAN_NS))
    below = -np.expm1(-edges / MEAN_NS)
    middles = (edges[:-1] + edges[1:] - 1) / 2e9
    head = "#[Histogram log format version 1.3]\n"
    with (live / layout.INTERVALS).open("w") as hlog, (live / layout.COUNTERS).open("w") as counters:
        hlog.write(head)
        for each in intervals:
            counts = _drawn(random, each.requests, below)
            lag = np.zeros(LAG_NS + 1, dtype=np.int64)
            lag[_bucket_of(LAG_NS)] = each.requests
            for tag, values in (
                ("load.get.ok.response", counts),
                ("load.get.ok.service", counts),
                ("load...lag", lag),
            ):
                hlog.write(f"Tag={tag},{each.start_s:.9f},{each.length_s:.9f},0.000,{_encoded(values)}\n")
            sums = float(counts @ middles), float(counts @ middles**2)
            counters.write(json.dumps(_counters(each, *sums)) + "\n")
            counters.write(json.dumps(_engine_counters(each)) + "\n")


def _drawn(
    random: np.random.Generator, number: int, below: np.ndarray[Any, np.dtype[np.float64]]
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Draw how many of `number` times fall into each bucket, of whose edges the shares below are given."""
    if number > below.size:
        return random.multinomial(number, np.diff(below) / (below[-1] - below[0]))
    places = np.searchsorted(below, random.uniform(below[0], below[-1], number), side="right") - 1
    return np.bincount(places, minlength=below.size - 1)


def _bucket_of(value: int) -> int:
    """Return the index of the count of a value in a histogram of unit 1 and three digits."""
    shift = max(0, value.bit_length() - HALF_BITS - 1)
    return (shift << HALF_BITS) + (value >> shift)


def _bucket_edges(longest: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return where the buckets of a histogram begin up to that of `longest`, and where that ends."""
    index = np.arange(_bucket_of(longest) + 2)
    shift = np.maximum(index // (1 << HALF_BITS) - 1, 0)
    return ((index - (shift << HALF_BITS)) << shift).astype(np.float64)


def _encoded(counts: np.ndarray[Any, np.dtype[np.int64]]) -> str:
    """Return a histogram in Base64: zigzag LEB128 of the counts, runs of zeros as negative numbers."""
    at = np.flatnonzero(counts)
    gaps = np.diff(at, prepend=-1) - 1
    words = np.column_stack([-gaps, counts[at]]).ravel()
    words = words[words != 0]
    body = bytearray()
    for word in ((words << 1) ^ (words >> 63)).tolist():
        while word >= 0x80:
            body.append(word & 0x7F | 0x80)
            word >>= 7
        body.append(word)
    head = struct.pack(">iiiiqqd", MAGIC, len(body), 0, 3, 1, (1 << 45) - 1, 1.0)
    packed = zlib.compress(head + bytes(body))
    return base64.b64encode(struct.pack(">ii", DEFLATED, len(packed)) + packed).decode()


def _counters(each: Interval, total_s: float, squares_s2: float) -> dict[str, Any]:
    count = each.requests
    cell = {"count": count, "response_sum_s": total_s, "response_sumsq_s2": squares_s2}
    cell |= {"service_sum_s": total_s, "service_sumsq_s2": squares_s2}
    row: dict[str, Any] = {
        "start_s": each.start_s,
        "length_s": each.length_s,
        "phase": "measure",
        "stream": "load",
    }
    row |= dict.fromkeys(("due", "issued", "answered", "ok"), count)
    return row | {"status": {"200": count}, "cells": {"0.ok": cell}, "in_flight_integral_s": total_s}


def _engine_counters(each: Interval) -> dict[str, Any]:
    generator = {
        "busy": [0.5],
        "runq_wait_s": [0.0],
        "stalled_s": [0.0],
        "lag_p99_s": LAG_NS / 1e9,
        "loops": 1,
    }
    row: dict[str, Any] = {
        "start_s": each.start_s,
        "length_s": each.length_s,
        "phase": "measure",
        "stream": None,
    }
    return row | {"generator": generator}


# --- rows, plan and result --------------------------------------------------------------------------------


def _rows(random: np.random.Generator, requests: int, rate: float, kept: int) -> Iterator[tuple[int, ...]]:
    """Yield the rows that are left when all are written."""
    thinned = max(0, math.ceil(math.log2(requests / kept)))
    for begin in range(0, requests, SEQS_AT_ONCE):
        seqs = np.arange(begin, min(begin + SEQS_AT_ONCE, requests), dtype=np.uint64)
        seqs = seqs[sample_rows.hashed(seqs) & np.uint64((1 << thinned) - 1) == 0]
        due = (seqs / rate * 1e9).astype(np.int64)
        took = random.exponential(MEAN_NS, seqs.size).astype(np.int64) + LAG_NS
        for seq, at, lasted in zip(seqs.tolist(), due.tolist(), took.tolist(), strict=True):
            done = at + lasted
            first = done - min(lasted - LAG_NS, BODY_NS)
            user = seq % USERS
            yield seq, at, at + LAG_NS, first, done, user, user, 250, 120, 0, 200, 0, 0, thinned, 0


def _case(seconds: float, rate: float) -> Case:
    return Case(
        name="large",
        slug="large",
        experiment="large",
        levels=(),
        params=(),
        services=(),
        entry=Entry(url="http://127.0.0.1:9"),
        scenarios=(Scenario("get", 1.0, (Step("get", "GET", "/"),)),),
        workload=Open(rate_per_s=rate, arrivals="poisson", max_in_flight=USERS),
        connection=Connection(),
        timeout_ns=30_000_000_000,
        warmup_ns=0,
        duration_ns=round(seconds * 1e9),
        probes=(),
        fresh="trial",
        reset=None,
        trials=1,
    )


def _plan(case: Case, seed: int) -> Plan:
    target = Target("127.0.0.1", 9, "127.0.0.1:9")
    stream = Stream("load", "load", target, case.scenarios, case.workload)
    return Plan(seed=seed, streams=(stream,), duration_ns=case.duration_ns)


def _result(requests: int, seconds: float) -> dict[str, Any]:
    """Return what the engine would report, without the figures that a report makes from the intervals."""
    counts = dict.fromkeys(("due", "issued", "answered", "ok"), requests)
    names = ("unexpected_status", "check_failed", "failed", "in_flight", "dropped", "waiting", "skipped")
    counts |= dict.fromkeys(names, 0)
    unknown: dict[str, Any] = dict.fromkeys(("value", "low", "high", "undecided", "independent_above"))
    times: dict[str, Any] = dict.fromkeys(("mean", "p50", "p75", "p90", "p95", "p99", "p999"), unknown)
    times |= {"count": requests, "censored": 0, "stdev": None, "min": None, "max": None, "independent": None}
    times |= {"method": "long_run", "histogram": []}
    stream: dict[str, Any] = {
        "name": "load",
        "role": "load",
        "kind": "open",
        "requests": counts,
        "in_warmup": {"answered": 0, "failed": 0},
        "after_end": {"answered": 0, "failed": 0},
        "law_holds": True,
        "law": "",
        "status": {"200": requests},
        "errors": {},
        "throughput_rps": unknown,
        **dict.fromkeys(("response_time_s", "service_time_s", "failed_time_s", "lag_s"), times),
        "phases_s": {},
        "steps": [],
        "groups": [],
        "feeds": [],
        "bytes": {"out": 0, "in_wire": 0, "in_body": 0},
        "connections": None,
        "tls": None,
        "little": {"ratio": 1.0, "in_flight_mean": None, "edge_bound": None, "verdict": "unknown"},
    }
    return {
        "schema_version": 1,
        "status": "complete",
        "reasons": [],
        "t0_unix_ns": 1,
        "t0_monotonic_ns": 1,
        "warmup_s": 0.0,
        "measured_s": seconds,
        "elapsed_s": seconds,
        "streams": [stream],
        "generator": {"threads": 1, "verdict": "kept_up", "reasons": []},
    }


if __name__ == "__main__":
    sys.exit(main())
