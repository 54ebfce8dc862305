"""External load generators that can run a plan instead of our engine, one file each.

To add a tool, write its file, add it to `DRIVERS` and its name to `model.external_load`; a test runs it
against the origin and compares its counts with the origin's.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from typing import Final

from loadlens.model.external_load import CannotDo
from loadlens.model.study import Study
from loadlens.model.workload import Plan
from loadlens.run.external.ab import AB
from loadlens.run.external.base import Driver, Printed, Request, Times, ToolReport
from loadlens.run.external.hey import HEY
from loadlens.run.external.k6 import K6
from loadlens.run.external.locust import LOCUST
from loadlens.run.external.oha import OHA
from loadlens.run.external.result import result_of
from loadlens.run.external.wrk import WRK

__all__ = [
    "DRIVERS",
    "Driver",
    "Printed",
    "Request",
    "Times",
    "ToolReport",
    "cannot_do",
    "how_to_install",
    "missing",
    "result_of",
]

APT: Final = "apt-get install "
DRIVERS: Final[dict[str, Driver]] = {driver.name: driver for driver in (WRK, AB, HEY, OHA, K6, LOCUST)}


def cannot_do(name: str, plan: Plan, hide: Sequence[str] = ()) -> list[CannotDo]:
    """List everything in a plan that a driver does not support; `hide` names further credentials."""
    return DRIVERS[name].faults(plan, hide)


def missing(study: Study) -> tuple[Driver, ...]:
    """Return the drivers that a study needs and this machine does not have."""
    names = dict.fromkeys(case.driver for case in study.cases if case.driver is not None)
    return tuple(DRIVERS[name] for name in names if shutil.which(DRIVERS[name].name) is None)


def how_to_install(drivers: Iterable[Driver]) -> str:
    """Return the commands that install some drivers, system packages in one command."""
    commands = dict.fromkeys(driver.install for driver in drivers)
    packages = " ".join(command.removeprefix(APT) for command in commands if command.startswith(APT))
    others = [command for command in commands if not command.startswith(APT)]
    return "; ".join([*([APT + packages] if packages else []), *others])
