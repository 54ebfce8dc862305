"""A limit of the rate turns requests away, or delays them.

**Means.** The service admits a fixed rate of requests, and beyond it a fixed number at once (a token bucket);
it answers the rest with 429. More load brings no more successes, however much the service could do.

**Needs.** At least 1 % of the requests answered with 429, and the same rate of successes, within 10 %, at
every level with refusals: the refused share of an offered rate is then 1 - limit / offered. A rate of 0,
with a single user too, is a quota that is used up.

Whatever the status, a quota is used up where no request succeeds any more to the end of the run, although as
many were served before; nine tenths end with the same status of an error, and half of these take at most five
times as long as half of the successes; and the service's log or answers speak of a quota once for every ten
failures or more. Where requests wait before they fail, it is `places.lost`.

A limiter that delays instead shows itself by its burst or its windows, on two levels at least. After a pause
it lets its burst through and then keeps its rate: 5 requests or more, and 3 standard deviations, are done
beyond the rate of the last 40 % of a trial, which is the same at every level within 10 %. Or it counts per
window: as many requests come together at equal distances, whether few or many users wait, with none for 30 %
of the time, and a request alone takes less than 0.3 of that distance. A buffer that takes so many in, before
something slower that empties it, looks like a burst; so do requests some of which take long, unless these add
at most 30 % to the mean time. Windows are excluded where the whole service stands still between them. Windows
that let different numbers through are a quota of something else, such as computing time, if three levels or
more have the same period within 1 %, and users come 1.5 times or more in one window: what takes in all who
wait has each of them once.

Where stacks were sampled, a library's function that limits a rate shows it as well: on a plateau, with CPU to
spare, more than half of the threads or tasks at work wait at one line, beyond chance, and more than half of
these in that function. Such a finding is at most probable, as it stands on one trial, and is ruled out by a
generator or other programs that are the limit.

So does one line of the service's files, command lines or environment that sets a rate, where just this rate,
within 1 %, comes out at two levels of the plateau or more, and there is CPU to spare. A lock may let as many
through by chance, so the finding is at most probable.

Without any of these it is found where throughput has stopped growing while the service has little to
do, at no more than 0.7 / (time of a request without load): a lock with room for one request at a time admits
one per that time. A single user is held back as much as many are. A limit above that rate looks like a lock
and is not distinguished from one.

**Ruled out by.** A service that is out of CPU and refuses what it cannot do: excluded where, at the level
that refuses least, its processes use less than 70 % of the CPU that they may use, or successes are more even
than chance, as from a bucket (variance over mean below 0.2). A limit of concurrent requests also admits the
same rate at every level. It is excluded by fewer than one request in flight; by a fifth fewer requests in
flight than a limit of the number admitted at once would have at that refused share (Erlang's loss formula);
or by successes that are more even than those of a full service, whose times vary. Where none of this is seen,
the finding is only suspected. Answers with 503 belong to shed.overload; whether a 503 names a time to retry
after is not recorded.

For a limiter that delays and that no function shows: a quota of CPU time (the finding is only suspected where
no quota could be read and the service uses 0.05 cores or more, as a quota may be that small), connections
that are accepted slowly one per request, pauses, answers that take long to arrive, other programs. A place
that stays taken after its answer looks the same, so the finding is at most probable.

**Thresholds.** 1 %: fewer are an accident of the load. 10 %: a bucket that refills between bursts admits a
little less than its rate. Levels with less than 5 % refused decide nothing where others exist, as their
bucket is empty only now and then. The number admitted at once is a lower bound of the bucket's size: the
bucket refills at its rate, and trials follow each other. 0.7: the first measurement has few requests, and a
lock gives 1 or more.

**Do.** Stay below the limit or raise it; retry after a pause that grows, with jitter.

**Confirm.** Twice the offered rate: the same rate of successes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Lacking, Nothing, Words, assessing, strongest
from loadlens.diagnose.observe import clocks, delays, limiter_calls, refusals
from loadlens.estimate.interval import Interval
from loadlens.estimate.rate_limiter import (
    EVEN,
    expected_refused,
    expected_under_way,
    least_scatter,
)
from loadlens.measure.thresholds import IDLE_CPU, SATURATED
from loadlens.model.facts import Curve, Facts, RefusalWatch, Step
from loadlens.model.finding import Counter, Estimate, Grade, Setting
from loadlens.present import load_text, numbers
from loadlens.present.numbers import about

ID = "ratelimit.active"
TITLE = "a rate limit holds requests back"
EXPLAINS: tuple[str, ...] = (
    "saturation.plateau",
    "downstream.serialised",
    "downstream.slow",
    "calls.at-once",
    "calls.wait-before",
)

Seen = limiter_calls.LimiterCall | limiter_calls.LimiterLine
Delayed = refusals.UsedUp | Seen | clocks.Clock | delays.Delay

TOO_MANY = 429
DECIDES = 0.05  # of the requests refused
GRAIN = 2.0  # requests: how far a burst is known
FEWER = 0.80  # of what is expected: arrivals are not as random as the formula assumes


@dataclass(frozen=True, slots=True)
class Level:
    """One level of load with refusals, whose accepted rate is known."""

    curve: Curve
    step: Step
    refusal: RefusalWatch
    rate: Estimate
    share: Estimate

    @property
    def at(self) -> str:
        """Return the load in words."""
        return load_text.load_of(self.curve, self.step)

    @property
    def is_of_one_user(self) -> bool:
        """True if a single user sends one request after the other."""
        return self.curve.is_closed and self.step.load <= 1

    @property
    def width(self) -> float:
        """Return the width of the rate's interval, relative to the rate; infinite when it is open."""
        if self.rate.low is None or self.rate.high is None or self.rate.point <= 0:
            return float("inf")
        return (self.rate.high - self.rate.low) / self.rate.point


