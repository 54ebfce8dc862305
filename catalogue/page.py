"""The catalogue's tables as Markdown, and the page of the documentation that shows the latest ones."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from catalogue.cases import Share, case_of
from catalogue.families import FAMILIES
from catalogue.numbers import FIX_NEAR, NEAR, FixScore, NumberScore
from catalogue.rows import Split, latest, of_latest_budget
from catalogue.running import ROOT
from catalogue.scoring import GRADES, RuleScore, Scores, score

PAGE: Final = ROOT / "docs" / "explain" / "catalogue.md"
QUIET_BELOW: Final = 0.05  # proportion of the processors that other programs use
BEGIN, END = "<!-- begin: made by `python -m catalogue page` -->", "<!-- end -->"


def existing_rules() -> list[str]:
    """Return the IDs of all rules of this commit."""
    from loadlens import diagnose

    return [rule.ID for rule in diagnose.PAGES]


def scores_of(rows: Sequence[Mapping[str, Any]]) -> Scores:
    """Score rows against the truth."""
    return score([case_of(row) for row in rows], existing_rules())


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the scores of one split's rows, as Markdown."""
    if not rows:
        return "Nothing has been run yet.\n"
    scores = scores_of(rows)
    parts = (_head, _kinds, _false_findings, _rules, _grades, _confusion, _numbers, _fixes, _failures)
    return "\n".join([_subjects(rows, scores), "", *(line for part in parts for line in part(scores))])


def _subjects(rows: Sequence[Mapping[str, Any]], scores: Scores) -> str:
    families = {row["family"] for row in rows}
    measured = _listed(row["subject"] for row in rows)
    judged = _listed(row["judged"] for row in rows if row.get("judged"))
    tiers = _listed(row["tier"] for row in rows)
    budgets = ", ".join(f"{value:g} s" for value in sorted({row["budget_s"] for row in rows}))
    busy = statistics.median(row["others_busy"] for row in rows)
    return (
        f"{scores.cases} services from {len(families)} of {len(FAMILIES)} families, diagnosed at {measured}"
        f"{f', judged again by the rules of {judged}' if judged else ''} "
        f"(tier {tiers}, budget {budgets}). Before each diagnosis, other programs used {busy:.0%} of the "
        f"processors (median){_warning(busy)}."
    )


def _listed(values: Iterable[str]) -> str:
    return ", ".join(sorted(set(values)))


def _warning(busy: float) -> str:
    if busy < QUIET_BELOW:
        return ""
    return ": services that compute were slowed down, so the errors of their numbers are not reliable"


def _head(scores: Scores) -> list[str]:
    capacity = next((number.near for number in scores.numbers if number.name == "capacity"), Share(0, 0))
    return [
        "| | | 95 % interval |",
        "| --- | --- | --- |",
        _line("precision: claims that are true", scores.precision),
        _line("recall: needs that were met", scores.recall),
        _line("recall, of needs for which there is a rule", scores.recall_of_existing),
        _line("nothing missed, nothing wrong", scores.exact),
        _line("right cause first, of services with a flaw", scores.first_cause),
        _line("right cause first, of flaws for which there is a rule", scores.first_of_existing),
        _line("false findings: services without a need that got one", scores.healthy_with_claims),
        _line("false findings: twins and healthy services that got one", scores.twins_with_claims),
        _line(f"capacity within {NEAR:.0%}, of those that were claimed", capacity),
        _line("intervals of numbers that hold the truth", scores.covered),
        _line(f"fixes predicted within {FIX_NEAR:.0%}, of those that could be compared", scores.fixes.near),
        *(
            _line(f"graded {grade}: true (at least {GRADES[grade]:g} is promised)", share)
            for grade, share in scores.grades.items()
        ),
        *(
            _line(f"{severity} flaws that were found", share)
            for severity, share in scores.by_severity.items()
        ),
        "",
    ]


def _line(what: str, share: Share) -> str:
    if share.value is None:
        return f"| {what} | none | |"
    low, high = share.interval
    return f"| {what} | {share.part} of {share.whole}, {share.value:.3f} | {low:.3f} to {high:.3f} |"


def _kinds(scores: Scores) -> list[str]:
    return [
        "| kind | services | precision | recall | nothing missed, nothing wrong |",
        "| --- " * 5 + "|",
        *(
            f"| {kind.kind} | {kind.services} | {_short(kind.precision)} | {_short(kind.recall)} "
            f"| {_short(kind.exact)} |"
            for kind in scores.kinds
        ),
        "",
    ]


def _false_findings(scores: Scores) -> list[str]:
    """List false findings by name: there should be none."""
    if not scores.false_findings:
        return []
    named = (f"{place}: {', '.join(rules)}" for place, rules in scores.false_findings.items())
    return ["False findings: " + "; ".join(named) + ".", ""]


def _rules(scores: Scores) -> list[str]:
    head = [
        "| rule | exists | claims right | wrong | precision | needs met | missed | recall |",
        "| --- " * 8 + "|",
    ]
    without_a_rule = []
    if scores.without_a_rule:
        named = (f"{rule} ({count})" for rule, count in sorted(scores.without_a_rule.items()))
        without_a_rule = [f"Needs for which there is no rule, all of them missed: {', '.join(named)}.", ""]
    return [*head, *map(_rule, scores.rules), "", *without_a_rule]


