"""Most look-ups miss a cache, and requests wait for what they missed.

**Means.** The service counts how often its cache has what it is asked for. Under load it mostly has not, and
each miss asks a slower part, which is full. What limits is that part; why it is asked so often is the cache.

**Needs.** A plateau, and two counters of the service that differ in one word, hits and misses, or the two
values of a label. At the highest load at least half of the look-ups miss, and there are at least 0.2 misses
for each request. Something else is counted and timed just as often as there are misses: a histogram of the
service, or calls that the kernel saw. It takes at least half of the time of the requests, and without load
less than a request does; else it may be the timer of the requests themselves. If nothing of this kind is
timed, the finding is only suspected.

**Ruled out by.** A tenth of the look-ups more that miss at the lightest load than at the highest: the cache
is only filling, which leaves the finding suspected. Whether the same things are asked for twice at all is not
seen from outside, so the finding is never more than probable.

**Thresholds.** Half: a cache that is asked in vain more often than not does not protect what is behind it.
0.2: below, what is behind it gets a fifth of the requests at most. 15 % between the two rates: both are read
at a scrape, and requests are under way at it.

**Do.** Keep entries longer, or more of them: time to live, size, the number of keys. Let one request fetch
what several miss.

**Confirm.** A longer time to live: fewer look-ups miss, and throughput grows with users again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Lacking, Nothing, Words, assessing, on_curve, strongest
from loadlens.diagnose.observe import calls_seen, label_parts, waits
from loadlens.diagnose.observe.label_parts import WHOLE
from loadlens.measure.curve import completed
from loadlens.model.facts import Facts, LabelPart, LabelSplit, LookUps
from loadlens.model.finding import Estimate, Grade
from loadlens.present import numbers, words

ID = "cache.misses"
TITLE = "most look-ups miss a cache"
EXPLAINS: tuple[str, ...] = (
    *("saturation.plateau", "downstream.serialised", "downstream.slow", "calls.at-once", "part.full"),
    *("mixture.slow-path", "outside.handler-wait"),
)

MOST = 0.5  # of the look-ups
EACH = 0.2  # misses per request
SAME_RATE = 0.15  # by which the rates of misses and of what follows them may differ
FEWEST = 20  # look-ups of a level
FILLING = 0.1  # of the look-ups: fewer that miss than at the lightest load


@dataclass(frozen=True, slots=True)
class Behind:
    """A part that comes as often as a miss."""

    name: str  # for printing
    of_time: float  # share of the time of all requests


@dataclass(frozen=True, slots=True)
class Missed:
    """A cache that is looked into in vain on a plateau."""

    full: waits.Full
    now: LookUps
    before: LookUps | None  # at the lightest load; none: too few there
    behind: Behind | None  # none: nothing is timed that comes as often


def observe(facts: Facts) -> Sequence[Missed] | Lacking | Nothing:
    """Return the caches of all plateaus, those that miss most often first."""
    plateaus = waits.plateaus(facts)
    if not isinstance(plateaus, tuple):
        return waits.without_plateau(plateaus)
    missed = [
        Missed(full, now, before.get((now.service, now.name)), _behind(full, now))
        for full in plateaus
        for before in [{(e.service, e.name): e for e in full.curve.steps[0].look_ups if e.samples >= FEWEST}]
        for now in full.top.look_ups
        if now.samples >= FEWEST and now.misses > 0
    ]
    missed.sort(key=lambda each: each.now.misses, reverse=True)
    if not missed and any(full.top.look_ups for full in plateaus):
        return Nothing("no look-up misses at the highest load, or too few were counted")
    return missed or Lacking("needs counters of hits and misses (--metrics)")


def _behind(full: waits.Full, look_ups: LookUps) -> Behind | None:
    """Return what comes as often as misses do and takes most of the time; none: nothing that is timed."""
    mean, rate = full.top.response.mean, completed(full.top)
    if not isinstance(mean, Estimate) or rate <= 0:
        return None
    counted = [
        (f'{split.label}="{part.value}"', part.rate.point, part.rate.point * part.mean.point / rate)
        for split in full.top.splits
        if not split.is_of_calls and not split.is_of_load
        for part in split.parts
        if isinstance(part.rate, Estimate) and isinstance(part.mean, Estimate)
        if _is_a_part(full, split, part)
    ]
    called = [(calls.name, calls.per_request * rate, calls.seconds) for calls in calls_seen.spent([full.top])]
    every = [
        Behind(name, min(1.0, seconds / mean.point))
        for name, per_s, seconds in (*counted, *called)
        if abs(per_s / look_ups.misses - 1) <= SAME_RATE and seconds >= waits.MOSTLY * mean.point
    ]
    return max(every, key=lambda each: each.of_time, default=None)


def _is_a_part(full: waits.Full, split: LabelSplit, part: LabelPart) -> bool:
    """True unless a value stands for whole requests, by rate and time without load, or was not there then."""
    first = full.curve.steps[0]
    rate, alone = completed(first), first.response.mean
    before = [
        (each.rate.point, each.mean.point)
        for other in first.splits
        if (other.metric, other.label) == (split.metric, split.label)
        for each in other.parts
        if each.value == part.value and isinstance(each.mean, Estimate) and isinstance(each.rate, Estimate)
    ]
    if not before or rate <= 0 or not isinstance(alone, Estimate):
        return False
    of_time = sum(per_s * mean for per_s, mean in before) / rate / alone.point
    return of_time <= WHOLE and not any(label_parts.is_of_client(first.classes, *each) for each in before)


def claim(facts: Facts, missed: Missed) -> Claim:
    """Hold the misses against the requests, and what comes as often against their time."""
    full, now, behind = missed.full, missed.now, missed.behind
    top, rate = words.users(full.top.load), completed(full.top)
    share, each = numbers.percent(now.missed), now.misses / rate if rate > 0 else 0.0
    looked = numbers.with_unit(now.hits + now.misses, "1/s")
    text = "nothing is timed that comes as often as a miss and takes half of the time"
    if behind is not None:
        text = (
            f"{behind.name}: as often as misses, {numbers.percent(behind.of_time)} of the time of requests "
            f"(limit {numbers.percent(waits.MOSTLY)})"
        )
    signals = [
        grading.stated(
            "look-ups.missed",
            now.missed >= MOST,
            text=f"{share} of {looked} look-ups miss at {top} ({now.name}; limit {numbers.percent(MOST)})",
            chip=f"{share} miss",
            value=now.missed,
        ),
        grading.stated(
            "look-ups.each",
            each >= EACH,
            text=f"{each:.2g} misses for each request at {top} (limit {EACH:g})",
            chip=f"{each:.2g} misses per request",
            value=each,
        ),
        grading.stated(
            "look-ups.time",
            True if behind is not None else None,
            text=text,
            chip="" if behind is None else f"{numbers.percent(behind.of_time)} of the time",
            value=None if behind is None else behind.of_time,
        ),
        _filled(missed),
    ]
    once = "things that are hardly asked for twice"
    rivals = [grading.rival(once, "which keys are asked for is not seen", None)]

    def text_of(_: Grade) -> Words:
        waited = "" if behind is None else f", and requests wait for {behind.name}"
        return Words(
            statement=f"{share} of the look-ups miss the cache{waited}",
            explanation=f"{now.name}: {looked} look-ups at {top}, {each:.2g} misses for each request.",
            advice="Keep entries longer, or more of them: time to live, size, number of keys. Let one request"
            " fetch what several miss.",
            confirm=f"a longer time to live: fewer look-ups miss, and throughput grows beyond {full.most}",
            impact=full.waiting_share * now.missed * (0.0 if behind is None else behind.of_time),
            unknown=("which keys are asked for",),
        )

    return on_curve(full.curve, signals, rivals, text_of, cap=Grade.PROBABLE)


def _filled(missed: Missed) -> grading.Signal:
    before, now = missed.before, missed.now.missed
    first = "not known" if before is None else numbers.percent(before.missed)
    return grading.stated(
        "look-ups.filled",
        None if before is None or before.missed > now + FILLING else True,
        text=f"share that misses at the lightest load: {first} (limit {numbers.percent(FILLING)} more)",
        chip=f"{first} before",
    )


assess = assessing(ID, TITLE, observe, claim, choose=strongest)
