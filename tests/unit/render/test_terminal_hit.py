"""The summary of `hit`: the answer first, then trust, then figures that are never more than was measured."""

from __future__ import annotations

from loadlens.model.workload import Open
from loadlens.render.terminal.hit import headline, summary
from loadlens.render.terminal.printing import as_ascii

from .hit_result import nothing, plan, result


def text(*args: object, **kwargs: object) -> str:
    return "\n".join(summary(*args, **kwargs))  # type: ignore[arg-type]


def test_the_headline_answers_in_one_line() -> None:
    made = result()

    assert headline(made["streams"][0], made) == (
        "24,390 requests/s; half within 2.10 ms, 99 % within 39.0 ms, no failures"
    )


def test_every_line_fits_eighty_columns() -> None:
    assert max(map(len, summary(result(), plan()))) <= 80


def test_a_quantile_that_is_undecided_says_what_would_decide_it() -> None:
    assert "undecided" in text(result(), plan())
    assert "10 above it, needs 20: run 21 s" in text(result(), plan())


def test_failures_come_first_in_the_headline_and_have_rows_of_their_own() -> None:
    made = result(
        requests={"issued": 1000, "due": 1000, "answered": 981, "ok": 981, "failed": 19, "in_flight": 0},
        errors={"timeout": {"count": 19, "first_s": 3.1, "last_s": 9.9, "samples": []}},
    )

    assert headline(made["streams"][0], made).startswith("1.9 % failed (timeout 19); ")
    assert "response time of successes" in text(made, plan())
    assert "timeout 19 (first at 3.1 s, last 9.9 s)" in text(made, plan())


def test_a_load_that_only_failed_shows_no_time_as_if_it_were_measured() -> None:
    made = result(
        requests={"issued": 50, "due": 50, "answered": 0, "ok": 0, "failed": 50, "in_flight": 0},
        errors={"refused": {"count": 50, "first_s": 0.0, "last_s": 9.9, "samples": []}},
        response_time_s=nothing(),
        throughput_rps={"value": 0.0, "low": None, "high": None},
    )

    assert headline(made["streams"][0], made) == "every request failed: refused 50"
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
    made = result(steps=[{"name": "request", "checks": checks}])

    shown = text(made, plan(), verbose=True)

    assert "checks    status 200: 10 of 1,000 failed (first at 0.2 s, last 9.9 s)" in shown
    assert "0.210 s, user 1: status 500" in shown
    assert "all 990 passed, 10 not judged" in shown
    assert "regex x: nothing to judge, 1,000 not judged" in shown
    assert "\x1b" not in shown
    assert "\nline" not in shown


def test_answers_that_were_only_late_are_in_the_headline() -> None:
    checks = [check("latency < 200 ms", passed=7, failed=993, first_s=0.0, last_s=9.0)]
    made = result(steps=[{"name": "request", "checks": checks}])

    said = headline(made["streams"][0], made)

    assert said.endswith("no failures, but 99 % missed latency < 200 ms")


def test_nearly_all_is_not_all() -> None:
    made = result(requests={"failed": 996_000, "answered": 4_000}, errors={"reset": {"count": 996_000}})

    assert headline(made["streams"][0], made).startswith("99.6 % failed")


def test_quiet_is_the_headline_and_the_verdicts() -> None:
    assert len(summary(result(), plan(), quiet=True)) == 2


def test_a_terminal_without_utf8_gets_ascii() -> None:
    assert as_ascii(text(result(), plan())).isascii()
