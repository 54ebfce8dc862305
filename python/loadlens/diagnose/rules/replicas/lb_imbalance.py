"""Requests are spread unevenly over replicas, and the most loaded one is the limit.

**Means.** One of several replicas gets so many of the requests that it is full while others have room: the
service does as much as that one carries.

**Needs.** At the highest load the most loaded replica gets 1.25 times the mean or more; there it takes 1.5
times as long for a request as at the lightest load, and its time has grown 1.5 times as much as that of the
least loaded one; each request goes to one of the replicas; more users bring no more throughput (a load that
ended before is no sight of a limit: then it is suspected).

**Ruled out by.** So few connections that hashing them fairly is as uneven one time in twenty; a server that
the load does not ask at all (its share falls as the load grows); a replica that is slower from the start (not
excluded then); a generator that did not send in time.

**Thresholds.** 1.25 times the mean costs a fifth of the capacity. 1.5: the most loaded queue at 80 % of its
capacity takes five times its idle time, the mean of replicas at 64 % less than three.

**Do.** Use least connections instead of turns or hashes, give replicas equal weights, or open more
connections.

**Confirm.** Four times the connections, or requests in equal turns: shares come together and capacity rises.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Lacking, Words, assessing, for_all, on_curve
from loadlens.diagnose.observe.replica_balance import (
    Level,
    asked_rival,
    covered,
    levels_of,
    seconds,
    why_none,
)
from loadlens.estimate.connection_use import UNEVEN, Balance, balance
from loadlens.estimate.interval import Insufficient, Interval
from loadlens.measure.curve import Capacity, capacity_of
from loadlens.model.facts import Curve, Facts, ReplicaWatch
from loadlens.model.finding import Counter, Estimate, Grade
from loadlens.present import numbers
from loadlens.present.numbers import about, percent, with_unit

ID = "lb.imbalance"
TITLE = "load is uneven over replicas"
EXPLAINS: tuple[str, ...] = (
    "part.full",
    "saturation.plateau",
    "downstream.serialised",
    "threads.pool-limit",
    "outside.handler-wait",
)

GROWN = 1.5  # times the time at the lightest load, and times what the least loaded has grown
SLOWER = 1.25  # at the lightest load: then it may be the replica
LEAST_S = 0.001  # at the lightest load: below, steps of the clock decide


@dataclass(frozen=True, slots=True)
class ReplicaLoads:
    """Replicas of one service under the load of a curve."""

    curve: Curve
    levels: list[Level]  # by load


def observe(facts: Facts) -> Sequence[ReplicaLoads] | Lacking:
    """Return the replicas of every curve."""
    replicas = [ReplicaLoads(curve, levels) for curve in facts.curves for levels in levels_of(curve).values()]
    return replicas or Lacking(why_none(facts))


def claim(facts: Facts, replicas: ReplicaLoads) -> Claim:
    """Hold the most loaded replica against chance, against its own pace, and against the others' room."""
    levels, top = replicas.levels, replicas.levels[-1]
    ratio, count = _ratio(top), len(top.balance.replicas)
    uneven = grading.at_least(
        "backends.max-over-mean",
        ratio,
        UNEVEN,
        text=f"the most loaded of {count} replicas gets {ratio.point:.2f} times the mean (limit {UNEVEN})",
        chip=f"{ratio.point:.2f} times the mean",
    )
    full = _fullness(levels)
    rivals = [
        _few_connections(levels),
        asked_rival(levels, int(np.argmin(top.shares))),
        _slow_rival(levels),
        grading.generator_rival(top.step),
    ]

    def words(_: Grade) -> Words:
        # If requests to the least loaded replica wait as well, unequal weights may be intended.
        beside = _growth(levels, int(np.argmin(top.shares)))
        is_full, others_have_room = full.evidence.passed is True, beside is not None and beside < GROWN
        fullness = "Whether it is full is not known"
        if is_full:
            fullness = (
                "It is full while others have room" if others_have_room else "It is fuller than the others"
            )
        source = "its log" if top.balance.source == "log" else "the kernel's sockets"
        advice, rate = "Spread requests by least connections, with equal weights", top.step.throughput
        if isinstance(rate, Estimate) and is_full and others_have_room:
            more = with_unit(rate.point * ratio.point, "1/s")
            advice += (
                f": {count} replicas that are equally loaded support {more} instead of {numbers.short(rate)}"
            )
        return Words(
            statement=f"One of {count} replicas gets {percent(top.shares[_hottest(top)])} of the "
            f"requests, {ratio.point:.2f} times the mean",
            explanation=f"{fullness}, by {source} over {top.requests:,} requests.",
            advice=f"{advice}.",
            confirm="requests in equal turns, or four times the connections: capacity rises",
            impact=1 - 1 / ratio.point,
        )

    signals = [uneven, full, covered(top), *_limit(replicas.curve)]
    return on_curve(replicas.curve, signals, rivals, words)


