"""The live view of one load: each answer is shown as what the summary will call it."""

from __future__ import annotations

from typing import Any

import pytest

from loadlens.live.hit_view import HitView, frame


def progress(**so_far: int) -> dict[str, Any]:
    """Some seconds in: 90 successes a second, and what else the test says."""
    bad = {"unexpected_status": 0, "check_failed": 0, "failed": 0}
    times = {"rps": 90.0, "p50_s": 0.001, "p99_s": 0.002}
    last = {**times, **bad, "seconds": 1.0, "histogram": [[0.001, 80], [0.002, 10]]}
    load = {"in_flight": 3, "last": last, "so_far": {**times, **bad, **so_far}}
    generator = {"busy": 0.1, "lag_p99_s": 0.00001}
    return {
        "phase": "measure",
        "elapsed_s": 4.0,
        "total_s": 10.0,
        "streams": [load],
        "generator": generator,
    }


def shown(result: dict[str, Any]) -> list[str]:
    return frame("GET /", result, (result["streams"][0]["last"],), width=80).plain.splitlines()


def cells(row: str, lines: list[str]) -> list[str]:
    """The text after the name of a row."""
    (line,) = [line for line in lines if line.strip().startswith(row)]
    return line.strip().removeprefix(row).split()


def test_a_load_without_failures_is_twelve_lines_and_says_so() -> None:
    lines = shown(progress())

    assert len(lines) == 12
    assert cells("failed", lines) == ["0", "0", "no", "failures", "yet"]
    assert cells("successes/s", lines)[:2] == ["90.0", "90.0"]


def test_answers_that_failed_a_check_have_a_row_of_their_own() -> None:
    lines = shown(progress(check_failed=1234))

    assert cells("check failed", lines) == ["0", "1,234"]
    assert cells("failed", lines) == ["0", "0"]
    assert not any("unexpected status" in line for line in lines)


def test_answers_with_an_unexpected_status_have_one_too_and_columns_stay_in_line() -> None:
    lines = shown(progress(unexpected_status=7, failed=2))

    assert cells("unexpected status", lines) == ["0", "7"]
    assert cells("failed", lines) == ["0", "2"]
    ends = [line.index(head) + len(head) for line in lines[1:2] for head in ("last 1 s", "so far")]
    row = next(line for line in lines if "unexpected status" in line)
    assert [row[end - 1] for end in ends] == ["0", "7"]


def test_without_a_terminal_a_line_is_printed_every_ten_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    moments = [progress(failed=2) | {"elapsed_s": seconds, "total_s": 30.0} for seconds in (4, 10, 12, 20)]

    with HitView("GET /", shown=False, has_lines=True) as view:
        for moment in moments:
            view.update(moment)

    assert capsys.readouterr().err.splitlines() == [
        "10 of 30 s: 90.0 requests/s, p99 2.00 ms, errors 2",
        "20 of 30 s: 90.0 requests/s, p99 2.00 ms, errors 2",
    ]
