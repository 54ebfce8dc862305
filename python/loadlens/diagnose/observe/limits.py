"""Observations of the gauges of a full service: which pool or lock is full, its line, and its hold time.

A limit is taken up when as many requests hold it as may; it limits when, besides, requests wait for it.
Behind full threads there may be a full pool: a request that waits for the pool holds a thread, so the inner
limit is the cause.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal, Protocol, TypeVar

from loadlens.diagnose import grading
from loadlens.diagnose.observe.waits import MOSTLY, Full
from loadlens.estimate.interval import Insufficient, Interval
from loadlens.measure import figures
from loadlens.measure.thresholds import ONE_HOLDER, SAMPLED_HOLDER, SATURATED, WAITERS
from loadlens.model.facts import ConcurrencyLimit, EndedLevel, Gauge, Step
from loadlens.model.finding import Counter, Estimate, Grade
from loadlens.present import numbers, words
from loadlens.present.numbers import percent, with_unit

TAKEN_UP = 0.9  # of the places
CALLS_TAKEN = 0.85  # of the calls that go at once: a place is free until the next one is sent
SAME = 0.05  # what changes by less from level to level stays the same
INSIDE = 0.8  # of those who hold the outer place are at the inner one
LONGER = 1.2  # than a request takes alone
HALF = 0.5  # of the places: others with no more taken have room
TWICE = 2.0  # as long: half of the holders, or more, wait behind it


class OfLimit(Protocol):
    """An observation of a pool or a lock."""

    @property
    def places(self) -> ConcurrencyLimit: ...


L = TypeVar("L", bound=OfLimit)


@dataclass(frozen=True, slots=True)
class Size:
    """The number of places, and the gauge that shows it."""

    count: float
    name: str
    is_read: bool  # else concluded: the number held stays the same while more want one


@dataclass(frozen=True, slots=True)
class Taken:
    """Places on a plateau, with their number and how long a request holds one."""

    full: Full
    places: ConcurrencyLimit
    size: Size | None
    hold: Interval | Insufficient

    @property
    def count(self) -> float:
        """Return how many there are, as far as that is known."""
        return self.size.count if self.size is not None else point(self.places.held) or 0.0

    @property
    def called(self) -> str:
        """Return the called program whose places these are, with its port; empty: none."""
        return called_at(self.full, self.places)


def taken(full: Full, places: ConcurrencyLimit) -> Taken:
    """Return places with what is known of them."""
    return Taken(full, places, size_of(full, places), hold(full, places))


def size_of(full: Full, limit: ConcurrencyLimit) -> Size | None:
    """Return how many may be held at once; none: no gauge shows it, and the number held still changes."""
    below = _same(full.steps[-2], limit) if len(full.steps) > 1 else None
    lower = [step for step in full.curve.steps if step.load < full.top.load]  # on the plateau or not
    lighter = _same(lower[-1], limit) if lower else None
    bound, bound_before = point(limit.bound), None if lighter is None else point(lighter.bound)
    # What grows with the load is a mark of the highest number so far, not a bound.
    if limit.bound is not None and bound and (bound_before is None or bound <= bound_before * (1 + SAME)):
        return Size(bound, limit.bound.name, True)
    if below is None:
        return None
    for gauge, before in ((limit.present, below.present), (limit.held, below.held)):
        now, then = point(gauge), point(before)
        if gauge is not None and now and then and abs(now / then - 1) <= SAME:
            return Size(now, gauge.name, gauge is not limit.held)
    return None


def _same(step: Step, limit: ConcurrencyLimit) -> ConcurrencyLimit | None:
    return next((other for other in step.places if other.held.name == limit.held.name), None)


def point(gauge: Gauge | None) -> float | None:
    """Return the mean of a gauge; none when it was not read."""
    return gauge.mean.point if gauge is not None and isinstance(gauge.mean, Estimate) else None


def requests_at(limit: ConcurrencyLimit) -> float:
    """Return how many requests hold it or wait for it."""
    return (point(limit.held) or 0.0) + (point(limit.waiting) or 0.0)


def by_line(observed: Iterable[L]) -> list[L]:
    """Sort observations by how many wait, most first; those that a gauge shows before others."""
    return sorted(
        observed,
        key=lambda limit: (
            has_waiters(limit.places) is True,
            limit.places.seen_in == "gauges",
            point(limit.places.waiting) or 0.0,
        ),
        reverse=True,
    )


def of_kind(full: Full, kind: Literal["lock", "pool"]) -> list[ConcurrencyLimit]:
    """Return the limits of that kind; without a name, one place is a lock and several are a pool."""
    limits = []
    for limit in full.top.places:
        size = size_of(full, limit) if limit.kind == "unknown" else None
        by_size = "lock" if size is not None and size.count <= ONE_HOLDER else "pool"
        if (limit.kind if size is None else by_size) == kind:
            limits.append(limit)
    return limits


def is_taken_up(full: Full, limit: ConcurrencyLimit) -> bool | None:
    """Return true if nearly all places are held; none: not known."""
    held, size = point(limit.held), size_of(full, limit)
    return None if held is None or size is None else held >= fullest(limit) * size.count


def fullest(limit: ConcurrencyLimit) -> float:
    """Return the share of its places that must be held on average, for all to be taken."""
    return CALLS_TAKEN if limit.seen_in == "sockets" else TAKEN_UP


def has_waiters(limit: ConcurrencyLimit) -> bool | None:
    """Return true if a request waits most of the time; none: no gauge shows it."""
    waiting = point(limit.waiting)
    return None if waiting is None else waiting > WAITERS


def least_held(lock: ConcurrencyLimit) -> float:
    """Return the mean number of holders from which a lock is one that limits."""
    return SAMPLED_HOLDER if lock.seen_in == "stacks" else SATURATED


def by_little(full: Full) -> Gauge | None:
    """Return the requests that wait anywhere at the highest load; none: times or throughput are not known."""
    mean = full.top.response.mean
    if not isinstance(full.rate, Interval) or not isinstance(mean, Estimate):
        return None
    waiting = full.rate.point * mean.point * full.waiting_share
    figure = Estimate("waiting", "", waiting, None, None, mean.trials, 0, "X (R - R1), Little's law")
    return Gauge("requests that wait by Little's law:", figure, waiting)


def is_line(full: Full, limit: ConcurrencyLimit) -> bool:
    """Return true for a pool or a lock that is full, with a line before it."""
    if limit.kind in ("threads", "requests") or has_waiters(limit) is not True:
        return False
    if limit.kind == "lock":
        return least_held(limit) <= (point(limit.held) or 0.0) <= ONE_HOLDER or limit.held_is_at_most
    return is_taken_up(full, limit) is True


def within(step: Step | EndedLevel, outer: ConcurrencyLimit) -> ConcurrencyLimit | None:
    """Return a pool or lock at which nearly all holders of the outer limit are; none: there is none."""
    held = point(outer.held)
    if held is None or held <= 0:
        return None
    for inner in step.places:
        if inner is outer or inner.kind in ("threads", "requests") or has_waiters(inner) is not True:
            continue
        is_smaller = (point(inner.held) or 0.0) < TAKEN_UP * held
        if is_smaller and INSIDE * held <= requests_at(inner) <= held / INSIDE:
            return inner
    return None


# --- evidence ---------------------------------------------------------------------------------------------


def reading(gauge: Gauge | None) -> str:
    """`hikaricp_connections_active 7.9`: a gauge by its own name."""
    value = point(gauge)
    return "not reported" if gauge is None or value is None else f"{gauge.name} {_count(value)}"


def taken_signal(full: Full, limit: ConcurrencyLimit, size: Size | None, signal: str) -> grading.Signal:
    """Require that nearly all places are held; the signal's value is how many there are."""
    value = point(limit.held)
    if value is None or size is None:
        before = _same(full.steps[-2], limit) if len(full.steps) > 1 else None
        if value is not None and before is not None:
            then = _count(point(before.held) or 0.0)
            text = f"{reading(limit.held)}, {then} at the level before: it still grows"
            return grading.stated(signal, False, text=text)
        return grading.stated(signal, None, text=f"{reading(limit.held)}, and nothing says of how many")
    source, number = "the same as at the level before", figures.interval_of(limit.held.mean)
    if size.is_read or isinstance(number, Insufficient):
        number = Interval(size.count, size.count, size.count, 1.0, "as reported")
    if size.is_read:
        source = f"of {size.name} {_count(size.count)}"
    return grading.stated(
        signal,
        value >= fullest(limit) * size.count,
        text=f"{reading(limit.held)}, {source} (limit {percent(fullest(limit))})",
        chip=f"{_count(value)} of {_count(size.count)} taken",
        value=number,
    )


