"""Words: hostile text is made plain, names stay apart when cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadlens.model.finding import Grade
from loadlens.model.trial import Outcome
from loadlens.present import words


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred", "\ufffd[31mred"),
        ("a\nb\tc", "a b c"),
        ("user\u202egnp.exe", "user\ufffdgnp.exe"),
        ("zero\u200bwidth", "zero\ufffdwidth"),
        ("café – 日本 ✓", "café – 日本 ✓"),
    ],
)
def test_text_from_outside_cannot_steer_a_terminal_or_reorder_a_line(text: str, shown: str) -> None:
    assert words.plain(text) == shown


def test_a_log_keeps_its_lines() -> None:
    assert words.plain_lines("one\ttab\r\n\x1b[2Jtwo") == "one tab\n\ufffd[2Jtwo"


def test_a_long_name_loses_its_middle() -> None:
    name = "/api/v1/organisations/42/members/active"

    assert words.cut(name, 28) == "/api/v1/organ..embers/active"
    assert len(words.cut(name, 28)) == 28
    assert words.cut("/api/sum") == "/api/sum"


def test_names_that_would_read_alike_when_cut_stay_apart() -> None:
    names = [f"{'a' * 20}{middle}{'b' * 20}" for middle in "xyz"]

    cut = words.cut_names(names)

    assert len(set(cut.values())) == 3
    assert all(len(short) <= 28 for short in cut.values())


@given(st.lists(st.text(max_size=60), unique=True, max_size=12))
def test_cut_names_are_distinct_and_short_whatever_they_were(names: list[str]) -> None:
    cut = words.cut_names(names)

    assert len(set(cut.values())) == len(names)
    assert all(len(short) <= words.NAME_LENGTH for short in cut.values())


def test_every_grade_and_every_outcome_has_its_words() -> None:
    assert set(words.GRADE_MEANINGS) == set(Grade)
    assert set(words.OUTCOMES) == set(Outcome)


def test_grades_are_counted_from_the_surest_down() -> None:
    grades = [Grade.PROBABLE, Grade.STRONG, Grade.STRONG]

    assert words.grade_counts(grades, 37, 3) == "strong 2 · probable 1 · ruled out 37 · not assessed 3"


def test_glossary_is_in_alphabetical_order_and_names_no_word_twice() -> None:
    terms = [term.word for term in words.GLOSSARY]

    assert terms == sorted(terms, key=str.casefold)
    assert len(set(terms)) == len(terms)


def test_lists_and_plurals_read_as_prose() -> None:
    assert words.listed(["a", "b", "c"]) == "a, b and c"
    assert words.listed(["a"]) == "a"
    assert words.plural(1, "trial") == "1 trial"
    assert words.plural(1200, "trial") == "1,200 trials"


def test_users_are_told_as_well_as_they_are_known() -> None:
    told = [words.users(number) for number in (1.0, 1.04, 1.72, 64.0, 123.4)]

    assert told == ["1 user", "1 user", "1.7 users", "64 users", "123 users"]
    assert words.users(1_250, exactly=True) == "1250 users"
    assert words.users(1, exactly=True) == "1 user"
