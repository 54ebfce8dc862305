"""A result in the formats of tools that keep series: github-action-benchmark and Bencher.

Sources: `BenchmarkResult` of benchmark-action/github-action-benchmark (src/extract.ts), and the page of the
Bencher Metric Format.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from loadlens.model.finding import Estimate
from loadlens.report.write.result import Result, Row

BIGGER_IS_BETTER: Final = ("throughput", "capacity", "capacity.reached", "rate.meets")
PER_UNIT: Final = {
    "s": (1e3, "ms"),
    "1/s": (1.0, "requests/s"),
    "bytes": (1 / 1024**2, "MiB"),
    "share": (100.0, "%"),
}
# Measures that Bencher knows by itself, in its units; others get the name of the metric.
LATENCY_NS: Final = 1e9


@dataclass(frozen=True, slots=True)
class _Named:
    """A figure with the name of its series."""

    name: str  # of what was measured
    words: str  # the metric
    row: Row
    figure: Estimate


def as_smaller_is_better(result: Result) -> str:
    """Return the times, shares, CPU and memory for `tool: customSmallerIsBetter`."""
    return _entries(each for each in _shown(result) if each.row.metric not in BIGGER_IS_BETTER)


def as_bigger_is_better(result: Result) -> str:
    """Return throughput and rates for `tool: customBiggerIsBetter`."""
    return _entries(each for each in _shown(result) if each.row.metric in BIGGER_IS_BETTER)


def _entries(shown: Iterator[_Named]) -> str:
    entries = []
    for each in shown:
        factor, unit = PER_UNIT.get(each.figure.unit, (1.0, each.figure.unit))
        low, high = (
            "open" if end is None else f"{factor * end:.4g}" for end in (each.figure.low, each.figure.high)
        )
        entries.append(
            {
                "name": f"{each.name} · {each.words}",
                "unit": unit,
                "value": factor * each.figure.point,
                "range": f"{low}–{high}",
                "extra": f"{each.figure.trials} trials, {each.figure.method}",
            }
        )
    return json.dumps(entries, indent=2, ensure_ascii=False) + "\n"


def as_bencher(result: Result) -> str:
    """Return Bencher Metric Format: a benchmark for each time, whose measure is `latency` in nanoseconds."""
    benchmarks: dict[str, dict[str, dict[str, float]]] = {}
    for each in _shown(result):
        name, measure, factor = each.name, each.row.metric.replace(".", "-").replace("_", "-"), 1.0
        if each.row.metric in BIGGER_IS_BETTER:
            measure = "throughput" if each.row.metric == "throughput" else measure
        elif "_time." in each.row.metric:
            name, measure, factor = f"{name} · {each.words}", "latency", LATENCY_NS
        ends = {"value": each.figure.point, "lower_value": each.figure.low, "upper_value": each.figure.high}
        bounds = {key: factor * value for key, value in ends.items() if value is not None}
        benchmarks.setdefault(name, {})[measure] = bounds
    return json.dumps(benchmarks, indent=2, ensure_ascii=False) + "\n"


def _shown(result: Result) -> Iterator[_Named]:
    """Yield the estimates that the page shows, but no ratio: it has no series of its own."""
    for row in result.rows:
        if row.label and isinstance(row.figure, Estimate) and row.figure.unit != "ratio":
            version = row.note if result.subject == "comparison" else ""
            parts = (result.title, version, row.case, row.step)
            name = row.label.removesuffix(f", {version}")
            yield _Named(" · ".join(part for part in parts if part), name, row, row.figure)
