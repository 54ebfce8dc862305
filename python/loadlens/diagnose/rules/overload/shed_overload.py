"""The service refuses early what it has no room for.

**Means.** Beyond what it can do at once the service answers 503 without waiting, and serves the rest as
fast as before. That is how a service should meet more than it can do: the finding says where that begins.

**Needs.** At least 1 % of the requests answered with 503 at the highest level that is refused some, and at
most half that share, with 99 % confidence, at all levels of the same load below the first that is refused
1 %, together (at the lowest, where that is refused as many); successes that take at most 1.5 times as long as
at the last level before; and at least 90 % of the most successes a second that were seen.

**Ruled out by.** Errors of a part that is broken, which strike the same share at every load, or at every
load from the moment on when it broke: of two levels that are refused some, where the higher is offered half
as much again or more, refusals for each success must grow, by the root of that at least. Refusals that
come late, after a time-out, or slower than successes. That a 503 names a time to retry after, as a limiter
of a rate does, is not recorded, so the finding is never more than probable.

**Thresholds.** 1 %: fewer are single faults. Half: a share that does not depend on the load stays the same.
1.5: an overloaded service without bounds goes on growing beyond it. 90 %: refusing costs something too. The
root: a broken part refuses as many for each success at any load, and where there is no more room twice as
much offered is at least twice as many; between both lies the root.

**Do.** Keep it. Let clients pause before they ask again, longer each time and with jitter.

**Confirm.** A fifth less load: the refused share falls to 1 - capacity / offered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

import numpy as np

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Lacking, Nothing, Words, assessing, on_curve
from loadlens.diagnose.observe import refusals
from loadlens.estimate.interval import Insufficient
from loadlens.estimate.rate_limiter import LEAST_REFUSED, expected_refused
from loadlens.estimate.within_trial import share
from loadlens.model.facts import Curve, Facts, RefusalWatch, Step
from loadlens.model.finding import Counter, Estimate, Finding, Grade
from loadlens.present import load_text, numbers
from loadlens.present.numbers import about

ID = "shed.overload"
TITLE = "what there is no room for is refused early"
EXPLAINS: tuple[str, ...] = ("saturation.plateau",)

UNAVAILABLE = 503
RISES = 0.5  # of the share at the highest level: what those below may have
SURE = 0.99  # confidence that the levels below have no more
SLOWER = 1.5
KEPT = 0.90  # of the most successes
DECIDES = 0.05  # of the requests refused: from there on room is scarce
FARTHER = 1.5  # times the offered rate: two levels that can be compared
LATE = 1.0  # times the median success: beyond, a refusal came after waiting


@dataclass(frozen=True, slots=True)
class SheddingCurve:
    """A curve whose highest levels are refused some."""

    curve: Curve
    top: Step
    before: Step  # the last level that is hardly refused any, or the lowest
    refusal: RefusalWatch

    @property
    def at(self) -> str:
        """The highest load with refusals, in words."""
        return load_text.load_of(self.curve, self.top)

    @property
    def refused(self) -> float:
        """Share of the requests there that are refused."""
        share = self.refusal.share
        return share.point if isinstance(share, Estimate) else _share(self.top)


def observe(facts: Facts) -> Sequence[SheddingCurve] | Lacking | Nothing:
    """Return the curves with refusals."""
    steps = [step for curve in facts.curves for step in curve.steps]
    if lack := refusals.lack(steps):
        return Lacking(lack)
    shedding = [seen for curve in facts.curves if (seen := _shedding(curve)) is not None]
    if shedding:
        return shedding
    answers = refusals.answers(steps, UNAVAILABLE)
    return Lacking(answers.why_not_timed) if answers.why_not_timed else Nothing(answers.text)


def _shedding(curve: Curve) -> SheddingCurve | None:
    refusing = [(step, refusal) for step in curve.steps if (refusal := _refusal(step)) is not None]
    if not refusing:
        return None
    top, refusal = refusing[-1]
    spared = [s for s in curve.steps if s.load < top.load and _share(s) < LEAST_REFUSED]
    return SheddingCurve(curve, top, spared[-1] if spared else curve.steps[0], refusal)


def _refusal(step: Step) -> RefusalWatch | None:
    return next((refusal for refusal in step.refusals if refusal.status == UNAVAILABLE), None)


def _share(step: Step) -> float:
    """Share of a level's answers that are refusals."""
    return refusals.answers([step], UNAVAILABLE).share


def claim(facts: Facts, shedding: SheddingCurve) -> Claim:
    """Hold the refusals against those of a part that broke, and against answers that come late."""
    top, before, rate = shedding.top, shedding.before, shedding.refusal.rate
    share_refused = refusals.share_signal(shedding.refusal.share, UNAVAILABLE, shedding.at)
    signals = [share_refused, _rise(shedding), _response(shedding), _throughput(shedding)]
    rivals = [
        _late_rival(shedding),
        _broken_rival(shedding),
        grading.rival("limit of the rate", "whether a 503 says when to ask again is not recorded", None),
    ]

    def words(_: Grade) -> Words:
        took = numbers.short(top.response.mean)
        kept, room, confirm = "", ".", f"{before.load:g} users: nothing is refused"
        if isinstance(rate, Estimate):
            kept = f" {numbers.short(rate)} succeed and"
            room = f"; above {numbers.short(rate)} more room is needed."
            if not shedding.curve.is_closed:
                less = 0.8 * shedding.refusal.offered_per_s
                refused = numbers.percent(expected_refused(rate.point, less))
                confirm = f"{numbers.with_unit(less, '1/s')} offered: {refused} refused"
        return Words(
            statement=f"{numbers.percent(shedding.refused)} get {UNAVAILABLE} at once at {shedding.at}; the "
            f"rest take {took} as before",
            explanation=f"At {shedding.at}{kept} take {took}, as against "
            f"{numbers.short(before.response.mean)} at {before.load:g}; the rest is refused at once.",
            advice="Keep it: who is served is served in time. Who is refused pauses before asking again, "
            f"longer each time and with jitter{room}",
            confirm=confirm,
            impact=shedding.refused,
            unknown=("whether refusals name a time to retry after",),
        )

    return on_curve(shedding.curve, signals, rivals, words, cap=Grade.PROBABLE)


