"""The kinds of parts that a testbed is made of: the `use` of a service, one file each.

A new kind is a file with a `Piece` in it and a line here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from loadlens.testbed.pieces.fault_proxy import FaultProxy
from loadlens.testbed.pieces.nginx import Nginx
from loadlens.testbed.pieces.piece import Layout, Piece, Site
from loadlens.testbed.pieces.postgres import Postgres
from loadlens.testbed.pieces.process import Process
from loadlens.testbed.pieces.prometheus import Prometheus

PIECES: Final[Mapping[str, Piece]] = {
    "process": Process(),
    "postgres": Postgres(),
    "nginx": Nginx(),
    "fault-proxy": FaultProxy(),
    "prometheus": Prometheus(),
}

__all__ = ["PIECES", "Layout", "Piece", "Site"]
