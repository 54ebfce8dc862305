"""All families, by name; a new one stands in one of these files and needs no other line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from catalogue.families import (
    backends,
    composites,
    connections,
    environment,
    healthy,
    limits,
    loops,
    shapes,
    waiting,
)
from catalogue.family import Family

_FILES = (healthy, loops, waiting, limits, connections, backends, shapes, environment, composites)

FAMILIES: Final[Mapping[str, Family]] = {family.name: family for file in _FILES for family in file.FAMILIES}
