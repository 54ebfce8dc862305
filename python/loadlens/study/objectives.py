"""Objectives as text, such as `p99<200ms`, and the unit that each metric is bounded in.

The command line and studies share them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from loadlens import units
from loadlens.errors import nearest
from loadlens.model.study import METRICS, STATISTICS, UNSUCCESSFUL, Objective
from loadlens.units import UnitError, shown

_EXAMPLE: Final = "'p99<200ms', 'failed<1%' or 'rate>500/s'"
_SHORT: Final = {
    **{statistic: f"response_time.{statistic}" for statistic in STATISTICS},
    "p99.9": "response_time.p999",
    "rate": "throughput",
    "failed": UNSUCCESSFUL,
}
_FORM: Final = re.compile(r"\s*([a-z][a-z0-9_.]*)\s*(<|>)\s*(\S.*?)\s*")


def objective(text: str) -> Objective:
    """Parse an objective: a metric, `<` or `>`, and a bound in the metric's unit.

    Raises:
        UnitError: It has another form, an unknown metric, or a bound in another unit.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise UnitError(f"{shown(text)} is not an objective", _EXAMPLE)
    name, sign, bound = match.groups()
    metric = metric_of(name)
    parse = bound_of(metric)
    if parse is units.duration_s and re.fullmatch(r"[\d.]+", bound):
        raise UnitError(f"{shown(bound)} has no unit", f"{name}{sign}{bound}ms or {name}{sign}{bound}s")
    limit = parse(bound)
    return Objective(metric, None, below=limit) if sign == "<" else Objective(metric, None, above=limit)


def metric_of(name: str) -> str:
    """Return a metric by its short name, `p99`, or by the name in studies.

    Raises:
        UnitError: There is none.
    """
    metric = _SHORT.get(name, name)
    if metric not in METRICS:
        # p42 is as near to p50 as to p90
        near = nearest(name, [*_SHORT, *METRICS]) if len(name) > 4 else None
        hint = f"did you mean {near}?" if near is not None else f"one of {', '.join(_SHORT)}"
        raise UnitError(f"{shown(name)} is not a metric", hint)
    return metric


def bound_of(metric: str) -> Callable[[object], float]:
    """Return the parser of bounds of a metric: durations, rates, sizes, counts or fractions."""
    if metric == "throughput":
        return units.rate_per_s
    if metric.startswith(("body_bytes.", "load.received_")):
        return units.size_bytes
    if metric == "load.answers":
        return units.count
    if metric.endswith(".share"):
        return units.share
    return units.duration_s
