"""PromQL: parser of expressions, and their values over recorded samples.

The part of the language that reports use: selectors, ranges, rates with Prometheus's extrapolation, what is
taken over time, aggregation, arithmetic, quantiles of histograms. What is left out is refused by name when an
expression is parsed, so that a missing figure is known before a run.
"""

from __future__ import annotations

from loadlens.promql.evaluate import Point, evaluate, evaluate_over
from loadlens.promql.moments import Moments, moments
from loadlens.promql.parse import NotOurs, PromqlError, parse
from loadlens.promql.series import Series
from loadlens.promql.syntax import Expression, filled, metrics_of, reach_s

__all__ = [
    "Expression",
    "Moments",
    "NotOurs",
    "Point",
    "PromqlError",
    "Series",
    "evaluate",
    "evaluate_over",
    "filled",
    "metrics_of",
    "moments",
    "parse",
    "reach_s",
]
