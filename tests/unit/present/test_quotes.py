"""Quotes of answers: what a reader gets to see of a body."""

from __future__ import annotations

import gzip

import pytest

from loadlens.model.result import FailingAnswer
from loadlens.present.quotes import by_status, quote


@pytest.mark.parametrize(
    ("body", "seen"),
    [
        ("", ""),
        ("  \n", ""),
        ('{"detail": "database is locked"}', '{"detail": "database is locked"}'),
        ("first\n  second\tthird", "first second third"),
        (
            (
                "<!doctype html><html><head><style>p {color: red}</style><title>500</title></head>"
                "<body><script>track()</script><p>No &quot;room&quot;</p></body></html>"
            ),
            '500 No "room"',
        ),
        ("a < b and b > a", "a < b and b > a"),  # no markup
        ("\x1b[31mred, in a terminal", "\ufffd[31mred, in a terminal"),
        (gzip.compress(b"database is locked" * 9, mtime=0).decode(errors="replace"), ""),
        ("x" * 101, "x" * 99 + "…"),
    ],
)
def test_a_body_is_one_readable_line_or_nothing(body: str, seen: str) -> None:
    assert quote(body) == seen


def test_the_most_frequent_status_comes_first_with_the_first_of_its_answers_that_can_be_read() -> None:
    def answer(status: int, body: str) -> FailingAnswer:
        return FailingAnswer(status, "a", 0.1, f"HTTP/1.1 {status} X", body)

    answers = [
        answer(500, ""),
        answer(500, "boom"),
        answer(503, "busy"),
        answer(503, "later"),
        answer(404, ""),
    ]

    assert by_status(answers, {"200": 9, "500": 2, "503": 30, "404": 5}) == [
        '503, 30 answers: "busy"',
        '500, 2 answers: "boom"',
    ]