def waiting_signal(limit: ConcurrencyLimit, signal: str) -> grading.Signal:
    """Require that a request waits for a place most of the time."""
    if limit.waiting is None:
        return grading.stated(signal, None, text=f"no gauge says who waits next to {limit.held.name}")
    return grading.at_least(
        signal,
        limit.waiting.mean,
        WAITERS,
        text=f"{reading(limit.waiting)} wait (limit {WAITERS})",
        chip=f"{_count(point(limit.waiting) or 0.0)} wait",
    )


def line_signals(full: Full, limit: ConcurrencyLimit, signal: str) -> list[grading.Signal]:
    """Compare with X (R - R1), the requests that wait anywhere by Little's law: most must wait here."""
    waiting, mean = point(limit.waiting), full.top.response.mean
    if waiting is None or not isinstance(full.rate, Interval) or not isinstance(mean, Estimate):
        return []
    everywhere = full.rate.point * mean.point * full.waiting_share
    if everywhere <= 0:
        return []
    share = min(1.0, waiting / everywhere)
    # Those here may fill threads or a pool in front of it, for which the others wait.
    fronts = [other for other in full.top.places if other is not limit and is_taken_up(full, other)]
    sizes = [point(front.held) or 0.0 for front in fronts if front.kind in ("threads", "pool", "unknown")]
    is_all_of_front = any(INSIDE * size <= requests_at(limit) <= size / INSIDE for size in sizes)
    text = f"{percent(share)} of those who wait by Little's law do so here (limit {percent(MOSTLY)})"
    return [grading.stated(signal, True if share >= MOSTLY or is_all_of_front else None, text=text)]