@dataclass(frozen=True, slots=True)
class Limit:
    """All levels of all curves that were refused some: they share one limit."""

    levels: Sequence[Level]

    @property
    def best(self) -> Level:
        """Return the level whose rate is known best."""
        return min(self.levels, key=lambda level: level.width)

    @property
    def lightest(self) -> Level:
        """Return the level with the lowest offered rate."""
        return min(self.levels, key=lambda level: level.refusal.offered_per_s)

    @property
    def burst(self) -> Interval | None:
        """Return the most that a level let in at once: a bucket that is not full shows less than it holds."""
        bursts = [level.refusal.burst for level in self.levels if isinstance(level.refusal.burst, Estimate)]
        most = max(bursts, key=lambda burst: burst.point, default=None)
        if most is None or most.point <= 0:
            return None
        return Interval(most.point, max(0.0, most.point - GRAIN), None, float(most.samples), most.method)


def observe(facts: Facts) -> Sequence[Limit | Delayed] | Lacking | Nothing:
    """Return the limit that levels with refusals show; without any, the curves that a limiter may delay."""
    steps = [(curve, step) for curve in facts.curves for step in curve.steps]
    if lack := refusals.lack([step for _, step in steps]):
        return Lacking(lack)
    levels = [level for curve, step in steps if (level := _level(curve, step)) is not None]
    if levels:
        return [Limit([level for level in levels if level.share.point >= DECIDES] or levels)]
    return [
        *refusals.used_up(facts),
        *limiter_calls.observe(facts),
        *clocks.observe(facts),
        *delays.observe(facts),
    ] or _not_seen(facts)


def _level(curve: Curve, step: Step) -> Level | None:
    for refusal in step.refusals:
        if refusal.status != TOO_MANY:
            continue
        if isinstance(refusal.rate, Estimate) and isinstance(refusal.share, Estimate):
            return Level(curve, step, refusal, refusal.rate, refusal.share)
    return None


def _not_seen(facts: Facts) -> Lacking | Nothing:
    steps = [step for curve in facts.curves for step in curve.steps]
    answers = refusals.answers(steps, TOO_MANY)
    if answers.why_not_timed:
        return Lacking(answers.why_not_timed)
    rates = [step.throughput.point for step in steps if isinstance(step.throughput, Estimate)]
    up_to = f": a limit above {numbers.with_unit(max(rates), '1/s')} would not have shown" if rates else ""
    return Nothing(f"{answers.text}{up_to}")


