"""The catalogue's tables as Markdown, and the two pages of the documentation that show the latest ones."""

from __future__ import annotations

import re
import statistics
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from catalogue import chart
from catalogue.cases import Share, case_of
from catalogue.families import FAMILIES
from catalogue.numbers import FIX_NEAR, NEAR, FixScore, NumberScore
from catalogue.rows import FIRST_SEED, Row, file_of, latest, of_latest_budget, read
from catalogue.running import ROOT
from catalogue.scoring import GRADES, RuleScore, Scores, score

DOCS: Final = ROOT / "docs"
PAGE, APPENDIX, PICTURE = "explain/catalogue.md", "appendix/catalogue.md", "images/catalogue.svg"
QUIET_BELOW: Final = 0.05  # proportion of the processors that other programs use


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
    """List by true cause which causes were named first, and how often."""
    lines = ["| true cause | named first |", "| --- | --- |"]
    for cause in sorted({cause for cause, _ in scores.confusion}):
        named = {first: count for (true, first), count in scores.confusion.items() if true == cause}
        ordered = sorted(named.items(), key=lambda item: (-item[1], item[0]))
        lines.append(f"| {cause} | {', '.join(f'{first} {count}' for first, count in ordered)} |")
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


def first_look() -> list[Row]:
    """Return the answers about the first hold-out seed as given on the day when it was measured."""
    rows = of_latest_budget(read(file_of("hold-out")))
    return [row for row in rows if row["seed"] == FIRST_SEED["hold-out"]]


def headline(scores: Scores) -> str:
    """Return the result in two sentences."""
    true, met, left = scores.precision, scores.recall, scores.twins_with_claims
    low, high = (f"{100 * end:.1f}" for end in true.interval)
    return (
        f"On services that no rule was tuned on, **{true.part} of {true.whole} claims were true** (95 % "
        f"interval {low} to {high}\N{NO-BREAK SPACE}%), {met.part} of {met.whole} required findings were "
        f"made, and {left.part or 'none'} of {left.whole} services without the flaw got a false finding. "
        "This is the first look: each answer as it was given when the service was measured. The services "
        "are the project's own."
    )


def main_shares(scores: Scores) -> list[tuple[str, Share]]:
    """Return the shares that the page leads with; for all of them more is better."""
    quiet = scores.twins_with_claims
    capacity = next((number.near for number in scores.numbers if number.name == "capacity"), Share(0, 0))
    return [
        ("claims that are true", scores.precision),
        ("required findings that were made", scores.recall),
        ("right cause named first", scores.first_cause),
        ("no false finding without a flaw", Share(quiet.whole - quiet.part, quiet.whole)),
        (f"capacities within {100 * NEAR:g} %", capacity),
        ("intervals that hold the truth", scores.covered),
        (f"fixes predicted within {100 * FIX_NEAR:g} %", scores.fixes.near),
    ]


def score_table(first: Scores, today: Scores) -> str:
    """Return the main shares at the first look and with today's rules."""
    lines = [
        "| | first look | 95 % interval | today's rules | 95 % interval |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for (what, then), (_, now) in zip(main_shares(first), main_shares(today), strict=True):
        lines.append(f"| {what} | {_counted(then)} | {_counted(now)} |")
    return "\n".join(lines)


def _counted(share: Share) -> str:
    """Return `181 of 182 | 97.0 to 99.9 %`."""
    low, high = share.interval
    return f"{share.part} of {share.whole} | {100 * low:.1f} to {100 * high:.1f} %"


def scope(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return what was measured at the first look, when, and how busy the machine was."""
    began = sorted(row["began"][:10] for row in rows if row.get("began"))
    days = " and ".join(dict.fromkeys(began[:1] + began[-1:]))
    sentences = _subjects(rows, scores_of(rows))
    return textwrap.fill(f"Measured on {days}. {sentences} The rows do not record the machine.", 100)


def filled(page: str, appendix: str) -> tuple[str, str]:
    """Return both pages with every block made from the latest rows.

    Raises:
        ValueError: A marker names no block, or a block has no marker, or several.
    """
    looked, today = first_look(), of_latest_budget(latest("hold-out"))
    first, now = scores_of(looked), scores_of(today)
    blocks = {
        "result": textwrap.fill(headline(first), 100, break_on_hyphens=False),
        "picture": f"![{'; '.join(f'{what}: {s.part} of {s.whole}' for what, s in main_shares(first))}]"
        f"(../{PICTURE})",
        "score": score_table(first, now),
        "scope": scope(looked),
        "families": f"## The families\n\n{families_table()}",
        "fixes": f"## Families with a fix\n\n{fixes_table()}",
        "hold_out": f"## Hold-out seeds\n\n{table(today)}",
        "development": f"## Development seeds\n\n{table(of_latest_budget(latest('development')))}",
    }
    marked = re.findall(r"<!-- data: (\w+) -->", page + appendix)
    if sorted(marked) != sorted(blocks):
        raise ValueError(f"markers {sorted(marked)}, blocks {sorted(blocks)}")
    place = re.compile(r"(<!-- data: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
    filled_page, filled_appendix = (
        place.sub(lambda at: f"{at[1]}\n{blocks[at[2]].strip()}\n\n{at[3]}", text)
        for text in (page, appendix)
    )
    return filled_page, filled_appendix


def write(docs: Path = DOCS) -> None:
    """Put the latest tables and the picture into both pages; text outside the marks is written by hand."""
    page, appendix = docs / PAGE, docs / APPENDIX
    texts = filled(page.read_text(), appendix.read_text())
    for path, text in zip((page, appendix), texts, strict=True):
        path.write_text(text)
    (docs / PICTURE).write_text(chart.svg(main_shares(scores_of(first_look()))))
