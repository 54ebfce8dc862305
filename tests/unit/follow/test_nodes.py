"""Intervals of two machines added up to those of one: expected sums are counted by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from loadlens.follow.nodes import NodesOverTime
from loadlens.model.counters import Cell, Counters
from loadlens.record import FollowedLoad


def told(
    folder: Path, *intervals: tuple[float, float, int], phase: str = "measure", busy: float = 0.5, **more: Any
) -> None:
    """Write intervals with begin, length and number of answers; one more is in flight at the end of each."""
    folder.mkdir(exist_ok=True)
    with open(folder / "counters.jsonl", "a") as file:
        for start_s, length_s, ok in intervals:
            bounds = {"start_s": start_s, "length_s": length_s, "phase": phase}
            counts = {"due": ok + 1, "issued": ok + 1, "answered": ok, "ok": ok, "in_flight": 1, **more}
            generator = {"busy": [busy], "stalled_s": [0.01], "lag_p99_s": start_s}
            rows = [
                {**bounds, "stream": "load", **counts, "status": {"200": ok}},
                {**bounds, "stream": "probe", "due": 1, "issued": 1, "answered": 1, "ok": 1},
                {**bounds, "stream": None, "generator": generator},
            ]
            file.writelines(json.dumps(row) + "\n" for row in rows)


def nodes(*folders: Path) -> NodesOverTime:
    return NodesOverTime({folder.name: FollowedLoad(folder) for folder in folders}, ["load"])


def sums(counters: Counters) -> list[tuple[float, float, int]]:
    return [(row.start_s, row.length_s, row.ok) for row in counters.of("load", "warmup", "measure", "drain")]


def test_intervals_of_two_machines_are_added_up_as_far_as_both_have_told(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    both = nodes(first, second)
    told(first, (0.0, 0.25, 10), (0.25, 0.25, 20), (0.5, 0.25, 30))
    told(second, (0.0, 0.25, 1))

    early, _ = both.take([])
    told(second, (0.25, 0.25, 2), (0.5, 0.25, 3))
    late, _ = both.take([])

    assert sums(early) == [(0.0, 0.25, 11)]
    assert sums(late) == [(0.25, 0.25, 22), (0.5, 0.25, 33)]
    assert [row.in_flight for row in late.of("load", "measure")] == [2, 2]
    assert late.of("load", "measure")[0].status == {"200": 22}
    assert [row.busy for row in late.generator] == [(0.5, 0.5), (0.5, 0.5)]


def test_an_interval_without_its_last_line_waits_for_it(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    both = nodes(first, second)
    told(first, (0.0, 0.25, 10))
    told(second, (0.0, 0.25, 1))
    whole = (second / "counters.jsonl").read_text()
    (second / "counters.jsonl").write_text(whole[: whole.rfind('"generator"')])

    torn, _ = both.take([])
    (second / "counters.jsonl").write_text(whole)
    mended, _ = both.take([])

    assert sums(torn) == []
    assert sums(mended) == [(0.0, 0.25, 11)]


def test_a_machine_that_cuts_less_often_sets_the_bounds_and_phases_stay_apart(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    both = nodes(first, second)
    told(first, (0.0, 0.25, 1), (0.25, 0.25, 2), phase="warmup")
    told(first, (0.5, 0.25, 4), (0.75, 0.25, 8))
    told(second, (0.0, 0.5, 16), phase="warmup")
    told(second, (0.5, 0.5, 32))

    counters, _ = both.take([])

    assert sums(counters) == [(0.0, 0.5, 19), (0.5, 0.5, 44)]
    assert [row.phase for row in counters.of("load", "warmup", "measure")] == ["warmup", "measure"]


def test_a_sum_has_connections_bytes_and_times_by_step_of_all_machines(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    both = nodes(first, second)
    cell = {"count": 1, "response_sum_s": 0.25, "service_sum_s": 0.125}
    told(first, (0.0, 1.0, 1), opened=2, bytes_out=30, bytes_in_wire=500, cells={"0.ok": cell})
    told(second, (0.0, 1.0, 1), opened=3, bytes_out=10, cells={"0.ok": cell, "1.ok": cell})

    [row] = both.take([])[0].of("load", "measure")

    assert (row.opened, row.bytes_out, row.bytes_in_wire) == (5, 40, 500)
    assert row.cell(0, "ok") == Cell(count=2, response_sum_s=0.5, service_sum_s=0.25)
    assert row.cell(1, "ok") == Cell(count=1, response_sum_s=0.25, service_sum_s=0.125)


def test_threads_of_a_machine_that_cuts_more_often_are_counted_once(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    both = nodes(first, second)
    told(first, (0.0, 0.25, 1), busy=0.8)
    told(first, (0.25, 0.25, 1), busy=0.4)
    told(second, (0.0, 0.5, 1), busy=0.1)

    [row] = both.take([])[0].generator

    assert row.busy == pytest.approx((0.6, 0.1))  # the mean of 0.8 and 0.4
    assert row.stalled_s == (0.02, 0.01)  # 0.01 s in each interval


def test_a_phase_that_begins_and_ends_at_once_has_its_counts(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    both = nodes(first, second)
    for folder in (first, second):
        told(folder, (0.0, 0.0, 1), phase="warmup")

    counters = both.take([])[0]

    assert [row.ok for row in counters.of("load", "warmup")] == [2]
    assert [row["per_s"] for row in both.rows()] == [None, None]


def test_a_machine_that_fell_silent_is_not_waited_for_and_its_late_counts_are_kept(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    both = nodes(first, second)
    told(second, (0.0, 1.0, 1))
    told(first, *((float(second), 1.0, 10) for second in range(8)))

    without, _ = both.take([])
    told(second, (1.0, 1.0, 2), (2.0, 1.0, 4))
    told(first, (8.0, 1.0, 10))
    late, _ = both.take([])

    assert [ok for _, _, ok in sums(without)] == [11, 10, 10, 10, 10, 10, 10, 10]
    assert sums(late) == [(8.0, 1.0, 16)]
    assert late.of("load", "measure")[0].in_flight == 2  # the silent machine still has one


def test_each_machine_has_a_row_with_its_counts_and_its_last_second(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    both = nodes(first, second)
    told(first, (0.0, 1.0, 100), *((1.0 + quarter / 4, 0.25, 10) for quarter in range(4)))
    second.mkdir()

    both.take([])

    silent = {"name": "b", "due": 0, "ok": 0, "bad": 0, "per_s": None, "late_s": None, "busy": None}
    assert both.rows() == [
        {"name": "a", "due": 145, "ok": 140, "bad": 0, "per_s": 40.0, "late_s": 1.75, "busy": 0.5},
        silent,
    ]
