"""Responses were counted as failed only because their length differs.

**Means.** A load tool compares every response with the length of the first and counts the others as failed.
Responses of a service may differ in length; nothing is wrong with them.

**Needs.** A load made by such a tool: it counts more responses as failed for their length than for any other
reason, and at least 99 % of the responses were as expected.

**Ruled out by.** Responses that were no success, and those that broke off: they are failures.

**Thresholds.** 99 %: with more errors than that, lengths may differ because responses are error pages.

**Do.** Judge responses by status and by the content of the body (`expect:`, `checks:`).

**Confirm.** Run the same load with a check of the body: no response fails it.
"""

from __future__ import annotations

from collections.abc import Sequence

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Nothing, Words, assessing, on_curve, strongest
from loadlens.diagnose.observe.levels import Level, levels
from loadlens.model.facts import Facts
from loadlens.model.finding import Grade
from loadlens.model.quality import CalledFailed
from loadlens.present.numbers import percent

ID = "failure.misclassified"
TITLE = "failures are differences in length"
EXPLAINS: tuple[str, ...] = ()

MOST_UNEXPECTED = 0.01
IMPACT = 0.04


def observe(facts: Facts) -> Sequence[Level[CalledFailed]] | Nothing:
    """Return the levels whose load such a tool made."""
    return levels(facts, lambda step: step.quality.called_failed) or Nothing(
        "no tool here calls an answer failed for its length"
    )


def claim(_: Facts, level: Level[CalledFailed]) -> Claim:
    """Compare the failures for length with the other failures."""
    called = level.detail
    answered, total = max(1, called.answered), called.by_length + called.failed
    unexpected = called.unexpected
    expected = grading.stated(
        "answers.expected", None, text="how many answers were no success it does not say"
    )
    if unexpected is not None:
        expected = grading.stated(
            "answers.expected",
            unexpected <= MOST_UNEXPECTED * answered,
            text=f"{unexpected:,} of {answered:,} answers were not as expected "
            f"(limit {percent(MOST_UNEXPECTED)})",
            chip=f"{unexpected:,} not as expected",
        )
    by_length = grading.stated(
        "failed.by-length",
        called.by_length > called.failed,
        text=f"{called.program} calls {total:,} failed, {called.by_length:,} for their length, "
        f"{called.failed:,} for anything else",
        chip=f"{called.by_length:,} by length alone",
    )

    def words(_: Grade) -> Words:
        share = percent(min(1.0, called.by_length / answered))
        return Words(
            statement=f"{share} of answers count as failed for their length; {called.failed:,} failed",
            explanation=f"{called.program} compares each answer with the length of the first one.",
            advice=f"Read {called.failed:,} failures, not {total:,}; judge answers by status and content.",
            confirm="the same load with a check of the body: no answer fails it",
            impact=IMPACT,
        )

    return on_curve(level.curve, [by_length, expected], [], words, where=level.label)


def _silence(_: Facts, observed: Sequence[Level[CalledFailed]]) -> str:
    called = observed[0].detail
    differ = f"{called.by_length:,} differ in length, {called.failed:,} failed"
    unexpected = "some" if called.unexpected is None else called.unexpected
    return f"{observed[0].step.label}: {differ} and {unexpected} were not as expected"


assess = assessing(ID, TITLE, observe, claim, choose=strongest, silence=_silence)
