"""Why a rule spoke or was silent about one record: what somebody needs to see who writes the rule."""

from __future__ import annotations

from collections.abc import Iterator

from catalogue.cases import CLAIMED, Case, Json
from catalogue.claims import CLAIMS
from catalogue.families import FAMILIES
from catalogue.numbers import CAPACITY, NEAR, Claimed, claim_of, foretold

INDENT = "    "


def why(case: Case, said: Json) -> str:
    """Everything that the rules said of one service, beside the truth.

    Args:
        case: The truth, with what of the answer is held against it.
        said: The whole answer, as `explain --json` gives it.
    """
    return "\n".join(_lines(case, said)) + "\n"


def _lines(case: Case, said: Json) -> Iterator[str]:
    yield f"{case.place}, tier {case.tier}, {case.budget_s:g} s: {_truth(case)}"
    if not said:
        yield f"no answer: {case.failure}"
        return
    if case.failure:
        yield f"failed: {case.failure}"
    yield f"said: {said.get('answer')}"
    yield f"stopped: {said.get('stopped_because')}, {said.get('stopped')}; levels {_levels(said)}"
    for rules in case.needs:
        met = any(rule in case.claims for rule in rules)
        yield f"\nneeded, {'found' if met else 'MISSED'}: {' or '.join(rules)}"
        for rule in rules:
            yield from _of_rule(rule, said)
    for rule in case.false_claims:
        yield "\nFALSE"
        yield from _of_rule(rule, said)
    yield from _besides(case)
    yield from _numbers(case)
    yield from _fix(case)


def _truth(case: Case) -> str:
    flaw = FAMILIES[case.family].flaw
    if case.side == "twin":
        return f'the twin, without "{flaw}"'
    mend = FAMILIES[case.family].mend
    if case.side == "mended" and mend is not None:
        return f"{flaw}, mended: {mend.what}"
    return f"{flaw} (severity {case.severity:.2f})"


def _levels(said: Json) -> str:
    levels = [f"{rung['users']:g}x{rung['trials']}" for rung in said.get("ladder") or ()]
    return " ".join(levels) or "none"


def status(rule: str, said: Json) -> str:
    """What a rule said, in one line: found with its grade, absent, not assessed, or that there is none."""
    finding = next((one for one in said.get("findings", ()) if one["rule"] == rule), None)
    if finding is not None:
        folded = f", explained by {finding['explained_by']}" if finding.get("explained_by") else ""
        return f"{finding['grade']}{folded}: {finding['statement']}"
    for name, word in (("absent", "absent"), ("not_assessed", "not assessed")):
        other = next((one for one in said.get(name, ()) if one["rule"] == rule), None)
        if other is not None:
            return f"{word}: {other['reason']}"
    return "no such rule"


def _of_rule(rule: str, said: Json) -> Iterator[str]:
    yield f"  {rule}: {status(rule, said)}"
    finding = next((one for one in said.get("findings", ()) if one["rule"] == rule), None)
    if finding is None:
        return
    for part in finding.get("evidence") or ():
        sign = {True: "+", False: "-", None: "?"}[part.get("passed")]
        yield f"{INDENT}{sign} {part['signal']}{_figure(part)}: {part['text']}"
    for rival in finding.get("counter") or ():
        sign = {True: "excluded", False: "NOT EXCLUDED", None: "not looked at"}[rival["ruled_out"]]
        yield f"{INDENT}rival {rival['rival']}, {sign}: {rival['text']}"
    for text in finding.get("unknown") or ():
        yield f"{INDENT}unknown: {text}"


def _figure(part: Json) -> str:
    if part.get("value") is None:
        return ""
    threshold = f", threshold {part['threshold']:.4g}" if part.get("threshold") is not None else ""
    return f" = {_claimed(Claimed(part['value'], part.get('low'), part.get('high')))}{threshold}"


def _claimed(claim: Claimed) -> str:
    if not claim.has_interval:
        return f"{claim.point:.4g}"
    low, high = ("…" if end is None else f"{end:.4g}" for end in (claim.low, claim.high))
    return f"{claim.point:.4g} ({low} to {high})"


def _besides(case: Case) -> Iterator[str]:
    """What else was found and is true, and what was merely suspected."""
    needed = {rule for rules in case.needs for rule in rules}
    others = [
        f"{one['rule']} ({one['grade']}{'' if one['rule'] in case.known.label.true else ', not true'})"
        for one in case.findings
        if one["rule"] not in needed and not (one["rule"] in case.false_claims and one["grade"] in CLAIMED)
    ]
    if others:
        yield f"\nbesides: {', '.join(others)}"


def _numbers(case: Case) -> Iterator[str]:
    yield ""
    for name in (CAPACITY, *CLAIMS):
        truth = case.known.numbers.get(name)
        if truth is None:
            continue
        claim = claim_of(case, name)
        if claim is None:
            yield f"{name}: {truth.value:.4g} {truth.unit}, not claimed"
            continue
        out = ", OUTSIDE" if claim.has_interval and not claim.holds(truth.value) else ""
        if claim.is_bound:
            yield f"{name}: {truth.value:.4g} {truth.unit}, said {_claimed(claim)}{out}"
            continue
        error = claim.point / truth.value - 1
        far = "" if abs(error) <= NEAR else ", FAR"
        yield f"{name}: {truth.value:.4g} {truth.unit}, said {_claimed(claim)}: {error:+.1%}{far}{out}"


def _fix(case: Case) -> Iterator[str]:
    mend = FAMILIES[case.family].mend
    if mend is None or case.side != "flawed":
        return
    said, drawn = foretold(case), FAMILIES[case.family].drawn(case.seed)
    fixed = drawn.mended or drawn.twin
    assert fixed is not None
    yield (
        f"the fix ({mend.what}): {fixed.capacity_per_s:.4g} 1/s by its formula, "
        f"said {'nothing' if said is None else _claimed(said)}"
    )
