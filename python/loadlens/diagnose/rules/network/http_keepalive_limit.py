"""The service closes each connection after a number of requests.

**Means.** After a fixed number of requests the service announces that it will close the connection, and the
client opens another. The extra cost of a first request (a handshake, a cold cache, a new thread) is paid once
per that number of requests.

**Needs.** At least 10 connections that the service closed although the client would have continued. Four of
five of them had answered the same number of requests, the same number at every level of load. New connections
cost at least 2 % of the mean response time at some level, and the interval of this cost excludes zero there:
(first - other) / (requests x response). Where they cost less, the finding is at most suspected, and its
impact says how little it matters. The cost is that of the level whose interval begins highest: the largest
value of several levels would be the noisiest.

**Ruled out by.** Connections that lived equally long instead: at a constant pace a limit of age closes after
the same number of requests. The two are distinguished where ages differ by more than the time of one request,
within a level or between levels, and where no connection lived for 0.25 s, a limit that no service is set to;
otherwise the finding is at most suspected. Closings by the client, errors and restarts do not meet the same
count. A limit of one request is a finding of its own (http.no-reuse).

**Thresholds.** 80 %: a limit with jitter, or a second reason to close, may account for the rest. 10: eight
equal counts of ten are not chance. 2 %: two runs differ by as much. A limit above the number of requests that
a connection answered in the run is not seen; the report gives that number.

**Do.** Raise the limit. nginx closes after 1,000 requests since version 1.19.10, after 100 before; httpd
closes after 100.

**Confirm.** Ten times the limit: a tenth of the connections.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Lacking, Nothing, Words, assessing
from loadlens.diagnose.observe import connection_lives
from loadlens.estimate.connection_use import SAME_AGE, SAME_COUNT, cost_of_connecting
from loadlens.estimate.interval import Interval
from loadlens.measure import figures
from loadlens.model.facts import ClosedWatch, ConnectionWatch, Curve, Facts, Step
from loadlens.model.finding import Counter, Estimate, Grade
from loadlens.present import numbers

ID = "http.keepalive-limit"
TITLE = "connections end after a number of requests"
EXPLAINS: tuple[str, ...] = ()

SHORTEST_AGE_S = 0.25  # that a service would be set to
COST_MATTERS = 0.02  # of the mean response time
FAILING = 0.10  # of the requests: beyond, errors may be what closes connections


@dataclass(frozen=True, slots=True)
class Level:
    """One level whose connections the service closed."""

    curve: Curve
    step: Step
    watch: ConnectionWatch
    closed: ClosedWatch

    def cost_of(self, limit: int) -> Interval | None:
        """Return the share of the mean response time that new connections cost; none: not known."""
        first, other, mean = self.watch.first, self.watch.other, self.step.response.mean
        if not isinstance(first, Estimate) or not isinstance(other, Estimate):
            return None
        if not isinstance(mean, Estimate) or mean.point <= 0:
            return None
        return cost_of_connecting(figures.known(first), figures.known(other), limit, mean.point)


@dataclass(frozen=True, slots=True)
class Limit:
    """The number of requests after which most connections were closed, on all levels together."""

    requests: int
    share: float  # of the closed connections that had answered so many
    closed: int  # connections that the service closed
    levels: Sequence[Level]
    costliest: tuple[Level, Interval] | None  # where new connections surely cost most, and how much


def observe(facts: Facts) -> Sequence[Limit] | Lacking | Nothing:
    """Return the limit that all levels suggest together: it is one of the service."""
    kept = connection_lives.levels(facts, needs="connections one by one")
    if isinstance(kept, str):
        return Lacking(kept)
    levels = [
        Level(level.curve, level.step, level.watch, level.watch.closed)
        for level in kept
        if level.watch.closed is not None
    ]
    if not levels:
        watches = [level.watch for level in kept]
        closed, opened = sum(w.closed_by_server for w in watches), sum(w.opened for w in watches)
        longest = max(watch.answered / watch.opened if watch.opened else 0.0 for watch in watches)
        return Nothing(
            f"the service closed {closed:,} of {opened:,} connections; "
            f"a limit above {longest:,.0f} requests would not have shown"
        )
    counts: dict[int, float] = {}
    for level in levels:
        alike = level.closed.count * level.closed.same_requests
        counts[level.closed.requests] = counts.get(level.closed.requests, 0.0) + alike
    limit = max(counts, key=lambda requests: counts[requests])
    closed = sum(level.closed.count for level in levels)
    share = counts[limit] / closed
    if limit < 2:
        return Nothing(f"{numbers.percent(share)} of {closed:,} were closed after one request each")
    costs = [(level, cost) for level in levels if (cost := level.cost_of(limit)) is not None]
    costliest = max(costs, key=lambda cost: (_least(cost[1]), cost[1].point), default=None)
    return [Limit(limit, share, closed, levels, costliest)]


def claim(facts: Facts, limit: Limit) -> Claim:
    """Check that all levels have the same limit, and compare it with a limit of age and with errors."""
    levels, requests, closed = limit.levels, limit.requests, limit.closed
    most = max(levels, key=lambda level: level.closed.count)
    spoken, cost = limit.costliest or (most, None)
    age, exact = _age_rival(levels), float(requests)
    same_count = (
        f"{numbers.percent(limit.share)} of the {closed:,} connections that the service closed had answered "
        f"{requests:,} requests (limit {numbers.percent(SAME_COUNT)})"
    )
    pace = "the count is the same at every pace" if age.ruled_out else f"one pace: {age.text}"
    signals = [
        grading.stated(
            "connection.requests",
            limit.share >= SAME_COUNT,
            text=same_count,
            chip=f"{requests:,} requests each",
            value=Interval(exact, exact, exact, closed, "exact count"),
        ),
        _same_everywhere(limit),
        grading.stated("connection.pace", True if age.ruled_out else None, text=pace),
        _cost(spoken, cost),
    ]
    watches = [level.watch for level in levels]
    by_client, by_server = sum(w.closed_by_client for w in watches), sum(w.closed_by_server for w in watches)
    broken = sum(watch.closed_by_error for watch in watches)
    issued = sum(level.step.issued or 0 for level in levels)
    failed = sum(level.step.failed_count for level in levels) / issued if issued else 0.0
    errors = f"{broken:,} broke off, {numbers.percent(failed)} of the requests failed"
    rivals = [
        age,
        grading.rival(
            "closed by the client", f"the service closed {by_server:,}, the client {by_client:,}", True
        ),
        grading.rival("errors", errors, True if failed < FAILING else None),
    ]
    curves = tuple(dict.fromkeys(level.curve.label for level in levels))

    def words(grade: Grade) -> Words:
        statement = f"Each connection ends after {requests:,} requests"
        explanation = f"The service closed {closed:,} connections, each after {requests:,} requests."
        advice = (
            f"Let a connection serve {max(1_000, 10 * requests):,} requests or more instead of {requests:,}"
        )
        at_stake = 0.0 if cost is None else max(0.0, cost.point)
        if cost is not None:
            statement += f": new ones cost {numbers.percent(at_stake)} of the response time"
            explanation += (
                f" A first request takes {numbers.short(spoken.watch.first)} instead of "
                f"{numbers.short(spoken.watch.other)}, which one in {requests:,} pays."
            )
            advice += f": that saves up to {numbers.percent(at_stake)} of the response time"
        of_age = f"a limit of {numbers.with_unit(most.closed.age_s, 's')} of age"
        return Words(
            statement=statement,
            explanation=explanation,
            advice=f"{advice}.",
            confirm=f"a limit of {10 * requests:,}: a tenth of the connections",
            impact=at_stake,
            unknown=() if age.ruled_out else (of_age,),
        )

    return Claim(", ".join(curves), signals, rivals, words, curves, grading.cap_of(spoken.curve))


def _least(cost: Interval) -> float:
    return -math.inf if cost.low is None else cost.low


def _same_everywhere(limit: Limit) -> grading.Signal:
    others = [level for level in limit.levels if level.closed.requests != limit.requests]
    if others:
        other = max(others, key=lambda level: level.closed.count)
        there = f"{other.closed.requests:,} at {other.step.load:g}"
        text = f"{limit.requests:,} requests each on some levels, {there}"
        return grading.stated("connection.same", False, text=text)
    count = len(limit.levels)
    text = f"the same number on {count} level{'' if count == 1 else 's'} of load"
    return grading.stated("connection.same", True, text=text, chip=f"same on {count} levels")


def _cost(level: Level, cost: Interval | None) -> grading.Signal:
    if cost is None:
        text = "what new connections cost: too few requests to compare the first with the others"
        return grading.stated("connection.cost", None, text=text, threshold=COST_MATTERS)
    share = numbers.percent(max(0.0, cost.point))
    text = (
        f"the first request of a connection takes {numbers.short(level.watch.first)}, the others "
        f"{numbers.short(level.watch.other)}: {share} of the response time at {level.step.load:g} (matters "
        f"from {numbers.percent(COST_MATTERS)} on)"
    )
    signal = grading.at_least("connection.cost", cost, COST_MATTERS, text=text, chip=f"costs {share}")
    if signal.evidence.passed and _least(cost) > 0:
        return signal
    return grading.Signal(replace(signal.evidence, passed=None), False)  # it is there, and hardly matters


def _age_rival(levels: Sequence[Level]) -> Counter:
    """Return the rival of a limit of age: at one pace both look alike."""
    name, ages = "limit of age", [level.closed.age_s for level in levels]
    # A service that is full may close connections that it never answered on.
    between = max(level.closed.age_s / max(1, level.closed.requests) for level in levels)
    low, high = (numbers.with_unit(age, "s") for age in (min(ages), max(ages)))
    if max(ages) - min(ages) > between:
        return grading.rival(name, f"they lived {low} to {high}, by level, with the same count", True)
    scattered = min(level.closed.same_age for level in levels)
    # Of a few requests each is more than a tenth of the age: a limit of age scatters as much.
    if scattered < SAME_COUNT and SAME_AGE * min(level.closed.requests for level in levels) >= 1:
        text = f"only {numbers.percent(scattered)} lived within 10 % of {low}, with the same count"
        return grading.rival(name, text, True)
    if max(ages) < SHORTEST_AGE_S:
        return grading.rival(name, f"they lived {high} at most: no service is set to that", True)
    return grading.rival(name, f"all lived {low} too: at one pace both look alike", None)


def _silence(facts: Facts, limits: Sequence[Limit]) -> str:
    made = claim(facts, limits[0])
    rival = grading.against(made.rivals)
    return grading.unclear(made.signals) if rival is None else rival.text


assess = assessing(ID, TITLE, observe, claim, silence=_silence)
