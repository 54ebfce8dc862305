"""The answer key: the flaw, the lines that cause it, and whether the diagnosis named it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any, Final

from loadlens.demo.flaws import Flaw
from loadlens.model.explanation import Explanation
from loadlens.present import words

# Findings that say how the machine disturbed the measurement.
OF_THE_MACHINE: Final = frozenset({"host.interference", "colocation.contention", "gen.bottleneck"})

NO_CAUSE: Final = "saturation.plateau"


def answer_key_lines(flaw: Flaw, answer: Explanation, *, width: int) -> Iterator[str]:
    """Return the answer key as lines of text of at most this width."""
    yield "Answer key"
    yield from textwrap.wrap(flaw.truth, width, initial_indent="  ", subsequent_indent="  ")
    yield ""
    yield f"  {flaw.file}, the lines that cause it:"
    for line in flaw.source_lines():
        yield f"  {line.number:>4} | {line.text}"
    yield ""
    yield from textwrap.wrap(_verdict(flaw, answer), width, subsequent_indent="  ")


def answer_key_as_dict(flaw: Flaw, answer: Explanation) -> dict[str, Any]:
    """Return the answer key under the names that scripts rely on."""
    return {
        "flaw": flaw.name,
        "truth": flaw.truth,
        "source": str(flaw.source),
        "lines": [line.number for line in flaw.source_lines()],
        "expected_limit": flaw.rule,
        "is_named": flaw.is_named_by(answer),
    }


def _verdict(flaw: Flaw, answer: Explanation) -> str:
    """Return the comparison of the diagnosis with the truth."""
    if flaw.is_named_by(answer):
        return f"{words.GLYPHS['ok']} The diagnosis is right: {answer.limit} ({answer.grade})."
    right = f"Right would be {flaw.rule}"
    finding = next((each for each in answer.findings if each.rule == flaw.rule), None)
    if finding is not None:
        right += f", which is among its findings ({finding.grade.word})"
    if answer.limit in OF_THE_MACHINE:
        return (
            f"{words.GLYPHS['unknown']} The diagnosis names this machine ({answer.limit}), not the service. "
            f"{right}. Try again while no other program runs."
        )
    if answer.limit == NO_CAUSE:
        return (
            f"{words.GLYPHS['unknown']} The diagnosis says where throughput stops, but not why ({NO_CAUSE}). "
            f"{right}."
        )
    if answer.limit is None:
        return f"{words.GLYPHS['unknown']} The diagnosis is undecided. {right}."
    return f"{words.GLYPHS['bad']} The diagnosis is wrong: it names {answer.limit}. {right}."
