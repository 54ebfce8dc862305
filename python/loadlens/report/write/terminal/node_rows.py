"""A row for each machine of a fleet: its requests and times, how late it began, how well it keeps time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from loadlens.model.result import EngineResult, Node, Quantity
from loadlens.present import numbers, words
from loadlens.report.write.hit_figures import PER_SECOND, figure

FIGURES: Final = 65  # columns of everything but the name


def node_rows(result: EngineResult, *, width: int) -> Iterator[str]:
    """Return a table of the nodes; nothing for the load of one machine."""
    if not result.nodes:
        return
    room = max(width - FIGURES, 12)
    yield (
        f"  {'nodes':<{room}}{'share':>7}{'requests':>10}{'ok/s':>8}{'p50':>10}{'p99':>10}"
        f"{'began':>9}{'clock':>9}"
    )
    for node in result.nodes:
        name = words.cut(words.plain(node.name), room - 1)
        yield f"  {name:<{room}}{100 * node.part:>5.3g} %" + "".join(_figures(node))


def _figures(node: Node) -> Iterator[str]:
    """Yield the cells of a node's load, and of its clock."""
    load = next(iter(node.streams), None)
    if load is None:
        yield f"{node.status:>10}{'':>28}"
    else:
        shown = [_shown("s", quantity) for quantity in (load.p50_s, load.p99_s)]
        rate = _shown("1/s", load.throughput_rps)
        yield f"{numbers.count(load.due):>10}{rate:>8}{shown[0]:>10}{shown[1]:>10}"
    late_ns = node.start_late_ns
    late = "" if late_ns is None else f"+{numbers.with_unit(max(late_ns, 0) / 1e9, 's')}"
    yield f"{late:>9}{'±' + numbers.with_unit(node.clock_error_ns / 1e9, 's'):>9}"


def _shown(unit: str, quantity: Quantity) -> str:
    scale = PER_SECOND if unit == "1/s" else numbers.scale("s", [quantity.value])
    shown = numbers.show(figure("", unit, quantity, 0), scale)
    return shown.value if unit == "1/s" else shown.short
