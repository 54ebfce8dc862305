"""The screen of `hit`: a few lines that answer, what is worth a look, and every figure behind `-v`."""

from __future__ import annotations

from typing import Any

import pytest

from loadlens.model.finding import Estimate, Undecided
from loadlens.model.report import ObjectiveRow
from loadlens.model.result import EngineResult
from loadlens.model.workload import Open, Plan
from loadlens.report.write.terminal.hit_summary import Screen, summary
from loadlens.report.write.terminal.printing import as_ascii
from tests.records import step_result

from .hit_result import nothing, plan, result, times

USUAL = Screen()
FULL = Screen(verbose=True)


def lines(made: dict[str, Any], planned: Plan | None = None, screen: Screen = USUAL) -> list[str]:
    return summary(EngineResult.from_json(made), planned or plan(), screen)


def text(made: dict[str, Any], planned: Plan | None = None, screen: Screen = USUAL) -> str:
    return "\n".join(lines(made, planned, screen))


def without_success(**stream: Any) -> dict[str, Any]:
    """A load of 50 requests of which none succeeded."""
    requests = {"issued": 50, "due": 50, "answered": 0, "ok": 0, "failed": 50, "in_flight": 0}
    rate = {"value": 0.0, "low": None, "high": None}
    made = result(requests=requests, status={}, throughput_rps=rate)
    made["streams"][0] |= {"response_time_s": nothing(), "service_time_s": nothing(), "lag_s": nothing()}
    made["streams"][0]["requests"] |= stream.pop("requests", {})
    made["streams"][0] |= stream
    made["generator"] |= {"verdict": "starved", "reasons": ["a thread waited for a core"], "ceiling_rps": 9.0}
    return made


def test_the_screen_of_a_good_load_is_five_lines() -> None:
    made = result(bytes={"in_wire": 50_000_000})

    assert lines(made) == [
        "24,390 requests/s   p50 2.10 ms   p95 18.1 ms   p99 39.0 ms (35.4–43.6)",
        "errors 0   ● trustworthy   status 200: 243,912   connections 100   4.77 MiB/s",
        "300 µs ▂         █       ▇            ▃ 118 ms (log)",  # columns 0, 10, 18, 31 of 32 by logarithm
        "GET /json · closed loop · 100 connections · 10.0 s",
        "-v: all figures   -o DIR: keep the record",
    ]


def test_percentiles_that_are_known_are_in_the_first_line_with_the_interval_of_p99() -> None:
    assert "p50 2.10 ms   p95 18.1 ms   p99 39.0 ms (35.4–43.6)" in text(result())


def test_the_largest_time_stands_for_percentiles_that_are_undecided() -> None:
    few = times(20)
    for key in ("p95", "p99"):
        few[key] |= {
            "value": None,
            "low": None,
            "high": None,
            "undecided": "20 requests, needs 736: run 39 s",
        }

    shown = text(result(response_time_s=few))

    assert "p50 2.10 ms   p90 9.31 ms   max 118 ms" in shown
    assert "p99 is undecided: 20 requests, needs 736: run 39 s" in shown


@pytest.mark.parametrize("width", [60, 80, 100, 120])
def test_lines_fit_the_terminal_and_use_its_width(width: int) -> None:
    made = result()
    made["generator"] |= {"verdict": "late", "reasons": ["a reason of many words " * 12]}

    for verbose in (False, True):
        shown = lines(made, screen=Screen(width=width, verbose=verbose))
        assert max(map(len, shown)) <= width
    assert max(map(len, lines(made, screen=Screen(width=width)))) > width - 25


def test_one_rate_is_shown_with_the_same_digits_everywhere() -> None:
    rate = {"value": 255.4, "low": 0.0, "high": 540.0}  # an interval that leaves two digits

    shown = text(result(throughput_rps=rate), screen=FULL)

    assert shown.startswith("260 requests/s")
    assert "260 /s" in shown
    assert "255" not in shown


def test_a_single_run_of_a_generator_that_kept_up_is_no_reason_for_a_caution() -> None:
    assert "▲" not in text(result())
    assert "● trustworthy" in text(result())


