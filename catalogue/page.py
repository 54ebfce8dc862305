"""The table of the catalogue, as Markdown; and the page of the documentation that shows the latest one."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from catalogue.cases import Share, case_of
from catalogue.families import FAMILIES
from catalogue.numbers import FIX_NEAR, NEAR, FixScore, NumberScore
from catalogue.rows import ROOT, latest, of_latest_budget
from catalogue.scoring import GRADES, RuleScore, Scores, score

PAGE: Final = ROOT / "docs" / "explain" / "catalogue.md"
QUIET_BELOW: Final = 0.05  # of the processors
BEGIN, END = "<!-- begin: made by `python -m catalogue page` -->", "<!-- end -->"


def existing_rules() -> list[str]:
    """Rules that a diagnosis has now."""
    from loadlens import diagnose

    return [rule.ID for rule in diagnose.PAGES]


def scores_of(rows: Sequence[Mapping[str, Any]]) -> Scores:
    """Rows held against the truth."""
    return score([case_of(row) for row in rows], existing_rules())


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """What the rows of one split say, as Markdown."""
    if not rows:
        return "Nothing has been run yet.\n"
    found = scores_of(rows)
    parts = (_head, _kinds, _false_findings, _rules, _grades, _confusion, _numbers, _fixes, _failures)
    return "\n".join([_subjects(rows, found), "", *(line for part in parts for line in part(found))])


def _subjects(rows: Sequence[Mapping[str, Any]], found: Scores) -> str:
    families = {row["family"] for row in rows}
    measured = _listed(row["subject"] for row in rows)
    judged = _listed(row["judged"] for row in rows if row.get("judged"))
    tiers = _listed(row["tier"] for row in rows)
    budgets = ", ".join(f"{value:g} s" for value in sorted({row["budget_s"] for row in rows}))
    busy = statistics.median(row["others_busy"] for row in rows)
    return (
        f"{found.cases} services of {len(families)} of {len(FAMILIES)} families, diagnosed at {measured}"
        f"{f', judged again by the rules of {judged}' if judged else ''} "
        f"(tier {tiers}, budget {budgets}). Others used {busy:.0%} of the processors before "
        f"each began (median){_warning(busy)}."
    )


def _listed(values: Iterable[str]) -> str:
    return ", ".join(sorted(set(values)))


def _warning(busy: float) -> str:
    if busy < QUIET_BELOW:
        return ""
    return ": what computes, computed more slowly than is true of it, and its numbers are no measure"


def _head(found: Scores) -> list[str]:
    capacity = next((one.near for one in found.numbers if one.name == "capacity"), Share(0, 0))
    return [
        "| | | 95 % interval |",
        "| --- | --- | --- |",
        _line("precision: claims that are true", found.precision),
        _line("recall: needs that were met", found.recall),
        _line("recall, of needs for which there is a rule", found.recall_of_existing),
        _line("nothing missed, nothing wrong", found.exact),
        _line("right cause first, of services with a flaw", found.first_cause),
        _line("right cause first, of flaws for which there is a rule", found.first_of_existing),
        _line("false findings: services without a need that got one", found.healthy_with_claims),
        _line("false findings: twins and healthy services that got one", found.twins_with_claims),
        _line(f"capacity within {NEAR:.0%}, of those that were claimed", capacity),
        _line("intervals of numbers that hold the truth", found.covered),
        _line(f"fixes predicted within {FIX_NEAR:.0%}, of those that could be compared", found.fixes.near),
        *(
            _line(f"graded {grade}: true (at least {GRADES[grade]:g} is promised)", share)
            for grade, share in found.grades.items()
        ),
        *(_line(f"{severity} flaws that were found", share) for severity, share in found.by_severity.items()),
        "",
    ]


def _line(what: str, share: Share) -> str:
    if share.value is None:
        return f"| {what} | none | |"
    low, high = share.interval
    return f"| {what} | {share.part} of {share.whole}, {share.value:.3f} | {low:.3f} to {high:.3f} |"


def _kinds(found: Scores) -> list[str]:
    return [
        "| kind | services | precision | recall | nothing missed, nothing wrong |",
        "| --- " * 5 + "|",
        *(
            f"| {kind.kind} | {kind.services} | {_short(kind.precision)} | {_short(kind.recall)} "
            f"| {_short(kind.exact)} |"
            for kind in found.kinds
        ),
        "",
    ]


def _false_findings(found: Scores) -> list[str]:
    """Each by name: there should be none."""
    if not found.false_findings:
        return []
    named = (f"{place}: {', '.join(rules)}" for place, rules in found.false_findings.items())
    return ["False findings: " + "; ".join(named) + ".", ""]


def _rules(found: Scores) -> list[str]:
    head = [
        "| rule | exists | claims right | wrong | precision | needs met | missed | recall |",
        "| --- " * 8 + "|",
    ]
    apart = []
    if found.without_a_rule:
        named = (f"{rule} ({count})" for rule, count in sorted(found.without_a_rule.items()))
        apart = [f"Needs for which there is no rule, all of them missed: {', '.join(named)}.", ""]
    return [*head, *map(_rule, found.rules), "", *apart]


def _rule(rule: RuleScore) -> str:
    exists = "yes" if rule.exists else "no"
    return (
        f"| {rule.rule} | {exists} | {rule.right} | {rule.wrong} | {_short(rule.precision)} "
        f"| {rule.met} | {rule.missed} | {_short(rule.recall)} |"
    )


def _grades(found: Scores) -> list[str]:
    """Of the findings of each rule and grade, those that are true; rules that found nothing are left out."""
    spoke = [rule for rule in found.rules if any(share.whole for share in rule.grades.values())]
    if not spoke:
        return []
    lines = [f"| rule, true of all | {' | '.join(GRADES)} |", "| --- " * (len(GRADES) + 1) + "|"]
    for rule in spoke:
        shares = (rule.grades[grade] for grade in GRADES)
        cells = (f"{share.part} of {share.whole}" if share.whole else "" for share in shares)
        lines.append(f"| {rule.rule} | {' | '.join(cells)} |")
    return [*lines, ""]


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
        (
            f"| number | claimed | not claimed | median error | largest error | within {NEAR:.0%} "
            "| intervals that hold the truth |"
        ),
        "| --- " * 7 + "|",
    ]
    return [*lines, *map(_number, found.numbers), ""]


def _number(number: NumberScore) -> str:
    errors = [abs(error) for error in number.errors]
    median, worst = (f"{statistics.median(errors):.1%}", f"{max(errors):.1%}") if errors else ("", "")
    return (
        f"| {number.name} | {len(errors)} | {number.silent} | {median} | {worst} | {_short(number.near)} "
        f"| {_short(number.covered)} |"
    )


def _fixes(found: Scores) -> list[str]:
    fixes: FixScore = found.fixes
    lines = []
    if fixes.seen:
        lines += ["| fix of | predicted | measured with it | error |", "| --- " * 4 + "|"]
        lines += [
            f"| {place} | {said:.4g}/s | {true:.4g}/s | {fixes.errors[place]:+.1%} |"
            for place, (said, true) in fixes.seen.items()
        ]
        lines.append("")
    apart = (
        ("Of these nobody said what the fix brings", fixes.silent),
        ("It was said, and what was mended was not measured or showed no capacity", fixes.unmeasured),
    )
    for what, places in apart:
        lines += [f"{what}: {', '.join(places)}.", ""] if places else []
    return lines


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


def mends_table() -> str:
    """Families of which a service is known that somebody gets who follows the advice."""
    lines = ["| family | the fix | which is | advice of |", "| --- " * 4 + "|"]
    for family in FAMILIES.values():
        if family.mend is not None:
            is_own = family.drawn(1).mended is not None
            which = "a service of its own" if is_own else "the twin"
            rules = ", ".join(family.mend.rules)
            lines.append(f"| {family.name} | {family.mend.what} | {which} | {rules} |")
    return "\n".join(lines) + "\n"


def write(page: Path = PAGE) -> None:
    """Put the families and the latest tables into the page; what stands around them is written by hand."""
    text = page.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    parts = ["\n## The families\n", families_table(), "\n## Fixes that are known\n", mends_table()]
    for split, title in (("hold-out", "Hold-out seeds"), ("development", "Development seeds")):
        parts += [f"\n## {title}\n", table(of_latest_budget(latest(split)))]
    page.write_text(before + BEGIN + "\n" + "\n".join(parts) + "\n" + END + after)
