"""Round trip of a record: Python's readers return every bucket, sum, class and row that the engine wrote.

A script of what happened is drawn by a seed and played to the engine's recorders by the example
`scripted_record`. What must be in the files is counted here from the same script, by the record's page
(docs/reference/record.md) and by HdrHistogram's definition of a bucket; neither the engine nor a reader takes
part in that.
"""

from __future__ import annotations

import json
import math
import os
import random
import subprocess
from bisect import bisect_right
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from loadlens import record
from loadlens.model.trial import TrialStatus
from loadlens.record.reader import TrialRecord
from tests import records
from tests.oracles import histogram_log as second_reading

ROOT = Path(__file__).parents[2]
MS = 1_000_000
WARMUP, END, ENDED = 600 * MS, 1_700 * MS, 1_800 * MS
# A quarter of a second each, from where a phase begins; a last piece under an eighth joins the one before.
CUTS = [0, 250 * MS, 600 * MS, 850 * MS, 1_100 * MS, 1_350 * MS, 1_700 * MS]
PHASES = ["warmup", "warmup", "measure", "measure", "measure", "measure", "drain"]
NONE = 4_294_967_295
FAILURES = {
    10: "resolve",
    11: "refused",
    12: "connect_timeout",
    14: "reset",
    17: "truncated",
    19: "timeout",
    20: "limit",
    25: "tls_timeout",
}
ANSWERS = {0: "ok", 1: "unexpected_status", 2: "check_failed"}
TIME_OUTS = {12, 19, 25}
COURSES = ["ok", "failed", "censored"]
STREAMS: list[dict[str, Any]] = [
    {"name": "load", "steps": ["a b.c", "d"], "groups": ["both=1"], "checks": [2, 0]},
    {"name": "probe", "steps": ["look"], "groups": [], "checks": [1]},
]
NAMES = [["a_b_c", "d"], ["look"]]
FIRST_CHECK = [0, 2]  # of each stream among all


def upper(value: int) -> int:
    """The highest value in the bucket of a value: 2,048 of width 1, then 1,024 a power of two, to 2^45."""
    value = min(value, 2**45 - 1)
    shift = max(0, value.bit_length() - 11)
    return (((value >> shift) + 1) << shift) - 1


def at_interval(at: int) -> int:
    return bisect_right(CUTS, at) - 1


@dataclass
class Timing:
    """Values of one tag in one interval."""

    values: list[int] = field(default_factory=list)

    @property
    def buckets(self) -> dict[int, int]:
        return dict(Counter(upper(value) for value in self.values))

    def sums(self) -> tuple[float, float]:
        return sum(self.values) / 1e9, sum(value * value for value in self.values) / 1e18


