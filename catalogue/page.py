"""The table of the catalogue, as Markdown; and the page of the documentation that shows the latest one."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from catalogue.families import FAMILIES
from catalogue.rows import ROOT, file_of, read
from catalogue.scoring import NumberScore, RuleScore, Scores, Share, case_of, score

PAGE: Final = ROOT / "docs" / "explain" / "catalogue.md"
QUIET_BELOW: Final = 0.05  # of the processors
BEGIN, END = "<!-- begin: made by `python -m catalogue page` -->", "<!-- end -->"


def existing_rules() -> list[str]:
    """Rules that a diagnosis has now."""
    from loadlens import findings

    return list(findings.RULES)


def scores_of(rows: Sequence[Mapping[str, Any]]) -> Scores:
    """Rows held against the truth."""
    return score([case_of(row) for row in rows], existing_rules())


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """What the rows of one split say, as Markdown."""
    if not rows:
        return "Nothing has been run yet.\n"
    found = scores_of(rows)
    return "\n".join(
        [*_head(rows, found), *_rules(found), *_confusion(found), *_numbers(found), *_failures(found)]
    )


def _head(rows: Sequence[Mapping[str, Any]], found: Scores) -> list[str]:
    families = {row["family"] for row in rows}
    subjects = ", ".join(sorted({row["subject"] for row in rows}))
    tiers = ", ".join(sorted({row["tier"] for row in rows}))
    budgets = ", ".join(f"{value:g} s" for value in sorted({row["budget_s"] for row in rows}))
    busy = statistics.median(row["others_busy"] for row in rows)
    return [
        f"{found.cases} services of {len(families)} of {len(FAMILIES)} families, diagnosed at {subjects} "
        f"(tier {tiers}, budget {budgets}). Others used {busy:.0%} of the processors before "
        f"each began (median){_warning(busy)}.",
        "",
        "| | | 95 % interval |",
        "| --- | --- | --- |",
        _line("precision: claims that are true", found.precision),
        _line("recall: needs that were met", found.recall),
        _line("recall, of needs for which there is a rule", found.recall_of_existing),
        _line("nothing missed, nothing wrong", found.exact),
        _line("right cause first, of services with a flaw", found.first_cause),
        _line("false findings: services without a need that got one", found.healthy_with_claims),
        *(_line(f"graded {grade}: true", share) for grade, share in found.grades.items()),
        *(_line(f"{severity} flaws that were found", share) for severity, share in found.by_severity.items()),
        "",
        "| kind | services | precision | recall |",
        "| --- " * 4 + "|",
        *(
            f"| {kind.kind} | {kind.services} | {_short(kind.precision)} | {_short(kind.recall)} |"
            for kind in found.kinds
        ),
        "",
    ]


def _warning(busy: float) -> str:
    if busy < QUIET_BELOW:
        return ""
    return ": what computes, computed more slowly than is true of it, and its numbers are no measure"


def _line(what: str, share: Share) -> str:
    if share.value is None:
        return f"| {what} | none | |"
    low, high = share.interval
    return f"| {what} | {share.part} of {share.whole}, {share.value:.3f} | {low:.3f} to {high:.3f} |"


def _rules(found: Scores) -> list[str]:
    head = [
        "| rule | exists | claims right | wrong | precision | needs met | missed | recall |",
        "| --- " * 8 + "|",
    ]
    return [*head, *map(_rule, found.rules), ""]


def _rule(rule: RuleScore) -> str:
    exists = "yes" if rule.exists else "no"
    return (
        f"| {rule.rule} | {exists} | {rule.right} | {rule.wrong} | {_short(rule.precision)} "
        f"| {rule.met} | {rule.missed} | {_short(rule.recall)} |"
    )


def _short(share: Share) -> str:
    if share.value is None:
        return ""
    low, high = share.interval
    return f"{share.value:.2f} ({low:.2f} to {high:.2f})"


def _confusion(found: Scores) -> list[str]:
    """True cause by row, cause named first by column."""
    named = sorted({first for _, first in found.confusion})
    causes = sorted({cause for cause, _ in found.confusion})
    lines = [f"| true cause / named first | {' | '.join(named)} |", "| --- " * (len(named) + 1) + "|"]
    for cause in causes:
        counts = (str(found.confusion.get((cause, first), 0) or "") for first in named)
        lines.append(f"| {cause} | {' | '.join(counts)} |")
    return [*lines, ""]


def _numbers(found: Scores) -> list[str]:
    lines = [
        "| number | claimed | not claimed | median error | largest error | intervals that hold the truth |",
        "| --- " * 6 + "|",
    ]
    return [*lines, *map(_number, found.numbers), ""]


def _number(number: NumberScore) -> str:
    errors = [abs(error) for error in number.errors]
    median, worst = (f"{statistics.median(errors):.1%}", f"{max(errors):.1%}") if errors else ("", "")
    return (
        f"| {number.name} | {len(errors)} | {number.silent} | {median} | {worst} | {_short(number.covered)} |"
    )


def _failures(found: Scores) -> list[str]:
    return ["Without an answer: " + "; ".join(found.failures) + ".", ""] if found.failures else []


def families_table() -> str:
    """What the catalogue holds."""
    lines = ["| family | | what is wrong, or looks so | must be found | looks like |", "| --- " * 5 + "|"]
    for family in FAMILIES.values():
        label = family.drawn(1).flawed.label
        needed = ", ".join(_all_seen(need.by_tier) for need in label.needs)
        lines.append(
            f"| {family.name} | {family.kind} | {family.flaw} | {needed} | {', '.join(family.looks_like)} |"
        )
    return "\n".join(lines) + "\n"


def _all_seen(by_tier: Mapping[Any, Iterable[str]]) -> str:
    """What must be found when everything may be looked at."""
    tier = max(by_tier)
    return " or ".join(by_tier[tier]) + ("" if tier == "A" else f" (from {tier})")


def write(page: Path = PAGE) -> None:
    """Put the families and the latest tables into the page; what stands around them is written by hand."""
    text = page.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    parts = ["\n## The families\n", families_table()]
    for split, title in (("hold-out", "Hold-out seeds"), ("development", "Development seeds")):
        parts += [f"\n## {title}\n", table(read(file_of(split)))]
    page.write_text(before + BEGIN + "\n" + "\n".join(parts) + "\n" + END + after)
