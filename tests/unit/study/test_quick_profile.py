"""Loads that change over time: what legs mean, what they add up to, and how they are written."""

from __future__ import annotations

import pytest

from loadlens.model.profile import Leg, Profile, ReplayText, Segment, ramp, shaped
from loadlens.model.workload import Closed, Open, Replay, Think
from loadlens.present import load_text as in_words
from loadlens.study.parse import load_grammar
from loadlens.units import UnitError

S = 1_000_000_000
MS = 1_000_000
UP_AND_DOWN = Profile((Segment(10 * S, 0.0, 20.0), Segment(5 * S, 20.0, 20.0), Segment(10 * S, 20.0, 0.0)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("30s:100", (Leg(30 * S, 100.0, None),)),
        ("1m30s:2.5/s, 500ms:0", (Leg(90 * S, 2.5, True), Leg(500 * MS, 0.0, None))),
        (["10s:600/m", "0s:5/s"], (Leg(10 * S, 10.0, True), Leg(0, 5.0, True))),
        ("10s:0/s", (Leg(10 * S, 0.0, True),)),
        ("10:1k", (Leg(10 * S, 1000.0, None),)),
        ([{"duration": "30s", "target": 100}], (Leg(30 * S, 100.0, None),)),  # as k6 has it
    ],
)
def test_a_leg_is_a_duration_and_a_level(text: object, expected: tuple[Leg, ...]) -> None:
    assert load_grammar.stages(text) == expected


@pytest.mark.parametrize(
    ("parse", "text", "message"),
    [
        (load_grammar.stages, "30s", "'30s' has no level behind its time"),
        (load_grammar.stages, "30s:", "'30s:' has no level behind its time"),
        (load_grammar.stages, ":100", "':100' has no time before its level"),
        (load_grammar.stages, "100/s:30s", "'100/s:30s' has its level before its time"),
        (load_grammar.stages, "30s:many", "'many' is no level: a number of users, or a rate"),
        (load_grammar.stages, "30s:5,", "nothing between two commas of stages, or behind the last"),
        (load_grammar.stages, "soon:3", "'soon' is not a duration"),
        (load_grammar.stages, "3s:-1", "'-1' is not a rate"),
        (load_grammar.stages, "3s:0/x", "'1/x' is not a rate"),
        (load_grammar.stages, {"a": 1}, "wanted stages, got a mapping"),
        (load_grammar.steps, "0s:1", "steps last longer than 0 s"),
        (load_grammar.bursts, "1s:1", "bursts have something between them"),
        (load_grammar.pace, "0.5ms", "a pace is 1 ms or more, got '0.5ms'"),
        (load_grammar.think, "uniform:3s,1s", "uniform think time from '3s' down to a shorter one"),
        (load_grammar.think, "uniform:3s", "uniform think time without its longest"),
        (load_grammar.think, "uniform:", "uniform think time without its shortest"),
        (load_grammar.think, {"exponential": None}, "exponential think time without its mean"),
        (load_grammar.pace, "exponential:", "exponential pace without its mean"),
        (load_grammar.pace, "exponential", "exponential pace without its mean"),
        (load_grammar.think, "exponential:1s,2s", "exponential think time with 2 times: it has 1"),
        (
            load_grammar.think,
            "soon",
            "'soon' is no law of a think time: a time alone, uniform and exponential are",
        ),
        (load_grammar.replay, "", "a replay without a file"),
        (load_grammar.replay, "a, speed=0", "a speed is a number above 0, got '0'"),
        (load_grammar.replay, "a, from=last", "a replay starts at 0 or from=first, got 'last'"),
        (load_grammar.replay, "a, column=b, column=c", "'column=c' says nothing about a replay"),
    ],
)
def test_what_cannot_be_read_is_named(parse, text: object, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UnitError) as caught:
        parse(text)

    assert caught.value.message == message


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("exponental:1s", "did you mean exponential:1s?"),
        ("Uniform:1s,2s", "did you mean uniform:1s,2s?"),
        ("poisson:1s", "did you mean exponential:1s?"),  # a Poisson process has exponential gaps
        ("unifrom:1s", "uniform:100ms,300ms"),
        ("fixed:1s", "1s"),
        ("gauss:1s", "150ms, uniform:100ms,300ms or exponential:150ms"),
        ({"exp": "1s"}, "did you mean exponential:1s?"),
        ({"gauss": ["1s", "2s"]}, "150ms, uniform:100ms,300ms or exponential:150ms"),
    ],
)
def test_an_unknown_law_brings_the_nearest_one_written_out(text: object, hint: str) -> None:
    with pytest.raises(UnitError) as caught:
        load_grammar.think(text)

    assert caught.value.example == hint