class Drawn:
    """A script, and what must be read again of it."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.threads = self.random.choice([1, 2, 3])
        self.events: list[dict[str, Any]] = []
        self.timings: dict[tuple[int, str], Timing] = defaultdict(Timing)
        self.counts: dict[tuple[int, int], Counter[str]] = defaultdict(Counter)
        self.cells: dict[tuple[int, int, str], dict[str, Timing]] = {}
        self.samples: list[tuple[int, ...]] = []
        self.connections: list[tuple[int, ...]] = []
        self.flights: list[tuple[int, int, int, int]] = []  # stream, thread, sent, done
        for stream in range(len(STREAMS)):
            for number in range(self.random.randrange(300, 500)):
                self.request(stream, number)
            for number in range(60):
                self.connection(stream, number)
            for _ in range(20):
                self.skip(stream)
            self.checks(stream)
        for _ in range(40):
            self.group()
        self.events.sort(key=lambda event: event["at"])

    def add_event(self, at: int, thread: int, what: str, **details: Any) -> None:
        self.events.append({"at": at, "thread": thread, "what": what, **details})

    def time(self, at: int, tag: str, value: int) -> None:
        self.timings[at_interval(at), tag].values.append(value)

    def count(self, at: int, stream: int, name: str, by: int = 1) -> None:
        self.counts[at_interval(at), stream][name] += by

    def wide(self, most: float) -> int:
        """A whole number of nanoseconds of any size."""
        return int(10 ** self.random.uniform(0, math.log10(most)))

    def request(self, stream: int, number: int) -> None:
        draw = self.random
        step = draw.randrange(len(NAMES[stream]))
        thread = draw.randrange(self.threads)
        due = draw.randrange(END)
        where = {"stream": stream, "step": step}
        self.add_event(due, thread, "due", **where)
        self.count(due, stream, "due")
        if draw.random() < 0.05:
            self.add_event(due, thread, "dropped", **where, due=due, seq=number)
            self.count(due, stream, "dropped")
            self.row(due, number, due, -1, -1, -1, NONE, NONE, 0, 0, step, 0, 32, stream, 0)
            return
        sent = due + draw.choice([0, self.wide(1e5), self.wide(2e8)])
        if sent >= END:
            self.add_event(END - 1, thread, "censored", **where, due=due, sent=None)
            self.add_event(END - 1, thread, "waiting", **where, due=due, seq=number)
            self.censor(stream, step, due, None)
            self.row(END - 1, number, due, -1, -1, -1, NONE, NONE, 0, 0, step, 0, 31, stream, 0)
            return
        ready = draw.choice([due, draw.randint(due, sent)])
        self.add_event(sent, thread, "issued", **where, ready=ready)
        self.count(sent, stream, "issued")
        self.time(sent, f"{STREAMS[stream]['name']}...lag", sent - ready)
        done = sent + 1 + self.wide(3e9 if draw.random() < 0.1 else 3e7)
        if done >= END:
            self.add_event(END - 1, thread, "censored", **where, due=due, sent=sent)
            self.censor(stream, step, due, sent)
        self.end(stream, step, thread, number, due, sent, done)

    def censor(self, stream: int, step: int, due: int, sent: int | None) -> None:
        self.cell(END - 1, stream, step, "censored", END - 1 - due, None if sent is None else END - 1 - sent)

    def cell(self, at: int, stream: int, step: int, klass: str, response: int, service: int | None) -> None:
        tag = f"{STREAMS[stream]['name']}.{NAMES[stream][step]}.{klass}"
        key = at_interval(at), stream, f"{step}.{klass}"
        cell = self.cells.setdefault(key, {"response": Timing(), "service": Timing()})
        cell["response"].values.append(response)
        self.time(at, f"{tag}.response", response)
        if service is not None:
            cell["service"].values.append(service)
            self.time(at, f"{tag}.service", service)

    def end(self, stream: int, step: int, thread: int, seq: int, due: int, sent: int, done: int) -> None:
        draw = self.random
        is_left = done >= ENDED
        outcome = draw.choice(list(FAILURES)) if draw.random() < 0.2 else draw.choice([0, 0, 0, 0, 1, 2])
        outcome = 30 if is_left else outcome
        asked = draw.randint(max(sent, 1), done)  # 0 says that no byte came
        first = draw.choice([done, draw.randint(asked, done)])
        status = draw.choice([200, 201, 404, 503]) if outcome < 10 else 0
        body, wire = self.wide(1e6), draw.choice([self.wide(1e6), 2**32 + 5])
        user, number, is_first = draw.randrange(50), draw.randrange(80), draw.random() < 0.3
        at = min(done, ENDED - 1)
        details = {
            "stream": stream,
            "step": step,
            "outcome": outcome,
            "status": status,
            "seq": seq,
            "due": due,
        }
        details |= {"sent": sent, "asked": asked, "first": first, "user": user, "connection": number}
        details |= {"first_on_connection": is_first, "wire_bytes": wire, "body_bytes": body}
        self.add_event(at, thread, "unfinished" if is_left else "ended", **details)
        self.flights.append((stream, thread, sent, ENDED if is_left else done))
        end, wire = (-1 if is_left else done), min(wire, NONE)
        self.row(
            at, seq, due, sent, first, end, user, number, wire, body, step, status, outcome, stream, is_first
        )
        if is_left:
            return
        self.count(done, stream, "bytes_in_body", body)
        if outcome < 10:
            klass = ANSWERS[outcome]
            self.count(done, stream, f"status.{status}")
            self.count(done, stream, klass)
        else:
            klass = "censored" if outcome in TIME_OUTS else "failed"
            self.count(done, stream, f"failed.{FAILURES[outcome]}")
        self.cell(done, stream, step, klass, done - due, done - sent)
        if outcome == 0:
            tag = f"{STREAMS[stream]['name']}.{NAMES[stream][step]}.ok"
            self.time(done, f"{tag}.first_byte", first - asked)
            self.time(done, f"{tag}.last_byte", done - first)

    def row(self, at: int, *fields: int) -> None:
        *most, is_first = fields
        phase = {"warmup": 2, "measure": 0, "drain": 4}[PHASES[at_interval(at)]]
        self.samples.append((*most, 0, int(is_first) + phase))

    def connection(self, stream: int, number: int) -> None:
        draw, thread = self.random, self.random.randrange(self.threads)
        name = STREAMS[stream]["name"]
        at = draw.randrange(END)
        took, tls, resumed = self.wide(1e9), self.wide(1e9), draw.random() < 0.5
        sent, received = self.wide(1e9), self.wide(1e9)
        self.add_event(at, thread, "opened", stream=stream)
        self.count(at, stream, "opened")
        self.add_event(at, thread, "established", stream=stream, took=took)
        self.time(at, f"{name}...connect", took)
        self.add_event(at, thread, "secured", stream=stream, took=tls, resumed=resumed)
        self.time(at, f"{name}...tls", tls)
        self.add_event(at, thread, "bytes_out", stream=stream, bytes=sent)
        self.count(at, stream, "bytes_out", sent)
        self.add_event(at, thread, "bytes_in", stream=stream, bytes=received)
        self.count(at, stream, "bytes_in_wire", received)
        if draw.random() < 0.1:
            self.add_event(at, thread, "unsolicited", stream=stream)
            self.count(at, stream, "unsolicited")
        closed, side = draw.randrange(at, ENDED), draw.randrange(4)
        if side:
            self.count(closed, stream, ["", "closed_by_client", "closed_by_server", "closed_by_error"][side])
        row = {"connection": number, "user": draw.randrange(99), "opened_ns": at, "established_ns": at + took}
        row |= {"closed_ns": closed if side else -1, "requests": draw.randrange(1000), "closed_by": side}
        row |= {"stream": stream, "outcome": draw.choice([0, 11, 14]), "resumed": resumed}
        row |= {"bytes_in": self.wide(1e18), "tls_ns": draw.choice([-1, tls])}
        self.add_event(closed, thread, "closed", **row)
        self.connections.append((*(int(value) for value in row.values()), 0))  # none is thinned

    def skip(self, stream: int) -> None:
        at, steps = self.random.randrange(END), self.random.randrange(1, 9)
        self.add_event(at, self.random.randrange(self.threads), "skipped", stream=stream, step=0, steps=steps)
        self.count(at, stream, "skipped", steps)

    def group(self) -> None:
        draw, thread, at = self.random, self.random.randrange(self.threads), self.random.randrange(ENDED)
        response, service = self.wide(1e10), self.wide(1e10)
        self.add_event(at, thread, "group_due", group=0)
        self.count(at, 0, "group.due")
        course = draw.randrange(4)
        if course < 3:
            self.add_event(
                at, thread, "group_ended", group=0, course=course, response=response, service=service
            )
            self.count(at, 0, ["group.completed", "group.failed", "group.failed"][course])
        else:
            self.add_event(at, thread, "group_unfinished", group=0, response=response, service=service)
            self.count(at, 0, "group.unfinished")
        tag = f"load.both_1.{COURSES[min(course, 2)]}"
        self.time(at, f"{tag}.group_response", response)
        self.time(at, f"{tag}.group_service", service)

    def checks(self, stream: int) -> None:
        at_check = 0
        for step, count in enumerate(STREAMS[stream]["checks"]):
            for check in range(count):
                for _ in range(30):
                    at, thread = self.random.randrange(ENDED), self.random.randrange(self.threads)
                    verdicts = {word: self.random.randrange(5) for word in ("passed", "failed", "not_judged")}
                    self.add_event(at, thread, "checked", check=FIRST_CHECK[stream] + at_check, **verdicts)
                    for word, by in verdicts.items():
                        self.count(at, stream, f"check.{step}.{check}.{word}", by)
                at_check += 1

    def script(self) -> str:
        ends = {"warmup_ns": WARMUP, "end_ns": END, "ended_ns": ENDED}
        return json.dumps({"streams": STREAMS, "threads": self.threads, **ends, "events": self.events})

    # --- what must be in counters.jsonl ------------------------------------------------------------------

    def counters(self, interval: int, stream: int) -> dict[str, Any]:
        counts = self.counts[interval, stream]
        start, stop = CUTS[interval], [*CUTS[1:], ENDED][interval]
        so_far = sum((self.counts[before, stream] for before in range(interval + 1)), Counter())
        answered = sum(counts[name] for name in ANSWERS.values())
        plain: tuple[str, ...] = (
            "due",
            "issued",
            "dropped",
            "skipped",
            "ok",
            "unexpected_status",
            "check_failed",
            "opened",
            "unsolicited",
        )
        plain += ("closed_by_client", "closed_by_server", "closed_by_error")
        plain += ("bytes_out", "bytes_in_wire", "bytes_in_body")
        flights = [flight for flight in self.flights if flight[0] == stream]
        there = sum(max(0, min(stop, done) - max(start, sent)) for _, _, sent, done in flights)
        return {
            "start_s": start / 1e9,
            "length_s": (stop - start) / 1e9,
            "phase": PHASES[interval],
            "stream": STREAMS[stream]["name"],
            **{name: counts[name] for name in plain},
            "answered": answered,
            "failed": self.under("failed.", counts),
            "status": self.under("status.", counts),
            "in_flight": sum(sent < stop <= done for _, _, sent, done in flights),
            "in_flight_integral_s": there / 1e9,
            "in_flight_max": sum(self.most(thread, stream, start, stop) for thread in range(self.threads)),
            "waiting": so_far["due"] - so_far["issued"] - so_far["dropped"],
            "cells": self.cells_of(interval, stream),
            "groups": self.groups_of(interval, stream),
            "checks": self.checks_of(interval, stream),
        }

    @staticmethod
    def under(prefix: str, counts: Counter[str]) -> dict[str, int]:
        return {name.removeprefix(prefix): n for name, n in counts.items() if name.startswith(prefix) and n}

    def most(self, thread: int, stream: int, start: int, stop: int) -> int:
        """Most in flight at once on a thread: at the beginning, or after a request is issued."""
        ours = [(sent, done) for of, on, sent, done in self.flights if (of, on) == (stream, thread)]
        moments = [start, *(sent for sent, _ in ours if start <= sent < stop)]
        level = {at: sum(sent <= at < done for sent, done in ours) for at in moments}
        level[start] = sum(sent < start <= done for sent, done in ours)
        return max(level.values())

    def cells_of(self, interval: int, stream: int) -> dict[str, Any]:
        cells = {}
        for (at, of, name), cell in self.cells.items():
            if (at, of) == (interval, stream):
                (response, response_sq), (service, service_sq) = (
                    cell["response"].sums(),
                    cell["service"].sums(),
                )
                cells[name] = {
                    "count": len(cell["response"].values),
                    "response_sum_s": response,
                    "response_sumsq_s2": response_sq,
                    "service_sum_s": service,
                    "service_sumsq_s2": service_sq,
                }
        return cells

    def groups_of(self, interval: int, stream: int) -> dict[str, Any]:
        counts = self.under("group.", self.counts[interval, stream])
        if not counts:
            return {}
        words = ("due", "completed", "failed", "unfinished")
        sums = {
            f"{kind}_sum_s": self.timings[interval, f"load.both_1.ok.group_{kind}"].sums()[0]
            for kind in ("response", "service")
        }
        return {"0": {word: counts.get(word, 0) for word in words} | sums}

    def checks_of(self, interval: int, stream: int) -> dict[str, Any]:
        by_check: dict[str, dict[str, int]] = {}
        for name, count in self.under("check.", self.counts[interval, stream]).items():
            check, _, word = name.rpartition(".")
            by_check.setdefault(check, {"passed": 0, "failed": 0, "not_judged": 0})[word] = count
        return by_check


def write(folder: Path, drawn: Drawn) -> None:
    """Let the engine write the live files of what was drawn."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    program = target / "release" / "examples" / "scripted_record"
    if not program.is_file():
        raise FileNotFoundError(
            f"{program}: cargo build --release -p loadlens-engine --example scripted_record"
        )
    subprocess.run([program, folder], input=drawn.script().encode(), check=True, timeout=60)