def _rise(shedding: SheddingCurve) -> grading.Signal:
    steps = shedding.curve.steps
    if steps[0] is shedding.top:
        text = "one level of this load: whether the refused share grows with it is not known"
        return grading.stated("refused.rise", None, text=text)
    below = list(takewhile(lambda step: step is not shedding.top and _share(step) < LEAST_REFUSED, steps))
    light = below or [steps[0]]
    answers, now = refusals.answers(light, UNAVAILABLE), shedding.refused
    before, span = answers.share, "" if len(light) == 1 else f"{light[0].load:g} to "
    bound = share(np.array([float(answers.refused)]), np.array([float(answers.count)]), confidence=SURE)
    most = 1.0 if isinstance(bound, Insufficient) or bound.high is None else bound.high
    text = (
        f"{numbers.percent(before)} (at most {numbers.percent(most)}) at {span}{light[-1].load:g}, "
        f"{numbers.percent(now)} at {shedding.top.load:g} (limit {numbers.percent(RISES)} of it)"
    )
    # Few answers at low levels may hide the same share there.
    passed = False if before > RISES * now else True if most <= RISES * now else None
    chip = f"{numbers.percent(before)} to {numbers.percent(now)}"
    return grading.stated("refused.rise", passed, text=text, chip=chip)


def _broken_rival(shedding: SheddingCurve) -> Counter:
    """A part that broke on the way up refuses as many for each success from then on."""
    name, offered = "a part that broke", shedding.refusal.offered_per_s
    below = [
        (step, refusal)
        for step in shedding.curve.steps
        if (refusal := _refusal(step)) is not None
        and DECIDES <= _share(step) < 1
        and 0 < FARTHER * refusal.offered_per_s <= offered
    ]
    if not below or _share(shedding.top) >= 1:
        text = "no two levels, one with 1.5 times the offered rate, are refused some and served some"
        return grading.rival(name, text, None)
    step, refusal = below[0]
    before, now = (_share(level) / (1 - _share(level)) for level in (step, shedding.top))
    more, limit = now / before, (offered / refusal.offered_per_s) ** 0.5
    text = (
        f"{about(before)} refused for each success at {step.load:g}, {about(now)} at {shedding.top.load:g}, "
        f"where {about(offered / refusal.offered_per_s)} times as much is offered: {about(more)} times as "
        f"many (limit {about(limit)})"
    )
    return grading.rival(name, text, more >= limit)


def _response(shedding: SheddingCurve) -> grading.Signal:
    before, now = shedding.before.response.mean, shedding.top.response.mean
    if not isinstance(before, Estimate) or not isinstance(now, Estimate) or shedding.before is shedding.top:
        return grading.stated("response.kept", None, text="no response time before refusals began")
    ratio = now.point / before.point
    return grading.stated(
        "response.kept",
        ratio <= SLOWER,
        text=f"successes take {numbers.short(now)} at {shedding.top.load:g}, {numbers.short(before)} at "
        f"{shedding.before.load:g}: {ratio:.2f} times as long (limit {SLOWER})",
        chip=f"successes take {ratio:.2f} times",
    )


def _throughput(shedding: SheddingCurve) -> grading.Signal:
    rates = [s.throughput.point for s in shedding.curve.steps if isinstance(s.throughput, Estimate)]
    now = shedding.top.throughput
    if not isinstance(now, Estimate) or not rates or max(rates) <= 0:
        return grading.stated("throughput.kept", None, text="the throughput is not known")
    kept = now.point / max(rates)
    return grading.stated(
        "throughput.kept",
        kept >= KEPT,
        text=f"{numbers.short(now)} succeed at {shedding.top.load:g}, {numbers.percent(kept)} of the most on "
        f"any level (limit {numbers.percent(KEPT)})",
        chip=f"keeps {numbers.percent(kept)}",
    )


def _late_rival(shedding: SheddingCurve) -> Counter:
    """Refusals that come late were no refusals: something was waited for in vain."""
    name = "waiting in vain"
    modes = [mode for mode in shedding.top.failures if mode.status == UNAVAILABLE]
    mode = max(modes, key=lambda mode: mode.count, default=None)
    if mode is None or mode.median_s is None or mode.success_median_s is None:
        return grading.rival(name, "how long refusals take was not kept", None)
    took, usual = (numbers.with_unit(x, "s") for x in (mode.median_s, mode.success_median_s))
    text = f"half of the refusals take {took} or less, of the successes {usual}"
    return grading.rival(name, text, mode.median_s <= LATE * mode.success_median_s)


def _longest(pairs: Sequence[tuple[SheddingCurve, Finding]]) -> Finding:
    """The finding of the highest grade, and of those the one of the longest curve."""
    return max(pairs, key=lambda pair: (pair[1].grade, len(pair[0].curve.steps)))[1]


def _silence(facts: Facts, shedding: Sequence[SheddingCurve]) -> str:
    made = claim(facts, shedding[0])
    return grading.reason(made.signals, made.rivals)


assess = assessing(ID, TITLE, observe, claim, choose=_longest, silence=_silence)
