"""Paths of requests and the templates under which services count them: `/orders/{id}`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_THING: Final = re.compile(r"^(?!v\d+$).*\d|^(\w+=)?[A-Z]+$")
_PLACEHOLDER: Final = re.compile(r"^(\{.*\}|:.+|<.*>|\*)$")  # of a path: /orders/{id}


def fits(template: str, where: str) -> bool:
    """Return whether a path matches this template, such as `/orders/{id}`."""
    wanted, parts = template.strip("/").split("/"), where.strip("/").split("/")
    return len(wanted) == len(parts) and all(_same(a, b) for a, b in zip(wanted, parts, strict=True))


def are_of_a_kind(requests: Sequence[str]) -> bool:
    """Return whether requests such as `GET /orders/7` ask for several things of one kind.

    Their paths differ in the same one part, which is the name of a thing in each of them, not of a route or a
    version: it has a digit, or is in capitals.
    """
    split = [tuple(re.split(r"[ /?&]", request)) for request in requests]
    if len(set(split)) < 2 or len({len(parts) for parts in split}) > 1:
        return False
    method, *different = (values for values in zip(*split, strict=True))
    others = [values for values in different if len(set(values)) > 1]
    return len(set(method)) == 1 and len(others) == 1 and all(_THING.search(value) for value in others[0])


def _same(wanted: str, part: str) -> bool:
    return wanted == part or _PLACEHOLDER.match(wanted) is not None
