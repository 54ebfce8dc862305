"""The machines of a fleet: a row for each in the details of a case."""

from __future__ import annotations

from loadlens.measure.case import CaseMeasures
from loadlens.measure.nodes import nodes_of
from loadlens.model.quality import NodeWatch
from loadlens.model.report import Cell, Column, Table
from loadlens.present import numbers, words

VERDICTS = {
    "kept_up": "kept up",
    "late": "late",
    "starved": "starved of CPU",
    "limit": "was the limit",
    "stood_still": "stood still",
}


def table(case: CaseMeasures) -> Table | None:
    """Return share, figures, lateness and clock of each machine; none where one machine made the load."""
    rows = tuple(_row(node) for node in nodes_of(case))
    if not rows:
        return None
    columns = (
        Column("node", align="left"),
        Column("share of the load"),
        Column("requests due"),
        Column("requests/s", "1/s"),
        Column("p50", "s"),
        Column("p99", "s"),
        Column("began late, at most"),
        Column("clock known to"),
        Column("generator", align="left"),
    )
    used = words.plural(len(case.usable), "trial")
    return Table(
        columns, rows, f"response times as each node saw them, in {used}; all nodes make the figures above"
    )


def _row(node: NodeWatch) -> tuple[Cell, ...]:
    late = None if node.start_late_s is None else numbers.with_unit(max(node.start_late_s, 0.0), "s")
    return (
        node.label if node.label == node.host else f"{node.label} ({node.host})",
        f"{100 * node.part:.3g} %",
        node.due,
        node.rate,
        node.p50,
        node.p99,
        late,
        numbers.with_unit(node.clock_error_s, "s"),
        VERDICTS.get(node.verdict, "not known"),
    )