def test_a_generator_that_was_late_is_a_caution_with_its_reason() -> None:
    made = result()
    made["generator"] |= {"verdict": "starved", "reasons": ["a thread waited for a core 20 % of the time"]}

    assert "▲ generator starved of CPU" in text(made)
    assert "▲ a thread waited for a core 20 % of the time" in text(made)
    assert "trustworthy" not in text(made)


def test_a_load_without_its_generator_for_a_while_is_invalid_and_says_how_long() -> None:
    made = result()
    reasons = ["the load generator stood still for 3.0 s of 6.0 s (stopped)", "a thread waited for a core"]
    made["generator"] |= {"verdict": "stood_still", "reasons": reasons}

    shown = text(made)

    assert "■ invalid" in shown
    assert "■ the load generator stood still for 3.0 s of 6.0 s (stopped): run it again" in shown
    assert "▲ a thread waited for a core" in shown
    assert shown.count("stood still") == 1
    assert "trustworthy" not in shown


def test_when_the_generator_was_the_limit_the_rate_is_called_a_lower_bound() -> None:
    made = result()
    made["generator"]["verdict"] = "limit"

    assert "▲ lower bound: the generator was the limit" in text(made)


def test_every_status_is_shown() -> None:
    assert "status 200: 12,300 · 301: 3" in text(result(status={"200": 12_300, "301": 3}) | {})


def all_redirects(**stream: Any) -> dict[str, Any]:
    made = result(**stream)
    made["streams"][0]["status"] = {"301": 243_912}
    return made


def test_a_load_of_redirects_is_a_caution_that_names_their_target() -> None:
    warning = "▲ every answer was a redirect to https://site/: you measured the redirect"

    assert warning in text(all_redirects(), screen=Screen(redirect="https://site/"))
    assert "▲ every answer was a redirect: you measured the redirect" in text(all_redirects())


@pytest.mark.parametrize("status", [{"200": 1, "301": 9}, {"304": 10}, {"200": 10}])
def test_other_answers_are_no_redirects(status: dict[str, int]) -> None:
    made = result()
    made["streams"][0]["status"] = status

    assert "redirect" not in text(made)


def test_failures_are_counted_in_the_first_line_and_have_rows_of_their_own() -> None:
    made = result(
        requests={"issued": 1000, "due": 1000, "answered": 981, "ok": 981, "failed": 19, "in_flight": 0},
        errors={"timeout": {"count": 19, "first_s": 3.1, "last_s": 9.9, "samples": []}},
    )

    assert "errors 19 (1.9 %)" in lines(made)[0] + lines(made)[1]
    assert "timed out 19 (first at 3.1 s, last 9.9 s)" in text(made)
    assert "response time of successes, due to done" in text(made, screen=FULL)


@pytest.mark.parametrize(
    ("stream", "headline"),
    [
        (
            {"errors": {"reset": {"count": 50, "first_s": 0.0, "last_s": 9.9, "samples": []}}},
            "all 50 requests failed: connection reset",
        ),
        (
            {"requests": {"answered": 50, "failed": 0, "unexpected_status": 50}, "status": {"404": 50}},
            "all 50 answers had status 404 Not Found",
        ),
        (
            {"requests": {"answered": 50, "failed": 0, "check_failed": 50}, "status": {"200": 50}},
            "all 50 answers failed a check",
        ),
        (
            {"requests": {"answered": 1, "failed": 0, "unexpected_status": 1}, "status": {"501": 1}},
            "1 answer had status 501 Not Implemented",
        ),
        (
            {
                "requests": {"answered": 10, "failed": 40, "unexpected_status": 10},
                "status": {"404": 10},
                "errors": {"timeout": {"count": 40, "first_s": 0.0, "last_s": 9.9, "samples": []}},
            },
            "no request succeeded: timed out 40, status 404 Not Found 10",
        ),
        (
            {"requests": {"failed": 0, "in_flight": 50}},
            "no answers: 50 requests still unanswered at the end",
        ),
    ],
)
def test_without_a_success_only_what_failed_is_said(stream: dict[str, Any], headline: str) -> None:
    made = without_success(**stream)

    for screen in (Screen(), FULL):
        shown = text(made, screen=screen)
        assert shown.splitlines()[0].startswith(headline)
        for word in ("starved", "waited for a core", "ceiling", "undecided", "trustworthy", "p99"):
            assert word not in shown


