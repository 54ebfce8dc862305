"""A quota of CPU time stops the service for a part of each period.

**Means.** The control group around the service may use so much CPU time in each period and no more. When it
is used up, all its threads stand still until the period ends, whatever they were doing: a limit of capacity,
and pauses that look like a collector's.

**Needs.** At some level of load more than 5 % of the periods ended with the quota used up; fewer than three
periods in all are suspected at most. And the quota matters: the processes use at least 90 % of it over the
level, or what they were held back is a tenth of what they used (bursts of many threads empty a quota that is
large on average).

**Ruled out by.** A machine that has no more to give than the quota: then its cores are the limit. A generator
that did not send in time.

**Thresholds.** 5 % of the periods: a request that comes at random meets a stopped period in one of twenty
cases and shows at p95. 90 %: the kernel hands the quota out in slices of 5 ms a core, and CPU time is read
within 2 to 3 %.

**Do.** Raise the quota, or lower the number of threads to it, so that the same work is spread over the
period.

**Confirm.** Twice the quota: capacity rises until the next limit, stops of a period's length vanish.
"""

from __future__ import annotations

from dataclasses import dataclass

from loadlens.diagnose import grading
from loadlens.measure import figures
from loadlens.measure.curve import Capacity, capacity_of
from loadlens.model.facts import Curve, Facts, QuotaWatch, Step
from loadlens.model.finding import Absent, Counter, Estimate, Evidence, Finding, NotAssessed
from loadlens.present import load_text, numbers

ID = "cgroup.throttled"
TITLE = "a quota of CPU time stops the service"
EXPLAINS: tuple[str, ...] = ("saturation.plateau", "cpu.saturated", "pause.periodic", "pause.aperiodic")

THROTTLED = 0.05  # of the periods
USED = 0.90  # of the quota
HELD_BACK = 0.10  # of the CPU time used
FEWEST_STOPS = 3  # periods: one or two are a burst, as of a start or a collection
MOST_USED = 1.15  # of the quota: more is of processes outside the group
FULL_MACHINE = 0.9  # of its cores
ROUNDING_S = 1e-6  # quotas are whole microseconds


@dataclass(frozen=True, slots=True)
class _Place:
    curve: Curve
    step: Step
    quota: QuotaWatch


def assess(facts: Facts) -> Finding | Absent | NotAssessed:
    """Look at the level of each curve at which most periods were stopped."""
    places = [_Place(c, s, q) for c in facts.curves for s in c.steps for q in s.quotas]
    known = [place for place in places if isinstance(place.quota.throttled, Estimate)]
    if not known:
        lack = (
            "no quota of CPU time was seen around the processes: cpu.stat of their control group would decide"
        )
        return NotAssessed(ID, TITLE, grading.unwatched(facts, lack))
    found = []
    for curve in facts.curves:
        own = [place for place in known if place.curve is curve]
        if own and (finding := _finding(facts, max(own, key=_throttled))) is not None:
            found.append(finding)
    if found:
        return grading.for_all(found)
    worst = max(known, key=_throttled)
    return Absent(ID, TITLE, _silence(facts, worst))


def _throttled(place: _Place) -> float:
    return figures.point(place.quota.throttled)


def _finding(facts: Facts, place: _Place) -> Finding | None:
    curve, step, quota = place.curve, place.step, place.quota
    signals = _signals(place)
    rivals = [grading.generator_rival(step), _machine_rival(facts, place)]
    grade = grading.grade_of(signals, rivals, cap=grading.cap_of(curve))
    if grade is None:
        return None
    throttled = numbers.percent(_throttled(place))
    bound = "its quota" if quota.cores is None else f"a quota of {quota.cores:.2g} cores"
    return Finding(
        rule=ID,
        grade=grade,
        impact=min(1.0, _throttled(place)),
        scope=curve.label,
        statement=grading.statement(f"{throttled} of the periods end with {bound} used up"),
        explanation=_explanation(place),
        evidence=tuple(signal.evidence for signal in signals),
        counter=tuple(rivals),
        advice=_advice(place),
        confirm="twice the quota: capacity rises, stops of one period's length vanish",
        curves=(curve.label,),
    )


def _signals(place: _Place) -> list[grading.Signal]:
    quota = place.quota
    throttled = grading.at_least(
        "quota.throttled",
        quota.throttled,
        THROTTLED,
        text=(
            f"{numbers.shown(quota.throttled)} of the periods were stopped (limit "
            f"{numbers.percent(THROTTLED)})"
        ),
        chip=f"{numbers.percent(_throttled(place))} of periods stopped",
    )
    return [throttled, _matters(quota), *_stops(place), *_size(quota)]


