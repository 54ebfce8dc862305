"""Nothing limits the service in the tested range.

**Means.** Every rule that could look stayed silent, every gate passed, and the load did not reach a plateau.

**Needs.** No finding of grade probable or above; no failed gate; processes watched, so that headroom can be
named.

**Ruled out by.** A failed gate, or any other finding.

**Thresholds.** None of its own: it stands on the gates and on the thresholds of every rule that looked.

**Do.** Nothing, or test higher: the headroom is the highest rate and the CPU that was left.

**Confirm.** Twice the load: still no finding.
"""

from __future__ import annotations

from collections.abc import Sequence

from loadlens.findings import evidence as weigh
from loadlens.model.facts import Curve, Facts, Step
from loadlens.model.finding import Absent, Estimate, Finding, Grade, NotAssessed

ID = "no-finding.healthy"
TITLE = "nothing limits in the tested range"


def assess_after(
    facts: Facts, others: Sequence[Finding | Absent | NotAssessed]
) -> Finding | Absent | NotAssessed:
    """Look at what the other rules left."""
    tops = [(curve, curve.steps[-1]) for curve in facts.curves if curve.steps]
    tops = [(c, s) for c, s in tops if isinstance(s.throughput, Estimate)]
    if not tops:
        return NotAssessed(ID, TITLE, "no throughput was measured")
    found = [other for other in others if isinstance(other, Finding)]
    if found:
        return Absent(ID, TITLE, f"found: {', '.join(f.rule for f in found)}")
    failed = [gate for gate in facts.gates if gate.passed is False]
    if failed:
        return Absent(ID, TITLE, f"gate {failed[0].name} failed: {failed[0].text}")
    curve, step = max(tops, key=lambda pair: _rate(pair[1]))
    return _finding(facts, curve, step, others)


def _rate(step: Step) -> float:
    return step.throughput.point if isinstance(step.throughput, Estimate) else 0.0


def _finding(
    facts: Facts, curve: Curve, step: Step, others: Sequence[Finding | Absent | NotAssessed]
) -> Finding | NotAssessed:
    unseen = [other for other in others if isinstance(other, NotAssessed)]
    if not step.processes:
        return NotAssessed(ID, TITLE, "needs the CPU of the service's processes, else headroom is unknown")
    used = step.server_cores / curve.cores_allotted if curve.cores_allotted else 0.0
    unit = "users" if curve.is_closed else "/s offered"
    signals = [
        weigh.stated(
            "gates",
            all(gate.passed for gate in facts.gates) or None,
            text=f"{sum(gate.passed is True for gate in facts.gates)} of {len(facts.gates)} gates pass",
            chip="all gates pass",
        ),
        weigh.stated(
            "rules",
            True if not unseen else None,
            text=f"{len(others) - len(unseen)} rules looked, {len(unseen)} could not",
            chip=f"{len(others) - len(unseen)} rules silent",
        ),
    ]
    grade = weigh.grade_of(signals, [], cap=min(Grade.PROBABLE, weigh.cap_of(curve)))
    if grade is None:
        return NotAssessed(ID, TITLE, weigh.unclear(signals))
    return Finding(
        rule=ID,
        grade=grade,
        impact=0.0,
        scope=curve.label,
        statement=weigh.statement(
            f"Nothing limits up to {weigh.short(step.throughput)}: "
            f"{weigh.percent(1 - used)} of the CPU is left"
        ),
        explanation=f"At {step.load:g} {unit} the mean response time is {weigh.shown(step.response.mean)} "
        f"and {weigh.shown(step.failed)} of requests fail.",
        evidence=tuple(signal.evidence for signal in signals),
        counter=(),
        advice=f"Test beyond {step.load:g} {unit} before relying on more.",
        confirm=f"{2 * step.load:g} {unit}: still no finding",
        unknown=tuple(f"{other.title}: {other.reason}" for other in unseen),
        curves=(curve.label,),
    )
