"""Gauges judged by their behaviour over the levels of load, whatever they are called.

Of a full resource with S places, a gauge shows S while users and waiting grow, and less at a light load. By
the utilisation law the places that are held grow with throughput below the plateau; by Little's law X R1
requests are at work at once, and X (R - R1) wait. A gauge that equals one of these counts it.

Sources: J. D. C. Little, Operations Research 9 (3), 1961; P. J. Denning and J. P. Buzen, Computing Surveys
10 (3), 1978 (utilisation law).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from loadlens.diagnose.observe import limits
from loadlens.diagnose.observe.waits import Full, answers_are_apart, waits
from loadlens.estimate.interval import Interval
from loadlens.measure import figures
from loadlens.measure.thresholds import ONE_HOLDER, UNCOUPLED
from loadlens.model.facts import ConcurrencyLimit, Gauge, Step
from loadlens.model.finding import Estimate
from loadlens.present.numbers import about, with_unit
from loadlens.present.words import users

BEYOND = 1.2  # users per place: with fewer users the gauge may show them, and no bound
MORE = 1.3  # times the users of the lower level
LIGHT = 0.8  # of the places: at the lightest load fewer are held
UNHELD = 0.2  # of the places, before the load
WORKING = 0.2  # how far the places and X R1 may differ
BELOW_TWO = 1.8  # at work at once
GROWING = 0.3  # how far a gauge and its share of the throughput may differ below the plateau
CALLS_OFF = 0.4  # of the calls that are due: they are looked at a few times at each level
OFF = 0.25  # of the places, at any of these levels
UNFILLED = 0.8  # of the throughput of the plateau: levels below are not full
WAITING = 0.25  # how far a gauge and X (R - R1) may differ
FEWEST_WAITING = 2.0  # requests, by Little's law: fewer are hardly distinguished from none
HARDLY = 0.25  # requests that wait at a level where nearly none should
FEWEST_LEVELS = 2
NAME_LENGTH = 48


@dataclass(frozen=True, slots=True)
class FullPlaces:
    """A gauge that stays at the number of places while the load grows."""

    gauge: Gauge
    size: int
    below: Step  # the lower level at which all are taken
    why: str  # the law by which it counts requests at work

    def text(self, full: Full) -> str:
        """State the readings and the law."""
        first = full.curve.steps[0]
        light = _mean_of(first, self.gauge.name)
        before = "" if light is None else f", {about(light)} at {users(first.load)}"
        return (
            f"{self.gauge.name} is {self.size} at {users(self.below.load)} and at {users(full.top.load)}"
            f"{before}; {self.why}"
        )


@dataclass(frozen=True, slots=True)
class Line:
    """A gauge that equals the number of waiting requests."""

    gauge: Gauge
    waiting: float  # at the highest load, by Little's law

    def text(self, full: Full) -> str:
        """State the reading and the number by Little's law."""
        value = limits.point(self.gauge) or 0.0
        return (
            f"{self.gauge.name} is {value:.3g} at {users(full.top.load)}, and {self.waiting:.3g} requests "
            "wait by Little's law"
        )


def full_places(full: Full, queue: Line | None = None) -> FullPlaces | None:
    """Return the gauge that shows the places of the full resource; none: no gauge behaves like one.

    Several may: threads or sockets that come with the places. Of equal ones the name that shares most words
    with that of the queue, and has the fewest in all, is taken.
    """
    at_work = full.parallelism
    gauges = (*full.top.numbers, *(calls.under_way for calls in full.top.calls))
    every = [places for gauge in gauges if (places := _full_places(full, gauge)) is not None]
    if not isinstance(at_work, Interval) or not every:
        return None
    words = set() if queue is None else _words(queue.gauge.name)

    def fit(places: FullPlaces) -> tuple[float, int, int]:
        own = _words(places.gauge.name)
        return abs(places.size - at_work.point), -len(own & words), len(own)

    return min(every, key=fit)


