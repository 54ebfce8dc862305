"""The service closes each connection after a number of requests.

**Means.** After so many requests the service says that it will close the connection, and the client opens
another. Whatever a first request costs more (a handshake, a cold cache, a new thread) is paid once in so
many requests.

**Needs.** At least 10 connections that the service closed though the client would have gone on; four of
five of them had answered the same number of requests, the same number on every level of load. New
connections cost at least 2 % of the mean response time on some level, and surely more than nothing there:
(first - other) / (requests x response). Where they cost less the finding is no more than suspected, and its
impact says how little it matters. Of the levels the one speaks whose interval begins highest: the largest of
several would be the noisiest.

**Ruled out by.** Connections that lived equally long instead: a time-out, which closes after the same
number of requests as long as the pace stays the same. Both are told apart where ages differ by more than
the time of one request, within a level or between levels, and where no connection lived for 0.25 s, which
nobody sets; else the finding is no more than suspected. Closings by the client, errors, restarts: these do
not meet the same count. A limit of one is a finding of its own (http.no-reuse).

**Thresholds.** 80 %: a limit with jitter or a second reason to close may take the rest. 10: eight equal
counts of ten are no chance. 2 %: less than one can tell between two runs. A limit above the requests that a
connection served in the run is not seen; the answer says how many that were.

**Do.** Raise the limit. nginx has closed after 1,000 requests since 1.19.10 and after 100 before; httpd
closes after 100.

**Confirm.** Ten times the limit: a tenth of the connections.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from loadlens.diagnose import grading
from loadlens.diagnose.observe import connection_lives
from loadlens.estimate.connection_use import SAME_AGE, SAME_COUNT, cost_of_connecting
from loadlens.estimate.interval import Insufficient, Interval
from loadlens.measure import figures
from loadlens.model.facts import ClosedWatch, ConnectionWatch, Curve, Facts, Step
from loadlens.model.finding import Absent, Counter, Estimate, Finding, NotAssessed
from loadlens.present import numbers

ID = "http.keepalive-limit"
TITLE = "connections end after a number of requests"
EXPLAINS: tuple[str, ...] = ()

SHORTEST_AGE_S = 0.25  # that anybody would set
COST_MATTERS = 0.02  # of the mean response time
FAILING = 0.10  # of the requests: beyond, errors may be what closes connections


@dataclass(frozen=True, slots=True)
class Look:
    """One level whose connections the service closed."""

    curve: Curve
    step: Step
    watch: ConnectionWatch
    closed: ClosedWatch


@dataclass(frozen=True, slots=True)
class Cost:
    """What new connections cost on one level."""

    look: Look
    share: Interval


def assess(facts: Facts) -> Finding | Absent | NotAssessed:
    """Look at the connections of every level of load together: the limit is one of the service."""
    known = connection_lives.levels(facts, needs="connections one by one")
    if isinstance(known, str):
        return NotAssessed(ID, TITLE, known)
    looks = [Look(k.curve, k.step, k.watch, k.watch.closed) for k in known if k.watch.closed is not None]
    if not looks:
        return Absent(ID, TITLE, _none_closed([one.watch for one in known]))
    return _judged(looks)


def _none_closed(watches: list[ConnectionWatch]) -> str:
    closed = sum(watch.closed_by_server for watch in watches)
    opened = sum(watch.opened for watch in watches)
    longest = max(watch.answered / watch.opened if watch.opened else 0.0 for watch in watches)
    return (
        f"the service closed {closed:,} of {opened:,} connections; "
        f"a limit above {longest:,.0f} requests would not have shown"
    )


def _judged(looks: list[Look]) -> Finding | Absent:
    counts: dict[int, float] = {}
    for look in looks:
        counts[look.closed.requests] = counts.get(look.closed.requests, 0.0) + _alike(look)
    limit = max(counts, key=lambda requests: counts[requests])
    closed = sum(look.closed.count for look in looks)
    share = counts[limit] / closed
    if limit < 2:
        return Absent(ID, TITLE, f"{numbers.percent(share)} of {closed:,} were closed after one request each")
    cost = _dearest(looks, limit)
    age = _age_rival(looks)
    signals = [_limit(limit, closed, share), _same_everywhere(looks, limit), _pace(age), _cost(cost)]
    rivals = [age, _client_rival(looks), _error_rival(looks)]
    most = max(looks, key=lambda look: look.closed.count)
    spoken = most if cost is None else cost.look
    grade = grading.grade_of(signals, rivals, cap=grading.cap_of(spoken.curve))
    if grade is None:
        against = grading.against(rivals)
        return Absent(ID, TITLE, grading.unclear(signals) if against is None else against.text)
    at_stake = max(0.0, cost.share.point) if cost is not None else 0.0
    curves = tuple(dict.fromkeys(look.curve.label for look in looks))
    return Finding(
        rule=ID,
        grade=grade,
        impact=min(1.0, at_stake),
        scope=", ".join(curves),
        statement=grading.statement(_statement(limit, cost)),
        explanation=_explanation(limit, closed, spoken, cost),
        evidence=tuple(signal.evidence for signal in signals),
        counter=tuple(rivals),
        advice=f"Let a connection serve {_more(limit):,} requests or more instead of {limit:,}"
        f"{'' if cost is None else f': that saves up to {numbers.percent(at_stake)} of the response time'}.",
        confirm=f"a limit of {10 * limit:,}: a tenth of the connections",
        unknown=() if age.ruled_out else (f"a limit of {numbers.with_unit(most.closed.age_s, 's')} of age",),
        curves=curves,
    )


def _alike(look: Look) -> float:
    return look.closed.count * look.closed.same_requests


def _limit(limit: int, closed: int, share: float) -> grading.Signal:
    text = (
        f"{numbers.percent(share)} of the {closed:,} connections that the service closed had answered "
        f"{limit:,} requests (limit {numbers.percent(SAME_COUNT)})"
    )
    is_shared, chip = share >= SAME_COUNT, f"{limit:,} requests each"
    found = grading.stated("connection.requests", is_shared, text=text, chip=chip)
    exact = replace(found.evidence, value=float(limit), low=float(limit), high=float(limit))
    return grading.Signal(exact, found.is_clear)


def _same_everywhere(looks: list[Look], limit: int) -> grading.Signal:
    others = [look for look in looks if look.closed.requests != limit]
    if others:
        other = max(others, key=lambda look: look.closed.count)
        text = f"{limit:,} requests each on some levels, {other.closed.requests:,} at {other.step.load:g}"
        return grading.stated("connection.same", False, text=text)
    text = f"the same number on {len(looks)} level{'' if len(looks) == 1 else 's'} of load"
    return grading.stated("connection.same", True, text=text, chip=f"same on {len(looks)} levels")


def _dearest(looks: list[Look], limit: int) -> Cost | None:
    costs = [Cost(look, share) for look in looks if (share := _share_of(look, limit)) is not None]
    return max(costs, key=lambda cost: (_least(cost.share), cost.share.point), default=None)


def _least(share: Interval) -> float:
    return -math.inf if share.low is None else share.low


def _share_of(look: Look, limit: int) -> Interval | None:
    first, other, mean = look.watch.first, look.watch.other, look.step.response.mean
    if not isinstance(first, Estimate) or not isinstance(other, Estimate) or not isinstance(mean, Estimate):
        return None
    of_first, of_other = figures.interval_of(first), figures.interval_of(other)
    if isinstance(of_first, Insufficient) or isinstance(of_other, Insufficient) or mean.point <= 0:
        return None
    return cost_of_connecting(of_first, of_other, limit, mean.point)


def _cost(cost: Cost | None) -> grading.Signal:
    if cost is None:
        lack = Insufficient("too few requests to compare the first with the others")
        return grading.at_least("connection.cost", lack, COST_MATTERS, text="what new connections cost")
    found = grading.at_least(
        "connection.cost",
        cost.share,
        COST_MATTERS,
        text=f"the first request of a connection takes {numbers.short(cost.look.watch.first)}, the others "
        f"{numbers.short(cost.look.watch.other)}: "
        f"{numbers.percent(max(0.0, cost.share.point))} of the response "
        f"time at {cost.look.step.load:g} (matters from {numbers.percent(COST_MATTERS)} on)",
        chip=f"costs {numbers.percent(max(0.0, cost.share.point))}",
    )
    if found.evidence.passed and _least(cost.share) > 0:
        return found
    return grading.Signal(replace(found.evidence, passed=None), False)  # it is there, and hardly matters


def _age_rival(looks: list[Look]) -> Counter:
    """Whether connections may end after a time instead: at one pace both look alike."""
    ages = [look.closed.age_s for look in looks]
    # A service that is full may close connections that it never answered on.
    between = max(age / max(1, look.closed.requests) for age, look in zip(ages, looks, strict=True))
    low, high = (numbers.with_unit(age, "s") for age in (min(ages), max(ages)))
    if max(ages) - min(ages) > between:
        return grading.rival(
            "limit of age", f"they lived {low} to {high}, by level, with the same count", True
        )
    scattered = min(look.closed.same_age for look in looks)
    # Of a few requests each is more than a tenth of the age: a limit of age scatters as much.
    if scattered < SAME_COUNT and SAME_AGE * min(look.closed.requests for look in looks) >= 1:
        text = f"only {numbers.percent(scattered)} lived within 10 % of {low}, with the same count"
        return grading.rival("limit of age", text, True)
    if max(ages) < SHORTEST_AGE_S:
        return grading.rival("limit of age", f"they lived {high} at most: nobody limits that", True)
    return grading.rival("limit of age", f"all lived {low} too: at one pace both look alike", None)


def _pace(age: Counter) -> grading.Signal:
    """Whether the count stayed the same where an age did not."""
    text = "the count is the same at every pace" if age.ruled_out else f"one pace: {age.text}"
    return grading.stated("connection.pace", True if age.ruled_out else None, text=text)


def _client_rival(looks: list[Look]) -> Counter:
    by_client = sum(look.watch.closed_by_client for look in looks)
    by_server = sum(look.watch.closed_by_server for look in looks)
    text = f"the service closed {by_server:,}, the client {by_client:,}"
    return grading.rival("closed by the client", text, True)


def _error_rival(looks: list[Look]) -> Counter:
    broken = sum(look.watch.closed_by_error for look in looks)
    issued = sum(look.step.issued or 0 for look in looks)
    failed = sum(look.step.failed_count for look in looks) / issued if issued else 0.0
    text = f"{broken:,} broke off, {numbers.percent(failed)} of the requests failed"
    return grading.rival("errors", text, True if failed < FAILING else None)


def _more(limit: int) -> int:
    return max(1_000, 10 * limit)


def _statement(limit: int, cost: Cost | None) -> str:
    if cost is None:
        return f"Each connection ends after {limit:,} requests"
    share = numbers.percent(max(0.0, cost.share.point))
    return f"Each connection ends after {limit:,} requests: new ones cost {share} of the response time"


def _explanation(limit: int, closed: int, look: Look, cost: Cost | None) -> str:
    text = f"The service closed {closed:,} connections, each after {limit:,} requests"
    if cost is None:
        return f"{text}."
    return (
        f"{text}. A first request takes {numbers.short(look.watch.first)} instead of "
        f"{numbers.short(look.watch.other)}, which one in {limit:,} pays."
    )
