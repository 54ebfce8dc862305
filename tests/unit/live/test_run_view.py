"""The live view of a study: what stands where after each event."""

from __future__ import annotations

import time
from pathlib import Path

from loadlens.live.followed import Followed
from loadlens.live.run_view import RunState
from loadlens.live.run_view import lines as lines_of
from loadlens.live.screen import Size
from loadlens.model.study import Case, PlannedTrial
from loadlens.model.topology import Entry
from loadlens.model.trial import TrialStatus
from loadlens.model.workload import Closed, Connection
from loadlens.run import progress as events
from loadlens.run.time_left import Remaining

NOWHERE = Followed(Path("/nowhere"))
NOON = time.mktime((2026, 1, 1, 12, 0, 0, 0, 0, -1))


def planned(name: str = "alone workers=2 users=10") -> PlannedTrial:
    case = Case(
        name=name,
        slug="case",
        experiment="alone",
        levels=(),
        params=(),
        services=(),
        entry=Entry(url="http://127.0.0.1:1"),
        scenarios=(),
        workload=Closed(users=10),
        connection=Connection(),
        timeout_ns=1,
        warmup_ns=0,
        duration_ns=1,
        probes=(),
        fresh="trial",
        reset=None,
        trials=3,
    )
    return PlannedTrial(case, block=1, position=23, seed=1)


def lines(state: RunState, at: float) -> list[str]:
    """The picture without a record."""
    return lines_of(state, NOWHERE, at, Size())


def state_after(*received: events.Event) -> RunState:
    state = RunState()
    for event in (events.RunStarted(Path("runs/x"), "x", "what is it?", 132, 0, 3480.0), *received):
        state.take(event, NOON)
    return state


def trial(remaining: Remaining) -> events.TrialStarted:
    return events.TrialStarted(planned(), number=23, trials=132, attempt=1, remaining=remaining)


def test_the_time_left_is_a_range_once_trials_have_been_seen() -> None:
    shown = lines(state_after(trial(Remaining(2880, 2700, 3120))), NOON)

    assert shown[1] == "trial 23 of 132   alone workers=2 users=10   block 1 of 3   48 min left (45–52)"
    assert shown[2].endswith("done 12:45–12:52")


def test_before_that_it_is_called_planned() -> None:
    assert "planned 48 min more" in lines(state_after(trial(Remaining(2880))), NOON)[1]


def test_the_time_left_runs_down_between_events() -> None:
    assert "46 min left" in lines(state_after(trial(Remaining(2880, 2700, 3120))), NOON + 120)[1]


def test_an_invalid_trial_is_counted_apart_with_its_reason() -> None:
    ended = events.TrialEnded(
        planned(), 23, 132, 1, TrialStatus.INVALID, ("reset not verified",), 1.0, 0, True, Remaining(60)
    )

    assert "  done   0 ● valid   1 ■ invalid, will be repeated: reset not verified" in lines(
        state_after(trial(Remaining(60)), ended), NOON
    )


def test_names_from_outside_cannot_steer_the_terminal() -> None:
    hostile = events.TrialStarted(planned("\x1b[2Jgone"), 1, 1, 1, Remaining(60))

    assert "\x1b" not in "".join(lines(state_after(hostile), NOON))


def under_load(**so_far: int) -> events.Load:
    counts = {"unexpected_status": 0, "check_failed": 0, "failed": 0, **so_far}
    stream = {"last": {"rps": 9.1, "p99_s": 1.31}, "so_far": counts}
    return events.Load({"phase": "measure", "elapsed_s": 12.0, "total_s": 20.0, "streams": [stream]})


def test_no_line_is_wider_than_eighty_columns_in_the_usual_case() -> None:
    shown = lines(state_after(trial(Remaining(2880, 2700, 3120)), under_load()), NOON)

    assert max(map(len, shown)) <= 80
    assert "  now    12 of 20 s   9.10 /s   p99 1.31 s   failed 0" in shown


def test_a_narrow_terminal_leaves_out_the_block_and_shortens_the_name_and_the_bar() -> None:
    state = state_after(trial(Remaining(2880, 2700, 3120)))

    shown = lines_of(state, NOWHERE, NOON, Size(59))

    assert shown[1] == "trial 23 of 132   alone wo.. users=10   48 min left (45–52)"
    assert shown[2].endswith("done 12:45–12:52")
    assert len(shown[2]) == 59
    assert shown[-1] == "  record runs/x   stop: Ctrl-C"


def test_answers_that_were_not_as_expected_are_shown_for_what_they_are() -> None:
    load = under_load(unexpected_status=3, check_failed=1200)

    shown = lines(state_after(trial(Remaining(2880, 2700, 3120)), load), NOON)

    expected = "9.10 /s   p99 1.31 s   unexpected status 3   check failed 1,200   failed 0"
    assert f"now    12 of 20 s   {expected}" in " ".join(line.strip() for line in shown)
