"""The page that is made from the data."""

from __future__ import annotations

from dataclasses import replace

import pytest
from benches import chart, page, truth
from benches.bars import judged, verdicts
from benches.cost import summary
from benches.estimates import Middle
from benches.generators import GENERATORS
from benches.results import Claim, Limit, newest, read
from benches.works import WORKS

from tests.unit.bench.build import cost, results

ROUNDS = [
    cost(name, us * (1 + number / 100), number=number)
    for number in range(8)
    for name, us in (("loadlens", 6.0), ("floor", 5.0), ("wrk", 8.0))
]


def test_a_cell_holds_ratio_interval_rounds_and_microseconds() -> None:
    # Every round has the ratio 6/8 exactly; the median of 6.00 ... 6.42 is 6.21.
    tables = page.cost_tables(summary(results(*ROUNDS), WORKS, GENERATORS))

    assert "| loadlens | **0.75** (0.75–0.75; 8), 6.2 µs |" in tables


def test_a_generator_with_one_body_for_all_is_marked() -> None:
    measured = results(cost("ab", 9.0, work="post-100"), cost("wrk", 8.0, work="post-100"))

    tables = page.cost_tables(summary(measured, WORKS, GENERATORS))

    assert "| ab (fixed body) |" in tables
    assert "| wrk |" in tables


def test_a_bar_is_judged_by_the_median_and_says_where_the_interval_lies() -> None:
    assert judged(Middle(0.70, 0.66, 0.74, 8), 0.75) == "met"
    assert judged(Middle(0.74, 0.70, 0.80, 8), 0.75) == "met, the interval reaches across"
    assert judged(Middle(0.80, 0.78, 0.90, 8), 0.75) == "**missed**"
    assert judged(Middle(0.70, None, None, 3), 0.75) == "met, no interval"


def test_bars_without_data_are_not_measured_and_never_met() -> None:
    lines = verdicts(results(), [])

    assert {line.measured for line in lines} == {"not measured"}
    assert {line.verdict for line in lines} == {""}


def test_bars_of_limits_and_of_truth_are_judged() -> None:
    measured = results()
    measured.limits = [Limit("open_rate_error", 0, -0.002), Limit("hit_0_cpu_s", 0, 0.2)]
    said = Claim("freeze-open", "loadlens", 0, 0.002, truth.steady_quantile(0.99) * 1.03, 0.99, 1.0)
    # Every time that the mixture's jump from 10 to 200 ms passes is its 99th percentile.
    log = Claim("mix-1-open", truth.SERVER, 0, 0.010, 0.010, 0.200, 0.200)
    ours = replace(log, generator="loadlens", p99_s=0.199)
    measured.claims = [said, replace(said, generator=truth.SERVER), log, ours]

    found = {line.name: line for line in verdicts(measured, [])}

    assert found["departure from 10,000/s over 10 s"].verdict == "**missed**"  # 0.2 % below is too far too
    assert found["CPU of `hit -d 0`"].verdict == "met"
    assert found["p99, freeze-open"].measured == "3.00 % at most"
    assert found["p50, p99, p99.9, mix-1-open"].verdict == "met"


@pytest.mark.parametrize(("p99_s", "measured"), [(0.210, "5.00 % at most"), (None, "p99 undecided")])
def test_a_figure_beyond_the_jump_or_none_misses_the_bar(p99_s: float | None, measured: str) -> None:
    log = Claim("mix-1-open", truth.SERVER, 0, 0.010, 0.010, 0.200, 0.200)
    made = results()
    made.claims = [log, replace(log, generator="loadlens", p99_s=p99_s)]

    found = {line.name: line for line in verdicts(made, [])}["p50, p99, p99.9, mix-1-open"]

    assert (found.measured, found.verdict) == (measured, "**missed**")


def test_the_page_has_a_place_for_each_block_and_keeps_its_prose() -> None:
    main, appendix = ((page.DOCS / name).read_text() for name in (page.PAGE, page.APPENDIX))

    lead, tables = page.filled(main, appendix, results(*ROUNDS))

    assert lead.startswith("# What a request costs")
    assert "- GET: 0.75 (0.75–0.75) times that of wrk." in lead
    assert "Missed: CPU per request: GET, 100 connections (≤ 1.12 × floor)" in lead
    missed = "| CPU per request: GET, 100 connections | ≤ 1.12 × floor | 1.20 × (1.20–1.20) | **missed** |"
    assert missed in tables
    with pytest.raises(ValueError, match="markers"):
        page.filled(main, appendix.replace("data: bars", "data: bears"), results())


def test_two_rounds_are_no_comparison() -> None:
    # A tool that broke off in all other rounds once stretched every panel of the picture to 10,000 times.
    broken = [cost("locust", 80_000.0, number=number) for number in range(2)]
    rows = summary(results(*ROUNDS, *broken), WORKS, GENERATORS)

    assert "| loadlens | 0.75 (0.75–0.75) |" in page.at_100(rows)
    assert "locust" not in page.at_100(rows)
    assert "| locust | fewer than 3 rounds |" in page.cost_tables(rows)
    assert [row.generator for row in rows if page.is_compared(row)] == ["loadlens", "floor", "wrk"]


def test_the_picture_follows_the_page_into_the_dark() -> None:
    rows = summary(results(*ROUNDS), WORKS, GENERATORS)

    drawn = chart.svg(rows, [work for work in WORKS if work.name == "get-100"])

    assert "prefers-color-scheme:dark" in drawn
    assert drawn.count("loadlens") >= 1


def test_the_published_page_is_the_one_that_the_published_data_make() -> None:
    path = newest()
    if path is None:
        pytest.skip("no data are published")
    texts = (page.DOCS / page.PAGE).read_text(), (page.DOCS / page.APPENDIX).read_text()

    assert page.filled(*texts, read(path)) == texts, "run `python -m benches page`"
