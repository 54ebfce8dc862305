"""The line that says what a case asks for, and how far the generator was from its ceiling."""

from __future__ import annotations

from loadlens.model.result import Generator
from loadlens.report.build.details import _ceiling_words


def test_the_busiest_trial_says_how_far_from_its_ceiling_the_generator_was() -> None:
    trials = [
        Generator(requests_per_s=200.0, ceiling_rps=2_000.0),
        Generator(requests_per_s=500.0, ceiling_rps=1_000.0),
        Generator(),  # a record of before it was told
        Generator(requests_per_s=5.0),
    ]

    assert _ceiling_words(trials) == ["generator at 50 % of its ceiling with this load, about 1,000 /s"]
    assert _ceiling_words([Generator()]) == []
