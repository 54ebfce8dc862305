"""Answers were called failed for their length alone.

**Means.** A program compares every answer with the length of the first and calls the others failed. Answers
of a service may differ in length; nothing is wrong with them.

**Needs.** A load made by such a program: it calls more answers failed for their length than failed indeed,
and at least 99 % of the answers were as expected.

**Ruled out by.** Answers that were no success, and those that broke off: they are failures.

**Thresholds.** 99 %: with more errors than that, lengths may differ because answers are error pages.

**Do.** Judge by status and by the body's content (`expect:`, `checks:`).

**Confirm.** The same load with a check of the body: no answer fails it.
"""

from __future__ import annotations

from loadlens.diagnose import grading
from loadlens.model.facts import Curve, Facts, Step
from loadlens.model.finding import Absent, Finding, NotAssessed
from loadlens.model.quality import CalledFailed
from loadlens.present import numbers

ID = "failure.misclassified"
TITLE = "failures are differences in length"
EXPLAINS: tuple[str, ...] = ()

MOST_UNEXPECTED = 0.01
IMPACT = 0.04


def assess(facts: Facts) -> Finding | Absent | NotAssessed:
    """Look at every level whose load such a program made."""
    steps = [(curve, step) for curve in facts.curves for step in curve.steps]
    known = [(c, s, called) for c, s in steps if (called := s.quality.called_failed) is not None]
    if not known:
        return Absent(ID, TITLE, "nobody here calls an answer failed for its length")
    found = [f for curve, step, called in known if (f := _finding(curve, step, called)) is not None]
    if found:
        return max(found, key=lambda finding: finding.grade)
    _, step, called = known[0]
    return Absent(
        ID,
        TITLE,
        f"{step.label}: {called.by_length:,} differ in length, {called.failed:,} failed and "
        f"{called.unexpected if called.unexpected is not None else 'some'} were not as expected",
    )


def _finding(curve: Curve, step: Step, called: CalledFailed) -> Finding | None:
    answered, total = max(1, called.answered), called.by_length + called.failed
    unexpected = called.unexpected
    signals = [
        grading.stated(
            "failed.by-length",
            called.by_length > called.failed,
            text=f"{called.program} calls {total:,} failed, {called.by_length:,} for their length, "
            f"{called.failed:,} for anything else",
            chip=f"{called.by_length:,} by length alone",
        ),
        grading.stated(
            "answers.expected",
            None if unexpected is None else unexpected <= MOST_UNEXPECTED * answered,
            text="how many answers were no success it does not say"
            if unexpected is None
            else f"{unexpected:,} of {answered:,} answers were not as expected "
            f"(limit {numbers.percent(MOST_UNEXPECTED)})",
            chip="" if unexpected is None else f"{unexpected:,} not as expected",
        ),
    ]
    grade = grading.grade_of(signals, (), cap=grading.cap_of(curve))
    if grade is None:
        return None
    share = min(1.0, called.by_length / answered)
    return Finding(
        rule=ID,
        grade=grade,
        impact=IMPACT,
        scope=f"{curve.label} · {step.label}",
        statement=grading.statement(
            f"{numbers.percent(share)} of answers count as failed for their length; {called.failed:,} failed"
        ),
        explanation=f"{called.program} compares each answer with the length of the first one.",
        evidence=tuple(signal.evidence for signal in signals),
        counter=(),
        advice=f"Read {called.failed:,} failures, not {total:,}; judge answers by status and content.",
        confirm="the same load with a check of the body: no answer fails it",
        curves=(curve.label,),
    )