def test_a_stage_without_its_level_is_completed_with_its_own_time() -> None:
    with pytest.raises(UnitError) as caught:
        load_grammar.stages("45s:")

    assert caught.value.example == "45s:100 for 100 users, 45s:100/s for a rate, 45s:0 for none"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("150ms", Think("fixed", ns=150 * MS)),
        (0, Think()),
        ("uniform:100ms,300ms", Think("uniform", low_ns=100 * MS, high_ns=300 * MS)),
        ("exponential:1s", Think("exponential", mean_ns=S)),
        ({"uniform": ["100ms", 1]}, Think("uniform", low_ns=100 * MS, high_ns=S)),
        ({"exponential": "1s"}, Think("exponential", mean_ns=S)),
    ],
)
def test_a_pause_is_written_as_text_or_as_a_mapping(text: object, expected: Think) -> None:
    assert load_grammar.think(text) == expected


def test_a_replay_is_a_file_with_a_column_a_speed_and_a_start() -> None:
    assert load_grammar.replay("due.txt") == ReplayText("due.txt")
    assert load_grammar.replay("a.csv, column=at, speed=2x, from=first") == ReplayText(
        "a.csv", "at", 2.0, True
    )


def test_stages_are_ramps_from_where_the_load_stands() -> None:
    legs = load_grammar.stages("10s:20, 5s:20, 0s:5, 10s:0")

    from_nothing = shaped("stages", legs, users=None, rate=None)
    from_users = shaped("stages", legs, users=8, rate=None)
    from_rate = shaped("stages", legs, users=None, rate=2.5)

    after = (Segment(5 * S, 20.0, 20.0), Segment(10 * S, 5.0, 0.0))
    assert not from_nothing.is_open
    assert from_nothing.profile.segments == (Segment(10 * S, 0.0, 20.0), *after)
    assert from_users.profile.segments[0] == Segment(10 * S, 8.0, 20.0)
    assert from_rate.is_open
    assert from_rate.profile.segments[0] == Segment(10 * S, 2.5, 20.0)


def test_steps_hold_and_bursts_repeat() -> None:
    steps = shaped("steps", load_grammar.steps("1s:5/s,2s:7/s"), users=None, rate=None)
    bursts = shaped("bursts", load_grammar.bursts("1s:5/s,2s"), users=None, rate=None)

    assert steps.profile == Profile((Segment(S, 5.0, 5.0), Segment(2 * S, 7.0, 7.0)))
    assert bursts.profile == Profile((Segment(S, 5.0, 5.0), Segment(2 * S, 0.0, 0.0)), repeats=True)


