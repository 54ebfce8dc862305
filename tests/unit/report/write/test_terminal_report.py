"""The report on a terminal: the first screen of the page, then checks and reasons of failures."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loadlens.model.report import Report
from loadlens.report.write.terminal.report_text import report_lines
from tests.unit.report.write import sample_report


def shown(report: Report, *, quiet: bool = False) -> list[str]:
    return [" ".join(line.split()) for line in report_lines(report, quiet=quiet)]


def test_checks_that_failed_stand_in_a_table_with_the_first_answer_that_did() -> None:
    rows = shown(sample_report.sample())

    at = rows.index("checks passed failed share what, where")
    assert rows[at + 1].startswith("598 12 ")
    assert "block-1: 3.100 s, user 4: status 500" in rows[at + 2]


def test_where_every_check_passed_one_line_says_so() -> None:
    made = sample_report.sample()
    table = sample_report.checks()
    passed = replace(table, rows=(("register", "status 200", 610, 0, None, 0, "none"),))
    details = tuple(replace(detail, checks=passed) for detail in made.details[:2])

    assert "checks 2 checks of all cases passed by every answer judged (1,220 verdicts)" in shown(
        replace(made, details=details)
    )


def test_the_first_screen_is_that_of_the_page() -> None:
    made = sample_report.sample()
    rows = shown(made)

    assert rows[0].startswith("It stops everything. One worker registers 4.6 users/s")
    for line in made.lines:
        assert any(row.startswith(f"{line.label} {line.text[:20]}") for row in rows)
    at = rows.index("The capacity is 240 /s; beyond 1.3 users further ones wait")
    assert rows[at + 1] == "load throughput, /s mean response time, ms"
    assert rows[at + 5] == f"100 236 {'█' * 10} 424 {'█' * 10}"  # 236 of 241, in tenths


def test_objectives_are_shown_with_their_case_the_missed_ones_first() -> None:
    rows = shown(sample_report.sample(), quiet=True)

    at = next(number for number, row in enumerate(rows) if row.startswith("objectives "))
    assert rows[at].startswith("objectives ■ missed: p99 of response time, register below 1 s")
    assert rows[at + 1].endswith("(workers=1,users=20)")
    assert rows[at + 2].startswith("○ undecided: p99 of response time, health below 50 ms")
    assert any(row.startswith("● met: failed, register below 1 %") for row in rows[at + 3 :])


def test_advice_is_never_cut() -> None:
    made = sample_report.sample()
    advice = "Move the work off the loop. " * 12
    first, *others = made.lines
    whole = " ".join(shown(replace(made, lines=(first, replace(others[0], text=advice), *others[1:]))))

    assert advice.strip() in whole


def test_a_reason_is_said_once_with_what_to_try() -> None:
    rows = shown(sample_report.sample())

    assert rows.count("failed TLS failed: the certificate has expired; try another one") == 1


@pytest.mark.parametrize("width", [60, 80, 120])
def test_lines_fit_the_terminal_and_use_its_width(width: int) -> None:
    assert width - 4 <= max(map(len, report_lines(sample_report.sample(), width))) <= width