@pytest.fixture(scope="module", params=range(6))
def written(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Drawn, list[TrialRecord]]:
    """The script that was drawn, and its trial before and after it was sealed."""
    drawn = Drawn(request.param)
    folder = tmp_path_factory.mktemp("round") / "run"
    study = records.study()
    planned = records.trials(study)[:1]
    with record.create_run(folder, study, planned, {"cores": 2}) as writer:
        trial = writer.trial(planned[0])
        trial.write_plan(records.plan().to_json())
        trial.started(t0_monotonic_ns=5_000, t0_unix_ns=9)
        write(trial.live, drawn)
        live = folder.parent / "live"
        os.makedirs(live)
        for path in trial.live.iterdir():
            (live / path.name).write_bytes(path.read_bytes())
        end = record.TrialEnd(
            TrialStatus.COMPLETE,
            reasons=(),
            engine=records.engine_result(),
            t0_unix_ns=9,
            t0_monotonic_ns=5_000,
        )
        trial.seal(end)
    (sealed,) = record.open_run(folder).trials
    content = json.loads((sealed.path / "trial.json").read_text())
    return drawn, [TrialRecord(folder.parent, content, sealed=False), sealed]


def lines_of_counters(trial: TrialRecord) -> list[dict[str, Any]]:
    """Contents of the file, with keys that no reader uses."""
    folder = trial.path if trial.is_sealed else trial.path / "live"
    lines = [json.loads(line) for line in (folder / "counters.jsonl").read_text().splitlines()]
    return [line for line in lines if "schema_version" not in line]


