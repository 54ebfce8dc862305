"""Colours, pictures and the width of text by what the variables say and what the stream is."""

from __future__ import annotations

import io
import sys

import pytest

from loadlens.present import terminal


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


# The rules of no-color.org and force-color.org, and what a dumb terminal is.
@pytest.mark.parametrize(
    ("variables", "on_a_terminal", "elsewhere"),
    [
        ({}, True, False),
        ({"NO_COLOR": "1"}, False, False),
        ({"NO_COLOR": ""}, True, False),
        ({"FORCE_COLOR": "1"}, True, True),
        ({"FORCE_COLOR": "0"}, True, False),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False, False),
        ({"TERM": "dumb"}, False, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, True, True),
    ],
    ids=str,
)
def test_colours_are_those_that_were_asked_for(
    variables: dict[str, str], on_a_terminal: bool, elsewhere: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert terminal.has_colour(Screen()) == on_a_terminal
    assert terminal.has_colour(io.StringIO()) == elsewhere


@pytest.mark.parametrize(("term", "drawn"), [("xterm", True), ("dumb", False)])
def test_a_dumb_terminal_is_not_drawn_on(term: str, drawn: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", term)
    monkeypatch.setenv("FORCE_COLOR", "1")  # asks for colours, not for pictures

    assert terminal.can_draw(Screen()) == drawn
    assert not terminal.can_draw(io.StringIO())


@pytest.mark.parametrize(
    ("columns", "width"), [(20, 60), (60, 60), (80, 80), (97, 97), (120, 120), (300, 120)]
)
def test_text_is_as_wide_as_the_terminal_within_bounds(
    columns: int, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(columns))

    assert terminal.width() == width


def test_off_a_terminal_text_has_eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: False)
    monkeypatch.setenv("COLUMNS", "132")

    assert terminal.width() == 80


def test_a_line_that_is_too_long_goes_on_below_further_in_and_keeps_every_word() -> None:
    text = "  note   other programs use 97 % of the CPUs: results may be distorted"

    lines = list(terminal.fitted([text, "short"], 40, indent=7))

    assert lines == [
        "  note   other programs use 97 % of the",
        "         CPUs: results may be distorted",
        "short",
    ]
