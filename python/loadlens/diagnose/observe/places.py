"""What several rules ask of the gauges of a full service: which pool or lock is full, how many wait for
it, how long each holds a place.

A place is taken up when as many hold it as may; it limits when, besides, somebody waits. Behind threads
that are full there may be a pool that is full: who waits for the pool holds a thread, so the inner one is
the cause.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, Protocol, TypeVar

from loadlens.diagnose import grading
from loadlens.diagnose.observe.waits import MOSTLY, Full
from loadlens.estimate.interval import Insufficient, Interval
from loadlens.measure import figures
from loadlens.measure.thresholds import ONE_HOLDER, SATURATED, WAITERS
from loadlens.model.facts import Gauge, Places, Step
from loadlens.model.finding import Counter, Estimate
from loadlens.present import numbers, words

TAKEN_UP = 0.9  # of the places
SAME = 0.05  # what changes by less from level to level stays the same
INSIDE = 0.8  # of those who hold the outer place are at the inner one
LONGER = 1.2  # than a request takes alone
TWICE = 2.0  # as long: half of the holders, or more, wait behind it


class Look(Protocol):
    """What a rule looks at: a pool or a lock."""

    @property
    def places(self) -> Places: ...


L = TypeVar("L", bound=Look)


@dataclass(frozen=True, slots=True)
class Size:
    """How many places there are, and which gauge says so."""

    count: float
    name: str
    is_told: bool  # else concluded: the number held stays the same while more want one


def size_of(found: Full, places: Places) -> Size | None:
    """How many may be held at once; none: nothing says so, and the number held still changes."""
    before, lighter = _below(found, places), _lighter(found, places)
    bound, bound_before = point(places.bound), None if lighter is None else point(lighter.bound)
    # What grows with the load is a mark of the highest number so far, not a bound.
    if places.bound is not None and bound and (bound_before is None or bound <= bound_before * (1 + SAME)):
        return Size(bound, places.bound.name, True)
    for gauge in ("present", "held"):
        now, then = getattr(places, gauge), None if before is None else getattr(before, gauge)
        a, b = point(now), point(then)
        if now is not None and a and b and abs(a / b - 1) <= SAME:
            return Size(a, now.name, gauge == "present")
    return None


def _below(found: Full, places: Places) -> Places | None:
    """The same at the next lower level of the plateau."""
    if len(found.steps) < 2:
        return None
    return _same(found.steps[-2], places)


def _lighter(found: Full, places: Places) -> Places | None:
    """The same at the next lower level of all, on the plateau or not."""
    below = [step for step in found.curve.steps if step.load < found.top.load]
    return _same(below[-1], places) if below else None


def _same(step: Step, places: Places) -> Places | None:
    return next((one for one in step.places if one.held.name == places.held.name), None)


def point(gauge: Gauge | None) -> float | None:
    """Its mean; none when it was not read."""
    return gauge.mean.point if gauge is not None and isinstance(gauge.mean, Estimate) else None


def by_line(looks: Iterable[L]) -> list[L]:
    """Looks at places, those with the longest line first."""
    return sorted(looks, key=lambda look: point(look.places.waiting) or 0.0, reverse=True)


def of_kind(found: Full, kind: Literal["lock", "pool"]) -> list[Places]:
    """Gauges that are called so; without a name, one place is a lock and several are a pool."""
    return [one for one in found.top.places if (_by_size(found, one) or one.kind) == kind]


def _by_size(found: Full, places: Places) -> Literal["lock", "pool"] | None:
    """What a gauge without a name is; none: it has a name, or nothing says how many places there are."""
    size = size_of(found, places) if places.kind == "unknown" else None
    return None if size is None else "lock" if size.count <= ONE_HOLDER else "pool"


def is_taken_up(found: Full, places: Places) -> bool | None:
    """Whether nearly all are held; none: not known."""
    held, size = point(places.held), size_of(found, places)
    if held is None or size is None:
        return None
    return held >= TAKEN_UP * size.count


def has_waiters(places: Places) -> bool | None:
    """Whether somebody waits most of the time; none: not told."""
    waiting = point(places.waiting)
    return None if waiting is None else waiting > WAITERS


def is_line(found: Full, places: Places) -> bool:
    """Whether it is a pool or a lock that is full, with a line before it."""
    if places.kind in ("threads", "requests") or has_waiters(places) is not True:
        return False
    if places.kind == "lock":
        return SATURATED <= (point(places.held) or 0.0) <= ONE_HOLDER or places.held_is_at_most
    return is_taken_up(found, places) is True


def within(step: Step, outer: Places) -> Places | None:
    """A pool or lock at which nearly all are who hold a place of the outer one; none: there is none."""
    held = point(outer.held)
    if held is None or held <= 0:
        return None
    for inner in step.places:
        if inner is outer or inner.kind in ("threads", "requests") or has_waiters(inner) is not True:
            continue
        there = (point(inner.held) or 0.0) + (point(inner.waiting) or 0.0)
        is_smaller = (point(inner.held) or 0.0) < TAKEN_UP * held
        if is_smaller and INSIDE * held <= there <= held / INSIDE:
            return inner
    return None


# --- evidence ---------------------------------------------------------------------------------------------


def told(gauge: Gauge | None) -> str:
    """`hikaricp_connections_active 7.9`: a gauge by its own name."""
    value = point(gauge)
    if gauge is None or value is None:
        return "not told"
    return f"{gauge.name} {_count(value)}"


def taken_signal(found: Full, places: Places, size: Size | None, signal: str) -> grading.Signal:
    """Nearly all places are held; its value is how many there are."""
    value = point(places.held)
    if value is None or size is None:
        before = _below(found, places)
        if value is not None and before is not None:
            then = _count(point(before.held) or 0.0)
            text = f"{told(places.held)}, {then} at the level before: it still grows"
            return grading.stated(signal, False, text=text)
        return grading.stated(signal, None, text=f"{told(places.held)}, and nothing says of how many")
    source = f"of {size.name} {_count(size.count)}" if size.is_told else "the same as at the level before"
    taken = grading.stated(
        signal,
        value >= TAKEN_UP * size.count,
        text=f"{told(places.held)}, {source} (limit {numbers.percent(TAKEN_UP)})",
        chip=f"{_count(value)} of {_count(size.count)} taken",
    )
    exact = Interval(size.count, size.count, size.count, 1.0, "as told")
    if not size.is_told:
        concluded = figures.interval_of(places.held.mean)
        exact = concluded if isinstance(concluded, Interval) else exact
    seen = replace(taken.evidence, value=exact.point, low=exact.low, high=exact.high)
    return replace(taken, evidence=seen)


def waiting_signal(places: Places, signal: str) -> grading.Signal:
    """Somebody waits for a place most of the time."""
    if places.waiting is None:
        return grading.stated(signal, None, text=f"no gauge says who waits beside {places.held.name}")
    value = point(places.waiting) or 0.0
    return grading.at_least(
        signal,
        places.waiting.mean,
        WAITERS,
        text=f"{told(places.waiting)} wait (limit {WAITERS})",
        chip=f"{_count(value)} wait",
    )


def line_signals(found: Full, places: Places, signal: str) -> list[grading.Signal]:
    """By Little's law X (R - R1) requests wait somewhere: where few wait here, most do elsewhere."""
    waiting, mean = point(places.waiting), found.top.response.mean
    if waiting is None or not isinstance(found.rate, Interval) or not isinstance(mean, Estimate):
        return []
    everywhere = found.rate.point * mean.point * found.waiting_share
    if everywhere <= 0:
        return []
    share = min(1.0, waiting / everywhere)
    told_so = f"{numbers.percent(share)} of those who wait by Little's law do so here"
    passed = True if share >= MOSTLY or _is_all_of_another(found, places) else None
    return [grading.stated(signal, passed, text=f"{told_so} (limit {numbers.percent(MOSTLY)})")]


