"""Names of metrics stand in one table: a reader that spells one misses it when it is renamed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from loadlens.model.readings import METRICS
from loadlens.signals.read import fields

PACKAGE = Path(__file__).parents[2] / "python" / "loadlens"
ROOMS = ("signals/read", "measure", "diagnose", "report")
OTHER_THINGS = {
    "gc_pauses",  # of a JVM, which exports them under names of its own
    "memory_bytes",  # likewise, and a key of a placement
    "response_time",  # a time that objectives name
    "major_faults",  # a signal of a rule
}


def spelt(path: Path) -> Iterator[str]:
    """Names of two words or more; one word may mean anything."""
    names = {metric.name for metrics in METRICS.values() for metric in metrics if "_" in metric.name}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and node.value in names - OTHER_THINGS:
            yield f"{path.relative_to(PACKAGE)}:{node.lineno}: {node.value}"


def test_a_name_is_spelt_in_the_table_alone() -> None:
    paths = [path for room in ROOMS for path in (PACKAGE / room).rglob("*.py")]

    assert [found for path in paths for found in spelt(path)] == []


def test_every_signal_of_the_facts_is_of_a_metric_in_the_table() -> None:
    every = {metric for metrics in METRICS.values() for metric in metrics}

    assert {signal.metric for signal in fields.declared()} <= every