def test_every_line_of_counters_is_what_was_counted(written: tuple[Drawn, list[TrialRecord]]) -> None:
    drawn, trials = written
    for trial in trials:
        lines = lines_of_counters(trial)
        of_streams = [line for line in lines if line["stream"] is not None]
        expected = [drawn.counters(at, stream) for at in range(len(CUTS)) for stream in range(len(STREAMS))]

        gaps = [{key: line.pop(key) for key in ("max_gap_s", "max_gap_at_s")} for line in of_streams]

        assert of_streams == expected
        assert all(gap["max_gap_s"] is None or gap["max_gap_s"] > 0 for gap in gaps)


def test_the_engines_own_line_carries_the_lag_of_all_streams(
    written: tuple[Drawn, list[TrialRecord]],
) -> None:
    drawn, trials = written
    lags = []
    for at in range(len(CUTS)):
        both = [drawn.timings[at, f"{stream['name']}...lag"].values for stream in STREAMS]
        ordered = sorted(upper(value) for values in both for value in values)
        lags.append(ordered[math.ceil(0.99 * len(ordered)) - 1] / 1e9 if ordered else None)
    for trial in trials:
        own = [line["generator"] for line in lines_of_counters(trial) if line["stream"] is None]

        assert [line["lag_p99_s"] for line in own] == lags
        assert all(len(line["busy"]) == drawn.threads for line in own)