def test_a_broken_law_of_counting_shows_nothing_but_the_counts() -> None:
    made = result(law_holds=False, requests={"answered": 243_900})

    shown = text(made)

    assert shown.startswith("■ invalid: 12 requests unaccounted for")
    assert "39.0 ms" not in shown
    assert "issued 244,012" in shown


def test_an_open_loop_shows_both_times_and_what_was_not_sent() -> None:
    made = result(kind="open", requests={"due": 244_132, "dropped": 120})

    shown = text(made, plan(Open(rate_per_s=25_000)), FULL)

    assert "response time, due to done" in shown
    assert "service time, due to done" not in shown
    assert "service time, sent to done" in shown
    assert "due 244,132 = issued 244,012 + dropped 120 + waiting 0" in shown
    assert "▲ of 244,132 requests due, 120 dropped" in shown


def test_requests_that_were_in_flight_at_the_end_are_not_called_late() -> None:
    unfinished = times() | {"censored": 4}

    shown = text(result(response_time_s=unfinished, requests={"in_flight": 4}), screen=FULL)

    assert "4 still in flight at the end, counted as at least that long" in shown


def test_objectives_have_a_line_each_with_the_interval() -> None:
    figure = Estimate("p99", "s", 0.039, 0.0354, 0.0436, 1, 1000, "built")
    rows = [
        ObjectiveRow("p99 of response time", "below 200 ms", figure, "ok", "met"),
        ObjectiveRow("p99 of response time", "below 20.0 ms", figure, "bad", "missed"),
        ObjectiveRow("p99 of response time", "below 50.0 ms", Undecided("p99", "s", "20 requests, needs 736"),
                     "unknown", "undecided: 20 requests, needs 736"),
    ]  # fmt: skip

    shown = lines(result(), screen=Screen(objectives=rows, quiet=True))

    assert "● met: p99 of response time below 200 ms; 39.0 ms (35.4–43.6)" in shown
    assert "■ missed: p99 of response time below 20.0 ms; 39.0 ms (35.4–43.6)" in shown
    assert "○ undecided: p99 of response time below 50.0 ms; 20 requests, needs 736" in shown


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

    shown = text(made)

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

    assert [number in text(made) for number in samples] == [True, False, False]
    assert all(number in text(made, screen=FULL) for number in samples)


def failed_with(kind: str, *samples: str) -> str:
    """The summary of a load in which ten requests failed in one class."""
    block = {"count": 10, "first_s": 0.0, "last_s": 1.0, "samples": list(samples)}
    made = result(requests={"failed": 10, "issued": 244_022, "due": 244_022}, errors={kind: block})
    return text(made)


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

    rows = [" ".join(line.split()) for line in lines(made, screen=FULL)]

    assert "parts of it mean p50 p99 of" in rows
    assert "connect 4.10 ms 2.10 ms 39.0 ms 100 connections" in rows
    assert "first byte 4.10 ms 2.10 ms 39.0 ms 243,912 requests" in rows
    assert "name lookup 12.3 ms once, before the start" in rows
    assert not [row for row in rows if row.startswith("TLS handshake")]


def test_answers_that_were_only_late_are_a_caution() -> None:
    checks = [check("latency < 200 ms", passed=7, failed=993, first_s=0.0, last_s=9.0)]
    made = result(steps=[step_result(name="request", checks=checks)])

    assert "errors 0" in text(made)
    assert "▲ 99 % missed latency < 200 ms" in text(made)


def test_nearly_all_is_not_all() -> None:
    made = result(
        requests={"failed": 996_000, "answered": 4_000, "ok": 4_000},
        errors={"reset": {"count": 996_000, "first_s": 0.0, "last_s": 1.0, "samples": []}},
    )

    assert "(99.6 %)" in text(made)


def test_quiet_is_the_first_line_and_what_is_worth_a_look() -> None:
    assert len(lines(result(), screen=Screen(quiet=True, width=120))) == 1


def test_a_terminal_without_utf8_gets_ascii() -> None:
    assert as_ascii(text(result(), screen=FULL)).isascii()
