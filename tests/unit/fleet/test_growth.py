"""Live files of a node, sent in pieces: the copy is at any time the beginning of what the engine wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from loadlens.fleet import growth
from loadlens.fleet.growth import Failures, Growth, add
from loadlens.follow import load as follow_load
from loadlens.follow.load import LoadOverTime
from loadlens.model.trial import CHUNK_HEAD, SAMPLE, Outcome
from loadlens.record.follow import FollowedLoad
from loadlens.record.sample_rows import write_live
from tests import records


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    node, here = tmp_path / "node", tmp_path / "here"
    node.mkdir()
    here.mkdir()
    return node, here


def write(node: Path, name: str, content: bytes) -> None:
    with open(node / name, "ab") as file:
        file.write(content)


def beat(grown: Growth, here: Path) -> int:
    """Send what comes next; returns its size in bytes."""
    pieces = grown.next()
    for piece in pieces:
        add(here, piece.to_json())
    return sum(len(piece.content) for piece in pieces)


def test_what_an_engine_appends_is_copied_with_a_bound_per_beat(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growth, "MOST_BYTES", 1000)
    node, here = folders
    grown = Growth(node)
    histograms, counters = bytes(range(256)) * 9, "stück\n".encode() * 100

    nothing = beat(grown, here)
    write(node, "intervals.hlog", histograms)
    write(node, "counters.jsonl", counters)
    sizes = [beat(grown, here) for _ in range(4)]
    write(node, "counters.jsonl", b"more\n")
    beat(grown, here)

    assert nothing == 0
    assert sizes == [1000, 1000, 1000, 2304 + 700 - 3000]
    assert (here / "intervals.hlog").read_bytes() == histograms
    assert (here / "counters.jsonl").read_bytes() == counters + b"more\n"


def test_counters_come_after_the_histograms_that_were_written_before_them(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growth, "MOST_BYTES", 10)
    node, here = folders
    grown = Growth(node)
    write(node, "intervals.hlog", b"h" * 25)
    write(node, "counters.jsonl", b"c" * 5)

    for _ in range(2):
        beat(grown, here)
    write(node, "intervals.hlog", b"i" * 5)
    write(node, "counters.jsonl", b"d" * 5)

    assert not (here / "counters.jsonl").exists()
    beat(grown, here)
    assert (here / "intervals.hlog").read_bytes() == b"h" * 25
    assert (here / "counters.jsonl").read_bytes() == b"c" * 5
    beat(grown, here)
    assert (here / "intervals.hlog").read_bytes() == b"h" * 25 + b"i" * 5
    assert (here / "counters.jsonl").read_bytes() == b"c" * 5 + b"d" * 5


def test_a_piece_that_does_not_continue_the_copy_is_left_out(folders: tuple[Path, Path]) -> None:
    _, here = folders
    add(here, {"name": "counters.jsonl", "at": 0, "content": "one"})

    add(here, {"name": "counters.jsonl", "at": 6, "content": "three"})
    add(here, {"name": "../plan.json", "at": 0, "content": "two"})

    assert (here / "counters.jsonl").read_bytes() == b"one"
    assert not (here.parent / "plan.json").exists()


def failures(here: Path) -> list[int]:
    """Numbers of the requests in the file of failures."""
    rows = FollowedLoad(here, "failures.bin").bad_samples(is_wanted=True)
    return [int(seq) for chunk in rows for seq in chunk["seq"]]


def test_the_first_three_failures_of_each_kind_status_and_step_are_sent(folders: tuple[Path, Path]) -> None:
    node, here = folders
    grown = Growth(node)
    kinds: list[dict[str, int]] = [
        {},
        {"outcome": 19, "status": 0},
        {"outcome": 1, "status": 503},
        {"outcome": 1, "status": 500},
        {"outcome": 1, "status": 500, "step": 1},
    ]
    # each kind in turn, in whole chunks of 7 of which each beat sees some bytes more
    rows = [records.sample(seq, **kinds[seq % 5]) for seq in range(70)]
    content = b"".join(records.chunk(b"LLS1", rows[at : at + 7]) for at in range(0, 70, 7))

    for at in range(0, len(content), 100):
        write(node, "samples.bin", content[at : at + 100])
        for piece in grown.next(has_failures=True):
            add(here, piece.to_json())

    assert failures(here) == [seq for seq in range(15) if seq % 5]


def test_requests_before_the_first_failure_are_passed_over(folders: tuple[Path, Path]) -> None:
    node, here = folders
    grown = Growth(node)
    write(node, "samples.bin", records.chunk(b"LLS1", [records.sample(0, outcome=19)]))
    assert grown.next(has_failures=False) == []

    write(node, "samples.bin", records.chunk(b"LLS1", [records.sample(1, outcome=19)]))
    for piece in grown.next(has_failures=True):
        add(here, piece.to_json())

    assert failures(here) == [1]


def test_samples_that_are_damaged_end_the_search(folders: tuple[Path, Path]) -> None:
    node, _ = folders
    content = bytearray(records.chunk(b"LLS1", [records.sample(0, outcome=19)]))
    content[20] ^= 1
    write(node, "samples.bin", bytes(content))

    assert Growth(node).next(has_failures=True) == []


def test_a_bound_of_kinds_leaves_out_new_kinds_alone(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    node, _ = folders
    for module in (growth, follow_load):
        monkeypatch.setattr(module, "MOST_KINDS", 1)
    ends = [Outcome.TIMEOUT, Outcome.RESET, Outcome.TIMEOUT, Outcome.TIMEOUT, Outcome.TIMEOUT]
    rows = [records.sample(seq, outcome=outcome) for seq, outcome in enumerate(ends)]
    write_live(node / "samples.bin", rows, SAMPLE)

    sent = Failures(node / "samples.bin").next(is_wanted=True).content
    load = LoadOverTime(records.plan())
    for failed in FollowedLoad(node).bad_samples(is_wanted=True):
        load.take_bad(failed)

    assert CHUNK_HEAD.unpack(sent[: CHUNK_HEAD.size])[1] == 3  # rows
    assert [(kind[1], number) for kind, number in load._samples.items() if number] == [("timeout", 3)]
