"""Prints why each rule fired or not on one record, for the author of a rule."""

from __future__ import annotations

from collections.abc import Iterator

from catalogue.cases import CLAIMED, Case, Json
from catalogue.claims import CLAIMS
from catalogue.families import FAMILIES
from catalogue.numbers import CAPACITY, NEAR, Claimed, claim_of, predicted_capacity

INDENT = "    "


def why(case: Case, explanation: Json) -> str:
    """Return the result of every relevant rule on one service, next to the truth.

    Args:
        case: The truth, with the parts of the answer that are scored.
        explanation: The whole answer, as in `explain --json`.
    """
    return "\n".join(_lines(case, explanation)) + "\n"


def _lines(case: Case, explanation: Json) -> Iterator[str]:
    yield f"{case.place}, tier {case.tier}, {case.budget_s:g} s: {_truth(case)}"
    if not explanation:
        yield f"no answer: {case.failure}"
        return
    if case.failure:
        yield f"failed: {case.failure}"
    yield f"answer: {explanation.get('answer')}"
    stop = f"{explanation.get('stopped_because')}, {explanation.get('stopped')}"
    yield f"stopped: {stop}; levels {_levels(explanation)}"
    for rules in case.needs:
        met = any(rule in case.claims for rule in rules)
        yield f"\nneeded, {'found' if met else 'MISSED'}: {' or '.join(rules)}"
        for rule in rules:
            yield from _of_rule(rule, explanation)
    for rule in case.false_claims:
        yield "\nFALSE"
        yield from _of_rule(rule, explanation)
    yield from _others(case)
    yield from _numbers(case)
    yield from _fix(case)


def _truth(case: Case) -> str:
    flaw = FAMILIES[case.family].flaw
    if case.side == "twin":
        return f'the twin, without "{flaw}"'
    fix = FAMILIES[case.family].fix
    if case.side == "repaired" and fix is not None:
        return f"{flaw}, repaired: {fix.what}"
    return f"{flaw} (severity {case.severity:.2f})"


def _levels(explanation: Json) -> str:
    levels = [f"{rung['users']:g}x{rung['trials']}" for rung in explanation.get("ladder") or ()]
    return " ".join(levels) or "none"


def status(rule: str, explanation: Json) -> str:
    """Return the result of a rule in one line: found, absent, not assessed, or no such rule."""
    finding = _entry(explanation, "findings", rule)
    if finding is not None:
        folded = f", explained by {finding['explained_by']}" if finding.get("explained_by") else ""
        return f"{finding['grade']}{folded}: {finding['statement']}"
    for name, word in (("absent", "absent"), ("not_assessed", "not assessed")):
        entry = _entry(explanation, name, rule)
        if entry is not None:
            return f"{word}: {entry['reason']}"
    return "no such rule"


def _entry(explanation: Json, name: str, rule: str) -> Json | None:
    return next((entry for entry in explanation.get(name, ()) if entry["rule"] == rule), None)


def _of_rule(rule: str, explanation: Json) -> Iterator[str]:
    yield f"  {rule}: {status(rule, explanation)}"
    finding = _entry(explanation, "findings", rule)
    if finding is None:
        return
    for part in finding.get("evidence") or ():
        sign = {True: "+", False: "-", None: "?"}[part.get("passed")]
        yield f"{INDENT}{sign} {part['signal']}{_figure(part)}: {part['text']}"
    for rival in finding.get("counter") or ():
        sign = {True: "excluded", False: "NOT EXCLUDED", None: "not assessed"}[rival["ruled_out"]]
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


def _others(case: Case) -> Iterator[str]:
    """Yield the findings not printed so far: true but not needed, or only suspected."""
    printed = {rule for rules in case.needs for rule in rules}
    others = []
    for finding in case.findings:
        rule, grade = finding["rule"], finding["grade"]
        if rule not in printed and not (rule in case.false_claims and grade in CLAIMED):
            others.append(f"{rule} ({grade}{'' if rule in case.truth.label.true else ', not true'})")
    if others:
        yield f"\nother findings: {', '.join(others)}"


def _numbers(case: Case) -> Iterator[str]:
    yield ""
    for name in (CAPACITY, *CLAIMS):
        truth = case.truth.numbers.get(name)
        if truth is None:
            continue
        claim = claim_of(case, name)
        if claim is None:
            yield f"{name}: {truth.value:.4g} {truth.unit}, not claimed"
            continue
        out = ", OUTSIDE" if claim.has_interval and not claim.holds(truth.value) else ""
        if claim.is_bound:
            yield f"{name}: {truth.value:.4g} {truth.unit}, claimed {_claimed(claim)}{out}"
            continue
        error = claim.point / truth.value - 1
        far = "" if abs(error) <= NEAR else ", FAR"
        yield f"{name}: {truth.value:.4g} {truth.unit}, claimed {_claimed(claim)}: {error:+.1%}{far}{out}"


def _fix(case: Case) -> Iterator[str]:
    fix = FAMILIES[case.family].fix
    if fix is None or case.side != "flawed":
        return
    predicted, drawn = predicted_capacity(case), FAMILIES[case.family].drawn(case.seed)
    fixed = drawn.repaired or drawn.twin
    assert fixed is not None
    yield (
        f"with the fix ({fix.what}): {fixed.capacity_per_s:.4g} 1/s by its formula, "
        f"{'not predicted' if predicted is None else f'predicted {_claimed(predicted)}'}"
    )
