"""Much of the response time passes before the handler starts.

**Means.** The service measures only part of the time that its client waits. The rest is spent in a queue
before the handler, where no log of the service shows it.

**Needs.** The mean time inside the handler at the highest load, from the service's log or its own request
metrics. At least 44 % of the client's mean response time lies outside the handler. At the lowest load the
time outside was shorter by at least 44 % of the response time at the highest load, and by at least 1 ms.
Fewer than 70 % of the requests in flight are inside the handler according to a gauge; or the number inside
(throughput x time inside) stays within 15 % over the last two levels. CPU to spare: at most 70 % of the
cores in use, and no thread full.

**Ruled out by.** Requests that wait for a core or behind a thread that computes. Network time, which is as
long without load. Responses whose transfer takes most of the time. Connections that are opened for each
request, as the wait may be for their acceptance; it is that if half of the time outside is spent retrying a
connection (`accept.drops`). A late generator, or a full machine.

**Thresholds.** 44 % is 1 - 1 / 1.8, the waiting share at 1.8 times the knee, from where a plateau counts; a
threshold of one half would miss a queue as long as the number being served. 1 ms: the way to a busy
processor and back takes up to as much. 70 % inside: a gauge that is read between two requests is slightly
off. 15 %: two means of a few seconds vary as much. Half of the time outside: then it is the main part.

**Do.** Treat it like full threads: size them by Little's law, with a bounded queue and short time-outs in
front of them. Measure response times at the clients, too.

**Confirm.** Run with as many users as there are requests inside the handler: the gap closes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Lacking, Words, assessing, on_curve
from loadlens.diagnose.observe import limits, waits
from loadlens.estimate.interval import Interval
from loadlens.estimate.saturation import BEYOND_KNEE
from loadlens.measure.curve import costliest_class, waited_to_ask
from loadlens.model.facts import ConcurrencyLimit, Curve, Facts, Step
from loadlens.model.finding import Counter, Estimate, Grade
from loadlens.present import numbers, words

ID = "outside.handler-wait"
TITLE = "much of the time passes before the handler"
EXPLAINS: tuple[str, ...] = ("saturation.plateau",)

IN_LINE = 1 - 1 / BEYOND_KNEE  # of a closed load that has just gone beyond the knee
LEAST_GROWTH_S = 1e-3
INSIDE = 0.7  # of the requests in flight
SAME = 0.15
OWN_CONNECTION = 0.5  # connections opened for each answer
MOSTLY = 0.5  # of the time outside


@dataclass(frozen=True, slots=True)
class TimeOutside:
    """The costliest requests of a curve at its highest load, at the client and inside."""

    curve: Curve
    step: Step
    client: Estimate
    inside: Estimate
    gauge: ConcurrencyLimit | None  # requests inside

    @property
    def seconds(self) -> float:
        """Seconds before the handler, and on the way."""
        return self.client.point - self.inside.point

    @property
    def share(self) -> Interval:
        """Share of the response time."""

        def ratio(inside: float | None, client: float | None) -> float | None:
            return None if inside is None or not client else max(0.0, 1 - inside / client)

        return Interval(
            max(0.0, self.seconds / self.client.point),
            ratio(self.inside.high, self.client.low),
            ratio(self.inside.low, self.client.high),
            float(min(self.client.samples, self.inside.samples)),
            "difference of two means",
        )

    @property
    def load(self) -> str:
        """The load, in words."""
        return words.users(self.step.load) if self.curve.is_closed else f"{self.step.load:g}/s"

    @property
    def count_inside(self) -> float | None:
        """Requests inside by their gauge; none: it was not read."""
        return limits.point(self.gauge.held) if self.gauge is not None else None


def observe(facts: Facts) -> Sequence[TimeOutside] | Lacking:
    """Return the curves whose service says what its handlers take, the one with the largest gap first."""
    gaps = [gap for curve in facts.curves if (gap := _at_highest_load(curve)) is not None]
    gaps.sort(key=lambda gap: gap.share.point, reverse=True)
    return gaps or Lacking(
        "needs the time inside the handler: a log of the service, or counters of times by path"
    )


def _at_highest_load(curve: Curve) -> TimeOutside | None:
    for step in reversed(curve.steps):
        request = costliest_class(curve, step)
        inside, client = (None, None) if request is None else (request.inside, request.response.mean)
        if isinstance(inside, Estimate) and isinstance(client, Estimate):
            gauges = [places for places in step.places if places.kind == "requests"]
            # Of several the one that counts most is the outermost; others may count calls to elsewhere.
            outermost = max(gauges, key=lambda places: limits.point(places.held) or 0.0, default=None)
            return TimeOutside(curve, step, client, inside, outermost)
    return None


def claim(facts: Facts, gap: TimeOutside) -> Claim:
    """Hold the gap against its growth with the load, the number inside, and other ways to wait."""
    share, client, inside = gap.share, gap.client, gap.inside
    signals = [
        waits.cpu_signal(facts, gap.curve, gap.step),
        grading.at_least(
            "handler.outside",
            share,
            IN_LINE,
            text=f"clients wait {numbers.short(client)}, {inside.metric} says {numbers.short(inside)}: "
            f"{numbers.percent(share.point)} outside (limit {numbers.percent(IN_LINE)})",
            chip=f"{numbers.percent(share.point)} outside the handler",
        ),
        _grown(gap),
        _bounded(gap),
    ]
    pools = [places for places in gap.step.places if places.kind == "threads"]
    taken = [(limits.point(pool.held) or 0.0, limits.point(pool.bound) or math.inf) for pool in pools]
    if not any(busy >= limits.TAKEN_UP * bound for busy, bound in taken):  # else a gauge says for what
        signals += waits.link_signals(gap.step)

    def text(_: Grade) -> Words:
        count = gap.count_inside
        count = max(1, round(count if count is not None else _by_little(gap.curve, gap.step) or 1.0))
        return Words(
            statement=f"{numbers.percent(share.point)} of the time passes before the handler: "
            f"{numbers.with_unit(gap.seconds, 's')} of {numbers.with_unit(client.point, 's')}",
            explanation=f"At {gap.load} clients wait {numbers.shown(client)}; {inside.metric} says "
            f"{numbers.short(inside)}: the service sees {numbers.percent(1 - share.point)} of it.",
            advice=f"About {words.plural(count, 'request is', 'requests are')} inside at once: admit more if "
            "what they wait for can serve more, else put a bounded queue with a short time-out before the "
            "handler.",
            confirm=f"{words.users(count)}: the gap closes",
            impact=share.point,
        )

    rivals = [*waits.rivals_at(facts, gap.curve, gap.step), _connecting(gap)]
    return on_curve(gap.curve, signals, rivals, text)


def _grown(gap: TimeOutside) -> grading.Signal:
    """Without load the way there and back takes what it takes: only what came with the load is a line."""
    first = gap.curve.steps[0]
    request = costliest_class(gap.curve, first)
    client = None if request is None or first is gap.step else request.response.mean
    inside = None if request is None else request.inside
    if not isinstance(client, Estimate) or not isinstance(inside, Estimate):
        text = "the time inside at a lower load was not measured"
        return grading.stated("handler.gap-grew", None, text=text)
    before = max(0.0, client.point - inside.point)
    before_s, now_s = numbers.with_unit(before, "s"), numbers.with_unit(gap.seconds, "s")
    needed_s = max(IN_LINE * gap.client.point, LEAST_GROWTH_S)
    text = (
        f"outside: {before_s} at the lowest load, {now_s} at {gap.load} "
        f"(limit {numbers.with_unit(needed_s, 's')} more)"
    )
    return grading.stated("handler.gap-grew", gap.seconds - before >= needed_s, text=text)


def _bounded(gap: TimeOutside) -> grading.Signal:
    """Only so many are inside, by their gauge or by Little's law."""
    flying, count = gap.step.in_flight, gap.count_inside
    if gap.gauge is not None and count is not None and isinstance(flying, Estimate):
        held = limits.reading(gap.gauge.held)
        text = f"{held} of {flying.point:.3g} in flight (limit {numbers.percent(INSIDE)})"
        return grading.stated(
            "handler.in-flight", count <= INSIDE * flying.point, text=text, chip=f"{count:.3g} inside"
        )
    below = [step for step in gap.curve.steps if step.load < gap.step.load]
    then = _by_little(gap.curve, below[-1]) if below else None
    now = _by_little(gap.curve, gap.step)
    if then is None or now is None:
        text = "how many are inside was not read at two levels"
        return grading.stated("handler.in-flight", None, text=text)
    text = f"throughput x time inside: {then:.3g} at {below[-1].load:g}, {now:.3g} at {gap.step.load:g}"
    same = True if abs(now / then - 1) <= SAME else None
    return grading.stated("handler.in-flight", same, text=text, chip=f"{now:.3g} inside")


def _by_little(curve: Curve, step: Step) -> float | None:
    request = costliest_class(curve, step)
    if request is None or not isinstance(request.inside, Estimate) or not isinstance(request.rate, Estimate):
        return None
    return request.rate.point * request.inside.point or None


def _connecting(gap: TimeOutside) -> Counter:
    """Opening connections as what takes the time outside."""
    name, step = "connecting", gap.step
    share, mean = waited_to_ask(step) or 0.0, step.response.mean
    again_s = share * mean.point if isinstance(mean, Estimate) else 0.0
    if again_s >= MOSTLY * gap.seconds:
        again, outside = (numbers.with_unit(length, "s") for length in (again_s, gap.seconds))
        text = f"clients wait {again} of the {outside} to ask for connections again"
        return grading.rival(name, text, False)
    if step.connections is None or not step.connections.answered:
        return grading.rival(name, "connections were not counted", None)
    share = step.connections.opened / step.connections.answered
    return grading.rival(
        name, f"{share:.2g} connections per request", True if share < OWN_CONNECTION else None
    )


assess = assessing(ID, TITLE, observe, claim)
