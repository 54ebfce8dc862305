"""The span in which requests spend what they take longer under load, for rules on calls to other services."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Lacking, all_seen
from loadlens.diagnose.observe import waits
from loadlens.estimate.saturation import BEYOND_KNEE
from loadlens.measure import figures
from loadlens.model.facts import Curve, Facts, SpanPart, SpanRequests, Step
from loadlens.model.finding import Counter, Estimate
from loadlens.present import numbers, words

IN_LINE = 1 - 1 / BEYOND_KNEE  # of a closed load that has just gone beyond the knee
LEAST_GROWTH_S = 1e-3
MOSTLY = 0.5  # of the growth
SELDOM, USUALLY = 0.2, 0.8  # of the calls
COUPLED = 0.2  # of the growth, by which a cheap request waits as well


@dataclass(frozen=True, slots=True)
class Growth:
    """A curve whose requests take longer at its highest load, and the span that grew most."""

    curve: Curve
    top: Step
    before: SpanRequests  # at the lightest load
    now: SpanRequests
    part: SpanPart  # now
    part_before_s: float  # its own time, at the lightest load

    @property
    def seconds(self) -> float:
        """Seconds by which requests take longer."""
        return figures.point(self.now.time) - figures.point(self.before.time)

    @property
    def part_s(self) -> float:
        """Seconds of that in the span itself."""
        return figures.point(self.part.own) - self.part_before_s

    @property
    def callee_s(self) -> float:
        """Seconds of that in spans of what it calls."""
        earlier = self.before.part(self.part)
        return figures.point(self.part.beneath) - (figures.point(earlier.beneath) if earlier else 0.0)

    @property
    def load(self) -> str:
        """The highest load, in words."""
        return words.users(self.top.load) if self.curve.is_closed else f"{self.top.load:g}/s"


def observe(facts: Facts) -> Sequence[Growth] | Lacking:
    """Return the curves whose requests wait in one span, the one with the largest share first."""
    seen = all_seen((_growth(curve) for curve in facts.curves), "no load curve")
    if not isinstance(seen, Lacking):
        seen.sort(key=lambda growth: growth.part_s / figures.point(growth.now.time), reverse=True)
    return seen


def _growth(curve: Curve) -> Growth | str:
    steps = [step for step in curve.steps if step.spans]
    if len(steps) < 2:
        return "needs spans of the service at two levels of load: otlp of a service, or --otlp PORT"
    top = steps[-1]
    now = top.spans[0]
    before = next((kind for kind in steps[0].spans if kind.name == now.name), None)
    if before is None or not isinstance(now.time, Estimate) or not isinstance(before.time, Estimate):
        return "the requests that take most time at the highest load were not traced at the lightest"
    grown = [
        Growth(curve, top, before, now, part, figures.point(earlier.own) if earlier else 0.0)
        for part in now.parts
        for earlier in [before.part(part)]
    ]
    if not grown:
        return "no span was seen in every trial"
    return max(grown, key=lambda growth: growth.part_s)


def signals(facts: Facts, growth: Growth) -> list[grading.Signal]:
    """State that requests take longer, mostly in the span, and that the service has CPU to spare."""
    before, now = growth.before.time, growth.now.time
    needed_s = max(IN_LINE * figures.point(now), LEAST_GROWTH_S)
    took = " and ".join(numbers.with_unit(figures.point(time), "s") for time in (before, now))
    own = growth.part.own
    low_s = figures.point(own) if not isinstance(own, Estimate) or own.low is None else own.low
    share = growth.part_s / growth.seconds if growth.seconds > 0 else 0.0
    share_low = (low_s - growth.part_before_s) / growth.seconds if growth.seconds > 0 else 0.0
    part_took = " and ".join(
        numbers.with_unit(seconds, "s") for seconds in (growth.part_before_s, figures.point(own))
    )
    return [
        waits.cpu_signal(facts, growth.curve, growth.top),
        grading.stated(
            "span.longer",
            growth.seconds >= needed_s,
            text=f"requests take {took} at the lightest load and at {growth.load} "
            f"(limit {numbers.with_unit(needed_s, 's')} more)",
        ),
        grading.stated(
            "span.share",
            True if share_low >= MOSTLY else None if share >= MOSTLY else False,
            text=f"{growth.part.name} itself takes {part_took}: {numbers.percent(min(1.0, share))} of what "
            f"they take longer (limit {numbers.percent(MOSTLY)}); {growth.now.requests} traces",
            chip=f"{numbers.percent(min(1.0, share))} in one span",
            value=share,
            threshold=MOSTLY,
        ),
    ]


def rivals(facts: Facts, growth: Growth) -> list[Counter]:
    """Return what else makes spans longer: the machine, the generator, a service that is held up."""
    return [*waits.rivals_at(facts, growth.curve, growth.top), _held_up(growth)]


def _held_up(growth: Growth) -> Counter:
    """Weigh the service's own threads or loop: a cheap request, which makes no call, would wait as well."""
    name = "the service itself"
    for probe in growth.top.probes:
        if probe.idle_s is None or probe.is_late or not isinstance(probe.response.p50, Estimate):
            continue
        waited_s = max(0.0, probe.response.p50.point - probe.idle_s)
        share = waited_s / growth.seconds if growth.seconds > 0 else 1.0
        text = f"a cheap request waits {numbers.with_unit(waited_s, 's')} (limit {numbers.percent(COUPLED)})"
        return grading.rival(name, text, share <= COUPLED)
    return grading.rival(name, "no cheap request was sent next to the load", None)
