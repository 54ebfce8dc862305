"""Division of a load among the nodes that can carry a part of it."""

from __future__ import annotations

from collections.abc import Sequence

from loadlens.model.workload import Closed, Plan, Share, shares_of


def carrying(plan: Plan, weights: Sequence[int]) -> list[int]:
    """Return the indices of the nodes that make a load; the others would have no user of it.

    A node without users would keep its part of a fixed number of requests, which would never be sent.

    Args:
        plan: Of all nodes.
        weights: Of each node.
    """
    loads = [stream.workload for stream in plan.streams if stream.role == "load"]
    users = min((load.users for load in loads if isinstance(load, Closed)), default=None)
    nodes = list(range(len(weights)))
    while users is not None and len(nodes) > 1:
        shares = shares_of([weights[node] for node in nodes])
        idle = [node for node, share in zip(nodes, shares, strict=True) if not has_user(share, users)]
        if not idle:
            break
        nodes.remove(idle[-1])
    return nodes


def has_user(share: Share, users: int) -> bool:
    """True if one of so many users falls to a share: parts take turns by reversed bits (docs/adr/0084)."""
    turns = sorted(range(share.of), key=lambda part: f"{part:032b}"[::-1])
    return any(share.begin <= part < share.end for part in turns[:users])
