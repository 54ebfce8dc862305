"""What requests hold for a while, as services and their database tell: read from the readings of a trial,
joined over the trials of a case.

A pool or a lock is several gauges with one stem: how many hold a place, how many wait, how many may. What a
gauge is, its name says (`vocabulary`); replicas of a service are added up.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from loadlens.estimate import within_trial
from loadlens.estimate.interval import Insufficient, Interval
from loadlens.model.facts import Gauge, Places
from loadlens.signals.read.metric_names import Kind, Meaning, Role, meaning_of, other_labels
from loadlens.signals.read.resources import Series

if TYPE_CHECKING:
    import polars as pl

    from loadlens.measure.case import CaseMeasures

_OURS: Final = frozenset({"service", "replica"})  # labels that the monitor adds
_CLIENTS: Final = "connections"  # of a database, by what they do and wait for
Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """One gauge in the measured part of one trial, all replicas together."""

    name: str
    mean: Interval
    highest: float


@dataclass(frozen=True, slots=True)
class Kept:
    """Places of one kind in one trial, with the gauges that were told."""

    key: Key  # the same in every trial
    kind: Kind
    gauges: Mapping[Role, Reading]
    held_is_at_most: bool = False


@dataclass(frozen=True, slots=True)
class _Told:
    """One exported series of one service."""

    service: str
    name: str
    rest: tuple[tuple[str, str], ...]
    meaning: Meaning
    replicas: tuple[Series, ...]


def read(readings: pl.DataFrame, begin: float, end: float) -> tuple[Kept, ...]:
    """Return what was told of places over the measured part [begin, end], seconds since t0."""
    if readings.is_empty():
        return ()
    groups: dict[Key, list[_Told]] = {}
    for one in _scraped(readings):
        groups.setdefault((one.service, *one.meaning.stem, *map("=".join, one.rest)), []).append(one)
    found = []
    for key, members in sorted(groups.items()):
        for kind, own in _by_kind(members).items():
            kept = _kept((*key, kind), kind, own, begin, end)
            if kept is not None:
                found.append(kept)
    return (*found, *_of_databases(readings, begin, end))


def places_of(case: CaseMeasures) -> tuple[Places, ...]:
    """Places of a case over its trials; what only some trials told is of those."""
    by_key: dict[Key, list[Kept]] = {}
    for trial in case.usable:
        for kept in trial.places:
            by_key.setdefault(kept.key, []).append(kept)
    found = []
    for trials in by_key.values():
        held = _gauge(case, trials, "held")
        if held is None:
            continue
        found.append(
            Places(
                trials[0].kind,
                held,
                waiting=_gauge(case, trials, "waiting"),
                bound=_gauge(case, trials, "bound"),
                present=_gauge(case, trials, "present"),
                held_is_at_most=trials[0].held_is_at_most,
            )
        )
    return tuple(found)


def _gauge(case: CaseMeasures, trials: Sequence[Kept], role: Role) -> Gauge | None:
    known = [kept.gauges[role] for kept in trials if role in kept.gauges]
    if not known:
        return None
    name = known[0].name
    mean = case.level_figure(name, "", [reading.mean for reading in known])
    return Gauge(name, mean, max(reading.highest for reading in known))


# --- from rows to series ----------------------------------------------------------------------------------


def _scraped(readings: pl.DataFrame) -> Iterable[_Told]:
    """Series that tell of places, replicas of one service together."""
    import polars as pl

    rows = readings.filter((pl.col("source") == "scrape") & pl.col("value").is_not_null())
    rows = rows.filter(~pl.col("metric").str.ends_with("_bucket"))  # most of a page
    series: dict[tuple[str, str, tuple[tuple[str, str], ...]], list[Series]] = {}
    known: dict[tuple[str, str, tuple[tuple[str, str], ...]], _Told] = {}
    for key, part in rows.sort("time_ns").group_by(["metric", "labels"], maintain_order=True):
        metric, labels = str(key[0]), json.loads(str(key[1]) or "{}")
        own = {str(name): str(value) for name, value in labels.items() if name not in _OURS}
        meaning = meaning_of(metric, own)
        if meaning is None:
            continue
        place = (str(labels.get("service", "")), metric, tuple(sorted(own.items())))
        series.setdefault(place, []).append(_series(part))
        known[place] = _Told(place[0], _shown(metric, own), other_labels(own), meaning, ())
    for place, told in known.items():
        yield replace(told, replicas=tuple(series[place]))


def _series(part: pl.DataFrame) -> Series:
    return Series(
        part["time_ns"].to_numpy().astype(np.float64) / 1e9, part["value"].to_numpy().astype(np.float64)
    )


def _shown(metric: str, labels: Mapping[str, str]) -> str:
    inside = ",".join(f'{name}="{value}"' for name, value in sorted(labels.items()))
    return f"{metric}{{{inside}}}" if inside else metric


def _by_kind(members: Sequence[_Told]) -> Mapping[Kind, list[_Told]]:
    """Gauges of one stem by what they are of; those without a word for it belong to the only others."""
    named: dict[Kind, list[_Told]] = {}
    for one in members:
        if one.meaning.kind is not None:
            named.setdefault(one.meaning.kind, []).append(one)
    loose = [one for one in members if one.meaning.kind is None]
    if len(named) == 2 and "unknown" in named:  # tasks that wait for threads
        loose += named.pop("unknown")
    if len(named) == 1:
        next(iter(named.values())).extend(loose)
    return named


def _kept(key: Key, kind: Kind, members: Sequence[_Told], begin: float, end: float) -> Kept | None:
    gauges: dict[Role, Reading] = {}
    for one in members:
        reading = _reading(one, begin, end)
        if reading is not None:
            gauges.setdefault(one.meaning.role, reading)
    if "held" not in gauges:
        held = _all_but_free(gauges)
        if held is None:
            return None
        gauges["held"] = held
    return Kept(key, kind, gauges)


def _reading(one: _Told, begin: float, end: float) -> Reading | None:
    means, highest = [], 0.0
    for series in one.replicas:
        if one.meaning.is_growth:
            found = series.rate(begin, end)
            if not isinstance(found, Interval):
                return None
            means.append(found)
            highest += found.point
            continue
        values = series.between(begin, end).values
        if not values.size:
            return None
        means.append(_level(values))
        highest += float(values.max())
    return Reading(one.name, _added(means), highest)


def _level(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Interval:
    """The mean of readings at equal distances."""
    found = within_trial.mean(values, np.ones(values.size))
    if isinstance(found, Insufficient):
        return Interval(float(values.mean()), None, None, 1.0, "mean of readings")
    return found


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
    """Who holds a place, where only the places and the free ones are told."""
    whole, free = gauges.get("present") or gauges.get("bound"), gauges.get("free")
    if whole is None or free is None:
        return None
    low = None if whole.mean.low is None or free.mean.high is None else whole.mean.low - free.mean.high
    high = None if whole.mean.high is None or free.mean.low is None else whole.mean.high - free.mean.low
    point = max(0.0, whole.mean.point - free.mean.point)
    mean = Interval(point, low and max(0.0, low), high, free.mean.independent, "difference of two gauges")
    return Reading(f"{whole.name} - {free.name}", mean, whole.highest)


# --- databases --------------------------------------------------------------------------------------------


def _of_databases(readings: pl.DataFrame, begin: float, end: float) -> Iterable[Kept]:
    """Connections that wait for a lock, and those within a transaction that do not: who holds it is one."""
    import polars as pl

    rows = readings.filter(
        (pl.col("source") == "postgres")
        & (pl.col("metric") == _CLIENTS)
        & pl.col("value").is_not_null()
        & (pl.col("time_ns") >= int(begin * 1e9))
        & (pl.col("time_ns") <= int(end * 1e9))
    )
    moments: dict[str, dict[int, list[float]]] = {}
    for time_ns, text, value in rows.select("time_ns", "labels", "value").iter_rows():
        labels = json.loads(text)
        at = moments.setdefault(str(labels["service"]), {}).setdefault(int(time_ns), [0.0, 0.0])
        if labels.get("wait") == "Lock":
            at[1] += float(value)
        elif str(labels.get("state", "")).startswith(("active", "idle in transaction")):
            at[0] += float(value)
    for service, by_time in moments.items():
        held, waiting = np.array(list(by_time.values())).T
        gauges: dict[Role, Reading] = {
            "held": Reading(f"{service}: in a transaction", _level(held), float(held.max())),
            "waiting": Reading(f'{service}: wait_event_type="Lock"', _level(waiting), float(waiting.max())),
        }
        yield Kept((service, _CLIENTS), "lock", gauges, held_is_at_most=True)
