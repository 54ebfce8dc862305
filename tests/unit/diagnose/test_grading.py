"""Signals of figures that come from arrays: their truth values are other objects than True and False."""

from __future__ import annotations

import json

import numpy as np
import pytest

from loadlens.diagnose import driver, grading
from loadlens.measure import figures
from loadlens.model.finding import Absent, Counter, Finding, Grade, NotMeasured
from loadlens.present import load_text
from tests.unit.diagnose.build import curve, estimate, facts, step

RATE = np.float64(3.0)


@pytest.mark.parametrize("limit", [2.0, 4.0])
def test_what_was_compared_in_an_array_is_said_as_such(limit: float) -> None:
    signal = grading.stated("rate", limit < RATE, text="a rate")
    beyond = grading.at_least("rate", estimate(RATE), limit, text="a rate")
    other = grading.rival("another", "its rate", limit < RATE)

    passed = [signal.evidence.passed, beyond.evidence.passed, other.ruled_out]
    assert json.dumps(passed) == json.dumps([limit < 3.0] * 3)


def test_a_contradiction_that_an_array_showed_removes_the_finding() -> None:
    contradicted = grading.stated("rate", RATE > 4.0, text="a rate")

    assert grading.grade_of([contradicted], [], cap=Grade.STRONG) is None


def test_a_rival_that_an_array_showed_removes_the_finding() -> None:
    counter = grading.rival("another", "its rate", RATE > 4.0)

    assert grading.grade_of([], [counter], cap=Grade.STRONG) is None


MET = grading.stated("rate", True, text="it is met")
LACKS = grading.stated("cpu", None, text="it was not read")
FAILS = grading.stated("wait", False, text="no request waits")
OUT = grading.rival("generator", "it was in time", True)
IN = grading.rival("disk", "it is busy", False)


def words(_: Grade) -> driver.Words:
    return driver.Words("3 wait", "", "", "", impact=0.5)


@pytest.mark.parametrize(
    ("signals", "rivals", "objection", "reason"),
    [
        ([LACKS, FAILS], [IN], "a: no request waits", "no request waits"),
        ([MET, LACKS], [OUT, IN], "a: disk, it is busy", "it is busy"),
        ([MET, LACKS], [OUT], "a", "it was not read"),
        ([MET], [OUT, IN], "a: disk, it is busy", "it is busy"),
        ([MET], [OUT], "a", ""),
    ],
)
def test_a_silent_rule_names_what_contradicts_it_and_a_missing_signal_contradicts_nothing(
    signals: list[grading.Signal], rivals: list[Counter], objection: str, reason: str
) -> None:
    assert driver.Claim("a", signals, rivals, words).objection == objection
    assert grading.reason(signals, rivals) == reason


def finding(label: str, grade: Grade, impact: float) -> Finding:
    return Finding("any", grade, impact, label, "", "", (), (), "", "", curves=(label,))


def test_the_strongest_speaks_for_the_curves_of_all() -> None:
    """By grade first, then by what is at stake; the first of equals."""
    findings = [
        finding("a", Grade.SUSPECTED, 0.9),
        finding("b", Grade.STRONG, 0.2),
        finding("c", Grade.STRONG, 0.5),
        finding("d", Grade.STRONG, 0.5),
    ]

    spoken = grading.for_all(findings)

    assert spoken.scope == "c"
    assert spoken.curves == ("a", "b", "c", "d")


def test_a_figure_that_is_not_known_counts_as_nothing() -> None:
    points = [figures.point(estimate(3.0)), figures.point(NotMeasured("x", "not read")), figures.point(None)]

    assert points == [3.0, 0.0, 0.0]


def test_a_finding_seen_on_several_curves_explains_where_it_bounds_them() -> None:
    light, full = curve(label="light"), curve(label="full")

    spoken = grading.seen_on(finding("light", Grade.STRONG, 0.5), [light, full, light], bounds=[full])

    assert spoken.scope == "light, full"
    assert spoken.curves == ("full",)


@pytest.mark.parametrize(("ruled_out", "left"), [(False, None), (None, None), (True, True)])
def test_a_rival_that_is_left_open_takes_nothing_away(ruled_out: bool | None, left: bool | None) -> None:
    assert grading.left_open(grading.rival("generator", "late", ruled_out)).ruled_out is left


def test_what_could_not_be_looked_at_says_why() -> None:
    assert driver.all_seen([1, "no probe", 2, "no level"]) == [1, 2]
    assert driver.all_seen(["no probe", "no level"]) == driver.Lacking("no probe")
    assert driver.all_seen([]) == driver.Lacking("no load curve")


def test_evidence_that_sets_no_grade_is_shown_in_place_of_the_signals() -> None:
    """A missing signal would make the finding a suspicion; here it is only shown."""
    claim = driver.Claim("a", [MET], [], words, evidence=[MET.evidence, LACKS.evidence])

    shown = driver.finding_of("any", claim)

    assert shown is not None
    assert shown.grade is Grade.STRONG
    assert [evidence.signal for evidence in shown.evidence] == ["rate", "cpu"]


def test_an_observation_that_suggests_nothing_leaves_the_next_one_to_speak() -> None:
    def claim(_: object, observation: str) -> driver.Claim | driver.Nothing:
        return (
            driver.Nothing("too little")
            if observation == "a"
            else driver.Claim(observation, [MET], [], words)
        )

    given = facts()

    spoken = driver.assessing("any", "it waits", lambda _: ["a", "b"], claim)(given)
    silent = driver.assessing("any", "it waits", lambda _: ["a"], claim)(given)

    assert isinstance(spoken, Finding)
    assert spoken.scope == "b"
    assert silent == Absent("any", "it waits", "too little")


@pytest.mark.parametrize(
    ("is_closed", "short", "long"), [(True, "8 users", "8 users"), (False, "8/s", "8 requests/s")]
)
def test_a_load_is_told_in_users_or_requests(is_closed: bool, short: str, long: str) -> None:
    level = step(8, 40.0, 0.2)
    asked = curve(level, is_closed=is_closed)

    assert load_text.load_of(asked, level) == short
    assert load_text.load_with_unit(asked, level) == long


def test_a_long_label_loses_its_end() -> None:
    """24 characters at most, two of which say that something is missing."""
    assert grading.short_label("x" * 24) == "x" * 24
    assert grading.short_label("x" * 25) == "x" * 22 + ".."