def _is_all_of_another(found: Full, places: Places) -> bool:
    """Whether those here fill threads or a pool in front of it, for which the others wait."""
    there = (point(places.held) or 0.0) + (point(places.waiting) or 0.0)
    fronts = [one for one in found.top.places if one is not places and is_taken_up(found, one)]
    sizes = [point(one.held) or 0.0 for one in fronts if one.kind in ("threads", "pool", "unknown")]
    return any(INSIDE * size <= there <= size / INSIDE for size in sizes)


def hold(found: Full, places: Places) -> Interval | Insufficient:
    """How long a request holds a place: held over throughput (Little's law)."""
    rate, held = found.rate, figures.interval_of(places.held.mean)
    if isinstance(rate, Insufficient):
        return rate
    if isinstance(held, Insufficient):
        return held
    low = None if held.low is None or not rate.high else held.low / rate.high
    high = None if held.high is None or not rate.low else held.high / rate.low
    independent = min(rate.independent, held.independent)
    return Interval(held.point / rate.point, low, high, independent, "held over throughput (Little's law)")


def hold_signal(signal: str, held: Interval | Insufficient, found: Full) -> grading.Signal:
    """It must be known how long a place is held, and not be longer than a request takes alone."""
    if isinstance(held, Insufficient):
        return grading.stated(signal, None, text=f"how long each is held: {held.reason}")
    text = f"each request holds one for {numbers.with_unit(held.point, 's')} (held over throughput)"
    if isinstance(found.alone, Estimate) and found.curve.steps[0].load == 1:
        text += f", and takes {numbers.short(found.alone)} alone"
    return grading.at_least(signal, held, 0.0, text=text, chip=f"held {numbers.with_unit(held.point, 's')}")


