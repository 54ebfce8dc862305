"""Sizes of answers by class, counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from loadlens.measure.requests.answer_sizes import SizeRows, by_class, size_class, together
from loadlens.model.result import UsualAnswer
from loadlens.model.shapes import AnswerSize


@pytest.mark.parametrize(
    ("size", "place"),
    # 8 to 15 bytes are an octave: 8 and 9, 10 and 11, 12 and 13, 14 and 15; 224 KiB are 7/4 of 2^17.
    [(0, 0), (4, 0), (5, 1), (7, 3), (8, 4), (9, 4), (10, 5), (12, 6), (15, 7), (1024, 32), (7 * 2**15, 63)],
)
def test_an_octave_has_four_classes(size: int, place: int) -> None:
    assert size_class(np.array([size]))[0] == place
    assert size_class(np.array([2**40]))[0] == 63


def test_answers_are_counted_by_class_with_their_ends_and_times() -> None:
    rows = by_class(np.array([8, 1024, 9, 1100]), np.array([1.0, 3.0, 2.0, 4.0]))

    assert rows == (SizeRows(4, 2, 8, 9, 3.0), SizeRows(32, 2, 1024, 1100, 7.0))


def test_trials_are_added_up_and_the_first_body_of_a_class_is_quoted() -> None:
    trials = [(SizeRows(4, 2, 8, 9, 3.0),), (SizeRows(4, 1, 8, 8, 3.0), SizeRows(32, 1, 1024, 1024, 2.0))]
    kept = [UsualAnswer(200, "a", 0.1, 9, "busy\nnow"), UsualAnswer(200, "a", 0.2, 8, "later")]

    assert together(trials, kept) == (
        AnswerSize(4, 3, 8, 9, 2.0, "busy now"),
        AnswerSize(32, 1, 1024, 1024, 2.0),
    )
