"""The service turns away early what it has no room for.

**Means.** Beyond what it can do at once the service answers 503 without waiting, and serves the rest as
fast as before. That is how a service should meet more than it can do: the finding says where that begins.

**Needs.** At least 1 % of the requests answered with 503 at the highest level that is refused some, and at
most half that share, with 99 % confidence, at the lowest level of the same load; successes that take at
most 1.5 times as long as at the last level before; and at least 90 % of the most successes a second that
were seen.

**Ruled out by.** Errors of a part that is broken, which strike the same share at every load, or at every
load from the moment on when it broke: of two levels that are refused some, where the higher is offered half
as much again or more, refusals for each success must grow, by the root of that at least. Refusals that
come late, after a time-out, or slower than successes. That a 503 names a time to retry after, as a limiter
of a rate does, is not recorded, so the finding is never more than probable.

**Thresholds.** 1 %: fewer are single faults. Half: a share that does not depend on the load stays the same.
1.5: an overloaded service without bounds goes on growing beyond it. 90 %: refusing costs something too. The
root: a broken part refuses as many for each success at any load, and where there is no more room twice as
much offered is at least twice as many; between both lies the root.

**Do.** Keep it. Clients pause before they ask again, longer each time and with jitter.

**Confirm.** A fifth less load: the refused share falls to 1 - capacity / offered.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from loadlens.diagnose import grading
from loadlens.diagnose.observe import refusals
from loadlens.estimate.interval import Insufficient
from loadlens.estimate.rate_limiter import LEAST_REFUSED, expected_refused
from loadlens.estimate.within_trial import share
from loadlens.model.facts import Curve, Facts, RefusalWatch, Step
from loadlens.model.finding import Absent, Counter, Estimate, Finding, Grade, NotAssessed
from loadlens.present import load_text, numbers

ID = "shed.overload"
TITLE = "what there is no room for is refused early"
EXPLAINS: tuple[str, ...] = ("saturation.plateau",)

UNAVAILABLE = 503
RISES = 0.5  # of the share at the highest level: what the lowest may have
SURE = 0.99  # confidence that the lowest level has no more
SLOWER = 1.5
KEPT = 0.90  # of the most successes
DECIDES = 0.05  # of the requests refused: from there on room is scarce
FARTHER = 1.5  # times the offered rate: two levels that can be compared
LATE = 1.0  # times the median success: beyond, a refusal came after waiting


@dataclass(frozen=True, slots=True)
class Look:
    """A curve whose highest levels are refused some."""

    curve: Curve
    top: Step
    before: Step  # the last level that is hardly refused any, or the lowest
    refusal: RefusalWatch

    @property
    def at(self) -> str:
        """The load there, in words."""
        return load_text.load_of(self.curve, self.top)


def assess(facts: Facts) -> Finding | Absent | NotAssessed:
    """Look at each curve's highest level with refusals; the longest curve speaks."""
    steps = [step for curve in facts.curves for step in curve.steps]
    if lack := refusals.lack(steps):
        return NotAssessed(ID, TITLE, lack)
    looks = [look for curve in facts.curves if (look := _look(curve)) is not None]
    if not looks:
        return _not_seen(steps)
    found = [(look, finding) for look in looks if (finding := _finding(look)) is not None]
    if not found:
        return Absent(ID, TITLE, _silence(looks[0]))
    return max(found, key=lambda pair: (pair[1].grade, len(pair[0].curve.steps)))[1]


def _look(curve: Curve) -> Look | None:
    refusing = [step for step in curve.steps if _refusal(step) is not None]
    if not refusing:
        return None
    top = refusing[-1]
    refusal = _refusal(top)
    assert refusal is not None
    calm = [s for s in curve.steps if s.load < top.load and _share(s) < LEAST_REFUSED]
    return Look(curve, top, calm[-1] if calm else curve.steps[0], refusal)


def _refusal(step: Step) -> RefusalWatch | None:
    return next((one for one in step.refusals if one.status == UNAVAILABLE), None)


def _share(step: Step) -> float:
    """Of the answers of a level."""
    return refusals.answers([step], UNAVAILABLE).share


def _not_seen(steps: list[Step]) -> Absent | NotAssessed:
    answers = refusals.answers(steps, UNAVAILABLE)
    if answers.why_not_timed:
        return NotAssessed(ID, TITLE, answers.why_not_timed)
    return Absent(ID, TITLE, answers.text)


def _finding(look: Look) -> Finding | None:
    signals = _signals(look)
    rivals = [
        _late_rival(look),
        _broken_rival(look),
        grading.rival("limit of the rate", "whether a 503 says when to ask again is not recorded", None),
    ]
    grade = grading.grade_of(signals, rivals, cap=min(Grade.PROBABLE, grading.cap_of(look.curve)))
    if grade is None:
        return None
    part, rate = _refused(look), look.refusal.rate
    took = numbers.short(look.top.response.mean)
    kept = f" {numbers.short(rate)} succeed and" if isinstance(rate, Estimate) else ""
    return Finding(
        rule=ID,
        grade=grade,
        impact=min(1.0, part),
        scope=look.curve.label,
        statement=grading.statement(
            f"{numbers.percent(part)} get {UNAVAILABLE} at once at {look.at}; the rest take {took} as before"
        ),
        explanation=f"At {look.at}{kept} take {took}, as against "
        f"{numbers.short(look.before.response.mean)} at {look.before.load:g}; the rest is refused at once.",
        evidence=tuple(signal.evidence for signal in signals),
        counter=tuple(rivals),
        advice="Keep it: who is served is served in time. Who is refused pauses before asking again, longer "
        "each time and with jitter"
        + (f"; above {numbers.short(rate)} more room is needed." if kept else "."),
        confirm=_confirm(look),
        unknown=("whether refusals name a time to retry after",),
        curves=(look.curve.label,),
    )


