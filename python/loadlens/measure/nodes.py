"""The machines of a fleet in a case: the share, the times and the clock of each, over its trials."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from loadlens.estimate.interval import Insufficient, Interval, Measured
from loadlens.measure.case import CaseMeasures
from loadlens.measure.requests.connections import connect_mean
from loadlens.measure.trial import TrialMeasures
from loadlens.model.quality import NodeWatch
from loadlens.model.result import Node, Quantity

if TYPE_CHECKING:
    import polars as pl

WITHIN: Final = "long-run variance, within one trial"
WORSE: Final = ("kept_up", "late", "starved", "limit", "stood_still")  # verdicts on a generator


def nodes_of(case: CaseMeasures) -> tuple[NodeWatch, ...]:
    """Return the machines of a case in their order; empty: one machine made its load."""
    trials = [
        (trial, node)
        for trial in case.usable
        if trial.source.result is not None
        for node in trial.source.result.nodes
    ]
    names = dict.fromkeys(node.name for _, node in trials)
    return tuple(_over_trials(case, [part for part in trials if part[1].name == name]) for name in names)


def _over_trials(case: CaseMeasures, parts: Sequence[tuple[TrialMeasures, Node]]) -> NodeWatch:
    nodes = [node for _, node in parts]
    loads = [node.streams[0] for node in nodes if node.streams]
    oks = [load.ok for load in loads]
    connects = [_connections(trial, node.name) for trial, node in parts]
    late = [node.start_late_ns for node in nodes if node.start_late_ns is not None]
    return NodeWatch(
        label=nodes[0].name,
        host=nodes[0].host,
        part=sum(node.part for node in nodes) / len(nodes),
        due=sum(load.due for load in loads),
        rate=case.figure("throughput", "1/s", [_measured(load.throughput_rps) for load in loads], oks),
        p50=case.figure("response_time.p50", "s", [_measured(load.p50_s) for load in loads], oks),
        p99=case.figure("response_time.p99", "s", [_measured(load.p99_s) for load in loads], oks),
        connect=case.figure(
            "connect.mean", "s", [connect_mean(rows) for rows in connects], [rows.height for rows in connects]
        ),
        start_late_s=max(late) / 1e9 if late else None,
        clock_error_s=max(node.clock_error_ns for node in nodes) / 1e9,
        verdict=max(
            (node.generator.verdict or "kept_up" for node in nodes if node.generator is not None),
            key=WORSE.index,
            default="",
        ),
    )


def _connections(trial: TrialMeasures, node: str) -> pl.DataFrame:
    """Return the connections of a machine, those of the load."""
    import polars as pl

    rows, load = trial.source.connections(), trial.load
    if load is None or "node" not in rows.columns:
        return rows.clear()
    return rows.filter((pl.col("node") == node) & (pl.col("stream") == load.plan.index))


def _measured(quantity: Quantity) -> Measured:
    if quantity.value is None:
        return Insufficient(quantity.undecided or "no request was answered")
    return Interval(quantity.value, quantity.low, quantity.high, quantity.independent_above or 0.0, WITHIN)