@pytest.mark.parametrize(
    ("shape", "text", "users", "rate", "message"),
    [
        ("stages", "1s:5/s, 1s:7", None, None, "some stages are rates and others are numbers of users"),
        ("stages", "1s:5/s", 3, None, "some stages are rates and others are numbers of users"),
        ("stages", "1s:5", 3, 4.0, "a load is closed (users) or open (rate), not both"),
        ("stages", "1s:2.5", None, None, "a stage of 2.5 users"),
        ("stages", "1s:0, 2s:0", None, None, "no stage above 0: nothing would ever be asked"),
        ("stages", "0s:5", None, None, "stages that take no time"),
        ("steps", "1s:5", 3, None, "users alongside steps, which say every level"),
        ("bursts", "1s:5/s,1s", None, 3.0, "rate alongside bursts, which say every level"),
    ],
)
def test_levels_that_do_not_fit_are_refused(shape, text, users, rate, message: str) -> None:  # type: ignore[no-untyped-def]
    legs = {"stages": load_grammar.stages, "steps": load_grammar.steps, "bursts": load_grammar.bursts}[shape](
        text
    )

    with pytest.raises(UnitError) as caught:
        shaped(shape, legs, users=users, rate=rate)

    assert caught.value.message == message


def test_the_integral_of_a_profile_is_its_area() -> None:
    # A triangle of 100, a rectangle of 100, a triangle of 100; then nothing.
    assert [UP_AND_DOWN.integral(s) for s in (0, 5, 10, 15, 20, 25, 99)] == [0, 25, 100, 200, 275, 300, 300]
    assert ramp(10.0, 4 * S).integral(6) == 20 + 20  # and stays
    bursts = Profile((Segment(S, 5.0, 5.0), Segment(3 * S, 1.0, 1.0)), repeats=True)
    assert bursts.integral(9.0) == 8 + 8 + 5
    assert UP_AND_DOWN.mean(5, 15) == (200 - 25) / 10


def test_a_load_is_level_where_it_does_not_change() -> None:
    assert UP_AND_DOWN.is_level(10 * S, 15 * S)
    assert not UP_AND_DOWN.is_level(10 * S - 1, 15 * S)
    assert not UP_AND_DOWN.is_level(10 * S, 15 * S + 1)
    assert ramp(5.0, S).is_level(S, 100 * S)
    assert not Profile((Segment(S, 5.0, 5.0), Segment(S, 1.0, 1.0)), repeats=True).is_level(0, S)


def test_what_is_due_in_a_part_is_known_but_for_a_part_of_a_file() -> None:
    replay = Replay("a", "d", arrivals=30, last_ns=9 * S, peak_per_s=5.0)

    assert Open(rate_per_s=4.0).due_between(1.0, 3.5) == 10
    assert Open(profile=UP_AND_DOWN).due_between(5.0, 15.0) == 175
    assert Open(replay=replay).due_between(0.0, 10.0) == 30
    assert Open(replay=replay).due_between(0.0, 5.0) is None
    assert [Open(profile=UP_AND_DOWN).peak_per_s, Open(replay=replay).peak_per_s] == [20.0, 5.0]


def test_loads_are_named_as_they_are() -> None:
    long = Profile(tuple(Segment(S, float(n), float(n)) for n in range(1, 8)))

    assert (
        in_words.size(Open(profile=UP_AND_DOWN))
        == "0 to 20/s in 10 s, 20/s for 5 s, 20 to 0/s in 10 s (constant)"
    )
    assert in_words.size(Closed(users=7, profile=long)).endswith("4 users for 1 s, 3 more")
    bursts = Profile((Segment(S, 5.0, 5.0), Segment(3 * S, 0.0, 0.0)), repeats=True)
    assert in_words.size(Open(profile=bursts, arrivals="poisson")) == (
        "5/s for 1 s, 0/s for 3 s, again and again (poisson)"
    )
    assert in_words.size(Open(replay=Replay("a", "d", 1200, S, 5.0, speed=2.0))) == (
        "replay of 1,200 due times at 2 times the speed"
    )
    assert in_words.size(Closed(users=1, ramp_ns=S), noun="connection") == "1 connection, ramp 1 s"
    assert in_words.pauses(Closed(users=1, pace=Think("exponential", mean_ns=S))) == "pace 1 s (exponential)"
