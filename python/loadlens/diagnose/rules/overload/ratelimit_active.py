"""A limit of the rate turns requests away, or delays them.

**Means.** The service lets so many requests a second through, and so many at once beyond that (a bucket of
tokens), and answers the rest with 429. More load brings no more successes, however much the service could
do.

**Needs.** At least 1 % of the requests answered with 429, and the same rate of successes at every level
that is refused some, within 10 %: so the refused share of an offered rate is 1 - limit / offered.

A limiter that delays instead is found where throughput has stopped while the service has little to do, at
no more than 0.7 over the time that a request takes when asked calmly: whatever has room for one request at
a time lets through one over that time. One user alone is held back as much as many. Where the limit lies
above that it looks as a lock does and is not told apart.

**Ruled out by.** A service that is out of CPU and refuses what it cannot do: where it refuses least, the
CPU of its processes is below 70 % of what they may use, or successes come more evenly than chance (variance
over mean below 0.2), as from a bucket. A limit of requests at once lets the same rate in at every level, too:
a bucket is known by fewer than one request under way, or by fewer than a limit of as many as were let in at
once would have there, at the share that it refuses (Erlang's loss formula), by a fifth at least, or by
successes that come more evenly than a full service's, whose times vary; where none is seen the finding is
only suspected. Answers of 503 are shed.overload; that a 503 names a time
to retry after is not recorded.

Of one that delays: a quota of CPU time (only suspected where none could be read and the service uses 0.05
cores or more, as so small a quota may be set), connections that are accepted slowly one for each request,
pauses, answers that take long to come, other programs.

**Thresholds.** 1 %: fewer are an accident of the load. 10 %: a bucket that fills up again between bursts
lets through a little less than its rate. Levels with less than 5 % refused decide nothing where others
exist, as their bucket is empty only now and then. What was let in at once is a lower bound of the bucket: it
fills up at its rate, and trials follow each other. 0.7: a first look has few requests, and a lock gives 1 or
more.

**Do.** Stay below the limit or raise it; retry after a pause that grows, with jitter.

**Confirm.** Twice the offered rate: the same rate of successes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from loadlens.diagnose import grading
from loadlens.diagnose.observe import delays, refusals
from loadlens.estimate.interval import Interval
from loadlens.estimate.rate_limiter import (
    EVEN,
    expected_refused,
    expected_under_way,
    least_scatter,
)
from loadlens.measure.thresholds import IDLE_CPU, SATURATED
from loadlens.model.facts import Curve, Facts, RefusalWatch, Step
from loadlens.model.finding import Absent, Counter, Estimate, Finding, NotAssessed
from loadlens.present import load_text, numbers

ID = "ratelimit.active"
TITLE = "a rate limit turns requests away"
EXPLAINS: tuple[str, ...] = (
    "saturation.plateau",
    "downstream.serialised",
)

TOO_MANY = 429
SAME_RATE = 0.10  # between levels
DECIDES = 0.05  # of the requests refused
GRAIN = 2.0  # requests: how far a burst is known
FEWER = 0.80  # of what is expected: requests do not come by chance alone, as the formula has it


@dataclass(frozen=True, slots=True)
class Level:
    """One level of load with refusals, whose accepted rate is known."""

    curve: Curve
    step: Step
    refusal: RefusalWatch
    rate: Estimate
    share: Estimate

    @property
    def width(self) -> float:
        """How wide the rate's interval is, relative to it; infinite when it is open."""
        if self.rate.low is None or self.rate.high is None or self.rate.point <= 0:
            return float("inf")
        return (self.rate.high - self.rate.low) / self.rate.point


def assess(facts: Facts) -> Finding | Absent | NotAssessed:
    """Look at all levels of all curves that were refused some: they share one limit."""
    steps = [(curve, step) for curve in facts.curves for step in curve.steps]
    if lack := refusals.lack([step for _, step in steps]):
        return NotAssessed(ID, TITLE, lack)
    levels = [level for curve, step in steps if (level := _level(curve, step)) is not None]
    if not levels:
        return delays.finding(facts, ID) or _not_seen([step for _, step in steps])
    deciding = [level for level in levels if level.share.point >= DECIDES] or levels
    return _judged(deciding)


