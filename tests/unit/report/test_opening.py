"""The first screen, over simulated services: one capacity, and a headline that the body repeats."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest

from loadlens import diagnose
from loadlens.measure import whole_run
from loadlens.measure.curves import gather
from loadlens.model.finding import Estimate, Grade, Undecided
from loadlens.model.report import Chart, Report
from loadlens.present import numbers, tokens
from loadlens.report import build
from loadlens.report.build import opening, request_time
from loadlens.report.build.percentiles import highest_known
from loadlens.report.write import html, markdown
from loadlens.report.write.terminal.report_text import report_lines
from tests.unit.measure.records import Run, record
from tests.unit.report.write.parsed import parse
from tests.unit.whatif import services

RATE = re.compile(r"(?<![\d.,])\d[\d,]*(?:\.\d+)? /s")
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")

Serve = Callable[[services.Load, int], services.Trace]
SERVICES: dict[str, Serve] = {
    "a loop": lambda load, k: services.blocking_loop(load, processes=k),
    "a shorter loop": lambda load, k: services.blocking_loop(load, work_s=0.07),
    "full cores": lambda load, k: services.fair_threads(load, cores=2),
    "one core": lambda load, k: services.fair_threads(load, cores=1, work_s=0.13),
    "a lock": lambda load, k: services.behind_lock(load),
}


def run_of(name: str, trials: int = 3) -> Run:
    return record(SERVICES[name], users=(1, 5, 20), trials=trials)


@cache
def report_of(name: str, trials: int = 3) -> Report:
    return build.report(run_of(name, trials))


def text_of(report: Report) -> str:
    return markdown.page(report).replace("\\", "")


def load_chart(report: Report) -> Chart:
    return next(chart for chart in report.charts if chart.kind == "load_curve")


@pytest.mark.parametrize("trials", [1, 3])
@pytest.mark.parametrize("name", SERVICES)
def test_a_report_states_one_capacity_for_a_curve(name: str, trials: int) -> None:
    report = report_of(name, trials)

    (band,) = load_chart(report).datasets["plateau"]
    (capacity,) = RATE.findall(str(band["label"]))
    text = text_of(report)
    stated = re.findall(
        r"(?:[Cc]apacity(?: is)?(?:\*\*:)? |Throughput stops at |cores? (?:is|are) used at |event loop: )"
        rf"({RATE.pattern})",
        text,
    )
    before = [
        numbers.short(gain.before)
        for finding in report.findings
        for gain in finding.predictions
        if gain.what == "capacity" and isinstance(gain.before, Estimate)
    ]
    assert len(stated) >= 3
    assert {*stated, *before} == {capacity}


@pytest.mark.parametrize("name", SERVICES)
def test_points_on_the_plateau_lie_in_the_band_that_is_drawn(name: str) -> None:
    chart = load_chart(report_of(name))

    (band,) = chart.datasets["plateau"]
    top = max(chart.datasets["steps"], key=lambda row: row["users"])
    assert band["x_lo"] <= top["x"] <= band["x_hi"]


@pytest.mark.parametrize("name", SERVICES)
def test_each_figure_of_the_headline_stands_in_the_body_with_the_same_digits(name: str) -> None:
    report = report_of(name)

    _, _, body = text_of(report).partition("## Findings")
    figures = NUMBER.findall(report.answer[0])
    assert figures
    assert [figure for figure in figures if figure not in NUMBER.findall(body)] == []


@pytest.mark.parametrize("name", SERVICES)
def test_page_text_and_terminal_open_with_the_same_screen(name: str) -> None:
    report = report_of(name)

    page = " ".join(parse(html.page(report)).all("header")[0].text.split())
    text = " ".join(text_of(report).split())
    terminal = " ".join(" ".join(report_lines(report)).split())
    for medium in (page, text, terminal):
        at = [medium.find(" ".join(line.text.split())) for line in report.lines if not line.is_command]
        assert -1 not in at, (medium[:2000], report.lines)
        assert at == sorted(at)
        assert report.answer[0].rstrip(".") in medium


@pytest.mark.parametrize("name", SERVICES)
def test_no_headline_of_a_chart_calls_time_unexplained(name: str) -> None:
    report = report_of(name)

    assert not [chart.headline for chart in report.charts if "unexplained" in chart.headline]


def test_a_known_cause_names_the_waiting() -> None:
    report = report_of("a loop")

    (chart,) = [chart for chart in report.charts if chart.kind == "demand"]
    assert chart.headline.startswith("Waiting for the event loop: 3.")
    assert report.pictures == (load_chart(report).anchor, chart.anchor)


def test_waiting_without_a_known_cause_is_what_the_load_adds() -> None:
    cases = whole_run.measured(run_of("a loop")).cases

    chart = request_time.chart("rush", gather(cases), findings=())

    assert chart is not None
    waiting = [row for row in chart.datasets["parts"] if row["part"] == "waiting, cause not found"]
    means = [row["ms"] for row in chart.datasets["totals"]]
    assert [row["ms"] for row in waiting] == [pytest.approx(means[-1] - means[0], rel=0.01)]  # none at 1
    assert chart.headline.startswith("Waiting, cause not found: 3.")


def test_waiting_is_named_for_rules_that_there_are() -> None:
    known = {rule.ID for rule in (*diagnose.RULES, *diagnose.AFTER)}

    assert set(request_time.WAITS_FOR) <= known


def test_the_next_command_of_a_quick_run_is_the_whole_study() -> None:
    command = ("loadlens", "run", "studies/x", "--quick", "--out", "elsewhere", "-q", "--set", "a=1")

    assert opening.whole_study(command) == "loadlens run studies/x --set a=1"


def test_the_highest_percentile_that_half_of_the_rows_know_is_shown() -> None:
    def known_up_to(most: float) -> Callable[[float], Estimate | Undecided]:
        def quantile(p: float) -> Estimate | Undecided:
            if p <= most:
                return Estimate("p", "s", 1.0, 0.9, 1.1, 1, 100, "built")
            return Undecided("p", "s", "17 requests, needs 368")

        return quantile

    assert highest_known([known_up_to(0.99), known_up_to(0.9)]) == 0.99
    assert highest_known([known_up_to(0.99), known_up_to(0.9), known_up_to(0.9)]) == 0.9
    assert highest_known([known_up_to(0.0)]) is None


def test_no_column_of_cases_is_all_undecided() -> None:
    report = build.report(record(SERVICES["a loop"], users=(1, 20), trials=1))

    for matrix in report.matrices:
        for key, label, _ in matrix.metrics:
            figures = [cell.figures[key] for cell in matrix.cells.values()]
            assert not all(isinstance(figure, Undecided) for figure in figures), label


def test_a_suspected_finding_is_never_the_headline_and_gives_no_advice() -> None:
    report = report_of("a loop")
    suspected = tuple(replace(finding, grade=Grade.SUSPECTED) for finding in report.findings)

    page = parse(html.page(replace(report, findings=suspected, lines=())))

    assert "Do" not in [term.text for term in page.all("dt")]
    assert not page.all("section", id="findings")[0].all("details", class_="finding open")


def test_a_request_that_waits_for_three_things_is_drawn_with_the_shorter_waits_in_one() -> None:
    splits = [
        {"CPU, user": 0.1, "waiting for a core": 0.2, "unexplained": 0.9},
        {"CPU, user": 0.1, "waiting for a thread": 0.5, "in GET /stock": 0.1},
        {"CPU, user": 0.1, "waiting for a thread": 0.05},
    ]

    drawn = request_time.within_room(splits)

    assert drawn == [
        {"CPU, user": 0.1, "unexplained": 0.9, "other waiting": 0.2},
        {"CPU, user": 0.1, "waiting for a thread": 0.5, "other waiting": 0.1},
        {"CPU, user": 0.1, "waiting for a thread": 0.05},
    ]
    assert request_time.within_room(splits[1:]) == splits[1:]  # two names have room
    names = dict.fromkeys(part for split in drawn for part in split)
    assert sum(name not in tokens.DEMAND_PARTS for name in names) <= tokens.DEMAND_PARTS.count("")
