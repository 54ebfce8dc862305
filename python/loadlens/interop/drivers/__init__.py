"""Load generators of others that may drive a plan in place of our engine, one file each.

To add one, write its file and add it to `DRIVERS`; a test runs it on the origin and holds its figures to
the books.
"""

from __future__ import annotations

from typing import Final

from loadlens.interop.drivers.ab import AB
from loadlens.interop.drivers.base import Driver, Printed, Times, Told
from loadlens.interop.drivers.hey import HEY
from loadlens.interop.drivers.k6 import K6
from loadlens.interop.drivers.result import result_of
from loadlens.interop.drivers.wrk import WRK

__all__ = ["DRIVERS", "Driver", "Printed", "Times", "Told", "result_of"]

DRIVERS: Final[dict[str, Driver]] = {one.name: one for one in (WRK, AB, HEY, K6)}
