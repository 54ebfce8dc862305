"""Services' own counters and times by the values of each label: upstreams, shards, kinds of a query.

What a label is called says nothing: every one with a few values is read, and rules compare the values. A
label with many values names single things, such as users, and is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING, Final

import numpy as np

from loadlens.estimate.interval import Floats, Interval
from loadlens.measure.services import path_templates
from loadlens.measure.services.gauges import MONITORS_LABELS
from loadlens.model.facts import LabelPart, LabelSplit, LookUps, RequestClass
from loadlens.model.finding import Estimate, Figure, NotMeasured
from loadlens.signals.read.metric_names import counts_events, look_up_of, paired, seconds_per_unit
from loadlens.signals.read.trial_series import SCRAPE, Readings, Series, mean_or_point, moments_around

if TYPE_CHECKING:
    from loadlens.measure.case import CaseMeasures

MOST_VALUES: Final = 24  # of a label: more name single things
PAIRED: Final = ""  # in place of a label: two counters
MOST_CACHES: Final = 12  # of a metric
MOST_SERIES: Final = 2_000  # of a trial, metrics with few series first
Key = tuple[str, str, str]  # service, metric, label


@dataclass(frozen=True, slots=True)
class PartReading:
    """One value of a label in the measured part of one trial."""

    value: str
    count: float  # between the first scrape of that part and the last
    rate: Interval  # per second
    mean: Interval | None  # seconds; none: the metric only counts


@dataclass(frozen=True, slots=True)
class SplitReading:
    """One metric by the values of one label, in one trial."""

    key: Key
    parts: tuple[PartReading, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Counted:
    """Growth of one series between the scrapes."""

    labels: Mapping[str, str]
    counts: Floats
    seconds: Floats | None


def read(readings: Readings, begin: float, end: float) -> tuple[SplitReading, ...]:
    """Return the metrics that have labels over the measured part [begin, end], seconds since t0."""
    by_metric: dict[str, list[Series]] = {}
    for metric, series in readings.monitored(SCRAPE):
        by_metric.setdefault(metric, []).append(series)
    every = [np.zeros(0), *(series.seconds for parts in by_metric.values() for series in parts)]
    moments = moments_around(np.unique(np.concatenate(every)), begin, end)
    if moments.size < 2:
        return ()
    splits, room = [], MOST_SERIES
    for metric, parts in sorted(by_metric.items(), key=lambda pair: len(pair[1])):
        room -= len(parts)
        if room < 0:
            break
        if len(parts) > 1 and not metric.endswith(("_sum", "_created")):
            splits += list(_of_metric(metric, parts, by_metric, moments))
    return (*splits, *_of_look_ups(by_metric, moments))


def _of_look_ups(by_metric: Mapping[str, Sequence[Series]], moments: Floats) -> Iterator[SplitReading]:
    """Yield counters of hits and misses, which differ in a word, as the two values of a label.

    Replicas of a service are added up.
    """
    for metric, hits in by_metric.items():
        missed = by_metric.get(paired(metric) or "", ())
        if not missed or metric.endswith(("_sum", "_created")) or not counts_events(metric):
            continue
        hit, miss = (_by_cache(metric, series, moments) for series in (hits, missed))
        for key in list(hit)[:MOST_CACHES]:
            every = [*hit[key], *miss.get(key, ())]
            if len(every) == 2 * len(hit[key]) and any(each.counts.any() for each in every):
                lengths = np.diff(moments)
                yield SplitReading(key, (_part("hit", hit[key], lengths), _part("miss", miss[key], lengths)))


def _by_cache(metric: str, every: Sequence[Series], moments: Floats) -> Mapping[Key, Sequence[_Counted]]:
    """Return the growth of each cache's counters, by the labels that are not the monitor's."""
    caches: dict[Key, list[_Counted]] = {}
    for series in every:
        own = sorted((name, value) for name, value in series.labels.items() if name not in MONITORS_LABELS)
        named = ", ".join(f'{name}="{value}"' for name, value in own)
        key = (series.labels.service, f"{metric}{{{named}}}" if named else metric, PAIRED)
        if (growth := _growth(series, moments)) is not None:
            caches.setdefault(key, []).append(_Counted(series.labels, growth, None))
    return caches


def _of_metric(
    metric: str, counts: Sequence[Series], by_metric: Mapping[str, Sequence[Series]], moments: Floats
) -> Iterator[SplitReading]:
    """Yield a counter, or the counter and the sum of a histogram, by each of its labels."""
    name, factor = metric.removesuffix("_count"), None
    sums: dict[tuple[tuple[str, str], ...], Series] = {}
    if metric.endswith("_count"):
        factor = seconds_per_unit(name)
        sums = {_key(series.labels): series for series in by_metric.get(f"{name}_sum", ())}
    elif seconds_per_unit(metric) is not None:
        return  # a sum of seconds counts nothing
    by_service: dict[str, list[_Counted]] = {}
    for series in counts:
        growth = _growth(series, moments)
        took = sums.get(_key(series.labels)) if factor is not None else None
        seconds = None if took is None or factor is None else _growth(took, moments)
        if growth is None or (took is not None and seconds is None):
            return  # it goes up and down, or began anew
        seconds = None if seconds is None or factor is None else seconds * factor
        by_service.setdefault(series.labels.service, []).append(_Counted(series.labels, growth, seconds))
    for service, counted in by_service.items():
        for label in sorted({label for each in counted for label in each.labels} - MONITORS_LABELS):
            parts = _by_value(counted, label, np.diff(moments))
            if parts:
                yield SplitReading((service, name, label), parts)


def _key(labels: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(labels.items()))


def _growth(series: Series, moments: Floats) -> Floats | None:
    growth = np.diff(series.at(moments))
    return growth if np.all(growth >= 0) else None


def _by_value(counted: Sequence[_Counted], label: str, lengths: Floats) -> tuple[PartReading, ...]:
    """Return the parts of a label that were counted; none where there are not at least two, or too many."""
    by_value: dict[str, list[_Counted]] = {}
    for each in counted:
        if label in each.labels and each.counts.any():
            by_value.setdefault(each.labels[label], []).append(each)
    if not 2 <= len(by_value) <= MOST_VALUES:
        return ()
    return tuple(_part(value, parts, lengths) for value, parts in sorted(by_value.items()))


def _part(value: str, counted: Sequence[_Counted], lengths: Floats) -> PartReading:
    counts = np.sum([each.counts for each in counted], axis=0)
    timed = [each.seconds for each in counted if each.seconds is not None]
    count = float(counts.sum())
    rate = mean_or_point(counts, lengths, count, "growth of a counter")
    mean = None
    if timed and len(timed) == len(counted):
        mean = mean_or_point(np.sum(timed, axis=0), counts, count, "sum over count")
    return PartReading(value, count, rate, mean)


def split_of_load(classes: Sequence[RequestClass]) -> tuple[LabelSplit, ...]:
    """Return the load by path, if its requests ask for several things of one kind."""
    if not path_templates.are_of_a_kind([kind.request for kind in classes]):
        return ()
    parts = tuple(
        LabelPart(kind.request, replace(kind.rate, samples=kind.response.mean.samples), kind.response.mean)
        for kind in classes
        if isinstance(kind.rate, Estimate) and isinstance(kind.response.mean, Estimate)
    )
    return (LabelSplit("the load", "request", parts, is_of_load=True),)


def splits_of(case: CaseMeasures) -> tuple[LabelSplit, ...]:
    """Return the metrics of a case by the values of a label, joined over its trials."""
    return tuple(_joined(case, key, splits) for key, splits in _by_key(case).items() if key[2] != PAIRED)


def look_ups_of(case: CaseMeasures) -> tuple[LookUps, ...]:
    """Return what is counted as hits and misses, by two counters or by values; most misses first."""
    every = []
    for (service, metric, label), splits in _by_key(case).items():
        rates = [rate for split in splits if (rate := _hits_and_misses(split)) is not None]
        if len(rates) == len(splits):
            hits, misses = (fmean(each) for each in zip(*rates, strict=True))
            counted = sum(part.count for split in splits for part in split.parts)
            name = metric if label == PAIRED else f"{metric} by {label}"
            every.append(LookUps(service, name, hits, misses, int(counted)))
    return tuple(sorted(every, key=lambda each: -each.misses))


def _hits_and_misses(split: SplitReading) -> tuple[float, float] | None:
    """Return both per second; none: a value says neither, or none says that look-ups miss."""
    outcomes = [look_up_of(part.value) for part in split.parts]
    if None in outcomes or "miss" not in outcomes:
        return None
    hits, misses = (
        sum(part.rate.point for part, each in zip(split.parts, outcomes, strict=True) if each == wanted)
        for wanted in ("hit", "miss")
    )
    return hits, misses


def _by_key(case: CaseMeasures) -> Mapping[Key, Sequence[SplitReading]]:
    by_key: dict[Key, list[SplitReading]] = {}
    for trial in case.usable:
        for split in trial.splits:
            by_key.setdefault(split.key, []).append(split)
    return by_key


def _joined(case: CaseMeasures, key: Key, splits: Iterable[SplitReading]) -> LabelSplit:
    by_value: dict[str, list[PartReading]] = {}
    for split in splits:
        for part in split.parts:
            by_value.setdefault(part.value, []).append(part)
    _, metric, label = key
    return LabelSplit(
        metric, label, tuple(_figures(case, metric, value, parts) for value, parts in by_value.items())
    )


def _figures(case: CaseMeasures, metric: str, value: str, parts: Sequence[PartReading]) -> LabelPart:
    samples = [int(part.count) for part in parts]
    mean: Figure = NotMeasured(metric, "the metric only counts")
    means = [part.mean for part in parts if part.mean is not None]
    if len(means) == len(parts):
        mean = case.figure(metric, "s", means, samples)
    return LabelPart(value, case.figure(metric, "1/s", [part.rate for part in parts], samples), mean)
