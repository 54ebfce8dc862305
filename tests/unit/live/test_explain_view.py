"""The live view of a search: what stands where after each event."""

from __future__ import annotations

import io
from dataclasses import replace

from loadlens.live.explain_view import LINE_EVERY_S, SearchPrinter, SearchState, lines
from loadlens.model.study import PlannedTrial, Purpose
from loadlens.model.trial import TrialStatus
from loadlens.model.workload import Closed
from loadlens.run import progress as events
from loadlens.run.time_left import Remaining
from tests.unit.live.test_run_view import planned as planned_of_study

LEFT = Remaining(50.0, 50.0, 50.0)


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


def test_levels_so_far_stand_beside_what_runs_now() -> None:
    shown = lines(
        after(
            ended(1, 88.0),
            ended(2, 99.6),
            events.TrialStarted(planned(4), 3, 3, 1, LEFT),
            events.Step("starting services"),
        ),
        110.0,
    )

    assert shown[2] == "  trial 1: 4 users"
    assert shown[3] == "  now    starting services"
    assert shown[4] == "  so far 1 user 88.0/s · 2 users 99.6/s"
    assert shown[-1] == "  Ctrl-C gives the answer so far"


def test_discoveries_and_the_last_provisional_answer_are_shown_whole() -> None:
    long = "12 /s with 1 user, mean 80 ms, the service uses 0.97 of 2 cores. The capacity is not reached yet"
    shown = lines(
        after(
            events.Found("found process 7 (app) (off: --no-pid)"),
            events.Provisional("one request alone takes 80 ms"),
            events.Provisional(long),
        ),
        110.0,
    )

    assert shown[3] == "  found process 7 (app) (off: --no-pid)"
    assert shown[4] == f"  provisional: {long}"
    assert not any("alone" in line for line in shown)


def test_a_level_that_was_ended_early_shows_no_rate() -> None:
    shown = lines(after(ended(8, 12.0, TrialStatus.ABORTED)), 110.0)

    assert shown[3] == "  so far 8 users aborted"


def test_a_budget_that_is_passed_leaves_the_bar_full() -> None:
    assert lines(after(), 300.0)[1] == f"200 of 90 s ▕{'█' * 30}▏"


def test_single_requests_and_frequent_probes_are_no_levels() -> None:
    look = events.TrialEnded(planned(1, "look"), 1, 1, 1, TrialStatus.COMPLETE, (), 50.0, 0, False, LEFT)
    dense = events.TrialStarted(planned(1, "dense"), 2, 2, 1, LEFT)

    shown = lines(after(look, dense), 110.0)

    assert not any(line.startswith("  so far") for line in shown)
    assert shown[2] == "  trial 1: 1 user, frequent probes"


def test_a_load_off_a_terminal_gives_a_line_after_some_seconds_of_silence() -> None:
    out, now = io.StringIO(), [0.0]
    printer = SearchPrinter(90.0, out, lambda: now[0])
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
    printer = SearchPrinter(90.0, out, lambda: 0.0)

    printer.tell(ended(4, 12.0))
    printer.tell(events.Provisional("12 /s with 4 users"))
    printer.tell(ended(8, 12.0, TrialStatus.INVALID))

    lines_printed = out.getvalue().splitlines()
    assert len(lines_printed) == 2
    assert lines_printed[0].endswith("provisional: 12 /s with 4 users")
    assert "invalid" in lines_printed[1]
