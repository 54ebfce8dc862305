"""Effects of factors, over a simulated service whose rates are known.

A job takes 0.2 s of a core and a user thinks for 0.15 s. With one user any number of cores answers in 0.2 s.
With 20 users c cores are full: X = c / 0.2 s, and R = 20 / X - 0.15 s.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from loadlens.model.finding import Estimate
from loadlens.model.report import Report
from loadlens.present import charts
from loadlens.report import build
from tests.unit.measure.records import record
from tests.unit.whatif import services


@cache
def reported(*, processes: tuple[int, ...] = (1, 2), users: tuple[int, ...] = (1, 20)) -> Report:
    run = record(
        lambda load, cores: services.fair_threads(load, cores=cores),
        users=users,
        processes=processes,
        seconds=30.0,
        trials=3,
    )
    return build.report(replace(run, study=run.study | {"report": {"charts": [], "compare": []}}))


def rows(report: Report) -> list[dict[str, Any]]:
    assert report.effects is not None
    titles = [column.title for column in report.effects.table.columns]
    return [dict(zip(titles, row, strict=True)) for row in report.effects.table.rows]


def test_twice_the_cores_serve_twice_as_much_where_they_are_full() -> None:
    alone, crowded = rows(reported())

    assert (alone["where"], crowded["where"]) == ("users=1", "users=20")
    assert alone["change"] == crowded["change"] == "processes=2 : processes=1"
    for row, times, before, after in ((alone, 1.0, 0.2, 0.2), (crowded, 2.0, 3.85, 1.85)):
        ratio = row["throughput, times"]
        assert isinstance(ratio, Estimate)
        assert ratio.point == pytest.approx(times, rel=0.02)
        assert ratio.trials == 3
        assert row["mean before"].point == pytest.approx(before, rel=0.1)
        assert row["mean after"].point == pytest.approx(after, rel=0.1)


def test_the_sentence_gives_the_effect_under_load_and_says_where_it_is_another() -> None:
    report = reported()

    assert report.effects is not None
    (line,) = report.effects.lines
    assert line.startswith("processes=2 serves ")
    assert "what processes=1 does" in line
    assert "the mean falls from 3." in line
    assert "nothing fails (users=20)" in line
    assert re.search(r"; at users=1 it is (0\.9|1\.0)\d", line)


@pytest.mark.parametrize(
    ("question", "leads"),
    [
        ("What do two processes bring over one?", True),  # it names the factor
        ("How does web respond to load?", True),  # the question of a study that asks none
        ("Why is it slow?", False),  # the limit answers it
    ],
)
def test_the_effect_is_the_headline_where_the_question_names_its_factor(question: str, leads: bool) -> None:
    run = record(lambda load, k: services.blocking_loop(load, processes=k), processes=(1, 2), users=(1, 20))

    report = build.report(replace(run, study=run.study | {"question": question}))

    assert report.effects is not None
    effect, limit = f"{report.effects.lines[0]}.", f"{report.findings[0].statement}."
    assert report.answer[:2] == ((effect, limit) if leads else (limit, effect))


def test_a_factor_that_only_held_out_cases_have_is_compared_with_the_service_without_it() -> None:
    def changed(load: services.Load, level: int) -> services.Trace:
        return services.blocking_loop(load) if level == 1 else services.fair_threads(load, cores=4)

    run = record(changed, users=(20,), processes=(1, 2))
    for case in run.study["cases"]:
        case["held_out"] = case["levels"].pop("processes") == "2"
        case["levels"] |= {"work": "threads"} if case["held_out"] else {}

    effects = build.report(run).effects

    assert effects is not None
    (line,) = effects.lines
    assert line.startswith("work=threads serves ")
    assert "what the unchanged service does" in line


def test_levels_that_do_the_same_are_called_the_same() -> None:
    report = reported(users=(1,))

    assert report.effects is not None
    (line,) = report.effects.lines
    assert "serves as much as processes=1" in line
    assert "stays at" in line


def test_the_picture_has_a_row_for_each_pair_and_can_be_drawn() -> None:
    report = reported(processes=(1, 2, 3), users=(20,))

    (chart,) = [chart for chart in report.charts if chart.anchor == "chart-effects"]
    assert len(chart.datasets["rows"]) == 2  # two levels against the first
    assert "processes=3 : processes=1, users=20" in chart.headline
    charts.svg(chart)


def test_a_study_that_changes_only_the_load_has_no_effects() -> None:
    assert reported(processes=(1,)).effects is None
