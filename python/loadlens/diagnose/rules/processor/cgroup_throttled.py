"""A quota of CPU time stops the service for a part of each period.

**Means.** The control group around the service may use a fixed amount of CPU time in each period. When it is
used up, all its threads stand still until the period ends: a limit of capacity, and pauses that look like a
garbage collector's.

**Needs.** At some level of load more than 5 % of the periods ended with the quota used up; fewer than three
periods in all are suspected at most. The quota must also matter: the processes use at least 90 % of it over
the level, or the time for which they were held back is 10 % of what they used (bursts of many threads empty a
quota that is large on average).

**Ruled out by.** A machine that has no more to give than the quota: then its cores are the limit. A generator
that was the limit. One that was late only lowers the grade: the kernel counts stopped periods in any case.

**Thresholds.** 5 % of the periods: a request that arrives at random meets a stopped period in one of twenty
cases, which shows at p95. 90 %: the kernel hands the quota out in slices of 5 ms per core, and CPU time is
read within 2 to 3 %.

**Do.** Raise the quota, or run no more threads than it allows, so that the same work is spread over the
period.

**Confirm.** Double the quota: capacity rises until the next limit, stops of a period's length vanish.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loadlens.diagnose import grading
from loadlens.diagnose.capacity import most_of
from loadlens.diagnose.driver import Claim, Lacking, Words, assessing, for_all, on_curve
from loadlens.measure import figures
from loadlens.measure.curve import Capacity, capacity_of
from loadlens.measure.thresholds import FULL_MACHINE, THROTTLED
from loadlens.model.facts import Curve, Facts, QuotaWatch, Step
from loadlens.model.finding import Counter, Estimate, Evidence, Grade
from loadlens.present import load_text, numbers
from loadlens.present.numbers import percent, with_unit

ID = "cgroup.throttled"
TITLE = "a quota of CPU time stops the service"
EXPLAINS: tuple[str, ...] = (
    "saturation.plateau",
    "cpu.saturated",
    "pause.periodic",
    "pause.aperiodic",
    "slow.periodic",
)

USED = 0.90  # of the quota
HELD_BACK = 0.10  # of the CPU time used
FEWEST_STOPS = 3  # periods: one or two are a burst, as of a start or a collection
MOST_USED = 1.15  # of the quota: more is of processes outside the group
ROUNDING_S = 1e-6  # quotas are whole microseconds


@dataclass(frozen=True, slots=True)
class ThrottledLevel:
    """A level of load, and how often one quota stopped the service there."""

    curve: Curve
    step: Step
    quota: QuotaWatch

    @property
    def share(self) -> float:
        """Share of the periods that ended with the quota used up."""
        return figures.point(self.quota.throttled)


def observe(facts: Facts) -> Sequence[ThrottledLevel] | Lacking:
    """Return the level of each curve at which most periods were stopped."""
    levels = []
    for curve in facts.curves:
        own = [ThrottledLevel(curve, step, quota) for step in curve.steps for quota in step.quotas]
        own = [level for level in own if isinstance(level.quota.throttled, Estimate)]
        if own:
            levels.append(max(own, key=lambda level: level.share))
    if levels:
        return levels
    lack = "no quota of CPU time was seen around the processes: cpu.stat of their control group would decide"
    return Lacking(grading.unwatched(facts, lack))


def claim(facts: Facts, level: ThrottledLevel) -> Claim:
    """Hold the quota against how often and how much it stops, and against the machine's own cores."""
    curve, step, quota = level.curve, level.step, level.quota
    share = percent(level.share)
    signals = [
        grading.at_least(
            "quota.throttled",
            quota.throttled,
            THROTTLED,
            text=f"{numbers.shown(quota.throttled)} of the periods were stopped (limit {percent(THROTTLED)})",
            chip=f"{share} of periods stopped",
        ),
        _use(quota),
    ]
    seconds, period_s = step.quality.seconds, quota.period_s
    if seconds is not None and period_s:  # a trial of two seconds has but twenty periods
        stops = level.share * seconds / period_s * step.trials
        text = f"about {stops:.0f} periods were stopped in all (limit {FEWEST_STOPS})"
        signals.append(grading.stated("quota.stops", True if stops >= FEWEST_STOPS else None, text=text))
    if quota.cores is not None:  # the quota itself, as the kernel has it
        half = ROUNDING_S / period_s if period_s else 0.0
        text = f"its control group may use {quota.cores:.3g} cores"
        text += f" in periods of {with_unit(period_s, 's')}" if period_s else ""
        low, high, chip = quota.cores - half, quota.cores + half, f"quota {quota.cores:.2g} cores"
        evidence = Evidence("quota.cores", text, chip, quota.cores, low, high, None, True)
        signals.append(grading.Signal(evidence, True))
    generator = grading.generator_rival(step)
    if step.generator.verdict == "late":
        generator = grading.left_open(generator)
    rivals = [generator, _machine_rival(facts, level)]

    def words(_: Grade) -> Words:
        bound = "its quota" if quota.cores is None else f"a quota of {quota.cores:.2g} cores"
        stop = "" if period_s is None else f" for up to {with_unit(period_s, 's')}"
        return Words(
            statement=f"{share} of the periods end with {bound} used up",
            explanation=f"At {load_text.load_with_unit(curve, step)} all its threads stand still{stop} "
            f"in {share} of the periods.",
            advice=_advice(level),
            confirm="twice the quota: capacity rises, stops of one period's length vanish",
            impact=level.share,
        )

    return on_curve(curve, signals, rivals, words)


