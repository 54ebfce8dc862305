"""Threads and open files that grow with requests, and those that came with users or a pool."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loadlens.diagnose.rules.memory_and_disk.drift_handles import assess
from loadlens.model.facts import Facts
from loadlens.model.finding import Absent, Finding, Grade, NotAssessed, Undecided
from loadlens.model.shapes import HandleGrowth
from tests.unit.diagnose.build import curve, estimate, process, step


def handles(**more: Any) -> HandleGrowth:
    """One open file more with each of 6,000 requests of 8 users at most."""
    built: dict[str, Any] = {
        "label": "a",
        "what": "open files",
        "trials": 6,
        "seconds": 30.0,
        "requests": 6_000,
        "begin": 20.0,
        "end": 6_020.0,
        "grown": 6_000.0,
        "fallen": 0.0,
        "slope": estimate(1.0, unit=""),
        "late": 1.0,
    }
    return HandleGrowth(**{**built, **more})


def record(*grown: HandleGrowth, **more: Any) -> Facts:
    own = replace(process(0.1), service="a", descriptors=6_020.0, descriptor_limit=66_020.0)
    built = curve(step(1, 200, 0.005, processes=(own,)), step(8, 200, 0.04, processes=(own,)), **more)
    return Facts(4, (replace(built, handles=grown),))


def test_files_that_each_request_leaves_open_are_named_with_when_the_limit_is_reached() -> None:
    finding = assess(record(handles()))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.PROBABLE  # a pool may be as large
    assert finding.statement == "Open files grow by one per request: 6,000 over 6,000 requests"
    assert finding.explanation == (
        "It had 20 at first and 6,020 in the end; at 200 /s the limit of 66,020 is reached in about 5 min."
    )  # 60,000 at 200 a second


def test_threads_that_outlive_their_request_are_named() -> None:
    finding = assess(
        record(handles(what="threads", slope=estimate(0.25, unit=""), grown=1_500.0, end=1_520.0))
    )

    assert isinstance(finding, Finding)
    assert finding.statement == "Threads grow by 0.25 per request: 1,500 over 6,000 requests"


@pytest.mark.parametrize(
    "grown",
    [
        handles(grown=99.0, end=119.0),  # few
        handles(slope=estimate(0.1, unit="")),  # the lower end is below one for each 10 requests
        handles(grown=100.0, begin=-69.0, end=31.0),  # fewer than 4 for each of 8 users
        handles(late=0.49),  # it levels off
        handles(late=2.1),
        handles(fallen=601.0),  # some are given back
    ],
)
def test_what_is_little_or_levels_off_or_is_given_back_is_no_leak(grown: HandleGrowth) -> None:
    assert isinstance(assess(record(grown)), Absent)


def test_without_an_interval_or_readings_nothing_is_found() -> None:
    undecided = Undecided("handles.per-request", "", "8 readings")

    assert isinstance(assess(record(handles(slope=undecided))), Absent)
    assert isinstance(assess(record()), NotAssessed)


def test_an_open_load_has_as_many_requests_at_a_time_as_littles_law_says() -> None:
    built = record(handles(begin=20.0, grown=120.0, end=140.0), is_closed=False)

    assert isinstance(assess(built), Finding)  # 200/s for 40 ms are 8: 32 are too many
    slow = replace(built.curves[0], steps=(step(200, 200, 0.2),))
    assert isinstance(assess(replace(built, curves=(slow,))), Absent)  # 40 at a time