def _words(name: str) -> set[str]:
    return set(re.split(r"[^a-z0-9]+", name.lower()))


def of_kind(full: Full, kind: Literal["lock", "pool"]) -> list[ConcurrencyLimit]:
    """Return the full resource with its queue, if gauges show both; one place is a lock, several are a pool.

    Requests that need no place must not wait: the places could be the threads of the service.
    """
    queue, places = _taken_up(full)
    if places is None or (places.size <= ONE_HOLDER) != (kind == "lock"):
        return []
    if _is_of_calls(full, places.gauge) or queue is None or places.gauge.name == queue.gauge.name:
        return []
    return [ConcurrencyLimit("unknown", places.gauge, waiting=queue.gauge, bound=places.gauge)]


def calls_at_once(full: Full) -> list[ConcurrencyLimit]:
    """Return calls to another program, of which never more are under way, as places that are taken up.

    Requests without a call must not wait. Who waits is known by Little's law only: no gauge shows it.
    """
    _, places = _taken_up(full)
    waiting = limits.by_little(full)
    if places is None or waiting is None or not _is_of_calls(full, places.gauge):
        return []
    count = float(places.size)
    most = Estimate("most", "", count, count, count, full.top.trials, 0, "most at once")
    bound = Gauge("the most under way:", most, count)
    return [ConcurrencyLimit("unknown", places.gauge, waiting, bound, seen_in="sockets")]


def _taken_up(full: Full) -> tuple[Line | None, FullPlaces | None]:
    levels = waits(full)
    if isinstance(levels, str) or levels[0].coupling.point > UNCOUPLED:
        return None, None
    queue = line(full)
    return queue, full_places(full, queue)


def line(full: Full) -> Line | None:
    """Return the gauge that equals the number of waiting requests at every level; none: there is none."""
    queues = [queue for gauge in full.top.numbers if (queue := _line(full, gauge)) is not None]
    return min(queues, key=lambda queue: abs((limits.point(queue.gauge) or 0) - queue.waiting), default=None)


def _full_places(full: Full, gauge: Gauge) -> FullPlaces | None:
    size, mean, is_of_calls = round(gauge.highest), limits.point(gauge), _is_of_calls(full, gauge)
    least = (limits.CALLS_TAKEN if is_of_calls else limits.TAKEN_UP) * size
    if size < 1 or mean is None or mean < least:
        return None
    # Where one at a time passes something else, as many calls of the same length are under way at any time.
    if size > 1 and is_of_calls and answers_are_apart(full):
        return None
    below = next((step for step in reversed(full.curve.steps) if full.top.load >= MORE * step.load), None)
    then = None if below is None else _gauge_of(below, gauge.name)
    # Calls are no users: as many at a level with as many users are all that they make.
    fewest = size if is_of_calls and full.top.load >= BEYOND * size else BEYOND * size
    if below is None or then is None or below.load < fewest or round(then.highest) != size:
        return None
    if (limits.point(then) or 0.0) < least:
        return None
    light = _mean_of(full.curve.steps[0], gauge.name)
    is_unheld = all(each.before is not None and each.before <= UNHELD * size for each in (gauge, then))
    if not is_unheld and (light is None or light > LIGHT * size):
        return None
    hold = limits.hold(full, ConcurrencyLimit("unknown", gauge))
    # Held for longer than a request takes alone, it is held by requests that wait for something behind it.
    if limits.slow_behind_rival(hold, full).ruled_out is not True:
        return None
    why = _at_work(full, size) or _with_throughput(full, gauge, size) or _of_calls(full, gauge, size)
    return None if why is None else FullPlaces(gauge, size, below, why)


def _at_work(full: Full, size: int) -> str | None:
    """Compare the places with X R1, the requests at work at once."""
    at_work = full.parallelism
    if not isinstance(at_work, Interval):
        return None
    # Each of several places is held for at most R1, so fewer than two at work leave room for one place only.
    is_only_one = size == 1 and at_work.point <= BELOW_TWO
    if not is_only_one and abs(size / at_work.point - 1) > WORKING:
        return None
    return f"throughput x time alone is {at_work.point:.3g} at work at once"