def test_every_bucket_of_every_histogram_is_what_was_counted(
    written: tuple[Drawn, list[TrialRecord]],
) -> None:
    drawn, trials = written
    expected = {
        (CUTS[at] / 1e9, tag): timing.buckets for (at, tag), timing in drawn.timings.items() if timing.values
    }
    lengths = {
        start / 1e9: (stop - start) / 1e9 for start, stop in zip(CUTS, [*CUTS[1:], ENDED], strict=True)
    }
    for trial in trials:
        counted = {}
        for histogram in trial.intervals():
            tag = f"{histogram.stream}.{histogram.step}.{histogram.klass}.{histogram.kind}"
            counted[histogram.start_s, tag] = dict(
                zip(histogram.values.tolist(), histogram.counts.tolist(), strict=True)
            )
            assert histogram.length_s == lengths[histogram.start_s]
            assert histogram.values.tolist() == sorted(histogram.values.tolist())

        assert counted == expected


def test_both_readers_of_histograms_agree(written: tuple[Drawn, list[TrialRecord]]) -> None:

    _, (live, _) = written

    ours = [
        (
            histogram.start_s,
            f"{histogram.stream}.{histogram.step}.{histogram.klass}.{histogram.kind}",
            histogram.values.tolist(),
            histogram.counts.tolist(),
        )
        for histogram in live.intervals()
    ]
    second = [
        (start, tag, values, counts)
        for start, _, tag, values, counts in second_reading.read(live.path / "live" / "intervals.hlog")
    ]

    assert ours == second


def test_every_row_is_what_was_told(written: tuple[Drawn, list[TrialRecord]]) -> None:
    drawn, trials = written
    for trial in trials:
        assert sorted(trial.samples().rows()) == sorted(drawn.samples)
        assert sorted(trial.connections().rows()) == sorted(drawn.connections)
