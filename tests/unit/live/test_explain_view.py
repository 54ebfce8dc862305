"""The live view of a search: what stands where after each event."""

from __future__ import annotations

from loadlens.live.explain_view import SearchState, lines
from loadlens.model.trial import TrialStatus
from loadlens.run import progress as events
from loadlens.run.time_left import Remaining
from tests.unit.live.test_run_view import planned

LEFT = Remaining(50.0, 50.0, 50.0)


def after(*received: events.Event) -> SearchState:
    state = SearchState("explain http://127.0.0.1:8080: /work", 90.0, began=100.0)
    for event in received:
        state.take(event, 100.0)
    return state


def ended(name: str, rate: float, status: TrialStatus = TrialStatus.COMPLETE) -> events.TrialEnded:
    return events.TrialEnded(planned(name), 1, 1, 1, status, (), rate, 0, False, LEFT)


def test_the_budget_is_a_bar() -> None:
    shown = lines(after(), 145.0)

    assert shown[0] == "explain http://127.0.0.1:8080: /work"
    assert shown[1] == f"45 of 90 s ▕{'█' * 15}{' ' * 15}▏"


def test_levels_so_far_stand_beside_what_runs_now() -> None:
    name = "ladder users=4"
    shown = lines(
        after(
            ended("ladder users=1", 88.0),
            ended("ladder users=2", 99.6),
            events.TrialStarted(planned(name), 3, 3, 1, LEFT),
            events.Step("starting services"),
        ),
        110.0,
    )

    assert shown[2] == f"  trial 1   {name}"
    assert shown[3] == "  now    starting services"
    assert shown[4] == "  so far ladder users=1 88.0/s   ladder users=2 99.6/s"
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
    assert " ".join(" ".join(shown[4:6]).split()) == f"provisional: {long}"
    assert not any("alone" in line for line in shown)


def test_a_level_that_was_ended_early_shows_no_rate() -> None:
    shown = lines(after(ended("ladder users=8", 12.0, TrialStatus.ABORTED)), 110.0)

    assert shown[3] == "  so far ladder users=8 aborted"


def test_a_budget_that_is_passed_leaves_the_bar_full() -> None:
    assert lines(after(), 300.0)[1] == f"200 of 90 s ▕{'█' * 30}▏"
