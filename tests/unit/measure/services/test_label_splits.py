"""Metrics of services by their labels, from scrapes written by hand; quotients are by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from loadlens.measure import figures as figures_of
from loadlens.measure.case import CaseMeasures
from loadlens.measure.services import label_splits
from loadlens.measure.services.label_splits import SplitReading
from loadlens.model.facts import LabelSplit, LookUps
from loadlens.model.finding import Estimate, NotMeasured
from loadlens.signals.read.trial_series import Readings
from tests.records import planned_case
from tests.unit.diagnose.build import estimate, step, times

SCHEMA = ["time_ns", "source", "metric", "labels", "unit", "value"]
Page = tuple[str, Mapping[str, str], Sequence[float]]
NAME = "gateway_upstream_duration_seconds"


def read(*series: Page, begin: float = 2.0, end: float = 5.0) -> tuple[SplitReading, ...]:
    """A scrape each second from 0 on, measured from `begin` to `end`."""
    rows = [
        (
            int(t * 1e9),
            "scrape",
            metric,
            json.dumps({"service": "a", "replica": "1", **labels}),
            "",
            float(value),
        )
        for metric, labels, values in series
        for t, value in enumerate(values)
    ]
    return label_splits.read(Readings(pl.DataFrame(rows, schema=SCHEMA, orient="row")), begin, end)


def timed(counts: Sequence[float], sums: Sequence[float], **labels: str) -> tuple[Page, Page]:
    return (f"{NAME}_count", labels, counts), (f"{NAME}_sum", labels, sums)


def figures(*splits: tuple[SplitReading, ...]) -> tuple[LabelSplit, ...]:
    trials = tuple(SimpleNamespace(is_usable=True, splits=each) for each in splits)
    return label_splits.splits_of(CaseMeasures(planned_case(services=[]), trials))  # type: ignore[arg-type]


def look_ups(*splits: tuple[SplitReading, ...]) -> tuple[LookUps, ...]:
    trials = tuple(SimpleNamespace(is_usable=True, splits=each) for each in splits)
    return label_splits.look_ups_of(CaseMeasures(planned_case(services=[]), trials))  # type: ignore[arg-type]


def test_each_value_has_its_rate_and_its_mean_in_the_measured_part() -> None:
    splits = read(
        *timed([0, 9, 10, 20, 30, 40, 99], [0, 9, 1, 2, 3, 4, 99], upstream="a"),
        *timed([0, 9, 10, 15, 20, 25, 99], [0, 9, 1, 3, 5, 7, 99], upstream="b"),
    )

    (split,) = figures(splits)
    assert (split.metric, split.label) == (NAME, "upstream")
    by_value = {part.value: part for part in split.parts}
    for value, rate, mean_s in (("a", 10.0, 0.1), ("b", 5.0, 0.4)):  # 30 and 15 in 3 s; 3 s and 6 s of them
        part = by_value[value]
        assert isinstance(part.rate, Estimate)
        assert isinstance(part.mean, Estimate)
        assert part.rate.point == pytest.approx(rate)
        assert part.mean.point == pytest.approx(mean_s)


def test_other_labels_are_added_up_and_milliseconds_are_seconds() -> None:
    page = [
        (f"call_ms_{part}", {"shard": shard, "code": code}, [0, 0, 0, 10 * factor, 20 * factor, 30 * factor])
        for shard in "xy"
        for code in ("200", "404")
        for part, factor in (("count", 1), ("sum", 7))
    ]

    by_label = {split.key[2]: split for split in read(*page)}

    assert sorted(by_label) == ["code", "shard"]
    assert [part.count for part in by_label["shard"].parts] == [60, 60]
    assert [part.mean.point for part in by_label["shard"].parts if part.mean] == [pytest.approx(0.007)] * 2


def test_a_counter_without_times_has_rates_alone() -> None:
    splits = read(*[("hits_total", {"pod": pod}, [0, 0, 10, 20, 30, 40]) for pod in "xy"])

    (split,) = figures(splits)
    assert all(isinstance(part.mean, NotMeasured) for part in split.parts)


def test_values_of_several_trials_are_joined() -> None:
    trial = read(*[("hits_total", {"pod": pod}, [0, 0, 0, 10, 20, 30]) for pod in "xy"])

    (split,) = figures(trial, trial, trial)
    rate = split.parts[0].rate
    assert isinstance(rate, Estimate)
    assert rate.point == pytest.approx(10.0)
    assert (rate.trials, rate.samples) == (3, 90)


@pytest.mark.parametrize(
    "page",
    [
        pytest.param([("hits_total", {}, [0, 1, 2, 3, 4, 5])], id="no label"),
        pytest.param([("hits_total", {"pod": "x"}, [0, 1, 2, 3, 4, 5])], id="one value"),
        pytest.param(
            [("hits_total", {"user": str(n)}, [0, 1, 2, 3, 4, 5]) for n in range(25)],
            id="names single things",
        ),
        pytest.param([("in_flight", {"pod": p}, [0, 3, 2, 5, 1, 0]) for p in "xy"], id="up and down"),
        pytest.param(
            [("busy_seconds_total", {"pod": p}, [0, 1, 2, 3, 4, 5]) for p in "xy"], id="a sum of times"
        ),
        pytest.param(
            [("hits_total", {"pod": p}, [5, 5, 5, 5, 5, 5]) for p in "xy"], id="not counted meanwhile"
        ),
    ],
)
def test_what_does_not_count_by_a_label_is_left_out(page: list[Page]) -> None:
    assert read(*page) == ()


def test_without_two_scrapes_nothing_is_read() -> None:
    assert read(*timed([5], [1], upstream="a"), *timed([5], [1], upstream="b")) == ()


def test_a_page_of_very_many_series_costs_only_those_that_are_few() -> None:
    many = [("ids_total", {"id": str(n), "half": str(n % 2)}, [0, 1, 2, 3, 4, 5]) for n in range(2_001)]
    few = [("hits_total", {"pod": pod}, [0, 0, 0, 10, 20, 30]) for pod in "xy"]

    assert [split.key[1] for split in read(*many, *few)] == ["hits_total"]


def test_the_mean_of_a_part_is_over_time_and_not_over_scrapes() -> None:
    splits = read(
        *timed([0, 0, 0, 1, 1, 10], [0, 0, 0, 1.0, 1.0, 1.9], upstream="a"),
        *timed([0, 0, 0, 5, 5, 5], [0, 0, 0, 1.0, 1.0, 1.0], upstream="b"),
    )

    means = {part.value: part.mean.point for part in splits[0].parts if part.mean is not None}
    assert means == {"a": pytest.approx(0.19), "b": pytest.approx(0.2)}  # 1.9 s of 10, 1 s of 5
    assert np.isfinite(list(means.values())).all()


def of_load(*kinds: tuple[str, float, float]) -> tuple[LabelSplit, ...]:
    """Requests of the load with their rates and mean times."""
    built = step(8, 100.0, 0.08).classes[0]
    return label_splits.split_of_load(
        [
            replace(built, request=request, rate=estimate(rate, unit="1/s"), response=times(mean_s))
            for request, rate, mean_s in kinds
        ]
    )


def test_things_of_one_kind_that_the_load_asks_for_are_parts_of_it() -> None:
    (split,) = of_load(("GET /gauges/RH-1", 75.0, 0.2), ("GET /gauges/EL-1", 25.0, 0.02))

    assert split.is_of_load
    assert [part.value for part in split.parts] == ["GET /gauges/RH-1", "GET /gauges/EL-1"]
    assert [figures_of.point(part.rate) for part in split.parts] == [75.0, 25.0]
    assert [figures_of.point(part.mean) for part in split.parts] == [0.2, 0.02]


def test_different_routes_are_no_parts() -> None:
    assert of_load(("GET /search", 75.0, 0.2), ("GET /list", 25.0, 0.02)) == ()


def test_counters_that_differ_in_hits_and_misses_are_two_values() -> None:
    splits = read(
        ("cache_hits_total", {"cache": "a"}, [0, 0, 0, 10, 20, 30]),
        ("cache_misses_total", {"cache": "a"}, [0, 0, 0, 30, 60, 90]),
        ("cache_hits_total", {"cache": "b"}, [0, 0, 0, 0, 0, 0]),
        ("cache_misses_total", {"cache": "b"}, [0, 0, 0, 5, 10, 15]),
        ("whitelist_total", {}, [0, 0, 0, 5, 10, 15]),
    )

    a, b = look_ups(splits)
    assert [a.name, b.name] == ['cache_hits_total{cache="a"}', 'cache_hits_total{cache="b"}']
    assert [a.hits, a.misses, a.missed] == pytest.approx([10, 30, 0.75])
    assert a.samples == 30 + 90
    assert [b.hits, b.missed] == [0, 1]
    assert all(split.label for split in figures(splits))


def test_values_of_a_label_are_look_ups_if_all_say_hit_or_miss() -> None:
    def counted(*values: str) -> tuple[SplitReading, ...]:
        return read(*(("gets_total", {"result": value}, [0, 0, 0, 10, 20, 30]) for value in values))

    (both,) = look_ups(counted("cacheHit", "miss_local", "miss_remote"))
    assert both.name == "gets_total by result"
    assert both.missed == pytest.approx(2 / 3)
    assert look_ups(counted("hit", "miss", "stored")) == ()
    assert look_ups(counted("hit", "stale_hit")) == ()


def test_replicas_are_added_up_and_times_and_sizes_are_no_look_ups() -> None:
    def replica(number: str, *series: Page) -> list[Page]:
        return [(metric, {**labels, "replica": number}, values) for metric, labels, values in series]

    hit, miss = [0, 0, 0, 10, 20, 30], [0, 0, 0, 30, 60, 90]
    counted: tuple[Page, ...] = (("hits_total", {}, hit), ("misses_total", {}, miss))
    (both,) = look_ups(read(*replica("1", *counted), *replica("2", *counted)))
    assert [both.hits, both.misses] == pytest.approx([20, 60])
    for pair in (("hit_ms_sum", "miss_ms_sum"), ("hit_bytes_total", "miss_bytes_total")):
        assert look_ups(read((pair[0], {}, hit), (pair[1], {}, miss))) == ()
