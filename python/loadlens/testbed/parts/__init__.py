"""The kinds of parts that a testbed is made of: the `use` of a service, one file each.

A new kind is a file with a `Piece` in it and a line here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from loadlens.testbed.parts.fault_proxy import FaultProxy
from loadlens.testbed.parts.nginx import Nginx
from loadlens.testbed.parts.part import Layout, Piece, Site
from loadlens.testbed.parts.postgres import Postgres
from loadlens.testbed.parts.process import Process
from loadlens.testbed.parts.prometheus import Prometheus

PIECES: Final[Mapping[str, Piece]] = {
    "process": Process(),
    "postgres": Postgres(),
    "nginx": Nginx(),
    "fault-proxy": FaultProxy(),
    "prometheus": Prometheus(),
}

__all__ = ["PIECES", "Layout", "Piece", "Site"]