def _level(curve: Curve, step: Step) -> Level | None:
    for refusal in step.refusals:
        if refusal.status != TOO_MANY:
            continue
        if isinstance(refusal.rate, Estimate) and isinstance(refusal.share, Estimate):
            return Level(curve, step, refusal, refusal.rate, refusal.share)
    return None


def _not_seen(steps: list[Step]) -> Absent | NotAssessed:
    answers = refusals.answers(steps, TOO_MANY)
    if answers.why_not_timed:
        return NotAssessed(ID, TITLE, answers.why_not_timed)
    rates = [s.throughput.point for s in steps if isinstance(s.throughput, Estimate)]
    up_to = f": a limit above {numbers.with_unit(max(rates), '1/s')} would not have shown" if rates else ""
    return Absent(ID, TITLE, f"{answers.text}{up_to}")


def _judged(levels: list[Level]) -> Finding | Absent:
    best = min(levels, key=lambda level: level.width)
    calmest = min(levels, key=lambda level: level.refusal.offered_per_s)
    at = load_text.load_of(best.curve, best.step)
    signals = [
        refusals.share_signal(best.share, TOO_MANY, at),
        _rate_signal(best),
        _same_signal(levels),
        _burst_signal(levels),
    ]
    kind = _at_once(best, levels)
    needed = [signal for signal in signals if signal.evidence.signal != "limiter.burst"]
    # A limit of the rate and one of requests at once are two causes: which it is has to be seen.
    needed.append(grading.stated("limiter.kind", kind.ruled_out, text=kind.text))
    rivals = [_overload(calmest), kind]
    grade = grading.grade_of(needed, rivals, cap=grading.cap_of(best.curve))
    if grade is None:
        against = grading.against(rivals)
        return Absent(ID, TITLE, grading.unclear(signals) if against is None else against.text)
    rate = numbers.short(best.rate)
    longest = sorted(levels, key=lambda level: -len(level.curve.steps))
    curves = tuple(dict.fromkeys(level.curve.label for level in longest))
    return Finding(
        rule=ID,
        grade=grade,
        impact=min(1.0, best.share.point),
        scope=", ".join(curves),
        statement=grading.statement(
            f"At most {rate} are let in: {numbers.percent(best.share.point)} get {TOO_MANY} at {at}"
        ),
        explanation=_explanation(levels, best),
        evidence=tuple(signal.evidence for signal in signals),
        counter=tuple(rivals),
        advice=f"Ask at most {rate}{_burst_words(levels)}, or raise the limit; who is refused pauses "
        "before asking again, longer each time and with jitter.",
        confirm=_confirm(best),
        curves=curves,
    )


def _rate_signal(best: Level) -> grading.Signal:
    found = grading.stated(
        "limiter.rate",
        True,
        text=f"{numbers.shown(best.rate)} succeed while others are refused, "
        f"of {numbers.with_unit(best.refusal.offered_per_s, '1/s')}",
        chip=f"lets in {numbers.short(best.rate)}",
    )
    rate, seconds = best.rate, best.step.quality.seconds
    # A count is known to one request at each end of a trial, however well trials agree.
    grain = 1 / seconds if seconds else 0.0
    low = None if rate.low is None else min(rate.low, rate.point - grain)
    high = None if rate.high is None else max(rate.high, rate.point + grain)
    return grading.Signal(replace(found.evidence, value=rate.point, low=low, high=high), True)


def _same_signal(levels: list[Level]) -> grading.Signal:
    rates = [level.rate.point for level in levels]
    if len(levels) < 2:
        text = "only one level is refused some: another offered rate would show whether the limit is the same"
        return grading.stated("limiter.same", None, text=text)
    spread = max(rates) / min(rates) - 1 if min(rates) > 0 else float("inf")
    text = (
        f"{numbers.with_unit(min(rates), '1/s')} to {numbers.with_unit(max(rates), '1/s')} are let in "
        f"on {len(levels)} levels ({numbers.percent(spread)} apart, limit {numbers.percent(SAME_RATE)})"
    )
    return grading.stated(
        "limiter.same", spread <= SAME_RATE, text=text, chip=f"same within {numbers.percent(spread)}"
    )


