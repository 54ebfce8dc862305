"""The test never reached the service's capacity.

**Means.** At the highest load more users still brought more throughput, or the load ended close to the knee,
where a curve only begins to bend. What the highest level reached is a lower bound, and two variants of a
service compared there differ by the load, not by what they can do.

**Needs.** A closed load of two levels or more whose last doubling brought 10 % or more, or whose last level
lies less than 1.8 times beyond the knee N* = X (R1 + Z).

**Ruled out by.** A generator that was the limit itself; throughput that fell; users with another pause who
reached the capacity of the same service, as where they began to pause because hasty ones were turned away;
a last level most of whose added requests failed: the load was there, and the service did not take it.

**Thresholds.** Those of a plateau, from the other side: 10 % per doubling is four standard deviations of a
difference of two 3-trial means at 3 % noise; a curve bends over about a factor of two around its knee. Half
of the share that succeeded before: a service with room serves as much of what is added, a full one nothing.

**Do.** Go on to the number of users that is named. Compare no variants by their throughput here.

**Confirm.** Twice the users: throughput grows by 10 % or more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from loadlens.diagnose import grading
from loadlens.estimate.interval import Insufficient
from loadlens.estimate.saturation import BEYOND_KNEE, GAIN_PER_DOUBLING
from loadlens.measure.curve import Capacity, capacity_of, completed, succeeded
from loadlens.model.facts import Curve, Facts
from loadlens.model.finding import Absent, Finding, NotAssessed
from loadlens.present import load_text, numbers, words

ID = "load.underdriven"
TITLE = "the load never reached the capacity"
EXPLAINS: tuple[str, ...] = ()

TAKEN = 0.5  # of the share that succeeded before, among the requests that a level adds
IMPACT = 0.05  # it says nothing bad of the service, and more than any other note


def assess(facts: Facts) -> Finding | Absent | NotAssessed:
    """Look at every closed curve."""
    looked = [(curve, capacity_of(curve)) for curve in facts.curves]
    known = [(curve, capacity) for curve, capacity in looked if isinstance(capacity, Capacity)]
    if not known:
        reasons = [c.reason for _, c in looked if isinstance(c, Insufficient)]
        return NotAssessed(ID, TITLE, reasons[0] if reasons else "no load curve")
    open_ = [(curve, capacity) for curve, capacity in known if not _is_reached(curve, capacity, known)]
    found = [f for curve, capacity in open_ if (f := _finding(curve, capacity)) is not None]
    if not found:
        return Absent(ID, TITLE, _silence(known))
    best = max(found, key=lambda finding: finding.grade)
    labels = tuple(label for finding in found for label in finding.curves)
    return replace(best, scope=", ".join(labels), curves=labels)


def _is_reached(curve: Curve, capacity: Capacity, known: Sequence[tuple[Curve, Capacity]]) -> bool:
    """Whether the load was enough, here or where users with another pause drove the same service."""
    return _is_full(curve, capacity) or _is_known_elsewhere(curve, capacity, known)


def _is_known_elsewhere(curve: Curve, capacity: Capacity, known: Sequence[tuple[Curve, Capacity]]) -> bool:
    """Whether users who differ in their pause alone reached the capacity, and no less than these here."""
    asked = [kind.request for kind in capacity.top.classes]
    return any(
        other.levels == curve.levels
        and other.think_s != curve.think_s
        and [kind.request for kind in there.top.classes] == asked
        and (there.saturation.verdict != "underdriven" or _is_full(other, there))
        and there.saturation.capacity >= capacity.saturation.capacity
        for other, there in known
    )


def _is_full(curve: Curve, capacity: Capacity) -> bool:
    """Whether most of what the last level asked more than the one before it failed."""
    below = [step for step in curve.steps if step.load < capacity.top.load and completed(step) > 0]
    if not below:
        return False
    before, top = below[-1], capacity.top
    added, taken = completed(top) - completed(before), succeeded(top) - succeeded(before)
    return added > 0 and taken / added < TAKEN * succeeded(before) / completed(before)


def _finding(curve: Curve, capacity: Capacity) -> Finding | None:
    saturation, top = capacity.saturation, capacity.top
    gain = saturation.gain_per_doubling
    still_grows = gain >= GAIN_PER_DOUBLING
    is_near = saturation.beyond_knee is not None and saturation.beyond_knee < BEYOND_KNEE
    signals = [
        grading.stated(
            "load.short",
            saturation.verdict == "underdriven",
            text=f"the last doubling of users brought {numbers.signed_percent(gain)} "
            f"(limit {numbers.percent(GAIN_PER_DOUBLING)})"
            + (f", {saturation.beyond_knee:.1f} times the knee (limit {BEYOND_KNEE})" if is_near else ""),
            chip=f"last doubling {numbers.signed_percent(gain)}",
        )
    ]
    rivals = [grading.generator_rival(top)]
    grade = grading.grade_of(signals, rivals, cap=grading.cap_of(curve))
    if grade is None:
        return None
    reached = f"{numbers.short(top.throughput)} at {words.users(top.load)}"
    why = (
        f"the last doubling still brought {numbers.signed_percent(gain)}"
        if still_grows
        else f"that is {saturation.beyond_knee:.1f} times the knee"
    )
    target = _target(capacity)
    return Finding(
        rule=ID,
        grade=grade,
        impact=IMPACT,
        scope=curve.label,
        statement=grading.statement(f"Underdriven: {reached}, and {why}"),
        explanation=f"What the service can do lies above {reached}; how far above, nobody measured.",
        evidence=tuple(signal.evidence for signal in signals),
        counter=tuple(rivals),
        advice=f"Go on to {target} users before a capacity is quoted or variants are compared by throughput.",
        confirm=f"{target} users: throughput grows by {numbers.percent(GAIN_PER_DOUBLING)} or more",
        curves=(curve.label,),
    )


def _target(capacity: Capacity) -> int:
    """Users at which a plateau could be told."""
    twice, knee = 2 * capacity.top.load, capacity.saturation.knee
    return round(max(twice, BEYOND_KNEE * knee) if knee is not None else twice)


def _silence(known: Sequence[tuple[Curve, Capacity]]) -> str:
    for curve, capacity in known:
        if capacity.saturation.verdict == "underdriven" and not _is_reached(curve, capacity, known):
            return f"on {curve.label} the generator was late ({grading.generator_rival(capacity.top).text})"
    full = next((pair for pair in known if _is_full(*pair)), None)
    if full is not None:
        return (
            f"most of what {load_text.load_of(full[0], full[1].top)} added on {full[0].label} was not served"
        )
    reached = [capacity for _, capacity in known if capacity.saturation.verdict != "underdriven"]
    return (reached[0] if reached else known[0][1]).saturation.reason
