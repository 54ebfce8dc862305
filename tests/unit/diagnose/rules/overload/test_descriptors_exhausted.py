"""Open files that run out: by their number, by the words of the server, and not where nothing fails."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loadlens import diagnose
from loadlens.diagnose.rules.overload.descriptors_exhausted import assess
from loadlens.model.facts import Curve, EndedLevel, FailureMode, LogSign, OpenFiles
from loadlens.model.finding import Absent, Finding, Grade, NotAssessed
from tests.unit.diagnose.build import curve, facts, found, process, step

SAYS = LogSign("descriptors", 700, "Too many open files", "answers")


def failing(
    opened: float | None = 118.0,
    *,
    share: float = 0.7,
    before: float = 0.0,
    sign: LogSign | None = SAYS,
    trials: int = 3,
    **more: Any,
) -> Curve:
    """A process that may open 120 files, at 4 users and at 32, of whom a share fails."""
    watched = replace(process(0.1), descriptors=opened, descriptor_limit=None if opened is None else 120.0)

    def level(users: int, failed: float, **others: Any) -> Any:
        count = round(1_000 * failed)
        mode = FailureMode("b", "unexpected_status", 500, count, 0.002, 0.9, 0.3)
        return step(
            users,
            60.0,
            0.3,
            trials=trials,
            issued=1_000,
            failed_count=count,
            failures=(mode,) if count else (),
            **others,
        )

    signs = () if sign is None else (sign,)
    top = {"processes": (watched,), "log_signs": signs, **more}
    light = replace(watched, descriptors=None if opened is None else 24.0)
    return curve(level(4, before, processes=(light,)), level(32, share, **top))


def test_the_words_of_answers_and_the_number_of_open_files_are_strong() -> None:
    finding = found(assess(facts(failing())))

    assert finding.grade is Grade.STRONG
    assert finding.impact == pytest.approx(0.7)
    assert "118 of 120" in finding.statement
    assert "Too many open files" in finding.explanation
    assert len(finding.statement) <= 90
    assert all(len(e.chip) <= 32 for e in finding.evidence)


@pytest.mark.parametrize(("opened", "grade"), [(108.0, Grade.STRONG), (107.0, Grade.SUSPECTED)])
def test_nine_tenths_of_the_limit_are_open(opened: float, grade: Grade) -> None:
    """0.9 x 120 = 108. Where fewer are open, the words may be about something else."""
    assert found(assess(facts(failing(opened)))).grade is grade


def test_it_holds_for_every_curve_on_which_the_server_says_so() -> None:
    mode = FailureMode("b", "unexpected_status", 500, 64, 0.002, 0.9, 0.3)
    ended = EndedLevel(64, 100, (mode,), (SAYS,))
    other = replace(curve(step(4, 60.0, 0.3), step(8, 60.0, 0.3)), label="other", ended=(ended,))

    finding = found(assess(facts(failing(), other)))

    assert finding.curves == (failing().label, "other")


def test_words_alone_are_less_sure() -> None:
    finding = found(assess(facts(failing(None))))

    assert finding.grade is Grade.PROBABLE
    assert finding.unknown


@pytest.mark.parametrize(("count", "grade"), [(70, Grade.PROBABLE), (69, Grade.SUSPECTED)])
def test_words_must_account_for_a_tenth_of_the_failures(count: int, grade: Grade) -> None:
    assert found(assess(facts(failing(None, sign=replace(SAYS, count=count))))).grade is grade


def test_the_number_alone_is_enough_where_requests_fail() -> None:
    answer = assess(facts(failing(sign=None)))

    assert isinstance(answer, Finding)
    assert answer.grade is Grade.STRONG


def test_many_open_files_without_failures_are_no_finding() -> None:
    assert isinstance(assess(facts(failing(120.0, share=0.0))), Absent)


def test_failures_with_few_open_files_and_without_words_are_no_finding() -> None:
    answer = assess(facts(failing(60.0, sign=None)))

    assert isinstance(answer, Absent)
    assert "60 of 120 descriptors" in answer.reason


@pytest.mark.parametrize(("before", "fires"), [(0.35, True), (0.36, False)])
def test_failures_double_with_the_load(before: float, fires: bool) -> None:
    assert isinstance(assess(facts(failing(before=before))), Finding if fires else Absent)


def test_of_several_processes_the_fullest_counts() -> None:
    """100 of 1,000 are more files than 58 of 60, and fewer of what may be open."""
    processes = tuple(
        replace(process(0.1, label=label), descriptors=opened, descriptor_limit=limit)
        for label, opened, limit in (("p", 100.0, 1_000.0), ("q", 58.0, 60.0))
    )

    assert "58 of 60" in found(assess(facts(failing(sign=None, processes=processes)))).statement


def test_a_port_that_a_connection_did_not_find_leaves_it_open() -> None:
    ports = LogSign("ports", 5, "Cannot assign requested address")

    assert found(assess(facts(failing(log_signs=(SAYS, ports))))).grade is Grade.PROBABLE


def test_it_says_why_requests_fail_at_once() -> None:
    finding = found(assess(facts(failing())))
    at_once = replace(finding, rule="requests.in-flight-limit", grade=Grade.STRONG, impact=1.0)

    folded = diagnose.fold([finding, at_once])

    assert [each.explained_by for each in folded] == [None, "descriptors.exhausted"]


def test_a_load_that_does_not_say_what_became_of_requests_is_not_assessed() -> None:
    assert isinstance(assess(facts(curve(step(4, 40.0, 0.1, issued=None)))), NotAssessed)


def test_a_level_that_was_ended_shows_the_open_files_as_well() -> None:
    """All levels that give figures have no failure: the load was ended at the first that had some."""
    mode = FailureMode("b", "unexpected_status", 500, 40, 0.002, 0.9, 0.3)
    ended = EndedLevel(64, 100, (mode,), (), open_files=OpenFiles("web gunicorn 7", 119.0, 120.0))
    room = replace(ended, open_files=OpenFiles("web gunicorn 7", 60.0, 120.0))
    well = failing(share=0.0, sign=None)

    by_words = replace(ended, open_files=None, log_signs=(replace(SAYS, count=40),))

    finding = found(assess(facts(replace(well, ended=(ended,)))))

    assert finding.statement == "40 % of requests fail at 64 users: descriptors run out, 119 of 120 are open"
    assert isinstance(assess(facts(replace(well, ended=(room,)))), Absent)
    assert isinstance(assess(facts(replace(failing(share=0.01, sign=None), ended=(by_words,)))), Finding)