def _burst_signal(levels: list[Level]) -> grading.Signal:
    burst = _burst(levels)
    if burst is None:
        return grading.stated("limiter.burst", None, text="how many are let in at once was not seen")
    text = (
        f"{burst.point:.0f} more were let in before the first was refused: the bucket holds as many at least"
    )
    found = grading.stated("limiter.burst", True, text=text, chip=f"{burst.point:.0f} at once")
    return grading.Signal(
        replace(found.evidence, value=burst.point, low=burst.low, high=burst.high), found.is_clear
    )


def _burst(levels: list[Level]) -> Interval | None:
    """The most that any level let in at once: a bucket that is not full again shows less than it holds."""
    told = [level.refusal.burst for level in levels]
    most = max((one for one in told if isinstance(one, Estimate)), key=lambda one: one.point, default=None)
    if most is None or most.point <= 0:
        return None
    return Interval(most.point, max(0.0, most.point - GRAIN), None, float(most.samples), most.method)


def _burst_words(levels: list[Level]) -> str:
    burst = _burst(levels)
    return "" if burst is None else f" and {burst.point:.0f} at once"


def _overload(calmest: Level) -> Counter:
    """Whether the service refuses because it can do no more, where it refuses least."""
    name, allotted = "service out of CPU", calmest.curve.cores_allotted
    even = calmest.refusal.dispersion
    evenly = f"successes scatter {even:.2g} times as much as by chance (limit {EVEN:g})"
    if not calmest.step.processes or allotted <= 0:
        return grading.rival(name, f"its CPU was not read; {evenly}", True if even < EVEN else None)
    used = calmest.step.server_cores / allotted
    text = (
        f"it uses {numbers.percent(used)} of its CPU at "
        f"{load_text.load_of(calmest.curve, calmest.step)}; {evenly}"
    )
    if used < IDLE_CPU:
        return grading.rival(name, text, True)
    return grading.rival(name, text, None if used < SATURATED or even < EVEN else False)


def _at_once(level: Level, levels: list[Level]) -> Counter:
    """Whether requests at once are limited, and not their rate."""
    name, mean = "limit of requests at once", level.step.response.mean
    if not isinstance(mean, Estimate):
        return grading.rival(name, "the response time is not known", None)
    under_way = level.rate.point * mean.point
    if under_way < 1:
        return grading.rival(name, f"{under_way:.2g} are under way while others are refused", True)
    even, least = level.refusal.dispersion, _least_scatter(level)
    if even < least:
        text = (
            f"successes scatter {even:.2g} times as much as by chance; times like these make it {least:.2g} "
            "times at least where requests at once are limited"
        )
        return grading.rival(name, text, True)
    burst, refused = _burst(levels), level.share.point
    if burst is None or burst.point < GRAIN + 1 or refused >= 1:
        return grading.rival(
            name, f"{under_way:.2g} are under way; what was let in at once is not known", None
        )
    expected = expected_under_way(int(burst.point - GRAIN), refused)
    text = (
        f"{under_way:.2g} are under way; {burst.point:.0f} were let in at once, and where that is the limit "
        f"{expected:.2g} would be at least"
    )
    return grading.rival(name, text, True if under_way < FEWER * expected else None)


def _least_scatter(level: Level) -> float:
    """How much successes scatter at least where requests at once are limited; 0 where times are not known."""
    took = level.step.response
    known = [time.point for time in (took.mean, took.p50, took.p99) if isinstance(time, Estimate)]
    return least_scatter(*known) if len(known) == 3 and known[0] > 0 else 0.0


def _explanation(levels: list[Level], best: Level) -> str:
    calm = min(levels, key=lambda level: level.refusal.offered_per_s)
    offered, most = (numbers.with_unit(x.refusal.offered_per_s, "1/s") for x in (calm, _busiest(levels)))
    if len(levels) == 1:
        return f"{numbers.short(best.rate)} succeed of {offered} that are asked for."
    return f"Whether {offered} or {most} are asked for, {numbers.short(best.rate)} succeed."


def _busiest(levels: list[Level]) -> Level:
    return max(levels, key=lambda level: level.refusal.offered_per_s)


def _confirm(best: Level) -> str:
    offered = [2 * best.rate.point, 4 * best.rate.point]
    shares = [numbers.percent(expected_refused(best.rate.point, rate)) for rate in offered]
    first, second = (numbers.with_unit(rate, "1/s") for rate in offered)
    return f"{first} and {second} offered: {shares[0]} and {shares[1]} refused"
