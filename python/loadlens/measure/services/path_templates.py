"""Paths of requests and the templates under which services count them: `/orders/{id}`."""

from __future__ import annotations

import re
from typing import Final

_PLACEHOLDER: Final = re.compile(r"^(\{.*\}|:.+|<.*>|\*)$")  # of a path: /orders/{id}


def fits(template: str, where: str) -> bool:
    """Return whether a path matches this template, such as `/orders/{id}`."""
    wanted, parts = template.strip("/").split("/"), where.strip("/").split("/")
    return len(wanted) == len(parts) and all(_same(a, b) for a, b in zip(wanted, parts, strict=True))


def _same(wanted: str, part: str) -> bool:
    return wanted == part or _PLACEHOLDER.match(wanted) is not None
