"""The tree of a study file as JSON would hold it, for validators that know no lines."""

from __future__ import annotations

from typing import Any

from loadlens.study.tree import Leaf, Node, Row


def plain(node: Node) -> Any:
    """Return the content of a node without its lines."""
    if isinstance(node, Leaf):
        return node.value
    if isinstance(node, Row):
        return [plain(item) for item in node.items]
    return {key: plain(item) for key, item in node.items.items()}
