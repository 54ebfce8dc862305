"""Nothing limits the service in the tested range.

**Means.** Every rule that could look stayed silent, every gate passed, and the load did not reach a plateau.
If the load ended before the capacity, the statement says so first: nothing is known beyond it.

**Needs.** No finding that names a limit; no failed gate; processes watched, so that headroom can be named.
Rules that could not look are listed with what they lack; without a load curve it is suspected at most.

**Ruled out by.** A failed gate, any other finding except a note on how far figures go, or a level at which
more than 1 % of the requests fail.

**Thresholds.** None of its own but 1 %, the share from which times and rates of the rest are not those of
all; it relies on the gates and on the thresholds of every rule that looked.

**Do.** Nothing, or test higher: the headroom is the highest rate and the CPU that was left.

**Confirm.** Double the load: still no finding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Answer, Claim, Lacking, Nothing, Words, assessing_after, on_curve
from loadlens.diagnose.rules.capacity_limits import saturation_plateau
from loadlens.diagnose.rules.measurement import load_underdriven
from loadlens.measure import figures
from loadlens.measure.thresholds import FEW_FAIL
from loadlens.model.facts import Curve, Facts, Step
from loadlens.model.finding import Estimate, Finding, Grade, NotAssessed
from loadlens.model.notes import NOTES
from loadlens.present import numbers
from loadlens.present.numbers import percent

ID = "no-finding.healthy"
TITLE = "nothing limits in the tested range"
EXPLAINS: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HighestLoad:
    """The level with the highest throughput, and the answers of all other rules."""

    curve: Curve
    step: Step
    others: Sequence[Answer]


def observe(facts: Facts, others: Sequence[Answer]) -> Sequence[HighestLoad] | Lacking | Nothing:
    """Return the highest load, unless another rule or a gate names something wrong."""
    tops = [(curve, curve.steps[-1]) for curve in facts.curves if curve.steps]
    tops = [(curve, step) for curve, step in tops if isinstance(step.throughput, Estimate)]
    if not tops:
        return Lacking("no throughput was measured")
    findings = [other.rule for other in others if isinstance(other, Finding) and other.rule not in NOTES]
    if findings:
        return Nothing(f"found: {', '.join(findings)}")
    failed = [gate for gate in facts.gates if gate.passed is False]
    if failed:
        return Nothing(f"gate {failed[0].name} failed: {failed[0].text}")
    shares = {
        step.label: step.failed.point
        for curve in facts.curves
        for step in curve.steps
        if isinstance(step.failed, Estimate)
    }
    worst = max(shares, key=lambda label: shares[label], default="")
    if shares.get(worst, 0.0) > FEW_FAIL:
        return Nothing(f"{percent(shares[worst])} of the requests fail at {worst}")
    curve, step = max(tops, key=lambda pair: figures.point(pair[1].throughput))
    if not step.processes:
        return Lacking("needs the CPU of the service's processes, else headroom is unknown")
    return [HighestLoad(curve, step, others)]


def claim(facts: Facts, highest: HighestLoad) -> Claim:
    """Rest on gates that pass and on rules that looked; nothing speaks for more than probable."""
    curve, step, others = highest.curve, highest.step, highest.others
    unseen = [other for other in others if isinstance(other, NotAssessed)]
    looked = len(others) - len(unseen)
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
            text=f"{looked} rules looked, {len(unseen)} could not",
            chip=f"{looked} rules silent",
        ),
    ]

    def words(_: Grade) -> Words:
        unit = "users" if curve.is_closed else "/s offered"
        short = any(isinstance(other, Finding) and other.rule == load_underdriven.ID for other in others)
        return Words(
            statement=f"{'Underdriven: nothing' if short else 'Nothing'} limits up to "
            f"{numbers.short(step.throughput)}: "
            f"{percent(1 - _used(facts, curve, step))} of the CPU is left",
            explanation=f"At {step.load:g} {unit} the mean response time is "
            f"{numbers.shown(step.response.mean)} and {numbers.shown(step.failed)} of requests fail.",
            advice=f"Test beyond {step.load:g} {unit} before relying on more.",
            confirm=f"{2 * step.load:g} {unit}: still no finding",
            impact=0.0,
            unknown=tuple(f"{other.title}: {other.reason}" for other in unseen),
        )

    return on_curve(curve, signals, [], words, cap=Grade.PROBABLE)


def _used(facts: Facts, curve: Curve, step: Step) -> float:
    """Share of the service's cores that is taken: by itself, and by all on cores that others may use too."""
    used = step.server_cores / curve.cores_allotted if curve.cores_allotted else 0.0
    shares_all = curve.is_here and curve.shares_cores is not False and curve.cores_allotted >= facts.cores
    if shares_all and isinstance(step.host_cpu, Estimate):
        used = max(used, step.host_cpu.point / facts.cores)
    return min(1.0, used)


assess_after = assessing_after(ID, TITLE, observe, claim)