def _hottest(level: Level) -> int:
    return int(np.argmax(level.shares))


def _ratio(level: Level) -> Interval:
    """Return the requests of the most loaded replica over the mean."""
    replicas = level.balance.replicas
    share = replicas[_hottest(level)].share
    assert isinstance(share, Estimate)  # `levels_of` leaves out the others
    count, whole = len(replicas), level.requests
    grain = 1 / whole  # a count is known to one request
    low = None if share.low is None else count * min(share.low, share.point - grain)
    high = None if share.high is None else count * max(share.high, share.point + grain)
    return Interval(count * share.point, low, high, float(whole), share.method)


def _fullness(levels: list[Level]) -> grading.Signal:
    """Require that the most loaded replica makes requests wait, and the least loaded does not."""
    hot, cold = _hottest(levels[-1]), int(np.argmin(levels[-1].shares))
    own, beside = (_growth(levels, place) for place in (hot, cold))
    light = _time(levels[0].balance.replicas[hot])
    if own is None or beside is None or light is None or light < LEAST_S or len(levels) < 2:
        return grading.stated(
            "backends.full", None, text="how long its requests take, by level of load, is not known"
        )
    text = (
        f"a request takes {about(own)} times as long there as at the lightest load, "
        f"{about(beside)} times at the least loaded (limit {GROWN})"
    )
    passed = own >= GROWN and own >= GROWN * beside
    return grading.stated("backends.full", passed, text=text, chip=f"{about(own)} times its light time")


def _limit(curve: Curve) -> list[grading.Signal]:
    """Require that there was a limit; empty for a load that cannot show it."""
    capacity = capacity_of(curve)
    if not isinstance(capacity, Capacity):
        return []
    passed = None if capacity.saturation.verdict == "underdriven" else True
    return [grading.stated("throughput.limit", passed, text=capacity.saturation.reason)]


def _growth(levels: list[Level], place: int) -> float | None:
    first, last = (_time(level.balance.replicas[place]) for level in (levels[0], levels[-1]))
    return None if first is None or last is None or first <= 0 else last / first


def _time(replica: ReplicaWatch) -> float | None:
    return replica.time.point if isinstance(replica.time, Estimate) else None


def _few_connections(levels: list[Level]) -> Counter:
    """Weigh chance: as many connections as the load opened, hashed fairly, over all levels together.

    Each level draws its own: if chance chose the replica, another one is the most loaded at the next level.
    """
    name = "few connections"
    counted = [
        (level, level.step.connections.opened) for level in levels if level.step.connections is not None
    ]
    opened = sum(count for _, count in counted)
    if not opened:
        return grading.rival(name, "how many connections the load opened is not known", None)
    drawn = sum(
        (np.array(level.shares) * count for level, count in counted), np.zeros(len(levels[-1].shares))
    )
    spread = balance(drawn * (levels[-1].requests / opened), drawn)
    if isinstance(spread, Insufficient):
        return grading.rival(name, spread.reason, None)
    text = f"over all levels {spread.most_over_mean:.2f} times the mean; {_by_chance(spread, opened)}"
    return grading.rival(name, text, spread.verdict == "uneven")


def _by_chance(spread: Balance, opened: int) -> str:
    return (
        f"{opened} connections hashed fairly give {spread.fair_median:.2f} times the mean, "
        f"{spread.fair_p95:.2f} one time in twenty"
    )


def _slow_rival(levels: list[Level]) -> Counter:
    """Weigh a replica that is slow from the start: then it may be full for that reason."""
    name, hot = "a slow replica", _hottest(levels[-1])
    times = [_time(replica) for replica in levels[0].balance.replicas]
    others = [time for place, time in enumerate(times) if place != hot and time is not None]
    own = times[hot]
    if own is None or not others or min(others) <= 0:
        return grading.rival(name, "the times of replicas at the lightest load are not known", None)
    beside = sum(others) / len(others)
    text = f"at the lightest load it takes {seconds(own)}, the others {seconds(beside)}"
    return grading.rival(name, text, True if own < SLOWER * beside else None)


def _silence(facts: Facts, observed: Sequence[ReplicaLoads]) -> str:
    """Return the objection on the curve whose replicas are loaded most unevenly."""
    uneven = claim(facts, max(observed, key=lambda replicas: _ratio(replicas.levels[-1]).point))
    if uneven.signals[0].evidence.passed is False:
        return uneven.signals[0].evidence.text
    against = grading.against(uneven.rivals)
    return grading.unclear(uneven.signals) if against is None else against.text


assess = assessing(ID, TITLE, observe, claim, choose=for_all, silence=_silence)
