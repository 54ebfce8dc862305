"""The first screen in lines: the page's own figures, within 79 columns and the rows that are left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from loadlens.follow.runs import Cell
from loadlens.follow.service import Course
from loadlens.follow.trial import Recent, TrialColumns
from loadlens.live import first_screen
from loadlens.live.followed import Followed
from loadlens.live.screen import Size, stacked
from loadlens.record import create_run
from tests import records
from tests.unit.ui.test_pages import write_live


def stream(role: str = "load", name: str = "orders", **columns: Sequence[float | None]) -> dict[str, Any]:
    """A stream of two seconds, then of last answers."""
    usual: dict[str, Any] = {f"{what}_per_s": [90.0, 97.0, 3.0] for what in ("due", "sent", "answered")}
    usual |= {"in_flight": [8.0, 7.5, 1.0], "p50_s": [0.08, 0.0816, None]}
    usual |= {"p95_s": [0.1, None, None], "p99_s": [None, None, None]}
    totals = {"issued": 1200, "dropped": 2, "waiting": 3, "failed_by": {}}
    totals |= {"unexpected_status": 0, "check_failed": 0}
    return {"role": role, "name": name, **usual, **columns, "totals": totals}


def recent(*streams: dict[str, Any], service: Sequence[Course] = ()) -> Recent:
    load = {
        "points": {"phase": ["measure", "measure", "drain"]},
        "streams": list(streams),
        "generator": {"busy": [0.5, 0.02, 0.9], "lag_p99_s": [0.001, 0.000158, None]},
    }
    return Recent(load, list(service))


def cells(*states: tuple[str, int, str]) -> list[Cell]:
    return [Cell(case, block, 1, state) for case, block, state in states]


def test_the_last_second_of_load_is_shown_and_the_last_answers_are_none() -> None:
    shown = first_screen.load_lines(recent(stream()))

    assert shown == [
        "  per second due 97.0 /s     sent 97.0 /s    answered 97.0 /s ▇█",
        "  response   p50 81.6 ms     p95 too few     p99 too few      █·",
        "  requests   in flight 7.50  sent 1,200      not sent 5       ██",
        "  failures   none",
        "  generator  ● keeps up: busy 2 %, late 158 µs at p99",
    ]


def test_rates_of_several_loads_are_added_and_their_percentiles_are_not() -> None:
    other = stream(name="search", p50_s=[0.001, 0.002, None])
    probe = stream("probe", "health", p50_s=[0.001, 0.003, None])

    shown = first_screen.load_lines(recent(stream(), other, probe))

    assert shown[0].startswith("  per second due 194 /s")
    assert [line[2:12].strip() for line in shown[1:4]] == ["orders", "search", "probe"]
    assert [line.split("p50 ")[1][:7] for line in shown[1:4]] == ["81.6 ms", "2.00 ms", "3.00 ms"]


def test_failures_are_named_by_kind_the_most_frequent_first() -> None:
    failing = stream()
    failing["totals"] |= {"failed_by": {"timeout": 3}, "unexpected_status": 1200}

    assert "  failures   ▲ unexpected status 1,200 · timed out 3" in first_screen.load_lines(recent(failing))


def test_series_of_the_service_share_lines_and_one_that_ended_is_left_out() -> None:
    service = [
        Course("busiest thread", "share", (0.5, 0.98)),
        Course("accept queue", "", (0.0, 3.0)),
        Course("gone", "", (1.0, None, None, None)),
        Course("db_pool_connections_active_of_the_shop", "", (2.0,)),
    ]

    assert first_screen.service_lines(service) == [
        "  busiest thread          98.0 % ▅█      accept queue                 3 ▁█",
        "  db_pool_c..f_the_shop        2 █",
    ]


def test_one_line_holds_what_the_screen_does() -> None:
    line = first_screen.in_one_line(recent(stream(), service=[Course("accept queue", "", (3.0,))]))

    assert line == (
        "per second due 97.0 /s, sent 97.0 /s, answered 97.0 /s; response p50 81.6 ms, p95 too few, "
        "p99 too few; requests in flight 7.50, sent 1,200, not sent 5; failures none; "
        "generator ● keeps up: busy 2 %, late 158 µs at p99; accept queue 3"
    )


def test_the_highest_levels_stay_where_there_is_no_room_for_all() -> None:
    def level(users: int, rate: float) -> dict[str, Any]:
        known = {"value": rate, "marked": False}
        figures = {"throughput_per_s": known, "p50_s": {"value": 0.02, "marked": True}}
        return {
            "case": f"u{users}",
            "name": f"{users} users",
            "figures": [{**figures, "p99_s": {"value": None}}],
        }

    levels = [level(1, 50.0), level(2, 100.0), {"case": "u4", "name": "4 users", "figures": []}]
    states = cells(("u1", 1, "complete"), ("u2", 1, "complete"), ("u4", 1, "running"))

    shown = first_screen.level_lines(levels, states, rows=3)

    assert shown[1:] == [
        "  2 users        ████████████    100 /s  20.0 ms ○    undecided    ● valid",
        "  4 users                                                          ▶ runs",
    ]
    assert "██████         50.0 /s" in first_screen.level_lines(levels, states, rows=9)[1]


def test_cases_fill_a_line_each_or_a_line_per_block_or_are_counted() -> None:
    planned = cells(
        ("a", 1, "complete"), ("b", 1, "invalid"), ("c", 1, "running"),
        ("a", 2, "planned"), ("b", 2, "planned"),
    )  # fmt: skip
    names = {"a": "users=1", "b": "users=2"}

    assert first_screen.grid_lines(planned, names, rows=3) == ["  ●○ users=1", "  ■○ users=2", "  ▶  c"]
    assert first_screen.grid_lines(planned, names, rows=2) == ["  block 1 ●■▶", "  block 2 ○○"]
    assert first_screen.grid_lines(planned, names, rows=1) == [
        "  2 ○ planned · 1 ● valid · 1 ■ invalid · 1 ▶ runs"
    ]


def test_a_narrow_terminal_has_shorter_histories_and_names_and_no_bars() -> None:
    service = [Course("busiest thread", "share", (0.5, 0.98)), Course("accept queue", "", (0.0, 3.0))]
    figure = {"value": 0.02, "marked": True}
    rate = {"value": 100.0, "marked": False}
    figures = {"throughput_per_s": rate, "p50_s": figure, "p99_s": {"value": None}}
    level = {"case": "u1", "name": "1 user", "figures": [figures]}

    assert first_screen.load_lines(recent(stream()), 59)[:3] == [
        "  per second due 97.0 /s  sent 97.0 /s  answered 97.0 /s ▇█",
        "  response   p50 81.6 ms  p95 too few  p99 too few █·",
        "  requests   in flight 7.50  sent 1,200  not sent 5 ██",
    ]
    assert first_screen.service_lines(service, 59) == [
        "  busiest thread   98.0 % ▅█   accept queue          3 ▁█",
    ]
    assert first_screen.service_lines(service[:1], 40) == ["  busiest thread          98.0 % ▅█"]
    assert first_screen.level_lines([level], cells(("u1", 1, "complete")), 9, 59)[1:] == [
        "  1 user          100 /s  20.0 ms ○  undecided  ● valid",
    ]


@pytest.mark.parametrize("columns", [59, 79])
@pytest.mark.parametrize("rows", [5, 12, 23, 60])
def test_nothing_is_wider_or_higher_than_the_terminal(rows: int, columns: int) -> None:
    wide = stream(name="a-load-with-a-long-name", p99_s=[1234.5, 1234.5, None])
    for rate in ("due_per_s", "sent_per_s", "answered_per_s"):
        wide[rate] = [1_234_567.0] * 3
    service = [Course("a_metric_with_a_very_long_name_of_its_own", "bytes", (1e12,) * 17)] * 20
    shown = recent(wide, wide, wide, stream("probe"), service=service)
    many = cells(*((f"case-{number}", block, "complete") for number in range(200) for block in (1, 2, 3)))
    size = Size(columns, rows)

    lines = stacked(
        [
            "x" * 200,
            *first_screen.load_lines(shown, columns),
            *first_screen.service_lines(service, columns),
        ],
        lambda left: first_screen.grid_lines(many, {}, left, columns),
        ["  so far " + "words " * 60],
        size,
    )

    assert len(lines) <= rows
    assert max(map(len, lines)) <= columns


@contextmanager
def running(run: Path) -> Iterator[None]:
    """A record whose trial is under load: two seconds of it."""
    planned = records.trials(records.study())[0]
    with create_run(run, records.study(), (planned,), {"command": ["loadlens", "run", "x"]}) as writer:
        trial = writer.trial(planned)
        writer.event("trial_started", **trial.name, position=1)
        trial.write_plan(records.plan().to_json())
        trial.started(t0_monotonic_ns=5_000, t0_unix_ns=9)
        write_live(trial.live)
        yield


def test_the_terminal_shows_the_columns_of_the_page(tmp_path: Path) -> None:
    run, followed = tmp_path / "run", Followed(tmp_path / "run")
    followed.look(0.0, is_loading=True)  # before there is a record
    with running(run):
        followed.look(5.0, is_loading=True)
        page = TrialColumns(run, records.case().slug, "block-1", "")
        page.look()

    seen, whole = followed.recent, page.whole()
    assert seen is not None
    assert whole["points"]["start_s"] == [0.0, 1.0]
    assert {name: seen.load[name] for name in ("points", "streams", "generator")} == {
        name: whole[name] for name in ("points", "streams", "generator")
    }


def test_the_record_is_read_once_per_second_of_load_and_left_alone_between_trials(tmp_path: Path) -> None:
    run, followed = tmp_path / "run", Followed(tmp_path / "run")
    with running(run):
        followed.look(5.0, is_loading=False)
        assert followed.recent is None
        followed.look(5.5, is_loading=True)
        assert followed.recent is None
        followed.look(6.0, is_loading=True)
        assert followed.recent is not None
