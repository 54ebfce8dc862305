"""Locks, pools and threads that requests hold, as services and databases report them: read per trial,
joined over the trials of a case.

A pool or a lock is several gauges with one stem: how many hold a place, how many wait, how many may. What a
gauge is, its name says (`metric_names`); replicas of a service are added up. Gauges whose names say nothing
are read as well (`read_numbers`): rules judge them by their behaviour.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from loadlens.estimate.interval import Floats, Interval
from loadlens.model.facts import ConcurrencyLimit, Gauge
from loadlens.model.readings import PostgresMetrics
from loadlens.signals.read.metric_names import (
    Kind,
    Meaning,
    Role,
    is_accumulated,
    meaning_of,
    other_labels,
)
from loadlens.signals.read.trial_series import SCRAPE, Readings, Series, level

if TYPE_CHECKING:
    from loadlens.measure.case import CaseMeasures

MONITORS_LABELS: Final = frozenset({"service", "replica"})  # that the monitor adds
MOST_NUMBERS: Final = 200  # whole numbers of a trial; a service with more exports one for each of something
Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """One gauge in the measured part of one trial, all replicas together."""

    name: str
    mean: Interval
    highest: float
    before: float | None = None  # the first reading of the trial, before the load


@dataclass(frozen=True, slots=True)
class GaugePlace:
    """Gauges of one concurrency limit in one trial."""

    key: Key  # the same in every trial
    kind: Kind
    gauges: Mapping[Role, Reading]
    held_is_at_most: bool = False
    seen_in: Literal["gauges", "titles"] = "gauges"
    service: str = ""  # where it is known, with the program that reports it
    program: str = ""
    command: str = ""  # of a database: that waits, or that is at work
    resting: Reading | None = None  # of those who hold it: in a transaction, and the database waits for them


@dataclass(frozen=True, slots=True)
class _Exported:
    """One exported series of one service."""

    service: str
    name: str
    rest: tuple[tuple[str, str], ...]
    meaning: Meaning
    replicas: tuple[Series, ...]


def read(readings: Readings, begin: float, end: float) -> tuple[GaugePlace, ...]:
    """Return the concurrency limits over the measured part [begin, end], seconds since t0."""
    groups: dict[Key, list[_Exported]] = {}
    for gauge in _scraped(readings):
        groups.setdefault((gauge.service, *gauge.meaning.stem, *map("=".join, gauge.rest)), []).append(gauge)
    places = []
    for key, members in sorted(groups.items()):
        for kind, own in _by_kind(members).items():
            place = _place((*key, kind), kind, own, begin, end)
            if place is not None:
                places.append(place)
    return (*places, *_of_databases(readings, begin, end))


def places_of(case: CaseMeasures) -> tuple[ConcurrencyLimit, ...]:
    """Return the concurrency limits of a case; a gauge that only some trials report covers only those."""
    by_key: dict[Key, list[GaugePlace]] = {}
    for trial in case.usable:
        for place in trial.places:
            by_key.setdefault(place.key, []).append(place)
    limits = []
    for trials in by_key.values():
        held = _gauge(case, trials, "held")
        if held is None:
            continue
        resting = [place.resting for place in trials if place.resting is not None]
        limits.append(
            ConcurrencyLimit(
                trials[0].kind,
                held,
                waiting=_gauge(case, trials, "waiting"),
                bound=_gauge(case, trials, "bound"),
                present=_gauge(case, trials, "present"),
                held_is_at_most=trials[0].held_is_at_most,
                seen_in=trials[0].seen_in,
                service=trials[0].service,
                program=trials[0].program,
                command=next((place.command for place in trials if place.command), ""),
                resting=_joined(case, resting) if resting else None,
            )
        )
    return tuple(limits)


def read_numbers(readings: Readings, begin: float, end: float) -> tuple[Reading, ...]:
    """Return the whole numbers that services export and that go up and down, whatever their names are.

    Counters, and gauges of sizes and times, are no numbers of requests. Replicas of a service are added up.

    Args:
        readings: Of the trial.
        begin: Of the measured part, seconds since t0.
        end: Of it.
    """
    replicas: dict[tuple[str, str], list[Series]] = {}
    for metric, series in readings.monitored(SCRAPE):
        if not is_accumulated(metric) and _is_number(series.values):
            own = {name: value for name, value in series.labels.items() if name not in MONITORS_LABELS}
            replicas.setdefault((series.labels.service, _shown(metric, own)), []).append(series)
    if len(replicas) > MOST_NUMBERS:
        return ()
    numbers = []
    for (_, name), every in sorted(replicas.items()):
        parts = [series.between(begin, end).values for series in every]
        if all(part.size for part in parts):
            mean = _added([level(part) for part in parts])
            before = sum(float(series.values[0]) for series in every if series.seconds[0] < begin)
            is_known = any(series.seconds[0] < begin for series in every)
            highest = sum(float(part.max()) for part in parts)
            numbers.append(Reading(name, mean, highest, before if is_known else None))
    return tuple(numbers)


def _is_number(values: Floats) -> bool:
    """Return true for whole numbers from 0 on that do not only grow, as a counter without a suffix does."""
    is_whole = bool(np.all(values >= 0) and np.all(values == np.round(values)))
    growth = np.diff(values)
    return is_whole and not (growth.size > 1 and bool(np.all(growth > 0)))


def numbers_of(case: CaseMeasures) -> tuple[Gauge, ...]:
    """Return the whole numbers that the services export in every trial of a case."""
    by_name: dict[str, list[Reading]] = {}
    for trial in case.usable:
        for reading in trial.numbers:
            by_name.setdefault(reading.name, []).append(reading)
    every = [readings for readings in by_name.values() if len(readings) == len(case.usable)]
    return tuple(_joined(case, readings) for readings in every)


def _gauge(case: CaseMeasures, trials: Sequence[GaugePlace], role: Role) -> Gauge | None:
    readings = [place.gauges[role] for place in trials if role in place.gauges]
    return _joined(case, readings) if readings else None


def _joined(case: CaseMeasures, readings: Sequence[Reading]) -> Gauge:
    """Join the readings of one gauge in the trials of a case."""
    name = readings[0].name
    mean = case.level_figure(name, "", [reading.mean for reading in readings])
    before = [reading.before for reading in readings if reading.before is not None]
    return Gauge(name, mean, max(reading.highest for reading in readings), min(before, default=None))


# --- from rows to series ----------------------------------------------------------------------------------


def _scraped(readings: Readings) -> Iterable[_Exported]:
    """Yield the series about places, replicas of one service together."""
    replicas: dict[tuple[str, str, tuple[tuple[str, str], ...]], list[Series]] = {}
    exported: dict[tuple[str, str, tuple[tuple[str, str], ...]], _Exported] = {}
    for metric, series in readings.monitored(SCRAPE):
        own = {name: value for name, value in series.labels.items() if name not in MONITORS_LABELS}
        meaning = meaning_of(metric, own)
        if meaning is None:
            continue
        place = (series.labels.service, metric, tuple(sorted(own.items())))
        replicas.setdefault(place, []).append(series)
        exported[place] = _Exported(place[0], _shown(metric, own), other_labels(own), meaning, ())
    for place, gauge in exported.items():
        yield replace(gauge, replicas=tuple(replicas[place]))


def _shown(metric: str, labels: Mapping[str, str]) -> str:
    inside = ",".join(f'{name}="{value}"' for name, value in sorted(labels.items()))
    return f"{metric}{{{inside}}}" if inside else metric


def _by_kind(members: Sequence[_Exported]) -> Mapping[Kind, list[_Exported]]:
    """Gauges of one stem by what they are of; those without a word for it belong to the only others."""
    named: dict[Kind, list[_Exported]] = {}
    for gauge in members:
        if gauge.meaning.kind is not None:
            named.setdefault(gauge.meaning.kind, []).append(gauge)
    loose = [gauge for gauge in members if gauge.meaning.kind is None]
    if len(named) == 2 and "unknown" in named:  # tasks that wait for threads
        loose += named.pop("unknown")
    if len(named) == 1:
        next(iter(named.values())).extend(loose)
    return named


def _place(key: Key, kind: Kind, members: Sequence[_Exported], begin: float, end: float) -> GaugePlace | None:
    gauges: dict[Role, Reading] = {}
    for member in members:
        reading = _reading(member, begin, end)
        if reading is not None:
            gauges.setdefault(member.meaning.role, reading)
    if "held" not in gauges:
        held = _all_but_free(gauges)
        if held is None:
            return None
        gauges.setdefault("held", held)
    return GaugePlace(key, kind, gauges)


def _reading(gauge: _Exported, begin: float, end: float) -> Reading | None:
    means, highest = [], 0.0
    for series in gauge.replicas:
        if gauge.meaning.is_growth:
            rate = series.rate(begin, end)
            if not isinstance(rate, Interval):
                return None
            means.append(rate)
            highest += rate.point
            continue
        values = series.between(begin, end).values
        if not values.size:
            return None
        means.append(level(values))
        highest += float(values.max())
    return Reading(gauge.name, _added(means), highest)


def _added(parts: Sequence[Interval]) -> Interval:
    """Of all replicas; the ends add up, which is wider than they are."""
    if len(parts) == 1:
        return parts[0]
    lows, highs = [part.low for part in parts], [part.high for part in parts]
    return Interval(
        sum(part.point for part in parts),
        None if None in lows else sum(low for low in lows if low is not None),
        None if None in highs else sum(high for high in highs if high is not None),
        min(part.independent for part in parts),
        f"{parts[0].method}, replicas added up",
    )


def _all_but_free(gauges: Mapping[Role, Reading]) -> Reading | None:
    """Return the held places, where only all places and the free ones are reported."""
    roles: tuple[Role, ...] = ("present", "bound", "free")
    present, bound, free = map(gauges.get, roles)
    whole = present or bound
    if whole is None or free is None:
        return None
    low = None if whole.mean.low is None or free.mean.high is None else whole.mean.low - free.mean.high
    high = None if whole.mean.high is None or free.mean.low is None else whole.mean.high - free.mean.low
    point = max(0.0, whole.mean.point - free.mean.point)
    mean = Interval(point, low and max(0.0, low), high, free.mean.independent, "difference of two gauges")
    return Reading(f"{whole.name} - {free.name}", mean, whole.highest)


# --- databases --------------------------------------------------------------------------------------------


def _of_databases(readings: Readings, begin: float, end: float) -> Iterable[GaugePlace]:
    """Connections that wait for a lock, and those within a transaction that do not: who holds it is one."""
    moments: dict[str, dict[float, list[float]]] = {}
    for series in readings.of(PostgresMetrics.connections):
        at = moments.setdefault(series.labels.service, {})
        is_waiting = series.labels.wait == "Lock"
        is_within = series.labels.state.startswith(("active", "idle in transaction"))
        part = series.between(begin, end)
        for second, count in zip(part.seconds, part.values, strict=True):
            counts = at.setdefault(float(second), [0.0, 0.0])
            if is_waiting or is_within:
                counts[is_waiting] += float(count)
    for service, by_time in moments.items():
        if not by_time:
            continue
        held, waiting = np.array([counts for _, counts in sorted(by_time.items())]).T
        gauges: dict[Role, Reading] = {
            "held": Reading(f"{service}: in a transaction", level(held), float(held.max())),
            "waiting": Reading(f'{service}: wait_event_type="Lock"', level(waiting), float(waiting.max())),
        }
        yield GaugePlace((service, PostgresMetrics.connections.name), "lock", gauges, held_is_at_most=True)