def claim(facts: Facts, limit: Limit | Delayed) -> Claim:
    """Compare the accepted rates of all levels, and the limit with others that would look the same."""
    if isinstance(limit, refusals.UsedUp):
        return refusals.claim_of_used_up(limit)
    if isinstance(limit, Seen):
        return limiter_calls.claim(facts, limit)
    if isinstance(limit, clocks.Clock):
        return clocks.claim(facts, limit)
    if isinstance(limit, delays.Delay):
        return delays.claim(facts, limit)
    best, lightest, levels, burst = limit.best, limit.lightest, limit.levels, limit.burst
    kind, signals = _at_once(limit), _signals(limit)
    # A limit of the rate and one of requests at once are two causes: which it is has to be seen.
    needed = [*signals[:-1], grading.stated("limiter.kind", kind.ruled_out, text=kind.text)]
    longest = sorted(levels, key=lambda level: -len(level.curve.steps))
    curves = tuple(dict.fromkeys(level.curve.label for level in longest))

    def words(grade: Grade) -> Words:
        if best.rate.point <= 0:
            return _used_up(limit)
        rate = numbers.short(best.rate)
        busiest = max(levels, key=lambda level: level.refusal.offered_per_s)
        offered, most = (numbers.with_unit(x.refusal.offered_per_s, "1/s") for x in (lightest, busiest))
        explanation = f"Whether {offered} or {most} are asked for, {rate} succeed."
        if len(levels) == 1:
            explanation = f"{rate} succeed of {offered} that are asked for."
        at_once = "" if burst is None else f" and {burst.point:.0f} at once"
        tests = [2 * best.rate.point, 4 * best.rate.point]
        shares = [numbers.percent(expected_refused(best.rate.point, test)) for test in tests]
        first, second = (numbers.with_unit(test, "1/s") for test in tests)
        return Words(
            statement=f"At most {rate} are let in: {numbers.percent(best.share.point)} get {TOO_MANY} at "
            f"{best.at}",
            explanation=explanation,
            advice=f"Ask at most {rate}{at_once}, or raise the limit; who is refused pauses before asking "
            "again, longer each time and with jitter.",
            confirm=f"{first} and {second} offered: {shares[0]} and {shares[1]} refused",
            impact=best.share.point,
            setting=Setting.rate(best.rate.point),
        )

    return Claim(
        ", ".join(curves),
        needed,
        [_overload(lightest), kind],
        words,
        curves,
        grading.cap_of(best.curve),
        evidence=[signal.evidence for signal in signals],
    )


def _used_up(limit: Limit) -> Words:
    """Return the words on a service that lets nothing in any more."""
    best = limit.best
    share, at = numbers.percent(best.share.point), best.at
    return Words(
        statement=f"Nothing is let in any more: {share} get {TOO_MANY} at {at}, as where a quota is used up",
        explanation=f"From the first {TOO_MANY} on, no request of this level succeeds.",
        advice="Raise the quota, or spread the requests over its period; who is refused waits for the next.",
        confirm="the same load with a higher quota: as many more requests succeed before one is refused",
        impact=best.share.point,
    )


def _signals(limit: Limit) -> list[grading.Signal]:
    best, burst = limit.best, limit.burst
    bucket = grading.stated("limiter.burst", None, text="how many are let in at once was not seen")
    if burst is not None:
        more = f"{burst.point:.0f} more were let in before the first was refused"
        text, chip = f"{more}: the bucket holds as many at least", f"{burst.point:.0f} at once"
        bucket = grading.stated("limiter.burst", True, text=text, chip=chip, value=burst)
    share = refusals.share_signal(best.share, TOO_MANY, best.at)
    return [share, _rate(best), _same(limit.levels), bucket]


