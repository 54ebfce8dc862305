"""Shares of a load held against what `loadlens doctor` measured on the nodes' machines.

The bound is that of cores which do nothing but send, so no load that could be carried is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

from loadlens.errors import TooLargeError
from loadlens.fleet.cluster import Node
from loadlens.model.workload import Open, Plan, Stream, shares_of


def refuse_beyond(nodes: Sequence[Node], weights: Sequence[int], rate_per_s: float) -> None:
    """Refuse a rate of which a machine cannot send its share, with all nodes that it carries.

    Args:
        nodes: Those that make the load.
        weights: Of each; empty: equal shares.
        rate_per_s: The highest rate of all nodes together, in requests.

    Raises:
        TooLargeError: The share is beyond what `loadlens doctor` measured there; both rates are named.
    """
    rates: dict[str, float] = {}
    for node, share in zip(nodes, shares_of(weights or [1] * len(nodes)), strict=True):
        rates[node.host] = rates.get(node.host, 0.0) + rate_per_s * share.weight
    for node in nodes:
        if node.most_per_s is not None and rates[node.host] > node.most_per_s:
            raise TooLargeError(
                f"node {node.name} would send {rates[node.host]:,.0f} requests/s from its machine, "
                f"which can send {node.most_per_s:,.0f} as measured by loadlens doctor",
                hint="more nodes, a smaller weight for it, or a lower rate",
            )


def requests_per_s(plan: Plan) -> float:
    """Return the highest rate at which requests of all nodes are due; users who wait have none."""
    return sum(map(_peak, plan.streams))


def _peak(stream: Stream) -> float:
    if not isinstance(stream.workload, Open):
        return 0.0
    weights = sum(scenario.weight for scenario in stream.scenarios)
    requests = sum(scenario.weight * scenario.requests for scenario in stream.scenarios)
    return stream.workload.peak_per_s * requests / weights