def slow_behind_rival(held: Interval | Insufficient, found: Full) -> Counter:
    """What is behind may itself be full: then each holds a place for longer than alone."""
    name = "something slow behind it"
    if isinstance(held, Insufficient) or not isinstance(found.alone, Estimate):
        return grading.rival(name, "what a request takes alone is not known", None)
    if found.curve.steps[0].load != 1:
        return grading.rival(name, "what a request takes alone was not measured", None)
    ratio = held.point / found.alone.point
    text = f"a place is held for {ratio:.2f} of what a whole request takes alone"
    ruled_out = True if ratio <= LONGER else False if ratio >= TWICE else None
    return grading.rival(name, text, ruled_out)


def within_rival(found: Full, places: Places) -> Counter:
    """A further pool or lock at which all of its holders are."""
    inner = within(found.top, places)
    if inner is None:
        return grading.rival("another line behind it", "no other gauge has a line of its holders", True)
    return grading.rival("another line behind it", f"its holders are at {told(inner.held)}", False)


def threads_rival(found: Full, places: Places) -> Counter:
    """Threads that are full in front of it would let nobody through to wait here."""
    pools = [one for one in found.top.places if one.kind == "threads"]
    if not pools:
        return grading.rival("full threads", "requests wait behind the threads, not for them", True)
    taken = [one for one in pools if is_taken_up(found, one)]
    if not taken:
        return grading.rival("full threads", f"{told(pools[0].held)}: some are free", True)
    there = (point(places.held) or 0.0) + (point(places.waiting) or 0.0)
    share = there / (point(taken[0].held) or 1.0)
    text = f"{numbers.percent(min(1.0, share))} of {told(taken[0].held)} hold or wait for a place here"
    return grading.rival("full threads", text, True if share >= INSIDE else None)


def explanation(found: Full, places: Places) -> str:
    """Who holds a place and who waits for one at the highest load, and how much of the time is waiting."""
    return (
        f"At {words.users(found.top.load)} {told(places.held)} and {told(places.waiting)}: "
        f"{numbers.percent(found.waiting_share)} of the response time is waiting."
    )


def _count(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"
