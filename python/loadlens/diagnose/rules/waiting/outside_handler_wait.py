"""Much of the time passes before the handler starts.

**Means.** What the service measures of a request is a part of what its client waits: the rest is
spent in a line before the handler, where no log of the service shows it.

**Needs.** The mean time inside the handler at the highest load, from the service's log or its own counters
of requests' times; at least 44 % of the client's mean response time lies outside it; at the lowest load
that part was smaller by as much (44 % of the response time at the highest load), and by a millisecond or
more; and fewer than 70 % of the
requests in flight are inside, as a gauge says, or else the number inside (throughput x time inside) stays
the same within 15 % over the last two levels. CPU to spare: at most 70 % of the cores, no thread full.

**Ruled out by.** Requests that wait for a core or behind a thread that computes. The way there and back,
which takes as long without load; answers whose bytes take most of the time; connections that are opened for
each request, as accepting them may be the wait: it is another where clients wait to ask for connections again
for half of the time outside (accept.drops). The generator being late, or the machine full.

**Thresholds.** 44 %: 1 - 1 / 1.8, what waits at 1.8 times the knee, from where on a plateau counts; half
would miss a line of just as many as are served. A millisecond: below, the way to a busy processor and back
takes as much. 70 % inside: a gauge that is read between two requests is a little off. 15 %: two means of few
seconds. Half of the time outside: what it mostly is.

**Do.** As for full threads: size them by Little's law, with a bounded queue and short time-outs before
them. Measure response times where clients are, too.

**Confirm.** As many users as are inside: the gap closes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from loadlens.diagnose import grading
from loadlens.diagnose.observe import places as held
from loadlens.diagnose.observe import waits
from loadlens.estimate.interval import Interval
from loadlens.estimate.saturation import BEYOND_KNEE
from loadlens.measure.curve import dearest, waited_to_ask
from loadlens.model.facts import Curve, Facts, Places, Step
from loadlens.model.finding import Absent, Counter, Estimate, Finding, NotAssessed
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
class Look:
    """The dearest requests of a curve at its highest load, at the client and inside."""

    curve: Curve
    step: Step
    client: Estimate
    inside: Estimate
    gauge: Places | None  # requests inside

    @property
    def outside_s(self) -> float:
        """Seconds before the handler, and on the way."""
        return self.client.point - self.inside.point

    @property
    def share(self) -> Interval:
        """Of the response time."""

        def ratio(inside: float | None, client: float | None) -> float | None:
            return None if inside is None or not client else max(0.0, 1 - inside / client)

        return Interval(
            max(0.0, self.outside_s / self.client.point),
            ratio(self.inside.high, self.client.low),
            ratio(self.inside.low, self.client.high),
            float(min(self.client.samples, self.inside.samples)),
            "difference of two means",
        )


def assess(facts: Facts) -> Finding | Absent | NotAssessed:
    """Look at every curve whose service tells what its handlers take; the largest gap speaks."""
    looks = [look for curve in facts.curves if (look := _look(curve)) is not None]
    if not looks:
        return NotAssessed(
            ID, TITLE, "needs the time inside the handler: a log of the service, or counters of times by path"
        )
    looks.sort(key=lambda look: look.share.point, reverse=True)
    found = grading.first(_finding(facts, look) for look in looks)
    return found or Absent(ID, TITLE, _silence(facts, looks[0]))


def _look(curve: Curve) -> Look | None:
    for step in reversed(curve.steps):
        dear = dearest(curve, step)
        inside, client = (None, None) if dear is None else (dear.inside, dear.response.mean)
        if isinstance(inside, Estimate) and isinstance(client, Estimate):
            gauges = [one for one in step.places if one.kind == "requests"]
            # Of several the one that counts most is the outermost; others may count calls to elsewhere.
            outermost = max(gauges, key=lambda one: held.point(one.held) or 0.0, default=None)
            return Look(curve, step, client, inside, outermost)
    return None


def _finding(facts: Facts, look: Look) -> Finding | None:
    signals, rivals = _signals(facts, look), _rivals(facts, look)
    grade = grading.grade_of(signals, rivals, cap=grading.cap_of(look.curve))
    if grade is None:
        return None
    inside = max(1, round(_inside(look)))
    return Finding(
        rule=ID,
        grade=grade,
        impact=look.share.point,
        scope=look.curve.label,
        statement=grading.statement(
            f"{numbers.percent(look.share.point)} of the time passes before the handler: "
            f"{numbers.with_unit(look.outside_s, 's')} of {numbers.with_unit(look.client.point, 's')}"
        ),
        explanation=f"At {_load(look)} clients wait {numbers.shown(look.client)}; {look.inside.metric} says "
        f"{numbers.short(look.inside)}: the service sees {numbers.percent(1 - look.share.point)} of it.",
        evidence=tuple(signal.evidence for signal in signals),
        counter=tuple(rivals),
        advice=f"About {words.plural(inside, 'request is', 'requests are')} inside at once: admit more if "
        "what they wait for can serve more, else put a bounded queue with a short time-out before the "
        "handler.",
        confirm=f"{words.users(inside)}: the gap closes",
        curves=(look.curve.label,),
    )


def _load(look: Look) -> str:
    return words.users(look.step.load) if look.curve.is_closed else f"{look.step.load:g}/s"


def _signals(facts: Facts, look: Look) -> list[grading.Signal]:
    share, inside = look.share, f"{look.inside.metric} says {numbers.short(look.inside)}"
    return [
        waits.cpu_signal(facts, look.curve, look.step),
        grading.at_least(
            "handler.outside",
            share,
            IN_LINE,
            text=f"clients wait {numbers.short(look.client)}, {inside}: "
            f"{numbers.percent(share.point)} outside (limit {numbers.percent(IN_LINE)})",
            chip=f"{numbers.percent(share.point)} outside the handler",
        ),
        _grown(look),
        _bounded(look),
        *([] if _has_full_threads(look) else waits.link_signals(look.step)),
    ]


def _has_full_threads(look: Look) -> bool:
    """Whether a gauge says what the wait is for."""
    pools = [one for one in look.step.places if one.kind == "threads"]
    told = [(held.point(one.held) or 0.0, held.point(one.bound) or math.inf) for one in pools]
    return any(busy >= held.TAKEN_UP * bound for busy, bound in told)


def _grown(look: Look) -> grading.Signal:
    """Without load the way there and back takes what it takes: only what came with the load is a line."""
    first = look.curve.steps[0]
    dear = dearest(look.curve, first)
    calm = None if dear is None or first is look.step else dear.response.mean
    inside = None if dear is None else dear.inside
    if not isinstance(calm, Estimate) or not isinstance(inside, Estimate):
        return grading.stated(
            "handler.gap-grew", None, text="the time inside at a lower load was not measured"
        )
    before = max(0.0, calm.point - inside.point)
    calm_s, now_s = numbers.with_unit(before, "s"), numbers.with_unit(look.outside_s, "s")
    needed_s = max(IN_LINE * look.client.point, LEAST_GROWTH_S)
    text = (
        f"outside: {calm_s} at the lowest load, {now_s} at {_load(look)} "
        f"(limit {numbers.with_unit(needed_s, 's')} more)"
    )
    return grading.stated("handler.gap-grew", look.outside_s - before >= needed_s, text=text)


def _bounded(look: Look) -> grading.Signal:
    flying = look.step.in_flight
    known = held.point(look.gauge.held) if look.gauge is not None else None
    if look.gauge is not None and known is not None and isinstance(flying, Estimate):
        text = (
            f"{held.told(look.gauge.held)} of {flying.point:.3g} in flight (limit {numbers.percent(INSIDE)})"
        )
        return grading.stated(
            "handler.in-flight", known <= INSIDE * flying.point, text=text, chip=f"{known:.3g} inside"
        )
    below = [step for step in look.curve.steps if step.load < look.step.load]
    then = _by_little(look.curve, below[-1]) if below else None
    now = _by_little(look.curve, look.step)
    if then is None or now is None:
        return grading.stated(
            "handler.in-flight", None, text="how many are inside was not told at two levels"
        )
    text = f"throughput x time inside: {then:.3g} at {below[-1].load:g}, {now:.3g} at {look.step.load:g}"
    same = True if abs(now / then - 1) <= SAME else None
    return grading.stated("handler.in-flight", same, text=text, chip=f"{now:.3g} inside")


def _by_little(curve: Curve, step: Step) -> float | None:
    dear = dearest(curve, step)
    if dear is None or not isinstance(dear.inside, Estimate) or not isinstance(dear.rate, Estimate):
        return None
    return dear.rate.point * dear.inside.point or None


def _inside(look: Look) -> float:
    known = held.point(look.gauge.held) if look.gauge is not None else None
    return known if known is not None else _by_little(look.curve, look.step) or 1.0


def _rivals(facts: Facts, look: Look) -> list[Counter]:
    return [*waits.rivals_at(facts, look.curve, look.step), _connecting(look)]


def _connecting(look: Look) -> Counter:
    name, step = "connecting", look.step
    share, mean = waited_to_ask(step) or 0.0, step.response.mean
    again_s = share * mean.point if isinstance(mean, Estimate) else 0.0
    if again_s >= MOSTLY * look.outside_s:
        again, outside = (numbers.with_unit(each, "s") for each in (again_s, look.outside_s))
        return grading.rival(
            name, f"clients wait {again} of the {outside} to ask for connections again", False
        )
    if step.connections is None or not step.connections.answered:
        return grading.rival(name, "connections were not counted", None)
    share = step.connections.opened / step.connections.answered
    return grading.rival(name, f"{share:.2g} connections a request", True if share < OWN_CONNECTION else None)


def _silence(facts: Facts, look: Look) -> str:
    return grading.silence(look.curve.label, _signals(facts, look), _rivals(facts, look))
