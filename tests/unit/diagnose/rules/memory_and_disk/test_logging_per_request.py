"""Lines of a log that cost, lines that do not, and the comparison that decides."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loadlens.diagnose import assess as every_rule
from loadlens.diagnose.rules.memory_and_disk.logging_per_request import assess
from loadlens.model.facts import Curve, Logging
from loadlens.model.finding import Absent, Finding, Grade, NotAssessed
from tests.unit.diagnose.build import curve, facts, generator, process, step
from tests.unit.diagnose.storing import writes

ON, OFF = (("x", "a"),), (("x", "b"),)


def with_trials(built: Curve, *rates: float) -> Curve:
    """The highest level with these successes per second, trial by trial."""
    *others, top = built.steps
    return replace(built, steps=(*others, replace(top, throughput_trials=rates)))


def logged(**more: object) -> Curve:
    return writes(4096.0, line=200.0, label="on", levels=ON, **more)  # type: ignore[arg-type]


def silent(**more: object) -> Curve:
    return writes(0.0, line=0.0, label="off", levels=OFF, **more)  # type: ignore[arg-type]


def test_lines_that_storage_is_waited_for_are_suspected_and_no_more() -> None:
    finding = assess(facts(logged()))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.SUSPECTED
    assert "200" in finding.statement
    assert finding.unknown


@pytest.mark.parametrize(
    ("line", "kind"), [(30.0, Absent), (50.0, Finding), (4000.0, Finding), (9000.0, Absent)]
)
def test_a_line_has_forty_bytes_and_no_more_than_a_page(line: float, kind: type) -> None:
    assert isinstance(assess(facts(writes(12_000.0, line=line))), kind)


def test_lines_that_cost_nothing_to_be_seen_are_no_finding() -> None:
    answer = assess(facts(logged(waiting=0.01)))

    assert isinstance(answer, Absent)
    assert "waits for storage" in answer.reason


def test_a_log_that_does_not_grow_with_the_requests_is_none_of_theirs() -> None:
    assert isinstance(assess(facts(logged(more=(1.0, 3.0, 0.2)))), Absent)


def test_a_cost_that_nobody_could_see_is_not_assessed() -> None:
    answer = assess(facts(logged(waiting=None)))

    assert isinstance(answer, NotAssessed)
    assert "log off would decide" in answer.reason


def synced(**more: object) -> Curve:
    """Lines of 200 B, for each of which a thread sleeps until its page is on the disk; no other file."""
    watch = {"blocked": 0.8, "asleep": 0.8, "stalled": 0.02, "waiting": 0.06, "busy": 0.3, "stored": (0, 4)}
    watch |= more
    return writes(4096.0, line=200.0, label="on", **watch)  # type: ignore[arg-type]


def test_lines_are_the_cause_where_they_are_all_that_sleeping_threads_can_wait_for() -> None:
    finding = assess(facts(synced()))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.PROBABLE  # a file that was open for a moment was not seen
    assert finding.statement == "Requests wait 80 % of the time until their 200 B of log are on the disk"
    assert finding.impact == pytest.approx(0.8)
    assert all(rival.ruled_out for rival in finding.counter)


def test_where_the_kernel_counts_the_waiting_nobody_needs_to_look_at_threads() -> None:
    finding = assess(facts(synced(stalled=0.6, waiting=0.7, blocked=None, asleep=None)))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.PROBABLE
    assert finding.impact == pytest.approx(0.6)  # of the time all tasks were stalled


@pytest.mark.parametrize(
    "more",
    [
        {"stored": (2, 4)},  # a database besides the log
        {"stored": None},  # other files were not read
        {"stored": (0, 3)},  # at three levels: nine looks are too few
        {"read": 600.0 * 300},  # more than a sector a request is read
        {"faults": 30.0},  # a tenth of a page a request comes from storage
        {"blocked": 0.4, "asleep": 0.4},  # asleep less than half of the time
        {"blocked": 0.8, "asleep": 4.0},  # five at once, each no longer than alone: they wait for no one
        {"blocked": None, "asleep": None},
    ],
)
def test_where_threads_may_wait_for_something_else_lines_are_suspected_only(more: dict[str, object]) -> None:
    finding = assess(facts(synced(**more)))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.SUSPECTED


@pytest.mark.parametrize(("written", "grade"), [(8000.0, Grade.PROBABLE), (8400.0, Grade.SUSPECTED)])
def test_a_line_takes_its_page_and_one_of_the_file_system(written: float, grade: Grade) -> None:
    # two pages are 8,192 bytes; three are data of some file that was not seen
    built = writes(written, line=200.0, stored=(0, 4))

    finding = assess(facts(built))

    assert isinstance(finding, Finding)
    assert finding.grade is grade


def test_storage_that_lines_keep_busy_is_folded_under_them() -> None:
    verdict = every_rule(facts(synced()))

    by_rule = {finding.rule: finding for finding in verdict.findings}
    assert by_rule["logging.per-request"].explained_by is None
    assert by_rule["disk.bound"].explained_by == "logging.per-request"
    assert by_rule["saturation.plateau"].explained_by in ("disk.bound", "logging.per-request")


def test_a_comparison_shows_what_lines_cost() -> None:
    """300 a second with lines, 400 without: a quarter of the throughput."""
    finding = assess(facts(with_trials(logged(), 300, 301, 299), with_trials(silent(), 401, 399, 400)))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.PROBABLE  # a store that was changed would look just so
    assert finding.statement == "Lines of 200 B per request cost 25 % of the throughput"
    assert finding.counter[0].ruled_out is None
    assert finding.curves == ("on",)
    ratio = finding.evidence[0]
    assert ratio.value == pytest.approx(4 / 3, rel=1e-2)
    assert ratio.low is not None
    assert ratio.low > 1.05


@pytest.mark.parametrize("without", [(301.0, 300.0, 299.0), (250.0, 400.0, 330.0)])
def test_a_comparison_without_a_gain_clears_the_log(without: tuple[float, ...]) -> None:
    """Even where storage is waited for; a ratio whose interval reaches 1.05 confirms nothing."""
    answer = assess(facts(with_trials(logged(), 300, 301, 299), with_trials(silent(), *without)))

    assert isinstance(answer, Absent)
    assert "times as much" in answer.reason


@pytest.mark.parametrize("late", ["on", "off"])
def test_a_generator_that_held_one_of_them_up_tells_nothing_of_a_log(late: str) -> None:
    pair = {"on": with_trials(logged(), 300, 301, 299), "off": with_trials(silent(), 401, 399, 400)}
    *others, top = pair[late].steps
    slow = replace(top, generator=generator(verdict="limit"))
    pair[late] = replace(pair[late], steps=(*others, slow))

    answer = assess(facts(*pair.values()))

    assert isinstance(answer, Absent)
    assert "generator" in answer.reason


def test_curves_that_differ_in_more_than_one_factor_are_no_comparison() -> None:
    other = replace(silent(), levels=(("x", "b"), ("y", "1")))
    built = replace(logged(), levels=(("x", "a"), ("y", "2")))

    finding = assess(facts(with_trials(built, 300, 301, 299), with_trials(other, 401, 399, 400)))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.SUSPECTED


def test_curves_that_are_asked_something_else_are_no_comparison() -> None:
    """A request that reads instead of writing writes no line either, and is faster for another reason."""
    built = with_trials(silent(), 401, 399, 400)
    reads = tuple(
        replace(s, classes=tuple(replace(kind, request="GET /b") for kind in s.classes)) for s in built.steps
    )

    finding = assess(facts(with_trials(logged(), 300, 301, 299), replace(built, steps=reads)))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.SUSPECTED


def test_what_was_not_recorded_is_not_assessed() -> None:
    outside = assess(facts(curve(step(1, 5.0, 0.2))))
    older = assess(facts(curve(step(1, 5.0, 0.2, processes=(process(0.3),)))))

    assert isinstance(outside, NotAssessed)
    assert "--pid" in outside.reason
    assert isinstance(older, NotAssessed)


def in_the_log(*, rates: tuple[float, ...] = (40.0,) * 4, **more: object) -> Curve:
    """Users who mostly wait for the log's lock, which lets 40 requests per second through."""
    loads = zip((1, 2, 8, 32), rates, strict=True)
    *lower, top = (step(users, rate, users / rate, **more) for users, rate in loads)  # type: ignore[arg-type]
    calls = Logging(7.3, 8.0, "logging.Logger.info", "app.py:42")
    return curve(*lower, replace(top, logging=calls), think=0.0)


def test_threads_that_are_mostly_in_the_log_show_what_it_costs() -> None:
    answer = assess(facts(in_the_log()))

    assert isinstance(answer, Finding)
    assert answer.grade is Grade.PROBABLE  # it stands on one trial
    assert answer.statement == "The log holds requests up at 40.0 /s: 7.3 of 8 threads are in it at app.py:42"
    assert answer.impact == pytest.approx(7.3 / 8)


def test_it_explains_the_lock_that_the_log_takes() -> None:
    verdict = every_rule(facts(in_the_log()))

    folded = {finding.rule: finding.explained_by for finding in verdict.findings}
    assert folded["logging.per-request"] is None
    assert folded["saturation.plateau"] == "logging.per-request"


def test_a_log_is_no_limit_while_throughput_grows() -> None:
    assert isinstance(assess(facts(in_the_log(rates=(10.0, 20.0, 80.0, 320.0)))), NotAssessed)


def test_where_the_generator_is_the_limit_the_log_is_not() -> None:
    built = in_the_log(generator=generator(verdict="limit"))

    assert isinstance(assess(facts(built)), Absent)
