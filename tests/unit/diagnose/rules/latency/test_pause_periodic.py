"""Standstills that keep a period, and those that do not or have another cause."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loadlens.diagnose.rules.latency.pause_periodic import assess
from loadlens.model.facts import Facts, Step
from loadlens.model.finding import Absent, Finding, Grade, NotAssessed
from tests.unit.diagnose.build import generator, probe
from tests.unit.diagnose.standing import IRREGULAR, regular, run


def evidence(finding: Finding, signal: str) -> tuple[float, float, float]:
    assessed = next(e for e in finding.evidence if e.signal == signal)
    assert assessed.value is not None
    assert assessed.low is not None
    assert assessed.high is not None
    return assessed.value, assessed.low, assessed.high


def test_pauses_at_equal_distances_are_found_with_period_and_length() -> None:
    finding = assess(run(regular(2.3), 0.25))

    assert isinstance(finding, Finding)
    assert finding.statement == "Nothing is answered for 250 ms every 2.30 s: 11 % of the time"
    value, low, high = evidence(finding, "pause.period")
    assert value == pytest.approx(2.3)
    assert low < 2.3 < high
    assert high - low > 1e-4  # the first answer after each comes up to 2 ms later
    value, low, high = evidence(finding, "pause.length")
    assert value == pytest.approx(0.25)  # the distance of answers, 2 ms, is taken off
    assert low < 0.25 < high
    value, low, high = evidence(finding, "pause.share")
    assert value == pytest.approx(0.25 / 2.3)
    assert low < 0.25 / 2.3 < high
    assert finding.impact == value


def test_a_period_is_seen_across_trials_that_hold_one_or_two_beats() -> None:
    finding = assess(run(regular(7.3), 0.25))

    assert isinstance(finding, Finding)
    assert evidence(finding, "pause.period")[0] == pytest.approx(7.3)


@pytest.mark.parametrize("scale", [0.5, 4.0])
def test_other_times_give_the_same_finding(scale: float) -> None:
    built = run(regular(2.3 * scale, first=0.7 * scale, until=80 * scale), 0.25 * scale, scale=scale)

    finding = assess(built)

    assert isinstance(finding, Finding)
    assert evidence(finding, "pause.period")[0] == pytest.approx(2.3 * scale)


def test_pauses_at_random_keep_no_period() -> None:
    answer = assess(run(IRREGULAR, 0.25))

    assert isinstance(answer, Absent)
    assert "keep no period" in answer.reason


def test_three_pauses_are_too_few() -> None:
    answer = assess(run([1.0, 3.0, 5.0], 0.25))

    assert isinstance(answer, Absent)
    assert "a period needs four" in answer.reason


def test_one_pause_at_the_same_moment_of_each_trial_is_the_trials() -> None:
    # A trial begins every 14 s: so do these.
    assert isinstance(assess(run([2.0, 16.0, 30.0, 44.0, 58.0], 0.25)), Absent)


def test_beats_that_were_mostly_not_there_are_no_period() -> None:
    # Four at a distance of 0.5 s in one trial of five: of 100 beats 96 are missing.
    assert isinstance(assess(run([1.0, 1.5, 2.0, 2.5], 0.25)), Absent)


def test_each_trial_with_processes_of_its_own_has_its_own_phase() -> None:
    moments = [
        *regular(1.5, until=10),
        *(14.4 + t for t in regular(1.5, until=9)),
        *(28.2 + t for t in regular(1.5, until=9)),
    ]

    finding = assess(run(moments, 0.2, lives=True, trials=3, dense=False))

    assert isinstance(finding, Finding)
    assert evidence(finding, "pause.period")[0] == pytest.approx(1.5)


def test_a_generator_that_was_late_takes_the_finding_away() -> None:
    built = run(regular(2.3), 0.25, dense=False, trials=1)
    late = replace(built.curves[0].steps[0], generator=generator(verdict="limit", busy=0.99))

    assert isinstance(assess(Facts(4, (replace(built.curves[0], steps=(late,)),))), Absent)


def test_the_generator_is_looked_at_where_the_service_stood_still() -> None:
    beats = regular(1.5, first=14.7, until=24.0)  # all in the second trial, where requests wait
    late = generator(verdict="limit", busy=0.99)

    in_time = assess(run(beats, 0.25, trials=2, dense=False, queued=True))
    too_late = assess(run(beats, 0.25, trials=2, dense=False, queued=True, generator=late))

    assert isinstance(in_time, Finding)
    assert isinstance(too_late, Absent)


def test_cheap_requests_are_said_to_stop_only_where_some_were_sent() -> None:
    built = run(regular(2.3), 0.25)
    watched = tuple(replace(s, probes=(probe(0.002),)) for s in built.curves[0].steps)

    without = assess(built)
    beside = assess(replace(built, curves=(replace(built.curves[0], steps=watched),)))

    assert isinstance(without, Finding)
    assert isinstance(beside, Finding)
    assert without.explanation.startswith("No request of the load is answered; 11 % of the requests")
    assert beside.explanation.startswith("Cheap requests stop as well")


def scraped(built: Facts, every: float, *, first: float) -> Facts:
    """The same, with its metrics read at equal distances from the begin of each trial on."""

    def read(level: Step) -> Step:
        moments = tuple(
            replace(w, scrapes_s=tuple(w.begin_s + first + every * n for n in range(int(10 / every))))
            for w in level.standstills
        )
        return replace(level, standstills=moments)

    steps = tuple(read(s) for s in built.curves[0].steps)
    return replace(
        built, curves=(replace(built.curves[0], steps=steps),), dense=tuple(read(d) for d in built.dense)
    )


def test_pauses_that_begin_as_we_read_the_metrics_are_a_suspicion() -> None:
    # Trials begin every 14 s, so every 2 s is at the same moments of each.
    built = run(regular(2.0, first=1.001), 0.25)

    in_phase = assess(scraped(built, 1.0, first=0.0))
    beside = assess(scraped(built, 1.0, first=0.5))

    assert isinstance(in_phase, Finding)
    assert isinstance(beside, Finding)
    assert (in_phase.grade, beside.grade) == (Grade.SUSPECTED, Grade.STRONG)
    assert any("begin as we read the service's metrics" in e.text for e in in_phase.evidence)


@pytest.mark.parametrize("every", [0.13, 0.037])
def test_metrics_that_are_read_all_the_time_begin_no_pause(every: float) -> None:
    # By chance a quarter, or three quarters, of all pauses have a reading at their beginning.
    finding = assess(scraped(run(regular(2.3), 0.25), every, first=0.0))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.STRONG


def test_five_pauses_are_probable_and_six_are_sure() -> None:
    five = assess(run(regular(4.85, first=4.31, until=24.0), 0.25, trials=3, dense=False))
    six = assess(run(regular(4.85, first=4.31, until=29.0), 0.25, trials=3, dense=False))

    assert isinstance(five, Finding)
    assert isinstance(six, Finding)
    assert (five.grade, six.grade) == (Grade.PROBABLE, Grade.STRONG)


def test_a_usual_period_of_scrapes_is_no_strong_finding() -> None:
    scraped, free = assess(run(regular(5.0), 0.25)), assess(run(regular(4.7), 0.25))

    assert isinstance(scraped, Finding)
    assert isinstance(free, Finding)
    assert (scraped.grade, free.grade) == (Grade.PROBABLE, Grade.STRONG)


@pytest.mark.parametrize("steal", [None, 0.5])
def test_time_that_other_machines_took_or_that_was_not_read_makes_it_no_strong_finding(
    steal: float | None,
) -> None:
    built = run(regular(2.3), 0.25)
    steps = tuple(replace(s, steal=steal) for s in built.curves[0].steps)

    finding = assess(replace(built, curves=(replace(built.curves[0], steps=steps),)))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.PROBABLE


def test_a_period_that_may_be_that_of_scrapes_is_no_strong_finding() -> None:
    # A line through 4.0, 9.1, 14.05, 19.15 rises by 5.04 a beat, known to 4.30 * 0.047 / sqrt(5) = 0.09.
    finding = assess(run([4.0, 9.1, 14.05, 19.15], 0.25, trials=2, dense=False))

    assert isinstance(finding, Finding)
    assert evidence(finding, "pause.period")[0] == pytest.approx(5.04)
    assert finding.grade is Grade.PROBABLE


def test_without_standstills_the_limit_is_printed() -> None:
    answer = assess(run([], 0.25))

    assert isinstance(answer, Absent)
    assert (
        answer.reason == "no stretch of 72.0 ms or more without an answer in 50 s; shorter ones not assessed"
    )


def test_a_trial_that_would_have_shown_long_standstills_alone_is_not_counted() -> None:
    built = run([], 0.25, trials=1)
    (watch,) = built.curves[0].steps[0].standstills
    blunt = replace(built.curves[0].steps[0], standstills=(replace(watch, shortest_s=0.55),))

    answer = assess(replace(built, curves=(replace(built.curves[0], steps=(blunt,)),)))

    assert isinstance(answer, Absent)
    assert (
        answer.reason == "no stretch of 72.0 ms or more without an answer in 10 s; shorter ones not assessed"
    )


def test_without_rows_of_requests_nothing_is_assessed() -> None:
    built = run(regular(2.3), 0.25, dense=False, trials=1)
    blind = replace(built.curves[0].steps[0], standstills=())

    assert isinstance(assess(Facts(4, (replace(built.curves[0], steps=(blind,)),))), NotAssessed)


def test_where_a_few_users_alone_were_there_nothing_is_assessed() -> None:
    built = run([], 0.25, dense=False, trials=1)
    watch = replace(built.curves[0].steps[0].standstills[0], shortest_s=float("inf"))
    blind = replace(built.curves[0].steps[0], standstills=(watch,))

    assert isinstance(assess(Facts(4, (replace(built.curves[0], steps=(blind,)),))), NotAssessed)
