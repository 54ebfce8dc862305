"""Under load other answers come with the status of success, or the same answers cost far less.

**Means.** What is counted as success is not what it was at the lightest load. An overloaded service turns
requests away with status 200 and a short body; a cache or shared work answers most requests once there are
many; or the data behind an answer has changed. Throughput and times on both sides of the change belong to
different work, so nothing is extrapolated across it: no capacity is given where other answers take at most
half of the time of the usual ones.

**Needs.** A log of every request, and requests that all ask for the same. Other answers: at least 5 % of the
successes of a class at a level, and 20, have bodies of sizes that none of 30 or more answers at the lightest
load has, nor a size next to one (sizes are compared to a quarter of an octave) unless they differ by a tenth
and take a tenth of the time. Where the lightest level has fewer than 30 answers, the next levels are part of
it. The share is also above what the lightest load can have missed. Less cost: the median response time falls
to half of that at the lightest load or less, by 1 ms or more, intervals apart, and a look at the lightest
load after all others is as slow again as the first, to 20 %.

**Ruled out by.** For answers of other sizes: data that grows, if the look after all others has none of them;
if it has, the finding says that they changed with time. Without such a look this is not excluded. For less
cost: a cold start, if the look afterwards is fast; then `warmup.incomplete` is the rule. Without that look
cold start and cache look the same, and neither is named. A timer of TCP at the lightest load, which vanishes
where answers follow each other.

**Thresholds.** 5 % and 20 answers: fewer change no figure by more than its interval. 30 answers: of fewer a
tenth may have been missed. A quarter of an octave, and the next: numbers and dates vary sizes by less than a
fifth, and make nothing ten times as fast. Half of the time: a queue makes requests slower with load, never
faster; what a processor saves while it idles is below 1 ms. A fifth of the requests with a timer: these make
the median.

**Do.** Answer what is turned away with 503 or 429, and compare bodies in tests. Measure a cache cold and
warm.

**Confirm.** Compare two bodies by hand: of one request alone, and of one while the load is on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Lacking, Nothing, Words, assessing, on_curve
from loadlens.measure import figures, other_answers
from loadlens.measure.other_answers import OtherAnswers
from loadlens.model.facts import Curve, Facts, RequestClass, Step
from loadlens.model.finding import Counter, Estimate, Figure, Grade, wilson
from loadlens.model.shapes import AnswerSize
from loadlens.present import numbers
from loadlens.present.numbers import percent, with_unit
from loadlens.present.words import users

ID = "answers.changed"
TITLE = "successes under load are not the answers of the lightest load"
EXPLAINS: tuple[str, ...] = ("mixture.slow-path", "saturation.plateau", "retrograde.throughput")

FASTER = 0.5  # of the time at the lightest load
LEAST_FALL_S = 0.001
AS_SLOW = 0.8  # of the first look
TIMED = 0.2  # of the requests at the lightest load: a timer makes their median


@dataclass(frozen=True, slots=True)
class LessCost:
    """A level at which one class is served far faster than alone, with the same answers."""

    light: Step
    step: Step
    first: RequestClass  # at the lightest load
    now: RequestClass
    after: Figure  # median at the lightest load, measured after all levels

    @property
    def times(self) -> float:
        """Return how many times as fast."""
        return figures.point(self.first.response.p50) / figures.point(self.now.response.p50)


@dataclass(frozen=True, slots=True)
class Change:
    """One of the two on one curve."""

    curve: Curve
    other: OtherAnswers | LessCost


def observe(facts: Facts) -> Sequence[Change] | Lacking | Nothing:
    """Return the lowest level of each curve with other answers, or the one that is fastest."""
    changes = []
    for curve in facts.curves:
        others = other_answers.levels_of(curve)
        change = others[0] if others else _less_cost(curve, facts.dense)
        if change is not None:
            changes.append(Change(curve, change))
    if changes:
        return changes
    if not any(other_answers.is_light_enough(curve) for curve in facts.curves):
        few = other_answers.FEWEST_LIGHT
        return Lacking(f"needs each request in a log, and {few} answers to the same one at the lightest load")
    return Nothing("answers under load have the sizes of those at the lightest load, and none is far faster")


def claim(facts: Facts, change: Change) -> Claim:
    """Check how many answers changed, and what a look at the lightest load afterwards shows."""
    other = change.other
    if isinstance(other, LessCost):
        return _shared(change.curve, other)
    return _replaced(facts, change.curve, other)


# --- other answers ----------------------------------------------------------------------------------------


def _replaced(facts: Facts, curve: Curve, other: OtherAnswers) -> Claim:
    share = _share(other)
    light, level = users(other.light.load), users(other.step.load)
    upto = light if other.upto is other.light else f"{other.light.load:g} to {users(other.upto.load)}"
    seen = sum(size.count for size in other.usual)
    signals = [
        grading.at_least(
            "answers.other",
            share,
            other_answers.LEAST_SHARE,
            text=f"{numbers.shown(share)} of {other.successes:,} successes at {level} are of other sizes "
            f"(limit {percent(other_answers.LEAST_SHARE)})",
            chip=f"{percent(share.point)} other answers",
        ),
        grading.stated(
            "answers.light",
            True,
            text=f"none of {seen:,} answers at {upto} is of such a size",
            chip=f"0 of {seen:,} at {upto}",
        ),
    ]
    after = _after(facts.dense, other)
    stays = after is not None and after > 0
    rival = grading.rival(
        "data that grows",
        "no look at the lightest load afterwards"
        if after is None
        else f"{after:,} such answers at the lightest load afterwards",
        None if after is None else True,
    )
    rate = figures.point(other.step.throughput)

    def words(_: Grade) -> Words:
        sizes = f"{_bytes(other.others)} in place of {_bytes(other.usual)}"
        if stays:
            statement = f"Answers changed with time: {sizes} for {percent(other.share)} at {level}"
        else:
            statement = f"{percent(other.share)} of the successes at {level} are another answer: {sizes}"
        kept = rate * (1 - other.share)
        verdict = "The data behind them changed, or they fail for good" if stays else "They answer other work"
        if other.are_cheaper and not stays:
            verdict = "Most likely they turn requests away with the status of success"
        most = ""
        if other.are_cheaper and not stays:
            top = max(other_answers.levels_of(curve), key=lambda each: each.usual_per_s)
            most = (
                f" At most {with_unit(top.usual_per_s, '1/s')} of it came, at {users(top.step.load)}, "
                f"{numbers.about(top.usual_at_once)} under way at once."
            )
        return Words(
            statement=statement,
            explanation=f"At {light}: {_quoted(other.usual)}; at {level}: {_quoted(other.others)}. These "
            f"take {with_unit(other.others_s, 's')}, the usual ones {with_unit(other.usual_s, 's')}. "
            f"{verdict}. Of {with_unit(rate, '1/s')} at {level}, {with_unit(kept, '1/s')} are the usual "
            f"answer.{most}",
            advice="Look at what was stored or cached meanwhile; begin each measurement with the same data."
            if stays
            else "Answer what is turned away with 503 or 429, so that clients and tests see it; until then "
            "check the body, and count on the usual answers only.",
            confirm="one request alone, and one while the load is on: their bodies differ as quoted",
            impact=other.share,
            scope=f"{other.request} · {curve.label}",
        )

    return on_curve(curve, signals, [rival], words, where=level)


def _share(other: OtherAnswers) -> Estimate:
    """Share of other answers, with its interval."""
    share, trials, total = other.share, other.step.trials, other.successes
    low, high = wilson(other.count, total)
    return Estimate("answers.other", "share", share, low, high, trials, total, "Wilson, counted")


def _after(dense: Sequence[Step], other: OtherAnswers) -> int | None:
    """Count the other answers at the lightest load after all levels; none if it was not measured then."""
    looks = [
        request.answers
        for step in dense
        for request in step.classes
        if step.load == other.light.load and request.label == other.label and request.answers
    ]
    return (
        sum(size.count for sizes in looks for size in other_answers.unseen(sizes, other.usual))
        if looks
        else None
    )


def _bytes(sizes: tuple[AnswerSize, ...]) -> str:
    """The most frequent size."""
    size = max(sizes, key=lambda size: size.count)
    return with_unit((size.least_bytes + size.most_bytes) / 2, "bytes")


def _quoted(sizes: tuple[AnswerSize, ...]) -> str:
    """The most frequent answer of which a body was kept."""
    size = max(sizes, key=lambda size: (bool(size.body), size.count))
    return f'"{size.body}"' if size.body else f"{_bytes(sizes)}, no text"


# --- the same answers for less ----------------------------------------------------------------------------


def _less_cost(curve: Curve, dense: Sequence[Step]) -> LessCost | None:
    """Return the level at which a class is fastest, if it is so much faster than alone before and after."""
    if not curve.is_closed or len(curve.steps) < 2:
        return None
    light = curve.steps[0]
    every = []
    for first in light.classes:
        after = next(
            (
                r.response.p50
                for s in dense
                for r in s.classes
                if (s.load, r.label) == (light.load, first.label)
            ),
            None,
        )
        if first.is_varied or after is None or _has_timers(curve, light, first.label):
            continue
        every += [
            LessCost(light, step, first, now, after)
            for step in curve.steps[1:]
            for now in step.classes
            if now.label == first.label and _is_far_faster(first.response.p50, now.response.p50)
        ]
    best = max(every, key=lambda level: level.times, default=None)
    if best is None or figures.point(best.after) < AS_SLOW * figures.point(best.first.response.p50):
        return None
    return best


def _is_far_faster(before: Figure, now: Figure) -> bool:
    if not isinstance(before, Estimate) or not isinstance(now, Estimate):
        return False
    is_apart = before.low is not None and now.high is not None and now.high < before.low
    return is_apart and 0 < now.point <= FASTER * before.point and before.point - now.point >= LEAST_FALL_S


def _has_timers(curve: Curve, light: Step, label: str) -> bool:
    at_light = [
        level.count
        for pile in curve.timer_piles
        for level in pile.levels or ()
        if pile.label == label and level.load == light.load
    ]
    return sum(at_light) >= TIMED * (light.issued or 0)


def _shared(curve: Curve, other: LessCost) -> Claim:
    light, level = users(other.light.load), users(other.step.load)
    before, now = other.first.response.p50, other.now.response.p50
    signals = [
        grading.stated(
            "answers.faster",
            True,
            text=f"the median is {numbers.shown(before)} at {light} and {numbers.shown(now)} at {level}",
            chip=f"{numbers.about(other.times)} times as fast",
            value=other.times,
            threshold=1 / FASTER,
        ),
        grading.stated(
            "answers.alone-again",
            True,
            text=f"at {light} after all levels it is {numbers.shown(other.after)}",
            chip="as slow alone again",
        ),
    ]
    rivals: list[Counter] = [
        grading.rival("cold start", "it is as slow alone again", True),
        grading.generator_rival(other.step),
    ]
    first, last = (
        (_quoted(request.answers) for request in (other.first, other.now))
        if (other.first.answers and other.now.answers)
        else ("not kept", "not kept")
    )

    def words(_: Grade) -> Words:
        return Words(
            statement=f"Requests take {with_unit(figures.point(now), 's')} at {level}, and "
            f"{with_unit(figures.point(before), 's')} alone: shared work",
            explanation="A queue makes requests slower: a cache answers them, they share work, or they are "
            f"gathered for a while. At {light}: {first}; at {level}: {last}. Neither time says what the "
            "other load costs.",
            advice="Load with keys as varied as those of real users, and measure the cache cold and warm.",
            confirm="with another key in each request the time at that load is no shorter than alone",
            impact=1 - 1 / other.times,
            scope=f"{other.now.request} · {curve.label}",
        )

    return on_curve(curve, signals, rivals, words, where=level, cap=Grade.PROBABLE)


assess = assessing(ID, TITLE, observe, claim)
