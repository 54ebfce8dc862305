"""Nothing limits the service in the tested range.

**Means.** Every rule that could look stayed silent, every gate passed, and the load did not reach a plateau.
A load that ended before the capacity is said first: then nothing is known beyond it.

**Needs.** No finding that names a limit; no failed gate; processes watched, so that headroom can be named.
Rules that could not look are listed with what they lack; without a load curve it is suspected at most.

**Ruled out by.** A failed gate, or any other finding but one that only says how far figures go.

**Thresholds.** None of its own: it stands on the gates and on the thresholds of every rule that looked.

**Do.** Nothing, or test higher: the headroom is the highest rate and the CPU that was left.

**Confirm.** Twice the load: still no finding.
"""

from __future__ import annotations

from collections.abc import Sequence

from loadlens.diagnose import grading
from loadlens.diagnose.rules.capacity_limits import saturation_plateau
from loadlens.diagnose.rules.measurement import load_underdriven
from loadlens.measure import figures
from loadlens.model.facts import Curve, Facts, Step
from loadlens.model.finding import Absent, Estimate, Finding, Grade, NotAssessed
from loadlens.model.notes import NOTES
from loadlens.present import numbers

ID = "no-finding.healthy"
TITLE = "nothing limits in the tested range"
EXPLAINS: tuple[str, ...] = ()


def assess_after(
    facts: Facts, others: Sequence[Finding | Absent | NotAssessed]
) -> Finding | Absent | NotAssessed:
    """Look at what the other rules left."""
    tops = [(curve, curve.steps[-1]) for curve in facts.curves if curve.steps]
    tops = [(c, s) for c, s in tops if isinstance(s.throughput, Estimate)]
    if not tops:
        return NotAssessed(ID, TITLE, "no throughput was measured")
    found = [other for other in others if isinstance(other, Finding) and other.rule not in NOTES]
    if found:
        return Absent(ID, TITLE, f"found: {', '.join(f.rule for f in found)}")
    failed = [gate for gate in facts.gates if gate.passed is False]
    if failed:
        return Absent(ID, TITLE, f"gate {failed[0].name} failed: {failed[0].text}")
    curve, step = max(tops, key=lambda pair: figures.point(pair[1].throughput))
    return _finding(facts, curve, step, others)


def _used(facts: Facts, curve: Curve, step: Step) -> float:
    """Share of the service's cores that is taken: by itself, and by all on cores that others may use too."""
    used = step.server_cores / curve.cores_allotted if curve.cores_allotted else 0.0
    shares_all = curve.is_here and curve.shares_cores is not False and curve.cores_allotted >= facts.cores
    if shares_all and isinstance(step.host_cpu, Estimate):
        used = max(used, step.host_cpu.point / facts.cores)
    return min(1.0, used)


def _finding(
    facts: Facts, curve: Curve, step: Step, others: Sequence[Finding | Absent | NotAssessed]
) -> Finding | NotAssessed:
    unseen = [other for other in others if isinstance(other, NotAssessed)]
    if not step.processes:
        return NotAssessed(ID, TITLE, "needs the CPU of the service's processes, else headroom is unknown")
    used = _used(facts, curve, step)
    unit = "users" if curve.is_closed else "/s offered"
    signals = [
        grading.stated(
            "gates",
            all(gate.passed for gate in facts.gates) or None,
            text=f"{sum(gate.passed is True for gate in facts.gates)} of {len(facts.gates)} gates pass",
            chip="all gates pass",
        ),
        grading.stated(
            "rules",
            None if any(other.rule == saturation_plateau.ID for other in unseen) else True,
            text=f"{len(others) - len(unseen)} rules looked, {len(unseen)} could not",
            chip=f"{len(others) - len(unseen)} rules silent",
        ),
    ]
    short = any(isinstance(other, Finding) and other.rule == load_underdriven.ID for other in others)
    grade = grading.grade_of(signals, [], cap=min(Grade.PROBABLE, grading.cap_of(curve)))
    if grade is None:
        return NotAssessed(ID, TITLE, grading.unclear(signals))
    return Finding(
        rule=ID,
        grade=grade,
        impact=0.0,
        scope=curve.label,
        statement=grading.statement(
            f"{'Underdriven: nothing' if short else 'Nothing'} limits up to "
            f"{numbers.short(step.throughput)}: "
            f"{numbers.percent(1 - used)} of the CPU is left"
        ),
        explanation=f"At {step.load:g} {unit} the mean response time is {numbers.shown(step.response.mean)} "
        f"and {numbers.shown(step.failed)} of requests fail.",
        evidence=tuple(signal.evidence for signal in signals),
        counter=(),
        advice=f"Test beyond {step.load:g} {unit} before relying on more.",
        confirm=f"{2 * step.load:g} {unit}: still no finding",
        unknown=tuple(f"{other.title}: {other.reason}" for other in unseen),
        curves=(curve.label,),
    )