def _with_throughput(full: Full, gauge: Gauge, size: int) -> str | None:
    """Compare the gauge with its share of the throughput at the levels that are not full."""
    shown, due, levels = 0.0, 0.0, 0
    for step, share in _unfilled(full):
        mean = _mean_of(step, gauge.name)
        if mean is None:
            continue
        if abs(mean - size * share) > OFF * size:  # a flag, or machines that are added, jump
            return None
        shown, due, levels = shown + mean, due + size * share, levels + 1
    if levels < FEWEST_LEVELS or due < 1 or abs(shown / due - 1) > GROWING:
        return None
    return f"below the plateau it grows with throughput ({shown / due:.2f} of its share)"


def _of_calls(full: Full, gauge: Gauge, size: int) -> str | None:
    """Compare calls under way with throughput x the time of a request in them before the plateau.

    Where many calls go side by side on one connection, more are due than connections show.
    """
    below = [step for step in full.curve.steps if step.load < full.steps[0].load]
    seen = [
        (mean, figures.point(s.throughput)) for s in below if (mean := _mean_of(s, gauge.name)) is not None
    ]
    rate = sum(rate for _, rate in seen)
    if not rate or not isinstance(full.rate, Interval) or not _is_of_calls(full, gauge):
        return None
    each_s = sum(mean for mean, _ in seen) / rate
    due = full.rate.point * each_s
    if due <= 0 or abs(size / due - 1) > CALLS_OFF:
        return None
    return f"a request spends {with_unit(each_s, 's')} in them, so {about(due)} are due at once"


def _is_of_calls(full: Full, gauge: Gauge) -> bool:
    return any(calls.under_way is gauge for calls in full.top.calls)


def _unfilled(full: Full) -> Iterator[tuple[Step, float]]:
    """Yield the levels that are not full, and their throughput as a share of that of the plateau."""
    for step in full.curve.steps:
        rate = figures.interval_of(step.throughput)
        if isinstance(rate, Interval) and isinstance(full.rate, Interval) and full.rate.point > 0:
            share = rate.point / full.rate.point
            if share <= UNFILLED:
                yield step, share


def _line(full: Full, gauge: Gauge) -> Line | None:
    """Compare a gauge with X (R - R1) at every level: many wait at some, and hardly any at the lightest."""
    compared: list[tuple[float, float]] = []  # users, waiting by Little's law
    if full.curve.steps[0].load != 1 or not isinstance(full.alone, Estimate):
        return None
    for step in full.curve.steps:
        shown, mean = _mean_of(step, gauge.name), step.response.mean
        rate = figures.interval_of(step.throughput)
        if shown is None or not isinstance(mean, Estimate) or not isinstance(rate, Interval):
            return None
        waiting = max(0.0, rate.point * (mean.point - full.alone.point))
        if waiting >= FEWEST_WAITING:
            if abs(shown / waiting - 1) > WAITING:
                return None
            compared.append((step.load, waiting))
        elif step.load == 1 and shown > HARDLY:
            return None  # it counts the requests that are served as well
    if len(compared) < FEWEST_LEVELS or compared[-1][0] < MORE * compared[0][0]:
        return None
    return Line(gauge, compared[-1][1])


def _gauge_of(step: Step, name: str) -> Gauge | None:
    gauges = (*step.numbers, *(calls.under_way for calls in step.calls))
    return next((gauge for gauge in gauges if gauge.name == name), None)


def _mean_of(step: Step, name: str) -> float | None:
    return limits.point(_gauge_of(step, name))


def shown(gauge: Gauge) -> str:
    """Return the name of a gauge, short enough for a statement."""
    return gauge.name if len(gauge.name) <= NAME_LENGTH else f"{gauge.name[: NAME_LENGTH - 2]}.."
