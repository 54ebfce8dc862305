"""The test never reached the service's capacity.

**Means.** At the highest load more users still brought more throughput, or the load ended close to the knee,
where a curve only begins to bend. The throughput of the highest level is a lower bound, and two variants of a
service compared there differ by the load, not by what they can do.

**Needs.** A closed load of two levels or more whose last doubling brought 10 % or more, or whose last level
lies less than 1.8 times beyond the knee N* = X (R1 + Z).

**Ruled out by.** A generator that was the limit itself. Throughput that fell. Users with another think time
who reached the capacity of the same service, for example those that began to pause because users without
think time were turned away. A last level most of whose added requests failed: the load was there, and the
service did not accept it.

**Thresholds.** Those of a plateau, from the other side: 10 % per doubling is four standard deviations of a
difference of two 3-trial means at 3 % noise; a curve bends over about a factor of two around its knee. Half
of the share that succeeded before: a service with room serves as much of what is added, a full one nothing.

**Do.** Continue to the number of users that is named. Compare no variants by their throughput here.

**Confirm.** Double the users: throughput grows by 10 % or more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Lacking, Nothing, Words, assessing, naming_all, on_curve
from loadlens.diagnose.observe.curve_signals import gain_text
from loadlens.estimate.saturation import BEYOND_KNEE, GAIN_PER_DOUBLING
from loadlens.measure.curve import Capacity, capacity_of, completed, succeeded
from loadlens.model.facts import Curve, Facts
from loadlens.model.finding import Grade
from loadlens.present import load_text, numbers, words

ID = "load.underdriven"
TITLE = "the load never reached the capacity"
EXPLAINS: tuple[str, ...] = ()

TAKEN = 0.5  # of the share that succeeded before, among the requests that a level adds
IMPACT = 0.05  # it says nothing bad of the service, and more than any other note


@dataclass(frozen=True, slots=True)
class Driven:
    """A closed curve, and how far it went."""

    curve: Curve
    capacity: Capacity

    @property
    def is_underdriven(self) -> bool:
        """True if throughput still grew, or the load ended close to the knee."""
        return self.capacity.saturation.verdict == "underdriven"

    @property
    def is_full(self) -> bool:
        """True if most of the requests failed that the last level added."""
        top = self.capacity.top
        below = [step for step in self.curve.steps if step.load < top.load and completed(step) > 0]
        if not below:
            return False
        before = below[-1]
        added, taken = completed(top) - completed(before), succeeded(top) - succeeded(before)
        return added > 0 and taken / added < TAKEN * succeeded(before) / completed(before)

    def is_covered_by(self, other: Driven) -> bool:
        """Return true if users who differ only in their pause reached the capacity, and no less than here."""
        requests, others = (
            [kind.request for kind in driven.capacity.top.classes] for driven in (self, other)
        )
        return (
            other.curve.levels == self.curve.levels
            and other.curve.think_s != self.curve.think_s
            and requests == others
            and (not other.is_underdriven or other.is_full)
            and other.capacity.saturation.capacity >= self.capacity.saturation.capacity
        )


def observe(facts: Facts) -> Sequence[Driven] | Lacking | Nothing:
    """Return the closed curves whose load may have been too small."""
    capacities = [(curve, capacity_of(curve)) for curve in facts.curves]
    all_driven = [Driven(curve, c) for curve, c in capacities if isinstance(c, Capacity)]
    if not all_driven:
        return Lacking(
            next((c.reason for _, c in capacities if not isinstance(c, Capacity)), "no load curve")
        )
    small = [
        driven
        for driven in all_driven
        if not driven.is_full and not any(driven.is_covered_by(other) for other in all_driven)
    ]
    if any(driven.is_underdriven for driven in small):
        return [driven for driven in small if driven.is_underdriven]
    full = next((driven for driven in all_driven if driven.is_full), None)
    if full is not None:
        added = f"most of what {load_text.load_of(full.curve, full.capacity.top)} added"
        return Nothing(f"{added} on {full.curve.label} was not served")
    reached = next((driven for driven in all_driven if not driven.is_underdriven), all_driven[0])
    return Nothing(reached.capacity.saturation.reason)


def claim(_: Facts, driven: Driven) -> Claim:
    """Claim that more users would have brought more, unless the generator was late."""
    saturation, top = driven.capacity.saturation, driven.capacity.top
    gain, beyond, knee = saturation.gain_per_doubling, saturation.beyond_knee, saturation.knee
    is_near = beyond is not None and beyond < BEYOND_KNEE
    signal = grading.stated(
        "load.short",
        True,
        text=gain_text(gain) + (f", {beyond:.1f} times the knee (limit {BEYOND_KNEE})" if is_near else ""),
        chip=f"last doubling {numbers.signed_percent(gain)}",
    )

    def texts(_: Grade) -> Words:
        reached = f"{numbers.short(top.throughput)} at {words.users(top.load)}"
        why = f"the last doubling still brought {numbers.signed_percent(gain)}"
        if gain < GAIN_PER_DOUBLING:
            why = f"that is {beyond:.1f} times the knee"
        # Users at which a plateau would show.
        target = round(2 * top.load if knee is None else max(2 * top.load, BEYOND_KNEE * knee))
        return Words(
            statement=f"Underdriven: {reached}, and {why}",
            explanation=f"What the service can do lies above {reached}; how far above was not measured.",
            advice=f"Go on to {target} users before a capacity is quoted or variants are compared by "
            "throughput.",
            confirm=f"{target} users: throughput grows by {numbers.percent(GAIN_PER_DOUBLING)} or more",
            impact=IMPACT,
        )

    return on_curve(driven.curve, [signal], [grading.generator_rival(top)], texts)


def _silence(_: Facts, observed: Sequence[Driven]) -> str:
    late = grading.generator_rival(observed[0].capacity.top)
    return f"on {observed[0].curve.label} the generator was late ({late.text})"


assess = assessing(ID, TITLE, observe, claim, choose=naming_all, silence=_silence)
