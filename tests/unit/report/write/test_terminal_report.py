"""The report on a terminal: checks, parts of requests and reasons of failures beside the findings."""

from __future__ import annotations

from dataclasses import replace

from loadlens.model.report import Report
from loadlens.report.write.terminal.report_text import report_lines
from tests.unit.report.write import sample_report


def shown(report: Report) -> list[str]:
    return [" ".join(line.split()) for line in report_lines(report)]


def test_checks_that_failed_stand_in_a_table_with_the_first_answer_that_did() -> None:
    rows = shown(sample_report.sample())

    at = rows.index("checks passed failed share what, where")
    assert rows[at + 1].startswith("598 12 ")
    assert "block-1: 3.100 s, user 4: status 500" in rows[at + 2]


def test_where_every_check_passed_one_line_says_so() -> None:
    made = sample_report.sample()
    table = sample_report.checks()
    passed = replace(table, rows=(("status 200", 610, 0, None, "register", "none"),))
    details = tuple(replace(detail, checks=passed) for detail in made.details[:2])

    assert "checks 2 checks of all cases passed by every answer judged (1,220 verdicts)" in shown(
        replace(made, details=details)
    )


def test_parts_of_a_request_are_p50_and_p99_of_each_case_in_their_own_unit() -> None:
    rows = shown(sample_report.sample())

    at = next(number for number, row in enumerate(rows) if row.startswith("p50 / p99"))
    assert rows[at].endswith("users=1: connect 100 / 400 µs ·")
    assert rows[at + 1] == "first byte 210 / 330 ms · last byte 200 µs (p99 undecided)"


def test_a_reason_is_said_once_with_what_to_try() -> None:
    rows = shown(sample_report.sample())

    assert rows.count("failed TLS failed: the certificate has expired; try another one") == 1


def test_no_line_is_wider_than_eighty_columns() -> None:
    assert max(map(len, report_lines(sample_report.sample()))) <= 80
