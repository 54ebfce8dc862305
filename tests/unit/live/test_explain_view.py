"""The live view of a search: what stands where after each event."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

from loadlens.live.explain_view import SearchState, search_printer
from loadlens.live.explain_view import lines as lines_of
from loadlens.live.run_view import LINE_EVERY_S
from loadlens.live.screen import Size
from loadlens.model.study import PlannedTrial, Purpose
from loadlens.model.trial import TrialStatus
from loadlens.model.workload import Closed
from loadlens.run import progress as events
from loadlens.run.time_left import Remaining
from tests.unit.live.test_run_view import NOWHERE
from tests.unit.live.test_run_view import planned as planned_of_study

LEFT = Remaining(50.0, 50.0, 50.0)


def lines(state: SearchState, at: float) -> list[str]:
    """The picture without a record."""
    return lines_of(state, NOWHERE, at, Size())


def after(*received: events.Event) -> SearchState:
    state = SearchState("explain http://127.0.0.1:8080: /work", 90.0, began=100.0)
    for event in received:
        state.take(event, 100.0)
    return state


def planned(users: int, purpose: Purpose = "load") -> PlannedTrial:
    trial = planned_of_study()
    return replace(trial, case=replace(trial.case, workload=Closed(users=users), purpose=purpose))


def ended(users: int, rate: float, status: TrialStatus = TrialStatus.COMPLETE) -> events.TrialEnded:
    return events.TrialEnded(planned(users), 1, 1, 1, status, (), rate, 0, False, LEFT)


def test_the_budget_is_a_bar() -> None:
    shown = lines(after(), 145.0)

    assert shown[0] == "explain http://127.0.0.1:8080: /work"
    assert shown[1] == f"45 of 90 s ▕{'█' * 15}{' ' * 15}▏"


def test_the_level_stands_beside_what_it_does_now() -> None:
    shown = lines(
        after(events.TrialStarted(planned(4), 3, 3, 1, LEFT), events.Step("starting services")), 110.0
    )

    assert shown[2] == "  now    4 users: starting services"
    assert shown[-1] == "  Ctrl-C gives the answer so far"


def test_the_last_provisional_answer_is_shown_whole_and_discoveries_in_a_row_each() -> None:
    long = "12 /s with 1 user, mean 80 ms, the service uses 0.97 of 2 cores. The capacity is not reached yet"
    shown = lines(
        after(
            events.Found("found process 7 (app) (off: --no-pid)"),
            events.Found(f"found {'a probe ' * 20}"),
            events.Provisional("one request alone takes 80 ms"),
            events.Provisional(long),
        ),
        110.0,
    )

    assert shown[3] == "  found process 7 (app) (off: --no-pid)"
    assert (len(shown[4]), shown[4][-2:]) == (79, "..")
    assert " ".join(line.strip() for line in shown[5:7]) == f"so far {long}"
    assert not any("alone" in line for line in shown)


def test_a_budget_that_is_passed_leaves_the_bar_full() -> None:
    assert lines(after(), 300.0)[1] == f"200 of 90 s ▕{'█' * 30}▏"


def test_a_trial_that_is_no_level_says_what_it_is_for() -> None:
    shown = lines(after(events.TrialStarted(planned(1, "dense"), 2, 2, 1, LEFT)), 110.0)

    assert shown[2] == "  now    1 user, frequent probes: starting"


def test_a_load_off_a_terminal_gives_a_line_after_some_seconds_of_silence() -> None:
    out, now = io.StringIO(), [0.0]
    printer = search_printer(90.0, Path("/nowhere"), out, lambda: now[0])
    stream = {
        "last": {"rps": 12.0, "p99_s": None},
        "so_far": {"failed": 0, "unexpected_status": 0, "check_failed": 0},
    }
    load = events.Load({"phase": "measure", "elapsed_s": 4.0, "total_s": 10.0, "streams": [stream]})

    printer.tell(events.TrialStarted(planned(4), 1, 1, 1, LEFT))
    for at in (1.0, LINE_EVERY_S - 0.1, LINE_EVERY_S, LINE_EVERY_S + 0.1, 2 * LINE_EVERY_S):
        now[0] = at
        printer.tell(load)

    first, second = out.getvalue().splitlines()
    assert first.endswith("9 of 90 s: 4 users: 4 of 10 s   12.0 /s   failed 0")
    assert "18 of 90 s: 4 users" in second


def test_a_valid_level_off_a_terminal_gives_only_its_provisional_line() -> None:
    out = io.StringIO()
    printer = search_printer(90.0, Path("/nowhere"), out, lambda: 0.0)

    printer.tell(ended(4, 12.0))
    printer.tell(events.Provisional("12 /s with 4 users"))
    printer.tell(ended(8, 12.0, TrialStatus.INVALID))

    lines_printed = out.getvalue().splitlines()
    assert len(lines_printed) == 2
    assert lines_printed[0].endswith("provisional: 12 /s with 4 users")
    assert "invalid" in lines_printed[1]
