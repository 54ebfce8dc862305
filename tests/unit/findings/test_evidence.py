"""Signals of figures that come from arrays: their truth values are other objects than True and False."""

from __future__ import annotations

import json

import numpy as np
import pytest

from loadlens.findings.common import evidence as weigh
from loadlens.model.finding import Counter, Finding, Grade, NotMeasured
from tests.unit.findings.build import curve, estimate, step

RATE = np.float64(3.0)


@pytest.mark.parametrize("limit", [2.0, 4.0])
def test_what_was_compared_in_an_array_is_said_as_such(limit: float) -> None:
    said = weigh.stated("rate", limit < RATE, text="a rate")
    beyond = weigh.at_least("rate", estimate(RATE), limit, text="a rate")
    other = weigh.rival("another", "its rate", limit < RATE)

    passed = [said.evidence.passed, beyond.evidence.passed, other.ruled_out]
    assert json.dumps(passed) == json.dumps([limit < 3.0] * 3)


def test_a_contradiction_that_an_array_showed_removes_the_finding() -> None:
    contradicted = weigh.stated("rate", RATE > 4.0, text="a rate")

    assert weigh.grade_of([contradicted], [], cap=Grade.STRONG) is None


def test_a_rival_that_an_array_showed_removes_the_finding() -> None:
    found = weigh.rival("another", "its rate", RATE > 4.0)

    assert weigh.grade_of([], [found], cap=Grade.STRONG) is None


MET = weigh.stated("rate", True, text="it is met")
LACKS = weigh.stated("cpu", None, text="it was not read")
FAILS = weigh.stated("wait", False, text="nobody waits")
OUT = weigh.rival("generator", "it was in time", True)
IN = weigh.rival("disk", "it is busy", False)


@pytest.mark.parametrize(
    ("signals", "rivals", "silence", "contradiction", "reason"),
    [
        ([LACKS, FAILS], [IN], "a: nobody waits", "a: nobody waits", "nobody waits"),
        ([MET, LACKS], [OUT, IN], "a: it was not read", "a: disk, it is busy", "it is busy"),
        ([MET, LACKS], [OUT], "a: it was not read", "a", "it was not read"),
        ([MET], [OUT, IN], "a: disk, it is busy", "a: disk, it is busy", "it is busy"),
        ([MET], [OUT], "a", "a", ""),
    ],
)
def test_a_silent_rule_names_what_contradicts_it_and_each_way_has_its_place_for_what_is_missing(
    signals: list[weigh.Signal], rivals: list[Counter], silence: str, contradiction: str, reason: str
) -> None:
    assert weigh.silence("a", signals, rivals) == silence
    assert weigh.contradiction("a", signals, rivals) == contradiction
    assert weigh.reason(signals, rivals) == reason


def finding(label: str, grade: Grade, impact: float) -> Finding:
    return Finding("any", grade, impact, label, "", "", (), (), "", "", curves=(label,))


def test_the_strongest_speaks_for_the_curves_of_all() -> None:
    """By grade first, then by what is at stake; the first of equals."""
    found = [
        finding("a", Grade.SUSPECTED, 0.9),
        finding("b", Grade.STRONG, 0.2),
        finding("c", Grade.STRONG, 0.5),
        finding("d", Grade.STRONG, 0.5),
    ]

    spoken = weigh.for_all(found)

    assert spoken.scope == "c"
    assert spoken.curves == ("a", "b", "c", "d")


def test_the_first_that_was_found_speaks_in_the_order_of_the_looks() -> None:
    weak, strong = finding("a", Grade.SUSPECTED, 0.1), finding("b", Grade.STRONG, 0.9)

    assert weigh.first([None, weak, strong]) is weak
    assert weigh.first([None, None]) is None


def test_a_figure_that_is_not_known_counts_as_nothing() -> None:
    known = [weigh.point(estimate(3.0)), weigh.point(NotMeasured("x", "not read")), weigh.point(None)]

    assert known == [3.0, 0.0, 0.0]


def test_a_finding_seen_on_several_curves_explains_where_it_bounds_them() -> None:
    light, full = curve(label="light"), curve(label="full")

    spoken = weigh.seen_on(finding("light", Grade.STRONG, 0.5), [light, full, light], bounds=[full])

    assert spoken.scope == "light, full"
    assert spoken.curves == ("full",)


@pytest.mark.parametrize(("ruled_out", "left"), [(False, None), (None, None), (True, True)])
def test_a_rival_that_is_left_open_takes_nothing_away(ruled_out: bool | None, left: bool | None) -> None:
    assert weigh.left_open(weigh.rival("generator", "late", ruled_out)).ruled_out is left


def test_what_could_not_be_looked_at_says_why() -> None:
    assert weigh.parted([1, "no probe", 2, "no level"]) == ([1, 2], ["no probe", "no level"])


@pytest.mark.parametrize(
    ("is_closed", "short", "long"), [(True, "8 users", "8 users"), (False, "8/s", "8 requests/s")]
)
def test_a_load_is_told_in_users_or_requests(is_closed: bool, short: str, long: str) -> None:
    level = step(8, 40.0, 0.2)
    asked = curve(level, is_closed=is_closed)

    assert weigh.load_of(asked, level) == short
    assert weigh.load_with_unit(asked, level) == long


def test_a_long_label_loses_its_end() -> None:
    """24 characters at most, two of which say that something is missing."""
    assert weigh.short_label("x" * 24) == "x" * 24
    assert weigh.short_label("x" * 25) == "x" * 22 + ".."
