"""The summary of `hit`: the answer first, then trust, then figures that are never more than was measured."""

from __future__ import annotations

from typing import Any

from loadlens.model.result import EngineResult
from loadlens.model.workload import Open
from loadlens.report.write.terminal import hit_summary
from loadlens.report.write.terminal.hit_summary import summary
from loadlens.report.write.terminal.printing import as_ascii
from tests.records import step_result

from .hit_result import nothing, plan, result, times


def lines(made: dict[str, Any], *args: Any, **kwargs: Any) -> list[str]:
    return summary(EngineResult.from_json(made), *args, **kwargs)


def text(made: dict[str, Any], *args: Any, **kwargs: Any) -> str:
    return "\n".join(lines(made, *args, **kwargs))


def headline(made: dict[str, Any]) -> str:
    read = EngineResult.from_json(made)
    return hit_summary.headline(read.streams[0], read)


def test_the_headline_answers_in_one_line() -> None:
    made = result()

    assert headline(made) == ("24,390 requests/s; half within 2.10 ms, 99 % within 39.0 ms, no failures")


def test_every_line_fits_eighty_columns() -> None:
    assert max(map(len, lines(result(), plan()))) <= 80


def test_a_quantile_that_is_undecided_says_what_would_decide_it() -> None:
    assert "undecided" in text(result(), plan())
    assert "10 above it, needs 20: run 21 s" in text(result(), plan())


def test_failures_come_first_in_the_headline_and_have_rows_of_their_own() -> None:
    made = result(
        requests={"issued": 1000, "due": 1000, "answered": 981, "ok": 981, "failed": 19, "in_flight": 0},
        errors={"timeout": {"count": 19, "first_s": 3.1, "last_s": 9.9, "samples": []}},
    )

    assert headline(made).startswith("1.9 % failed (timeout 19); ")
    assert "response time of successes" in text(made, plan())
    assert "timeout 19 (first at 3.1 s, last 9.9 s)" in text(made, plan())


def test_a_load_that_only_failed_shows_no_time_as_if_it_were_measured() -> None:
    made = result(
        requests={"issued": 50, "due": 50, "answered": 0, "ok": 0, "failed": 50, "in_flight": 0},
        errors={"refused": {"count": 50, "first_s": 0.0, "last_s": 9.9, "samples": []}},
        response_time_s=nothing(),
        throughput_rps={"value": 0.0, "low": None, "high": None},
    )

    assert headline(made) == "every request failed: refused 50"
    assert "not measured" in text(made, plan())


def test_when_the_generator_was_the_limit_the_rate_is_called_a_lower_bound() -> None:
    made = result()
    made["generator"]["verdict"] = "limit"

    assert "24,390 /s is a lower bound: the generator was the limit" in text(made, plan())
    assert "■ generator was the limit" in text(made, plan())


def test_a_broken_law_of_counting_shows_nothing_but_the_counts() -> None:
    made = result(law_holds=False, requests={"answered": 243_900})

    shown = text(made, plan())

    assert shown.startswith("■ invalid: 12 requests unaccounted for")
    assert "39.0 ms" not in shown
    assert "issued 244,012" in shown


def test_an_open_loop_shows_both_times_and_what_was_due() -> None:
    made = result(kind="open", requests={"due": 244_132, "dropped": 120})

    shown = text(made, plan(Open(rate_per_s=25_000)))

    assert "response time, due to done" in shown
    assert "service time, sent to done" in shown
    assert "due 244,132 = issued 244,012 + dropped 120 + waiting 0" in shown


def check(name: str, **said: object) -> dict[str, object]:
    counts: dict[str, object] = {"passed": 990, "failed": 0, "not_judged": 0, "samples": []}
    return {"name": name, "first_s": None, "last_s": None} | counts | said