def _rule(rule: RuleScore) -> str:
    exists = "yes" if rule.exists else "no"
    return (
        f"| {rule.rule} | {exists} | {rule.right} | {rule.wrong} | {_short(rule.precision)} "
        f"| {rule.met} | {rule.missed} | {_short(rule.recall)} |"
    )


def _grades(scores: Scores) -> list[str]:
    """Count true findings by rule and grade; leave out rules without findings."""
    fired = [rule for rule in scores.rules if any(share.whole for share in rule.grades.values())]
    if not fired:
        return []
    lines = [f"| rule: true findings of all | {' | '.join(GRADES)} |", "| --- " * (len(GRADES) + 1) + "|"]
    for rule in fired:
        shares = (rule.grades[grade] for grade in GRADES)
        cells = (f"{share.part} of {share.whole}" if share.whole else "" for share in shares)
        lines.append(f"| {rule.rule} | {' | '.join(cells)} |")
    return [*lines, ""]


def _short(share: Share) -> str:
    if share.value is None:
        return ""
    low, high = share.interval
    return f"{share.value:.2f} ({low:.2f} to {high:.2f})"


def _confusion(scores: Scores) -> list[str]:
    """Tabulate the true cause by row and the cause named first by column."""
    named = sorted({first for _, first in scores.confusion})
    causes = sorted({cause for cause, _ in scores.confusion})
    lines = [f"| true cause / named first | {' | '.join(named)} |", "| --- " * (len(named) + 1) + "|"]
    for cause in causes:
        counts = (str(scores.confusion.get((cause, first), 0) or "") for first in named)
        lines.append(f"| {cause} | {' | '.join(counts)} |")
    return [*lines, ""]


def _numbers(scores: Scores) -> list[str]:
    lines = [
        (
            f"| number | claimed | not claimed | median error | largest error | within {NEAR:.0%} "
            "| intervals that hold the truth |"
        ),
        "| --- " * 7 + "|",
    ]
    return [*lines, *map(_number, scores.numbers), ""]


def _number(number: NumberScore) -> str:
    errors = [abs(error) for error in number.errors]
    median, worst = (f"{statistics.median(errors):.1%}", f"{max(errors):.1%}") if errors else ("", "")
    return (
        f"| {number.name} | {len(errors)} | {number.silent} | {median} | {worst} | {_short(number.near)} "
        f"| {_short(number.covered)} |"
    )


def _fixes(scores: Scores) -> list[str]:
    fixes: FixScore = scores.fixes
    lines = []
    if fixes.seen:
        lines += ["| fix of | predicted | measured with the fix | error |", "| --- " * 4 + "|"]
        lines += [
            f"| {place} | {predicted:.4g}/s | {measured:.4g}/s | {fixes.errors[place]:+.1%} |"
            for place, (predicted, measured) in fixes.seen.items()
        ]
        lines.append("")
    not_compared = (
        ("No predicted gain", fixes.silent),
        (
            "Gain predicted, but the repaired service was not measured or has no measured capacity",
            fixes.unmeasured,
        ),
    )
    for what, places in not_compared:
        lines += [f"{what}: {', '.join(places)}.", ""] if places else []
    return lines


def _failures(scores: Scores) -> list[str]:
    return ["Without an answer: " + "; ".join(scores.failures) + ".", ""] if scores.failures else []


def families_table() -> str:
    """Return the table of all families."""
    lines = ["| family | kind | flaw, or apparent flaw | must be found | looks like |", "| --- " * 5 + "|"]
    for family in FAMILIES.values():
        label = family.drawn(1).flawed.label
        needed = ", ".join(_all_seen(need.by_tier) for need in label.needs)
        lines.append(
            f"| {family.name} | {family.kind} | {family.flaw} | {needed} | {', '.join(family.looks_like)} |"
        )
    return "\n".join(lines) + "\n"


def _all_seen(by_tier: Mapping[Any, Iterable[str]]) -> str:
    """Return the rules of the highest tier, and the tier from which they are required."""
    tier = max(by_tier)
    return " or ".join(by_tier[tier]) + ("" if tier == "A" else f" (from {tier})")


def fixes_table() -> str:
    """Return the table of families with a service to which the advice was applied."""
    lines = ["| family | fix | compared with | advised by |", "| --- " * 4 + "|"]
    for family in FAMILIES.values():
        if family.fix is not None:
            is_own = family.drawn(1).repaired is not None
            which = "a repaired service" if is_own else "the twin"
            rules = ", ".join(family.fix.rules)
            lines.append(f"| {family.name} | {family.fix.what} | {which} | {rules} |")
    return "\n".join(lines) + "\n"


def write(page: Path = PAGE) -> None:
    """Put the families and the latest tables into the page; text outside the marks is written by hand."""
    text = page.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    parts = ["\n## The families\n", families_table(), "\n## Families with a fix\n", fixes_table()]
    splits: dict[Split, str] = {"hold-out": "Hold-out seeds", "development": "Development seeds"}
    for split, title in splits.items():
        parts += [f"\n## {title}\n", table(of_latest_budget(latest(split)))]
    page.write_text(before + BEGIN + "\n" + "\n".join(parts) + "\n" + END + after)