def _rate(best: Level) -> grading.Signal:
    rate, seconds = best.rate, best.step.quality.seconds
    # A count is known to one request at each end of a trial, however well trials agree.
    grain = 1 / seconds if seconds else 0.0
    low = None if rate.low is None else min(rate.low, rate.point - grain)
    high = None if rate.high is None else max(rate.high, rate.point + grain)
    return grading.stated(
        "limiter.rate",
        True,
        text=f"{numbers.shown(rate)} succeed while others are refused, "
        f"of {numbers.with_unit(best.refusal.offered_per_s, '1/s')}",
        chip=f"lets in {numbers.short(rate)}",
        value=Interval(rate.point, low, high, float(rate.samples), rate.method),
    )


def _same(levels: Sequence[Level]) -> grading.Signal:
    if all(level.rate.point <= 0 for level in levels):
        is_one = any(level.is_of_one_user for level in levels)
        text = "not one request is let in" + (", not even of a single user" if is_one else "")
        return grading.stated("limiter.same", True if is_one else None, text=text)
    if len(levels) < 2:
        text = "only one level is refused some: another offered rate would show whether the limit is the same"
        return grading.stated("limiter.same", None, text=text)
    return clocks.same_rate([level.rate.point for level in levels], "are let in ")


def _overload(lightest: Level) -> Counter:
    """Return the rival of a service that can do no more, where it refuses least."""
    name, allotted = "service out of CPU", lightest.curve.cores_allotted
    even = lightest.refusal.dispersion
    evenly = f"successes scatter {about(even)} times as much as by chance (limit {EVEN:g})"
    if not lightest.step.processes or allotted <= 0:
        return grading.rival(name, f"its CPU was not read; {evenly}", True if even < EVEN else None)
    used = lightest.step.server_cores / allotted
    text = f"it uses {numbers.percent(used)} of its CPU at {lightest.at}; {evenly}"
    is_possible = None if used < SATURATED or even < EVEN else False
    return grading.rival(name, text, True if used < IDLE_CPU else is_possible)


def _at_once(limit: Limit) -> Counter:
    """Return the rival of a limit of requests at once, instead of their rate."""
    level, burst, took = limit.best, limit.burst, limit.best.step.response
    name, refused, even = "limit of requests at once", level.share.point, level.refusal.dispersion
    if level.rate.point <= 0:
        if level.is_of_one_user:
            return grading.rival(name, "a single user is refused, too", True)
        return grading.rival(name, "places that are not given back look the same", None)
    if not isinstance(took.mean, Estimate):
        return grading.rival(name, "the response time is not known", None)
    under_way = level.rate.point * took.mean.point
    if under_way < 1:
        return grading.rival(name, f"{about(under_way)} are under way while others are refused", True)
    times = [time.point for time in (took.mean, took.p50, took.p99) if isinstance(time, Estimate)]
    least = least_scatter(*times) if len(times) == 3 and times[0] > 0 else 0.0
    if even < least:
        text = (
            f"successes scatter {about(even)} times as much as by chance; times like these make it "
            f"{about(least)} times at least where requests at once are limited"
        )
        return grading.rival(name, text, True)
    if burst is None or burst.point < GRAIN + 1 or refused >= 1:
        text = f"{about(under_way)} are under way; what was let in at once is not known"
        return grading.rival(name, text, None)
    expected = expected_under_way(int(burst.point - GRAIN), refused)
    text = (
        f"{about(under_way)} are under way; {burst.point:.0f} were let in at once, and where that is the "
        f"limit {about(expected)} would be at least"
    )
    return grading.rival(name, text, True if under_way < FEWER * expected else None)


def _silence(facts: Facts, observed: Sequence[Limit | Delayed]) -> str | Lacking:
    limit = observed[0]
    if isinstance(limit, Delayed):
        unseen = _not_seen(facts)
        return unseen if isinstance(unseen, Lacking) else unseen.reason
    rival = grading.against([_overload(limit.lightest), _at_once(limit)])
    return grading.unclear(_signals(limit)) if rival is None else rival.text


assess = assessing(ID, TITLE, observe, claim, choose=strongest, silence=_silence)