def test_each_check_has_a_row_that_says_how_many_answers_it_is_about() -> None:
    checks = [
        check("status 200", failed=10, first_s=0.21, last_s=9.87, samples=["0.210 s, user 1: status 500"]),
        check("contains \x1b[31mred\nline", not_judged=10),
        check("regex x", passed=0, not_judged=1000),
    ]
    made = result(steps=[step_result(name="request", checks=checks)])

    shown = text(made, plan(), verbose=True)

    rows = [" ".join(line.split()) for line in shown.splitlines()]
    assert "checks passed failed share" in rows
    at = rows.index("status 200 990 10 1 %")  # 10 of 1,000
    assert rows[at + 1 : at + 3] == ["0.210 s, user 1: status 500", "from 0.2 s to 9.9 s"]
    assert "contains \ufffd[31mred line 990 0 0 % 10 not judged" in rows
    assert "regex x 0 0 none 1,000 not judged" in rows
    assert "\x1b" not in shown
    assert "\nline" not in shown


def test_the_first_answer_that_failed_is_shown_and_all_samples_with_v() -> None:
    samples = [f"0.{number}00 s, user 1: number {number}" for number in range(1, 4)]
    checks = [check("contains x", passed=1, failed=3, first_s=0.1, last_s=0.3, samples=samples)]
    made = result(steps=[step_result(name="request", checks=checks)])

    assert [number in text(made, plan()) for number in samples] == [True, False, False]
    assert all(number in text(made, plan(), verbose=True) for number in samples)


def failed_with(kind: str, *samples: str) -> str:
    """The summary of a load in which ten requests failed in one class."""
    block = {"count": 10, "first_s": 0.0, "last_s": 1.0, "samples": list(samples)}
    made = result(requests={"failed": 10, "issued": 244_022, "due": 244_022}, errors={kind: block})
    return text(made, plan())


def test_why_tls_failed_is_said_with_one_thing_to_try() -> None:
    expired = "0.010 s, step request, user 1: the certificate has expired"

    shown = failed_with("tls", expired, expired)

    assert shown.count("the certificate has expired") == 1
    assert "try a new certificate on the server, or --insecure to measure all the same" in " ".join(
        shown.split()
    )
    assert "user 1" not in shown
    assert all(len(line) <= 80 for line in shown.splitlines() if "certificate" in line)


def test_a_class_that_speaks_for_itself_has_no_second_line() -> None:
    assert "was refused" not in failed_with(
        "refused", "0.010 s, step request, user 1: the connection was refused"
    )


def test_parts_of_a_request_have_their_means_and_quantiles() -> None:
    made = result(phases_s={"connect": times(100), "first_byte": times(), "resolve": 0.0123})

    rows = [" ".join(line.split()) for line in text(made, plan()).splitlines()]

    assert "parts of it mean p50 p99 of" in rows
    assert "connect 4.10 ms 2.10 ms 39.0 ms 100 connections" in rows
    assert "first byte 4.10 ms 2.10 ms 39.0 ms 243,912 requests" in rows
    assert "name lookup 12.3 ms once, before the start" in rows
    assert not [row for row in rows if row.startswith("TLS handshake")]


def test_answers_that_were_only_late_are_in_the_headline() -> None:
    checks = [check("latency < 200 ms", passed=7, failed=993, first_s=0.0, last_s=9.0)]
    made = result(steps=[step_result(name="request", checks=checks)])

    said = headline(made)

    assert said.endswith("no failures, but 99 % missed latency < 200 ms")


def test_nearly_all_is_not_all() -> None:
    made = result(
        requests={"failed": 996_000, "answered": 4_000},
        errors={"reset": {"count": 996_000, "first_s": 0.0, "last_s": 1.0, "samples": []}},
    )

    assert headline(made).startswith("99.6 % failed")


def test_quiet_is_the_headline_and_the_verdicts() -> None:
    assert len(lines(result(), plan(), quiet=True)) == 2


def test_a_terminal_without_utf8_gets_ascii() -> None:
    assert as_ascii(text(result(), plan())).isascii()
