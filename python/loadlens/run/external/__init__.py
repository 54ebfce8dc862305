"""Load generators of others that may drive a plan in place of our engine, one file each.

To add one, write its file, add it to `DRIVERS` and its name to `model.driving`; a test runs it on the origin
and holds its figures to the books.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from typing import Final

from loadlens.model.external_load import CannotDo
from loadlens.model.study import Study
from loadlens.model.workload import Plan
from loadlens.run.external.ab import AB
from loadlens.run.external.base import Driver, Printed, Request, Times, Told
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
    "Told",
    "cannot_do",
    "how_to_install",
    "missing",
    "result_of",
]

APT: Final = "apt-get install "
DRIVERS: Final[dict[str, Driver]] = {one.name: one for one in (WRK, AB, HEY, OHA, K6, LOCUST)}


def cannot_do(name: str, plan: Plan) -> list[CannotDo]:
    """Everything that a driver cannot do of a plan."""
    return DRIVERS[name].faults(plan)


def missing(study: Study) -> tuple[Driver, ...]:
    """The drivers that some case of a study names and this machine lacks."""
    names = dict.fromkeys(case.driver for case in study.cases if case.driver is not None)
    return tuple(DRIVERS[name] for name in names if shutil.which(DRIVERS[name].program) is None)


def how_to_install(drivers: Iterable[Driver]) -> str:
    """The commands that install them, packages of the system in one."""
    commands = dict.fromkeys(driver.install for driver in drivers)
    packages = " ".join(command.removeprefix(APT) for command in commands if command.startswith(APT))
    others = [command for command in commands if not command.startswith(APT)]
    return "; ".join([*([APT + packages] if packages else []), *others])
