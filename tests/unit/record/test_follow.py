"""A record that another process writes: each look gives what is new, whole lines and chunks alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from loadlens import growing_file
from loadlens.record import FollowedEvents, FollowedTrial, create_run, follow, layout, open_run
from tests import records

T0 = 5_000


@pytest.fixture
def trial(tmp_path: Path) -> FollowedTrial:
    (tmp_path / "live").mkdir()
    start = {"schema_version": 1, "t0_monotonic_ns": T0, "t0_unix_ns": 9}
    (tmp_path / "live" / "start.json").write_text(json.dumps(start))
    followed = FollowedTrial(tmp_path)
    assert followed.started()
    return followed


def append(trial: FollowedTrial, name: str, content: bytes) -> None:
    with (trial.folder / "live" / name).open("ab") as file:
        file.write(content)


def test_counters_cut_anywhere_come_whole_and_once(trial: FollowedTrial) -> None:
    text = "".join(json.dumps(records.counter_line(at / 4)) + "\n" for at in range(3)).encode()
    starts: list[float] = []

    for at in range(0, len(text), 37):
        append(trial, "counters.jsonl", text[at : at + 37])
        starts += [row.start_s for row in trial.load.counters().streams]

    assert starts == [0.0, 0.25, 0.5]


def test_histograms_cut_anywhere_come_whole_and_once(trial: FollowedTrial) -> None:
    head = "#[Histogram log format version 1.3]\n"
    lines = [records.hlog_line("load.look.ok.response", at / 4, 0.25, {1_000_000: 5 + at}) for at in range(3)]
    other = records.hlog_line("load.look.ok.service", 0.0, 0.25, {1_000_000: 1})
    text = (head + "".join(lines) + other).encode()
    counts: list[int] = []

    for at in range(0, len(text), 41):
        append(trial, "intervals.hlog", text[at : at + 41])
        counts += [int(row.counts.sum()) for row in trial.load.intervals([("load", "service")])]

    assert counts == [5, 6, 7]


def test_histograms_are_read_to_their_end_however_many_there_are(
    trial: FollowedTrial, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [records.hlog_line("load.look.ok.response", at / 4, 0.25, {1_000_000: 1}) for at in range(9)]
    append(trial, "intervals.hlog", "".join(lines).encode())
    monkeypatch.setattr(growing_file, "MOST_BYTES", 2 * len(lines[0]) + 9)

    assert [row.start_s for row in trial.load.intervals()] == [at / 4 for at in range(9)]


def test_rows_come_by_whole_chunks_and_only_those_that_went_wrong(trial: FollowedTrial) -> None:
    rows = [records.sample(seq, outcome=19 * (seq % 3 == 0)) for seq in range(30)]
    content = b"".join(records.chunk(b"LLS1", rows[at : at + 10]) for at in range(0, 30, 10))
    bad: list[int] = []

    for at in range(0, len(content), 333):
        append(trial, "samples.bin", content[at : at + 333])
        bad += [int(seq) for part in trial.load.bad_samples(is_wanted=True) for seq in part["seq"]]

    assert bad == list(range(0, 30, 3))


def test_rows_that_are_not_wanted_are_passed_over(trial: FollowedTrial) -> None:
    append(trial, "samples.bin", records.chunk(b"LLS1", [records.sample(0, outcome=19)]))
    assert list(trial.load.bad_samples(is_wanted=False)) == []

    append(trial, "samples.bin", records.chunk(b"LLS1", [records.sample(1, outcome=19)]))
    (later,) = trial.load.bad_samples(is_wanted=True)

    assert later["seq"].tolist() == [1]


def test_readings_come_with_their_series_and_seconds_since_the_load_began(trial: FollowedTrial) -> None:
    lines = [
        '{"t":1000005000,"source":"proc","metric":"rss_bytes","labels":{"pid":"7"},"unit":"bytes","value":3.5}',
        '{"t":2000005000,"source":"proc","metric":"rss_bytes","labels":{"pid":"7"},"unit":"bytes","value":null}',
        '{"t":3000005000,"source":"proc","metric":"rss_',
    ]
    append(trial, "readings.jsonl", "\n".join(lines).encode())

    first, second = trial.readings()

    assert (first[0].metric, first[0].unit, json.loads(first[0].labels)) == (
        "rss_bytes",
        "bytes",
        {"pid": "7"},
    )
    assert (first[1:], second[1:]) == ((1.0, 3.5), (2.0, None))
    assert first[0] is second[0]


def test_events_come_once_and_a_damaged_one_is_left_out(tmp_path: Path) -> None:
    with create_run(tmp_path / "run", records.study(), (), {}) as writer:
        followed = FollowedEvents(tmp_path / "run")
        assert [event["event"] for event in followed.new()] == ["created"]
        writer.event("warned", words="first")
        with (tmp_path / "run" / layout.EVENTS).open("ab") as file:
            file.write(b'{"event":"warned","words":"not ours","crc":"00000000"}\n')
        writer.event("warned", words="second")

    assert [event["words"] for event in followed.new()] == ["first", "second"]
    assert followed.new() == []
    assert [event["words"] for event in open_run(tmp_path / "run").events("warned")] == ["first", "second"]


def line_of(source: str, labels: dict[str, str], value: float) -> bytes:
    named = {"source": source, "metric": "m", "labels": labels, "unit": "", "value": value}
    return json.dumps({"t": T0, **named}, separators=(",", ":")).encode() + b"\n"


def test_series_that_come_once_each_are_all_read_and_few_are_remembered(
    trial: FollowedTrial, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "MOST_KNOWN", 10)
    append(trial, "readings.jsonl", b"".join(line_of("otlp", {"span": str(at)}, at) for at in range(95)))

    values = [value for _, _, value in trial.readings()]

    assert values == list(range(95))
    assert len(trial._known) <= 10


def test_sources_that_are_not_wanted_are_left_out_and_not_remembered(trial: FollowedTrial) -> None:
    lines = line_of("otlp", {"span": "1"}, 1.0) + line_of("proc", {"pid": "7"}, 2.0)
    append(trial, "readings.jsonl", lines)

    readings = list(trial.readings({"proc"}))

    assert [(reading.source, value) for reading, _, value in readings] == [("proc", 2.0)]
    assert len(trial._known) == 1
