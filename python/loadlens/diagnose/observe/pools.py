"""Observations of pools on a plateau: of gauges, of threads that were sampled, of a database's connections.

The titles of its processes show which connections are at work, and which are in idle transactions. The
database does not see who waits for a connection in the service. By Little's law X (R - R1) requests wait; if
all connections are at work, and no cheap request is held up, they wait in front of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Lacking, Nothing
from loadlens.diagnose.observe import clocks, gauge_courses, limits, waits
from loadlens.diagnose.observe.gauge_courses import BEYOND
from loadlens.diagnose.observe.waits import MOSTLY, Full
from loadlens.measure.thresholds import UNCOUPLED
from loadlens.model.facts import ConcurrencyLimit, Facts
from loadlens.model.finding import Counter
from loadlens.present.numbers import percent


def on_plateaus(facts: Facts) -> list[limits.Taken] | Lacking | Nothing:
    """Return the pools on all plateaus, the one with the longest line first."""
    plateaus = waits.plateaus(facts)
    if not isinstance(plateaus, tuple):
        return waits.without_plateau(plateaus)
    return limits.by_line([limits.taken(full, pool) for full in plateaus for pool in _pools(full)])


def _pools(full: Full) -> list[ConcurrencyLimit]:
    named = full_pools(full, limits.of_kind(full, "pool"))
    return [*named, *inner_threads(full), *gauge_courses.of_kind(full, "pool")]


def evidence(facts: Facts, pool: limits.Taken) -> tuple[list[grading.Signal], list[Counter], Counter]:
    """Return what shows a pool to be full, its rivals, and of these another limit in front."""
    full, places = pool.full, pool.places
    signals = [
        waits.cpu_signal(facts, full.curve, full.top),
        limits.taken_signal(full, places, pool.size, "pool.size"),
        limits.waiting_signal(places, "pool.waiting"),
        *limits.line_signals(full, places, "pool.line"),
        limits.hold_signal("pool.hold", pool.hold, full),
        *at_rest(places, "pool.idle"),
    ]
    in_front = in_front_rival(full, places)
    rivals = [
        *waits.rivals(facts, full),
        limits.threads_rival(full, places),
        limits.within_rival(full, places),
        limits.slow_behind_rival(pool.hold, full),
        in_front,
        *_burst_rivals(pool),
    ]
    return signals, rivals, in_front


def _burst_rivals(pool: limits.Taken) -> list[Counter]:
    """Return the rival of a limiter that delays, where no gauge shows places: it lets more in at once."""
    burst = clocks.burst_of(pool.full.curve)
    if pool.places.seen_in != "stacks" or burst is None or not burst.is_one_rate:
        return []
    text = f"{burst.at_once:.0f} more than by the later rate were done at first, in {pool.count:.0f} places"
    return [grading.rival("a rate limiter", text, burst.at_once <= pool.count)]


def full_pools(full: Full, pools: Iterable[ConcurrencyLimit]) -> list[ConcurrencyLimit]:
    """Return those of some pools that show who waits, and full connections with who waits by Little's law."""
    pools = list(pools)
    named = [pool for pool in pools if pool.seen_in != "titles"]
    taken = (_with_line(full, pool) for pool in pools if pool.seen_in == "titles")
    return [*named, *(pool for pool in taken if pool is not None)]


def _with_line(full: Full, pool: ConcurrencyLimit) -> ConcurrencyLimit | None:
    """Return a pool with the requests that wait for it; none if it is not full, or they may wait elsewhere.

    Where cheap requests are held up, the threads of the service may be full, each with its own connection.
    """
    size, levels = limits.size_of(full, pool), waits.waits(full)
    if size is None or full.top.load < BEYOND * size.count or limits.is_taken_up(full, pool) is not True:
        return None
    if isinstance(levels, str) or levels[0].coupling.point > UNCOUPLED:
        return None
    waiting = limits.by_little(full)
    return None if waiting is None else replace(pool, waiting=waiting)


def inner_threads(full: Full) -> list[ConcurrencyLimit]:
    """Return full threads with a line of their own that cheap requests do not need."""
    levels = waits.waits(full)
    if isinstance(levels, str) or levels[0].coupling.point > UNCOUPLED:
        return []
    return [
        place
        for place in full.top.places
        if place.kind == "threads" and place.seen_in == "gauges"
        if limits.has_waiters(place) is True and limits.is_taken_up(full, place) is True
    ]


def in_front_rival(full: Full, pool: ConcurrencyLimit) -> Counter:
    """Weigh another limit of the same number in front of connections, which the database does not see."""
    name = "another limit of as many in front"
    if pool.seen_in != "titles":
        return grading.rival(name, "a gauge shows who waits for a connection", True)
    others = (place for place in full.top.places if place.kind == "pool" and place.seen_in != "titles")
    seen = next((place for place in others if limits.has_waiters(place) is True), None)
    if seen is not None:
        return grading.rival(name, f"{limits.reading(seen.waiting)} wait for a connection", True)
    return grading.rival(name, "the database does not see what requests wait for in the service", None)


def at_rest(limit: ConcurrencyLimit, signal: str) -> list[grading.Signal]:
    """State for how long of the time that it is held a transaction is idle; nothing if less than half."""
    held, resting = limits.point(limit.held), limits.point(limit.resting)
    if not held or resting is None or resting < MOSTLY * held:
        return []
    share = percent(min(1.0, resting / held))
    text = f"for {share} of that time the transaction is idle: the service does other work in it"
    return [grading.stated(signal, True, text=text, chip=f"idle {share}")]