def _refused(look: Look) -> float:
    told = look.refusal.share
    return told.point if isinstance(told, Estimate) else _share(look.top)


def _signals(look: Look) -> list[grading.Signal]:
    refused = refusals.share_signal(look.refusal.share, UNAVAILABLE, look.at)
    return [refused, _rise(look), _response(look), _throughput(look)]


def _rise(look: Look) -> grading.Signal:
    lowest = look.curve.steps[0]
    if lowest is look.top:
        text = "one level of this load: whether the refused share grows with it is not known"
        return grading.stated("refused.rise", None, text=text)
    before, now = _share(lowest), _refused(look)
    most = _at_most(lowest)
    text = (
        f"{numbers.percent(before)} (at most {numbers.percent(most)}) at {lowest.load:g}, "
        f"{numbers.percent(now)} "
        f"at {look.top.load:g} (limit {numbers.percent(RISES)} of it)"
    )
    # Few answers at the lowest level may hide the same share there.
    passed = False if before > RISES * now else True if most <= RISES * now else None
    chip = f"{numbers.percent(before)} to {numbers.percent(now)}"
    return grading.stated("refused.rise", passed, text=text, chip=chip)


def _broken_rival(look: Look) -> Counter:
    """A part that broke on the way up refuses as many for each success from then on."""
    name, offered = "a part that broke", look.refusal.offered_per_s
    below = [
        (step, refusal)
        for step in look.curve.steps
        if (refusal := _refusal(step)) is not None
        and DECIDES <= _share(step) < 1
        and 0 < FARTHER * refusal.offered_per_s <= offered
    ]
    if not below or _share(look.top) >= 1:
        text = "no two levels, one with 1.5 times the offered rate, are refused some and served some"
        return grading.rival(name, text, None)
    step, refusal = below[0]
    before, now = (_share(one) / (1 - _share(one)) for one in (step, look.top))
    more, limit = now / before, (offered / refusal.offered_per_s) ** 0.5
    text = (
        f"{before:.2g} refused for each success at {step.load:g}, {now:.2g} at {look.top.load:g}, where "
        f"{offered / refusal.offered_per_s:.2g} times as much is offered: {more:.2g} times as many "
        f"(limit {limit:.2g})"
    )
    return grading.rival(name, text, more >= limit)


def _at_most(step: Step) -> float:
    """The highest share of refusals that the answers of a level leave possible."""
    told = refusals.answers([step], UNAVAILABLE)
    found = share(np.array([float(told.refused)]), np.array([float(told.count)]), confidence=SURE)
    return 1.0 if isinstance(found, Insufficient) or found.high is None else found.high


def _response(look: Look) -> grading.Signal:
    before, now = look.before.response.mean, look.top.response.mean
    if not isinstance(before, Estimate) or not isinstance(now, Estimate) or look.before is look.top:
        return grading.stated("response.kept", None, text="no response time before refusals began")
    ratio = now.point / before.point
    return grading.stated(
        "response.kept",
        ratio <= SLOWER,
        text=f"successes take {numbers.short(now)} at {look.top.load:g}, {numbers.short(before)} at "
        f"{look.before.load:g}: {ratio:.2f} times as long (limit {SLOWER})",
        chip=f"successes take {ratio:.2f} times",
    )


def _throughput(look: Look) -> grading.Signal:
    rates = [s.throughput.point for s in look.curve.steps if isinstance(s.throughput, Estimate)]
    now = look.top.throughput
    if not isinstance(now, Estimate) or not rates or max(rates) <= 0:
        return grading.stated("throughput.kept", None, text="the throughput is not known")
    kept = now.point / max(rates)
    return grading.stated(
        "throughput.kept",
        kept >= KEPT,
        text=f"{numbers.short(now)} succeed at {look.top.load:g}, {numbers.percent(kept)} of the most on any "
        f"level (limit {numbers.percent(KEPT)})",
        chip=f"keeps {numbers.percent(kept)}",
    )


def _late_rival(look: Look) -> Counter:
    """Refusals that come late were no refusals: something was waited for in vain."""
    name = "waiting in vain"
    modes = [mode for mode in look.top.failures if mode.status == UNAVAILABLE]
    mode = max(modes, key=lambda one: one.count, default=None)
    if mode is None or mode.median_s is None or mode.success_median_s is None:
        return grading.rival(name, "how long refusals take was not kept", None)
    took, usual = (numbers.with_unit(x, "s") for x in (mode.median_s, mode.success_median_s))
    text = f"half of the refusals take {took} or less, of the successes {usual}"
    return grading.rival(name, text, mode.median_s <= LATE * mode.success_median_s)


def _confirm(look: Look) -> str:
    rate, offered = look.refusal.rate, look.refusal.offered_per_s
    if not isinstance(rate, Estimate) or look.curve.is_closed:
        return f"{look.before.load:g} users: nothing is refused"
    less = 0.8 * offered
    refused = numbers.percent(expected_refused(rate.point, less))
    return f"{numbers.with_unit(less, '1/s')} offered: {refused} refused"


def _silence(look: Look) -> str:
    return grading.reason(_signals(look), (_late_rival(look), _broken_rival(look)))