def _use(quota: QuotaWatch) -> grading.Signal:
    """Require that the quota is used up on average, or costs much although it is not."""
    used, held_back = quota.used, quota.held_back
    if not isinstance(used, Estimate) or used.point <= 0:
        return grading.stated("quota.used", None, text=f"how much of it is used: {numbers.shown(used)}")
    if quota.cores is not None and USED <= used.point / quota.cores <= MOST_USED:
        share = percent(used.point / quota.cores)
        text = f"{numbers.shown(used)} used of {quota.cores:.3g} allowed ({share}, limit {percent(USED)})"
        return grading.stated("quota.used", True, text=text, chip=f"{share} of the quota used")
    if not isinstance(held_back, Estimate):
        return grading.stated(
            "quota.used", None, text=f"how long it was held back: {numbers.shown(held_back)}"
        )
    lost = held_back.point / used.point
    held = f"held back for {numbers.short(held_back)}, {numbers.short(used)} used"
    text = f"{held} ({percent(lost)}, limit {percent(HELD_BACK)})"
    return grading.stated("quota.used", lost >= HELD_BACK, text=text, chip=f"held back {percent(lost)}")


def _machine_rival(facts: Facts, level: ThrottledLevel) -> Counter:
    """Weigh the machine's own cores as the limit: ruled out while some of them were free."""
    name, busy, quota = "cores of the machine", level.step.host_cpu, level.quota
    if quota.cores is not None and quota.cores >= facts.cores:
        text = f"the quota of {quota.cores:.3g} cores is no less than the machine's {facts.cores}"
        return grading.rival(name, text, False)
    if not isinstance(busy, Estimate):
        return grading.rival(name, "the machine as a whole was not watched", None)
    text = f"{busy.point:.2f} of {facts.cores} cores are busy"
    return grading.rival(name, text, True if busy.point < FULL_MACHINE * facts.cores else None)


def _advice(level: ThrottledLevel) -> str:
    quota, work = level.quota, level.curve.work_all
    if quota.cores is None:
        return "Raise the quota, or run fewer threads at once."
    if isinstance(work, Estimate) and work.point > 0:
        more, rate = 2 * quota.cores, with_unit(2 * quota.cores / work.point, "1/s")
        each = f"a request takes {numbers.short(work)} of CPU, so {more:.2g} cores support {rate}"
        return f"Raise the quota: {each}. Or run no more threads than it has cores."
    capacity = capacity_of(level.curve)
    now = ""
    if isinstance(capacity, Capacity):
        now = f" (now {most_of(level.curve, capacity).words})"
    return f"Raise the quota above {quota.cores:.2g} cores{now}, or run no more threads than it has cores."


def _silence(facts: Facts, levels: Sequence[ThrottledLevel]) -> str:
    worst = claim(facts, max(levels, key=lambda level: level.share))
    rival = grading.against(worst.rivals)
    text = grading.unclear(worst.signals[:2])
    return text or ("nothing stopped it" if rival is None else rival.text)


assess = assessing(ID, TITLE, observe, claim, choose=for_all, silence=_silence)