def _stops(place: _Place) -> list[grading.Signal]:
    """Whether it happened more than once or twice: a trial of two seconds has but twenty periods."""
    seconds, period = place.step.quality.seconds, place.quota.period_s
    if seconds is None or not period:
        return []
    stops = _throttled(place) * seconds / period * place.step.trials
    return [
        grading.stated(
            "quota.stops",
            True if stops >= FEWEST_STOPS else None,
            text=f"about {stops:.0f} periods were stopped in all (limit {FEWEST_STOPS})",
        )
    ]


def _matters(quota: QuotaWatch) -> grading.Signal:
    """Whether the quota is used up on average, or costs much although it is not."""
    used, held = quota.used, quota.held_back
    if not isinstance(used, Estimate) or used.point <= 0:
        return grading.stated("quota.used", None, text=f"how much of it is used: {numbers.shown(used)}")
    if quota.cores is not None and USED <= used.point / quota.cores <= MOST_USED:
        share = used.point / quota.cores
        return grading.stated(
            "quota.used",
            True,
            text=f"{numbers.shown(used)} used of {quota.cores:.3g} allowed ({numbers.percent(share)}, "
            f"limit {numbers.percent(USED)})",
            chip=f"{numbers.percent(share)} of the quota used",
        )
    if not isinstance(held, Estimate):
        return grading.stated("quota.used", None, text=f"how long it was held back: {numbers.shown(held)}")
    lost = held.point / used.point
    text = (
        f"held back for {numbers.short(held)} beside {numbers.short(used)} used ({numbers.percent(lost)}, "
        f"limit {numbers.percent(HELD_BACK)})"
    )
    return grading.stated(
        "quota.used", lost >= HELD_BACK, text=text, chip=f"held back {numbers.percent(lost)}"
    )


def _size(quota: QuotaWatch) -> list[grading.Signal]:
    """The quota itself, as the kernel has it."""
    if quota.cores is None:
        return []
    half = ROUNDING_S / quota.period_s if quota.period_s else 0.0
    period = f" in periods of {numbers.with_unit(quota.period_s, 's')}" if quota.period_s else ""
    evidence = Evidence(
        "quota.cores",
        f"its control group may use {quota.cores:.3g} cores{period}",
        f"quota {quota.cores:.2g} cores",
        quota.cores,
        quota.cores - half,
        quota.cores + half,
        None,
        True,
    )
    return [grading.Signal(evidence, True)]


def _machine_rival(facts: Facts, place: _Place) -> Counter:
    """The machine's own cores as the limit: ruled out while some of them were free."""
    busy, quota = place.step.host_cpu, place.quota
    if quota.cores is not None and quota.cores >= facts.cores:
        text = f"the quota of {quota.cores:.3g} cores is no less than the machine's {facts.cores}"
        return grading.rival("cores of the machine", text, False)
    if not isinstance(busy, Estimate):
        return grading.rival("cores of the machine", "the machine as a whole was not watched", None)
    text = f"{busy.point:.2f} of {facts.cores} cores are busy"
    return grading.rival(
        "cores of the machine", text, True if busy.point < FULL_MACHINE * facts.cores else None
    )


def _explanation(place: _Place) -> str:
    quota = place.quota
    stop = "" if quota.period_s is None else f" for up to {numbers.with_unit(quota.period_s, 's')}"
    return (
        f"At {load_text.load_with_unit(place.curve, place.step)} all its threads stand still{stop} "
        f"in {numbers.percent(_throttled(place))} of the periods."
    )


def _advice(place: _Place) -> str:
    quota, curve = place.quota, place.curve
    capacity = capacity_of(curve)
    work = curve.work_all
    if quota.cores is None:
        return "Raise the quota, or run fewer threads at once."
    more = 2 * quota.cores
    if isinstance(work, Estimate) and work.point > 0:
        rate = numbers.with_unit(more / work.point, "1/s")
        return (
            f"Raise the quota: a request takes {numbers.short(work)} of CPU, so {more:.2g} cores "
            f"bear {rate}. "
            "Or run no more threads than it has cores."
        )
    now = (
        f" (now {numbers.with_unit(capacity.saturation.capacity, '1/s')})"
        if isinstance(capacity, Capacity)
        else ""
    )
    return f"Raise the quota above {quota.cores:.2g} cores{now}, or run no more threads than it has cores."


def _silence(facts: Facts, place: _Place) -> str:
    text = grading.unclear(_signals(place)[:2])
    if text:
        return text
    against = grading.against((grading.generator_rival(place.step), _machine_rival(facts, place)))
    return "nothing stopped it" if against is None else against.text