def hold(full: Full, limit: ConcurrencyLimit) -> Interval | Insufficient:
    """Return how long a request holds a place, in seconds: held over throughput (Little's law)."""
    rate, held = full.rate, figures.interval_of(limit.held.mean)
    if isinstance(rate, Insufficient):
        return rate
    if isinstance(held, Insufficient):
        return held
    low = None if held.low is None or not rate.high else held.low / rate.high
    high = None if held.high is None or not rate.low else held.high / rate.low
    independent = min(rate.independent, held.independent)
    return Interval(held.point / rate.point, low, high, independent, "held over throughput (Little's law)")


def hold_signal(signal: str, held: Interval | Insufficient, full: Full) -> grading.Signal:
    """State how long a place is held, next to the time that a request takes alone."""
    if isinstance(held, Insufficient):
        return grading.stated(signal, None, text=f"how long each is held: {held.reason}")
    text = f"each request holds one for {with_unit(held.point, 's')} (held over throughput)"
    if isinstance(full.alone, Estimate) and full.curve.steps[0].load == 1:
        text += f", and takes {numbers.short(full.alone)} alone"
    return grading.at_least(signal, held, 0.0, text=text, chip=f"held {with_unit(held.point, 's')}")


def slow_behind_rival(held: Interval | Insufficient, full: Full) -> Counter:
    """Weigh a full resource behind it: then each request holds a place for longer than alone."""
    name = "something slow behind it"
    if isinstance(held, Insufficient) or not isinstance(full.alone, Estimate):
        return grading.rival(name, "what a request takes alone is not known", None)
    if full.curve.steps[0].load != 1:
        return grading.rival(name, "what a request takes alone was not measured", None)
    ratio = held.point / full.alone.point
    text = f"a place is held for {ratio:.2f} of what a whole request takes alone"
    return grading.rival(name, text, True if ratio <= LONGER else False if ratio >= TWICE else None)


