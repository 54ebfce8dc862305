"""The word check sees docstrings, texts, comments and names, and leaves the trade's words alone."""

from __future__ import annotations

import pytest

from tests.scripts import loaded

words = loaded("tools/words.py")


def seen(text: str) -> list[tuple[int, str]]:
    return [(place.line, place.word) for place in words.in_python("x.py", text)]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('"""Whether it rains."""', (1, '"""Whether')),
        ("x = 1  # whoever waits", (1, "whoever")),
        ('\nraise ValueError("nobody listens")', (2, "nobody")),
        ('x = """A line\nthat was foretold."""', (2, "foretold")),
        ("found = 1", (1, "found")),
        ("def add(told): ...", (1, "told")),
        ("class Told: ...", (1, "Told")),
        ('x = "2.45 requests a process, 293 ms a request"', (1, "293 ms a request")),
    ],
)
def test_a_word_to_replace_is_named_with_its_line(text: str, place: tuple[int, str]) -> None:
    assert place in seen(text)


@pytest.mark.parametrize(
    "text",
    [
        '"""Return the share of requests per second that the service bare-metal serves."""',
        "lookup = foundation = 1",
        'x = "the dearth of a hotel teller-machine"',
        "from that import one",
        'account = pwd.getpwnam("nobody")',
        'raise KeyError("no account `nobody`")',
    ],
)
def test_other_words_that_contain_one_are_left_alone(text: str) -> None:
    assert seen(text) == []


def test_rust_comments_texts_and_bindings_are_read() -> None:
    text = "/// What it is.\nlet found = 1; // nobody\n" + 'call("whoever");\n'

    places = [(place.line, place.word) for place in words.in_rust("x.rs", text)]

    assert places == [(1, "/// What"), (2, "nobody"), (2, "found"), (3, "whoever")]


def test_a_room_above_its_bound_is_named_and_one_below_is_not() -> None:
    assert words.over({"a": 3, "b": 1, "c": 1}, {"a": 2, "b": 1}) == [
        "a: 3 words to replace, at most 2 allowed",
        "c: 1 words to replace, at most 0 allowed",
    ]
