"""One replica is slower than the others.

**Means.** Of several replicas that do the same work one takes longer for it. A share of all requests is slow,
and with equal turns the service is full when that one is.

**Needs.** Below the knee the slowest replica takes 1.25 times as long for a request as the others do on
average, the interval above 1.1; it gets no more than 1.1 times the mean of the requests; each request goes to
one of the replicas. Without such an interval it is suspected: a few answers of equal replicas differ by more.
The same holds if the load sends several kinds of requests: a gateway may send each kind elsewhere.

**Estimated by.** Where the times of all replicas have intervals, the ratio of their means over all requests
below the knee, with the errors of both. Otherwise three levels or more are as many observations of one ratio:
their geometric mean, with Student's t on its logarithm; the times shown are then geometric means over the
levels, too. With fewer levels it is the ratio of the means again, and its interval is open.

**Ruled out by.** More requests than the others get (then it is the balancer); waiting for a core that is half
of the difference (then it is the place, not the replica); a server that the load does not use; a generator
that did not send in time.

**Thresholds.** 1.25: what a third of the requests lose is then a twelfth of the mean. Times below 1 ms are
not compared: logs and the kernel's timer count in steps of 1 to 10 ms.

**Do.** Look at that replica: its host, its disk, its cache, its version; take it out of rotation meanwhile.

**Confirm.** Swap its host or core with another: slowness moves with the replica, or stays.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Lacking, Words, assessing, for_all, on_curve
from loadlens.diagnose.observe.replica_balance import (
    Level,
    alike,
    asked_rival,
    covered,
    levels_of,
    seconds,
    why_none,
)
from loadlens.estimate.interval import Interval
from loadlens.estimate.over_trials import over_trials
from loadlens.measure import figures
from loadlens.measure.curve import Capacity, capacity_of
from loadlens.model.facts import Curve, Facts
from loadlens.model.finding import Counter, Estimate, Evidence, Grade

ID = "backend.slow-one"
TITLE = "one replica is slower"
EXPLAINS: tuple[str, ...] = (
    "part.full",
    "saturation.plateau",
    "mixture.slow-path",
    "downstream.serialised",
    "threads.pool-limit",
    "outside.handler-wait",
)

SLOWER = 1.25
LEAST_SLOWER = 1.1  # the lower end
EVEN = 1.1  # times the mean of the requests
FEWEST = 20  # requests of each replica below the knee
LEAST_S = 0.001  # of the others: below, steps of the clock decide
PLACED = 0.5  # of the difference: waiting for a core beyond it is the cause


@dataclass(frozen=True, slots=True)
class ReplicaTime:
    """Time of a request at one replica, over the levels below the knee."""

    label: str
    place: int
    seconds: float
    half: float | None  # of its interval; none: open
    requests: int


@dataclass(frozen=True, slots=True)
class Slowness:
    """The slowest replica against the mean of the others."""

    own: ReplicaTime
    others_s: float
    ratio: Interval  # how many times as long it takes, by one estimator; open: too little was seen


@dataclass(frozen=True, slots=True)
class SlowReplica:
    """The slowest of several replicas below the knee of a curve."""

    curve: Curve
    levels: list[Level]  # of all loads
    slowest: Slowness


def observe(facts: Facts) -> Sequence[SlowReplica] | Lacking:
    """Return the slowest replica of every curve that timed them below its knee."""
    balanced = [(curve, levels) for curve in facts.curves for levels in levels_of(curve).values()]
    if not balanced:
        return Lacking(why_none(facts))
    replicas = [
        SlowReplica(curve, levels, slowest)
        for curve, levels in balanced
        if (slowest := _slowest(_below_the_knee(curve, levels))) is not None
    ]
    return replicas or Lacking(
        f"needs {FEWEST} requests of each replica below the knee that take {seconds(LEAST_S)} or more"
    )


def claim(facts: Facts, replica: SlowReplica) -> Claim:
    """Hold the slowest replica against its share of the requests, its core, and a balancer that avoids it."""
    levels, slowest = replica.levels, replica.slowest
    ratio, low = slowest.ratio.point, slowest.ratio.low
    own, others = seconds(slowest.own.seconds), seconds(slowest.others_s)
    is_clear = low is not None and low >= LEAST_SLOWER
    begins = "has no lower end" if low is None else f"begins at {low:.2f}"
    slower = Evidence(
        "backends.slowest-ratio",
        f"the slowest takes {own} for a request, the others {others} on average: {ratio:.2f} times "
        f"(limit {SLOWER}); its interval {begins} (limit {LEAST_SLOWER})",
        f"{ratio:.2f} times as slow",
        ratio,
        low,
        slowest.ratio.high,
        SLOWER,
        None if ratio >= SLOWER and not is_clear else ratio >= SLOWER,
    )
    share = levels[-1].shares[slowest.own.place] * len(levels[-1].shares)
    even = grading.stated(
        "backends.share",
        share <= EVEN,
        text=f"it gets {share:.2f} times the mean of the requests (limit {EVEN})",
        chip=f"{share:.2f} of a fair share",
    )
    signals = [grading.Signal(slower, is_clear), even, covered(levels[-1]), *alike(levels[-1])]
    rivals = [
        _placement(levels[0], slowest),
        asked_rival(levels, slowest.own.place),
        grading.generator_rival(levels[0].step),
    ]

    def words(_: Grade) -> Words:
        count = len(levels[0].balance.replicas)
        return Words(
            statement=f"One of {count} replicas takes {ratio:.2f} times as long as the others "
            f"({own}, not {others})",
            explanation=f"It is replica {slowest.own.label}: its requests are slow, and it is full first.",
            advice="Look at what differs there (host, disk, cache, version). In equal turns it holds all "
            f"{count} to its own pace: as fast as the others they would support {ratio:.1f} times as much.",
            confirm="swap its host or core with another's: slowness goes along with the replica, or stays",
            impact=1 - 1 / ratio,
        )

    return on_curve(replica.curve, signals, rivals, words)


def slowest_of(curve: Curve, replicas: int) -> int | None:
    """Return the place of the slowest among so many replicas; none: not known."""
    for levels in levels_of(curve).values():
        slowest = _slowest(_below_the_knee(curve, levels))
        if slowest is not None and len(levels[-1].balance.replicas) == replicas:
            return slowest.own.place
    return None


def _below_the_knee(curve: Curve, levels: list[Level]) -> list[Level]:
    """Return the levels at which no full replica makes requests wait; the lightest, if no knee is known."""
    capacity = capacity_of(curve)
    knee = capacity.saturation.knee if isinstance(capacity, Capacity) else None
    return levels[:1] if knee is None else [level for level in levels if level.step.load <= knee]


def _slowest(levels: list[Level]) -> Slowness | None:
    """Compare over the levels that timed every replica: means over other levels are of other loads."""
    timed = [level for level in levels if all(isinstance(r.time, Estimate) for r in level.balance.replicas)]
    if not timed:
        return None
    times = [_over(timed, place) for place in range(len(timed[0].balance.replicas))]
    if min(time.requests for time in times) < FEWEST:
        return None
    own = max(times, key=lambda time: time.seconds)
    others = [time for time in times if time is not own]
    mean = sum(time.seconds for time in others) / len(others)
    if mean < LEAST_S:
        return None
    return _of_times(own, others, mean) or _of_levels(own, timed) or _without_interval(own, mean)


def _of_times(own: ReplicaTime, others: list[ReplicaTime], mean: float) -> Slowness | None:
    """Return the ratio of the means over all requests; none where one of the times has no interval."""
    halves = [time.half for time in others if time.half is not None]
    if own.half is None or len(halves) < len(others):
        return None
    beside = math.sqrt(sum(half**2 for half in halves)) / len(others)
    ratio = own.seconds / mean
    half = ratio * math.hypot(own.half / own.seconds, beside / mean)
    return Slowness(own, mean, Interval(ratio, ratio - half, ratio + half, own.requests, "ratio of means"))


def _of_levels(own: ReplicaTime, timed: list[Level]) -> Slowness | None:
    """Return the typical ratio of several levels, each an observation of it; none where they are too few.

    Its ends lie about the mean of the levels, in which all count alike: the ratio of means over requests,
    most of which a single level may have had, could lie outside.
    """
    compared = [_beside(level, own.place) for level in timed]
    if any(times is None for times in compared):
        return None
    pairs = np.array(compared, dtype=np.float64)
    ratio = over_trials(pairs[:, 0] / pairs[:, 1])
    if not isinstance(ratio, Interval):
        return None
    others_s = float(np.exp(np.log(pairs[:, 1]).mean()))
    return Slowness(replace(own, seconds=ratio.point * others_s), others_s, ratio)


def _without_interval(own: ReplicaTime, mean: float) -> Slowness:
    return Slowness(own, mean, Interval(own.seconds / mean, None, None, own.requests, "ratio of means"))


def _beside(level: Level, place: int) -> tuple[float, float] | None:
    """Return its time and the mean of the others at one level, in seconds; none: not known."""
    times = [figures.point(replica.time) for replica in level.balance.replicas]
    others = (sum(times) - times[place]) / (len(times) - 1)
    return (times[place], others) if times[place] > 0 and others > 0 else None


def _over(levels: list[Level], place: int) -> ReplicaTime:
    """Average one replica over levels that timed all, each weighted by the requests of all replicas."""
    whole = sum(level.requests for level in levels)
    mean, square, is_open = 0.0, 0.0, False
    for level in levels:
        time = level.balance.replicas[place].time
        assert isinstance(time, Estimate)
        weight = level.requests / whole
        mean += weight * time.point
        is_open |= time.low is None or time.high is None
        if time.low is not None and time.high is not None:
            square += (weight * (time.high - time.low) / 2) ** 2
    own = [level.balance.replicas[place] for level in levels]
    requests = sum(replica.requests for replica in own)
    return ReplicaTime(own[0].label, place, mean, None if is_open else math.sqrt(square), requests)


def _placement(level: Level, slowest: Slowness) -> Counter:
    """Weigh a busier core under the slow replica: ruled out while its processes hardly wait for one."""
    name, rate = "a busier core", level.step.throughput
    waits = [replica.waiting for replica in level.balance.replicas]
    points = [wait.point for wait in waits if isinstance(wait, Estimate)]
    if len(points) < len(waits) or not isinstance(rate, Estimate) or rate.point <= 0:
        return grading.rival(name, "how long its processes wait for a core is not known", None)
    place = slowest.own.place
    beside = (sum(points) - points[place]) / (len(points) - 1)
    share = level.shares[place]
    each = max(0.0, points[place] - beside) / (share * rate.point) if share > 0 else 0.0
    more = slowest.own.seconds - slowest.others_s
    text = f"it waits {seconds(each)} longer for a core per request, and takes {seconds(more)} longer"
    return grading.rival(name, text, each < PLACED * more)


def _silence(facts: Facts, replicas: Sequence[SlowReplica]) -> str:
    """The objection on the curve with the slowest replica."""
    worst = claim(facts, max(replicas, key=lambda replica: replica.slowest.ratio.point))
    return grading.reason(worst.signals, worst.rivals)


assess = assessing(ID, TITLE, observe, claim, choose=for_all, silence=_silence)