def called_at(full: Full, places: ConcurrencyLimit) -> str:
    """Return the name and port of the program that the service calls and whose places these are; empty: none.

    As many calls to it must be under way as hold a place or wait for one.
    """
    held, waiting = point(places.held) or 0.0, point(places.waiting) or 0.0
    least = max(INSIDE * (held + waiting), held + HALF * waiting)  # those who wait are in calls, too
    name, _, file = places.program.partition(" ")
    is_alone = [process.program for process in full.top.processes].count(name) == 1
    for calls in full.top.calls:
        callee, under_way = calls.to.rpartition(":")[0], calls.under_way.mean
        is_same = callee in (places.program, f"{name} {PurePosixPath(file).stem}")
        is_its = bool(file) and (is_same or (callee.partition(" ")[0] == name and is_alone))
        if is_its and isinstance(under_way, Estimate) and under_way.point >= least:
            return calls.to
    return ""


def with_room_beside(full: Full, places: ConcurrencyLimit) -> tuple[str, int]:
    """Return the label of full places that others of their metric, which have room, do not have.

    Returns:
        `store="7"` and the number of others; empty and 0 if more than half of one of these is taken.
    """
    metric, own = _labels(places.held.name)
    others = [
        (labels, held, bound)
        for other in full.top.places
        for name, labels in [_labels(other.held.name)]
        for held, bound in [(point(other.held), point(other.bound))]
        if name == metric and labels != own and held is not None and bound
    ]
    apart = {label for labels, _, _ in others for label in own - labels}
    has_room = all(held <= HALF * bound for _, held, bound in others)
    return (apart.pop(), len(others)) if has_room and len(apart) == 1 else ("", 0)


def _labels(name: str) -> tuple[str, frozenset[str]]:
    metric, _, labels = name.partition("{")
    return metric, frozenset(re.findall(r'\w+="[^"]*"', labels))


def within_rival(full: Full, limit: ConcurrencyLimit) -> Counter:
    """Weigh a further pool or lock at which all holders of this one are."""
    inner = within(full.top, limit)
    if inner is None:
        return grading.rival("another line behind it", "no other gauge has a line of its holders", True)
    return grading.rival("another line behind it", f"its holders are at {reading(inner.held)}", False)


def threads_rival(full: Full, limit: ConcurrencyLimit) -> Counter:
    """Weigh full threads in front of it, which would let no request through to wait here."""
    pools = [other for other in full.top.places if other.kind == "threads" and other is not limit]
    if not pools:
        return grading.rival("full threads", "requests wait behind the threads, not for them", True)
    taken = next((pool for pool in pools if is_taken_up(full, pool)), None)
    if taken is None:
        return grading.rival("full threads", f"{reading(pools[0].held)}: some are free", True)
    share = requests_at(limit) / (point(taken.held) or 1.0)
    text = f"{percent(min(1.0, share))} of {reading(taken.held)} hold or wait for a place here"
    return grading.rival("full threads", text, True if share >= INSIDE else None)


def explanation(full: Full, limit: ConcurrencyLimit) -> str:
    """Return how many hold and wait at the highest load, and how much of the time is waiting."""
    return (
        f"At {words.users(full.top.load)} {reading(limit.held)} and {reading(limit.waiting)}: "
        f"{percent(full.waiting_share)} of the response time is waiting."
    )


def calls_at_a_time(full: Full, calls: ConcurrencyLimit, count: str, grade: Grade) -> str:
    """State that calls to another program go so many at a time, and how many requests wait for that."""
    name, verb = calls.held.name, "may go" if grade is Grade.SUSPECTED else "go"
    where = " in front" if are_in_front(full, calls) else ""
    waiting = f"{point(calls.waiting) or 0.0:.3g} requests wait{where}"
    return f"{name[0].upper()}{name[1:]} {verb} {count} at a time: {full.most}; {waiting}"


def are_in_front(full: Full, calls: ConcurrencyLimit) -> bool:
    """True if more connections are in use than calls are under way: requests wait before them."""
    seen = next((each for each in full.top.calls if each.under_way is calls.held), None)
    return seen is not None and seen.connections is not None and seen.connections > calls.held.highest


def one_connection_rival(full: Full, calls: ConcurrencyLimit) -> Counter:
    """Weigh connections that carry many calls at once, which then wait in the other program."""
    is_before = are_in_front(full, calls)
    text = "more connections are in use" if is_before else "no more connections are known to be in use"
    return grading.rival("many calls at once on a connection", text, True if is_before else None)


def _count(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"
